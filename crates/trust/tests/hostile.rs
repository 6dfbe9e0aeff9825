//! Text that is made to cost much, and the fuzzer's seeds: each ends in an answer or an error. How
//! long they take is printed, and stands in docs/trust.md.

use mullion_trust::keynote::{Attributes, Query, Store, parse_all};
use std::path::Path;
use std::time::{Duration, Instant};

/// What the fuzz target does (fuzz/keynote/fuzz_targets/parser.rs).
fn ask(text: &[u8]) -> String {
    let mut store = Store::default();
    for assertion in parse_all(text).unwrap_or_default() {
        store.add_policy(assertion, "fuzz");
    }
    let long = vec![b'a'; 60 << 10];
    let attributes = Attributes::from([
        ("a".to_owned(), b"aaaaaaaaaaaaaaaaaaaaaaaab".to_vec()),
        ("long".to_owned(), long),
        ("self".to_owned(), b"self".to_vec()),
    ]);
    let query = Query::new(&["no", "maybe", "yes"], &[b"r"], attributes).expect("a query");
    store.query(&query).value
}

fn policy(conditions: &str) -> String {
    format!("Authorizer: \"POLICY\"\nLicensees: \"r\"\nConditions: {conditions};\n")
}

fn licensees(field: &str) -> String {
    format!("Authorizer: \"POLICY\"\nLicensees: {field}\n")
}

fn hostile() -> Vec<(&'static str, String)> {
    let many = |count: usize, text: &str, between: &str| vec![text; count].join(between);
    let deep = |count: usize, open: &str, inside: &str, close: &str| {
        format!("{}{inside}{}", open.repeat(count), close.repeat(count))
    };
    let keys = |count: usize| {
        (0..count)
            .map(|number| format!("\"k{number}\""))
            .collect::<Vec<_>>()
    };
    let ring = (0..3000).map(|number| {
        let next = (number + 1) % 3000;
        format!("Authorizer: \"k{number}\"\nLicensees: \"k{next}\" || \"r\"\n")
    });
    let wide = (0..200).map(|number| {
        format!(
            "Authorizer: \"POLICY\"\nLicensees: \"r\"\nConditions: long ~= \"(a|b)*c{number}\";\n"
        )
    });
    vec![
        ("parentheses, deep", policy(&deep(30_000, "(", "true", ")"))),
        ("negations, deep", policy(&deep(60_000, "!", "true", ""))),
        (
            "signs, deep",
            policy(&format!("1 == {}", deep(60_000, "-", "1", ""))),
        ),
        (
            "blocks, deep",
            policy(&deep(15_000, "true -> {", "true", ";}")),
        ),
        (
            "dereferences, deep",
            policy(&format!("{} == a", deep(30_000, "$", "\"self\"", ""))),
        ),
        (
            "a name of itself",
            policy(&format!("{} == \"self\"", deep(60, "$", "\"self\"", ""))),
        ),
        ("disjunctions, long", policy(&many(8000, "a==a", "||"))),
        ("clauses, many", policy(&many(8000, "true->\"no\"", ";"))),
        (
            "concatenations, long",
            policy(&format!("{} == \"\"", many(10_000, "long", "."))),
        ),
        (
            "powers",
            policy(&format!("1 == {}", many(15_000, "9", "^"))),
        ),
        ("a pattern of stars", policy("long ~= \"(a*)*(a*)*(a*)*b\"")),
        (
            "a pattern of counts",
            policy("long ~= \"((((a{100}){100}){100}){100})\""),
        ),
        (
            "a pattern, long",
            policy(&format!("long ~= \"{}\"", many(600, "(a|aa)+", ""))),
        ),
        (
            "a pattern, deep",
            policy(&format!("long ~= \"{}\"", deep(2000, "(", "a", ")*"))),
        ),
        (
            "patterns, many",
            policy(&many(2500, "long~=\"(a|b)*c\"", "||")),
        ),
        (
            "patterns in many assertions",
            wide.collect::<Vec<_>>().join("\n"),
        ),
        (
            "k-of, wide",
            licensees(&format!("2500-of({})", keys(5000).join(","))),
        ),
        (
            "k-of, none of them",
            licensees(&format!("5000-of({})", keys(5000).join(","))),
        ),
        (
            "k, a large number",
            licensees("99999999999999999999-of(\"r\",\"s\")"),
        ),
        ("k, nothing", licensees("0-of(\"r\",\"s\")")),
        (
            "licensees, deep",
            licensees(&deep(30_000, "(", "\"r\"", ")")),
        ),
        ("licensees, many", licensees(&keys(8000).join("&&"))),
        ("a ring of delegation", ring.collect::<Vec<_>>().join("\n")),
        (
            "quotes without end",
            policy(&format!("a == \"{}", "\\".repeat(60_000))),
        ),
        ("fields, many", "Comment: x\n".repeat(5000)),
        ("constants, many", {
            let list = (0..4000).map(|number| format!("c{number}=\"v\""));
            format!(
                "Local-Constants: {}\nAuthorizer: \"POLICY\"\n",
                list.collect::<Vec<_>>().join(" ")
            )
        }),
        ("a line, long", policy(&" ".repeat(65_000))),
        ("over the bound", policy(&many(20_000, "a==a", "||"))),
    ]
}

#[test]
fn what_is_made_to_cost_much_ends() {
    let mut slowest = (Duration::ZERO, "");
    for (name, text) in hostile() {
        let begin = Instant::now();
        let value = ask(text.as_bytes());
        let took = begin.elapsed();
        println!("{name}: {value}, {} bytes, {took:?}", text.len());
        slowest = slowest.max((took, name));
    }
    println!("the slowest: {slowest:?}");
}

#[test]
fn the_seeds_of_the_fuzzer_end() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/keynote/seeds");
    let mut count = 0;
    for entry in std::fs::read_dir(seeds).expect("the seeds") {
        let text = std::fs::read(entry.expect("a file").path()).expect("a file");
        ask(&text);
        for cut in 0..text.len().min(300) {
            ask(&text[..cut]);
        }
        count += 1;
    }
    assert!(count >= 8, "{count} seeds");
}
