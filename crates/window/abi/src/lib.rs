//! The numbers of the window's binary interface, shared by those who build,
//! check and run images. `docs/window.md` gives the meaning and the argument;
//! this crate holds constants only, so that sharing it makes nobody trust anybody.
//!
//! ```text
//! offset in the window
//! 0x0000_0000  guard, never mapped              (64 KiB)
//! 0x0001_0000  gate area, read + execute        (64 KiB, 2048 slots of 32 bytes)
//! 0x0002_0000  image: code, constants, data     (as linked)
//!              heap, growing upwards
//! 0xd000_0000  data stacks, 8 MiB each, first at 0xff00_0000, then downwards
//! 0xff80_0000  never mapped
//! 0xffff_0000  guard, never mapped              (64 KiB)
//! ```
#![no_std]
#![forbid(unsafe_code)]

/// Version of the interface that this tree builds and accepts.
pub const ABI_VERSION: u32 = 1;

/// Length and alignment of a window, in bytes.
pub const WINDOW_SIZE: u64 = 1 << 32;
/// Bytes at each end of a window that are never mapped.
pub const GUARD_SIZE: u64 = 0x1_0000;
/// Greatest magnitude of a displacement on an access whose base is a whole window pointer (`%r14` +
/// 32 bits, `%r15`, or a pointer made from them). It is also that of the sum of constant steps of
/// `%r15` between two probes, in bytes. Twice this and the widest access (512) stay below
/// [`GUARD_SIZE`].
pub const MAX_DISPLACEMENT: i64 = 0x7000;

/// Offset of the gate area.
pub const GATE_BASE: u64 = 0x1_0000;
/// Length of the gate area, in bytes.
pub const GATE_AREA_SIZE: u64 = 0x1_0000;
/// Length of a gate slot, in bytes.
pub const GATE_SLOT_SIZE: u64 = 32;
/// Number of gate slots.
pub const GATE_SLOTS: u64 = GATE_AREA_SIZE / GATE_SLOT_SIZE;
/// Slot of the built-in `__mullion_setjmp`.
pub const GATE_SETJMP: u64 = 1;
/// Slot of the built-in `__mullion_longjmp`.
pub const GATE_LONGJMP: u64 = 2;
/// Slot of the built-in `__mullion_control_read` (return addresses, for unwinding).
pub const GATE_CONTROL_READ: u64 = 3;
/// Slot of the built-in `__mullion_control_unwind`.
pub const GATE_CONTROL_UNWIND: u64 = 4;
/// One past the last built-in slot that exists.
pub const GATE_BUILTIN_END: u64 = 5;
/// Slot of an image's first import; import `i` has slot `GATE_FIRST_IMPORT + i`.
pub const GATE_FIRST_IMPORT: u64 = 16;
/// Greatest number of imports of an image.
pub const MAX_IMPORTS: u64 = GATE_SLOTS - GATE_FIRST_IMPORT;
/// Greatest number of exports of an image: what is kept of each takes several times its record.
pub const MAX_EXPORTS: u64 = 16_384;

/// Lowest offset at which an image may have a segment.
pub const IMAGE_BASE: u64 = 0x2_0000;
/// Lowest offset that image and heap may not reach.
pub const HEAP_END: u64 = 0xd000_0000;
/// Length and alignment of a data stack's region, in bytes.
pub const STACK_REGION: u64 = 8 << 20;
/// Offset of the first data stack's region; further ones lie below it.
pub const STACK_FIRST: u64 = 0xff00_0000;
/// Bytes at the low end of a data stack's region that are never mapped.
pub const STACK_GUARD: u64 = 0x1_0000;
/// Offset, within a data stack's region, of the 8-byte slot with the thread pointer.
pub const THREAD_POINTER_SLOT: u64 = STACK_REGION - 8;

/// Length and alignment of a control stack's region, in bytes.
pub const CONTROL_REGION: u64 = 4 << 20;

/// The label: the last four bytes before every target of an indirect call or
/// jump, found nowhere else in code. Carried by [`LABEL_NOP`]. It does not
/// overlap with itself.
pub const LABEL: u32 = u32::from_le_bytes([0x4d, 0x75, 0x6c, 0x4e]);
/// `nopl LABEL(%rax)`: the only instruction that may contain [`LABEL`].
pub const LABEL_NOP: [u8; 7] = [0x0f, 0x1f, 0x80, 0x4d, 0x75, 0x6c, 0x4e];

/// `ud1 %eax, %eax`: an indirect target had no label.
pub const TRAP_LABEL: [u8; 3] = [0x0f, 0xb9, 0xc0];
/// `ud1 %ecx, %eax`: in trap mode, an access outside the window.
pub const TRAP_ACCESS: [u8; 3] = [0x0f, 0xb9, 0xc1];
/// `ud1 %edx, %eax`: in an image that counts steps, none was left.
pub const TRAP_STEPS: [u8; 3] = [0x0f, 0xb9, 0xc2];

/// Name field of the image's note (`PT_NOTE`), with its terminating zero.
pub const NOTE_NAME: [u8; 8] = *b"Mullion\0";
/// Type field of the image's note.
pub const NOTE_TYPE: u32 = 1;
/// Length of an import or export record, in bytes.
pub const RECORD_SIZE: u64 = 64;

/// How much the rewriter confines; the image's note carries the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Protection {
    /// Writes and control flow are confined; reads are not.
    WriteCall = 0,
    /// Reads, writes and control flow are confined.
    ReadWriteCall = 1,
    /// As [`Protection::ReadWriteCall`], and an access outside the window
    /// faults where it would otherwise wrap. For debugging.
    Trap = 2,
}

impl Protection {
    /// The protection with this number, if there is one.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::WriteCall),
            1 => Some(Self::ReadWriteCall),
            2 => Some(Self::Trap),
            _ => None,
        }
    }

    /// The name used on command lines and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WriteCall => "write-call",
            Self::ReadWriteCall => "read-write-call",
            Self::Trap => "trap",
        }
    }
}

/// Where the word wall begins to need empty addresses (`CLOSED_FIRST` of its own interface). A process has one wall or the other,
/// because both need the `%gs` base: the first one puts a page without access there.
pub const OTHER_WALL: u64 = 0x1_8001_8000;

/// What may be done with a page. There is no way to say "write and execute".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Nothing.
    None,
    /// Read.
    Read,
    /// Read and write.
    ReadWrite,
    /// Read and execute.
    ReadExecute,
}
