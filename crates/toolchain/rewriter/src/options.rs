//! What the rewriter is asked to do, and what it counts.

use mullion_abi::Protection;
use mullion_word_abi::Protection as WordProtection;

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
