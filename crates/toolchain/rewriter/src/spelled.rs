//! Instructions that somebody spelled as bytes, because an assembler of that day did not know them by name
//! (`.byte 0x0f, 0x01, 0xd0` for `xgetbv`). They are decoded, and go the way of all others.
//!
//! Bytes may be a table as well, which the code reads (`.byte 1, 0` is also `addl %eax, (%rax)`). So only bytes that
//! control reaches are decoded: from the instruction in front of them, or by a label that is called or jumped to.
//!
//! A wrong decoding is a wrong program, and no hole: the verifier reads what comes out of the assembler.

use crate::operand::{Operand, integer};
use crate::table::Class;
use crate::unit::{Item, Unit};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Formatter, GasFormatter, Instruction};

/// A `.byte` in an executable section, or another directive of whole numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a> {
    /// The directive's name: a piece of the source.
    pub(crate) name: &'a str,
    /// What stands behind it: a later piece of the same statement.
    pub(crate) arguments: &'a str,
    /// Where it stands among the unit's items: two with one number follow each other.
    pub(crate) place: usize,
    /// Its section.
    pub(crate) section: usize,
}

/// A run of bytes as instructions.
struct Named {
    /// Separated by `;`.
    text: String,
    /// Whether control goes on behind it.
    goes_on: bool,
}

/// `source` with each run of bytes that are whole instructions written by name, on the same lines. `None` if no run is.
pub(crate) fn by_name(source: &str, unit: &Unit<'_>) -> Option<String> {
    let mut text = String::with_capacity(source.len() + 64);
    let mut kept = 0;
    let mut before = None;
    for run in unit.bytes.chunk_by(|one, next| one.place == next.place) {
        let [first, ..] = run else {
            continue;
        };
        let reached = is_reached(unit, first, before);
        let named = match bytes_of(run) {
            Some(bytes) if reached => prefix(&bytes, unit, first).or_else(|| decoded(&bytes)),
            // A return that nothing reaches, as some generators write behind each function.
            Some(bytes) if matches!(bytes.as_slice(), [0xf3, 0xc3] | [0xc3]) => decoded(&bytes),
            _ => None,
        };
        let Some(named) = named else {
            continue;
        };
        before = named.goes_on.then_some(first.place);
        let mut named = Some(named.text);
        for piece in run {
            let begin = offset(source, piece.name)?;
            let end = offset(source, piece.arguments)? + piece.arguments.len();
            text.push_str(source.get(kept..begin)?);
            text.push_str(&named.take().unwrap_or_default());
            kept = end;
        }
    }
    if kept == 0 {
        return None;
    }
    text.push_str(source.get(kept..)?);
    Some(text)
}

/// Where a piece of `source` begins in it.
fn offset(source: &str, piece: &str) -> Option<usize> {
    (piece.as_ptr() as usize).checked_sub(source.as_ptr() as usize)
}

/// Whether control reaches a run of bytes. `before` is the place of the latest run that is code and goes on.
fn is_reached(unit: &Unit<'_>, run: &Bytes<'_>, before: Option<usize>) -> bool {
    for at in (0..run.place).rev() {
        let other = at + 1 < run.place;
        let bytes = |place| unit.bytes.binary_search_by_key(&place, |it| it.place);
        if other && bytes(at + 1).is_ok() {
            return before == Some(at + 1);
        }
        let Some((item, section, _)) = unit.items.get(at) else {
            return false;
        };
        if *section != run.section {
            continue;
        }
        match item {
            Item::Instruction(position) => {
                return unit
                    .instructions
                    .get(*position)
                    .is_some_and(|i| !i.ends_path());
            }
            Item::Label(id) => {
                let label = &unit.labels[unit.resolve(*id)];
                if label.called || label.jumped_to || label.function {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// How many bytes one number of a directive is.
pub(crate) fn width(name: &str) -> Option<usize> {
    match name {
        ".byte" => Some(1),
        ".2byte" | ".short" | ".hword" | ".value" | ".word" => Some(2),
        ".4byte" | ".long" | ".int" => Some(4),
        ".8byte" | ".quad" => Some(8),
        _ => None,
    }
}

/// The bytes of a run, if all are numbers.
fn bytes_of(run: &[Bytes<'_>]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for piece in run {
        let width = width(piece.name)?;
        for argument in piece.arguments.split(',') {
            let value = integer(argument.trim())?;
            let whole = value.to_le_bytes();
            let (kept, rest) = whole.split_at(width);
            let negative = value < 0 && kept.last().is_some_and(|byte| *byte >= 0x80);
            let sign = if negative { 0xff } else { 0 };
            if rest.iter().any(|byte| *byte != sign) {
                return None;
            }
            bytes.extend(kept);
        }
    }
    Some(bytes)
}

/// A prefix in front of an instruction that is written by name.
fn prefix(bytes: &[u8], unit: &Unit<'_>, run: &Bytes<'_>) -> Option<Named> {
    let behind = unit.items[run.place..].iter();
    let mut behind = behind.filter(|(_, section, _)| *section == run.section);
    let next = behind.find_map(|(item, ..)| match item {
        Item::Instruction(position) => unit.instructions.get(*position),
        _ => None,
    })?;
    let registers =
        |it: &Operand<'_>| matches!(it, Operand::Gpr(_) | Operand::Other(_) | Operand::Imm(_));
    let text = match bytes {
        [0xf0] => "lock",
        // Of addresses of 32 bits: it fills room where there is no address.
        [0x67, ..] if bytes.iter().all(|byte| *byte == 0x67) => {
            if next.operands.is_empty() || !next.operands.iter().all(registers) {
                return None;
            }
            ""
        }
        // What processors of long ago took for a hint.
        [0x2e | 0x3e] if next.row.class == Class::Jcc => "",
        _ => return None,
    };
    Some(Named {
        text: text.to_owned(),
        goes_on: true,
    })
}

/// The instructions that bytes are, or `None` if they are anything else than whole instructions that mean the same
/// anywhere.
fn decoded(bytes: &[u8]) -> Option<Named> {
    let mut formatter = GasFormatter::new();
    let options = formatter.options_mut();
    options.set_gas_show_mnemonic_size_suffix(true);
    options.set_uppercase_hex(false);
    options.set_branch_leading_zeros(false);
    options.set_show_branch_size(false);
    options.set_use_pseudo_ops(false);
    let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
    let mut text = String::new();
    let mut goes_on = true;
    while decoder.can_decode() {
        let instruction = decoder.decode();
        if !text.is_empty() {
            text.push_str("; ");
        }
        if !is_the_same_anywhere(&instruction) {
            return None;
        }
        goes_on = instruction.flow_control() == FlowControl::Next;
        match instruction.flow_control() {
            // With a prefix of no meaning, for processors of long ago.
            FlowControl::Return => text.push_str("ret"),
            // Their operands are always the same, and are left out.
            _ if instruction.is_string_instruction() => {
                let mut whole = String::new();
                formatter.format(&instruction, &mut whole);
                let operands = whole.find(['(', '%']).unwrap_or(whole.len());
                text.push_str(whole[..operands].trim_end());
            }
            _ => formatter.format(&instruction, &mut text),
        }
    }
    (!text.is_empty()).then_some(Named { text, goes_on })
}

/// Neither nonsense nor anything that is told by the distance from here.
fn is_the_same_anywhere(instruction: &Instruction) -> bool {
    let plain = match instruction.flow_control() {
        FlowControl::Next | FlowControl::Exception => true,
        FlowControl::Return => instruction.op_count() == 0,
        _ => false,
    };
    plain && !instruction.is_invalid() && !instruction.is_ip_rel_memory_operand()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser;

    fn named(arguments: &str) -> Option<String> {
        let run = [Bytes {
            name: ".byte",
            arguments,
            place: 0,
            section: 0,
        }];
        decoded(&bytes_of(&run)?).map(|named| named.text)
    }

    #[test]
    fn bytes_are_decoded_as_gas_would_write_them() {
        for (bytes, text) in [
            ("0x0f, 0x01, 0xd0", "xgetbv"),
            ("0xf3,0x90", "pause"),
            ("0xf3,0xc3", "ret"),
            ("0x0f,0x0b", "ud2"),
            ("102,15,56,220,209", "aesenc %xmm1,%xmm2"),
            ("0x66,0x0f,0x38,0x00,0x04,0x24", "pshufb (%rsp),%xmm0"),
            ("0x48,0x89,0xd8,0x90", "movq %rbx,%rax; nop"),
            ("-112", "nop"),
            ("0xf3,0xa4,0x66,0x90", "rep movsb; xchgw %ax,%ax"),
            ("0x48,0xab", "stosq"),
            ("0x66,0x0f,0x3a,0x44,0xc2,0x00", "pclmulqdq $0,%xmm2,%xmm0"),
        ] {
            assert_eq!(named(bytes).as_deref(), Some(text), "{bytes}");
        }
    }

    #[test]
    fn what_is_no_instruction_or_depends_on_its_place_stays() {
        for bytes in [
            "0x0f, 0x01",                   // cut off
            "0xeb, 0x00",                   // a jump
            "0xe8, 0, 0, 0, 0",             // a call
            "0x48, 0x8b, 0x05, 0, 0, 0, 0", // relative to %rip
            "0xff, 0xe0",                   // an indirect jump
            "0xc2, 0x08, 0x00",             // a return that pops
            "symbol",
            "256",
            "",
        ] {
            assert_eq!(named(bytes), None, "{bytes}");
        }
    }

    /// What becomes of a whole text.
    fn spelled(source: &str) -> Option<String> {
        by_name(source, &parser::parse(source, &mut Vec::new()))
    }

    #[test]
    fn a_run_becomes_its_first_line_and_lines_keep_their_numbers() {
        let source = "\tnop\n\t.byte 0x0f\n\t.byte 0x01, 0xd0\n\tret\n\t.byte 0xeb\n";
        let text = spelled(source).expect("one run is an instruction");
        assert_eq!(text, "\tnop\n\txgetbv\n\t\n\tret\n\t.byte 0xeb\n");
    }

    #[test]
    fn bytes_are_code_where_control_reaches_them() {
        for source in [
            "f:\tnop\n\t.byte 0xf3,0xc3\n",
            "\tjmp 1f\n\tret\n1:\t.byte 0xf3,0xc3\n",
            "\t.type f, @function\nf:\t.byte 0xf3,0xc3\n",
            "\tcall f\n\tret\n\t.p2align 4\nf:\t.byte 0xf3,0xc3\n",
            // Behind other bytes that are code.
            "\tnop\n\t.byte 0x90\n.Lread:\t.byte 0xf3,0xc3\n",
            "\tnop\n\t.long 0x90c3f390\n",
            // Another section in between is no matter.
            "\tnop\n\t.data\n\t.long 1\n\t.text\n\t.byte 0xf3,0xc3\n",
        ] {
            let text = spelled(source).expect(source);
            assert!(text.contains("ret") && !text.contains("0xf3"), "{text}");
        }
    }

    #[test]
    fn a_table_that_would_be_code_stays_a_table() {
        for source in [
            // As OpenSSL has constants behind its functions.
            "f:\tmovq .Lone(%rip), %rax\n\tret\n.Lone:\t.byte 1,0,0,0,0,0,0,0\n",
            "f:\tnop\n\tjmp f\n\t.byte 0,0\n",
            "table:\t.byte 0x90\n",
            "\tnop\n\tud2\n\t.byte 0x90\n",
            // Behind bytes that are code and return.
            "\tnop\n\t.byte 0xeb\n.L1:\t.byte 0x90\n",
        ] {
            assert_eq!(spelled(source), None, "{source}");
        }
        let behind = spelled("\tnop\n\t.byte 0xf3,0xc3\n.L1:\t.byte 0x90\n").expect("one");
        assert_eq!(behind, "\tnop\n\tret\n.L1:\t.byte 0x90\n");
    }

    #[test]
    fn a_prefix_goes_with_the_instruction_behind_it() {
        let text = spelled("\tnop\n\t.byte 0xf0\n\tcmpxchgl %ecx, (%rdi)\n");
        assert_eq!(
            text.as_deref(),
            Some("\tnop\n\tlock\n\tcmpxchgl %ecx, (%rdi)\n")
        );
        let text = spelled("\tnop\n\t.byte 0x67,0x67\n\tmovdqa %xmm1, %xmm2\n");
        assert_eq!(text.as_deref(), Some("\tnop\n\t\n\tmovdqa %xmm1, %xmm2\n"));
        let text = spelled("\tnop\n\t.byte 0x67\n\tmulq %rcx\n");
        assert_eq!(text.as_deref(), Some("\tnop\n\t\n\tmulq %rcx\n"));
        let text = spelled("1:\tnop\n\t.byte 0x3e\n\tjnz 1b\n");
        assert_eq!(text.as_deref(), Some("1:\tnop\n\t\n\tjnz 1b\n"));
        for memory in ["movq (%rax), %rcx", "rep movsb", "jrcxz 1f", "ret"] {
            let source = format!("1:\tnop\n\t.byte 0x67\n\t{memory}\n");
            assert_eq!(spelled(&source), None, "{source}");
        }
    }

    #[test]
    fn what_stands_in_front_may_have_the_rewriters_registers() {
        let text = spelled("\tjmp *%r11\n\t.byte 0x90\n");
        assert_eq!(text, None);
        let text = spelled("\tmovq %r11, %rax\n\t.byte 0x90\n");
        assert_eq!(text.as_deref(), Some("\tmovq %r11, %rax\n\tnop\n"));
    }
}
