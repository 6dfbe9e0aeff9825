//! Programs that must be refused: each with the rule that it breaks, and the place.

#[allow(dead_code, reason = "each test uses a part of it")]
mod programs;

use programs::{Case, cases, judged};
use std::collections::BTreeSet;

#[test]
fn each_program_is_refused_by_its_rule_at_its_place() {
    let mut wrong = Vec::new();
    for case in cases("refused.txt") {
        let directory = tempfile::tempdir().expect("a directory");
        let [rule, place] = &case.expected[..] else {
            panic!("{}: a rule and a place belong there", case.name);
        };
        match judged(directory.path(), &case) {
            Ok(_) => wrong.push(format!(
                "{}: it was accepted, and {rule} at {place} was expected",
                case.name
            )),
            Err(refusals) => {
                let found: Vec<String> = refusals
                    .iter()
                    .map(|refusal| match &refusal.place {
                        Some(place) => format!("{} {}:{}", refusal.rule, place.line, place.column),
                        None => format!("{} -", refusal.rule),
                    })
                    .collect();
                if !found.contains(&format!("{rule} {place}")) {
                    wrong.push(format!(
                        "{}: expected {rule} {place}, found {found:?}",
                        case.name
                    ));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Programs that each file of cases has at least.
const PROMISED: usize = 150;

#[test]
fn there_are_as_many_as_were_promised() {
    for (file, words) in [("refused.txt", 2), ("accepted.txt", 1)] {
        let cases = cases(file);
        let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), cases.len(), "{file}: a name is there twice");
        // A program that is refused as a whole has no place, and does not count.
        let told = |case: &&Case| {
            case.expected.len() >= words && case.expected.last().is_none_or(|word| word != "-")
        };
        let count = cases.iter().filter(told).count();
        assert!(count >= PROMISED, "{file}: {count}");
    }
}
