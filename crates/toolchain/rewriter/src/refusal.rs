//! Why something is refused.

use thiserror::Error;

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
    pub(crate) fn new(line: u32, instruction: &str, reason: Reason) -> Self {
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
    #[error(
        "not an instruction that an extension may use, or not with these operands; write it in C, or with others"
    )]
    UnknownInstruction,
    /// The same of an instruction for which there is another way, which is said.
    #[error("not an instruction that an extension may use: {0}")]
    Instead(&'static str),
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
    #[error(
        "the registers r11, r14 and r15 are reserved; name another, or let the compiler choose one (\"=r\")"
    )]
    ReservedRegister,
    /// 8-, 16- or 32-bit use of the stack pointer.
    #[error("only the whole 64-bit stack pointer can be moved; use rsp")]
    NarrowStackPointer,
    /// A use of the stack pointer that has no translation.
    #[error(
        "this use of the stack pointer has no translation; copy it to another register, and use that"
    )]
    StackPointer,
    /// Flags of an adjustment of the stack are read later.
    #[error("the flags of a stack adjustment are used behind it; adjust the stack with lea")]
    StackFlags,
    /// A branch to something other than a symbol or local label.
    #[error("a branch goes to a symbol or a local label only")]
    BranchTarget,
    /// A prefix that does not go with the instruction.
    #[error("this prefix does not go with this instruction; leave it out")]
    Prefix,
    /// `bt` and kin with an index register reach beyond their memory operand.
    #[error("a bit string in memory cannot be confined; load the word first")]
    BitString,
    /// `%gs`, or `%fs` with more than a thread-local.
    #[error("this use of a segment register has no translation; use a thread-local variable")]
    Segment,
    /// `%ah` and its like cannot stand beside the registers of the confined form.
    #[error(
        "the high byte of a register cannot be combined with this address; move it to a register of its own"
    )]
    HighByte,
    /// With [`Base::Register`](crate::Base::Register) the address takes the scratch register that a value is in.
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

impl Reason {
    /// Why an instruction has no row, and what its author may do.
    pub(crate) fn of_unknown(mnemonic: &str) -> Self {
        Self::Instead(match mnemonic {
            "syscall" | "sysenter" | "int" => {
                "system calls are the host's; call the C library, which asks for them"
            }
            "rdtsc" | "rdtscp" | "rdpmc" => {
                "time is a grant; call clock_gettime, and have clocks granted"
            }
            "rdrand" | "rdseed" => "random numbers are the host's; call getrandom or getentropy",
            "pushf" | "pushfq" | "popf" | "popfq" => {
                "flags are not kept as a whole; keep one with setc and its kin"
            }
            "rdfsbase" | "rdgsbase" | "wrfsbase" | "wrgsbase" | "swapgs" => {
                "segments are the wall's; use a thread-local variable"
            }
            "xbegin" | "xend" | "xabort" | "xtest" => {
                "transactions are not allowed in a domain; take the path without them"
            }
            "in" | "inb" | "inw" | "inl" | "out" | "outb" | "outw" | "outl" | "hlt" | "cli"
            | "sti" | "rdmsr" | "wrmsr" | "invd" | "wbinvd" | "lgdt" | "lidt" => {
                "devices and the processor's modes are the kernel's; no program may use it natively either"
            }
            "std" => "strings run upwards only; write the loop",
            "ljmp" | "lcall" | "lret" | "iret" | "iretq" | "retf" => {
                "the segment of code stays as it is; use jmp, call and ret"
            }
            "xlatb" | "xlat" => "write a load with an index",
            "loop" | "loope" | "loopne" | "loopz" | "loopnz" => "write dec and jnz",
            "enter" => "write push, mov and sub",
            _ => return Self::UnknownInstruction,
        })
    }
}
