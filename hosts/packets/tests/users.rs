//! Users who are no operators: the six examples, each of its own module type, compiled as elastic C, loaded with
//! credentials; and strangers.

#[path = "../../../crates/host/mullion/tests/support/mod.rs"]
mod support;

use mullion::Host;
use mullion_packets::batch::Batch;
use mullion_packets::config::Config;
use mullion_packets::forward::Forwarder;
use mullion_packets::users::{self, Users};
use mullion_packets::{control, frame};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The modules, the types that they are of, and the roles of these types.
const EXAMPLES: [(&str, &str, &str); 7] = [
    (
        "monitor",
        "monitor",
        "kind = \"monitor\"\nfilter = \"dst host 10.0.0.2\"\nsees = 28\nlocked = [\"source\"]",
    ),
    (
        "fragments",
        "fragments",
        "kind = \"monitor\"\nfilter = \"ip\"\nsees = 20",
    ),
    (
        "flows",
        "flows",
        "kind = \"monitor\"\nfilter = \"ip and (udp or tcp)\"\nsees = 28",
    ),
    (
        "fec_send",
        "fec",
        "kind = \"transcoder\"\nfilter = \"ip and udp and dst port 5001 and not fragment\"\nlocked = [\"ethernet\", \"source\", \"destination\"]",
    ),
    ("fec_receive", "fec", ""),
    (
        "resample",
        "audio",
        "kind = \"transcoder\"\nfilter = \"ip and udp and dst port 5004 and not fragment\"\nlocked = [\"ethernet\", \"source\", \"destination\"]",
    ),
    (
        "mirror",
        "mirror",
        "kind = \"transcoder\"\nfilter = \"ip and udp and dst port 80\"",
    ),
];

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Keys, a policy with the six types, and images that the compiler's key answers for.
struct Office(tempfile::TempDir);

impl Office {
    fn new() -> Self {
        let office = Office(tempfile::tempdir().unwrap());
        let mut keys = String::new();
        for name in ["root", "compiler", "alice", "bob"] {
            keys += &format!(
                "{name} = \"{}\"\n",
                office.must(&["key", "new", name]).trim()
            );
        }
        let mut types: Vec<String> = EXAMPLES.iter().map(|(_, id, _)| of_type(id)).collect();
        types.dedup();
        office.write(
            "policy.toml",
            &format!(
                "version = 1\ntypes = {types:?}\nlog = \"log\"\n[keys]\n{keys}[allow]\nload = [\"root\"]\ncompile = [\"root\", \"compiler\"]\n"
            ),
        );
        let mut roles = String::from("policy = \"policy.toml\"\n");
        for (module, id, role) in EXAMPLES {
            if !role.is_empty() {
                roles += &format!("[[role]]\ntype = \"packets-{id}\"\n{role}\ntime = \"100ms\"\n");
            }
            let kind = match ["monitor", "fragments", "flows"].contains(&module) {
                true => "monitor",
                false => "transcoder",
            };
            office.write(
                &format!("{module}.toml"),
                &format!("[[module]]\nname = \"{module}\"\nimage = \"{module}.mx\"\nkind = \"{kind}\"\ntime = \"100ms\"\n"),
            );
        }
        office.write("roles.toml", &roles);
        office
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.at(name), text).unwrap();
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(&*support::MULLION);
        command.args(words).current_dir(self.0.path());
        command
            .env("MULLION_KEYS", self.at("keys"))
            .stdin(Stdio::null());
        command.env("MULLION_POLICY", self.at("policy.toml"));
        command.output().unwrap()
    }

    fn must(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn refused(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(!output.status.success(), "{words:?} was done");
        String::from_utf8(output.stderr).unwrap()
    }

    /// The module as elastic C of its type.
    fn compile(&self, module: &str, id: &str) {
        let include = here().join("elastic").display().to_string();
        let source = here()
            .join(format!("modules/{module}.c"))
            .display()
            .to_string();
        let image = format!("{module}.mx");
        self.must(&[
            "compile",
            "--type",
            &of_type(id),
            "--as",
            "root",
            "--key",
            "compiler",
            "-I",
            &include,
            "-o",
            &image,
            &source,
        ]);
    }

    fn grant(&self, to: &str, id: &str, more: &[&str]) -> String {
        let file = format!("{to}-{id}.kn");
        let _ = std::fs::remove_file(self.at(&file));
        let id = format!("packets-{id}");
        let words = [
            "grant", "--from", "root", "--to", to, "--type", &id, "-o", &file,
        ];
        self.must(&[&words[..], more].concat());
        file
    }
}

fn of_type(id: &str) -> String {
    here()
        .join(format!("types/{id}.toml"))
        .display()
        .to_string()
}

/// A frame of UDP over IPv4 from 10.0.0.1 to 10.0.0.2.
fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    bytes.extend([0x08, 0x00, 0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0]);
    bytes.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x88]);
    bytes.extend(port.to_be_bytes());
    bytes.extend([0, 0, 0, 0]);
    bytes.extend(payload);
    let end = bytes.len();
    frame::repair(&mut bytes, end);
    bytes
}

fn through(forwarder: &Forwarder, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for frames in frames.chunks(1000) {
        let mut batch = Batch::default();
        for frame in frames {
            batch.push(Duration::from_secs(1), frame);
        }
        forwarder.handle(&forwarder.modules(), 0, &mut batch);
        out.extend(batch.out().map(<[u8]>::to_vec));
    }
    out
}

#[test]
fn six_examples_are_loaded_with_credentials_and_strangers_are_refused() {
    let office = Office::new();
    let config = Config::read(&office.at("roles.toml")).unwrap();
    let users = Users::read(&config).unwrap().expect("a policy");
    let forwarder = Forwarder::new(Host::new(), &config.modules).unwrap();
    let listener = control::listen(&office.at("users"), 0o666).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| users::serve(&listener, &users, &forwarder, &stop));
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            with_credentials(&office, &forwarder);
            without(&office, &forwarder);
        }));
        stop.store(true, Ordering::Relaxed);
        serving.join().unwrap();
        if let Err(panic) = checked {
            std::panic::resume_unwind(panic);
        }
    });
}

fn with_credentials(office: &Office, forwarder: &Forwarder) {
    for (module, id, _) in EXAMPLES {
        office.compile(module, id);
        let credentials = office.grant("alice", id, &[]);
        let file = format!("{module}.toml");
        office.must(&[
            "packets",
            "load",
            "--to",
            "users",
            "--as",
            "alice",
            "--credentials",
            &credentials,
            &file,
        ]);
    }
    let status = office.must(&[
        "packets", "status", "--to", "users", "--as", "alice", "--json",
    ]);
    let status: control::Status = serde_json::from_str(&status).unwrap();
    assert_eq!(status.modules.len(), 7);
    // The role says what the monitor sees, whatever it wishes for.
    let monitor = &status.modules[0].module;
    assert_eq!(
        (monitor.sees, monitor.filter.as_deref()),
        (Some(28), Some("dst host 10.0.0.2"))
    );

    // Sent and received in one forwarder: coded and decoded, so that nothing is seen of it.
    let coded = udp(5001, b"hello");
    let (mut silence, mut loud) = (Vec::new(), Vec::new());
    for n in 0..100i16 {
        silence.extend([n.to_le_bytes(), n.to_le_bytes()].concat());
        loud.extend([i16::MIN.to_le_bytes(), i16::MIN.to_le_bytes()].concat());
    }
    let frames = [
        coded.clone(),
        udp(5004, &silence),
        udp(5004, &loud),
        udp(80, b"GET /"),
    ];
    let out = through(forwarder, &frames);
    let status = office.must(&["packets", "status", "--to", "users", "--as", "alice"]);
    assert_eq!(out.len(), 5, "{status}");
    assert_eq!(out[0], coded);
    let half: Vec<u8> = (0..100i16).flat_map(i16::to_le_bytes).collect();
    assert_eq!(out[1], udp(5004, &half));
    assert_eq!(out[2], udp(5004, &loud[..200]));
    assert_eq!(out[3], frames[3]);
    // The copy: a datagram for the other node, with the whole frame in it.
    assert!(frame::is_sound(&out[4]));
    assert_eq!(&out[4][50..], &frames[3][..]);
    assert_eq!(
        (&out[4][30..34], &out[4][36..38]),
        (&[10, 9, 0, 99][..], &4789u16.to_be_bytes()[..])
    );

    // Two flows, of which one has most; no fragment among a hundred packets.
    let many: Vec<Vec<u8>> = (0..1000)
        .map(|n| udp(if n % 10 == 0 { 7 } else { 9 }, b"x"))
        .collect();
    assert_eq!(through(forwarder, &many), many);
    let reports =
        |name: &str| office.must(&["packets", "reports", "--to", "users", "--as", "alice", name]);
    assert!(reports("flows").starts_with("5 "), "{}", reports("flows"));
    assert!(reports("fragments").starts_with("100 0 0\n"));
    assert!(reports("monitor").starts_with("1000 "));
    // A slow machine is no reason.
    let stopped: Vec<_> = forwarder
        .modules()
        .iter()
        .filter_map(|module| module.stopped())
        .collect();
    assert_eq!(stopped, Vec::<String>::new());
}

fn without(office: &Office, forwarder: &Forwarder) {
    let load = |who: &str, credentials: &str, file: &str| {
        let words = [
            "packets",
            "load",
            "--to",
            "users",
            "--as",
            who,
            "--credentials",
            credentials,
            file,
        ];
        office.refused(&words)
    };
    // A stranger, with somebody else's credentials.
    let said = load("bob", "alice-monitor.kn", "monitor.toml");
    assert!(
        said.contains("refused") && said.contains("bob") || said.contains("no leave"),
        "{said}"
    );
    // One whose time is over.
    let expired = office.grant("bob", "flows", &["--until", "20200101"]);
    let said = load("bob", &expired, "flows.toml");
    assert!(said.contains("date"), "{said}");
    // Credentials for another type.
    let other = office.grant("bob", "fragments", &[]);
    assert!(load("bob", &other, "flows.toml").contains("refused"));
    // What a role does not let: a monitor that wants to change.
    let wish = std::fs::read_to_string(office.at("fragments.toml")).unwrap();
    office.write(
        "grabs.toml",
        &wish
            .replace("\"monitor\"", "\"transcoder\"")
            .replace("name = \"fragments\"", "name = \"grabs\""),
    );
    let said = load("bob", &other, "grabs.toml");
    assert!(
        said.contains("does not let a module change, drop or add frames"),
        "{said}"
    );
    // A name that is another's, and another's module.
    let said = load("bob", &other, "fragments.toml");
    assert!(
        said.contains("there is a module `fragments` already"),
        "{said}"
    );
    let words = [
        "packets",
        "unload",
        "--to",
        "users",
        "--as",
        "bob",
        "fragments",
    ];
    assert!(
        office
            .refused(&words)
            .contains("there is no module `fragments`")
    );
    let words = [
        "packets", "reports", "--to", "users", "--as", "bob", "monitor",
    ];
    assert!(
        office
            .refused(&words)
            .contains("there is no module `monitor` of yours")
    );
    // A record that is not of this image.
    std::fs::copy(
        office.at("flows.mx.record"),
        office.at("fragments.mx.record"),
    )
    .unwrap();
    let said = load("bob", &other, "fragments.toml");
    assert!(
        said.contains("the compilation record is about the image"),
        "{said}"
    );
    assert_eq!(forwarder.modules().len(), 7);
    let words = [
        "packets",
        "unload",
        "--to",
        "users",
        "--as",
        "alice",
        "fragments",
    ];
    office.must(&words);
    assert_eq!(forwarder.modules().len(), 6);
    let log = std::fs::read_to_string(office.at("log")).unwrap();
    assert!(log.contains("admitted") && log.contains("refused"));
}

/// A user of the system who is not root and has no powers.
const NOBODY: u32 = 65534;

/// The command, run by somebody who is not root.
fn by_nobody(office: &Office, words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    let id = NOBODY.to_string();
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]);
    command.args(["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]);
    command.arg(&*support::MULLION).args(words);
    command.current_dir(office.0.path()).stdin(Stdio::null());
    command.env("MULLION_KEYS", office.at("nobody"));
    command.env("HOME", office.at("nobody"));
    command
}

/// Somebody of another uid, who has a key and credentials: loads, follows what the module reports by shared memory, and
/// unloads. The operator's socket is closed to them, and memory that was fetched once is gone.
#[test]
fn a_user_of_another_uid_loads_a_module_and_maps_its_reports() {
    // SAFETY: it only tells.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("not run: only root becomes somebody else");
        return;
    }
    let office = Office::new();
    office.compile("monitor", "monitor");
    let credentials = office.grant("alice", "monitor", &[]);
    open_to_nobody(&office);
    let is_possible = by_nobody(&office, &["--version"]).output().unwrap();
    if !is_possible.status.success() {
        let said = String::from_utf8_lossy(&is_possible.stderr);
        eprintln!("not run: another user cannot run the command here: {said}");
        return;
    }
    let config = Config::read(&office.at("roles.toml")).unwrap();
    let users = Users::read(&config).unwrap().expect("a policy");
    let forwarder = Forwarder::new(Host::new(), &config.modules).unwrap();
    let listener = control::listen(&office.at("users"), 0o666).unwrap();
    let _operators = control::listen(&office.at("control"), 0o600).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| users::serve(&listener, &users, &forwarder, &stop));
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            as_nobody(&office, &forwarder, &credentials);
        }));
        stop.store(true, Ordering::Relaxed);
        serving.join().unwrap();
        if let Err(panic) = checked {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Alice's key is theirs, and so is no other; files that are for everybody may be read.
fn open_to_nobody(office: &Office) {
    use std::os::unix::fs::{PermissionsExt, chown};
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(office.0.path(), open).unwrap();
    std::fs::create_dir(office.at("nobody")).unwrap();
    for file in std::fs::read_dir(office.at("keys")).unwrap().flatten() {
        if file.file_name().to_string_lossy().starts_with("alice") {
            let to = office.at("nobody").join(file.file_name());
            std::fs::copy(file.path(), &to).unwrap();
            chown(&to, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    chown(office.at("nobody"), Some(NOBODY), Some(NOBODY)).unwrap();
}

fn as_nobody(office: &Office, forwarder: &Forwarder, credentials: &str) {
    let run = |words: &[&str]| {
        let output = by_nobody(office, words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said)
    };
    let as_alice = ["--to", "users", "--as", "alice"];
    let of = |verb: &str, rest: &[&str]| {
        let words = [&["packets", verb][..], &as_alice, rest].concat();
        let (is_done, said) = run(&words);
        assert!(is_done, "{words:?}: {said}");
    };
    let (is_done, said) = run(&["packets", "status", "--to", "control"]);
    assert!(!is_done && said.contains("Permission denied"), "{said}");
    let (is_done, said) = run(&[
        "packets",
        "load",
        "--to",
        "users",
        "--as",
        "root",
        "monitor.toml",
    ]);
    assert!(!is_done, "{said}");
    of("load", &["--credentials", credentials, "monitor.toml"]);
    assert!(forwarder.modules()[0].owner.is_some());

    let mut following = by_nobody(
        office,
        &[
            &["packets", "reports"][..],
            &as_alice,
            &["--follow", "monitor"],
        ]
        .concat(),
    );
    let following = following.stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut following = following.spawn().unwrap();
    let mut lines = std::io::BufReader::new(following.stdout.take().unwrap());
    let many: Vec<Vec<u8>> = (0..1000).map(|_| udp(7, b"x")).collect();
    let mut line = String::new();
    for thousand in 1..=3 {
        through(forwarder, &many);
        line.clear();
        std::io::BufRead::read_line(&mut lines, &mut line).unwrap();
        assert!(line.starts_with(&format!("{thousand}000 ")), "{line}");
    }
    // What is followed does not wait for who asks.
    assert!(forwarder.modules()[0].take_reports().is_empty());
    of("unload", &["monitor"]);
    assert!(forwarder.modules().is_empty());
    // It ends with its module.
    assert!(following.wait().unwrap().success());
    let token = "0".repeat(64);
    let refused = users::fetch_memory(&office.at("users"), &token).unwrap_err();
    assert!(refused.to_string().contains("no memory of this token"));
}
