//! `%r11`, `%r14` and `%r15` in assembler that people write. The rewriter needs them, so they become others.
//!
//! A register of the same kind that the file does not name takes the place. For `%r14` and `%r15` it is one that a callee
//! keeps, for `%r11` one that it need not keep. If there is none, the value lives in a thread-local, and each
//! instruction that names the register borrows another for itself:
//!
//! ```text
//! addq %r14, (%rdi)      movq %r8, %fs:SAVED          a register that the instruction does not name
//!                        movq %fs:SLOT, %r8
//!                        addq %r8, (%rdi)
//!                        movq %r8, %fs:SLOT
//!                        movq %fs:SAVED, %r8
//! ```
//! A branch through such a register stays, and is refused: nothing would give the borrowed one back.
//!
//! Compilers never use the three by themselves. In a compiler's text the inline assembler may, between `#APP` and
//! `#NO_APP`. All other registers are the compiler's there, so the values always live in a thread-local.
//! It is another one than that of files: a function that clobbers `%r14` would save it natively, and saves nothing here.
//! For the same reason `%r14` and `%r15` stay, and are refused, in a block that calls, and outside of blocks
//! (variables with a register of their own).

use super::{Lines, behind_labels, first_word};
use crate::lexer;
use crate::operand::{Gpr, Set, gpr, number, split_operands};

/// The thread-local: places of the three, and of three borrowed registers.
const PLACES: &str = "__mullion_registers";
/// That of inline assembler.
const INLINE_PLACES: &str = "__mullion_inline_registers";
/// What begins and ends inline assembler in a compiler's text.
const INLINE: [&str; 2] = ["#APP", "#NO_APP"];
const RESERVED: [u8; 3] = [number::R11, number::R14, number::R15];

/// Registers that no instruction uses without naming them, and those that few do.
const BORROWED: [u8; 5] = [8, 9, number::R10, 12, 13];

/// The source with other registers in the place of the rewriter's own; `None` if it names none of them.
///
/// `has_places` says whether the text may have thread-locals of its own. A module of the word wall may not: it is a
/// shared object.
pub(crate) fn replaced(source: &str, has_places: bool) -> Option<String> {
    let named = |text: &str| names(text).any(|register| RESERVED.contains(&register.number));
    if !["%r11", "%r14", "%r15"]
        .iter()
        .any(|name| source.contains(name))
    {
        return None;
    }
    let mut used: Set = 0;
    let mut blocks = Blocks::default();
    let walked = lexer::pieces(source, |_, text| {
        if !blocks.marker(text) {
            let mnemonic = first_word(behind_labels(text)).0;
            used = names(text).fold(used, |used, register| used | register.bit());
            used |= unnamed(mnemonic);
            blocks.look(mnemonic);
        }
    });
    walked.ok()?;
    let mut plan = match blocks.calls.is_empty() {
        true => Plan::of(used),
        false => Plan::inline(),
    };
    plan.has_places = has_places;
    let mut lines = Lines::default();
    blocks.begin_again();
    let walked = lexer::pieces(source, |line, text| {
        if blocks.marker(text) {
            lines.marker(line, text);
        } else if (named(text) || text.starts_with(".cfi_")) && blocks.may_change(text) {
            for statement in plan.statements(text) {
                lines.put(line, &statement);
            }
        } else {
            lines.put(line, text);
        }
    });
    walked.ok()?;
    let mut text = lines.text;
    if plan.kept {
        let places = plan.places;
        text.push_str(&format!(
            "\n\t.section .tbss.{places},\"awTG\",@nobits,{places},comdat\n\t.weak {places}\n\t.hidden {places}\n\
             \t.type {places}, @object\n\t.size {places}, 48\n\t.balign 8\n{places}:\n\t.zero 48\n"
        ));
    }
    text.push('\n');
    Some(text)
}

/// Where inline assembler stands in a compiler's text. A file of a person has no block.
#[derive(Default)]
struct Blocks {
    /// For each block, whether something in it calls.
    calls: Vec<bool>,
    /// Blocks that have begun.
    begun: usize,
    inside: bool,
}

impl Blocks {
    /// Whether the line is a marker or a comment. A block's begin or end is noted.
    fn marker(&mut self, text: &str) -> bool {
        if !text.starts_with('#') {
            return false;
        }
        let [begin, end] = INLINE;
        if text.starts_with(begin) {
            self.inside = true;
            self.begun += 1;
            if self.calls.len() < self.begun {
                self.calls.push(false);
            }
        }
        self.inside &= !text.starts_with(end);
        true
    }

    /// Notes what an instruction of the first walk does.
    fn look(&mut self, mnemonic: &str) {
        if self.inside && mnemonic.starts_with("call") {
            self.calls[self.begun - 1] = true;
        }
    }

    fn begin_again(&mut self) {
        (self.begun, self.inside) = (0, false);
    }

    /// Whether a statement that names one of the three may be changed.
    fn may_change(&self, text: &str) -> bool {
        let kept = |register: Gpr| [number::R14, number::R15].contains(&register.number);
        self.calls.is_empty()
            || !names(text).any(kept)
            || self.inside && !self.calls[self.begun - 1]
    }
}

/// The general registers that a statement names.
fn names(text: &str) -> impl Iterator<Item = Gpr> {
    let parts = text.split('%').skip(1);
    parts.filter_map(|part| {
        let length = part.bytes().take_while(u8::is_ascii_alphanumeric).count();
        gpr(&part[..length])
    })
}

/// Registers that could take a place, and that an instruction uses without a name.
fn unnamed(mnemonic: &str) -> Set {
    match mnemonic.trim_end_matches('q') {
        "cpuid" | "cmpxchg16b" | "cmpxchg8b" | "xlatb" | "xlat" => 1 << 3,
        "leave" | "enter" => 1 << number::RBP,
        _ => 0,
    }
}

/// What becomes of the three.
struct Plan {
    /// Other registers, by the places of `RESERVED`.
    instead: [Option<u8>; 3],
    /// Whether a value lives in the thread-local.
    kept: bool,
    /// The thread-local's name.
    places: &'static str,
    /// Whether there may be one.
    has_places: bool,
}

impl Plan {
    fn of(used: Set) -> Self {
        let mut used = used;
        let instead = RESERVED.map(|register| {
            let candidates: &[u8] = match register {
                number::R11 => &[number::R10],
                _ => &[12, 13, 3, number::RBP],
            };
            let wanted = used & (1 << register) != 0;
            let free = candidates.iter().find(|other| used & (1 << **other) == 0);
            let free = free.copied().filter(|_| wanted);
            used |= free.map_or(0, |register| 1 << register);
            free
        });
        Self {
            instead,
            kept: false,
            places: PLACES,
            has_places: true,
        }
    }

    /// For a compiler's text, whose registers are all the compiler's.
    fn inline() -> Self {
        Self {
            instead: [None; 3],
            kept: false,
            places: INLINE_PLACES,
            has_places: true,
        }
    }

    fn instead(&self, register: u8) -> Option<u8> {
        let at = RESERVED.iter().position(|reserved| *reserved == register)?;
        self.instead[at]
    }

    /// What becomes of a statement that names one of the three.
    fn statements(&mut self, text: &str) -> Vec<String> {
        let directive = behind_labels(text);
        if directive.starts_with('.') && !directive.starts_with(".cfi_") {
            return vec![text.to_owned()];
        }
        let text = renamed(text, |register| self.instead(register));
        let mut left: Vec<u8> = names(&text).map(|register| register.number).collect();
        left.retain(|register| RESERVED.contains(register));
        left.sort_unstable();
        left.dedup();
        let rest = behind_labels(&text);
        if rest.starts_with(".cfi_") {
            return match left.is_empty() && !names_plainly(rest) {
                true => vec![text],
                false => Vec::new(),
            };
        }
        let (mnemonic, operands) = first_word(rest);
        if left.is_empty() || leads_away(mnemonic) || !self.has_places {
            return vec![text];
        }
        let labels = text[..text.len() - rest.len()].trim().to_owned();
        let mut statements = vec![labels];
        self.kept = true;
        if let Some(moved) = self.moved(mnemonic, operands) {
            statements.push(moved);
            return statements;
        }
        let taken: Set = names(rest).fold(0, |set, register| set | register.bit());
        let mut free = BORROWED
            .into_iter()
            .filter(|other| taken & (1 << *other) == 0);
        let pairs: Vec<(u8, u8)> = left.iter().copied().zip(free.by_ref()).collect();
        if pairs.len() < left.len() {
            return vec![text];
        }
        for (at, (reserved, other)) in pairs.iter().enumerate() {
            let other = Gpr::new(*other, 8);
            statements.push(format!("movq {other}, {}", self.saved(at)));
            statements.push(format!("movq {}, {other}", self.place(*reserved)));
        }
        let other = |register: u8| {
            pairs
                .iter()
                .find(|pair| pair.0 == register)
                .map(|pair| pair.1)
        };
        statements.push(renamed(rest, other));
        for (at, (reserved, other)) in pairs.iter().enumerate() {
            let other = Gpr::new(*other, 8);
            statements.push(format!("movq {other}, {}", self.place(*reserved)));
            statements.push(format!("movq {}, {other}", self.saved(at)));
        }
        statements
    }

    /// `movq` between one of the three and another register, which needs no third.
    fn moved(&self, mnemonic: &str, operands: &str) -> Option<String> {
        let whole =
            |operand: &str| gpr(operand.strip_prefix('%')?).filter(|register| register.width == 8);
        let mut parts = split_operands(operands).map(whole);
        let (from, to) = (parts.next()??, parts.next()??);
        let stack = [from.number, to.number].contains(&number::RSP);
        if !matches!(mnemonic, "mov" | "movq") || parts.next().is_some() || stack {
            return None;
        }
        match (
            RESERVED.contains(&from.number),
            RESERVED.contains(&to.number),
        ) {
            (true, false) => Some(format!("movq {}, {to}", self.place(from.number))),
            (false, true) => Some(format!("movq {from}, {}", self.place(to.number))),
            _ => None,
        }
    }

    fn place(&self, reserved: u8) -> String {
        let at = RESERVED.iter().position(|register| *register == reserved);
        format!("%fs:{}@tpoff+{}", self.places, 8 * at.unwrap_or(0))
    }

    fn saved(&self, at: usize) -> String {
        format!("%fs:{}@tpoff+{}", self.places, 8 * (RESERVED.len() + at))
    }
}

/// Whether control may not come to the next instruction, by a register or otherwise.
fn leads_away(mnemonic: &str) -> bool {
    mnemonic.starts_with('j') || mnemonic.starts_with("call") || mnemonic.starts_with("ret")
}

/// Call frame information names registers without `%`, too.
fn names_plainly(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let mut registers = words.filter_map(gpr);
    registers.any(|register| RESERVED.contains(&register.number))
}

/// The text with registers of other numbers, of the same width.
fn renamed(text: &str, other: impl Fn(u8) -> Option<u8>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut parts = text.split('%');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let length = part.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let register = gpr(&part[..length]);
        let new = register.and_then(|it| Some(Gpr::new(other(it.number)?, it.width)));
        match new {
            Some(new) => out.push_str(&new.to_string()),
            None => {
                out.push('%');
                out.push_str(&part[..length]);
            }
        }
        out.push_str(&part[length..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_register_that_is_free_takes_the_place() {
        let source = "f:\tpush %r14\n\t.cfi_offset %r14, -16\n\tmovl %edi, %r14d; movb %r11b, (%r14)\n\tpop %r14\n\tret\n";
        let text = replaced(source, true).expect("it names them");
        assert_eq!(
            text,
            "\tf:\tpush %r12\n\t.cfi_offset %r12, -16\n\tmovl %edi, %r12d; movb %r10b, (%r12)\n\tpop %r12\n\tret\n"
        );
    }

    #[test]
    fn what_names_none_of_them_stays() {
        for source in ["f:\tmovq %r10, %rax\n\tret\n", "\t.ascii \"%r1\"\n"] {
            assert_eq!(replaced(source, true), None, "{source}");
        }
        let text = replaced("\t.ascii \"%r11\"\n\tnop\n", true).expect("it looks so");
        assert_eq!(text, "\t.ascii \"%r11\"\n\tnop\n");
    }

    #[test]
    fn inline_assembler_keeps_them_in_memory() {
        let text = replaced(
            "\tmovl %eax, %r12d\n#APP\n\tmovq %rax, %r14\n\tmovq %r11, %rax\n#NO_APP\n",
            true,
        )
        .expect("it names two");
        assert!(
            text.contains("movq %rax, %fs:__mullion_inline_registers@tpoff+8"),
            "{text}"
        );
        assert!(
            text.contains("movq %fs:__mullion_inline_registers@tpoff+0, %rax"),
            "{text}"
        );
        assert!(
            !text.contains("%r14") && !text.contains("%r11") && text.contains("\tmovl %eax, %r12d"),
            "{text}"
        );
    }

    #[test]
    fn what_a_callee_would_save_stays_where_something_is_called() {
        let stays = |source: &str, what: &str| {
            let text = replaced(source, true).expect("it names one");
            assert!(text.contains(what), "{text}");
        };
        stays(
            "#APP\n\tmovq $1, %r14\n\tcall f\n#NO_APP\n",
            "\tmovq $1, %r14\n",
        );
        stays(
            "#APP\n\tnop\n#NO_APP\n\tmovq %rax, %r15\n",
            "\tmovq %rax, %r15\n",
        );
        // The next block calls nothing, and no callee keeps %r11.
        let text = replaced(
            "#APP\n\tmovq $1, %r11\n\tcall f\n#NO_APP\n\tnop\n#APP\n\tmovq $1, %r14\n#NO_APP\n",
            true,
        );
        let text = text.expect("it names two");
        assert!(!text.contains("%r11") && !text.contains("%r14"), "{text}");
    }

    #[test]
    fn a_branch_through_one_that_lives_in_memory_stays() {
        let all = "\tmovq %r10, %rbx; movq %rbp, %r12; movq %r13, %rax\n\tjmp *%r11\n";
        let text = replaced(all, true).expect("it names one");
        assert!(text.contains("\tjmp *%r11\n"), "{text}");
    }

    #[test]
    fn without_thread_locals_only_free_registers_help() {
        let inline = "#APP\n\tmovq %rax, %r11\n#NO_APP\n";
        let text = replaced(inline, false).expect("it names one");
        assert!(text.contains("\tmovq %rax, %r11\n"), "{text}");
        let text = replaced("\tmovq %rax, %r11\n", false).expect("it names one");
        assert!(text.contains("\tmovq %rax, %r10\n"), "{text}");
    }

    /// Uses every register, in every way in which the three may stand.
    const CROWDED: &str = r#"
        .text
        .globl crowded
        .type crowded, @function
crowded:
        .cfi_startproc
        push %rbx
        push %rbp
        push %r12
        push %r13
        push %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r14, 0
        push %r15
        movq %rsi, %r14
        movl $7, %r15d
        movl $3, %ecx
        movq %rsp, %r11
        subq %rsp, %r11
        leaq (%rdi,%r15,2), %r11
        movq $3, %r8
        movq $4, %r9
        movq $5, %r10
        movq $6, %r12
        movq $8, %r13
        movq $9, %rbx
        movq $10, %rbp
        xorl %eax, %eax
1:      addb (%r14,%rax), %r15b
        adcq %r11, %r15
        rolq %cl, %r15
        movzbl %r15b, %edx
        xorw %dx, %r11w
        cmpq %r11, %r15
        cmovbl %r15d, %r11d
        imulq %r11, %r15
        movq %r15, %xmm0
        paddq %xmm0, %xmm1
        xchgq %r11, %r15
        incq %rax
        cmpq $16, %rax
        jne 1b
        movq %r15, 16(%r14)
        movb $255, 24(%r14,%r8)
        leaq (%r14,%r15,8), %r11
        addq %r11, %r8
        addq %r9, %r8
        addq %r10, %r8
        addq %r12, %r8
        addq %r13, %r8
        addq %rbx, %r8
        addq %rbp, %r8
        subq %r14, %r8
        leaq 1(%r8,%r11), %rax
        subq %r14, %rax
        pop %r15
        pop %r14
        pop %r13
        pop %r12
        pop %rbp
        pop %rbx
        ret
        .cfi_endproc
        .size crowded, .-crowded
        .section .note.GNU-stack,"",@progbits
"#;

    const MAIN: &str = r#"
#include <stdio.h>
unsigned long crowded(unsigned long first, unsigned char *bytes);
int main(void) {
    unsigned char bytes[32] = "0123456789abcdefghijklmnopqrstu";
    for (unsigned long first = 1; first < 200; first += 13)
        printf("%lx\n", crowded(first, bytes));
    for (int at = 0; at < 32; at++)
        printf("%02x", bytes[at]);
    puts("");
    return 0;
}
"#;

    #[test]
    fn a_crowded_function_computes_the_same() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let place = directory.path();
        let answer = |name: &str, text: &str| {
            let source = place.join(name).with_extension("s");
            std::fs::write(&source, text).expect("written");
            std::fs::write(place.join("main.c"), MAIN).expect("written");
            let mut gcc = Command::new("gcc");
            gcc.arg(place.join("main.c"))
                .arg(&source)
                .arg("-o")
                .arg(place.join(name));
            let built = gcc.output().expect("gcc");
            assert!(
                built.status.success(),
                "{}\n{text}",
                String::from_utf8_lossy(&built.stderr)
            );
            let output = Command::new(place.join(name)).output().expect("it starts");
            assert!(output.status.success());
            output.stdout
        };
        let text = replaced(CROWDED, true).expect("it names all");
        assert!(
            !text.contains("%r11") && !text.contains("%r14") && !text.contains("%r15"),
            "{text}"
        );
        let expected = answer("with", CROWDED);
        assert!(expected.len() > 200, "{expected:?}");
        assert_eq!(expected, answer("without", &text));
    }
}
