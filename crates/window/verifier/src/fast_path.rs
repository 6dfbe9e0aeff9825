//! The fast path: the commonest instructions.
//!
//! Nearly all instructions have one or two bytes of opcode, and at most a prefix or two in front of
//! it. They mean no more than their operands say, or are direct branches. For these a look into
//! [`FACTS`], which are made of the table's rows at compile time, answers what there is to ask. Then
//! few steps are left. This way says yes, or nothing. It leaves the rest to the slow path
//! (`code.rs`), which finds the pass as it was. The rest is whatever is not surely of this kind,
//! whatever would break a rule, and memory operands that assemblers write otherwise.
//!
//! So there is nothing here that the slow path does not say, and `fast_path_tests.rs` holds the one against the
//! other. They go over all opcodes, prefixes and ModRM bytes, in many states of a line. Either nothing has changed,
//! or both do the same, to the last mark.
//!
//! Two things make it fast. What differs between instructions without a pattern (REX, SIB, which
//! register) is computed, since a branch on it would be mispredicted. What is rare is branched on.
//! And the way from an instruction's first byte to the next one's, a chain that no processor
//! shortens, is two loads and some arithmetic.

use crate::code::Pass;
use crate::line::{self, Value};
use mullion_abi as abi;
use mullion_decoder::decode::{self, WINDOW};
use mullion_decoder::row::{self, Kind, Row};
use std::hint::{cold_path, select_unpredictable};

type Window = [u8; WINDOW];

const NOWHERE: u32 = line::NOWHERE as u32;

/// Bytes of the immediate, in the lowest bits of the facts.
const IMMEDIATE: u32 = 7;
/// This way goes through.
const KNOWN: u32 = 1 << 3;
const MODRM: u32 = 1 << 4;
/// The r/m operand, in memory, is accessed ...
const ACCESS: u32 = 1 << 5;
/// ... and written.
const WRITE: u32 = 1 << 6;
/// The r/m operand, or the register in the opcode, is a general register and written.
const RM_TARGET: u32 = 1 << 7;
/// The reg operand is a general register and written.
const REG_TARGET: u32 = 1 << 8;
/// The write zero-extends 32 bits, if the operand has as many.
const EXTENDS: u32 = 1 << 9;
/// ... which it always has.
const FIXED32: u32 = 1 << 10;
const NO_REX: u32 = 1 << 11;
/// A 64-bit operand has a longer immediate.
const NARROW: u32 = 1 << 12;
/// A direct branch.
const BRANCH: u32 = 1 << 13;
/// The straight line ends behind it.
const END: u32 = 1 << 14;
/// Perhaps a label.
const LABEL: u32 = 1 << 15;
/// From here on: bits of [`Value`] that the reg operand must not have.
const REG_REFUSES: u32 = 16;
/// ... that a register in r/m must not have.
const RM_REFUSES: u32 = 24;
/// Does not write if the immediate is 0 modulo 32. (This bit and the next stand where
/// [`Value`] has none.)
const SHIFT: u32 = 1 << 22;
/// Demands a 64-bit operand.
const WIDE: u32 = 1 << 23;

impl Pass<'_> {
    /// Passes the instruction at offset `at`, and returns its length; or changes nothing.
    /// `window` starts with it, and all of it is code.
    #[inline(always)]
    pub(crate) fn fast_path(&mut self, window: &Window, at: u32) -> Option<u32> {
        let mut word = tail(window, 0);
        let first = word as u8;
        let mut prefixes = Prefixes::default();
        // 65, 66, F2, F3.
        if (first & 0xfe == 0xf2) | (first.wrapping_sub(0x65) < 2) {
            cold_path();
            prefixes = Prefixes::read(window)?;
            word = self::tail(window, prefixes.length);
        }
        let Prefixes {
            gs,
            plane,
            mut length,
        } = prefixes;
        let has_rex = word & 0xf0 == 0x40;
        let rex = select_unpredictable(has_rex, word as u32 & 0xff, 0);
        length += u32::from(has_rex) + 1;
        word >>= 8 * u32::from(has_rex);
        let mut opcode = word as u32 & 0xff;
        if opcode == 0x0f {
            cold_path();
            word >>= 8;
            opcode = word as u32 & 0xff | (0x100 + plane);
            length += 1;
        }
        let modrm = (word >> 8) as u32 & 0xff;
        let facts = *FACTS.get((opcode << 4 | form(modrm)) as usize)?;
        let tail = tail(window, length);
        length += u32::from(*IMMEDIATES.get(opcode as usize)?);
        let fast = Fast {
            facts,
            gs,
            rex,
            opcode,
            modrm,
            at,
        };
        if facts & MODRM == 0 {
            fast.implicit(self, window, length)?;
        } else {
            length += u32::from(*LENGTHS.get(modrm as usize)?);
            // A base of 5 in SIB is none in mode 0, but 4 bytes of displacement.
            let baseless = word >> 8 & 0x7c7 == 0x504;
            length += 4 * u32::from(baseless);
            if fast.is(SHIFT | WIDE) {
                cold_path();
                fast.exceptional(window, length)?;
            }
            if modrm < 0xc0 {
                fast.memory(self, window, tail, length)?;
            } else {
                fast.registers(self)?;
            }
        }
        self.stats.instructions += 1;
        Some(length)
    }
}

/// What comes in front of REX, in the order of assemblers: `65 67`; one of 66, F2, F3,
/// if that belongs to an opcode behind 0F.
#[derive(Clone, Copy, Default)]
struct Prefixes {
    gs: bool,
    /// What to add to an opcode behind 0F.
    plane: u32,
    length: u32,
}

impl Prefixes {
    #[inline(always)]
    fn read(window: &Window) -> Option<Self> {
        let gs = window.starts_with(&[0x65, 0x67]);
        let length = if gs { 2 } else { 0 };
        let word = tail(window, length);
        let plane = match word as u8 {
            0x66 => 0x100,
            0xf3 => 0x200,
            0xf2 => 0x300,
            _ if gs => 0,
            _ => return None,
        };
        if plane == 0 {
            return Some(Self { gs, plane, length });
        }
        let (rex, behind) = ((word >> 8) as u8, (word >> 16) as u8);
        // With 66 and REX.W, the operand's size is the row's matter.
        let proper = rex == 0x0f || behind == 0x0f && rex & 0xf0 == 0x40;
        let both = plane == 0x100 && rex & 0xf8 == 0x48;
        (proper && !both).then_some(Self {
            gs,
            plane,
            length: length + 1,
        })
    }
}

/// An instruction of this way, as far as it was taken apart.
#[derive(Clone, Copy)]
struct Fast {
    facts: u32,
    gs: bool,
    /// The prefix, or 0.
    rex: u32,
    /// With 0x100 if behind the byte 0F.
    opcode: u32,
    modrm: u32,
    at: u32,
}

impl Fast {
    #[inline(always)]
    const fn is(self, facts: u32) -> bool {
        self.facts & facts != 0
    }

    #[inline(always)]
    const fn reg(self) -> u32 {
        self.modrm >> 3 & 7 | (self.rex & 4) << 1
    }

    /// What is known about the reg operand, as far as it matters.
    #[inline(always)]
    fn reg_refused(self, pass: &Pass) -> bool {
        pass.line
            .value(self.reg() as u8)
            .meets(self.facts >> REG_REFUSES & 0xff)
    }

    /// With an operand in memory.
    #[inline(always)]
    fn memory(self, pass: &mut Pass, window: &Window, tail: u64, length: u32) -> Option<()> {
        if self.reg_refused(pass) {
            return self.step(pass, tail);
        }
        if self.is(ACCESS) {
            self.access(pass, tail, length)?;
        } else if self.gs | (self.base(tail) == RSP) | (self.base(tail) == R14) {
            return None;
        } else if self.is(LABEL) && window.starts_with(&abi::LABEL_NOP) {
            pass.end().ok()?;
            pass.stats.labels += 1;
        }
        let to = select_unpredictable(self.is(REG_TARGET), self.reg(), NOWHERE);
        self.note(pass, to);
        Some(())
    }

    /// `leaq N(%r15), %r15`.
    #[inline(always)]
    fn step(self, pass: &mut Pass, tail: u64) -> Option<()> {
        // Mode 1 or 2, no SIB, reg and r/m are 7; REX with W, R and B.
        let step = match self.modrm {
            0x7f => i64::from(extend(tail >> 8, 1)),
            0xbf => i64::from(extend(tail >> 8, 4)),
            _ => return None,
        };
        if self.gs | (self.opcode != 0x8d) | (self.rex & 0xd != 0xd) {
            return None;
        }
        pass.step(step, self.at).ok().map(|_| ())
    }

    /// A shift by zero, and what is another instruction with a 32-bit operand.
    #[inline(always)]
    fn exceptional(self, window: &Window, length: u32) -> Option<()> {
        let by_zero = self.is(SHIFT) && tail(window, length - 1) & 31 == 0;
        let narrow = self.is(WIDE) && self.rex & 8 == 0;
        (!by_zero && !narrow).then_some(())
    }

    /// The base register, or what has its number.
    #[inline(always)]
    fn base(self, tail: u64) -> u32 {
        let has_sib = self.modrm & 7 == 4;
        let low = select_unpredictable(has_sib, (tail >> 8) as u32, self.modrm);
        low & 7 | (self.rex & 1) << 3
    }

    /// Whether the operand is confined as far as it must be, in the forms of the page as
    /// assemblers encode them.
    #[inline(always)]
    fn access(self, pass: &mut Pass, tail: u64, length: u32) -> Option<()> {
        if !pass.confine_reads && !self.is(WRITE) {
            let base = self.base(tail);
            if self.gs | (base == RSP) | (base == R15) {
                return None;
            }
            pass.stats.reads_unconfined += 1;
            return Some(());
        }
        if self.gs {
            if self.base(tail) == RSP {
                return None;
            }
            pass.stats.gs += 1;
            return Some(());
        }
        if self.modrm & 0xc7 == 5 {
            let target = i64::from(self.at) + i64::from(length) + i64::from((tail >> 8) as i32);
            let inside = abi::GUARD_SIZE as i64..(abi::WINDOW_SIZE - abi::GUARD_SIZE) as i64;
            if !inside.contains(&target) {
                return None;
            }
            pass.stats.rip += 1;
            return Some(());
        }
        // (%r14,%rN) with a zero-extended register, or (%rN) with an address in the window.
        let has_sib = self.modrm & 7 == 4;
        let sib = (tail >> 8) as u32;
        let index = sib >> 3 & 7 | (self.rex & 2) << 2;
        let base = self.modrm & 7 | (self.rex & 1) << 3;
        let register = select_unpredictable(has_sib, index, base);
        let needed = select_unpredictable(has_sib, Value::ZERO.bits(), Value::WINDOW.bits());
        let behind = select_unpredictable(has_sib, tail >> 16, tail >> 8) as i32;
        let displacement = select_unpredictable(self.modrm >= 0x80, behind, 0);
        let near = displacement.unsigned_abs() <= abi::MAX_DISPLACEMENT as u32;
        let based = !has_sib | ((sib & 0xc7 == 6) & (self.rex & 1 != 0));
        if !(near & based & pass.line.value(register as u8).meets(needed)) {
            return None;
        }
        if register != R15 || has_sib {
            let from = pass.line.rely(register as u8, self.at);
            pass.close(from, self.at);
        } else if pass.line.stepped.is_some() {
            pass.probe(self.at);
        }
        let count = match has_sib {
            true => &mut pass.stats.offset,
            false if register == R15 => &mut pass.stats.stack,
            false => &mut pass.stats.pointer,
        };
        *count += 1;
        Some(())
    }

    /// With operands in registers only.
    #[inline(always)]
    fn registers(self, pass: &mut Pass) -> Option<()> {
        let (reg, rm) = (self.reg(), self.modrm & 7 | (self.rex & 1) << 3);
        let refused = pass.line.value(rm as u8).meets(self.facts >> RM_REFUSES);
        if self.gs | refused | self.reg_refused(pass) {
            return None;
        }
        let to = select_unpredictable(self.is(RM_TARGET), rm, NOWHERE);
        let to = select_unpredictable(self.is(REG_TARGET), reg, to);
        self.note(pass, to);
        Some(())
    }

    /// Without a ModRM byte.
    #[inline(always)]
    fn implicit(self, pass: &mut Pass, window: &Window, length: u32) -> Option<()> {
        let rex = (self.is(NO_REX) & (self.rex != 0)) | (self.is(NARROW) & (self.rex & 8 != 0));
        if self.gs | rex | !self.is(KNOWN) {
            return None;
        }
        let size = self.facts & IMMEDIATE;
        let immediate = extend(self::tail(window, length - size), size);
        if self.is(BRANCH) {
            if pass.line.check.is_some_and(|check| check.end == self.at) {
                return None;
            }
            pass.settle().ok()?;
            let target = i64::from(self.at) + i64::from(length) + i64::from(immediate);
            pass.target(target).ok()?;
        } else if self.is(RM_TARGET) {
            let rm = self.opcode & 7 | (self.rex & 1) << 3;
            let refused = pass.line.value(rm as u8).meets(self.facts >> RM_REFUSES);
            if refused | (self.is(NARROW) & (immediate as u32 == abi::LABEL.wrapping_neg())) {
                return None;
            }
            self.note(pass, rm);
        }
        if self.is(END) {
            pass.end().ok()?;
        }
        Some(())
    }

    /// Notes what is written to a general register.
    #[inline(always)]
    fn note(self, pass: &mut Pass, to: u32) {
        let narrow = (self.rex & 8 == 0) | self.is(FIXED32);
        let value = Value::zero_if(narrow & self.is(EXTENDS));
        pass.line.note(to as u8, value, self.at);
    }
}

const RSP: u32 = decode::RSP as u32;
const R14: u32 = decode::R14 as u32;
const R15: u32 = decode::R15 as u32;

/// The 8 bytes at `at`, which is at most 11.
#[inline(always)]
fn tail(window: &Window, at: u32) -> u64 {
    let bytes = window
        .get((at & 15).min(12) as usize..)
        .and_then(|tail| tail.first_chunk());
    u64::from_le_bytes(bytes.copied().unwrap_or([0; 8]))
}

/// The first `size` bytes, 4 at most, as a signed number; 0 if that is none.
#[inline(always)]
const fn extend(word: u64, size: u32) -> i32 {
    // In two steps, since a shift by 64 is none.
    let above = 63 - 8 * (size & 7);
    ((word << above << 1) as i64 >> above >> 1) as i32
}

/// What in a ModRM byte decides between rows: the reg field, and whether r/m is memory.
#[inline(always)]
const fn form(modrm: u32) -> u32 {
    modrm >> 3 & 7 | ((modrm >= 0xc0) as u32) << 3
}

/// Bytes of ModRM, SIB and displacement, by ModRM.
#[allow(clippy::indexing_slicing, reason = "runs at compile time only")]
static LENGTHS: [u8; 256] = {
    let mut lengths = [1; 256];
    let mut modrm = 0;
    while modrm < 0xc0 {
        let (mode, rm) = (modrm >> 6, modrm & 7);
        let displacement = match (mode, rm) {
            (0, 5) | (2, _) => 4,
            (mode, _) => mode as u8,
        };
        lengths[modrm] = 1 + (rm == 4) as u8 + displacement;
        modrm += 1;
    }
    lengths
};

const OPCODES: usize = 5 * 256;

/// For each opcode of one byte, then each behind 0F without prefix, with 66, F3, F2, and
/// each [`form`] of these: the facts.
static FACTS: [u32; OPCODES * 16] = TABLES.0;
/// For each opcode: bytes of the immediate. It stands in the facts, too, but these take longer.
static IMMEDIATES: [u8; OPCODES] = TABLES.1;

#[allow(clippy::indexing_slicing, reason = "runs at compile time only")]
const TABLES: ([u32; OPCODES * 16], [u8; OPCODES]) = {
    let mut tables = ([0; OPCODES * 16], [0; OPCODES]);
    let mut place = OPCODES * 16;
    while place > 0 {
        place -= 1;
        let (plane, opcode, form) = (place >> 12, (place >> 4) as u8, place as u32 & 15);
        if let Some(row) = row::fixed(plane, opcode, form & 7, form < 8) {
            tables.0[place] = digest(row, plane, form < 8);
        }
        if tables.0[place] != 0 {
            tables.1[place >> 4] = (tables.0[place] & IMMEDIATE) as u8;
        }
    }
    // Where forms differ, those that are not like the first one take the slow path.
    while place < OPCODES * 16 {
        if tables.0[place] & IMMEDIATE != tables.1[place >> 4] as u32 {
            tables.0[place] = 0;
        }
        place += 1;
    }
    tables
};

/// The facts of a row, or 0.
const fn digest(row: &Row, plane: usize, memory: bool) -> u32 {
    const fn when(condition: bool, facts: u32) -> u32 {
        if condition { facts } else { 0 }
    }
    let in_memory = row.has(row::MODRM) && memory;
    let rm_write = row.has(row::RM_WRITE) && row.has(row::RM_GPR) && !in_memory;
    let reg_write = row.has(row::REG_WRITE);
    let bytes = rm_write && row.has(row::RM_BYTE) || reg_write && row.has(row::REG_BYTE);
    let other = row.clobbers != 0
        // 16-bit operands.
        || plane == 2 && row.has(row::OP16) && !matches!(row.kind, Kind::Nop)
        || row.has(row::V_USED | row::LAZY | row::X87 | row::MXCSR)
        || row.has(row::ACCUMULATOR) && rm_write;
    if bytes || other || rm_write && reg_write {
        return 0;
    }
    let (kind, reg_refuses, rm_refuses) = match row.kind {
        Kind::Plain => (0, 0, 0),
        Kind::Move => (0, LABELLED, LABELLED),
        Kind::AddFrom if in_memory => (0, COMPLEMENT, 0),
        Kind::AddTo | Kind::AddFrom => (0, RESERVED, RESERVED),
        Kind::Arithmetic => (0, 0, RESERVED),
        Kind::Lea => (0, 0, 0),
        Kind::Shift => (SHIFT, 0, 0),
        Kind::MoveImmediate => (NARROW, 0, 0),
        Kind::Nop => (LABEL, 0, 0),
        Kind::Conditional => (BRANCH, 0, 0),
        Kind::Jump | Kind::Call => (BRANCH | END, 0, 0),
        Kind::Return | Kind::Breakpoint => (END, 0, 0),
        _ => return 0,
    };
    let reg_refuses =
        reg_refuses | when(row.has(row::REG_GPR), CONTROL) | when(reg_write, RESERVED);
    let rm_refuses = rm_refuses | when(row.has(row::RM_GPR), CONTROL) | when(rm_write, RESERVED);
    let loose = reg_write && row.has(row::REG_LOOSE) || rm_write && row.has(row::RM_LOOSE);
    kind | KNOWN
        | reg_refuses << REG_REFUSES
        | rm_refuses << RM_REFUSES
        | row.immediate.bytes(4) as u32
        | when(row.has(row::MODRM), MODRM)
        | when(in_memory && !row.has(row::NO_ACCESS), ACCESS)
        | when(row.has(row::RM_WRITE), WRITE)
        | when(rm_write, RM_TARGET)
        | when(reg_write, REG_TARGET)
        | when(!loose, EXTENDS)
        | when(row.has(row::FIXED32), FIXED32)
        | when(row.rex_denied != 0, NO_REX)
        | when(row.rex_demanded == 8, WIDE)
}

const LABELLED: u32 = Value::LABELLED.bits();
/// Without the bit that others have, too.
const COMPLEMENT: u32 = Value::COMPLEMENT.bits() & !Value::ZERO.bits();
const RESERVED: u32 = Value::RESERVED.bits();
const CONTROL: u32 = Value::CONTROL.bits();
