//! `mullion loader serve`, `mullion load` and a second client that is not ours, over real sockets.

mod large;

use crate::{TYPE, World, text};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit, setrlimit};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use mullion_service::wire::{self, List, Operation};
use mullion_trust::challenge::{ChallengeMessage, VERSION, sign_request};
use mullion_trust::grant::Grant;
use mullion_trust::{PublicKey, SecretKey};

const MODULE: &str = "[\"__mullion_system\", \"host_log\"]";

/// A world whose type is for the module, and a loader in it.
struct Service {
    world: World,
    child: Child,
    stderr: Option<BufReader<ChildStderr>>,
    tcp: String,
}

impl Service {
    fn new(limits: &str, grant: &[&str], options: &[&str]) -> Self {
        let module_type = TYPE.replace("[\"__mullion_system\"]", MODULE);
        let world = World::of_type(&format!("{module_type}[limits]\n{limits}\n"), "");
        world.grant(grant);
        world.take("module.mx");
        Self::start(world, options)
    }

    fn start(world: World, options: &[&str]) -> Self {
        let line = [
            "loader",
            "serve",
            "--policy",
            "policy.toml",
            "--socket",
            "s",
        ];
        let line = [&line[..], &["--listen", "127.0.0.1:0"], options].concat();
        let mut command = world.command(&line);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("started");
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("a line");
        let tcp = line.trim_end().rsplit(' ').next().unwrap_or_default();
        assert!(
            line.starts_with("mullion: listening on s and 127.0.0.1:"),
            "{line}"
        );
        Service {
            tcp: tcp.to_owned(),
            world,
            child,
            stderr: Some(stderr),
        }
    }

    fn ask_as(&self, name: &str, command: &[&str], more: &[&str]) -> Output {
        let line = [command, &["--to", "s", "--as", name], more].concat();
        self.world.mullion(&line)
    }

    #[track_caller]
    fn alice(&self, command: &[&str], more: &[&str]) -> String {
        let output = self.ask_as("alice", command, more);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).trim_end().to_owned()
    }

    #[track_caller]
    fn load(&self) -> String {
        self.alice(&["load", "--credentials", "alice.kn"], &["module.mx"])
    }

    #[track_caller]
    fn refused(output: &Output, reason: &str) {
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with("mullion: refused: "), "{said}");
        assert!(said.contains(reason), "{reason:?} is missing:\n{said}");
    }

    /// The call of an export is refused for this reason.
    #[track_caller]
    fn fails(&self, module: &str, call: &[&str], reason: &str) {
        let more = [&[module], call].concat();
        Self::refused(&self.ask_as("alice", &["loader", "call"], &more), reason);
    }

    /// The call of an export ends the module, for this reason.
    #[track_caller]
    fn faults(&self, module: &str, call: &[&str], reason: &str) {
        let more = [&[module], call].concat();
        let output = self.ask_as("alice", &["loader", "call"], &more);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with("mullion: fault: "), "{said}");
        assert!(said.contains(reason), "{reason:?} is missing:\n{said}");
        assert!(said.contains("mullion loader restart"), "{said}");
    }

    fn signal(&mut self, signal: Signal) -> std::process::ExitStatus {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
        self.child.wait().expect("it ends")
    }

    /// Stops it: with success, its socket gone; and what it said.
    fn stop(mut self) -> String {
        assert_eq!(self.signal(Signal::TERM).code(), Some(0));
        assert!(!self.world.path("s").exists(), "the socket stays");
        let mut said = String::new();
        let mut stderr = self.stderr.take().expect("once");
        stderr.read_to_string(&mut said).expect("text");
        said
    }

    fn python(&self, case: &str) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/admission/client.py");
        let mut command = Command::new("python3");
        command
            .arg(script)
            .arg(case)
            .args(["s", &self.tcp, "keys/alice.key", "keys/bob.key"]);
        command.args(["module.mx", "module.mx.record", "alice.kn"]);
        command.current_dir(self.world.directory.path());
        command.output().expect("python3 is there")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

#[test]
fn an_unprivileged_client_loads_calls_lists_and_unloads() {
    let service = Service::new("", &[], &[]);
    let number = service.load();
    assert_eq!(number, "1");
    assert_eq!(
        service.alice(&["loader", "call"], &["1", "add", "-2", "0x2a"]),
        "40"
    );
    assert_eq!(service.alice(&["loader", "call"], &["1", "next"]), "1");
    assert_eq!(
        service.alice(&["loader", "call"], &["1", "next"]),
        "2",
        "its state stays"
    );
    service.world.write("in", "words");
    let more = ["--input", "in", "--output", "out", "1", "upper", "7"];
    assert_eq!(service.alice(&["loader", "call"], &more), "12");
    assert_eq!(service.world.read("out"), "WORDS");
    let listed = service.alice(&["loader", "list"], &[]);
    assert!(
        listed.starts_with("1\tmodule.mx\ttool\tadd next "),
        "{listed}"
    );

    // What is alice's is nobody else's.
    assert_eq!(
        text(&service.ask_as("bob", &["loader", "list"], &[]).stdout),
        ""
    );
    let call = service.ask_as("bob", &["loader", "call"], &["1", "next"]);
    Service::refused(&call, "you have no module 1");
    Service::refused(
        &service.ask_as("bob", &["loader", "unload"], &["1"]),
        "you have no module 1",
    );
    let load = ["load", "--credentials", "alice.kn"];
    let load = service.ask_as("bob", &load, &["module.mx"]);
    Service::refused(&load, "may not load images of the type `tool`");
    assert!(text(&load.stderr).contains("way out: "));

    // The remote case.
    let line = ["loader", "list", "--to", &service.tcp, "--as", "alice"];
    assert!(service.world.succeed(&line).starts_with("1\t"));
    service.alice(&["loader", "unload"], &["1"]);
    service.fails("1", &["next"], "you have no module 1");
    assert_eq!(service.load(), "2", "numbers are not used again");

    let kinds: Vec<_> = service
        .world
        .events()
        .iter()
        .map(|event| event["kind"].clone())
        .collect();
    assert_eq!(kinds, ["admitted", "refused", "admitted"]);
    let said = service.stop();
    assert!(said.contains("module 1: WORDS"), "{said}");
    assert!(said.ends_with("mullion: stopping\n"), "{said}");
}

/// Credentials by which a stranger gives itself leave: nobody believes them, and their remarks
/// take six times their length in the log.
fn self_signed(bytes: usize, to: PublicKey) -> String {
    let key = SecretKey::generate().expect("a key");
    let grant = Grant {
        from: "me".into(),
        to: vec![("me".into(), to)],
        comment: Some("\u{1}".repeat(400)),
        ..Grant::default()
    };
    let one = grant.sign(&key).expect("a grant") + "\n";
    one.repeat(bytes / one.len())
}

#[test]
fn a_strangers_credentials_do_not_fill_the_log_so_that_nobody_can_write() {
    let mut service = Service::new("", &[], &[]);
    let bob = service.world.read("keys/bob.pub");
    let bob = bob.lines().find_map(|line| line.trim().parse().ok());
    let credentials = self_signed(444_000, bob.expect("a key"));
    service.world.write("many.kn", &credentials);
    let load = ["load", "--credentials", "many.kn"];
    let stranger = service.ask_as("bob", &load, &["module.mx"]);
    Service::refused(&stranger, "");
    assert_eq!(service.load(), "1", "the loader goes on");
    service.signal(Signal::TERM);
    let world = std::mem::replace(&mut service.world, World::new());
    let service = Service::start(world, &[]);
    assert_eq!(service.load(), "1", "after a restart as well");
    let kinds: Vec<_> = service.world.events();
    assert_eq!(kinds.len(), 3);
    for line in service.world.read("log").lines() {
        assert!(
            line.len() < mullion_trust::log::LINE,
            "{} bytes",
            line.len()
        );
    }
}

/// The user and group `nobody`.
const NOBODY: u32 = 65534;

#[test]
fn a_user_without_privileges_loads_into_the_loader_of_another() {
    if !rustix::process::geteuid().is_root() {
        println!("not run: only root can play two users");
        return;
    }
    let service = Service::new("", &[], &[]);
    let own = |name: &str| chown(service.world.path(name), Some(NOBODY), Some(NOBODY));
    own("keys").expect("owned");
    own("keys/alice.key").expect("owned");
    let everybody = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(service.world.path("."), everybody).expect("set");
    let line = [
        "load",
        "--to",
        "s",
        "--as",
        "alice",
        "--credentials",
        "alice.kn",
    ];
    let mut load = service.world.command(&[&line[..], &["module.mx"]].concat());
    let output = match load.uid(NOBODY).gid(NOBODY).output() {
        Err(error) => {
            println!("not run: nobody cannot start the command: {error}");
            return;
        }
        Ok(output) => output,
    };
    assert_eq!(text(&output.stdout), "1\n", "{}", text(&output.stderr));
}

#[test]
fn what_was_granted_is_what_a_module_gets() {
    let limits = "heap = \"24M\"\nstack = \"64K\"\ntime = \"80ms\"\ncalls = 50";
    let service = Service::new(limits, &["--limit", "heap=12M"], &[]);
    let module = service.load();
    let got: u32 = service
        .alice(&["loader", "call"], &[&module, "heap"])
        .parse()
        .expect("a number");
    assert!((6..=12).contains(&got), "{got} MiB");
    assert_eq!(
        service.alice(&["loader", "call"], &[&module, "stack", "8"]),
        "0"
    );
    service.faults(&module, &["stack", "32"], "data stack overflow (64 KiB)");
    service.fails(&module, &["next"], "takes no");
    let module = service.load();
    service.faults(&module, &["spin"], "time limit of 80ms exceeded");
    let module = service.load();
    assert_eq!(
        service.alice(&["loader", "call"], &[&module, "calls", "50"]),
        "50"
    );
    assert_eq!(
        service.alice(&["loader", "call"], &[&module, "calls", "50"]),
        "50",
        "each call anew"
    );
    service.faults(&module, &["calls", "51"], "limit of 50 gate calls exceeded");
    let module = service.load();
    service.faults(&module, &["wild"], "");
    service.fails("99", &["next"], "you have no module 99");
    let module = service.load();
    service.fails(&module, &["nothing"], "no export `nothing`");
    service.fails(
        &module,
        &["add", "1", "2", "3", "4", "5", "6", "7"],
        "6 arguments at most",
    );
    let listed = service.alice(&["loader", "list"], &[]);
    assert_eq!(listed.matches("\tended").count(), 4, "{listed}");
}

#[test]
fn a_module_that_faulted_is_logged_and_restarted() {
    let service = Service::new("", &[], &[]);
    let module = service.load();
    assert_eq!(service.alice(&["loader", "call"], &[&module, "next"]), "1");
    service.faults(&module, &["wild"], "");
    service.fails(&module, &["next"], "takes no calls until it is restarted");
    let bob = service.ask_as("bob", &["loader", "restart"], &[&module]);
    Service::refused(&bob, "you have no module 1");
    service.alice(&["loader", "restart"], &[&module]);
    assert_eq!(
        service.alice(&["loader", "call"], &[&module, "next"]),
        "1",
        "it is as it was when it was loaded"
    );
    // One that is well is restarted, too, and keeps its number.
    service.alice(&["loader", "restart"], &[&module]);
    assert_eq!(service.alice(&["loader", "call"], &[&module, "next"]), "1");
    service.faults(&module, &["wild"], "");
    let events = service.world.events();
    let kinds: Vec<_> = events.iter().map(|event| event["kind"].clone()).collect();
    assert_eq!(
        kinds,
        ["admitted", "ended", "restarted", "restarted", "ended"]
    );
    assert_eq!(
        (&events[1]["in"], &events[1]["type"]),
        (&"wild".into(), &"tool".into())
    );
    assert!(
        events[1]["owner"]
            .as_str()
            .is_some_and(|key| key.contains("ed25519"))
    );
    assert!(!events[1]["reason"].as_str().unwrap_or_default().is_empty());
    assert_eq!(
        (&events[4]["restarts"], &events[4]["module"]),
        (&2.into(), &1.into())
    );
    let said = service.stop();
    assert!(said.contains("module 1: ended in wild: "), "{said}");
    assert!(said.contains("module 1: restarted"), "{said}");
}

#[test]
fn a_refusal_says_which_condition_fails_to_those_who_know_it() {
    let until = ["--until", "20200101"];
    let service = Service::new("", &until, &[]);
    let load = ["load", "--credentials", "alice.kn"];
    let refused = service.ask_as("alice", &load, &["module.mx"]);
    Service::refused(&refused, "date <= \"20200101\" does not hold; date is \"20");
    // It is addressed to alice and not to bob, who brought it: both have its text.
    let refused = service.ask_as("bob", &load, &["module.mx"]);
    assert!(!text(&refused.stderr).contains("the policy itself names"));
    // Kept with the policy, it is alice's alone to know.
    let policy = service.world.read("policy.toml");
    let policy = policy.replace("log = ", "credentials = [\"alice.kn\"]\nlog = ");
    service.world.write("policy.toml", &policy);
    kill_process(Pid::from_child(&service.child), Signal::HUP).expect("it runs");
    std::thread::sleep(Duration::from_millis(500));
    let refused = service.ask_as("alice", &["load"], &["module.mx"]);
    Service::refused(&refused, "date is \"20");
    let refused = service.ask_as("bob", &["load"], &["module.mx"]);
    assert!(
        !text(&refused.stderr).contains("date"),
        "{}",
        text(&refused.stderr)
    );
    // The log has it whole, and who may read the policy sees it whole.
    let events = service.world.events();
    let last = events.last().expect("a refusal");
    assert!(
        last["obstacles"]
            .to_string()
            .contains("the policy itself names cc, root"),
        "{last}"
    );
}

#[test]
fn a_loader_gives_no_more_than_it_has() {
    let service = Service::new("", &[], &["--max-modules", "2", "--max-image", "1M"]);
    service.load();
    service.load();
    let load = ["load", "--credentials", "alice.kn"];
    let third = service.ask_as("alice", &load, &["module.mx"]);
    Service::refused(&third, "you have as many modules as one may");
    std::fs::write(service.world.path("big.mx"), vec![0; 2_000_000]).expect("a file");
    let output = service.ask_as("alice", &load, &["big.mx"]);
    assert!(
        text(&output.stderr).contains("longer than the 1048576 that are taken here"),
        "{}",
        text(&output.stderr)
    );
    // A program is for `mullion run`.
    service.alice(&["loader", "unload"], &["1"]);
    let program = service.ask_as("alice", &load, &["uses.mx"]);
    assert_eq!(program.status.code(), Some(1));
}

/// Room is what runs, and not what its owner says it still has.
#[test]
fn an_unloaded_module_takes_its_room_until_it_has_ended() {
    let service = Service::new(
        "time = \"3s\"",
        &[],
        &["--max-modules", "1", "--max-time", "3s"],
    );
    let module = service.load();
    let ask = |command: &'static [&'static str], more: &'static [&'static str]| {
        let line = [command, &["--to", "s", "--as", "alice"], more].concat();
        let mut command = service.world.command(&line);
        let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
        std::thread::sleep(Duration::from_millis(400));
        child.expect("started")
    };
    assert_eq!(module, "1");
    let running = ask(&["loader", "call"], &["1", "spin"]);
    let waiting = ask(&["loader", "call"], &["1", "spin"]);
    let mut unload = ask(&["loader", "unload"], &["1"]);
    let load = ["load", "--credentials", "alice.kn"];
    let second = service.ask_as("alice", &load, &["module.mx"]);
    Service::refused(&second, "you have as many modules as one may");
    assert!(unload.wait().expect("it ends").success());
    // The room is free when the owner has the answer, and nothing of the module runs.
    assert_eq!(service.load(), "2");
    let said = |child: Child| text(&child.wait_with_output().expect("it ends").stderr);
    let (running, waiting) = (said(running), said(waiting));
    assert!(running.contains("time limit of 3"), "{running}");
    assert!(waiting.contains("you have no module 1"), "{waiting}");
}

#[test]
fn starting_is_refused_with_a_reason() {
    let mut service = Service::new("", &[], &[]);
    let serve = |options: &[&str]| {
        let output = service
            .world
            .mullion(&[&["loader", "serve"], options].concat());
        (output.status.code(), text(&output.stderr))
    };
    let with = ["--policy", "policy.toml"];
    let (status, said) = serve(&[&with[..], &["--socket", "s"]].concat());
    assert_eq!(status, Some(1));
    assert!(said.contains("a loader listens there already"), "{said}");
    let (_, said) = serve(&[&with[..], &["--socket", "policy.toml"]].concat());
    assert!(said.contains("a file that is no socket"), "{said}");
    let (_, said) = serve(&[&with[..], &["--listen", "0.0.0.0:0"]].concat());
    assert!(said.contains("not a loopback address"), "{said}");
    let (_, said) = serve(&["--socket", "other"]);
    assert!(said.contains("a loader needs a policy"), "{said}");
    assert_eq!(serve(&[]).0, Some(2));
    let nobody = service
        .world
        .mullion(&["loader", "list", "--to", "x", "--as", "alice"]);
    assert!(text(&nobody.stderr).contains("is a loader running there"));

    // What a killed loader leaves is replaced.
    service.signal(Signal::KILL);
    assert!(service.world.path("s").exists());
    let mut line = service.world.command(&["loader", "serve", "--socket", "s"]);
    line.args(with).stderr(Stdio::piped());
    let mut again = line.spawn().expect("started");
    let mut said = String::new();
    let mut stderr = BufReader::new(again.stderr.take().expect("a pipe"));
    stderr.read_line(&mut said).expect("a line");
    assert_eq!(said, "mullion: listening on s\n");
    again.kill().expect("killed");
    again.wait().expect("ended");
}

#[test]
fn policy_and_credentials_are_read_again_at_sighup() {
    let mut service = Service::new("", &[], &[]);
    let policy = service.world.read("policy.toml");
    let mut stderr = service.stderr.take().expect("once");
    let mut told = |service: &Service| {
        kill_process(Pid::from_child(&service.child), Signal::HUP).expect("it runs");
        let mut line = String::new();
        stderr.read_line(&mut line).expect("a line");
        line
    };
    let module = service.load();

    // What is no policy changes nothing, and neither does none.
    service
        .world
        .write("policy.toml", "version = 1\nallow = 7\n");
    let said = told(&service);
    assert!(said.contains("the old one stays: "), "{said}");
    assert!(said.contains("policy.toml"), "{said}");
    service.load();
    std::fs::remove_file(service.world.path("policy.toml")).expect("removed");
    assert!(told(&service).contains("the old one stays: "));
    service.load();

    // Root has nothing to give any more; what is loaded stays.
    service.world.write(
        "policy.toml",
        &policy.replace("load = [\"root\"]", "load = [\"bob\"]"),
    );
    let said = told(&service);
    assert!(said.contains("was read again"), "{said}");
    let load = ["load", "--credentials", "alice.kn"];
    let output = service.ask_as("alice", &load, &["module.mx"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        service.alice(&["loader", "call"], &[&module, "stack", "8"]),
        "0"
    );

    service.world.write("policy.toml", &policy);
    assert!(told(&service).contains("was read again"));
    service.load();
}

#[test]
fn a_log_that_may_grow_no_more_refuses_and_does_not_end_the_loader() {
    let service = Service::new("", &[], &[]);
    let module = service.load();
    let pid = Pid::from_child(&service.child);
    let length = std::fs::metadata(service.world.path("log"))
        .expect("a log")
        .len();
    let most = |bytes: Option<u64>| {
        let now = prlimit(Some(pid), Resource::Fsize, getrlimit(Resource::Fsize)).expect("a limit");
        let limit = Rlimit {
            current: bytes,
            ..now
        };
        prlimit(Some(pid), Resource::Fsize, limit).expect("a limit");
    };
    let load = ["load", "--credentials", "alice.kn"];
    // Nothing more, and a part of a line.
    for more in [0, 20] {
        most(Some(length + more));
        let output = service.ask_as("alice", &load, &["module.mx"]);
        Service::refused(&output, "File too large");
        let next = service.alice(&["loader", "call"], &[&module, "next"]);
        assert!(!next.is_empty());
    }
    most(None);
    service.load();
    service.world.events();
    service.stop();
}

#[test]
fn a_client_in_python_that_knows_only_the_document() {
    let service = Service::new("", &[], &["--patience", "2s"]);
    for case in ["session", "tcp", "hostile", "slow"] {
        let output = service.python(case);
        assert!(
            output.status.success(),
            "{case}: {}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
    }
    service.stop();
}

/// More descriptors, for the test's own ends.
fn descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).expect("more descriptors");
}

struct Peer {
    stream: UnixStream,
    input: Vec<u8>,
}

impl Peer {
    fn new(path: &Path) -> Self {
        let stream = UnixStream::connect(path).expect("connected");
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .expect("set");
        Peer {
            stream,
            input: Vec::new(),
        }
    }

    fn send(&mut self, frame: &ChallengeMessage) {
        self.stream.write_all(&frame.encode()).expect("sent");
    }

    fn receive(&mut self) -> ChallengeMessage {
        let mut piece = [0; 4096];
        loop {
            if let Some((frame, length)) = ChallengeMessage::decode(&self.input).expect("a frame") {
                self.input.drain(..length);
                return frame;
            }
            let count = self.stream.read(&mut piece).expect("in time");
            assert!(count > 0, "closed");
            self.input.extend(&piece[..count]);
        }
    }
}

#[test]
fn a_thousand_clients_at_once_among_silent_and_slow_ones() {
    descriptors();
    let service = Service::new("", &[], &[]);
    let path = service.world.path("s");
    let key = SecretKey::generate().expect("a key");
    let hello = ChallengeMessage::Hello {
        version: VERSION,
        key: *key.public().as_bytes(),
    };
    let begin = Instant::now();
    let silent: Vec<_> = (0..100).map(|_| Peer::new(&path)).collect();
    let mut slow: Vec<_> = (0..100).map(|_| Peer::new(&path)).collect();
    for peer in &mut slow {
        peer.stream.write_all(&hello.encode()[..7]).expect("sent");
    }
    let mut peers: Vec<_> = (0..1000).map(|_| Peer::new(&path)).collect();
    for peer in &mut peers {
        peer.send(&hello);
    }
    let mut nonces = std::collections::HashSet::new();
    let mut challenges = Vec::new();
    for peer in &mut peers {
        let ChallengeMessage::Challenge(challenge) = peer.receive() else {
            panic!("no challenge");
        };
        assert!(nonces.insert(challenge.nonce), "a nonce came twice");
        challenges.push(challenge);
    }
    for (peer, challenge) in peers.iter_mut().zip(&challenges) {
        let body = wire::encode(&List {}, &[]);
        let list = Operation::List as u8;
        peer.send(&ChallengeMessage::Request(sign_request(
            challenge, 1, list, body, &key,
        )));
    }
    for peer in &mut peers {
        let answer = peer.receive();
        assert!(
            matches!(
                &answer,
                ChallengeMessage::Answer {
                    counter: 1,
                    status: 0,
                    ..
                }
            ),
            "{answer:?}"
        );
    }
    println!(
        "1000 clients among 200 silent and slow ones: {:?}",
        begin.elapsed()
    );
    // They are all still there, and somebody new is served as well.
    assert_eq!(service.load(), "1");
    drop((silent, slow));
    service.stop();
}

#[test]
fn a_request_in_progress_is_answered_when_the_loader_stops() {
    let mut service = Service::new("time = \"700ms\"", &[], &[]);
    let module = service.load();
    let line = [
        "loader", "call", "--to", "s", "--as", "alice", &module, "spin",
    ];
    let mut call = service.world.command(&line);
    let call = call.stderr(Stdio::piped()).spawn().expect("started");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(service.signal(Signal::TERM).code(), Some(0));
    let output = call.wait_with_output().expect("ended");
    let said = text(&output.stderr);
    assert!(
        said.contains("fault: time limit of 700ms exceeded"),
        "{said}"
    );
}

/// The figures of modules are in a file while the loader serves, and as they were last when it has stopped.
#[test]
fn what_modules_do_is_written_for_prometheus() {
    let options = ["--metrics", "figures.prom", "--metrics-every", "20ms"];
    let mut service = Service::new("", &[], &options);
    let file = service.world.path("figures.prom");
    let read = || std::fs::read_to_string(&file).expect("there from the beginning");
    // Rows are there when there is a module.
    assert!(!read().contains("{domain="), "{}", read());
    let first = service.load();
    let second = service.load();
    let value = |text: &str, module: &str, row: &str, label: &str| -> Option<f64> {
        let mut lines = text.lines().filter(|line| line.starts_with(row));
        let of = format!("{{domain=\"module {module}\",image=\"");
        let line = lines.find(|line| line.contains(&of) && line.contains(label))?;
        line.rsplit(' ').next()?.parse().ok()
    };
    let calls = "mullion_domain_calls_total";
    // What has happened when the file is written is in it: so it is there sooner or later.
    let until = |wanted: &dyn Fn(&str) -> bool| {
        loop {
            let text = read();
            if wanted(&text) {
                return text;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let text = until(&|text| value(text, &second, calls, "").is_some());
    let before = value(&text, &first, calls, "").expect("a row");
    service.alice(&["loader", "call"], &[&first, "add", "2", "3"]);
    until(&|text| value(text, &first, calls, "") == Some(before + 1.0));
    service.faults(&first, &["wild"], "");
    service.alice(&["loader", "restart"], &[&first]);
    service.alice(&["loader", "unload"], &[&second]);
    assert_eq!(service.signal(Signal::TERM).code(), Some(0));
    let text = read();
    assert_eq!(
        value(&text, &first, "mullion_domain_restarts_total", ""),
        Some(1.0)
    );
    let faults = "mullion_domain_faults_total";
    assert_eq!(
        value(&text, &first, faults, "kind=\"access\""),
        Some(1.0),
        "{text}"
    );
    assert!(value(&text, &first, "mullion_domain_call_seconds_total", "").is_some());
    assert_eq!(value(&text, &second, calls, ""), None, "unloaded");
    assert!(text.ends_with('\n') && text.starts_with("# HELP"), "{text}");
}

#[test]
fn a_file_for_figures_that_cannot_be_written_is_said_at_once() {
    let world = World::of_type(&TYPE.replace("[\"__mullion_system\"]", MODULE), "");
    let output = world.mullion(&[
        "loader",
        "serve",
        "--policy",
        "policy.toml",
        "--socket",
        "s",
        "--metrics",
        "none/figures.prom",
    ]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("none/figures.prom"), "{said}");
}
