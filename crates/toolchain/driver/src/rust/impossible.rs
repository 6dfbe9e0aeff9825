//! Functions that a domain cannot have, and that nothing in one calls.
//!
//! Crates choose among functions at run time, by what the processor can do. In a domain the processor
//! seems to have no AVX-512 (the rewriter takes it out of what `xgetbv` says) and no FMA4. So the
//! functions that need these are never chosen; each becomes a trap, and the rest of its crate is
//! rewritten. `compiler_builtins` also has functions in assembler that use `%r11` or copy backwards
//! with the direction flag, for other C libraries than ours.

use mullion_rewriter::{Options, rewrite};
use std::borrow::Cow;
use std::ops::Range;

/// The text, with a trap in the place of each function that is refused and that nothing calls. What is
/// refused for another reason stays, and is refused again.
pub(super) fn without<'a>(text: &'a str, name: &str, options: &Options) -> Cow<'a, str> {
    let known = name.starts_with("compiler_builtins-");
    let mut text = Cow::Borrowed(text);
    // What the parser refuses hides what later passes do.
    for _ in 0..PASSES {
        let Err(refusals) = rewrite(&text, name, options) else {
            break;
        };
        let bad: Vec<usize> = refusals.iter().map(|r| r.line as usize).collect();
        let lines: Vec<&str> = text.lines().collect();
        let mut functions = functions(&lines);
        functions.retain(|body| {
            let refused = bad
                .iter()
                .any(|line| (body.start + 1..=body.end).contains(line));
            refused && (known || lines[body.clone()].iter().any(|line| is_never_chosen(line)))
        });
        if functions.is_empty() {
            break;
        }
        text = Cow::Owned(trapping(&lines, &functions));
    }
    text
}

const PASSES: usize = 3;

/// Whether a line belongs to a function that programs choose only on processors that no domain has.
fn is_never_chosen(line: &str) -> bool {
    let mut registers = line.split('%').skip(1);
    registers.any(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
        let name = &rest[..end.unwrap_or(rest.len())];
        let number = name.get(3..).and_then(|number| number.parse::<u8>().ok());
        let mask =
            name.len() == 2 && name.starts_with('k') && matches!(name.as_bytes()[1], b'0'..=b'7');
        mask || name.starts_with("zmm")
            || ((name.starts_with("xmm") || name.starts_with("ymm"))
                && number.is_some_and(|number| number >= 16))
    })
}

/// The lines (from 0) of each function, as LLVM writes them.
fn functions(lines: &[&str]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, line) in lines.iter().enumerate() {
        if line.trim_start().starts_with(".type") && line.contains("@function") {
            start = Some(at + 1);
        } else if line.starts_with(".Lfunc_end")
            && let Some(start) = start.take()
        {
            found.push(start..at);
        }
    }
    found
}

/// The text, in which each of these functions is a trap. Labels and directives stay: debug
/// information refers to them.
fn trapping(lines: &[&str], functions: &[Range<usize>]) -> String {
    let mut out = String::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
    let (mut trapped, mut functions) = (false, functions.iter().peekable());
    for (at, line) in lines.iter().enumerate() {
        if functions.next_if(|body| body.end <= at).is_some() {
            trapped = false;
        }
        let bare = line.trim();
        let code = !bare.is_empty() && !bare.starts_with(['.', '#']) && !bare.ends_with(':');
        if code && functions.peek().is_some_and(|body| body.contains(&at)) {
            if !std::mem::replace(&mut trapped, true) {
                out.push_str("\tud2\n");
            }
            continue;
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str =
        "\t.type\ta,@function\na:\n\tnop\n\tretq\n.Lfunc_end0:\n\t.size\ta, .Lfunc_end0-a\n";

    fn second(instruction: &str) -> String {
        format!(
            "\t.type\tb,@function\nb:\n\t.cfi_startproc\n\t{instruction}\n.Lx:\n\tretq\n.Lfunc_end1:\n\t.size\tb, .Lfunc_end1-b\n\t.cfi_endproc\n"
        )
    }

    #[test]
    fn a_function_that_is_never_chosen_becomes_a_trap() {
        let source = format!("{FIRST}{}{FIRST}", second("vmovdqu64\t64(%rcx), %zmm3"));
        // The label of the first is defined twice; nothing else is refused.
        let source = source.rsplit_once("\t.type\ta").unwrap().0;
        let out = without(source, "x-1.s", &Options::default());
        assert_eq!(
            &out[FIRST.len()..],
            "\t.type\tb,@function\nb:\n\t.cfi_startproc\n\tud2\n.Lx:\n.Lfunc_end1:\n\t.size\tb, .Lfunc_end1-b\n\t.cfi_endproc\n"
        );
        assert!(out.starts_with(FIRST));
        assert!(rewrite(&out, "", &Options::default()).is_ok());
    }

    #[test]
    fn what_is_refused_for_another_reason_stays() {
        let source = format!("{FIRST}{}", second("syscall"));
        assert_eq!(without(&source, "x-1.s", &Options::default()), source);
        let known = without(&source, "compiler_builtins-1.s", &Options::default());
        assert!(known.contains("ud2") && !known.contains("syscall"));
    }

    #[test]
    fn registers_of_avx_512_are_known() {
        for line in [
            "vpxorq (%rsi), %zmm0, %zmm5",
            "kmovw %k1, %eax",
            "vmovdqa64 %ymm17, (%rax)",
        ] {
            assert!(is_never_chosen(line), "{line}");
        }
        for line in ["vpxor (%rsi), %ymm15, %ymm5", "movl %ecx, %eax", "call k1"] {
            assert!(!is_never_chosen(line), "{line}");
        }
    }
}
