//! LLVM probes a large frame page by page. It does so in a loop that ends at what it keeps in `%r11`, however much
//! that register is to be left alone. The rewriter probes frames itself, so the loop becomes a step:
//!
//! ```text
//!     movq %rsp, %r11
//!     subq $69632, %r11
//! .LBB1_1:
//!     subq $4096, %rsp
//!     movq $0, (%rsp)
//!     cmpq %r11, %rsp
//!     jne .LBB1_1              subq $69632, %rsp
//! ```

use std::borrow::Cow;

/// The text without such loops.
pub(super) fn without(text: &str) -> Cow<'_, str> {
    if !text.contains("\tmovq\t%rsp, %r11\n") {
        return Cow::Borrowed(text);
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::with_capacity(text.len());
    let (mut at, mut register) = (0, false);
    while at < lines.len() {
        let line = lines[at];
        if let Some(end) = step(&lines[at..], &mut out) {
            at += end;
            register = true;
            continue;
        }
        // The frame was never found by `%r11`.
        let back = line.trim() == ".cfi_def_cfa_register %rsp";
        if !(back && std::mem::take(&mut register)) {
            out.push_str(line);
            out.push('\n');
        }
        at += 1;
    }
    Cow::Owned(out)
}

/// If a loop begins with the first line: writes the step, and gives the number of its lines.
fn step(lines: &[&str], out: &mut String) -> Option<usize> {
    let mut directives = Vec::new();
    let (mut label, mut size) = ("", "");
    let mut stage = 0;
    for (at, line) in lines.iter().enumerate() {
        let bare = line.trim();
        if let Some(name) = bare.strip_suffix(':').filter(|_| bare.starts_with(".LBB")) {
            label = name;
            continue;
        }
        if bare.starts_with(['.', '#']) {
            if bare != ".cfi_def_cfa_register %r11" {
                directives.push(*line);
            }
            continue;
        }
        let (name, operands) = bare.split_once('\t')?;
        let fits = match stage {
            0 => (name, operands) == ("movq", "%rsp, %r11"),
            1 => {
                size = operands.strip_suffix(", %r11")?;
                name == "subq" && size.starts_with('$')
            }
            2 => (name, operands) == ("subq", "$4096, %rsp"),
            3 => (name, operands) == ("movq", "$0, (%rsp)"),
            4 => (name, operands) == ("cmpq", "%r11, %rsp"),
            _ => name == "jne" && operands == label,
        };
        if !fits {
            return None;
        }
        stage += 1;
        if stage == 6 {
            out.push_str("\tsubq\t");
            out.push_str(size);
            out.push_str(", %rsp\n");
            for directive in directives {
                out.push_str(directive);
                out.push('\n');
            }
            return Some(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOP: &str = "\tmovq\t%rsp, %r11\n\tsubq\t$69632, %r11\n\t.cfi_def_cfa_register %r11\n\t.cfi_adjust_cfa_offset 69632\n\
        .LBB1_1:\n\tsubq\t$4096, %rsp\n\tmovq\t$0, (%rsp)\n\tcmpq\t%r11, %rsp\n\tjne\t.LBB1_1\n\tsubq\t$376, %rsp\n\
        \t.cfi_def_cfa_register %rsp\n\t.cfi_def_cfa_offset 70032\n\t.cfi_def_cfa_register %rsp\n";

    #[test]
    fn a_loop_becomes_a_step() {
        assert_eq!(
            without(LOOP),
            "\tsubq\t$69632, %rsp\n\t.cfi_adjust_cfa_offset 69632\n\tsubq\t$376, %rsp\n\t.cfi_def_cfa_offset 70032\n\
             \t.cfi_def_cfa_register %rsp\n"
        );
    }

    #[test]
    fn what_only_begins_like_it_stays() {
        for (from, to) in [
            ("$4096", "$8192"),
            ("jne\t.LBB1_1", "jne\t.LBB1_2"),
            ("%r11, %rsp", "%r10, %rsp"),
        ] {
            let other = LOOP.replace(from, to);
            assert_eq!(without(&other), other);
        }
    }
}
