//! The table `[elastic]` of module types, and the compiler's question.

use mullion_trust::compile::may_compile;
use mullion_trust::elastic::{BaseLanguage, Memory, Rule, Wall};
use mullion_trust::explain::Names;
use mullion_trust::grant::Grant;
use mullion_trust::keynote::{Store, Work, parse_all};
use mullion_trust::record::{self, Compilation, TypeReference};
use mullion_trust::{ModuleType, Policy, Reason, Request, SecretKey, Sha256Digest, decide};
use std::path::Path;

const HEAD: &str =
    "version = 1\nid = \"student\"\nlanguage = \"c\"\nprotection = \"read-write-call\"\n";

fn parsed(text: &str) -> Result<ModuleType, String> {
    ModuleType::parse(text, Path::new("types/student.toml")).map_err(|error| error.to_string())
}

fn with(table: &str) -> Result<ModuleType, String> {
    parsed(&format!(
        "{HEAD}mechanism = [\"window\"]\n[elastic]\n{table}"
    ))
}

#[test]
fn a_table_is_read() {
    let read = with("forbid = [\"loops\"]\nstack = \"16K\"\nloop-depth = 2\nentries = [\"f\"]")
        .expect("good");
    let elastic = read.elastic.expect("a table");
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
    let checked = with("memory = \"checked\"")
        .expect("good")
        .elastic
        .expect("a table");
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
    let elastic = rust("").expect("good").elastic.expect("a table");
    assert_eq!(
        (elastic.base, elastic.memory),
        (BaseLanguage::Rust, Memory::Checked)
    );
    for rule in [
        Rule::TraitObjects,
        Rule::FunctionPointers,
        Rule::NamedLifetimes,
        Rule::OwnTraits,
    ] {
        assert!(elastic.forbids(rule), "{rule}");
    }
    assert!(elastic.forbids(Rule::Unsafe) && !elastic.forbids(Rule::Goto));
    assert!(
        !elastic.forbids(Rule::Allocation),
        "memory is checked by the language"
    );
    let trusted = rust("authors = \"trusted\"\nforbid = [\"panics\"]").expect("good");
    let trusted = trusted.elastic.expect("a table");
    assert!(!trusted.forbids(Rule::OwnTraits) && trusted.forbids(Rule::IndirectCalls));
    assert!(rust("memory = \"wall\"").is_err() && rust("forbid = [\"goto\"]").is_err());
    assert!(with("authors = \"trusted\"").is_err() && with("forbid = [\"panics\"]").is_err());
}

#[test]
fn leave_to_use_the_compiler_is_none_to_sign() {
    let [root, compiler, alice] = [1, 2, 3].map(|seed| SecretKey::from_seed(&[seed; 32]));
    let directory = tempfile::tempdir().expect("a directory");
    let text = format!("{HEAD}mechanism = [\"window\"]\n[elastic]\n");
    std::fs::write(directory.path().join("t.toml"), &text).expect("room");
    let policy = format!(
        "version = 1\ntypes = [\"t.toml\"]\n[keys]\nroot = \"{}\"\ncc = \"{}\"\n[allow]\nload = [\"root\"]\n\
         compile = [\"root\", \"cc\"]\n",
        root.public(),
        compiler.public()
    );
    let path = directory.path().join("policy.toml");
    std::fs::write(&path, policy).expect("room");
    let policy = Policy::read(&path).expect("a policy");
    let module_type = parsed(&text).expect("a type");
    let grant = Grant {
        from: "root".to_owned(),
        to: vec![("alice".to_owned(), alice.public())],
        types: vec!["student".to_owned()],
        compile: true,
        when: Some("purpose == \"use\"".to_owned()),
        ..Grant::default()
    };
    let grant = grant.sign(&root).expect("a grant");
    let mut store: Store = policy.store();
    for assertion in parse_all(grant.as_bytes()).expect("good") {
        store.add_credential(assertion, "brought");
    }
    let ask = |store: &Store, compiler: &SecretKey| {
        let requesters = [alice.public()];
        let mut work = Work::unbounded();
        may_compile(
            &policy,
            store,
            &module_type,
            &requesters,
            &compiler.public(),
            &Names::default(),
            &mut work,
        )
    };
    assert!(ask(&store, &compiler).is_ok());
    let refusal = ask(&policy.store(), &compiler).expect_err("no grant");
    assert!(
        matches!(refusal.reason, Reason::NotCompiled(..)),
        "{refusal}"
    );
    // Her own key may not sign, neither in the compiler nor by itself.
    let refusal = ask(&store, &alice).expect_err("not her key");
    assert!(matches!(refusal.reason, Reason::Compiler(..)), "{refusal}");

    let image = Sha256Digest::of(b"an image");
    let record = |elastic, key: &SecretKey| {
        let compilation = Compilation {
            module_type: TypeReference::to(&module_type),
            protection: module_type.protection,
            imports: Vec::new(),
            tools: Default::default(),
            flags: Vec::new(),
            sources: Default::default(),
            elastic,
        };
        record::sign("x.mx", &image, &compilation, key)
    };
    let judged = record::Judged {
        wall: Wall::LanguageAndWindow,
        memory: Memory::Wall,
        rules: vec![Rule::Loops],
        text: image.to_string(),
        environment: None,
        stack: None,
        instructions: None,
    };
    let load = |record: &str| {
        let request = Request::new(vec![root.public()], image);
        decide(&policy, &store, record, &request, &mut Work::unbounded())
            .map_err(|refusal| refusal.reason)
    };
    assert!(load(&record(Some(judged.clone()), &compiler)).is_ok());
    let forged = load(&record(Some(judged), &alice)).map(drop);
    assert!(matches!(forged, Err(Reason::Compiler(..))), "{forged:?}");
    let unjudged = load(&record(None, &compiler)).map(drop);
    assert!(
        matches!(unjudged, Err(Reason::NotJudged(..))),
        "{unjudged:?}"
    );
}
