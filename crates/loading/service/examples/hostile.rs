//! Hostile clients, and how long honest ones wait beside them:
//!
//! ```text
//! cargo run --release -p mullion-service --example hostile -- [IMAGE] [HOSTILE] [SECONDS]
//! ```
//!
//! IMAGE is an extension (`mullion cc --mullion-kind=extension`), which honest clients load and unload;
//! without one they are told that what they bring is no image, after the decision. HOSTILE clients (100)
//! prove keys that nobody knows, and send, over and over, whatever costs most. That is megabytes of
//! regular expressions, long lists of licensees, many signatures, and small requests with as many
//! signatures as they hold. They run in a process of their own, on the same processors.

use mullion_loader::{Authoriser, Imports};
use mullion_service::wire::{Load, Operation, Status, Unload};
use mullion_service::{Address, Client, Server, ServiceListener, Settings};
use mullion_trust::grant::Grant;
use mullion_trust::module_type::Protection;
use mullion_trust::record::{self, Compilation, TypeReference};
use mullion_trust::{ModuleType, Policy, SecretKey, Sha256Digest};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TYPE: &str = "version = 1\nid = \"tool\"\nlanguage = \"c\"\nprotection = \"read-write-call\"\n\
    mechanism = [\"window\"]\nimports = [\"__mullion_system\", \"host_log\", \"host_now\"]\n";

fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed(&[seed; 32])
}

fn policy(place: &Path) -> Policy {
    std::fs::write(place.join("tool.toml"), TYPE).expect("a file");
    let text = format!(
        "version = 1\ntypes = [\"tool.toml\"]\n[keys]\nroot = \"{}\"\ncc = \"{}\"\n\
         [allow]\nload = [\"root\"]\ncompile = [\"cc\"]\n",
        key(1).public(),
        key(2).public()
    );
    let path = place.join("policy.toml");
    std::fs::write(&path, text).expect("a file");
    Policy::read(&path).expect("a policy")
}

/// What honest clients bring.
fn honest(image: &[u8], credentials: Vec<String>) -> Load {
    let module_type = ModuleType::parse(TYPE, Path::new("tool.toml")).expect("a type");
    let compilation = Compilation {
        module_type: TypeReference::to(&module_type),
        protection: Protection::ReadWriteCall,
        imports: Vec::new(),
        tools: Default::default(),
        flags: Vec::new(),
        sources: Default::default(),
        elastic: None,
    };
    let record = record::sign("x.mx", &Sha256Digest::of(image), &compilation, &key(2));
    Load {
        name: "x.mx".into(),
        record: Some(record),
        credentials,
        ..Load::default()
    }
}

/// What hostile clients bring: the first is of patterns, the second of licensees, the third of
/// signatures; the last is of signatures too, in a request that is small.
fn hostile(own: &SecretKey) -> [String; 4] {
    let pattern = |number: usize| format!("image ~= \"(a|b)*c{number}\"");
    let patterns: Vec<_> = (0..2000).map(pattern).collect();
    let patterns = format!(
        "Authorizer: \"POLICY\"\nLicensees: \"{}\"\nConditions: {};\n\n",
        own.public(),
        patterns.join(" || ")
    );
    let keys: Vec<_> = (0..7000).map(|number| format!("\"k{number}\"")).collect();
    let mut licensees = String::new();
    for key in &keys {
        licensees += &format!("Authorizer: {key}\nLicensees: \"{}\"\n\n", own.public());
    }
    licensees += &format!("Authorizer: \"POLICY\"\nLicensees: {}\n", keys.join(" && "));
    let grant = Grant {
        from: "me".into(),
        to: vec![("me".into(), own.public())],
        ..Grant::default()
    };
    let signed = grant.sign(own).expect("a grant") + "\n";
    let small = signed.repeat((50 << 10) / signed.len());
    [patterns.repeat(20), licensees, signed.repeat(1500), small]
}

fn attack(address: &Address, clients: u8) {
    let answered = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..clients)
        .map(|number| {
            let (address, answered) = (address.clone(), answered.clone());
            std::thread::spawn(move || {
                let own = key(100 + number);
                let texts = hostile(&own);
                for turn in usize::from(number).. {
                    let load = honest(b"no image", vec![texts[turn % 4].clone()]);
                    let Ok(mut client) =
                        Client::connect(&address, key(100 + number), Duration::from_secs(60))
                    else {
                        return;
                    };
                    let asked = client.ask(Operation::Load, &load, b"no image", &mut |_, _| {});
                    if asked.is_ok() {
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        let _ended = thread.join();
    }
}

/// The times of one client's connections, in milliseconds, sorted.
fn measure(address: &Address, own: u8, image: &[u8], load: &Load, end: Instant) -> Vec<f64> {
    let mut times = Vec::new();
    while Instant::now() < end {
        let begin = Instant::now();
        let client = Client::connect(address, key(own), Duration::from_secs(120));
        let mut client = client.expect("connected");
        let answer = client.ask(Operation::Load, load, image, &mut |_, _| {});
        let answer = answer.expect("answered");
        times.push(begin.elapsed().as_secs_f64() * 1e3);
        if answer.status == Status::Done {
            let module = answer.object["module"].as_u64().expect("a number");
            let unload = Unload { module };
            let unloaded = client.ask(Operation::Unload, &unload, &[], &mut |_, _| {});
            unloaded.expect("unloaded");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    times.sort_by(f64::total_cmp);
    times
}

struct Ended(Option<Child>);

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _gone = child.kill();
            let _gone = child.wait();
        }
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [mode, path, clients] = arguments.as_slice()
        && mode == "--attack"
    {
        return attack(
            &Address::from(path.as_str()),
            clients.parse().expect("a number"),
        );
    }
    let (images, numbers): (Vec<_>, Vec<_>) = arguments
        .iter()
        .partition(|argument| argument.parse::<u64>().is_err());
    let image = images.first().map_or(b"no image".to_vec(), |path| {
        std::fs::read(path).expect("the image")
    });
    let number = |index: usize, default: u64| {
        numbers
            .get(index)
            .map_or(default, |text| text.parse().expect("a number"))
    };
    let (most, seconds) = (number(0, 100), number(1, 10));

    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("s");
    let address = Address::Unix(path.clone());
    let listener = ServiceListener::bind(&address).expect("bound");
    let authoriser = Authoriser::new(policy(place.path()), |_| {}).expect("a policy");
    let nothing = std::sync::Arc::new(|_: &mut mullion_runtime::GateCall<'_>| Ok(0));
    let imports = Box::new(move |_| {
        ["__mullion_system", "host_log", "host_now"]
            .into_iter()
            .fold(Imports::new(), |imports, name| {
                imports.with(name, nothing.clone())
            })
    });
    let server = Server::new(vec![listener], authoriser, imports, Settings::default());
    let server = server.expect("a server");
    let stopper = server.stopper();
    let serving = std::thread::spawn(move || server.run());

    let grant = |to: u8| {
        let grant = Grant {
            from: "root".into(),
            to: vec![("newcomer".into(), key(to).public())],
            ..Grant::default()
        };
        grant.sign(&key(1)).expect("a grant")
    };
    println!("| hostile clients | who asks | answers | median | 99 in 100 | longest |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for hostile in [0, most] {
        let mut attackers = Ended(None);
        if hostile > 0 {
            let own = std::env::current_exe().expect("this program");
            let mut attack = Command::new(own);
            attack.arg("--attack").arg(&path).arg(hostile.to_string());
            attackers.0 = Some(attack.spawn().expect("started"));
            std::thread::sleep(Duration::from_secs(2));
        }
        let end = Instant::now() + Duration::from_secs(seconds);
        let cases = [
            ("a key that the policy names", 1, honest(&image, Vec::new())),
            (
                "a newcomer with a credential",
                3 + u8::from(hostile > 0),
                Load::default(),
            ),
        ];
        let cases = cases.map(|(who, own, load)| match own {
            1 => (who, own, load),
            own => (who, own, honest(&image, vec![grant(own)])),
        });
        std::thread::scope(|scope| {
            let threads: Vec<_> = cases
                .iter()
                .map(|(who, own, load)| {
                    let (address, image) = (&address, &image);
                    let thread = scope.spawn(move || measure(address, *own, image, load, end));
                    (who, thread)
                })
                .collect();
            for (who, thread) in threads {
                let times = thread.join().expect("measured");
                let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
                println!(
                    "| {hostile} | {who} | {} | {:.1} ms | {:.1} ms | {:.1} ms |",
                    times.len(),
                    at(0.5),
                    at(0.99),
                    at(1.0)
                );
            }
        });
    }
    stopper.stop();
    let _ended = serving.join();
}
