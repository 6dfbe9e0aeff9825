//! What is told of a call that was ended.

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
    /// A `longjmp` to where the call that runs has never been, or is no longer.
    Unwind,
}

/// What went wrong in a domain, and what would have allowed it.
#[derive(Clone, Debug)]
pub struct Report {
    /// What it was.
    pub kind: FaultKind,
    /// Which module.
    pub module: String,
    /// The export whose call was ended.
    pub export: String,
    /// The function of the module where it was, and how far in.
    pub function: String,
    /// The instruction's address in the module's file, for `addr2line`; 0 if it was not in the module. Of a refused
    /// access it is where the check stands, of a refused call the call.
    pub instruction: u64,
    /// Where in the source that is, if the module's lines are known ([`Module::set_lines`](crate::Module::set_lines)).
    pub line: Option<String>,
    /// The address that was refused.
    pub address: Option<u64>,
    /// What is there, and whose it is.
    pub object: String,
    /// The line of policy that would allow it.
    pub allow: Option<String>,
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
        match &self.allow {
            Some(allow) => write!(f, "; allowed by: {allow}"),
            None => Ok(()),
        }
    }
}
