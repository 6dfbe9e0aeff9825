//! The numbers of the contract in `docs/word-form.md`, in one place: for those who build modules of checked code, for
//! the verifier, and for the runtime.
#![no_std]
#![forbid(unsafe_code)]

/// Version of the contract, as the note has it.
pub const VERSION: u32 = 1;

/// Bytes of a word, the grain of permissions (Mondrix, section 2.1).
pub const WORD: u64 = 4;

/// Bytes of a line, all of which have one number or which have none: the grain of the lines in front of the shadow.
pub const LINE: u64 = 64;

/// Addresses of user programs have so many bits.
pub const ADDRESS_BITS: u32 = 47;

/// The lowest own number of a domain. It is the highest number of a shared holding, too, plus one.
pub const OWN_FIRST: u16 = 0xc000;
/// The highest own number of a domain. With one more, the addresses of its map would not fit into 32 bits.
pub const OWN_LAST: u16 = 0xfffe;

/// Distance from one domain's map to the next, in bytes: `%r14d` is the own number times this.
pub const MAP_STRIDE: u64 = 0x1_0001;

/// Distance of the first map from the base of the shadow, in bytes.
pub const MAPS_FIRST: u64 = OWN_FIRST as u64 * MAP_STRIDE;
/// Distance of the end of the last map from the base of the shadow, in bytes.
pub const MAPS_END: u64 = OWN_LAST as u64 * MAP_STRIDE + 0x1_0000;

/// The addresses whose shadow the maps take the place of: nothing is mapped at them. Whole pages.
pub const CLOSED_FIRST: u64 = (MAPS_FIRST * 2) & !0xfff;
/// The end of [`CLOSED_FIRST`]'s range.
pub const CLOSED_END: u64 = (MAPS_END * 2 + 0xfff) & !0xfff;

/// Bytes in front of the shadow that have the numbers of lines, two bytes each. The line of the lowest addresses is the
/// last one. So the number of the line `n` is `2 * (n + 1)` bytes in front of the shadow.
pub const LINES_BYTES: u64 = 2 << (ADDRESS_BITS - LINE.trailing_zeros());

/// Bits of a map.
pub mod right {
    /// Loads.
    pub const READ: u8 = 1;
    /// Stores, and loads.
    pub const WRITE: u8 = 2;
    /// Instruction fetches: the domain's own text.
    pub const EXECUTE: u8 = 4;
    /// A call to this word goes to another domain: a switch gate.
    pub const ENTER: u8 = 8;
    /// A function of the host that may be called.
    pub const LEAVE: u8 = 16;
}

/// Greatest magnitude of a displacement from the data stack pointer, and of the sum of its steps between probes.
pub const MAX_DISPLACEMENT: i64 = 0x7000;

/// Bytes of the region of a data stack, and its alignment. The regions before and after it are never mapped.
pub const STACK_REGION: u64 = 8 << 20;
/// So many bytes at either end of a data stack's region are never mapped. A probe that succeeds may leave the data
/// stack pointer [`MAX_DISPLACEMENT`] from what is mapped: that is still in the region.
pub const STACK_MARGIN: u64 = 0x8000;
/// Where in a data stack's region the thread pointer is: at the end of what is mapped.
pub const THREAD_POINTER_SLOT: u64 = STACK_REGION - STACK_MARGIN - 8;
/// Of the checks in a straight line, so many count: the latest.
pub const MAX_CHECKS: usize = 32;
/// A check has so many points at most.
pub const MAX_POINTS: usize = 64;
/// Segments of a module end at or below this address of the file.
pub const MAX_ADDRESS: u64 = 1 << 31;

/// Bytes of a switch gate that belong together: `endbr64`, `lea`, `jmp`.
pub const GATE_BYTES: u64 = 17;
/// From a switch gate to its function's body, if the module calls bodies by the addresses of gates.
pub const GATE_TO_BODY: u64 = 32;
/// Alignment of a switch gate.
pub const GATE_ALIGNMENT: u64 = 16;
/// What a switch gate begins with.
pub const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// The slot that switch gates go through.
pub const SLOT_ENTER: u64 = 1;
/// The slot for calls of the host's functions by address, which is in `%r11`.
pub const SLOT_LEAVE: u64 = 2;
/// The slot that tells in `%rax` where the control stack is, for `setjmp`.
pub const SLOT_MARK: u64 = 3;
/// The slot that puts the control stack back to where it was once, which is in `%rax`, for `longjmp`.
pub const SLOT_UNWIND: u64 = 4;
/// The slot that tells in `%rax` which return address lies where `%rax` says, as [`SLOT_MARK`] tells places, for an unwinder.
pub const SLOT_READ: u64 = 5;
/// The first slot of an import.
pub const SLOT_FIRST_IMPORT: u64 = 16;
/// How many imports a module may have.
pub const MAX_IMPORTS: u64 = 16_384;
/// Bytes of an import's record: its name, filled with zeros.
pub const RECORD_SIZE: u64 = 64;

/// The label in front of every target of an indirect jump within a function: as in windows.
pub const LABEL: u32 = u32::from_le_bytes([0x4d, 0x75, 0x6c, 0x4e]);
/// The instruction that carries it.
pub const LABEL_NOP: [u8; 7] = [0x0f, 0x1f, 0x80, 0x4d, 0x75, 0x6c, 0x4e];

/// `ud1 %eax, %eax`: an indirect jump to what has no label.
pub const TRAP_LABEL: [u8; 3] = [0x0f, 0xb9, 0xc0];
/// `ud1 %ecx, %eax`: a refused access.
pub const TRAP_ACCESS: [u8; 3] = [0x0f, 0xb9, 0xc1];
/// `ud1 %ebx, %eax`: an exception that nobody catches. `%rdi` is its text on the data stack, a multiple of 8; `%rsi` is the
/// address behind the call that threw it.
pub const TRAP_UNCAUGHT: [u8; 3] = [0x0f, 0xb9, 0xc3];

/// Owner name of the note, with its zero.
pub const NOTE_NAME: [u8; 8] = *b"Mullion\0";
/// Type of the note of a module of checked code.
pub const NOTE_TYPE: u32 = 2;

/// Prefix of the symbol that code calls for a function by name: its body, or the stub of an import.
pub const CALL_PREFIX: &str = "__mullion_call.";

/// What is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protection {
    /// Stores.
    Write,
    /// Stores and loads.
    #[default]
    ReadWrite,
}

impl Protection {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Write, Self::ReadWrite];

    /// From the note.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Write),
            1 => Some(Self::ReadWrite),
            _ => None,
        }
    }

    /// As the note has it.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Write => 0,
            Self::ReadWrite => 1,
        }
    }

    /// As on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::ReadWrite => "read-write",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_that_succeeds_keeps_the_stack_pointer_in_its_region() {
        const { assert!(STACK_MARGIN > MAX_DISPLACEMENT.unsigned_abs() + 64) };
        const { assert!(THREAD_POINTER_SLOT.is_multiple_of(8)) };
    }

    #[test]
    fn every_byte_of_every_map_has_an_address_of_32_bits() {
        let last = u64::from(OWN_LAST) * MAP_STRIDE + u64::from(u16::MAX);
        assert!(last <= u64::from(u32::MAX));
        assert_eq!(MAPS_END, last + 1);
        assert_eq!(MAPS_FIRST, 0xc000_c000);
        const { assert!(CLOSED_FIRST >= 6 << 30 && CLOSED_END <= 8 << 30 && CLOSED_FIRST < CLOSED_END) };
    }
}
