//! Registers and operands, read from AT&T syntax and written back.

use std::fmt;

/// A set of general registers (bits 0 to 15, by their hardware numbers) and status flags.
pub(crate) type Set = u32;
/// The status flags as members of a [`Set`], in this order from bit 16 on: carry, parity, adjust,
/// zero, sign, overflow.
pub(crate) const FLAG_LETTERS: &str = "cpazso";
/// Two of them.
pub(crate) const ADJUST: Set = 1 << 18;
pub(crate) const OVERFLOW: Set = 1 << 21;
/// All status flags.
pub(crate) const FLAGS: Set = 0x3f << 16;

/// Hardware numbers of the registers that the rewriter names.
pub(crate) mod number {
    pub(crate) const RAX: u8 = 0;
    pub(crate) const RCX: u8 = 1;
    pub(crate) const RSP: u8 = 4;
    pub(crate) const RBP: u8 = 5;
    pub(crate) const R10: u8 = 10;
    pub(crate) const R11: u8 = 11;
    pub(crate) const R14: u8 = 14;
    pub(crate) const R15: u8 = 15;
}

/// A general register seen at one of its widths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gpr {
    /// Hardware number, 0 to 15.
    pub(crate) number: u8,
    /// Bytes: 1, 2, 4 or 8.
    pub(crate) width: u8,
    /// `%ah` and its like: bits 8 to 15, not usable beside a REX prefix.
    pub(crate) high: bool,
}

impl Gpr {
    pub(crate) const fn new(number: u8, width: u8) -> Self {
        Self {
            number,
            width,
            high: false,
        }
    }

    pub(crate) const fn bit(self) -> Set {
        1 << self.number
    }
}

const NAMES: [[&str; 4]; 16] = [
    ["al", "ax", "eax", "rax"],
    ["cl", "cx", "ecx", "rcx"],
    ["dl", "dx", "edx", "rdx"],
    ["bl", "bx", "ebx", "rbx"],
    ["spl", "sp", "esp", "rsp"],
    ["bpl", "bp", "ebp", "rbp"],
    ["sil", "si", "esi", "rsi"],
    ["dil", "di", "edi", "rdi"],
    ["r8b", "r8w", "r8d", "r8"],
    ["r9b", "r9w", "r9d", "r9"],
    ["r10b", "r10w", "r10d", "r10"],
    ["r11b", "r11w", "r11d", "r11"],
    ["r12b", "r12w", "r12d", "r12"],
    ["r13b", "r13w", "r13d", "r13"],
    ["r14b", "r14w", "r14d", "r14"],
    ["r15b", "r15w", "r15d", "r15"],
];
const HIGH: [&str; 4] = ["ah", "ch", "dh", "bh"];

impl fmt::Display for Gpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.high {
            HIGH[usize::from(self.number)]
        } else {
            NAMES[usize::from(self.number)][self.width.trailing_zeros() as usize]
        };
        write!(f, "%{name}")
    }
}

/// The general register of this name (without `%`).
pub(crate) fn gpr(name: &str) -> Option<Gpr> {
    let b = name.as_bytes();
    if b.len() < 2 || b.len() > 4 {
        return None;
    }
    if b[0] == b'r' && b[1].is_ascii_digit() {
        let (digits, width) = match b[b.len() - 1] {
            b'b' => (&name[1..name.len() - 1], 1),
            b'w' => (&name[1..name.len() - 1], 2),
            b'd' => (&name[1..name.len() - 1], 4),
            _ => (&name[1..], 8),
        };
        let number = digits.parse::<u8>().ok().filter(|n| (8..16).contains(n))?;
        return Some(Gpr::new(number, width));
    }
    let (letters, width) = match (b.len(), b[0]) {
        (3, b'r') => (&name[1..], 8),
        (3, b'e') => (&name[1..], 4),
        (2, _) => (name, 2),
        (3, _) if b[2] == b'l' => (&name[..2], 1),
        _ => return None,
    };
    if let Some(number) = (0_u8..8).find(|&n| NAMES[usize::from(n)][1] == letters) {
        // "spl" and its like exist from the fifth register on; "axl" does not.
        return (width != 1 || number >= 4).then_some(Gpr::new(number, width));
    }
    if width != 2 {
        return None;
    }
    if let Some(number) = (0_u8..4).find(|&n| NAMES[usize::from(n)][0] == letters) {
        return Some(Gpr::new(number, 1));
    }
    (0_u8..4)
        .find(|&n| HIGH[usize::from(n)] == letters)
        .map(|number| Gpr {
            number,
            width: 1,
            high: true,
        })
}

/// Whether this is the name of a vector, x87 or MMX register, none of which needs watching.
fn is_other_register(name: &str) -> bool {
    let numbered = |prefix: &str, below: u8| {
        name.strip_prefix(prefix)
            .and_then(|n| n.parse::<u8>().ok())
            .is_some_and(|n| n < below)
    };
    numbered("xmm", 16)
        || numbered("ymm", 16)
        || name == "st"
        || name
            .strip_prefix("st(")
            .and_then(|n| n.strip_suffix(')'))
            .is_some_and(|n| matches!(n.parse::<u8>(), Ok(0..8)))
}

/// A segment override as written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Segment {
    /// `%fs`: thread-locals.
    Fs,
    /// `%ds`, `%ss`, `%es`, `%cs`: without effect in 64-bit code, except for encoding.
    Flat,
    /// `%gs`: the window's own.
    Gs,
}

/// `segment:disp(base,index,scale)`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mem<'a> {
    pub(crate) segment: Option<Segment>,
    /// The displacement as written; empty if none.
    pub(crate) disp: &'a str,
    pub(crate) base: Option<Gpr>,
    pub(crate) index: Option<Gpr>,
    /// 1, 2, 4 or 8.
    pub(crate) scale: u8,
    /// `(%rip)`
    pub(crate) rip: bool,
}

impl Mem<'_> {
    /// The general registers that the address is made of.
    pub(crate) fn registers(&self) -> Set {
        self.base.map_or(0, Gpr::bit) | self.index.map_or(0, Gpr::bit)
    }

    /// The function that `*f@GOTPCREL(%rip)` means: the image has no other copy of it.
    pub(crate) fn got_symbol(&self) -> Option<&str> {
        let plain = self.rip && self.segment != Some(Segment::Fs);
        self.disp.strip_suffix("@GOTPCREL").filter(|_| plain)
    }

    /// The displacement if it is a plain number.
    pub(crate) fn number(&self) -> Option<i64> {
        if self.disp.is_empty() {
            Some(0)
        } else {
            integer(self.disp)
        }
    }
}

/// An operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operand<'a> {
    Gpr(Gpr),
    /// Vector, x87 or MMX register, with its `%`.
    Other(&'a str),
    /// `$expression`, without the dollar.
    Imm(&'a str),
    Mem(Mem<'a>),
    /// `*%reg`
    ThroughGpr(Gpr),
    /// `*mem`
    ThroughMem(Mem<'a>),
    /// What a direct branch names.
    Target(&'a str),
}

/// Why an operand could not be read.
pub(crate) type Unreadable = &'static str;

/// Reads one operand; `direct` for the bare operand of a branch.
pub(crate) fn operand(text: &str, direct: bool) -> Result<Operand<'_>, Unreadable> {
    match text.as_bytes().first() {
        None => Err("an operand is missing"),
        Some(b'$') => Ok(Operand::Imm(text[1..].trim())),
        Some(b'*') => match operand(text[1..].trim_start(), false)? {
            Operand::Gpr(register) => Ok(Operand::ThroughGpr(register)),
            Operand::Mem(mem) => Ok(Operand::ThroughMem(mem)),
            _ => Err("no such target of an indirect branch"),
        },
        Some(b'%') => {
            let name = &text[1..];
            if let Some(register) = gpr(name) {
                return Ok(if direct {
                    Operand::ThroughGpr(register)
                } else {
                    Operand::Gpr(register)
                });
            }
            if is_other_register(name) {
                return Ok(Operand::Other(text));
            }
            let Some((segment, rest)) = name.split_once(':') else {
                return Err(
                    "a register that extensions may not use; general registers, xmm0 to xmm15 and ymm0 to ymm15 remain (no MMX, no AVX-512)",
                );
            };
            let segment = match segment.trim() {
                "fs" => Segment::Fs,
                "gs" => Segment::Gs,
                "ds" | "es" | "ss" | "cs" => Segment::Flat,
                _ => return Err("no such segment register"),
            };
            Ok(Operand::Mem(Mem {
                segment: Some(segment),
                ..memory(rest.trim())?
            }))
        }
        Some(_) if direct && !text.ends_with(')') => Ok(Operand::Target(text)),
        Some(_) => {
            let mem = memory(text)?;
            Ok(if direct {
                Operand::ThroughMem(mem)
            } else {
                Operand::Mem(mem)
            })
        }
    }
}

fn memory(text: &str) -> Result<Mem<'_>, Unreadable> {
    let mut mem = Mem {
        segment: None,
        disp: text,
        base: None,
        index: None,
        scale: 1,
        rip: false,
    };
    if text.contains(['{', '"']) {
        return Err("no such memory operand is known");
    }
    let Some(inner) = text.strip_suffix(')') else {
        return Ok(mem);
    };
    let open = inner.rfind('(').ok_or("unbalanced parentheses")?;
    let inner = inner[open + 1..].trim();
    if !inner.starts_with(['%', ',']) {
        return Ok(mem);
    }
    mem.disp = text[..open].trim();
    let mut parts = inner.split(',').map(str::trim);
    let base = parts.next().unwrap_or("");
    match base {
        "" => {}
        "%rip" => mem.rip = true,
        _ => mem.base = Some(address_register(base)?),
    }
    if let Some(index) = parts
        .next()
        .filter(|i| !i.is_empty() && *i != "%eiz" && *i != "%riz")
    {
        mem.index = Some(address_register(index)?);
    }
    if let Some(scale) = parts.next().filter(|s| !s.is_empty()) {
        mem.scale = match scale {
            "1" => 1,
            "2" => 2,
            "4" => 4,
            "8" => 8,
            _ => return Err("no such scale"),
        };
    }
    if parts.next().is_some() || (mem.rip && mem.index.is_some()) {
        return Err("no such memory operand is known");
    }
    Ok(mem)
}

fn address_register(text: &str) -> Result<Gpr, Unreadable> {
    text.strip_prefix('%')
        .and_then(gpr)
        .filter(|r| r.width >= 4)
        .ok_or("an address register that is not a general register (gathers are not supported)")
}

/// Splits at the commas outside of parentheses and quotes.
pub(crate) fn split_operands(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text).filter(|t| !t.trim().is_empty());
    std::iter::from_fn(move || {
        let text = rest?;
        let (mut depth, mut quoted) = (0, false);
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                b'"' => quoted = !quoted,
                b'(' if !quoted => depth += 1,
                b')' if !quoted => depth -= 1,
                b',' if depth == 0 && !quoted => {
                    rest = Some(&text[at + 1..]);
                    return Some(text[..at].trim());
                }
                _ => {}
            }
        }
        rest = None;
        Some(text.trim())
    })
}

/// The value of an integer expression of gas made of numbers, signs and sums.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Some(value) = text
        .parse::<i64>()
        .ok()
        .filter(|_| !text.trim_start_matches('-').starts_with('0') || text == "0")
    {
        return Some(value);
    }
    if let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
        return integer(inner);
    }
    if let Some(character) = text.strip_prefix('\'') {
        let mut characters = character.chars();
        return match (characters.next()?, characters.as_str()) {
            (c, "" | "'") if c != '\\' => Some(i64::from(u32::from(c))),
            _ => None,
        };
    }
    let unsigned = |t: &str| -> Option<u64> {
        let t = t.trim();
        if let Some(hex) = t.strip_prefix("0x").or_else(|| t.strip_prefix("0X")) {
            return u64::from_str_radix(hex, 16).ok();
        }
        if t.len() > 1 && t.starts_with('0') {
            return u64::from_str_radix(t, 8).ok();
        }
        t.parse::<u64>().ok()
    };
    if let Some(value) = unsigned(text) {
        return Some(value.cast_signed());
    }
    // A sum: split at the last sign that is not the first character.
    if let Some(at) = text.rfind(['+', '-']).filter(|&at| at > 0) {
        let left = integer(&text[..at])?;
        let right = unsigned(&text[at + 1..])?.cast_signed();
        return Some(if text.as_bytes()[at] == b'+' {
            left.wrapping_add(right)
        } else {
            left.wrapping_sub(right)
        });
    }
    match text.as_bytes().first()? {
        b'-' => Some(unsigned(&text[1..])?.cast_signed().wrapping_neg()),
        b'+' => Some(unsigned(&text[1..])?.cast_signed()),
        b'~' => Some(!unsigned(&text[1..])?.cast_signed()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_register_is_read_and_written() {
        for (number, names) in NAMES.iter().enumerate() {
            for (width, name) in names.iter().enumerate() {
                let register = gpr(name).expect(name);
                assert_eq!(
                    (usize::from(register.number), register.width),
                    (number, 1 << width)
                );
                assert_eq!(register.to_string(), format!("%{name}"));
            }
        }
        for name in HIGH {
            assert_eq!(gpr(name).expect(name).to_string(), format!("%{name}"));
        }
        for name in ["rip", "axl", "r16", "r7", "eal", "st", "cr0", "eaxx", "r8x"] {
            assert_eq!(gpr(name), None, "{name}");
        }
    }

    #[test]
    fn memory_operands() {
        let Ok(Operand::Mem(mem)) = operand("4+x(%rax , %rbx, 8)", false) else {
            panic!()
        };
        assert_eq!((mem.disp, mem.scale, mem.registers()), ("4+x", 8, 0b1001));
        let Ok(Operand::Mem(mem)) = operand("%fs:x@tpoff", false) else {
            panic!()
        };
        assert_eq!((mem.disp, mem.segment), ("x@tpoff", Some(Segment::Fs)));
        let Ok(Operand::ThroughMem(mem)) = operand("*(,%rax,8)", true) else {
            panic!()
        };
        assert_eq!((mem.base, mem.scale), (None, 8));
        assert!(operand("(%rax,%xmm0)", false).is_err());
        assert!(operand("%cr0", false).is_err());
    }

    #[test]
    fn integers() {
        for (text, value) in [
            ("-8", -8),
            ("0x10", 16),
            ("010", 8),
            ("4-12", -8),
            ("1+2+3", 6),
            ("-1+0x4", 3),
            ("(5)", 5),
            ("'A", 65),
            ("~3", -4),
            ("0xffffffffffffffff", -1),
        ] {
            assert_eq!(integer(text), Some(value), "{text}");
        }
        for text in ["x", "x+1", "1f", "", "-"] {
            assert_eq!(integer(text), None, "{text}");
        }
    }

    #[test]
    fn operands_split_outside_of_parentheses() {
        assert_eq!(
            split_operands("$1, (%rax,%rbx) , %cl").collect::<Vec<_>>(),
            ["$1", "(%rax,%rbx)", "%cl"]
        );
        assert_eq!(split_operands(" ").count(), 0);
    }
}
