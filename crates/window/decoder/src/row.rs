//! Turns the text of the table (`table.rs`) into rows that the decoder looks up, all at compile
//! time. A mistake in the table is a compile error.

use crate::table::GROUPS;

/// What a row means to the checker, beyond the operands that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Operands say everything.
    Plain,
    /// x87 with a register operand: [`X87_REGISTER_FORMS`] says which exist.
    X87,
    /// `mov` between a general register and another, or memory.
    Move,
    /// `mov` of an immediate to a register named in the opcode.
    MoveImmediate,
    /// `add` register to register or memory.
    AddTo,
    /// `add` register or memory to register.
    AddFrom,
    /// Arithmetic group with an immediate; digits 0 and 5 are `add` and `sub`.
    Arithmetic,
    /// Rotations and shifts by an immediate: none by zero is a write.
    Shift,
    /// `lea`.
    Lea,
    /// `nop` with an operand: perhaps a label.
    Nop,
    /// `jcc`.
    Conditional,
    /// Direct `jmp`.
    Jump,
    /// Direct `call`.
    Call,
    /// `ret`.
    Return,
    /// `jmp` or `call` through a register.
    Indirect,
    /// Reads at `%rsi`, writes at `%rdi`.
    Movs,
    /// Writes at `%rdi`.
    Stos,
    /// Reads at `%rsi`.
    Lods,
    /// Reads at `%rdi`.
    Scas,
    /// Reads at `%rsi` and `%rdi`.
    Cmps,
    /// Faults: control never passes it.
    Stop,
    /// `int3`.
    Breakpoint,
}

/// Has a ModRM byte.
pub const MODRM: u64 = 1;
/// The r/m operand must be memory.
pub const MEM_ONLY: u64 = 1 << 1;
/// The r/m operand must be a register.
pub const REG_ONLY: u64 = 1 << 2;
/// The r/m field must be zero.
pub const RM_ZERO: u64 = 1 << 3;
/// The r/m field must be two.
pub const RM_TWO: u64 = 1 << 30;
/// The r/m operand, when a register, is a general one.
pub const RM_GPR: u64 = 1 << 4;
/// ... of 8 bits.
pub const RM_BYTE: u64 = 1 << 5;
/// The r/m operand, when memory, is read.
pub const RM_READ: u64 = 1 << 6;
/// The r/m operand is written.
pub const RM_WRITE: u64 = 1 << 7;
/// ... but perhaps not, or not with zero extension.
pub const RM_LOOSE: u64 = 1 << 8;
/// The reg operand is a general register.
pub const REG_GPR: u64 = 1 << 9;
/// ... of 8 bits.
pub const REG_BYTE: u64 = 1 << 10;
/// The reg operand is written.
pub const REG_WRITE: u64 = 1 << 11;
/// ... but perhaps not, or not with zero extension.
pub const REG_LOOSE: u64 = 1 << 12;
/// The opcode's low three bits name the r/m operand.
pub const OPCODE_REGISTER: u64 = 1 << 13;
/// The r/m operand is the accumulator.
pub const ACCUMULATOR: u64 = 1 << 14;
/// VEX.vvvv is an operand (otherwise it must be 1111).
pub const V_USED: u64 = 1 << 15;
/// ... a general register.
pub const V_GPR: u64 = 1 << 16;
/// ... written.
pub const V_WRITE: u64 = 1 << 17;
/// Prefix 66 selects a 16-bit operand.
pub const OP16: u64 = 1 << 18;
/// The written general register is 32 bits wide whatever W says.
pub const FIXED32: u64 = 1 << 19;
/// `lock` is possible, with memory.
pub const LOCK: u64 = 1 << 20;
/// `rep` and `repne` are possible.
pub const REP: u64 = 1 << 21;
/// W must be 0.
pub const W0: u64 = 1 << 22;
/// W must be 1.
pub const W1: u64 = 1 << 23;
/// VEX.L must be 0.
pub const L0: u64 = 1 << 24;
/// VEX.L must be 1.
pub const L1: u64 = 1 << 25;
/// The access may not happen although the instruction completes.
pub const LAZY: u64 = 1 << 26;
/// The memory operand is not accessed.
pub const NO_ACCESS: u64 = 1 << 27;
/// x87 state is used.
pub const X87: u64 = 1 << 28;
/// The SSE control word is written.
pub const MXCSR: u64 = 1 << 29;
/// The store is not ordered with later ones of its thread (non-temporal).
pub const WEAK: u64 = 1 << 32;
/// Derived: the ModRM byte decides whether this row, or another, fits.
pub const CHOICE: u64 = 1 << 31;
/// Derived: writes more than one whole general register named by reg or r/m.
pub const INTRICATE: u64 = 1 << 33;

/// Bytes of the immediate, for operands of 2, 4 and 8 bytes: at bits 4, 8 and 16,
/// twice the operand's size.
#[derive(Clone, Copy, Debug)]
pub struct Immediate(u32);

impl Immediate {
    const NONE: Self = Self::new(0, 0, 0);

    const fn new(short: u32, plain: u32, long: u32) -> Self {
        Self(short << 4 | plain << 8 | long << 16)
    }

    /// With operands of `size` bytes.
    #[inline(always)]
    pub const fn bytes(self, size: u8) -> u8 {
        (self.0 >> ((2 * size) & 31) & 15) as u8
    }
}

/// What fits nothing: no reg field is accepted.
pub static NO_ROW: Row = Row {
    flags: CHOICE,
    ..Row::EMPTY
};

/// One row of the table, as the decoder uses it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Bits, of the constants of this module.
    pub flags: u64,
    /// Mask of general registers written besides the operands.
    pub clobbers: u16,
    /// Next row for the same opcodes, tried when this one does not fit; 0: none.
    pub next: u16,
    /// Mask of the accepted reg fields.
    pub digits: u8,
    /// Its immediate.
    pub immediate: Immediate,
    /// Bits of a REX prefix that must not be there: 40 is the prefix itself.
    pub rex_denied: u8,
    /// ... that must be there.
    pub rex_demanded: u8,
    /// What it means besides.
    pub kind: Kind,
}

impl Row {
    const EMPTY: Self = Self {
        flags: 0,
        clobbers: 0,
        next: 0,
        digits: 0,
        immediate: Immediate::NONE,
        rex_denied: 0,
        rex_demanded: 0,
        kind: Kind::Plain,
    };

    /// Whether any of these flags is set.
    #[inline]
    pub const fn has(&self, flags: u64) -> bool {
        self.flags & flags != 0
    }
}

/// One row of the table, as text. See [`crate::table`] for the notation.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// Mandatory prefix and escape bytes.
    pub map: &'static str,
    /// Opcodes, and ranges of them.
    pub opcodes: &'static str,
    /// Operands.
    pub operands: &'static str,
    /// Options.
    pub options: &'static str,
    /// The instructions that this row lets through, for people and for the tests.
    pub names: &'static str,
}

/// Rows that share a class and the reason why they are allowed.
#[derive(Clone, Copy, Debug)]
pub struct InstructionGroup {
    /// What they are.
    pub class: &'static str,
    /// Why they are allowed.
    pub reason: &'static str,
    /// The rows.
    pub rows: &'static [Text],
}

/// Which of D8 to DF, and which of the ModRM bytes C0 to FF with it, exist
/// (bit = ModRM - C0). Undocumented aliases are left out; `fnstsw %ax` (DF E0)
/// has a row of its own.
pub const X87_REGISTER_FORMS: [u64; 8] = [
    0xffff_ffff_ffff_ffff,
    0xffff_7f33_0001_ffff,
    0x0000_0200_ffff_ffff,
    0x00ff_ff0c_ffff_ffff,
    0xffff_ffff_0000_ffff,
    0x0000_ffff_ffff_00ff,
    0xffff_ffff_0200_ffff,
    0x00ff_ff00_0000_0000,
];

/// Numbers of opcode maps: one-byte, then 0F, 0F38, 0F3A, then the same three with VEX. The six
/// multi-byte ones once for each of the prefixes none, 66, F3, F2.
pub const SLOTS: usize = 256 * 25;
const COUNT: usize = count();

/// Which 256 entries of [`INDEX`] belong to `map` 0 to 6 with `prefix` 0 to 3.
#[inline]
pub const fn plane(map: usize, prefix: usize) -> usize {
    if map == 0 {
        0
    } else {
        1 + (map - 1) * 4 + prefix
    }
}

/// Place of an opcode in [`INDEX`].
const fn slot(map: usize, prefix: usize, opcode: u8) -> usize {
    plane(map, prefix) * 256 + opcode as usize
}

const fn count() -> usize {
    let (mut total, mut group) = (1, 0);
    while group < GROUPS.len() {
        total += GROUPS[group].rows.len();
        group += 1;
    }
    total
}

struct Built {
    rows: [Row; COUNT],
    index: [u16; SLOTS],
}

const BUILT: Built = build();
/// All rows; number 0 is [`NO_ROW`].
pub static ROWS: [Row; COUNT] = BUILT.rows;
/// The first row for each opcode of each map; 0: none.
pub static INDEX: [u16; SLOTS] = BUILT.index;

/// The row that permits this opcode of this plane, in memory or register form; none if
/// more than that and the reg field decides.
pub const fn fixed(plane: usize, opcode: u8, digit: u32, memory: bool) -> Option<&'static Row> {
    let mut number = INDEX[plane * 256 + opcode as usize];
    while number != 0 {
        let row = &ROWS[number as usize];
        if row.has(RM_ZERO | RM_TWO) || matches!(row.kind, Kind::X87) {
            return None;
        }
        let other_form = if memory { REG_ONLY } else { MEM_ONLY };
        if !row.has(CHOICE) || row.digits >> digit & 1 == 1 && !row.has(other_form) {
            return Some(row);
        }
        number = row.next;
    }
    None
}

const fn build() -> Built {
    let mut built = Built {
        rows: [NO_ROW; COUNT],
        index: [0; SLOTS],
    };
    let (mut number, mut group) = (1, 0);
    while group < GROUPS.len() {
        let mut i = 0;
        while i < GROUPS[group].rows.len() {
            let text = &GROUPS[group].rows[i];
            built.rows[number] = parse_row(text);
            built = enter(built, text, number);
            number += 1;
            i += 1;
        }
        group += 1;
    }
    built
}

/// Puts a row into the index, behind the rows that its opcodes already have.
const fn enter(mut built: Built, text: &Text, number: usize) -> Built {
    let (map, prefix) = parse_map(text.map);
    let opcodes = parse_opcodes(text.opcodes);
    // A 16-bit operand is chosen by the same prefix 66 that picks another map column.
    let both = map != 0 && prefix == 0 && built.rows[number].has(OP16);
    let mut opcode = 0;
    while opcode < 256 {
        if opcodes[opcode] {
            built = chain(built, slot(map, prefix, opcode as u8), number);
            if both {
                built = chain(built, slot(map, 1, opcode as u8), number);
            }
        }
        opcode += 1;
    }
    built
}

const fn chain(mut built: Built, slot: usize, number: usize) -> Built {
    if built.index[slot] == 0 {
        built.index[slot] = number as u16;
        return built;
    }
    let mut last = built.index[slot] as usize;
    while built.rows[last].next != 0 && built.rows[last].next as usize != number {
        last = built.rows[last].next as usize;
    }
    assert!(
        covers(number, last),
        "a row behind another must take all opcodes of it"
    );
    built.rows[last].next = number as u16;
    built
}

/// Whether row `number` names every opcode that row `other` names.
const fn covers(number: usize, other: usize) -> bool {
    let (own, others) = (
        parse_opcodes(text(number).opcodes),
        parse_opcodes(text(other).opcodes),
    );
    let mut opcode = 0;
    while opcode < 256 {
        if others[opcode] && !own[opcode] {
            return false;
        }
        opcode += 1;
    }
    true
}

const fn text(number: usize) -> &'static Text {
    let (mut left, mut group) = (number - 1, 0);
    while left >= GROUPS[group].rows.len() {
        left -= GROUPS[group].rows.len();
        group += 1;
    }
    &GROUPS[group].rows[left]
}

pub(crate) const fn parse_map(text: &'static str) -> (usize, usize) {
    let (mut map, mut prefix, mut vex) = (0, 0, 0);
    let mut words = Words::new(text);
    while let Some(word) = words.next() {
        match word {
            b"vex" => vex = 3,
            b"66" => prefix = 1,
            b"f3" => prefix = 2,
            b"f2" => prefix = 3,
            b"0f" => map = 1,
            b"0f38" => map = 2,
            b"0f3a" => map = 3,
            _ => panic!("unknown map"),
        }
        words = words.rest();
    }
    (map + vex, prefix)
}

pub(crate) const fn parse_opcodes(text: &'static str) -> [bool; 256] {
    let mut set = [false; 256];
    let mut words = Words::new(text);
    while let Some(word) = words.next() {
        let first = hex(word[0]) * 16 + hex(word[1]);
        let mut last = first;
        if word.len() == 5 {
            last = hex(word[3]) * 16 + hex(word[4]);
        }
        let mut opcode = first;
        while opcode <= last {
            set[opcode] = true;
            opcode += 1;
        }
        words = words.rest();
    }
    set
}

const fn parse_row(text: &Text) -> Row {
    let mut row = Row::EMPTY;
    let mut words = Words::new(text.operands);
    let mut names_reg = false;
    while let Some(word) = words.next() {
        names_reg |= matches!(word[0], b'G' | b'V');
        row = parse_operand(row, word);
        words = words.rest();
    }
    words = Words::new(text.options);
    while let Some(word) = words.next() {
        row = parse_option(row, word);
        words = words.rest();
    }
    if row.digits == 0 {
        assert!(
            names_reg || !row.has(MODRM),
            "the reg field is neither an operand nor a digit"
        );
        row.digits = 0xff;
    }
    derive(row)
}

/// What the decoder asks about every instruction, in one flag each.
const fn derive(mut row: Row) -> Row {
    let choice = row.digits != 0xff
        || row.has(MEM_ONLY | REG_ONLY | RM_ZERO | RM_TWO)
        || matches!(row.kind, Kind::X87);
    let rex = row.has(MODRM | OPCODE_REGISTER | ACCUMULATOR | OP16);
    let bytes = row.has(REG_WRITE) && row.has(REG_BYTE) || row.has(RM_WRITE) && row.has(RM_BYTE);
    let intricate = row.clobbers != 0
        || bytes
        || row.has(V_WRITE)
        || (row.has(REG_WRITE) && row.has(RM_WRITE))
        || (row.has(RM_WRITE) && !row.has(RM_GPR))
        || matches!(row.kind, Kind::Shift);
    row.flags |= pick(row.has(MODRM) && choice, CHOICE) | pick(intricate, INTRICATE);
    if !rex {
        row.rex_denied |= 0x40;
    }
    if row.has(W1) {
        row.rex_demanded = 8;
    }
    row
}

const fn parse_operand(mut row: Row, word: &[u8]) -> Row {
    let size = if word.len() > 1 { word[1] } else { 0 };
    let writes = ends(word, b'=') || ends(word, b'+') || ends(word, b'!');
    let loose = ends(word, b'!');
    let reads = !ends(word, b'=');
    if size == b'v' {
        row.flags |= OP16;
    }
    if size == b'd' && writes {
        row.flags |= FIXED32;
    }
    let byte = size == b'b';
    match word[0] {
        b'E' => row.flags |= MODRM | RM_GPR,
        b'R' => row.flags |= MODRM | RM_GPR | REG_ONLY,
        b'W' => row.flags |= MODRM,
        b'U' => row.flags |= MODRM | REG_ONLY,
        b'M' => row.flags |= MODRM | MEM_ONLY,
        b'N' => row.flags |= MODRM | NO_ACCESS,
        b'Z' => row.flags |= RM_GPR | OPCODE_REGISTER,
        b'A' => row.flags |= RM_GPR | ACCUMULATOR,
        b'G' => {
            row.flags |= MODRM
                | REG_GPR
                | pick(byte, REG_BYTE)
                | pick(writes, REG_WRITE)
                | pick(loose, REG_LOOSE);
            return row;
        }
        b'V' => {
            row.flags |= MODRM;
            return row;
        }
        b'B' => {
            row.flags |= V_USED | V_GPR | pick(writes, V_WRITE);
            return row;
        }
        b'H' => {
            row.flags |= V_USED;
            return row;
        }
        b'I' | b'J' => {
            row.immediate = match (word[0], size) {
                (_, b'b') => Immediate::new(1, 1, 1),
                (b'J', b'z') => Immediate::new(4, 4, 4),
                (b'I', b'z') => Immediate::new(2, 4, 4),
                (b'I', b'v') => Immediate::new(2, 4, 8),
                _ => panic!("unknown immediate"),
            };
            return row;
        }
        _ => panic!("unknown operand"),
    }
    row.flags |=
        pick(byte, RM_BYTE) | pick(writes, RM_WRITE) | pick(loose, RM_LOOSE) | pick(reads, RM_READ);
    row
}

const fn parse_option(mut row: Row, word: &[u8]) -> Row {
    if word[0] == b'/' {
        row.digits |= 1 << (word[1] - b'0');
        return row;
    }
    if word[0] == b'=' {
        row.clobbers |= match word {
            b"=ax" => 1,
            b"=cx" => 1 << 1,
            b"=dx" => 1 << 2,
            b"=bx" => 1 << 3,
            b"=si" => 1 << 6,
            b"=di" => 1 << 7,
            _ => panic!("unknown register"),
        };
        return row;
    }
    row.flags |= match word {
        b"lock" => LOCK,
        b"rep" => REP,
        b"op16" => OP16,
        b"reg" => REG_ONLY | MODRM,
        b"mem" => MEM_ONLY,
        b"rm0" => RM_ZERO,
        b"rm2" => RM_TWO,
        b"rexb0" => {
            row.rex_denied |= 1;
            0
        }
        b"w0" => W0,
        b"w1" => W1,
        b"l0" => L0,
        b"l1" => L1,
        b"lazy" => LAZY,
        b"x87" => X87,
        b"mxcsr" => MXCSR,
        b"weak" => WEAK,
        _ => {
            row.kind = parse_kind(word);
            0
        }
    };
    row
}

const fn parse_kind(word: &[u8]) -> Kind {
    match word {
        b"is:x87" => Kind::X87,
        b"is:move" => Kind::Move,
        b"is:move-immediate" => Kind::MoveImmediate,
        b"is:add-to" => Kind::AddTo,
        b"is:add-from" => Kind::AddFrom,
        b"is:arithmetic" => Kind::Arithmetic,
        b"is:shift" => Kind::Shift,
        b"is:lea" => Kind::Lea,
        b"is:nop" => Kind::Nop,
        b"is:conditional" => Kind::Conditional,
        b"is:jump" => Kind::Jump,
        b"is:call" => Kind::Call,
        b"is:return" => Kind::Return,
        b"is:indirect" => Kind::Indirect,
        b"is:movs" => Kind::Movs,
        b"is:stos" => Kind::Stos,
        b"is:lods" => Kind::Lods,
        b"is:scas" => Kind::Scas,
        b"is:cmps" => Kind::Cmps,
        b"is:stop" => Kind::Stop,
        b"is:breakpoint" => Kind::Breakpoint,
        _ => panic!("unknown option"),
    }
}

const fn ends(word: &[u8], with: u8) -> bool {
    word[word.len() - 1] == with
}

const fn pick(condition: bool, flag: u64) -> u64 {
    if condition { flag } else { 0 }
}

const fn hex(digit: u8) -> usize {
    match digit {
        b'0'..=b'9' => (digit - b'0') as usize,
        b'a'..=b'f' => (digit - b'a' + 10) as usize,
        _ => panic!("not a hexadecimal digit"),
    }
}

/// The words of a text, for constant evaluation.
struct Words {
    text: &'static [u8],
}

impl Words {
    const fn new(text: &'static str) -> Self {
        Self {
            text: text.as_bytes(),
        }
        .trimmed()
    }

    const fn trimmed(mut self) -> Self {
        while let [b' ', tail @ ..] = self.text {
            self.text = tail;
        }
        self
    }

    const fn length(&self) -> usize {
        let mut length = 0;
        while length < self.text.len() && self.text[length] != b' ' {
            length += 1;
        }
        length
    }

    const fn next(&self) -> Option<&'static [u8]> {
        match self.length() {
            0 => None,
            length => Some(self.text.split_at(length).0),
        }
    }

    const fn rest(self) -> Self {
        let length = self.length();
        Self {
            text: self.text.split_at(length).1,
        }
        .trimmed()
    }
}
