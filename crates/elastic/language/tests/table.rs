//! The table `[elastic]` of module types.

use mullion_decide::ModuleType;
use mullion_elastic::{BaseLanguage, Elastic, Memory, Rule, Wall};
use std::path::Path;

const HEAD: &str =
    "version = 1\nid = \"student\"\nlanguage = \"c\"\nprotection = \"read-write-call\"\n";

fn parsed(text: &str) -> Result<Elastic, String> {
    let read = Elastic::parse(text, Path::new("types/student.toml"));
    read.map(|(_, elastic)| elastic.expect("a table"))
        .map_err(|error| error.to_string())
}

fn with(table: &str) -> Result<Elastic, String> {
    parsed(&format!(
        "{HEAD}mechanism = [\"window\"]\n[elastic]\n{table}"
    ))
}

#[test]
fn a_table_is_read() {
    let elastic = with("forbid = [\"loops\"]\nstack = \"16K\"\nloop-depth = 2\nentries = [\"f\"]")
        .expect("good");
    assert_eq!(
        (elastic.wall, elastic.memory),
        (Wall::LanguageAndWindow, Memory::Wall)
    );
    assert_eq!((elastic.stack, elastic.loop_depth), (Some(16384), Some(2)));
    assert_eq!(elastic.exports, ["f"]);
    assert!(elastic.forbids(Rule::Loops) && elastic.forbids(Rule::BackwardGoto));
    assert!(
        elastic.forbids(Rule::IndirectCalls),
        "loops are not counted behind pointers"
    );
    assert!(!elastic.forbids(Rule::Statics));
    assert!(elastic.forbids(Rule::InlineAssembly), "no type has it");
    let checked = with("memory = \"checked\"").expect("good");
    assert!(checked.forbids(Rule::Unions) && checked.forbids(Rule::KeptPointers));
}

#[test]
fn a_table_that_promises_too_much_is_an_error() {
    let wrong = |table: &str, expected: &str| {
        let error = with(table).expect_err(table);
        assert!(error.contains(expected), "{error}");
    };
    wrong("wall = \"language\"", "C is no wall");
    wrong(
        "wall = \"language-and-process\"",
        "wants the mechanism `process` and no other",
    );
    wrong(
        "locked = [\"struct packet.source\"]",
        "any pointer can look past",
    );
    wrong("forbid = [\"loop\"]", "loop");
    wrong("entries = [\"1f\"]", "is no name of a function");
    wrong(
        "[elastic.environment]\nfile = \"e.c\"\nsha256 = \"12\"",
        "this is no SHA-256 digest",
    );
    let other = format!(
        "{}mechanism = [\"window\"]\n[elastic]\n",
        HEAD.replace("\"c\"", "\"c++\"")
    );
    assert!(
        parsed(&other)
            .expect_err("no C++")
            .contains("no elastic language for `c++`")
    );
    let both = format!("{HEAD}mechanism = [\"window\", \"process\"]\n[elastic]\n");
    assert!(
        parsed(&both)
            .expect_err("two walls")
            .contains("and no other")
    );
}

#[test]
fn a_type_of_rust_closes_known_holes_unless_its_authors_are_trusted() {
    let rust = |table: &str| {
        let head = HEAD.replace("\"c\"", "\"rust\"");
        parsed(&format!(
            "{head}mechanism = [\"window\"]\n[elastic]\n{table}"
        ))
    };
    let elastic = rust("").expect("good");
    assert_eq!(
        (elastic.base, elastic.memory),
        (BaseLanguage::Rust, Memory::Checked)
    );
    for rule in [
        Rule::TraitObjects,
        Rule::FunctionPointers,
        Rule::NamedLifetimes,
        Rule::OwnTraits,
        Rule::Guards,
        Rule::OperandJumps,
        Rule::IndexStatements,
        Rule::RawPointers,
    ] {
        assert!(elastic.forbids(rule), "{rule}");
    }
    assert!(elastic.forbids(Rule::Unsafe) && !elastic.forbids(Rule::Goto));
    assert!(
        !elastic.forbids(Rule::Allocation),
        "memory is checked by the language"
    );
    let trusted = rust("authors = \"trusted\"\nforbid = [\"panics\"]").expect("good");
    assert!(!trusted.forbids(Rule::OwnTraits) && trusted.forbids(Rule::IndirectCalls));
    // Recursion checks the depth when it runs, which calls by pointers would not let one see.
    let deep = rust("stack = \"1K\"").expect("good");
    assert!(!deep.forbids(Rule::Recursion) && deep.forbids(Rule::IndirectCalls));
    let nests = rust("stack = \"1K\"\nloop-nests = 1").expect("good");
    assert!(nests.loop_nests == Some(1) && nests.forbids(Rule::Recursion));
    assert!(rust("memory = \"wall\"").is_err() && rust("forbid = [\"goto\"]").is_err());
    assert!(with("authors = \"trusted\"").is_err() && with("forbid = [\"panics\"]").is_err());
}

/// A type behind the language alone, with everything that it must have.
const ALONE: &str = "version = 1\nid = \"monitor\"\nlanguage = \"rust\"\nprotection = \"none\"\nverification = \"trusted\"\n\
                     mechanism = [\"language\"]\n[elastic]\nwall = \"language\"\nauthors = \"untrusted\"\nstack = \"1K\"\n\
                     instructions = 1000\nforbid = [\"panics\", \"allocation\"]\n";

#[test]
fn the_language_alone_is_for_types_that_forbid_and_bound_what_nothing_else_stops() {
    let elastic = parsed(ALONE).expect("good");
    assert_eq!(elastic.wall, Wall::Language);
    for rule in [
        Rule::Unsafe,
        Rule::UnboundedLoops,
        Rule::Recursion,
        Rule::IndirectCalls,
        Rule::TraitObjects,
    ] {
        assert!(elastic.forbids(rule), "{rule}");
    }
    for (from, to, missing) in [
        ("\"panics\", ", "", "lacks `panics` in `forbid`\n"),
        (", \"allocation\"", "", "lacks `allocation` in `forbid`\n"),
        (
            "instructions = 1000\n",
            "",
            "lacks `recursion` in `forbid`, `unbounded-loops` in `forbid`, `instructions`\n",
        ),
        ("stack = \"1K\"\n", "", "lacks `stack`\n"),
        (
            "\"untrusted\"",
            "\"trusted\"",
            "lacks authors = \"untrusted\"\n",
        ),
        (
            "protection = \"none\"",
            "protection = \"write-call\"",
            "lacks protection = \"none\"\n",
        ),
        (
            "verification = \"trusted\"",
            "verification = \"required\"",
            "lacks verification = \"trusted\"\n",
        ),
        ("[\"language\"]", "[\"window\"]", "confined in nothing"),
        (
            "[\"language\"]",
            "[\"language\", \"window\"]",
            "confined in nothing",
        ),
    ] {
        assert!(ALONE.contains(from), "{from}");
        let error = parsed(&ALONE.replacen(from, to, 1)).expect_err(from);
        assert!(error.contains(missing), "{from}: {error}");
    }
    let c = ALONE
        .replace("\"rust\"", "\"c\"")
        .replace("authors = \"untrusted\"\n", "")
        .replace("\"panics\", ", "");
    assert!(parsed(&c).expect_err("C").contains("C is no wall"));
    // Nobody has it who does not say so.
    let silent = parsed(&ALONE.replace("wall = \"language\"\n", "")).expect_err("a window");
    assert!(
        silent.contains("wants the mechanism `window` and no other"),
        "{silent}"
    );
}

#[test]
fn the_schema_has_every_rule_of_elastic_languages() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/trust");
    let text = std::fs::read_to_string(examples.join("module-type.schema.json"));
    let text = text.expect("a schema");
    let schema: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let elastic = &schema["properties"]["elastic"]["properties"];
    let listed = elastic["forbid"]["items"]["enum"]
        .as_array()
        .expect("a list");
    let listed: Vec<&str> = listed.iter().filter_map(|rule| rule.as_str()).collect();
    let rules: Vec<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(listed, rules);
}

/// The loader reads the same file, and asks only whether the table is there.
#[test]
fn what_is_wrong_in_a_table_is_for_the_judge_alone() {
    let text = format!("{HEAD}mechanism = [\"window\"]\n[elastic]\nforbid = [\"loop\"]\n");
    let known = ModuleType::parse(&text, Path::new("t.toml")).expect("a type");
    assert!(known.elastic.is_some());
    let error = Elastic::of(&known).expect_err("no such rule").to_string();
    assert!(
        error.starts_with("t.toml:7:11: unknown variant `loop`"),
        "{error}"
    );
    let text = text.replace("[elastic]\nforbid = [\"loop\"]\n", "");
    let known = ModuleType::parse(&text, Path::new("t.toml")).expect("a type");
    assert!(known.elastic.is_none() && Elastic::of(&known).expect("none").is_none());
}
