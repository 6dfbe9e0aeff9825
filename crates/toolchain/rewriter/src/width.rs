//! How many bytes of memory an instruction accesses, for the word wall, where a check
//! must cover all of them and should cover no more.

use crate::operand::Operand;
use crate::table::Class;
use crate::unit::Instruction;

/// The bytes that the memory operand has, if the text tells.
pub(crate) fn bytes(instruction: &Instruction<'_>) -> Option<u8> {
    let name = instruction.mnemonic;
    match instruction.row.class {
        Class::Jmp | Class::Call | Class::Push | Class::Pop | Class::Leave => return Some(8),
        Class::String => return suffix(name),
        _ => {}
    }
    let vector = |o: &Operand<'_>| matches!(o, Operand::Other(register) if register.starts_with("%xmm") || register.starts_with("%ymm"));
    match name.strip_prefix('v').unwrap_or(name) {
        "ldmxcsr" | "stmxcsr" => Some(4),
        _ if name.starts_with('f') => x87(name),
        bare if name.starts_with('v')
            || name.starts_with("cvt")
            || instruction.operands.iter().any(vector) =>
        {
            Some(of_vector(instruction, bare))
        }
        _ => integer(instruction),
    }
}

fn suffix(name: &str) -> Option<u8> {
    match name.as_bytes().last()? {
        b'b' => Some(1),
        b'w' => Some(2),
        b'l' => Some(4),
        b'q' => Some(8),
        _ => None,
    }
}

/// Names without a suffix of integer instructions, whose registers are as wide as their memory.
const STEMS: &[&str] = &[
    "mov", "xchg", "add", "sub", "and", "or", "xor", "adc", "sbb", "cmp", "test", "inc", "dec",
    "neg", "not", "sal", "shl", "sar", "shr", "rol", "ror", "rcl", "rcr", "shld", "shrd", "mul",
    "imul", "div", "idiv", "bsf", "bsr", "tzcnt", "lzcnt", "popcnt", "andn", "bextr", "bzhi",
    "blsi", "blsr", "blsmsk", "pdep", "pext", "sarx", "shlx", "shrx", "rorx", "mulx", "adcx",
    "adox", "bt", "bts", "btr", "btc", "xadd", "cmpxchg", "movbe", "movnti",
];

fn integer(instruction: &Instruction<'_>) -> Option<u8> {
    let name = instruction.mnemonic;
    match name {
        "movsbw" | "movsbl" | "movsbq" | "movzbw" | "movzbl" | "movzbq" | "movzb" | "movsb" => {
            return Some(1);
        }
        "movswl" | "movswq" | "movzwl" | "movzwq" | "movzw" | "movsw" => return Some(2),
        "movslq" => return Some(4),
        "cmpxchg8b" => return Some(8),
        "cmpxchg16b" => return Some(16),
        "crc32b" | "crc32w" | "crc32l" | "crc32q" => return suffix(name),
        _ if name.starts_with("set") => return Some(1),
        _ => {}
    }
    let shifts = ["sal", "shl", "sar", "shr", "rol", "ror", "rcl", "rcr"];
    let mut operands = instruction.operands.iter();
    let register = match operands.next() {
        // The count of a shift says nothing.
        Some(Operand::Gpr(_)) if shifts.iter().any(|stem| name.starts_with(stem)) => {
            operands.next()
        }
        first => first,
    };
    let register = register
        .into_iter()
        .chain(operands)
        .filter_map(|operand| match operand {
            Operand::Gpr(register) => Some(register.width),
            _ => None,
        });
    // `shldl %cl, %eax, (%rdx)`: the register in front of the memory counts.
    let register = register.reduce(|_, later| later);
    if name.starts_with("cmov") || STEMS.contains(&name) {
        return register;
    }
    let stem = &name[..name.len().saturating_sub(1)];
    STEMS.contains(&stem).then(|| suffix(name)).flatten()
}

fn x87(name: &str) -> Option<u8> {
    match name {
        "fldt" | "fstpt" => return Some(10),
        "fldcw" | "fnstcw" | "fstcw" | "fnstsw" | "fstsw" => return Some(2),
        "fldenv" | "fnstenv" | "fstenv" => return Some(28),
        _ => {}
    }
    const INTEGERS: [&str; 12] = [
        "fild", "fist", "fistp", "fisttp", "fiadd", "fisub", "fisubr", "fimul", "fidiv", "fidivr",
        "ficom", "ficomp",
    ];
    const FLOATS: [&str; 11] = [
        "fld", "fst", "fstp", "fadd", "fsub", "fsubr", "fmul", "fdiv", "fdivr", "fcom", "fcomp",
    ];
    let ending = |stems: &[&str]| {
        let found = stems.iter().filter_map(|stem| name.strip_prefix(stem));
        found.min_by_key(|rest| rest.len())
    };
    match (ending(&INTEGERS), ending(&FLOATS)) {
        (Some("s"), _) => Some(2),
        (Some("l"), _) => Some(4),
        (Some("q" | "ll"), _) => Some(8),
        (None, Some("s")) => Some(4),
        (None, Some("l")) => Some(8),
        _ => None,
    }
}

/// `name` is the mnemonic without its `v`.
fn of_vector(instruction: &Instruction<'_>, name: &str) -> u8 {
    let wide =
        |o: &Operand<'_>| matches!(o, Operand::Other(register) if register.starts_with("%ymm"));
    let wide = instruction.operands.iter().any(wide);
    let full = if wide { 32 } else { 16 };
    let by_letter = |letter: Option<&u8>| match letter {
        Some(b'b') => 1,
        Some(b'w') => 2,
        Some(b'd') => 4,
        _ => 8,
    };
    let last = name.as_bytes().last();
    match name {
        "movd" | "extractps" | "insertps" | "broadcastss" => 4,
        "movq" | "movlps" | "movhps" | "movlpd" | "movhpd" | "broadcastsd" => 8,
        "broadcastf128" | "broadcasti128" | "insertf128" | "inserti128" | "extractf128"
        | "extracti128" => 16,
        "movddup" if !wide => 8,
        "cvtdq2pd" | "cvtps2pd" | "cvtph2ps" | "cvtps2ph" => full / 2,
        "cvtpd2psy" | "cvtpd2dqy" | "cvttpd2dqy" => 32,
        "pinsrb" | "pinsrw" | "pinsrd" | "pinsrq" | "pextrb" | "pextrw" | "pextrd" | "pextrq"
        | "pbroadcastb" | "pbroadcastw" | "pbroadcastd" | "pbroadcastq" => by_letter(last),
        "psllw" | "pslld" | "psllq" | "psrlw" | "psrld" | "psrlq" | "psraw" | "psrad" => 16,
        _ if name.starts_with("pmovsx") || name.starts_with("pmovzx") => match &name[6..] {
            "bq" => full / 8,
            "bd" | "wq" => full / 4,
            _ => full / 2,
        },
        _ if name.starts_with("cvtsi2s") => {
            if name.ends_with('q') {
                8
            } else {
                4
            }
        }
        _ if name.starts_with("cvtss2") || name.starts_with("cvttss2") => 4,
        _ if name.starts_with("cvtsd2") || name.starts_with("cvttsd2") => 8,
        _ if name.starts_with('p') => full,
        _ if name.ends_with("ss") => 4,
        _ if name.ends_with("sd") => 8,
        _ => full,
    }
}
