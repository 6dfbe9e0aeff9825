//! How many bytes an operand in memory has.
//!
//! A window's guards take what is wide, so its verifier does not ask. The word wall's does: there a store of 16 bytes
//! needs the right to all of them. A later line of `SIZES` is right where an earlier one says something else. The tests hold
//! every opcode of every row against iced-x86.

use crate::decode::Instruction;
use crate::row::{self, SLOTS};

/// What is asked for where nothing is known: no check has as many.
pub const UNKNOWN: u32 = 1 << 16;

/// The operand's own size: prefix 66, or W.
const OPERAND: u8 = 0x80;
/// Twice that.
const TWICE: u8 = 0x81;
/// 8 bytes, 32 with VEX.L.
const DOUBLED: u8 = 0x83;
/// By opcode and reg field.
const BY_DIGIT: u8 = 0x82;
/// From here on: 2, 4, 8, 16 bytes, twice as many with VEX.L.
const VECTOR: u8 = 0x90;

/// Map, opcodes, size: bytes; `v` the operand's own, `vv` twice that; `x` a whole vector, `h` half of one, `q` a
/// quarter, `e` an eighth, `d` 8 bytes or with VEX.L 32; `/` by the reg field.
#[rustfmt::skip]
const SIZES: &[(&str, &str, &str)] = &[
    ("", "00 02 08 0a 10 12 18 1a 20 22 28 2a 30 32 38 3a 80 84 86 88 8a c0 c6 d0 d2 f6 fe", "1"),
    ("", "01 03 09 0b 11 13 19 1b 21 23 29 2b 31 33 39 3b 69 6b 81 83 85 87 89 8b c1 c7 d1 d3 f7 ff", "v"),
    ("", "63", "4"),
    ("", "d8-df", "/"),
    ("0f", "40-4f a4 a5 ac ad af b1 ba bc bd c1 c3", "v"),
    ("0f", "90-9f b0 b6 be c0", "1"),
    ("0f", "b7 bf", "2"),
    ("0f", "c7", "vv"),
    ("0f", "ae", "4"),
    ("0f38", "f0 f1", "v"),
    ("66 0f38", "f6", "v"),
    ("f3 0f38", "f6", "v"),
    ("f2 0f38", "f0", "1"),
    ("f2 0f38", "f1", "v"),
    ("f3 0f", "b8 bc bd", "v"),
    // SSE.
    ("0f", "10 11 14 15 28 29 2b 51-59 5b-5f c2 c6", "x"),
    ("0f", "5a", "8"),
    ("0f", "12 13 16 17", "8"),
    ("0f", "2e 2f", "4"),
    ("0f38", "c8-cd", "x"),
    ("0f3a", "cc", "x"),
    ("66 0f", "10 11 14 15 28 29 2b 51-5f 60-6d 6f 70 74-76 7c 7d 7f c2 c6 d0-d5 d8-ef f1-f6 f8-fe", "x"),
    ("66 0f", "12 13 16 17 2e 2f d6", "8"),
    ("66 0f", "6e 7e", "v"),
    ("66 0f", "c4", "2"),
    ("66 0f38", "00-15 17 1c-1e 28-2b 37-41 db-df", "x"),
    ("66 0f38", "20 23 25 30 33 35", "h"),
    ("66 0f38", "21 24 31 34", "q"),
    ("66 0f38", "22 32", "e"),
    ("66 0f3a", "08 09 0c-0f 40-44 60-63 df", "x"),
    ("66 0f3a", "0a 17 21", "4"),
    ("66 0f3a", "0b", "8"),
    ("66 0f3a", "14 20", "1"),
    ("66 0f3a", "15", "2"),
    ("66 0f3a", "16 22", "v"),
    ("f3 0f", "10 11 51-53 58-5a 5c-5f c2 2c 2d", "4"),
    ("f3 0f", "12 16 5b 6f 70 7f", "x"),
    ("f3 0f", "7e e6", "8"),
    ("f3 0f", "2a", "v"),
    ("f2 0f", "10-12 51 58-5a 5c-5f c2 2c 2d", "8"),
    ("f2 0f", "70 7c 7d d0 e6 f0", "x"),
    ("f2 0f", "2a", "v"),
    // AVX.
    ("vex 0f", "10 11 14 15 28 29 2b 51-59 5b-5f c2 c6", "x"),
    ("vex 0f", "5a", "h"),
    ("vex 0f", "12 13 16 17", "8"),
    ("vex 0f", "2e 2f ae", "4"),
    ("vex 66 0f", "10 11 14 15 28 29 2b 51-5f 60-6d 6f 70 74-76 7c 7d 7f c2 c6 d8-df e0-ef", "x"),
    ("vex 66 0f", "d0 d4 d5 f4-f6 f8-fe", "x"),
    // The count of a shift is a register of 128 bits, or so many bytes.
    ("vex 66 0f", "d1-d3 e1 e2 f1-f3", "16"),
    ("vex 66 0f", "12 13 16 17 2e 2f d6", "8"),
    ("vex 66 0f", "6e 7e", "v"),
    ("vex 66 0f", "c4", "2"),
    ("vex f3 0f", "10 11 51-53 58-5a 5c-5f c2 2c 2d", "4"),
    ("vex f3 0f", "12 16 5b 6f 70 7f", "x"),
    ("vex f3 0f", "7e", "8"),
    ("vex f3 0f", "e6", "h"),
    ("vex f3 0f", "2a", "v"),
    ("vex f2 0f", "10 11 51 58-5a 5c-5f c2 2c 2d", "8"),
    ("vex f2 0f", "12", "d"),
    ("vex f2 0f", "70 7c 7d d0 e6 f0", "x"),
    ("vex f2 0f", "2a", "v"),
    ("vex 66 0f38", "00-0f 16 17 1c-1e 28-2f 36-47 8c 8e db-df", "x"),
    ("vex 66 0f38", "96-98 9a 9c 9e a6-a8 aa ac ae b6-b8 ba bc be", "x"),
    ("vex 66 0f38", "99 9b 9d 9f a9 ab ad af b9 bb bd bf", "v"),
    ("vex 66 0f38", "1a 5a", "16"),
    ("vex 66 0f38", "18 58", "4"),
    ("vex 66 0f38", "19 59", "8"),
    ("vex 66 0f38", "78", "1"),
    ("vex 66 0f38", "79", "2"),
    ("vex 66 0f38", "13 20 23 25 30 33 35", "h"),
    ("vex 66 0f38", "21 24 31 34", "q"),
    ("vex 66 0f38", "22 32", "e"),
    ("vex 0f38", "f2 f3 f5 f7", "v"),
    ("vex 66 0f38", "f7", "v"),
    ("vex f3 0f38", "f5 f7", "v"),
    ("vex f2 0f38", "f5-f7", "v"),
    ("vex 66 0f3a", "00-05 08 09 0c-0f 40-4c 60-63 df", "x"),
    ("vex 66 0f3a", "06 46", "32"),
    ("vex 66 0f3a", "18 19 38 39", "16"),
    ("vex 66 0f3a", "0a 17 21", "4"),
    ("vex 66 0f3a", "0b", "8"),
    ("vex 66 0f3a", "14 20", "1"),
    ("vex 66 0f3a", "15", "2"),
    ("vex 66 0f3a", "16 22", "v"),
    ("vex 66 0f3a", "1d", "h"),
    ("vex f2 0f3a", "f0", "v"),
];

/// Opcodes D8 to DF, by the reg field.
const X87: [[u8; 8]; 8] = [
    [4; 8],
    [4, 0, 4, 4, 28, 2, 28, 2],
    [4; 8],
    [4, 4, 4, 4, 0, 10, 0, 10],
    [8; 8],
    [8, 8, 8, 8, 0, 0, 0, 2],
    [2; 8],
    [2, 2, 2, 2, 0, 8, 0, 8],
];

const fn parse(text: &str) -> u8 {
    match text.as_bytes() {
        b"v" => OPERAND,
        b"vv" => TWICE,
        b"d" => DOUBLED,
        b"/" => BY_DIGIT,
        b"e" => VECTOR + 1,
        b"q" => VECTOR + 2,
        b"h" => VECTOR + 3,
        b"x" => VECTOR + 4,
        [digit @ b'0'..=b'9'] => *digit - b'0',
        [tens @ b'0'..=b'9', digit @ b'0'..=b'9'] => (*tens - b'0') * 10 + *digit - b'0',
        _ => panic!("unknown size"),
    }
}

static CODES: [u8; SLOTS] = {
    let mut codes = [0; SLOTS];
    let mut line = 0;
    while line < SIZES.len() {
        let (map, prefix) = row::parse_map(SIZES[line].0);
        let opcodes = row::parse_opcodes(SIZES[line].1);
        let code = parse(SIZES[line].2);
        let plane = row::plane(map, prefix);
        // A 16-bit operand is chosen by the same prefix 66 that picks another map column.
        let narrow = row::plane(map, 1);
        let mut opcode = 0;
        while opcode < 256 {
            if opcodes[opcode] {
                codes[plane * 256 + opcode] = code;
                if prefix == 0 && map > 0 && map < 4 && codes[narrow * 256 + opcode] == 0 {
                    codes[narrow * 256 + opcode] = code;
                }
            }
            opcode += 1;
        }
        line += 1;
    }
    codes
};

impl Instruction {
    /// Bytes that its operand in memory has, all of those that it may access; [`UNKNOWN`] of one that has none.
    #[must_use]
    #[inline]
    pub fn memory_bytes(&self) -> u32 {
        let code = CODES
            .get(usize::from(self.plane) * 256 + usize::from(self.opcode))
            .copied()
            .unwrap_or(0);
        let bytes = match code {
            OPERAND => self.size,
            TWICE => 2 * self.size,
            DOUBLED => 8 << (2 * u8::from(self.long)),
            BY_DIGIT => X87
                .get(usize::from(self.opcode & 7))
                .and_then(|sizes| sizes.get(usize::from(self.reg & 7)))
                .copied()
                .unwrap_or(0),
            VECTOR.. => 1 << (code - VECTOR + u8::from(self.long)),
            fixed => fixed,
        };
        match bytes {
            0 => UNKNOWN,
            bytes => u32::from(bytes),
        }
    }
}
