//! How many bytes an instruction that was written out will take.
//!
//! An estimate for what is a matter of speed only (`pad`): it may be high by a
//! few bytes, never low, but for branches. They are taken to be short (`BRANCH_GROWTH`).

use crate::operand::{Gpr, Mem, Operand, Segment, integer, number, operand, split_operands};

/// How much longer a branch is that does not reach its target by a byte: at most, in bytes.
pub(crate) const BRANCH_GROWTH: u32 = 4;
/// What an instruction that is not understood is taken for, in bytes.
const UNKNOWN: u32 = 9;

/// The length of one instruction, in bytes; `text` is a statement of assembler without label.
pub(crate) fn length(text: &str) -> u32 {
    let mut rest = text.trim();
    let mut prefixes = 0;
    let (mnemonic, arguments) = loop {
        let (word, behind) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        if !matches!(word, "lock" | "rep" | "repe" | "repz" | "repne" | "repnz") {
            break (word, behind);
        }
        prefixes += 1;
        rest = behind.trim_start();
    };
    let branches = mnemonic.starts_with('j') || mnemonic.starts_with("call");
    let mut operands = [const { None }; 4];
    for (place, text) in operands.iter_mut().zip(split_operands(arguments)) {
        match operand(text, branches) {
            Ok(operand) => *place = Some(operand),
            Err(_) => return UNKNOWN,
        }
    }
    let operands: Vec<Operand<'_>> = operands.into_iter().flatten().collect();
    prefixes + encoded(mnemonic, &operands)
}

fn encoded(mnemonic: &str, operands: &[Operand<'_>]) -> u32 {
    match operands {
        [] if mnemonic.ends_with("fence") => return 3,
        [] if mnemonic.starts_with('f') || mnemonic.ends_with('q') || mnemonic == "ud2" => {
            return 2;
        }
        [] => return 1,
        [Operand::Target(_)] => return if mnemonic.starts_with("call") { 5 } else { 2 },
        [Operand::Imm(_), Operand::Gpr(r)] if mnemonic.starts_with("mov") => {
            return move_immediate(mnemonic, operands, *r);
        }
        _ => {}
    }
    let vector = operands.iter().any(|o| matches!(o, Operand::Other(_)));
    let opcode = if mnemonic.starts_with('v') {
        4
    } else if mnemonic.starts_with('f') {
        return 2 + extension_prefix("", operands) + operands.iter().map(memory).sum::<u32>();
    } else if vector {
        vector_opcode(mnemonic)
    } else {
        1 + u32::from(is_two_byte(mnemonic, operands))
    };
    let modrm = u32::from(!mnemonic.starts_with("bswap"));
    opcode
        + modrm
        + narrow_prefix(mnemonic, operands)
        + extension_prefix(mnemonic, operands)
        + operands.iter().map(memory).sum::<u32>()
        + immediate(mnemonic, operands)
}

/// `mov` of a constant to a register has forms of its own.
fn move_immediate(mnemonic: &str, operands: &[Operand<'_>], to: Gpr) -> u32 {
    match (mnemonic, to.width) {
        ("movabs" | "movabsq", _) => 10,
        (_, 8) => 7,
        (_, width) => {
            1 + u32::from(width) + u32::from(width == 2) + extension_prefix(mnemonic, operands)
        }
    }
}

/// Opcode of a vector instruction with its mandatory prefix, which a few lack.
fn vector_opcode(mnemonic: &str) -> u32 {
    let long = [
        "pshufb", "pmul", "pmax", "pmin", "phadd", "pabs", "palign", "round", "ptest", "pext",
        "pins", "insert", "blend", "pblend", "pmov", "pcmpeqq", "pcmpgtq", "packusdw", "aes",
        "sha", "pclmul", "crc32", "dpp", "mpsad", "movntdqa",
    ];
    if long.iter().any(|name| mnemonic.starts_with(name)) {
        4
    } else {
        3 - u32::from(mnemonic.ends_with("ps") && !mnemonic.starts_with("cvt"))
    }
}

/// Integer instructions behind the escape byte `0f`.
fn is_two_byte(mnemonic: &str, operands: &[Operand<'_>]) -> bool {
    const NAMES: [&str; 15] = [
        "movz", "cmov", "set", "bt", "bs", "shld", "shrd", "xadd", "cmpxchg", "popcnt", "tzcnt",
        "lzcnt", "nop", "prefetch", "ud1",
    ];
    let sign_extends = matches!(
        mnemonic,
        "movsbw" | "movsbl" | "movsbq" | "movswl" | "movswq"
    );
    sign_extends
        || NAMES.iter().any(|name| mnemonic.starts_with(name))
        || (mnemonic.starts_with("imul")
            && matches!(
                operands,
                [Operand::Gpr(_) | Operand::Mem(_), Operand::Gpr(_)]
            ))
}

/// The prefix for 16-bit operands, and the mandatory one of bit counts.
fn narrow_prefix(mnemonic: &str, operands: &[Operand<'_>]) -> u32 {
    let narrow = operands
        .iter()
        .any(|o| matches!(o, Operand::Gpr(r) if r.width == 2));
    let counts = ["popcnt", "tzcnt", "lzcnt", "crc32", "adcx", "adox", "movbe"]
        .iter()
        .any(|name| mnemonic.starts_with(name));
    u32::from(counts) + u32::from(narrow || mnemonic.ends_with('w'))
}

/// The REX prefix, which VEX has room for.
fn extension_prefix(mnemonic: &str, operands: &[Operand<'_>]) -> u32 {
    let needed = operands.iter().any(|operand| match operand {
        Operand::Gpr(r) => {
            r.width == 8 || r.number >= 8 || (r.width == 1 && !r.high && r.number >= 4)
        }
        Operand::ThroughGpr(r) => r.number >= 8,
        Operand::Mem(mem) | Operand::ThroughMem(mem) => mem.registers() >> 8 != 0,
        Operand::Other(name) => name.len() > 5 || matches!(*name, "%xmm8" | "%xmm9"),
        Operand::Imm(_) | Operand::Target(_) => false,
    });
    let wide = mnemonic.ends_with('q')
        && !operands.iter().any(|o| matches!(o, Operand::Other(_)))
        && !mnemonic.starts_with(['j', 'c'])
        || mnemonic == "cmpq";
    u32::from((needed || wide) && !mnemonic.starts_with('v'))
}

/// What a memory operand adds to its ModRM byte.
fn memory(operand: &Operand<'_>) -> u32 {
    let (Operand::Mem(mem) | Operand::ThroughMem(mem)) = operand else {
        return 0;
    };
    let segment = if mem.segment == Some(Segment::Gs) {
        2
    } else {
        0
    };
    segment + scale_index(mem) + displacement(mem)
}

fn scale_index(mem: &Mem<'_>) -> u32 {
    let needs = mem.index.is_some()
        || mem.base.is_some_and(|b| b.number & 7 == number::RSP)
        || (mem.base.is_none() && !mem.rip);
    u32::from(needs)
}

fn displacement(mem: &Mem<'_>) -> u32 {
    let Some(base) = mem.base else { return 4 };
    match mem.number() {
        Some(0) => u32::from(base.number & 7 == number::RBP),
        Some(n) if i8::try_from(n).is_ok() => 1,
        _ => 4,
    }
}

fn immediate(mnemonic: &str, operands: &[Operand<'_>]) -> u32 {
    let Some(Operand::Imm(text)) = operands.first() else {
        return 0;
    };
    let value = integer(text);
    let width = operands.iter().rev().find_map(|o| match o {
        Operand::Gpr(r) => Some(u32::from(r.width)),
        Operand::Other(_) => Some(1),
        _ => None,
    });
    let width = width.unwrap_or(match mnemonic.as_bytes().last() {
        Some(b'b') => 1,
        Some(b'w') => 2,
        _ => 4,
    });
    let shifts = ["sa", "sh", "ro", "rc", "bt"]
        .iter()
        .any(|name| mnemonic.starts_with(name));
    let has_short_form = !mnemonic.starts_with("test") && !mnemonic.starts_with("mov");
    let short = value.is_some_and(|v| {
        i8::try_from(v).is_ok() || (width == 4 && i8::try_from(v as u32 as i32).is_ok())
    });
    if shifts || width == 1 || (has_short_form && short) {
        1
    } else {
        width.min(4)
    }
}

#[cfg(test)]
mod tests {
    use super::length;
    use std::collections::HashMap;
    use std::process::Command;

    /// Bytes that the assembler makes of each line, by its number from 0.
    fn assembled(text: &str) -> HashMap<usize, u32> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let source = directory.path().join("x.s");
        std::fs::write(&source, text).expect("a temporary file");
        let output = Command::new("as")
            .args(["-W", "-aln", "--listing-lhs-width=4", "-o"])
            .arg(directory.path().join("x.o"))
            .arg(&source)
            .output()
            .expect("the assembler");
        assert!(output.status.success(), "{output:?}");
        let mut lengths = HashMap::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            // "  12 0003 65678B03 <tab>text": number, address, bytes in groups of four.
            let head = line.split('\t').next().unwrap_or_default();
            let mut fields = head.split_whitespace();
            let Some(number) = fields.next().and_then(|n| n.parse::<usize>().ok()) else {
                continue;
            };
            let digits: usize = fields.skip(1).map(str::len).sum();
            *lengths.entry(number - 1).or_default() += digits as u32 / 2;
        }
        lengths
    }

    #[test]
    fn estimates_are_not_low_and_hardly_high() {
        let programs = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/");
        let (mut estimated, mut real, mut low) = (0, 0, Vec::new());
        for name in ["control.c", "memory.c", "numbers.c", "assembly.c"] {
            let output = Command::new("gcc")
                .args([
                    "-O3",
                    "-w",
                    "-fPIE",
                    "-ffixed-r11",
                    "-ffixed-r14",
                    "-ffixed-r15",
                ])
                .args([
                    "-fcf-protection=none",
                    "-fno-stack-protector",
                    "-S",
                    "-o",
                    "-",
                ])
                .arg(format!("{programs}{name}"))
                .output()
                .expect("the compiler");
            let source = String::from_utf8(output.stdout).expect("assembler text");
            let text = crate::rewrite(&source, name, &crate::Options::default())
                .expect("rewritten")
                .text;
            let lengths = assembled(&text);
            for (number, line) in text.lines().enumerate() {
                let statement = line.trim();
                let code = line.starts_with('\t') && !statement.starts_with(['.', '#', 'j']);
                if let Some(&bytes) = lengths.get(&number).filter(|&&n| code && n > 0) {
                    let estimate = length(statement);
                    if estimate < bytes {
                        low.push(format!("{statement}: {estimate} for {bytes}"));
                    }
                    estimated += estimate;
                    real += bytes;
                }
            }
        }
        assert!(low.is_empty(), "too low:\n{}", low.join("\n"));
        assert!(real > 10_000, "{real} bytes are few");
        assert!(
            estimated * 100 <= real * 102,
            "{estimated} for {real} bytes"
        );
    }
}
