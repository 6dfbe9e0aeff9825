//! Regular expressions by POSIX's rules: known cases, a slow reading of the rules, and the C library
//! of this machine, which bash asks.

use mullion_trust::keynote::{Work, posix_match};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeSet;
use std::ops::Range;
use std::process::Command;

type Groups = Vec<Option<Range<usize>>>;

fn ask(pattern: &str, text: &str) -> Option<Groups> {
    let found = posix_match(pattern.as_bytes(), text.as_bytes(), &mut Work::unbounded());
    found.expect("no bound").expect(pattern)
}

/// The groups as texts; `-` took no part.
fn shown(pattern: &str, text: &str) -> Option<String> {
    let groups = ask(pattern, text)?;
    let one = |group: &Option<Range<usize>>| match group {
        Some(range) => format!("({})", &text[range.clone()]),
        None => "-".to_owned(),
    };
    Some(groups.iter().map(one).collect())
}

#[test]
fn groups_hold_what_posix_says() {
    for (pattern, text, groups) in [
        ("(a|ab)", "ab", "(ab)"),
        ("(a|ab)(c|bcd)", "abcd", "(a)(bcd)"),
        ("(a|ab)(c|bcd)(d*)", "abcd", "(ab)(c)(d)"),
        ("(a|ab)(bcd|c)(d|.*)", "abcd", "(ab)(c)(d)"),
        ("(wee|week)(knights|night)", "weeknights", "(wee)(knights)"),
        ("(week|wee)(night|knights)", "weeknights", "(wee)(knights)"),
        ("(a*)(ab)*(b*)", "abb", "(a)-(bb)"),
        ("(a*)(a*)", "aaa", "(aaa)()"),
        ("(a?)((ab)?)", "ab", "()(ab)(ab)"),
        ("(a?)((ab)?)(b?)", "ab", "(a)()-(b)"),
        ("x*(x*)", "xxx", "()"),
        ("(.a|.b)*", "xaxbya", "(ya)"),
        ("((a)|b)*", "ab", "(b)-"),
        ("(a|(a))", "a", "(a)-"),
        ("(a*)*", "b", "()"),
        ("(a*)+", "b", "()"),
        ("(a|b){2}", "ab", "(b)"),
        ("(a|b*){2}", "a", "()"),
        ("(^|a){3}", "aa", "(a)"),
        ("(a){0}b", "ab", "-"),
        ("(ab|a)(bcd)?", "abcd", "(a)(bcd)"),
        ("(foo|foobar)(bar)?$", "foobar", "(foobar)-"),
        ("^([0-9]+)\\.([0-9]+)$", "4.27", "(4)(27)"),
        ("(aaa|aa|a)*$", "aaaa", "(a)"),
        ("(a|ab|ba)*", "aba", "(a)"),
    ] {
        assert_eq!(
            shown(pattern, text).as_deref(),
            Some(groups),
            "{pattern} on {text}"
        );
    }
    assert_eq!(shown("(a)$b", "ab"), None);
    assert_eq!(shown("a^", "a"), None);
}

/// A pattern, as a tree of the test's own.
#[derive(Clone, Debug)]
enum Tree {
    Byte(char),
    Any,
    Group(Box<Tree>),
    All(Vec<Tree>),
    One(Vec<Tree>),
    Repeat(Box<Tree>, usize, Option<usize>),
}

impl Tree {
    fn text(&self) -> String {
        match self {
            Tree::Byte(byte) => byte.to_string(),
            Tree::Any => ".".into(),
            Tree::Group(inner) => format!("({})", inner.text()),
            Tree::All(list) => list.iter().map(Tree::text).collect(),
            Tree::One(list) => list.iter().map(Tree::text).collect::<Vec<_>>().join("|"),
            Tree::Repeat(inner, 0, None) => format!("{}*", inner.text()),
            Tree::Repeat(inner, 1, None) => format!("{}+", inner.text()),
            Tree::Repeat(inner, 0, Some(1)) => format!("{}?", inner.text()),
            Tree::Repeat(inner, least, Some(most)) => format!("{}{{{least},{most}}}", inner.text()),
            Tree::Repeat(inner, least, None) => format!("{}{{{least},}}", inner.text()),
        }
    }

    /// Every place where a match from `start` can end: the definition, and no more.
    fn ends(&self, text: &[u8], start: usize) -> BTreeSet<usize> {
        match self {
            Tree::Byte(byte) => {
                let here = text.get(start) == Some(&(*byte as u8));
                here.then_some(start + 1).into_iter().collect()
            }
            Tree::Any => (start < text.len())
                .then_some(start + 1)
                .into_iter()
                .collect(),
            Tree::Group(inner) => inner.ends(text, start),
            Tree::All(list) => {
                let mut ends = BTreeSet::from([start]);
                for part in list {
                    ends = ends.iter().flat_map(|end| part.ends(text, *end)).collect();
                }
                ends
            }
            Tree::One(list) => list
                .iter()
                .flat_map(|part| part.ends(text, start))
                .collect(),
            Tree::Repeat(inner, least, most) => {
                let most = most.unwrap_or(least + text.len() + 1);
                let (mut now, mut all) = (BTreeSet::from([start]), BTreeSet::new());
                for count in 0..=most {
                    if count >= *least {
                        all.extend(&now);
                    }
                    now = now.iter().flat_map(|end| inner.ends(text, *end)).collect();
                }
                all
            }
        }
    }
}

/// The longest of the leftmost matches, by trying.
fn naive(tree: &Tree, text: &str) -> Option<Range<usize>> {
    (0..=text.len()).find_map(|start| {
        let ends = tree.ends(text.as_bytes(), start);
        ends.last().map(|end| start..*end)
    })
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        4 => prop::sample::select(vec!['a', 'b', 'c']).prop_map(Tree::Byte),
        1 => Just(Tree::Any),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        let group = |list: Vec<Tree>, one: bool| {
            let list = if one {
                Tree::One(list)
            } else {
                Tree::All(list)
            };
            Tree::Group(Box::new(list))
        };
        prop_oneof![
            (prop::collection::vec(inner.clone(), 1..4), any::<bool>())
                .prop_map(move |(list, one)| group(list, one)),
            (
                inner,
                prop::sample::select(vec![
                    (0, None),
                    (1, None),
                    (0, Some(1)),
                    (2, Some(3)),
                    (1, Some(2))
                ])
            )
                .prop_map(|(inner, (least, most))| {
                    let inner = Tree::Group(Box::new(inner));
                    Tree::Group(Box::new(Tree::Repeat(Box::new(inner), least, most)))
                }),
        ]
    })
}

fn runner(cases: u32) -> TestRunner {
    let config = Config {
        failure_persistence: None,
        ..Config::with_cases(cases)
    };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

#[test]
fn a_match_is_the_longest_of_the_leftmost() {
    let cases = (tree(), "[abc]{0,7}");
    let result = runner(3000).run(&cases, |(tree, text)| {
        // In a group of its own the whole match can be seen.
        let pattern = format!("({})", tree.text());
        let found = ask(&pattern, &text).map(|groups| groups[0].clone().expect("it took part"));
        prop_assert_eq!(found, naive(&tree, &text), "{} on {:?}", pattern, text);
        Ok(())
    });
    result.expect("as by trying");
}

/// What holds of groups by POSIX, whatever the pattern: the parts of a sequence lie one behind the
/// other, and each takes the longest text with which the others still match.
#[test]
fn parts_of_a_sequence_take_the_longest_from_left_to_right() {
    let cases = (prop::collection::vec(tree(), 2..4), "[abc]{0,7}");
    let result = runner(3000).run(&cases, |(parts, text)| {
        let pattern: String = parts
            .iter()
            .map(|part| format!("({})", part.text()))
            .collect();
        let pattern = format!("^{pattern}$");
        let bytes = text.as_bytes();
        let mut expected = Vec::new();
        let mut at = 0;
        for (index, part) in parts.iter().enumerate() {
            let rest = Tree::All(parts[index + 1..].to_vec());
            let fits = |end: &&usize| rest.ends(bytes, **end).contains(&bytes.len());
            let ends = part.ends(bytes, at);
            let Some(end) = ends.iter().rev().find(fits) else {
                prop_assert!(ask(&pattern, &text).is_none(), "{} on {:?}", pattern, text);
                return Ok(());
            };
            expected.push(at..*end);
            at = *end;
        }
        let groups = ask(&pattern, &text);
        let groups = groups.ok_or_else(|| TestCaseError::fail(format!("{pattern} on {text:?}")))?;
        // The outer groups, in the order of their parentheses.
        let mut number = 0;
        for (part, range) in parts.iter().zip(expected) {
            prop_assert_eq!(
                groups[number].clone(),
                Some(range),
                "{} on {:?}",
                pattern,
                text
            );
            number += 1 + part.text().matches('(').count();
        }
        Ok(())
    });
    result.expect("as by trying");
}

/// glibc's answer to the whole match, through bash. What its groups hold is known to differ from
/// POSIX in places.
#[test]
fn the_c_library_finds_the_same_match() {
    let mut runner = runner(1);
    let mut cases = Vec::new();
    for _ in 0..400 {
        let tree = tree().new_tree(&mut runner).expect("a pattern").current();
        let text = "[abc]{1,7}"
            .new_tree(&mut runner)
            .expect("a text")
            .current();
        cases.push((format!("({})", tree.text()), text));
    }
    let script = r#"while [ $# -gt 0 ]; do if [[ $2 =~ $1 ]]; then echo "<${BASH_REMATCH[0]}>"; else echo no; fi; shift 2; done"#;
    let mut bash = Command::new("bash");
    bash.env("LC_ALL", "C").args(["-c", script, "bash"]);
    for (pattern, text) in &cases {
        bash.args([pattern, text]);
    }
    let output = bash.output().expect("bash is there");
    let said = String::from_utf8(output.stdout).expect("text");
    assert_eq!(said.lines().count(), cases.len());
    for ((pattern, text), theirs) in cases.iter().zip(said.lines()) {
        let ours = match ask(pattern, text) {
            Some(groups) => format!("<{}>", &text[groups[0].clone().expect("the whole")]),
            None => "no".to_owned(),
        };
        assert_eq!(ours, theirs, "{pattern} on {text}");
    }
}

#[test]
fn a_pattern_is_paid_for_before_it_is_written_out_and_a_match_as_it_goes_on() {
    use mullion_trust::keynote::{Cost, Exhausted};
    let mut work = Work::unbounded();
    let error = posix_match(b"(((a{255}){255}){255}){255}", b"a", &mut work);
    assert!(error.expect("no bound").is_err());
    assert_eq!(work.paid(Cost::State), 0, "no state was made");
    let mut little = Work::of(100 * Cost::State.price());
    let outcome = posix_match(b"a{200}", b"a", &mut little);
    assert_eq!(outcome, Err(Exhausted));
    // Linear in the text, whatever the nesting.
    let paid = |length: usize| {
        let mut work = Work::unbounded();
        let text = vec![b'a'; length];
        let found = posix_match(b"(((a*)*)*)*b", &text, &mut work);
        assert_eq!(found, Ok(Ok(None)));
        work.paid(Cost::Match)
    };
    assert!(
        paid(20_000) <= 21 * paid(1000),
        "{} {}",
        paid(20_000),
        paid(1000)
    );
}
