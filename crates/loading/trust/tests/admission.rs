//! The loader's question from end to end, and that no bit can change unnoticed.

use mullion_decide::words::{Ask, Extent, Grounds, Obstacles, Words};
use mullion_trust::explain::{InWords, Names};
use mullion_trust::grant::Grant;
use mullion_trust::keynote::{
    Algorithms, Answer, Exhausted, Principal, Query, Store, Work, parse, parse_all,
};
use mullion_trust::record::{self, Compilation, TypeReference};
use mullion_trust::{
    Decision, Limits, ModuleType, Policy, PublicKey, Reason, Refusal, Request, SecretKey,
    Sha256Digest, decide,
};
use std::path::Path;

const IMAGE: &[u8] = b"\x7fELF, or so";
const TYPE: &str = "version = 1\nid = \"monitor\"\nlanguage = \"c\"\nprotection = \"write-call\"\n\
    mechanism = [\"window\", \"process\"]\nimports = [\"log\", \"now\"]\n[limits]\nheap = \"4M\"\ntime = \"10ms\"\n";

struct World {
    policy: Policy,
    root: SecretKey,
    alice: SecretKey,
    bob: SecretKey,
    record: String,
    _directory: tempfile::TempDir,
}

fn world() -> World {
    let [root, compiler, alice, bob] = [1, 2, 3, 4].map(|seed| SecretKey::from_seed(&[seed; 32]));
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("t.toml"), TYPE).expect("a type");
    let text = format!(
        "version = 1\ntypes = [\"t.toml\"]\n[keys]\nroot = \"{}\"\ncc = \"{}\"\n[allow]\nload = [\"root\"]\ncompile = [\"cc\"]\n",
        root.public(),
        compiler.public()
    );
    let path = directory.path().join("policy.toml");
    std::fs::write(&path, text).expect("a policy");
    let module_type = ModuleType::parse(TYPE, Path::new("t.toml")).expect("a type");
    let compilation = Compilation {
        module_type: TypeReference::to(&module_type),
        protection: module_type.protection,
        imports: Vec::new(),
        tools: Default::default(),
        flags: Vec::new(),
        sources: Default::default(),
        elastic: None,
    };
    World {
        policy: Policy::read(&path).expect("a policy"),
        record: record::sign("x.mx", &Sha256Digest::of(IMAGE), &compilation, &compiler),
        root,
        alice,
        bob,
        _directory: directory,
    }
}

fn grant(from: &SecretKey, to: &SecretKey, change: impl FnOnce(&mut Grant)) -> String {
    let mut grant = Grant {
        from: "from".to_owned(),
        to: vec![("to".to_owned(), to.public())],
        types: vec!["monitor".to_owned()],
        ..Grant::default()
    };
    change(&mut grant);
    grant.sign(from).expect("a grant")
}

impl World {
    fn ask(&self, who: &SecretKey, credentials: &[String]) -> Result<Decision, Box<Refusal>> {
        self.ask_about(who, credentials, IMAGE, &self.record, |_| {})
    }

    fn ask_about(
        &self,
        who: &SecretKey,
        credentials: &[String],
        image: &[u8],
        record: &str,
        change: impl FnOnce(&mut Request),
    ) -> Result<Decision, Box<Refusal>> {
        let mut store = self.policy.store();
        for text in credentials {
            store.add_credential(parse(text.as_bytes()).expect("KeyNote"), "test");
        }
        let mut request = Request::new(vec![who.public()], Sha256Digest::of(image));
        change(&mut request);
        decide(
            &self.policy,
            &store,
            record,
            &request,
            &Names::default(),
            &mut Work::of(Work::STRANGER),
        )
    }
}

#[test]
fn the_root_may_load_with_the_limits_of_the_type() {
    let world = world();
    let decision = world.ask(&world.root, &[]).expect("granted");
    assert_eq!(decision.limits.heap, Some(4 << 20));
    assert_eq!(decision.imports, ["log", "now"]);
    assert!(decision.verify);
}

#[test]
fn a_stranger_may_not() {
    let world = world();
    let refusal = world.ask(&world.bob, &[]).expect_err("nobody named bob");
    assert!(
        matches!(refusal.reason, Reason::NotGranted(..)),
        "{refusal}"
    );
    assert!(
        refusal
            .obstacles
            .iter()
            .any(|line| line.contains("no policy and no credential"))
    );
}

#[test]
fn of_type_and_every_credential_the_strictest_limit_holds() {
    let world = world();
    let limited = |heap: u64| {
        move |grant: &mut Grant| {
            grant.limits = Limits {
                heap: Some(heap),
                ..Limits::NONE
            }
        }
    };
    let to_alice = grant(&world.root, &world.alice, limited(2 << 20));
    let to_bob = grant(&world.alice, &world.bob, limited(1 << 20));
    let wide = grant(&world.alice, &world.bob, limited(64 << 20));
    let heap = |credentials: &[String]| {
        world
            .ask(&world.bob, credentials)
            .expect("granted")
            .limits
            .heap
    };
    assert_eq!(heap(&[to_alice.clone(), to_bob.clone()]), Some(1 << 20));
    assert_eq!(heap(&[to_alice.clone(), wide.clone()]), Some(2 << 20));
    // A second way with a higher limit raises it, a lower one does not lower it.
    assert_eq!(heap(&[to_alice, to_bob, wide]), Some(2 << 20));
    let time = world.ask(&world.root, &[]).expect("granted").limits.time;
    assert_eq!(time, Some(10));
}

#[test]
fn imports_are_those_that_are_granted() {
    let world = world();
    let text = grant(&world.root, &world.alice, |grant| {
        grant.imports = Some(vec!["log".into()])
    });
    let decision = world
        .ask(&world.alice, std::slice::from_ref(&text))
        .expect("granted");
    assert_eq!(decision.imports, ["log"]);
    let refusal = world.ask_about(&world.alice, &[text], IMAGE, &world.record, |request| {
        request.imports = Some(vec!["log".into(), "now".into()]);
    });
    let refusal = refusal.expect_err("now is not granted");
    assert!(matches!(refusal.reason, Reason::Imports(..)), "{refusal}");
    assert!(refusal.way_out.contains("now"), "{}", refusal.way_out);
}

/// Says that so much is granted, whatever is asked.
struct Greedy(Extent, InWords);

impl Words for Greedy {
    fn most(
        &self,
        _: &Store,
        _: &Answer,
        _: &Extent,
        _: &mut Ask<'_>,
        _: &mut Work,
    ) -> Result<Extent, Exhausted> {
        Ok(self.0.clone())
    }

    fn keys(&self, keys: &[PublicKey]) -> String {
        self.1.keys(keys)
    }

    fn chain(&self, store: &Store, answer: &Answer) -> Vec<String> {
        self.1.chain(store, answer)
    }

    fn obstacles(
        &self,
        store: &Store,
        query: &Query,
        answer: &Answer,
        requesters: &[Principal],
        work: &mut Work,
    ) -> Obstacles {
        self.1.obstacles(store, query, answer, requesters, work)
    }

    fn explanation(&self, decision: &Decision, grounds: &Grounds<'_>) -> String {
        self.1.explanation(decision, grounds)
    }
}

/// The search for what is granted is not trusted: what it says is asked, and no more than may be asked for.
#[test]
fn whatever_is_found_no_more_is_given_than_is_granted() {
    let world = world();
    let credential = |imports: Option<&[&str]>| {
        grant(&world.root, &world.alice, |grant| {
            grant.limits.heap = Some(1 << 20);
            let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
            grant.imports = imports.map(names);
        })
    };
    let said = |credential: &str, heap: i32, imports: &[&str]| {
        let mut store = world.policy.store();
        store.add_credential(parse(credential.as_bytes()).expect("KeyNote"), "test");
        let wanted = Extent {
            amounts: [heap, i32::MAX, i32::MAX, i32::MAX],
            imports: imports.iter().map(|name| (*name).to_owned()).collect(),
        };
        let words = Greedy(wanted, InWords::new(&world.policy, &Names::default()));
        let request = Request::new(vec![world.alice.public()], Sha256Digest::of(IMAGE));
        let work = &mut Work::of(Work::STRANGER);
        let decision =
            mullion_decide::decide(&world.policy, &store, &world.record, &request, work, &words);
        let decision = decision.expect("leave to load");
        (decision.limits.heap, decision.limits.time, decision.imports)
    };
    let (some, all) = (credential(Some(&["log"])), credential(None));
    let names = |list: &[&str]| {
        list.iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let (mega, time) = (Some(1 << 20), Some(10));
    assert_eq!(said(&some, 1024, &["log"]), (mega, time, names(&["log"])));
    // No import that the type does not have.
    let found = said(&all, 1024, &["exec", "log", "now"]);
    assert_eq!(found, (mega, time, names(&["log", "now"])));
    // Nothing is given of a request that is not granted.
    let nothing = (Some(0), Some(0), names(&[]));
    assert_eq!(said(&all, 1025, &["log"]), nothing);
    assert_eq!(said(&some, 1024, &["log", "now"]), nothing);
}

#[test]
fn conditions_of_time_and_attributes_hold() {
    let world = world();
    let text = grant(&world.root, &world.alice, |grant| {
        grant.when = Some("hour >= \"09\" && hour < \"17\" && site == \"here\"".into());
    });
    let at = |hour: u64, site: &str| {
        world.ask_about(
            &world.alice,
            std::slice::from_ref(&text),
            IMAGE,
            &world.record,
            |request| {
                request.time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(hour * 3600);
                request
                    .attributes
                    .insert("site".into(), site.as_bytes().to_vec());
            },
        )
    };
    assert!(at(9, "here").is_ok() && at(16, "here").is_ok());
    assert!(at(8, "here").is_err() && at(17, "here").is_err() && at(12, "there").is_err());
}

#[test]
fn attributes_of_the_loader_cannot_be_forged() {
    let world = world();
    for name in ["type", "app_domain", "image", "hour", "heap_kib"] {
        let refusal = world.ask_about(&world.root, &[], IMAGE, &world.record, |request| {
            request.attributes.insert(name.into(), b"x".to_vec());
        });
        assert_eq!(
            refusal.expect_err("forged").reason,
            Reason::Attribute(name.into())
        );
    }
}

#[test]
fn the_compiler_must_have_leave() {
    let world = world();
    let module_type = ModuleType::parse(TYPE, Path::new("t.toml")).expect("a type");
    let compilation = Compilation {
        module_type: TypeReference::to(&module_type),
        protection: module_type.protection,
        imports: Vec::new(),
        tools: Default::default(),
        flags: Vec::new(),
        sources: Default::default(),
        elastic: None,
    };
    let forged = record::sign("x.mx", &Sha256Digest::of(IMAGE), &compilation, &world.root);
    let refusal = world.ask_about(&world.root, &[], IMAGE, &forged, |_| {});
    assert!(matches!(
        refusal.expect_err("root is no compiler").reason,
        Reason::Compiler(..)
    ));
}

#[test]
fn every_bit_of_the_image_counts() {
    let world = world();
    for bit in 0..IMAGE.len() * 8 {
        let mut image = IMAGE.to_vec();
        image[bit / 8] ^= 1 << (bit % 8);
        let refusal = world.ask_about(&world.root, &[], &image, &world.record, |_| {});
        assert!(matches!(
            refusal.expect_err("changed").reason,
            Reason::OtherImage { .. }
        ));
    }
}

#[test]
fn every_bit_of_the_record_counts() {
    let world = world();
    for bit in 0..world.record.len() * 8 {
        let mut bytes = world.record.clone().into_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let Ok(text) = String::from_utf8(bytes) else {
            continue; // No text at all: it cannot even be read.
        };
        let refusal = world.ask_about(&world.root, &[], IMAGE, &text, |_| {});
        let refusal = refusal.expect_err(&format!("bit {bit} was changed"));
        assert!(
            matches!(refusal.reason, Reason::Record(_)),
            "bit {bit}: {refusal}"
        );
    }
}

#[test]
fn every_bit_of_a_credential_counts() {
    let world = world();
    let text = grant(&world.root, &world.alice, |grant| {
        grant.when = Some("hour >= \"00\"".into())
    });
    world
        .ask(&world.alice, std::slice::from_ref(&text))
        .expect("whole, it is good");
    let authorizer = world.root.public().principal();
    for bit in 0..text.len() * 8 {
        let mut bytes = text.clone().into_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let Ok(found) = parse_all(&bytes) else {
            continue; // Refused as text, with the place.
        };
        for assertion in found {
            let good = assertion.verify(&authorizer, Algorithms::default()).is_ok();
            let same = assertion.source() == text.as_bytes();
            assert!(
                !good || same,
                "bit {bit} was changed and the signature is good"
            );
            let mut store = Store::default();
            let id = store.add_credential(assertion, "changed");
            assert!(store.verify(id).is_err(), "bit {bit}");
        }
    }
}
