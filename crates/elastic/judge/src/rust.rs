//! Elastic Rust: the judge's text, and its language of questions and answers.
//!
//! The judge is a program of its own (`rustc/`), since it is made of the compiler's libraries. So that the
//! tree that is judged is the one that is compiled, it *is* rustc for the crate that it judges. It is told the type's
//! language as lines, and answers with lines. Fields are separated by tabs.

use crate::refusal::{SourcePlace, SourceRefusal};
use mullion_elastic::{Elastic, Rule};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

/// The judge's files: names and texts.
pub const SOURCES: &[(&str, &str)] = &[
    ("main.rs", include_str!("rustc/main.rs")),
    ("told.rs", include_str!("rustc/told.rs")),
    ("places.rs", include_str!("rustc/places.rs")),
    ("written.rs", include_str!("rustc/written.rs")),
    ("typed.rs", include_str!("rustc/typed.rs")),
    ("entries.rs", include_str!("rustc/entries.rs")),
    ("addresses.rs", include_str!("rustc/addresses.rs")),
    ("graph.rs", include_str!("rustc/graph.rs")),
    ("loops.rs", include_str!("rustc/loops.rs")),
    ("order.rs", include_str!("rustc/order.rs")),
    ("own.rs", include_str!("rustc/own.rs")),
    ("closed.rs", include_str!("rustc/closed.rs")),
    ("counted.rs", include_str!("rustc/counted.rs")),
];

/// What the judge is told of a language. `root` is the directory of the program's files.
#[must_use]
pub fn told(elastic: &Elastic, root: &Path) -> String {
    let mut text = String::new();
    let mut say = |kind: &str, value: &str| {
        // Writing to a string cannot fail.
        // A directory's name may hold the end of a line; what it then says must not be a rule.
        let value = value.replace(char::is_control, "?");
        let _ = writeln!(text, "{kind}\t{value}");
    };
    say("root", &root.display().to_string());
    for rule in Rule::ALL
        .iter()
        .filter(|rule| rule.is_optional() && elastic.forbids(**rule))
    {
        say("forbid", rule.name());
    }
    if let Some(loops) = elastic.loops {
        say("loops", &loops.to_string());
    }
    if let Some(depth) = elastic.loop_depth {
        say("loop-depth", &depth.to_string());
    }
    if let Some(nests) = elastic.loop_nests {
        say("loop-nests", &nests.to_string());
    }
    for name in elastic
        .environment
        .iter()
        .flat_map(|environment| &environment.public)
    {
        say("public", name);
    }
    for name in &elastic.entries {
        say("entry", name);
    }
    for name in &elastic.locked {
        say("locked", name);
    }
    for name in &elastic.read_only {
        say("read-only", name);
    }
    text
}

/// A function that the program defines for others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// The types of its parameters, as another crate spells them.
    pub parameters: Vec<String>,
    /// The type of its result.
    pub result: String,
}

/// What the judge found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What the program may not say.
    pub refusals: Vec<SourceRefusal>,
    /// Whether the whole program was looked at: its types too.
    pub whole: bool,
    /// How many loops there are.
    pub loops: u32,
    /// Its entry points, as they were declared.
    pub entries: Vec<Entry>,
    /// The program's files.
    pub files: Vec<String>,
}

impl Answer {
    /// Reads the judge's answer. `None`: it is none.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next() != Some("judged") {
            return None;
        }
        let mut answer = Answer::default();
        let mut shown = HashMap::new();
        for line in lines {
            let fields: Vec<&str> = line.split('\t').collect();
            match fields.as_slice() {
                ["refused", rule, construct, file, line, column, length, note] => {
                    let rule = Rule::ALL.iter().find(|known| known.name() == *rule)?;
                    let place = match file.is_empty() {
                        true => None,
                        false => Some(place(&mut shown, file, line, column, length)?),
                    };
                    let note = (!note.is_empty()).then(|| (*note).to_owned());
                    answer.refusals.push(SourceRefusal {
                        rule: *rule,
                        construct: (*construct).to_owned(),
                        place,
                        note,
                    });
                }
                ["whole"] => answer.whole = true,
                ["loops", count] => answer.loops = count.parse().ok()?,
                ["file", path] => answer.files.push((*path).to_owned()),
                ["glue", name, parameters @ .., result] => answer.entries.push(Entry {
                    name: (*name).to_owned(),
                    parameters: parameters.iter().map(|ty| (*ty).to_owned()).collect(),
                    result: (*result).to_owned(),
                }),
                _ => return None,
            }
        }
        Some(answer)
    }
}

fn place<'a>(
    shown: &mut HashMap<&'a str, String>,
    file: &'a str,
    line: &str,
    column: &str,
    length: &str,
) -> Option<SourcePlace> {
    // The judge has looked at no file outside the program's directory.
    let text = shown
        .entry(file)
        .or_insert_with(|| std::fs::read_to_string(file).unwrap_or_default());
    let line: usize = line.parse().ok()?;
    Some(SourcePlace {
        file: file.to_owned(),
        line,
        column: column.parse().ok()?,
        length: length.parse().ok()?,
        shown: text
            .lines()
            .nth(line.checked_sub(1)?)
            .unwrap_or_default()
            .to_owned(),
        expanded: None,
    })
}

/// The crate that joins environment and program. It has entry points under the names that the environment calls, with what
/// is wrapped around them, and the end of a panic. `program`: whether it has a `main`.
#[must_use]
pub fn glue(elastic: &Elastic, entries: &[Entry], program: bool) -> String {
    let mut text = String::from("#![no_std]\n");
    if program {
        text.push_str("#![no_main]\n");
    }
    text.push_str(
        "extern crate environment;\nextern crate program;\n\
         #[panic_handler]\n\
         fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {\n    \
         unsafe extern \"C\" { safe fn abort() -> !; }\n    abort()\n}\n",
    );
    // Recursion looks whether the stack has become deeper than this (`crates/toolchain/driver/src/rust/depth.rs`).
    let stack = elastic.stack.filter(|_| !elastic.forbids(Rule::Recursion));
    let floor = stack.map_or_else(String::new, |stack| {
        text.push_str(
            "use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};\n\
             #[unsafe(no_mangle)]\nstatic mullion_stack_floor: AtomicUsize = AtomicUsize::new(0);\n",
        );
        format!(
            "    let here = 0u8;\n    \
             mullion_stack_floor.store((&raw const here).addr().saturating_sub({stack}), Relaxed);\n"
        )
    });
    let around = |name: &Option<String>| {
        name.as_ref()
            .map(|name| format!("    environment::{name}();\n"))
    };
    let (before, after) = (around(&elastic.before), around(&elastic.after));
    for entry in entries {
        let parameters: Vec<String> = entry
            .parameters
            .iter()
            .enumerate()
            .map(|(at, ty)| format!("a{at}: {ty}"))
            .collect();
        let arguments: Vec<String> = (0..parameters.len()).map(|at| format!("a{at}")).collect();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "#[unsafe(no_mangle)]\nextern \"C\" fn {name}({parameters}) -> {result} {{\n{floor}{before}    \
             let result = program::{name}({arguments});\n{after}    result\n}}\n",
            name = entry.name,
            parameters = parameters.join(", "),
            result = entry.result,
            arguments = arguments.join(", "),
            before = before.as_deref().unwrap_or_default(),
            after = after.as_deref().unwrap_or_default(),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directorys_name_tells_no_rules() {
        let told = told(&Elastic::default(), Path::new("/a\npublic\tsecret"));
        assert_eq!(
            told.lines()
                .filter(|line| line.starts_with("public"))
                .count(),
            0,
            "{told}"
        );
    }

    #[test]
    fn an_answer_is_read_as_a_whole_or_not_at_all() {
        let text = "judged\nrefused\tloops\t`loop`\t\t\t\t\tit came out of the macro `m`\nloops\t2\nwhole\nfile\ta.rs\nglue\tf\tu32\t()\n";
        let answer = Answer::read(text).expect("an answer");
        assert!(answer.whole && answer.loops == 2 && answer.files == ["a.rs"]);
        assert_eq!(answer.refusals[0].rule, Rule::Loops);
        assert_eq!(answer.entries[0].result, "()");
        for wrong in [
            "",
            "whole\n",
            "judged\nrefused\tlooping\tx\t\t\t\t\t\n",
            "judged\nelse\n",
        ] {
            assert_eq!(Answer::read(wrong), None, "{wrong}");
        }
    }
}
