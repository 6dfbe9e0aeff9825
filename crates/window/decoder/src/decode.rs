//! One instruction: bytes in, the table's row and the operands out.
//!
//! ```text
//! [66 67 65 F0 F2 F3, each at most once] [REX] opcode [ModRM [SIB] [disp]] [imm]
//! [67 65, each at most once]             VEX   opcode [ModRM [SIB] [disp]] [imm]
//! ```
//! Nothing else is decoded. Other segment overrides, a prefix that the row has no use for, and a
//! REX that is not the last prefix are all rejected. So processors have nothing to disagree about.
//!
//! This is where the verifier spends its time. What differs from one instruction
//! to the next without a pattern (REX, the size of displacement and immediate)
//! is computed, not branched on.

use crate::refusal::Refusal;
use crate::row::{self, INDEX, Kind, NO_ROW, ROWS, Row, X87_REGISTER_FORMS};

/// Bytes that the decoder looks at. Reads start at
/// one of the first 16, and take 4 at most.
pub const WINDOW: usize = 20;
/// Bytes of the longest instruction.
pub const LONGEST: usize = 15;

/// No register.
pub const NONE: u8 = 16;
/// The instruction pointer as a base.
pub const RIP: u8 = 17;
/// `%rsp`.
pub const RSP: u8 = 4;
/// `%r14`, which holds the window's base.
pub const R14: u8 = 14;
/// `%r15`, the data stack pointer.
pub const R15: u8 = 15;

const P66: u8 = 1;
const P67: u8 = 2;
const P65: u8 = 4;
const LOCK: u8 = 8;
const F2: u8 = 16;
const F3: u8 = 32;
/// A segment override that is never accepted.
const OVERRIDE: u8 = 64;
const REX_W: u8 = 8;
const REX_R: u8 = 4;
const REX_X: u8 = 2;
const REX_B: u8 = 1;

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// The table's row that lets it through.
    pub row: &'static Row,
    /// In bytes, 1 to 15.
    pub length: u8,
    /// Of a general register operand, in bytes: 2, 4 or 8 (8-bit operands are the row's matter).
    pub size: u8,
    /// A REX prefix is there, so that registers 4 to 7 of 8 bits are not `%ah` to `%bh`.
    pub rex: bool,
    /// The r/m operand is memory.
    pub memory: bool,
    /// `%gs:`; in windows with 32-bit addressing.
    pub gs: bool,
    /// 32-bit addressing.
    pub narrow: bool,
    /// `rep` or `repne`, or a prefix that is part of the opcode.
    pub repeat: bool,
    /// VEX.L: 256 bits.
    pub long: bool,
    /// Which opcode map, with prefix and VEX ([`row::plane`]).
    pub plane: u8,
    /// Register number of the reg field, or the digit.
    pub reg: u8,
    /// Register number of the r/m field; [`NONE`] when it is memory.
    pub rm: u8,
    /// Register number of VEX.vvvv, or [`NONE`].
    pub vvvv: u8,
    /// Base register of the memory operand, [`NONE`] or [`RIP`].
    pub base: u8,
    /// Index register of the memory operand, or [`NONE`].
    pub index: u8,
    /// 0 to 3: the index counts 1, 2, 4 or 8 times.
    pub scale: u8,
    /// The last byte of the opcode.
    pub opcode: u8,
    /// Of the memory operand, sign-extended.
    pub displacement: i32,
    /// Bytes of the immediate, which are the instruction's last ones.
    immediate: u8,
}

/// The cursor over an instruction's bytes. A read that starts behind the 16th byte
/// gives others of them: the length check rejects what did so.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    window: &'a [u8; WINDOW],
    at: usize,
}

impl Cursor<'_> {
    #[inline(always)]
    fn peek(&self) -> u8 {
        self.window.get(self.at & 15).copied().unwrap_or(0)
    }

    #[inline(always)]
    fn byte(&mut self) -> u8 {
        let byte = self.peek();
        self.at += 1;
        byte
    }

    /// A signed number of `size` bytes, 4 at most; 0 if there are none.
    #[inline(always)]
    fn number(&mut self, size: u8) -> i32 {
        let tail = self.window.get(self.at & 15..);
        let bytes = tail.and_then(|tail| tail.first_chunk()).copied();
        let raw = u64::from(u32::from_le_bytes(bytes.unwrap_or([0; 4])));
        self.at += usize::from(size);
        // In two steps, since a shift by 64 is none.
        let above = 63 - 8 * u32::from(size & 7);
        ((raw << above << 1) as i64 >> above >> 1) as i32
    }
}

const fn prefix(byte: u8) -> u8 {
    match byte {
        0x66 => P66,
        0x67 => P67,
        0x65 => P65,
        0xf0 => LOCK,
        0xf2 => F2,
        0xf3 => F3,
        0x26 | 0x2e | 0x36 | 0x3e | 0x64 => OVERRIDE,
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

/// Decodes the instruction at the start of `window`, which may have the first
/// `available` bytes of it.
#[inline(always)]
pub fn decode(bytes: (&[u8; WINDOW], usize)) -> Result<Instruction, Refusal> {
    decode_for::<false>(bytes)
}

/// The same for the word wall, where `%gs:` comes with addresses of 64 bits, too.
#[inline(always)]
pub fn decode_word(bytes: (&[u8; WINDOW], usize)) -> Result<Instruction, Refusal> {
    decode_for::<true>(bytes)
}

#[inline(always)]
fn decode_for<const WORD: bool>(
    (window, available): (&[u8; WINDOW], usize),
) -> Result<Instruction, Refusal> {
    let mut cursor = Cursor { window, at: 0 };
    let instruction = match legacy_prefixes(&mut cursor) {
        Ok(prefixes) => encoding::<WORD>(cursor, prefixes)?,
        Err(rule) => alignment_nop(window).ok_or(rule)?,
    };
    let length = usize::from(instruction.length);
    if length > available {
        return Err(match length > LONGEST {
            true => Refusal::InstructionLength,
            false => Refusal::InstructionTruncated,
        });
    }
    Ok(instruction)
}

#[inline(always)]
fn legacy_prefixes(cursor: &mut Cursor) -> Result<u8, Refusal> {
    let mut seen = 0;
    loop {
        let bit = PREFIXES.get(usize::from(cursor.peek())).copied();
        match bit.unwrap_or(OVERRIDE) {
            0 => return Ok(seen),
            OVERRIDE => return Err(Refusal::SegmentOverride),
            bit if seen & bit != 0 => return Err(Refusal::Prefix),
            bit => seen |= bit,
        }
        cursor.at += 1;
    }
}

/// Everything behind the legacy prefixes.
#[inline(always)]
fn encoding<const WORD: bool>(mut cursor: Cursor, prefixes: u8) -> Result<Instruction, Refusal> {
    let first = cursor.peek();
    let has_rex = first & 0xf0 == 0x40;
    let rex = if has_rex { first } else { 0 };
    cursor.at += usize::from(has_rex);
    let (plane, opcode) = match cursor.byte() {
        0x0f => escape(&mut cursor, prefixes),
        opcode => (0, opcode),
    };
    let row = match select(plane, opcode) {
        Ok(row) => row,
        Err(_) if plane == 0 && !has_rex && matches!(opcode, 0xc4 | 0xc5) => {
            return vex::<WORD>(cursor, prefixes, opcode == 0xc5);
        }
        Err(first) => choose(first, opcode, cursor.peek())?,
    };
    if (rex & row.rex_denied) | (!rex & row.rex_demanded) != 0 {
        return Err(Refusal::Prefix);
    }
    let mut size = if rex & REX_W != 0 { 8 } else { 4 };
    if prefixes & !(P65 | P67) != 0 {
        let memory = row.has(row::MODRM) && cursor.peek() < 0xc0;
        let repeats = prefixes & (F2 | F3);
        let narrow = prefixes & P66 != 0;
        let misused = (plane == 0 && repeats != 0 && !row.has(row::REP))
            || (narrow && (plane == 0 || repeats != 0) && !row.has(row::OP16))
            || (narrow && row.has(row::OP16) && size == 8)
            || (prefixes & LOCK != 0 && !(row.has(row::LOCK) && memory))
            || repeats == F2 | F3;
        if misused {
            return Err(Refusal::Prefix);
        }
        if narrow && row.has(row::OP16) {
            size = 2;
        }
    }
    let head = Instruction {
        rex: has_rex,
        repeat: prefixes & (F2 | F3) != 0,
        plane: plane as u8,
        ..Instruction::new(row, opcode, size)
    };
    operands::<WORD>(head, cursor, rex, prefixes)
}

/// The opcode behind `0F`, and where the table has its map.
#[inline]
fn escape(cursor: &mut Cursor, prefixes: u8) -> (usize, u8) {
    let (map, opcode) = match cursor.byte() {
        0x38 => (2, cursor.byte()),
        0x3a => (3, cursor.byte()),
        opcode => (1, opcode),
    };
    let column = match prefixes & (P66 | F2 | F3) {
        0 => 0,
        P66 => 1,
        column if column & F3 != 0 => 2,
        _ => 3,
    };
    (row::plane(map, column), opcode)
}

/// `nopw %cs:0(%rax,%rax)` with any number of further 66 prefixes, which
/// assemblers use to align code: the one place for a useless prefix.
#[cold]
fn alignment_nop(window: &[u8; WINDOW]) -> Option<Instruction> {
    let count = window.iter().take_while(|&&byte| byte == 0x66).count();
    let rest = window.get(count..)?.first_chunk::<9>()?;
    let plain = ROWS.get(usize::from(*INDEX.get(0x90)?))?;
    (*rest == [0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]).then(|| Instruction {
        length: count as u8 + 9,
        ..Instruction::new(plain, 0x90, 4)
    })
}

impl Instruction {
    /// Whether some operand has this number, register or not.
    #[inline(always)]
    pub const fn names(&self, register: u8) -> bool {
        (self.reg == register)
            | (self.rm == register)
            | (self.base == register)
            | (self.vvvv == register)
    }

    /// Without operands.
    #[inline(always)]
    const fn new(row: &'static Row, opcode: u8, size: u8) -> Self {
        Self {
            row,
            length: 0,
            size,
            rex: false,
            memory: false,
            gs: false,
            narrow: false,
            repeat: false,
            long: false,
            plane: 0,
            reg: 0,
            rm: NONE,
            vvvv: NONE,
            base: NONE,
            index: NONE,
            scale: 0,
            opcode,
            displacement: 0,
            immediate: 0,
        }
    }

    /// The immediate of the instruction at the start of `bytes`, sign-extended
    /// unless it has 64 bits; 0 if there is none. Few callers want it.
    pub fn immediate(&self, bytes: &[u8]) -> i64 {
        let all = bytes.get(..usize::from(self.length)).unwrap_or(&[]);
        match self.immediate {
            0 => 0,
            1 => all.last().map_or(0, |byte| i64::from(*byte as i8)),
            2 => all
                .last_chunk()
                .map_or(0, |short| i64::from(i16::from_le_bytes(*short))),
            4 => all
                .last_chunk()
                .map_or(0, |word| i64::from(i32::from_le_bytes(*word))),
            _ => all.last_chunk().map_or(0, |long| i64::from_le_bytes(*long)),
        }
    }

    /// Where the direct branch at offset `at`, whose bytes are the first of `bytes`, goes.
    pub fn branch(&self, bytes: &[u8], at: u32) -> i64 {
        i64::from(at) + i64::from(self.length) + self.immediate(bytes)
    }
}

/// Everything behind the byte C4, or C5 (the `short` form).
fn vex<const WORD: bool>(
    mut cursor: Cursor,
    prefixes: u8,
    short: bool,
) -> Result<Instruction, Refusal> {
    if prefixes & !(P67 | P65) != 0 {
        return Err(Refusal::Prefix);
    }
    // The payload inverts R, X, B and vvvv.
    let byte = cursor.byte();
    let (map, first, last) = if short {
        (1, (byte & 0x80) | 0x60, byte & 0x7f)
    } else {
        (usize::from(byte & 0x1f), byte & 0xe0, cursor.byte())
    };
    if !(1..=3).contains(&map) {
        return Err(Refusal::Instruction);
    }
    let wide = last & 0x80 != 0;
    let long = last & 4 != 0;
    let vvvv = !(last >> 3) & 15;
    let rex = (!first >> 5) & 7 | if wide { REX_W } else { 0 };
    let opcode = cursor.byte();
    let plane = row::plane(map + 3, usize::from(last & 3));
    let row = select(plane, opcode).or_else(|first| choose(first, opcode, cursor.peek()))?;
    if (row.has(row::W0) && wide)
        || (row.has(row::W1) && !wide)
        || (row.has(row::L0) && long)
        || (row.has(row::L1) && !long)
        || (!row.has(row::V_USED) && vvvv != 0)
    {
        return Err(Refusal::Prefix);
    }
    let head = Instruction {
        rex: true,
        vvvv,
        long,
        plane: plane as u8,
        ..Instruction::new(row, opcode, if wide { 8 } else { 4 })
    };
    operands::<WORD>(head, cursor, rex, prefixes)
}

/// The row that permits this opcode whatever its ModRM byte, or the first of those
/// that may.
#[inline(always)]
fn select(plane: usize, opcode: u8) -> Result<&'static Row, &'static Row> {
    let number = INDEX.get(plane * 256 + usize::from(opcode)).copied();
    let row = ROWS
        .get(usize::from(number.unwrap_or(0)))
        .unwrap_or(&NO_ROW);
    match row.has(row::CHOICE) {
        false => Ok(row),
        true => Err(row),
    }
}

/// The first row from `row` on that fits, in the order of the table.
fn choose(mut row: &'static Row, opcode: u8, modrm: u8) -> Result<&'static Row, Refusal> {
    let digit = modrm >> 3 & 7;
    let mut denial = Refusal::Instruction;
    while row.has(row::CHOICE) && !fits(row, opcode, modrm, digit) {
        if row.digits >> digit & 1 == 1 && row.has(row::RM_READ | row::RM_WRITE) {
            denial = Refusal::OperandForm;
        }
        row = match row.next {
            0 => return Err(denial),
            next => ROWS.get(usize::from(next)).ok_or(Refusal::Instruction)?,
        };
    }
    Ok(row)
}

fn fits(row: &Row, opcode: u8, modrm: u8, digit: u8) -> bool {
    let other_form = if modrm >= 0xc0 {
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

/// Reads ModRM, SIB, displacement and immediate, and checks the addressing prefixes.
#[inline(always)]
fn operands<const WORD: bool>(
    mut instruction: Instruction,
    mut cursor: Cursor,
    rex: u8,
    prefixes: u8,
) -> Result<Instruction, Refusal> {
    let row = instruction.row;
    let extended = (rex & REX_B) << 3;
    if row.has(row::MODRM) {
        let modrm = cursor.byte();
        instruction.reg = modrm >> 3 & 7 | (rex & REX_R) << 1;
        instruction.memory = modrm < 0xc0;
        if instruction.memory {
            address(&mut instruction, &mut cursor, modrm, rex);
        } else {
            instruction.rm = modrm & 7 | extended;
        }
    } else if row.has(row::OPCODE_REGISTER) {
        instruction.rm = instruction.opcode & 7 | extended;
    } else if row.has(row::ACCUMULATOR) {
        instruction.rm = 0;
    }
    if prefixes & (P65 | P67) != 0 {
        if !instruction.memory || row.has(row::NO_ACCESS) {
            return Err(Refusal::Prefix);
        }
        match prefixes & (P65 | P67) {
            P65 if !WORD => return Err(Refusal::SegmentOverride),
            P67 => return Err(Refusal::AddressSize),
            _ => instruction.gs = true,
        }
        instruction.narrow = prefixes & P67 != 0;
    }
    instruction.immediate = row.immediate.bytes(instruction.size);
    instruction.length = cursor.at as u8 + instruction.immediate;
    Ok(instruction)
}

#[inline(always)]
fn address(instruction: &mut Instruction, cursor: &mut Cursor, modrm: u8, rex: u8) {
    let mode = modrm >> 6;
    let mut base = modrm & 7;
    let mut baseless = RIP;
    if base == 4 {
        let sib = cursor.byte();
        let index = sib >> 3 & 7 | (rex & REX_X) << 2;
        instruction.index = if index == 4 { NONE } else { index };
        instruction.scale = sib >> 6;
        base = sib & 7;
        baseless = NONE;
    }
    let absolute = mode == 0 && base == 5;
    instruction.base = if absolute {
        baseless
    } else {
        base | (rex & REX_B) << 3
    };
    let size = match mode {
        0 if absolute => 4,
        0 => 0,
        1 => 1,
        _ => 4,
    };
    instruction.displacement = cursor.number(size);
}
