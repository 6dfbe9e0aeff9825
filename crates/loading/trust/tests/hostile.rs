//! Text that is made to cost much, and the fuzzer's seeds: each ends in an answer or an error. How
//! long they take is printed, and stands in docs/trust.md.

use mullion_trust::keynote::{
    Attributes, Cost, Exhausted, Query, Store, Work, parse_all, parse_each,
};
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
    store
        .query(&query, &mut Work::unbounded())
        .expect("no bound")
        .value
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

/// Texts of a request that cost seconds and more before they were paid for.
fn expensive() -> Vec<(&'static str, String)> {
    let pattern = |number: usize| format!("long ~= \"(a|b)*c{number}\"");
    let patterns = |count: usize| {
        let list: Vec<_> = (0..count).map(pattern).collect();
        policy(&list.join(" || "))
    };
    let self_signed = |number: usize| {
        format!(
            "Authorizer: \"k{number}\"\nLicensees: \"r\"\nConditions: {};\n",
            pattern(number)
        )
    };
    // Each of the licensees is raised, and the assertion was looked at anew for each.
    let mut raised = String::new();
    let keys: Vec<_> = (0..7000).map(|number| format!("\"k{number}\"")).collect();
    for key in &keys {
        raised += &format!("Authorizer: {key}\nLicensees: \"r\"\n\n");
    }
    for _ in 0..4 {
        raised += &format!("{}\n", licensees(&keys.join(" && ")));
    }
    let constant = "x".repeat(30_000);
    let many = vec!["c"; 8000];
    vec![
        ("an assertion of patterns", patterns(2200)),
        (
            "a million bytes of patterns",
            vec![patterns(2200); 16].join("\n"),
        ),
        (
            "patterns of strangers",
            (0..10_000).map(self_signed).collect::<Vec<_>>().join("\n"),
        ),
        ("licensees that are raised one by one", raised),
        (
            "a principal that is written once and meant often",
            format!(
                "Local-Constants: c=\"{constant}\"\nAuthorizer: \"POLICY\"\nLicensees: {}\n",
                many.join("||")
            ),
        ),
        (
            "a name that is joined from a constant",
            format!(
                "Local-Constants: c=\"{constant}\"\nAuthorizer: \"POLICY\"\nLicensees: {}\n",
                many.join(".")
            ),
        ),
        ("malformed ones", "x\n\n".repeat(300_000)),
        (
            "a group that is repeated",
            policy("long ~= \"^((a|aa)*(a|aaa)*)*$\" && _1 == \"\""),
        ),
    ]
}

/// What a request would do: read, ask, explain.
fn request(text: &str, work: &mut Work) -> Result<String, Exhausted> {
    let mut store = Store::over(std::sync::Arc::new(Store::default()));
    for assertion in parse_each(text.as_bytes(), work)?.assertions {
        store.add_policy(assertion, "brought");
    }
    let attributes = Attributes::from([("long".to_owned(), vec![b'a'; 60 << 10])]);
    let query = Query::new(&["no", "yes"], &[b"r"], attributes).expect("a query");
    Ok(store.query(&query, work)?.value)
}

#[test]
fn one_budget_is_over_everything_that_a_request_brings() {
    for (name, text) in expensive() {
        let mut work = Work::of(Work::STRANGER);
        let begin = Instant::now();
        let answer = request(&text, &mut work);
        let counts =
            [Cost::Parsed, Cost::State, Cost::Match, Cost::Edge].map(|cost| work.paid(cost));
        println!(
            "{name}: {} bytes, {answer:?}, {counts:?}, {:?}",
            text.len(),
            begin.elapsed()
        );
        let units: u64 = [
            Cost::Parsed,
            Cost::Copied,
            Cost::Step,
            Cost::State,
            Cost::Match,
            Cost::Edge,
        ]
        .iter()
        .map(|cost| cost.price() * work.paid(*cost))
        .sum();
        assert!(units <= Work::STRANGER, "{name}: {units}");
    }
}

#[test]
fn licensees_cost_in_proportion_to_their_number() {
    let paid = |count: usize| {
        let keys: Vec<_> = (0..count).map(|number| format!("\"k{number}\"")).collect();
        let mut text = String::new();
        for key in &keys {
            text += &format!("Authorizer: {key}\nLicensees: \"r\"\n\n");
        }
        text += &licensees(&keys.join(" && "));
        let mut work = Work::unbounded();
        assert_eq!(request(&text, &mut work).as_deref(), Ok("yes"));
        work.paid(Cost::Edge)
    };
    let (few, many) = (paid(300), paid(6000));
    assert!(many <= 21 * few, "{few} edges, then {many}");
}

#[test]
fn a_malformed_assertion_is_left_out_and_the_others_stay() {
    let good = "Authorizer: \"POLICY\"\nLicensees: \"r\"\n";
    let text =
        format!("{good}\nAuthorizer: \"a\"\nLicensees: (\n\n# a remark\n\nnothing\n\n{good}");
    let parsed = parse_each(text.as_bytes(), &mut Work::unbounded()).expect("no bound");
    assert_eq!((parsed.assertions.len(), parsed.others), (2, 2));
    let places: Vec<_> = parsed.left_out.iter().map(|error| error.line).collect();
    assert_eq!(places, [5, 9]);
    let mut store = Store::default();
    store.add_parsed(parsed, "brought");
    let notes = store.left_out();
    assert!(
        notes[0].contains("brought") && notes[0].contains("line 5"),
        "{notes:?}"
    );
    // Of many, a few are named and the others counted.
    let parsed = parse_each("x\n\n".repeat(1000).as_bytes(), &mut Work::unbounded());
    let mut store = Store::default();
    store.add_parsed(parsed.expect("no bound"), "brought");
    let notes = store.left_out();
    assert_eq!(notes.len(), 17);
    assert!(notes[16].contains("984"), "{}", notes[16]);
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
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/keynote/seeds");
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
