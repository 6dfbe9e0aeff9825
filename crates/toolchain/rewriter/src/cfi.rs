//! Call frame information: what the source says of the canonical frame
//! address, and what that is in a window (`docs/window.md`, "Unwinding").
//!
//! The canonical frame address keeps its meaning, so rules of saved registers
//! stay as they are. Where it was found from `%rsp` it is found from `%r15`; the
//! return address, which the data stack does not hold, lies at `(%rsp)`.

use crate::operand::integer;
use crate::written::constant;
use std::fmt::Write;

/// How the canonical frame address is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Cfa {
    /// Outside of `.cfi_startproc`.
    #[default]
    None,
    /// A DWARF register and an offset.
    Register(u8, i64),
    /// An expression that we do not read.
    Expression,
}

/// DWARF numbers of `%rbp` and `%rsp`.
pub(crate) const DWARF_RBP: u8 = 6;
pub(crate) const DWARF_RSP: u8 = 7;

/// Follows the directives.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    current: Cfa,
    remembered: Vec<Cfa>,
    arguments: i64,
}

impl Tracker {
    pub(crate) fn current(&self) -> Cfa {
        self.current
    }

    /// Bytes of arguments on the stack, which are gone at a landing pad.
    pub(crate) fn arguments(&self) -> i64 {
        self.arguments
    }

    /// Takes note of a directive; false if it cannot be understood.
    pub(crate) fn apply(&mut self, name: &str, arguments: &str) -> bool {
        let mut parts = arguments.split(',').map(str::trim);
        let first = parts.next().unwrap_or("");
        match name {
            ".cfi_startproc" => {
                self.current = Cfa::Register(DWARF_RSP, 8);
                self.arguments = 0;
            }
            ".cfi_endproc" => *self = Self::default(),
            ".cfi_def_cfa" => match (register(first), parts.next().and_then(integer)) {
                (Some(register), Some(offset)) => self.current = Cfa::Register(register, offset),
                _ => return false,
            },
            ".cfi_def_cfa_register" => match (register(first), self.current) {
                (Some(register), Cfa::Register(_, offset)) => {
                    self.current = Cfa::Register(register, offset)
                }
                _ => return false,
            },
            ".cfi_def_cfa_offset" | ".cfi_adjust_cfa_offset" => {
                match (constant(first), self.current) {
                    (Some(value), Cfa::Register(register, offset)) => {
                        let base = if name == ".cfi_adjust_cfa_offset" {
                            offset
                        } else {
                            0
                        };
                        self.current = Cfa::Register(register, base + value);
                    }
                    _ => return false,
                }
            }
            ".cfi_remember_state" => self.remembered.push(self.current),
            ".cfi_restore_state" => match self.remembered.pop() {
                Some(state) => self.current = state,
                None => return false,
            },
            ".cfi_escape" => {
                // DW_CFA_def_cfa_expression
                if matches!(integer(first), Some(0x0f)) {
                    self.current = Cfa::Expression;
                }
                // DW_CFA_GNU_args_size, a ULEB128 number
                if matches!(integer(first), Some(0x2e)) {
                    let bytes = parts.filter_map(integer).take(8).enumerate();
                    self.arguments =
                        bytes.fold(0, |sum, (at, byte)| sum | (byte & 0x7f) << (7 * at));
                }
            }
            ".cfi_rel_offset" => return matches!(self.current, Cfa::Register(..)),
            ".cfi_offset"
            | ".cfi_restore"
            | ".cfi_same_value"
            | ".cfi_undefined"
            | ".cfi_sections"
            | ".cfi_personality"
            | ".cfi_personality_id"
            | ".cfi_lsda"
            | ".cfi_inline_lsda"
            | ".cfi_register"
            | ".cfi_val_offset" => {}
            _ => return false,
        }
        true
    }
}

fn register(text: &str) -> Option<u8> {
    let name = text.trim_start_matches('%');
    let numbers = [
        "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15",
    ];
    let named = numbers
        .iter()
        .position(|&n| n == name)
        .and_then(|n| u8::try_from(n).ok());
    named.or_else(|| name.parse().ok())
}

/// Writes the directives of a file anew.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    source: Tracker,
    /// What the output says, once it differs from the source: register `%r15` only.
    written: Cfa,
    remembered: Vec<Cfa>,
    /// Between `.cfi_startproc` and `.cfi_endproc`.
    open: bool,
}

/// DWARF number of `%r15`.
const DWARF_R15: u8 = 15;

impl Writer {
    /// The directive of the source, before an instruction at which `%r15` is
    /// `delta` above the virtual stack pointer.
    pub(crate) fn directive(&mut self, out: &mut String, name: &str, arguments: &str, delta: i64) {
        let before = self.source.current();
        self.source.apply(name, arguments);
        match name {
            ".cfi_startproc" => {
                put(out, name, arguments);
                // DW_CFA_expression of the return address: DW_OP_breg7 0; DW_CFA_val_expression
                // of %rsp: DW_OP_breg7 8; DW_CFA_val_offset of %r15: 0.
                out.push_str(
                    "\t.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0\n",
                );
                self.open = true;
                self.written = Cfa::None;
                self.remembered.clear();
                self.synchronise(out, delta);
            }
            ".cfi_def_cfa"
            | ".cfi_def_cfa_register"
            | ".cfi_def_cfa_offset"
            | ".cfi_adjust_cfa_offset" => {
                self.synchronise(out, delta);
            }
            ".cfi_remember_state" => {
                put(out, name, arguments);
                self.remembered.push(self.written);
            }
            ".cfi_restore_state" => {
                put(out, name, arguments);
                self.written = self.remembered.pop().unwrap_or_default();
                self.synchronise(out, delta);
            }
            ".cfi_endproc" => {
                put(out, name, arguments);
                self.open = false;
            }
            ".cfi_rel_offset" => {
                if let (Cfa::Register(_, offset), Some((register, value))) =
                    (before, arguments.split_once(','))
                {
                    let value = integer(value).unwrap_or(0) - offset;
                    put(out, ".cfi_offset", &format!("{register}, {value}"));
                }
            }
            _ => {
                put(out, name, arguments);
                if self.source.current() == Cfa::Expression {
                    self.written = Cfa::Expression;
                }
            }
        }
    }

    /// Whether directives can be written: between `.cfi_startproc` and `.cfi_endproc`.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Where the output says that the canonical frame address is.
    pub(crate) fn written(&self) -> Cfa {
        self.written
    }

    /// Says where the canonical frame address is in code that follows no other.
    pub(crate) fn at(&mut self, out: &mut String, cfa: Cfa) {
        if cfa != self.written
            && let Cfa::Register(register, offset) = cfa
        {
            put(out, ".cfi_def_cfa", &format!("{register}, {offset}"));
            self.written = cfa;
        }
    }

    /// `%r15` has been moved by `step`.
    pub(crate) fn stepped(&mut self, out: &mut String, step: i64) {
        // Behind `.cfi_endproc`, hand-written code may go on without call frame information.
        if self.open
            && let Cfa::Register(DWARF_R15, offset) = self.written
        {
            self.written = Cfa::Register(DWARF_R15, offset - step);
            put(out, ".cfi_def_cfa_offset", &(offset - step).to_string());
        }
    }

    /// Says what the source says, if the output does not say it yet.
    fn synchronise(&mut self, out: &mut String, delta: i64) {
        let Cfa::Register(register, offset) = self.source.current() else {
            return;
        };
        let wanted = if register == DWARF_RSP {
            Cfa::Register(DWARF_R15, offset - delta)
        } else {
            Cfa::Register(register, offset)
        };
        self.at(out, wanted);
    }
}

fn put(out: &mut String, name: &str, arguments: &str) {
    // Writing to a string cannot fail.
    let gap = if arguments.is_empty() { "" } else { " " };
    let _ = writeln!(out, "\t{name}{gap}{arguments}");
}
