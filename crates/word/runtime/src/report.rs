//! What is told of a call that was ended.

use mullion_plain::Plain;
use std::fmt;

/// What ended a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A check refused an access.
    Access,
    /// An access that no check refused met no memory.
    NoMapping,
    /// An indirect jump to what has no label.
    Label,
    /// A call by address of what the domain may neither enter nor call.
    Call,
    /// A call whose policy, or the lack of one, refuses it.
    Policy,
    /// The module gave up: `ud2`.
    Abort,
    /// An instruction that a process may not run.
    Illegal,
    /// Division by zero, or a floating-point exception that was asked for.
    Arithmetic,
    /// A trap for a debugger.
    Trap,
    /// The data stack is full.
    DataStack,
    /// Calls are nested too deeply.
    ControlStack,
    /// The call's time is over.
    Time,
    /// There is no memory for the thread's stacks.
    NoMemory,
    /// A `longjmp`, or an exception, to where the call that runs has never been, or is no longer.
    Unwind,
    /// An exception of C++ that nothing in the call catches. The report's `object` is its text.
    Uncaught,
}

/// An address that an instruction of a module has reached for.
#[derive(Clone, Copy, Debug)]
pub struct Reached<'a> {
    /// The instruction's address in the module's file.
    pub instruction: u64,
    /// The registers there, by their numbers in machine code.
    pub registers: &'a [u64; 16],
    /// What lay on the module's data stack.
    pub stack: Option<&'a StackWords>,
    /// What it has reached for.
    pub address: u64,
    /// The host's variable that the address is in, and how many bytes into it.
    pub variable: Option<(&'a str, u64)>,
    /// The export whose call it is.
    pub export: &'a str,
}

/// Words of a module's data stack around its top, as they were at an instruction. The module may have written anything there.
#[derive(Clone, Copy, Debug)]
pub struct StackWords {
    /// The address of the first one.
    first: u64,
    words: [u64; StackWords::MOST],
    count: usize,
}

impl StackWords {
    /// So many words are kept.
    const MOST: usize = 128;
    /// Bytes below the top that code may use.
    const BELOW: u64 = 128;

    /// Those around `top`, which is whatever the module says, of a stack that is mapped from `low` to `high`.
    ///
    /// # Safety
    /// The stack is mapped between these as long as this runs.
    pub(crate) unsafe fn around(top: u64, low: u64, high: u64) -> StackWords {
        let mut kept = StackWords {
            first: (top & !7)
                .saturating_sub(Self::BELOW)
                .max(low.next_multiple_of(8)),
            words: [0; Self::MOST],
            count: 0,
        };
        let room = high.saturating_sub(kept.first) / 8;
        kept.count = room.min(Self::MOST as u64) as usize;
        for (word, at) in kept
            .words
            .iter_mut()
            .zip((kept.first..).step_by(8))
            .take(kept.count)
        {
            // SAFETY: it is aligned and between the two. Another thread of the module may write it, so it is read as it is.
            *word = unsafe { (at as *const u64).read_volatile() };
        }
        kept
    }

    /// The word at an address, if it is one of these.
    #[must_use]
    pub fn word(&self, address: u64) -> Option<u64> {
        let distance = address.checked_sub(self.first)?;
        let at = usize::try_from(distance / 8)
            .ok()
            .filter(|at| *at < self.count)?;
        distance.is_multiple_of(8).then(|| self.words[at])
    }

    /// The text there, up to its zero or the end of what is kept. It may have been forged.
    pub(crate) fn text(&self, address: u64) -> String {
        let words = (0..Self::MOST as u64).map_while(|at| self.word(address.checked_add(8 * at)?));
        let bytes: Vec<u8> = words
            .flat_map(u64::to_le_bytes)
            .take_while(|byte| *byte != 0)
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// What an address is to the code that has reached for it, by the module's debug information. Its author may have forged that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReachedField {
    /// The variable that points there, or that lies there.
    pub variable: Plain,
    /// The type of what is there, as the source calls it.
    pub of: Plain,
    /// The bytes of the type.
    pub bytes: u64,
    /// The member of it, and members of members: `head.next`, `rows[3].id`. Empty if it has none there.
    pub member: Plain,
    /// How many bytes into the type.
    pub distance: u64,
    /// If the variable is a parameter of the export itself: which one.
    pub parameter: Option<u8>,
}

impl fmt::Display for ReachedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.member.as_str() {
            "" => write!(f, "byte {} of `{}`", self.distance, self.of)?,
            member => write!(f, "`{member}` of `{}`", self.of)?,
        }
        write!(f, ", by `{}`", self.variable)
    }
}

/// The lines of a policy that would allow an access. `variable` is the host's variable that it is in.
pub(crate) fn allows(
    export: &str,
    write: bool,
    variable: Option<&str>,
    field: Option<&ReachedField>,
) -> String {
    if let Some(name) = variable {
        return match write {
            true => format!("data.{name}.write = true"),
            false => format!("data.{name} = {{}}"),
        };
    }
    let effect = if write { "inout" } else { "in" };
    let known = field.and_then(|field| Some((field.parameter?, field.bytes)));
    match known {
        Some((parameter, bytes)) => {
            format!("export.{export}.effects = [\"{effect}({parameter}, {bytes})\"]")
        }
        None => format!(
            "export.{export}.effects = [\"{effect}(PARAMETER, BYTES)\"], or a grant of the host"
        ),
    }
}

/// What went wrong in a domain, and what would have allowed it. Names are those of the module's author, so all texts are [`Plain`].
#[derive(Clone, Debug)]
pub struct Report {
    /// What it was.
    pub kind: FaultKind,
    /// Which module.
    pub module: Plain,
    /// The export whose call was ended.
    pub export: Plain,
    /// The function of the module where it was, and how far in.
    pub function: Plain,
    /// The instruction's address in the module's file, for `addr2line`; 0 if it was not in the module. Of a refused
    /// access it is where the check stands, of a refused call the call.
    pub instruction: u64,
    /// Where in the source that is, if the module's lines are known ([`Module::set_lines`](crate::Module::set_lines)).
    pub line: Option<Plain>,
    /// The address that was refused.
    pub address: Option<u64>,
    /// What is there, and whose it is.
    pub object: Plain,
    /// What it is to the module's code: a member of which type ([`Module::set_fields`](crate::Module::set_fields)).
    pub field: Option<ReachedField>,
    /// The line of policy that would allow it.
    pub allow: Option<Plain>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind;
        write!(
            f,
            "{}: {kind:?} in {} ({:#x}",
            self.module, self.function, self.instruction
        )?;
        if let Some(line) = &self.line {
            write!(f, ", {line}")?;
        }
        write!(f, "), called by {}", self.export)?;
        if let Some(address) = self.address {
            write!(f, ", address {address:#x}")?;
        }
        if !self.object.is_empty() {
            write!(f, ": {}", self.object)?;
        }
        if let Some(field) = &self.field {
            write!(f, ", {field}")?;
        }
        match &self.allow {
            Some(allow) => write!(f, "; allowed by: {allow}"),
            None => Ok(()),
        }
    }
}
