//! What is expanded assembles to the bytes that gas makes of the source itself.

use super::{Lines, expand};
use std::path::Path;
use std::process::Command;

/// The bytes of all sections with content, by gas.
fn assembled(directory: &Path, name: &str, text: &str) -> Vec<u8> {
    let (source, object) = (directory.join(name), directory.join(format!("{name}.o")));
    std::fs::write(&source, text).expect("written");
    let said = Command::new("as")
        .arg(&source)
        .arg("-o")
        .arg(&object)
        .output();
    let said = said.expect("gas");
    assert!(
        said.status.success(),
        "{}\n{text}",
        String::from_utf8_lossy(&said.stderr)
    );
    let dumped = Command::new("objdump")
        .args(["-s", "-r", "-d", "-j", ".text", "-j", ".data"])
        .arg(&object)
        .output()
        .expect("objdump");
    let text = String::from_utf8_lossy(&dumped.stdout).into_owned();
    // Its first lines name the file.
    text.lines()
        .skip(2)
        .collect::<Vec<_>>()
        .join("\n")
        .into_bytes()
}

/// Expands and compares; the text.
fn agrees(source: &str) -> String {
    let text = expand(source)
        .expect("it is understood")
        .expect("it has some");
    let directory = tempfile::tempdir().expect("a temporary directory");
    assert_eq!(
        assembled(directory.path(), "as_it_is", source),
        assembled(directory.path(), "expanded", &text),
        "{text}"
    );
    for name in [".macro", ".rept", ".irp", ".if", ".end"] {
        assert!(!text.contains(name), "{text}");
    }
    text
}

#[test]
fn macros_take_arguments_in_every_form() {
    agrees(
        r#"
        .data
.macro pair a, b=7
        .long \a
        .long \b
.endm
.macro all first:req, rest:vararg
        .byte \first
        .ifnb \rest
        all \rest
        .endif
.endm
        pair 1, 2
        pair 3
        pair b=4, a=5
        pair 6 8
        pair (1 + 2), 4
        pair 1 + 2, "5"
        all 1, 2, 3, 4
        .text
.macro load reg, from, at
        movq \at\()(\from), %\reg
.Lhere\@:
        jne .Lhere\@
.endm
        load rax, %rsi, 8
one:    load rbx, %rdi, 16 ; nop
"#,
    );
}

#[test]
fn repetitions_and_values() {
    agrees(
        r"
        .set size, 4
count = 3
        .data
        .rept count - 1
        .long size
        .set size, size * 2
        .endr
        .irp value, 1, 2, count
        .irpc digit, 37
        .byte \value\digit
        .endr
        .endr
        .rept 0
        .long 99
        .endr
        .text
        .irp reg, rax, rbx, rcx
        addq $size - 2, size+1(%\reg,%rdx,4)
        .endr
",
    );
}

#[test]
fn conditions() {
    agrees(
        r#"
        .data
known = 2
label:
.macro which x
        .if \x == 1
        .byte 1
        .elseif \x == known && known
        .ifdef label
        .byte 2
        .else
        .byte 22
        .endif
        .else
        .ifndef nowhere
        .byte 3
        .endif
        .endif
.endm
        which 1
        which 2
        which 3
        .ifc ab, ab
        .byte 4
        .endif
        .ifnc ab, ac
        .byte 5
        .endif
.macro until n
        .rept 9
        .byte \n
        .endr
        .if \n
        .exitm
        .endif
        .byte 77
.endm
        until 0
        until 1
        .ifge known - 2; .byte 6; .else; .byte 7; .endif
"#,
    );
}

/// In the manner of cipher code: rounds that call each other, with counters.
#[test]
fn macros_within_macros() {
    agrees(
        r"
        .text
.macro round a, b, k
        movl %\a, %eax
        rorl $\k, %eax
        xorl %\b, %eax
        .if \k > 4
        addl $\k * 3, %\a
        .endif
.endm
.macro rounds n
i = 0
        .rept \n
        round r8d, r9d, %\n
i = i + 1
        .endr
.endm
.macro outer
        .irp k, 3, 5, 7
        round r8d, r9d, \k
        round a=r10d, b=r8d, k=\k
        .endr
.endm
        outer
        .p2align 4
        outer
        ret
"
        .replace("round r8d, r9d, %\\n", "round r8d, r9d, i")
        .as_str(),
    );
}

#[test]
fn lines_stay_where_they_are() {
    let text = agrees(".macro two\n\tnop\n\tnop\n.endm\n# 5 \"a.S\"\n\ttwo # twice\n\tret\n");
    assert_eq!(text, "\n\n\n\n# 5 \"a.S\"\n\tnop; nop\n\tret\n");
}

#[test]
fn what_stands_behind_a_comment_is_not_swallowed() {
    let mut lines = Lines::default();
    lines.marker(2, "# words");
    lines.put(1, "nop");
    lines.put(2, "ret");
    assert_eq!(lines.text, "\n# words\n\tnop; ret");
}

#[test]
fn what_is_not_understood_is_refused_on_its_line() {
    for (source, line) in [
        ("\tnop\n\t.rept somewhere - 1\n\tnop\n\t.endr\n", 2),
        (".macro a\n\tnop\n", 1),
        ("\n\n.if 1\n\tnop\n", 3),
        (".macro a\n\ta\n.endm\n\ta\n", 4),
        (".macro a x:req\n\tnop\n.endm\n\n\ta\n", 5),
        (".if 1\n.error \"no\"\n.endif\n", 2),
    ] {
        let refusal = expand(source).expect_err(source);
        assert_eq!(refusal.line, line, "{source}: {refusal}");
    }
    assert_eq!(expand("\t.ascii \".macro\"\n\tnop\n"), Ok(None));
}
