//! Assembler text in, fault-isolated assembler text out.
//!
//! [`rewrite`] takes the AT&T assembler that a C or C++ compiler writes for x86-64. It answers with assembler of the
//! same meaning. Accesses, calls and jumps of that cannot leave the window that it runs in, or touch no word that its
//! domain may not. `docs/window.md` and `docs/word-form.md` say what these forms are. Nobody trusts this crate: the
//! verifier reads the machine code that comes of it.
//!
//! ```text
//!  text -> lexer -> parser -> Unit -> flow  (what is still wanted where)
//!                              |  \-> narrow (32 bits where they do)
//!                              |  \-> stack (how deep the stack is where)
//!                              v
//!                            emit -> pad -> text
//! ```
#![forbid(unsafe_code)]

mod cfi;
mod emit;
mod flow;
mod length;
mod lexer;
mod narrow;
mod operand;
mod pad;
mod parser;
#[cfg(test)]
mod processor_tests;
#[cfg(test)]
mod random_tests;
mod spelled;
mod stack;
mod table;
mod unit;
mod width;
mod written;

pub use mullion_abi::Protection;
pub use mullion_word_abi::Protection as WordProtection;

use std::borrow::Cow;
use thiserror::Error;

/// How confined accesses reach the window's base (`docs/window.md`, "Data accesses").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// From `%r14`, or from `%gs` where that takes no instruction more (form 1).
    #[default]
    Segment,
    /// From `%r14` alone. An image in which nothing accesses memory through `%gs` is called without writing the `%gs`
    /// base. To write it takes longer than the rest of a call between domains. Addresses with an index cost an
    /// instruction more.
    Register,
}

impl Base {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Segment, Self::Register];

    /// As on command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Segment => "segment",
            Self::Register => "register",
        }
    }
}

/// Which wall the code is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wall {
    /// A window (`docs/window.md`).
    #[default]
    Window,
    /// The word wall (`docs/word-form.md`): addresses stay what they are, and each access is checked.
    Word(WordProtection),
}

/// What to do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// For which wall. The other fields count for a window only.
    pub wall: Wall,
    /// What is confined.
    pub protection: Protection,
    /// From where.
    pub base: Base,
    /// Counts steps, and traps where none is left (`docs/window.md`, "Steps").
    pub count: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            wall: Wall::Window,
            protection: Protection::ReadWriteCall,
            base: Base::Segment,
            count: false,
        }
    }
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The assembler text.
    pub text: String,
    /// What was done to get there.
    pub stats: Stats,
}

/// How many accesses took which form, and what was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Accesses by `%gs:` with 32-bit addressing.
    pub segment: u64,
    /// Accesses by a zero-extended register added to the window's base.
    pub register: u64,
    /// Registers copied to be zero-extended.
    pub copies: u64,
    /// Accesses at a constant offset from the data stack pointer.
    pub stack: u64,
    /// Accesses left as they were: relative to the instruction pointer, or reads that are not confined.
    pub plain: u64,
    /// Accesses to thread-locals.
    pub thread_local: u64,
    /// String instructions.
    pub strings: u64,
    /// Labels for indirect branches.
    pub labels: u64,
    /// Checks of indirect branches.
    pub checks: u64,
    /// Loads added to probe the data stack.
    pub probes: u64,
    /// Checks of addresses in trap mode, and behind the word wall.
    pub trap_checks: u64,
    /// Places where the flags had to be saved.
    pub flags_saved: u64,
    /// Places where a step is counted.
    pub steps: u64,
    /// Functions, and those about whose stack there is no certainty (`stack`).
    pub functions: u64,
    /// See there.
    pub unsettled: u64,
}

impl Stats {
    /// Every count with its name.
    #[must_use]
    pub fn rows(&self) -> [(&'static str, u64); 15] {
        [
            ("accesses by segment", self.segment),
            ("accesses by zero-extended register", self.register),
            ("zero-extending copies", self.copies),
            ("accesses to the data stack", self.stack),
            ("accesses left plain", self.plain),
            ("accesses to thread-locals", self.thread_local),
            ("string instructions", self.strings),
            ("labels", self.labels),
            ("checks of indirect branches", self.checks),
            ("stack probes", self.probes),
            ("checks of addresses", self.trap_checks),
            ("flags saved", self.flags_saved),
            ("steps counted", self.steps),
            ("functions", self.functions),
            ("unsettled functions", self.unsettled),
        ]
    }
}

/// What the rewriter cannot make safe.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}: {reason}: `{instruction}`")]
pub struct Refusal {
    /// Name of the assembler file.
    pub file: String,
    /// Line in it, from 1.
    pub line: u32,
    /// The instruction or directive, as written.
    pub instruction: String,
    /// Why.
    pub reason: Reason,
}

impl Refusal {
    fn new(line: u32, instruction: &str, reason: Reason) -> Self {
        Self {
            file: String::new(),
            line,
            instruction: instruction.to_owned(),
            reason,
        }
    }
}

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Reason {
    /// No row of the instruction table permits it.
    #[error("not an instruction that an extension may use, or not with these operands")]
    UnknownInstruction,
    /// No row of the directive table permits it.
    #[error("unknown directive")]
    UnknownDirective,
    /// A directive that is known and not supported.
    #[error("{0}")]
    Directive(&'static str),
    /// An operand that is not understood.
    #[error("{0}")]
    Operand(&'static str),
    /// Bytes in an executable section that are not written as instructions.
    #[error(
        "data in an executable section cannot be checked; move it to a data section, or write the instruction by name"
    )]
    DataInCode,
    /// `%r11`, `%r14` and `%r15` belong to the rewriter.
    #[error("the registers r11, r14 and r15 are reserved")]
    ReservedRegister,
    /// 8-, 16- or 32-bit use of the stack pointer.
    #[error("only the whole 64-bit stack pointer can be moved")]
    NarrowStackPointer,
    /// A use of the stack pointer that has no translation.
    #[error("this use of the stack pointer has no translation")]
    StackPointer,
    /// Flags of an adjustment of the stack are read later.
    #[error("the flags of a stack adjustment are used behind it")]
    StackFlags,
    /// A branch to something other than a symbol or local label.
    #[error("a branch goes to a symbol or a local label only")]
    BranchTarget,
    /// A prefix that does not go with the instruction.
    #[error("this prefix does not go with this instruction")]
    Prefix,
    /// `bt` and kin with an index register reach beyond their memory operand.
    #[error("a bit string in memory cannot be confined; load the word first")]
    BitString,
    /// `%gs`, or `%fs` with more than a thread-local.
    #[error("this use of a segment register has no translation")]
    Segment,
    /// `%ah` and its like cannot stand beside the registers of the confined form.
    #[error("the high byte of a register cannot be combined with this address")]
    HighByte,
    /// With [`Base::Register`] the address takes the scratch register that a value is in.
    #[error("this needs a second scratch register without %gs; leave out the base, or rewrite it")]
    Scratch,
    /// The bytes of the label for indirect branches.
    #[error("this constant holds the bytes of the label for indirect branches; compute it instead")]
    LabelBytes,
    /// `__builtin_longjmp` leaves return addresses behind on the control stack.
    #[error(
        "a non-local goto by the compiler's own means (__builtin_longjmp) cannot unwind the control stack; use setjmp and longjmp"
    )]
    NonlocalGoto,
    /// What returns twice and is not `setjmp`, behind the word wall.
    #[error(
        "a function that returns twice and is not setjmp has no translation behind the word wall"
    )]
    ReturnsTwice,
    /// An access of unknown length, behind the word wall.
    #[error("how many bytes this accesses is not known; write the instruction with its suffix")]
    Width,
    /// An address of 32 bits, behind the word wall.
    #[error("an address of 32 bits, or one that is a constant of 64, cannot be checked")]
    Address,
    /// `.popsection` without `.pushsection`.
    #[error("no section to go back to")]
    SectionStack,
    /// A label that was defined before.
    #[error("this label is defined twice")]
    Redefined,
    /// A string, comment or prefix that does not end.
    #[error("a string, a comment or a prefix does not end")]
    Unfinished,
}

/// Rewrites one assembler file; `file` names it in refusals.
///
/// # Errors
/// Everything in the file that cannot be made safe, in the order of its lines.
pub fn rewrite(source: &str, file: &str, options: &Options) -> Result<Rewritten, Vec<Refusal>> {
    let mut refusals = Vec::new();
    let result = rewrite_or_refuse(source, options, &mut refusals);
    if refusals.is_empty() {
        return Ok(result);
    }
    refusals.sort_by_key(|r| r.line);
    refusals.dedup();
    for refusal in &mut refusals {
        file.clone_into(&mut refusal.file);
    }
    Err(refusals)
}

fn rewrite_or_refuse(source: &str, options: &Options, refusals: &mut Vec<Refusal>) -> Rewritten {
    let empty = Rewritten {
        text: String::new(),
        stats: Stats::default(),
    };
    let source = match lexer::without_block_comments(source) {
        Ok(source) => source,
        Err(lexer::Unfinished(line)) => {
            refusals.push(Refusal::new(line, "", Reason::Unfinished));
            return empty;
        }
    };
    let source = match written::expand(&source) {
        Ok(Some(expanded)) => Cow::Owned(expanded),
        Ok(None) => source,
        Err(refusal) => {
            refusals.push(refusal);
            return empty;
        }
    };
    let mut unit = parser::parse(&source, refusals);
    // Bytes first: they may name registers, too.
    let named = spelled::by_name(&source, &unit);
    let text = named.as_deref().unwrap_or(&source);
    let replaced = written::registers::replaced(text);
    let text = replaced.as_deref().unwrap_or(text);
    if named.is_some() || replaced.is_some() {
        refusals.clear();
        unit = parser::parse(text, refusals);
    }
    let tables = refusals.iter().any(|it| it.reason == Reason::DataInCode);
    let moved = tables.then(|| written::tables::moved(text)).flatten();
    if let Some(moved) = &moved {
        refusals.clear();
        unit = parser::parse(moved, refusals);
    }
    if !refusals.is_empty() {
        return empty;
    }
    let live = flow::liveness(&unit);
    if options.wall == Wall::Window {
        narrow::narrow(&mut unit, &live, options.protection);
    }
    let plans = stack::plan(&unit, refusals);
    let (text, mut stats) = emit::emit(
        &unit,
        &plans,
        &live,
        options,
        source.len() * 5 / 4,
        refusals,
    );
    (stats.functions, stats.unsettled) = stack::count(&unit, &plans);
    Rewritten {
        text: pad::pad(&text),
        stats,
    }
}
