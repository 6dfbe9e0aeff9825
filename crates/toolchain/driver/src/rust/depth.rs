//! Recursion under a bound of stack. Each function that may come to itself again looks, when it begins, whether the
//! stack has become deeper than it may.
//!
//! What is looked for is in rustc's own text: whatever it has inlined or copied, a circle of calls is there.

use std::collections::{BTreeMap, BTreeSet};

/// The variable that holds the lowest address that such a function may find the stack at.
pub const FLOOR: &str = "mullion_stack_floor";

/// A function of the text.
#[derive(Default)]
struct Function<'a> {
    /// The line behind which its instructions begin.
    begins: usize,
    calls: BTreeSet<&'a str>,
}

/// The text with a check in each function of a circle of calls; `None`: there is no circle.
pub(super) fn checked(text: &str) -> Option<String> {
    let functions = read(text);
    let begins: BTreeMap<usize, usize> = functions
        .iter()
        .filter(|(name, _)| comes_again(name, &functions))
        .enumerate()
        .map(|(number, (_, function))| (function.begins, number))
        .collect();
    if begins.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len() + 128 * begins.len());
    for (at, line) in text.lines().enumerate() {
        out.push_str(line);
        out.push('\n');
        if let Some(number) = begins.get(&at) {
            // Nobody has put anything into the flags yet.
            let passed = format!(".Lmullion_depth_{number}");
            out.push_str(&format!(
                "\tcmpq\t{FLOOR}(%rip), %rsp\n\tjae\t{passed}\n\tud2\n{passed}:\n"
            ));
        }
    }
    Some(out)
}

fn comes_again(name: &str, functions: &BTreeMap<&str, Function<'_>>) -> bool {
    let mut seen = BTreeSet::new();
    let mut left = vec![name];
    while let Some(at) = left.pop() {
        for call in functions.get(at).into_iter().flat_map(|found| &found.calls) {
            if *call == name {
                return true;
            }
            if seen.insert(*call) {
                left.push(call);
            }
        }
    }
    false
}

fn read(text: &str) -> BTreeMap<&str, Function<'_>> {
    let mut names = BTreeSet::new();
    let mut functions: BTreeMap<&str, Function<'_>> = BTreeMap::new();
    let mut at = "";
    for (number, line) in text.lines().enumerate() {
        let label = line.split_once(':').map(|(label, _)| label);
        if let Some(label) = label.filter(|label| names.contains(label)) {
            at = label;
            functions.entry(at).or_default().begins = number;
            continue;
        }
        let Some((word, operands)) = line.strip_prefix('\t').map(words) else {
            continue;
        };
        match (word, functions.get_mut(at)) {
            (".type", _) => names.extend(operands.strip_suffix(",@function")),
            // Another name for a function.
            (".set", _) => {
                if let Some((name, to)) = operands.split_once(", ") {
                    functions.entry(name).or_default().calls.insert(to);
                }
            }
            (".cfi_startproc", Some(function)) => function.begins = number,
            (_, Some(function)) if word.starts_with("call") || word.starts_with('j') => {
                let to = operands.split(['@', '\t', ' ', '#']).next();
                function.calls.extend(to.filter(|to| !to.starts_with(".L")));
            }
            _ => {}
        }
    }
    functions
}

/// A line's first word and the rest.
fn words(line: &str) -> (&str, &str) {
    line.split_once('\t').unwrap_or((line, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str =
        "\t.type\tone,@function\none:\n\t.cfi_startproc\n\tpushq\t%rax\n\tcallq\ttwo@PLT\n\tretq\n";
    const TWO: &str = "\t.type\ttwo,@function\ntwo:\n\tdecq\t%rdi\n\tjne\tone\n\tretq\n";
    const LEAF: &str =
        "\t.type\tleaf,@function\nleaf:                # @leaf\n.LBB0_1:\n\tjne\t.LBB0_1\n\tretq\n";

    #[test]
    fn functions_of_a_circle_are_checked_and_no_others() {
        let text = checked(&format!("{ONE}{TWO}{LEAF}")).expect("a circle");
        let first = "\t.cfi_startproc\n\tcmpq\tmullion_stack_floor(%rip), %rsp\n\tjae\t.Lmullion_depth_0\n\tud2\n\
                     .Lmullion_depth_0:\n\tpushq\t%rax\n";
        assert!(text.contains(first), "{text}");
        assert!(text.contains("two:\n\tcmpq\tmullion_stack_floor"), "{text}");
        assert!(text.ends_with(LEAF), "{text}");
    }

    #[test]
    fn a_text_without_circles_stays_as_it_is() {
        assert_eq!(checked(LEAF), None);
        assert_eq!(checked(ONE), None);
    }

    #[test]
    fn another_name_of_a_function_is_that_function() {
        let text = "\t.type\tone,@function\none:\n\tcallq\ttwo\n\tretq\n\t.set\ttwo, one\n";
        assert!(checked(text).expect("a circle").contains("one:\n\tcmpq"));
    }
}
