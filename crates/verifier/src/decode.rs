//! One instruction: bytes in, the table's row and the operands out.
//!
//! ```text
//! [66 67 65 F0 F2 F3, each at most once] [REX] opcode [ModRM [SIB] [disp]] [imm]
//! [67 65, each at most once]             VEX   opcode [ModRM [SIB] [disp]] [imm]
//! ```
//! Nothing else is decoded: other segment overrides, a prefix that the row has
//! no use for, and a REX that is not the last prefix are all rejected, so that
//! processors have nothing to disagree about.

use crate::row::{self, INDEX, Kind, ROWS, Row, X87_REGISTER_FORMS, slot};
use crate::rule::Rule;

/// Bytes that the decoder looks at; the longest instruction has 15.
pub(crate) const WINDOW: usize = 16;

/// No register, where a memory operand might have one.
pub(crate) const NONE: u8 = 16;
/// The instruction pointer as a base.
pub(crate) const RIP: u8 = 17;
/// `%rsp`.
pub(crate) const RSP: u8 = 4;
/// `%r14`, which holds the window's base.
pub(crate) const R14: u8 = 14;
/// `%r15`, the data stack pointer.
pub(crate) const R15: u8 = 15;

const P66: u8 = 1;
const P67: u8 = 2;
const P65: u8 = 4;
const LOCK: u8 = 8;
const F2: u8 = 16;
const F3: u8 = 32;
const REX_W: u8 = 8;
const REX_R: u8 = 4;
const REX_X: u8 = 2;
const REX_B: u8 = 1;

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction {
    pub(crate) row: &'static Row,
    /// In bytes, 1 to 15.
    pub(crate) length: u8,
    /// Of a general register operand, in bytes: 2, 4 or 8 (8-bit operands are the row's matter).
    pub(crate) size: u8,
    /// A REX prefix is there, so that registers 4 to 7 of 8 bits are not `%ah` to `%bh`.
    pub(crate) rex: bool,
    /// The r/m operand is memory.
    pub(crate) memory: bool,
    /// `%gs:` with 32-bit addressing.
    pub(crate) gs: bool,
    /// Register number of the reg field, or the digit.
    pub(crate) reg: u8,
    /// Register number of the r/m field, when it is a register.
    pub(crate) rm: u8,
    /// Register number of VEX.vvvv.
    pub(crate) vvvv: u8,
    /// Base register of the memory operand, [`NONE`] or [`RIP`].
    pub(crate) base: u8,
    /// Index register of the memory operand, or [`NONE`].
    pub(crate) index: u8,
    /// 0 to 3: the index counts 1, 2, 4 or 8 times.
    pub(crate) scale: u8,
    pub(crate) opcode: u8,
    pub(crate) displacement: i32,
    /// Sign-extended, except a full 64-bit one.
    pub(crate) immediate: i64,
}

/// The cursor over an instruction's bytes; reading past the window gives zeros,
/// and the length check rejects what did so.
struct Cursor<'a> {
    window: &'a [u8; WINDOW],
    at: usize,
}

impl Cursor<'_> {
    #[inline]
    fn peek(&self) -> u8 {
        self.window.get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    fn byte(&mut self) -> u8 {
        let byte = self.peek();
        self.at += 1;
        byte
    }

    #[inline]
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let bytes = self
            .window
            .get(self.at..)
            .and_then(|tail| tail.first_chunk())
            .copied()
            .unwrap_or([0; N]);
        self.at += N;
        bytes
    }
}

#[inline]
const fn prefix(byte: u8) -> u8 {
    match byte {
        0x66 => P66,
        0x67 => P67,
        0x65 => P65,
        0xf0 => LOCK,
        0xf2 => F2,
        0xf3 => F3,
        _ => 0,
    }
}

#[allow(clippy::indexing_slicing, reason = "runs at compile time only")]
static PREFIXES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = prefix(byte as u8);
        byte += 1;
    }
    table
};

/// Decodes the instruction at the start of `window`, of which the first
/// `available` bytes belong to the segment.
pub(crate) fn decode(window: &[u8; WINDOW], available: usize) -> Result<Instruction, Rule> {
    let mut instruction = Instruction::blank();
    decode_into(&mut instruction, window, available)?;
    Ok(instruction)
}

/// As [`decode`], into a blank `instruction`: the pass does without a copy.
#[inline]
pub(crate) fn decode_into(
    instruction: &mut Instruction,
    window: &[u8; WINDOW],
    available: usize,
) -> Result<(), Rule> {
    if !(matches!(window, [0x66 | 0x2e, ..]) && alignment_nop(instruction, window)) {
        encoding(instruction, Cursor { window, at: 0 })?;
    }
    match usize::from(instruction.length) {
        length if length > 15 => Err(Rule::InstructionLength),
        length if length > available => Err(Rule::InstructionTruncated),
        _ => Ok(()),
    }
}

#[inline]
fn encoding(instruction: &mut Instruction, mut cursor: Cursor) -> Result<(), Rule> {
    let prefixes = legacy_prefixes(&mut cursor)?;
    let next = cursor.peek();
    if next & 0xfe == 0xc4 {
        return decode_vex(instruction, cursor, prefixes);
    }
    let rex = if next & 0xf0 == 0x40 {
        cursor.byte()
    } else {
        0
    };
    let (map, opcode) = opcode(&mut cursor);
    let (repeats, narrow, wide) = (prefixes & (F2 | F3), prefixes & P66 != 0, rex & REX_W != 0);
    let column = match (repeats, narrow) {
        (0, false) => 0,
        (0, true) => 1,
        (F3, _) => 2,
        (F2, _) => 3,
        _ => return Err(Rule::Prefix),
    };
    select(
        instruction,
        &mut cursor,
        slot(map, column, opcode),
        opcode,
        rex,
    )?;
    let row = instruction.row;
    if prefixes & !(P65 | P67) != 0 || opcode == 0x90 {
        let misused = (map == 0 && repeats != 0 && !row.has(row::REP))
            || (narrow && (map == 0 || column > 1) && !row.has(row::OP16))
            || (narrow && row.has(row::OP16) && wide)
            || (prefixes & LOCK != 0 && !(row.has(row::LOCK) && instruction.memory))
            || (opcode == 0x90 && map == 0 && rex & REX_B != 0);
        if misused {
            return Err(Rule::Prefix);
        }
    }
    let rex_useless = !row.has(row::MODRM | row::OPCODE_REGISTER | row::ACCUMULATOR | row::OP16);
    if (row.has(row::W1) && !wide) || (rex != 0 && rex_useless) {
        return Err(Rule::Prefix);
    }
    instruction.size = match (wide, narrow && row.has(row::OP16)) {
        (true, _) => 8,
        (false, true) => 2,
        (false, false) => 4,
    };
    instruction.rex = rex != 0;
    finish(instruction, cursor, prefixes)
}

#[inline]
fn legacy_prefixes(cursor: &mut Cursor) -> Result<u8, Rule> {
    let mut seen = 0;
    loop {
        let byte = cursor.peek();
        let bit = PREFIXES.get(usize::from(byte)).copied().unwrap_or(0);
        if bit == 0 {
            return match byte {
                0x26 | 0x2e | 0x36 | 0x3e | 0x64 => Err(Rule::SegmentOverride),
                _ => Ok(seen),
            };
        }
        if seen & bit != 0 {
            return Err(Rule::Prefix);
        }
        seen |= bit;
        cursor.at += 1;
    }
}

#[inline]
fn opcode(cursor: &mut Cursor) -> (usize, u8) {
    match cursor.byte() {
        0x0f => match cursor.byte() {
            0x38 => (2, cursor.byte()),
            0x3a => (3, cursor.byte()),
            opcode => (1, opcode),
        },
        opcode => (0, opcode),
    }
}

/// `nopw %cs:0(%rax,%rax)` with any number of further 66 prefixes, which
/// assemblers use to align code: the one place for a useless prefix.
fn alignment_nop(instruction: &mut Instruction, window: &[u8; WINDOW]) -> bool {
    let count = window.iter().take_while(|&&byte| byte == 0x66).count();
    let rest = window.get(count..).and_then(|tail| tail.first_chunk::<9>());
    let plain = INDEX
        .get(slot(0, 0, 0x90))
        .and_then(|number| ROWS.get(usize::from(*number)));
    match (rest, plain) {
        (Some(&[0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]), Some(row)) => {
            instruction.row = row;
            instruction.length = count as u8 + 9;
            true
        }
        _ => false,
    }
}

/// No row: nothing is permitted.
static NO_ROW: Row = Row {
    flags: 0,
    clobbers: 0,
    next: 0,
    digits: 0,
    immediate: 0,
    kind: Kind::Plain,
};

impl Instruction {
    /// What [`decode_into`] starts from.
    #[inline]
    pub(crate) const fn blank() -> Self {
        Self {
            row: &NO_ROW,
            length: 0,
            size: 4,
            rex: false,
            memory: false,
            gs: false,
            reg: 0,
            rm: 0,
            vvvv: 0,
            base: NONE,
            index: NONE,
            scale: 0,
            opcode: 0,
            displacement: 0,
            immediate: 0,
        }
    }
}

#[inline]
fn decode_vex(instruction: &mut Instruction, mut cursor: Cursor, prefixes: u8) -> Result<(), Rule> {
    if prefixes & !(P67 | P65) != 0 {
        return Err(Rule::Prefix);
    }
    // The payload inverts R, X, B and vvvv.
    let (map, first, last) = if cursor.byte() == 0xc5 {
        let byte = cursor.byte();
        (1, (byte & 0x80) | 0x60, byte & 0x7f)
    } else {
        let byte = cursor.byte();
        (usize::from(byte & 0x1f), byte & 0xe0, cursor.byte())
    };
    if !(1..=3).contains(&map) {
        return Err(Rule::Instruction);
    }
    let wide = last & 0x80 != 0;
    let long = last & 4 != 0;
    let vvvv = !(last >> 3) & 15;
    let rex = (!first >> 5) & 7 | if wide { REX_W } else { 0 };
    let opcode = cursor.byte();
    select(
        instruction,
        &mut cursor,
        slot(map + 3, usize::from(last & 3), opcode),
        opcode,
        rex,
    )?;
    let row = instruction.row;
    if (row.has(row::W0) && wide)
        || (row.has(row::W1) && !wide)
        || (row.has(row::L0) && long)
        || (row.has(row::L1) && !long)
        || (!row.has(row::V_USED) && vvvv != 0)
    {
        return Err(Rule::Prefix);
    }
    instruction.vvvv = vvvv;
    instruction.size = if wide { 8 } else { 4 };
    instruction.rex = true;
    finish(instruction, cursor, prefixes)
}

/// Reads ModRM, SIB and displacement, and finds the row that fits.
#[inline]
fn select(
    instruction: &mut Instruction,
    cursor: &mut Cursor,
    slot: usize,
    opcode: u8,
    rex: u8,
) -> Result<(), Rule> {
    let mut number = INDEX.get(slot).copied().unwrap_or(0);
    if number == 0 {
        return Err(Rule::Instruction);
    }
    let modrm = cursor.peek();
    let (digit, register) = (modrm >> 3 & 7, modrm >= 0xc0);
    let mut row = ROWS.get(usize::from(number)).ok_or(Rule::Instruction)?;
    let mut denial = Rule::Instruction;
    while row.has(row::MODRM) && !fits(row, opcode, modrm, digit, register) {
        if row.digits >> digit & 1 == 1 && row.has(row::RM_READ | row::RM_WRITE) {
            denial = Rule::OperandForm;
        }
        number = row.next;
        if number == 0 {
            return Err(denial);
        }
        row = ROWS.get(usize::from(number)).ok_or(Rule::Instruction)?;
    }
    instruction.row = row;
    instruction.opcode = opcode;
    if row.has(row::MODRM) {
        cursor.at += 1;
        instruction.reg = digit | if rex & REX_R != 0 { 8 } else { 0 };
        instruction.rm = modrm & 7 | if rex & REX_B != 0 { 8 } else { 0 };
        instruction.memory = !register;
        if !register {
            address(instruction, cursor, modrm, rex);
        }
    } else if row.has(row::OPCODE_REGISTER) {
        instruction.rm = opcode & 7 | if rex & REX_B != 0 { 8 } else { 0 };
    }
    Ok(())
}

#[inline]
fn fits(row: &Row, opcode: u8, modrm: u8, digit: u8, register: bool) -> bool {
    let other_form = if register {
        row::MEM_ONLY
    } else {
        row::REG_ONLY
    };
    let field = match row.flags & (row::RM_ZERO | row::RM_TWO) {
        row::RM_ZERO => modrm & 7 == 0,
        row::RM_TWO => modrm & 7 == 2,
        _ => true,
    };
    let exists = row.kind != Kind::X87
        || X87_REGISTER_FORMS
            .get(usize::from(opcode & 7))
            .is_some_and(|forms| forms >> (modrm & 63) & 1 == 1);
    row.digits >> digit & 1 == 1 && !row.has(other_form) && field && exists
}

#[inline]
fn address(instruction: &mut Instruction, cursor: &mut Cursor, modrm: u8, rex: u8) {
    let mode = modrm >> 6;
    let mut base = instruction.rm;
    if base & 7 == 4 {
        let sib = cursor.byte();
        let index = sib >> 3 & 7 | if rex & REX_X != 0 { 8 } else { 0 };
        instruction.index = if index == 4 { NONE } else { index };
        instruction.scale = sib >> 6;
        base = sib & 7 | if rex & REX_B != 0 { 8 } else { 0 };
        if mode == 0 && base & 7 == 5 {
            base = NONE;
        }
    } else if mode == 0 && base & 7 == 5 {
        base = RIP;
    }
    instruction.base = base;
    instruction.displacement = match (mode, base) {
        (1, _) => i32::from(cursor.byte() as i8),
        (2, _) | (0, NONE | RIP) => i32::from_le_bytes(cursor.bytes()),
        _ => 0,
    };
}

/// Reads the immediate and checks the addressing prefixes.
#[inline]
fn finish(instruction: &mut Instruction, mut cursor: Cursor, prefixes: u8) -> Result<(), Rule> {
    match prefixes & (P65 | P67) {
        0 => {}
        _ if !instruction.memory || instruction.row.has(row::NO_ACCESS) => {
            return Err(Rule::Prefix);
        }
        P65 => return Err(Rule::SegmentOverride),
        P67 => return Err(Rule::AddressSize),
        _ => instruction.gs = true,
    }
    instruction.immediate = match (instruction.row.immediate, instruction.size) {
        (0, _) => 0,
        (row::IMM8, _) => i64::from(cursor.byte() as i8),
        (row::IMM_Z | row::IMM_FULL, 2) => i64::from(i16::from_le_bytes(cursor.bytes())),
        (row::IMM_FULL, 8) => i64::from_le_bytes(cursor.bytes()),
        _ => i64::from(i32::from_le_bytes(cursor.bytes())),
    };
    instruction.length = cursor.at as u8;
    Ok(())
}
