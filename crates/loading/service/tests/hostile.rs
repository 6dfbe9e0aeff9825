//! Requests that are made to cost much, over a socket: what is done, and who is served.

use mullion_loader::{Authoriser, Imports};
use mullion_service::wire::{Answer, List, Load, Operation, Restart, Status};
use mullion_service::{Address, Client, Server, ServiceListener, Settings, Stopper};
use mullion_trust::grant::Grant;
use mullion_trust::log::{LINE, Log};
use mullion_trust::module_type::Protection;
use mullion_trust::record::{self, Compilation, TypeReference};
use mullion_trust::{ModuleType, Policy, SecretKey, Sha256Digest};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const TYPE: &str = "version = 1\nid = \"tool\"\nlanguage = \"c\"\nprotection = \"write-call\"\n\
    mechanism = [\"window\"]\nimports = []\n";
const IMAGE: &[u8] = b"no image at all";
/// Bytes of credentials that leave a request a small one.
const SMALL_FRAME: usize = 50 << 10;

/// A loader whose policy lets `key(1)` load, and believes the records of `key(2)`.
struct Loader {
    directory: tempfile::TempDir,
    stopper: Stopper,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed(&[seed; 32])
}

impl Loader {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("tool.toml"), TYPE).expect("a file");
        let text = format!(
            "version = 1\ntypes = [\"tool.toml\"]\nlog = \"log\"\n[keys]\nroot = \"{}\"\ncc = \"{}\"\n\
             [allow]\nload = [\"root\"]\ncompile = [\"cc\"]\n",
            key(1).public(),
            key(2).public()
        );
        std::fs::write(path("policy.toml"), text).expect("a file");
        let policy = Policy::read(&path("policy.toml")).expect("a policy");
        let authoriser = Authoriser::new(policy, |_| {}).expect("a policy");
        let listener = ServiceListener::bind(&Address::Unix(path("s"))).expect("bound");
        let imports = Box::new(|_| Imports::new());
        let settings = Settings {
            workers: 2,
            ..Settings::default()
        };
        let server = Server::new(vec![listener], authoriser, imports, settings).expect("a server");
        Loader {
            stopper: server.stopper(),
            thread: Some(std::thread::spawn(move || server.run())),
            directory,
        }
    }

    fn client(&self, seed: u8) -> Client {
        let address = Address::Unix(self.directory.path().join("s"));
        Client::connect(&address, key(seed), Duration::from_secs(120)).expect("connected")
    }

    fn load(&self, seed: u8, credentials: Vec<String>) -> Answer {
        let module_type = ModuleType::parse(TYPE, Path::new("tool.toml")).expect("a type");
        let compilation = Compilation {
            module_type: TypeReference::to(&module_type),
            protection: Protection::WriteCall,
            imports: Vec::new(),
            tools: Default::default(),
            flags: Vec::new(),
            sources: Default::default(),
            elastic: None,
        };
        let record = record::sign("x", &Sha256Digest::of(IMAGE), &compilation, &key(2));
        let load = Load {
            record: Some(record),
            credentials,
            ..Load::default()
        };
        let mut client = self.client(seed);
        let answer = client.ask(Operation::Load, &load, IMAGE, &mut |_, _| {});
        answer.expect("answered")
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.stopper.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(matches!(ended, Some(Ok(Ok(())))), "{ended:?}");
    }
}

fn error(answer: &Answer) -> &str {
    answer.object["error"].as_str().unwrap_or_default()
}

/// Credentials of a stranger that cost more than its budget.
fn expensive(own: &SecretKey) -> Vec<(&'static str, String)> {
    let public = own.public();
    let tests: Vec<_> = (0..2000)
        .map(|number| format!("image ~= \"(a|b)*c{number}\""))
        .collect();
    let tests = tests.join(" || ");
    let patterns =
        format!("Authorizer: \"POLICY\"\nLicensees: \"{public}\"\nConditions: {tests};\n\n");
    let keys: Vec<_> = (0..7000).map(|number| format!("\"k{number}\"")).collect();
    let mut licensees = String::new();
    for key in &keys {
        licensees += &format!("Authorizer: {key}\nLicensees: \"{public}\"\n\n");
    }
    licensees += &format!("Authorizer: \"POLICY\"\nLicensees: {}\n", keys.join(" && "));
    let grant = Grant {
        from: "me".into(),
        to: vec![("me".into(), public)],
        comment: Some("\u{1}".repeat(300)),
        ..Grant::default()
    };
    let signed = grant.sign(own).expect("a grant") + "\n";
    vec![
        ("patterns", patterns.repeat(24)),
        ("licensees", licensees),
        ("signatures", signed.repeat(900)),
        ("malformed ones", "x\n\n".repeat(400_000)),
    ]
}

#[test]
fn a_stranger_has_a_small_budget_and_the_log_stays_readable() {
    let loader = Loader::new();
    let own = key(9);
    for (name, text) in expensive(&own) {
        let answer = loader.load(9, vec![text]);
        assert_eq!(answer.status, Status::Refused, "{name}");
        assert!(
            error(&answer).contains("more work"),
            "{name}: {}",
            error(&answer)
        );
        assert!(answer.object.to_string().len() < 50_000, "{name}");
    }
    // Who has credentials is decided about, and told that what it brought is no image.
    let answer = loader.load(1, Vec::new());
    assert!(error(&answer).contains("breaks"), "{}", error(&answer));
    let path = loader.directory.path().join("log");
    let mut kinds = Vec::new();
    let report = Log::new(&path).verify(|entry| kinds.push(entry.event["kind"].clone()));
    assert_eq!(report.expect("readable").head.lines, 5);
    for line in std::fs::read(&path)
        .expect("a log")
        .split(|byte| *byte == b'\n')
    {
        assert!(line.len() < LINE, "{} bytes", line.len());
    }
}

#[test]
fn credentials_within_the_budget_are_listed_in_few_lines() {
    let loader = Loader::new();
    let own = key(9);
    let grant = Grant {
        from: "me".into(),
        to: vec![("me".into(), own.public())],
        comment: Some("\u{1}".repeat(500)),
        ..Grant::default()
    };
    let signed = grant.sign(&own).expect("a grant") + "\n";
    let answer = loader.load(9, vec![signed.repeat(120), "nonsense\n".into()]);
    assert!(
        error(&answer).contains("may not load"),
        "{}",
        error(&answer)
    );
    let obstacles = answer.object["obstacles"].as_array().expect("a list");
    assert!((1..=41).contains(&obstacles.len()), "{}", obstacles.len());
    assert!(obstacles.iter().all(|line| line.to_string().len() < 8000));
    assert!(
        !answer
            .object
            .to_string()
            .contains("the policy itself names")
    );
}

#[test]
fn while_strangers_keep_their_worker_busy_others_are_answered() {
    let loader = Loader::new();
    let own = key(9);
    let (_, text) = expensive(&own).swap_remove(0);
    std::thread::scope(|scope| {
        let strangers: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| loader.load(9, vec![text.clone()])))
            .collect();
        let mut client = loader.client(1);
        for _ in 0..20 {
            let answer = client.ask(Operation::List, &List {}, &[], &mut |_, _| {});
            assert_eq!(answer.expect("answered").status, Status::Done);
        }
        for stranger in strangers {
            let answer = stranger.join().expect("answered");
            assert_eq!(answer.status, Status::Refused);
        }
    });
}

/// A hundred clients send, over and over, what takes long: large requests, and small ones that take long all the same. A
/// newcomer who brings a credential waits for a few of them only, and not for one of each.
#[test]
fn a_newcomer_with_a_credential_waits_for_few_of_a_hundred() {
    let loader = Loader::new();
    let own = key(9);
    let grant = |to: u8, from: u8| Grant {
        from: "root".into(),
        to: vec![("somebody".into(), key(to).public())],
        comment: Some(format!("of {from}")),
        ..Grant::default()
    };
    let signed = grant(9, 9).sign(&own).expect("a grant") + "\n";
    let small = signed.repeat(SMALL_FRAME / signed.len());
    let large = expensive(&own).swap_remove(2).1;
    let texts = [small, large];
    let (answered, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for client in 0..100 {
            let (text, loader) = (&texts[client % 2], &loader);
            let (answered, stop) = (&answered, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let answer = loader.load(9, vec![text.clone()]);
                    assert_ne!(answer.status, Status::Done);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while answered.load(Ordering::Relaxed) < 100 {
            std::thread::yield_now();
        }
        let mut waited = Vec::new();
        for newcomer in 20..25 {
            let granted = grant(newcomer, 1).sign(&key(1)).expect("a grant");
            let before = answered.load(Ordering::Relaxed);
            let answer = loader.load(newcomer, vec![granted]);
            waited.push(answered.load(Ordering::Relaxed) - before);
            // There was leave; what it brought is no image.
            assert!(error(&answer).contains("breaks"), "{}", error(&answer));
        }
        stop.store(true, Ordering::Relaxed);
        waited.sort_unstable();
        assert!(waited[2] < 25, "answers to others meanwhile: {waited:?}");
    });
}

#[test]
fn a_restart_of_what_is_not_there_is_refused() {
    let loader = Loader::new();
    let mut client = loader.client(1);
    let restart = Restart { module: 7 };
    let answer = client.ask(Operation::Restart, &restart, &[], &mut |_, _| {});
    let answer = answer.expect("answered");
    assert_eq!(
        (answer.status, error(&answer)),
        (Status::Refused, "you have no module 7")
    );
}
