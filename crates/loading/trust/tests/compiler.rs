//! The compiler's question, and what the loader asks of a judgement.

use mullion_trust::compile::may_compile;
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
    let judged: serde_json::Map<_, _> = [("text".to_owned(), image.to_string().into())]
        .into_iter()
        .collect();
    let load = |record: &str| {
        let request = Request::new(vec![root.public()], image);
        let names = Names::default();
        decide(
            &policy,
            &store,
            record,
            &request,
            &names,
            &mut Work::unbounded(),
        )
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
