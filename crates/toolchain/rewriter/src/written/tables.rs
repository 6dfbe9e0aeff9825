//! Tables that people write between functions. In an image, code is not data, so they go to a section of constants, with
//! the labels in front of them:
//!
//! ```text
//!         ret                            ret
//!         .align 64                      .pushsection .rodata; .balign 64
//! .Lmask: .quad 1, 2             .Lmask: .quad 1, 2
//! next:   movq %rdi, %rax                .popsection
//!                                next:   movq %rdi, %rax
//! ```
//! Only what control does not reach is moved. It must have a label in it, by which the code can name it, or be
//! text, which nobody reads.
//! A distance between a table and code is no number any more, and the assembler refuses it.

use super::{Lines, behind_labels, first_word};
use crate::lexer::{self, symbol_length};
use crate::operand::integer;
use crate::table::{self, DirectiveClass};
use std::collections::HashSet;

/// As far as a table is aligned by what stood in front of it.
const ALIGNED: u32 = 64;

/// The source with its tables moved; `None` if it has none.
pub(crate) fn moved(source: &str) -> Option<String> {
    let mut pieces = Vec::new();
    lexer::pieces(source, |line, text| pieces.push((line, text))).ok()?;
    let mut mover = Mover {
        entered: entered(&pieces),
        ..Mover::default()
    };
    for (at, (line, text)) in pieces.iter().enumerate() {
        let (_, behind) = pieces.split_at(at);
        mover.piece(*line, text, behind);
    }
    mover.close();
    mover.found.then(|| {
        mover.lines.text.push('\n');
        mover.lines.text
    })
}

/// Labels that control may come to: called, jumped to, said to be functions, seen by other files.
fn entered<'t>(pieces: &[(u32, &'t str)]) -> HashSet<&'t str> {
    let mut entered = HashSet::new();
    for (_, text) in pieces {
        let (name, arguments) = first_word(behind_labels(text));
        let branch = !name.starts_with('.') && (name.starts_with('j') || name.starts_with("call"));
        if branch {
            entered.insert(arguments.strip_suffix("@PLT").unwrap_or(arguments));
        } else if name == ".type" && arguments.contains("function") {
            entered.insert(&arguments[..symbol_length(arguments)]);
        }
    }
    entered
}

/// Whether a table that begins without a label has one further on, with data behind it.
fn has_label(pieces: &[(u32, &str)]) -> bool {
    let mut labelled = false;
    for (_, text) in pieces {
        let rest = behind_labels(text);
        labelled |= rest.len() < text.len();
        let (name, _) = first_word(rest);
        match table::directive(name) {
            Some(DirectiveClass::Data) if labelled => return true,
            Some(DirectiveClass::Data | DirectiveClass::Align) => {}
            _ if name.is_empty() || matches!(name, ".type" | ".globl" | ".hidden") => {}
            _ => return false,
        }
    }
    false
}

/// Whether bytes are text that ends with a zero.
fn is_text(datum: &str) -> bool {
    let (name, arguments) = first_word(datum);
    if name != ".byte" {
        return matches!(name, ".ascii" | ".asciz" | ".string");
    }
    let values: Option<Vec<i64>> = arguments.split(',').map(|it| integer(it.trim())).collect();
    let Some([text @ .., 0]) = values.as_deref() else {
        return false;
    };
    text.len() >= 8 && text.iter().all(|value| (0x20..0x7f).contains(value))
}

#[derive(Default)]
struct Mover<'t> {
    entered: HashSet<&'t str>,
    lines: Lines,
    found: bool,
    /// Whether the current section is not that of code; those that are left for a while.
    elsewhere: bool,
    left: Vec<bool>,
    /// Whether control comes here from what stands in front.
    reached: bool,
    /// Labels, alignments and words about symbols since the last instruction or datum.
    waiting: Vec<(u32, &'t str)>,
    /// Within a table.
    open: bool,
    /// Labels that were moved.
    labels: HashSet<&'t str>,
}

impl<'t> Mover<'t> {
    fn piece(&mut self, line: u32, text: &'t str, behind: &[(u32, &str)]) {
        if text.is_empty() {
            return;
        }
        if text.starts_with('#') {
            match self.waiting.is_empty() {
                true => self.lines.marker(line, text),
                false => self.waiting.push((line, text)),
            }
            return;
        }
        let mut rest = text;
        loop {
            let length = symbol_length(rest);
            match rest[length..].trim_start().strip_prefix(':') {
                Some(behind) if length > 0 => {
                    let name = &rest[..length];
                    // A local number may be meant by any branch.
                    self.reached |=
                        self.entered.contains(name) || name.bytes().all(|b| b.is_ascii_digit());
                    self.waiting
                        .push((line, &rest[..rest.len() - behind.len()]));
                    rest = behind.trim_start();
                }
                _ => break,
            }
        }
        let (name, arguments) = first_word(rest);
        match name {
            "" => {}
            ".globl" | ".global" | ".weak" | ".hidden" | ".local" | ".type" => {
                self.waiting.push((line, rest))
            }
            ".size" if self.labels.contains(&arguments[..symbol_length(arguments)]) => {
                self.waiting.push((line, rest))
            }
            _ if name.starts_with('.') => match table::directive(name) {
                Some(DirectiveClass::Align) => self.waiting.push((line, rest)),
                Some(DirectiveClass::Data) => self.datum(line, rest, behind),
                _ => {
                    self.close();
                    self.section(name, arguments);
                    self.lines.put(line, rest);
                }
            },
            _ => {
                self.close();
                self.lines.put(line, rest);
                let ends = ["jmp", "ret", "retq", "ud2", "hlt", "rep"];
                self.reached = !ends.contains(&name);
            }
        }
    }

    fn datum(&mut self, line: u32, text: &'t str, behind: &[(u32, &str)]) {
        let labelled = self.waiting.iter().any(|(_, text)| text.ends_with(':'));
        let labelled = labelled || is_text(text) || has_label(behind);
        if !self.open && !self.elsewhere && !self.reached && labelled {
            self.open = true;
            self.found = true;
            let begin = self.waiting.first().map_or(line, |(line, _)| *line);
            self.lines
                .put(begin, ".pushsection .rodata,\"a\",@progbits");
            self.lines.put(begin, &format!(".balign {ALIGNED}"));
        }
        if self.open {
            let labels = self
                .waiting
                .iter()
                .filter_map(|(_, text)| text.strip_suffix(':'));
            self.labels.extend(labels.map(str::trim_end));
        }
        self.flush();
        self.lines.put(line, text);
    }

    /// Ends a table, if one is open. What waits stands behind it, but for the sizes of what is in it.
    fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            let (sizes, others): (Vec<_>, Vec<_>) = self
                .waiting
                .drain(..)
                .partition(|(_, text)| text.starts_with(".size"));
            self.waiting = sizes;
            self.flush();
            let line = others
                .first()
                .map_or(self.lines.count + 1, |(line, _)| *line);
            self.lines
                .put(line.min(self.lines.count + 1), ".popsection");
            self.waiting = others;
        }
        self.flush();
    }

    fn flush(&mut self) {
        for (line, text) in std::mem::take(&mut self.waiting) {
            match text.starts_with('#') {
                true => self.lines.marker(line, text),
                false => self.lines.put(line, text),
            }
        }
    }

    fn section(&mut self, name: &str, arguments: &str) {
        let elsewhere = || {
            let flags = arguments.split('"').nth(1);
            let named = [".text", ".init", ".fini"]
                .iter()
                .any(|code| arguments.starts_with(code));
            flags.map_or(!named, |flags| !flags.contains('x'))
        };
        match name {
            ".text" => self.elsewhere = false,
            ".data" | ".bss" => self.elsewhere = true,
            ".section" => {
                self.left = vec![self.elsewhere];
                self.elsewhere = elsewhere();
            }
            ".pushsection" => {
                self.left.push(self.elsewhere);
                self.elsewhere = elsewhere();
            }
            ".popsection" | ".previous" => {
                self.elsewhere = self.left.pop().unwrap_or(self.elsewhere)
            }
            _ => return,
        }
        self.reached = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const TABLES: &str = r#"
        .text
        .globl second
        .type second, @function
second:
        leaq .Lmask(%rip), %rax
        movq 8(%rax,%rdi,8), %rax
        addq .Lother(%rip), %rax
        addl table(%rip), %eax
        jmp 2f
        .align 32
.Lmask: .quad 1, 2, 3
        # Read by the second line.
        .long 4
        .long 5
.Lother:
        # One label, one comment.
        .quad 100
        .asciz "written by hand"
        .align 16
        .type table, @object
table:  .byte 7, 0, 0, 0
        .size table, .-table
2:      movaps .Lalign(%rip), %xmm0
        movd %xmm0, %ecx
        addl %ecx, %eax
        ret
        .size second, .-second
        .p2align 4
.Lalign: .long 1000, 0, 0, 0
        .section .note.GNU-stack,"",@progbits
"#;

    #[test]
    fn code_with_tables_computes_the_same() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let place = directory.path();
        let text = moved(TABLES).expect("it has tables");
        let answer = |name: &str, text: &str| {
            let source = place.join(name).with_extension("s");
            std::fs::write(&source, text).expect("written");
            let main = "#include <stdio.h>\nunsigned long second(long);\nint main(void) {\n\
                        for (long at = -1; at < 4; at++) printf(\"%lu \", second(at)); }\n";
            std::fs::write(place.join("main.c"), main).expect("written");
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
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let expected = answer("as_it_is", TABLES);
        assert!(expected.starts_with("1108 1109 1110 "), "{expected}");
        assert_eq!(answer("moved", &text), expected, "{text}");
        let code = text.replace("; ", "\n");
        let mut within = 0;
        for line in code.lines().map(str::trim) {
            match line.split(['\t', ' ']).next().unwrap_or_default() {
                ".pushsection" => within += 1,
                ".popsection" => within -= 1,
                ".quad" | ".long" | ".byte" | ".asciz" => assert_eq!(within, 1, "{text}"),
                _ => {}
            }
        }
        let number = |text: &str, what: &str| text.lines().position(|line| line.contains(what));
        assert_eq!(number(&text, "movd %xmm0"), number(TABLES, "movd %xmm0"));
    }

    #[test]
    fn text_and_tables_with_a_label_further_on_are_moved() {
        for source in [
            "\tret\n\t.byte 72,97,108,108,111,32,72,97,0\n",
            "\tret\n\t.align 256\n\t.long 1,2\nk:\t.long 3\n\t.long 4\n",
        ] {
            let text = moved(source).expect(source);
            assert!(text.contains("\t.pushsection .rodata"), "{text}");
        }
    }

    #[test]
    fn what_is_reached_or_has_no_label_stays() {
        for source in [
            "f:\tnop\n\t.long 1\n",
            "\tret\n\t.long 1\n",
            "\tjmp f\nf:\t.long 1\n",
            "\t.type f, @function\nf:\t.long 1\n",
            "\tret\n\t.byte 72,97,108,108,111,32,72,97\n",
            "\tret\n\t.long 1\nf:\tnop\n",
            "\tret\n1:\t.long 1\n",
            "\t.data\nd:\t.long 1\n",
            "\t.section .rodata\nd:\t.long 1\n\t.text\n\tret\n",
        ] {
            assert_eq!(moved(source), None, "{source}");
        }
    }
}
