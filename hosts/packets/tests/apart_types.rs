//! Users' modules of types that want the language and a process: the forwarder loads them into processes of their own,
//! and into no window.

#[path = "../../../crates/host/mullion/tests/support/mod.rs"]
mod support;

use mullion_packets::config::Wall;
use mullion_packets::control::Status;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The forwarder between two wires of one namespace. `sent` sends a thousand frames through it, of which each arrives.
const SETUP: &str = r#"
    mount -t tmpfs none /run 2>/dev/null
    ip link add name wl type veth peer name l0
    ip link add name wr type veth peer name r0
    for wire in lo wl l0 wr r0; do
        echo 1 > /proc/sys/net/ipv6/conf/$wire/disable_ipv6 2>/dev/null || true
        ip link set $wire up
    done
"#;

const SENT: &str = r#"
import socket
def wire(name):
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    opened.bind((name, 0x0800)); opened.settimeout(60)
    return opened
left, right = wire("l0"), wire("r0")
head = bytes([2] * 12) + bytes([8, 0, 0x45, 0, 0, 32, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2])
for n in range(1000):
    frame = head + bytes([0x13, 0x88, 0, 9, 0, 12, 0, 0]) + n.to_bytes(4, "big") + bytes(14)
    left.send(frame)
    assert right.recv(2000)[:46] == frame[:46], n
"#;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Keys, a policy, and what is compiled for it.
struct Office(tempfile::TempDir);

impl Office {
    /// With the types of monitors of C and Rust, as they want a process; and that of C as it is, which wants a window.
    fn new() -> Office {
        let office = Office(tempfile::tempdir().unwrap());
        let mut keys = String::new();
        for name in ["root", "compiler", "alice"] {
            let key = office.must(&["key", "new", name]);
            keys += &format!("{name} = \"{}\"\n", key.trim());
        }
        for (of, to) in [("monitor", "apart-c"), ("monitor-rust", "apart-rust")] {
            let text = fs::read_to_string(here().join(format!("types/{of}.toml"))).unwrap();
            let environments = format!("file = \"{}/", here().join("elastic").display());
            let text = text
                .replace(&format!("\"packets-{of}\""), &format!("\"{to}\""))
                .replace("mechanism = [\"window\"]", "mechanism = [\"process\"]")
                .replace("language-and-window", "language-and-process")
                .replace("file = \"../elastic/", &environments);
            office.write(&format!("{to}.toml"), &text);
        }
        let plain = here().join("types/monitor.toml");
        office.write(
            "policy.toml",
            &format!(
                "version = 1\ntypes = [\"apart-c.toml\", \"apart-rust.toml\", {plain:?}]\nlog = \"log\"\n\
                 [keys]\n{keys}[allow]\nload = [\"root\", \"alice\"]\ncompile = [\"root\", \"compiler\"]\n"
            ),
        );
        let role = |id: &str, more: &str| {
            format!(
                "[[role]]\ntype = \"{id}\"\nkind = \"monitor\"\nfilter = \"ip\"\nsees = 28\ntime = \"1s\"\n{more}"
            )
        };
        let roles = [
            role("apart-c", ""),
            role("apart-rust", "wall = \"process\"\n"),
            role("packets-monitor", ""),
        ];
        office.write(
            "two.toml",
            &format!(
                "ports = [\"wl\", \"wr\"]\npolicy = \"policy.toml\"\n{}",
                roles.concat()
            ),
        );
        office
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.at(name), text).unwrap();
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.0.path()).stdin(Stdio::null());
        command.env("MULLION_KEYS", self.at("keys"));
        command.env("MULLION_POLICY", self.at("policy.toml"));
        command.env("MULLION", &*support::MULLION);
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = self.command(&*support::MULLION);
        command.args(words).output().unwrap()
    }

    fn must(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// `name.mx` of a source and a type; whether what judges it is here.
    fn compile(&self, name: &str, of_type: &Path, source: &str) -> bool {
        let include = here().join("elastic").display().to_string();
        let source = here().join("modules").join(source).display().to_string();
        let of_type = of_type.display().to_string();
        let image = format!("{name}.mx");
        let mut words = vec!["compile", "--type", &of_type, "--as", "root"];
        words.extend(["--key", "compiler", "-o", &image]);
        if source.ends_with(".c") {
            words.extend(["-I", &include]);
        }
        words.push(&source);
        let output = self.run(&words);
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("rustup") && std::env::var_os("MULLION_REQUIRE_RUSTC_DEV").is_none() {
            eprintln!("not tested: a module in elastic Rust: {said}");
            return false;
        }
        assert!(output.status.success(), "{said}");
        true
    }

    /// `file.toml` with a monitor that wishes for a wall, or for none.
    fn wish(&self, file: &str, image: &str, wall: &str) {
        self.write(
            &format!("{file}.toml"),
            &format!(
                "[[module]]\nname = \"{file}\"\nimage = \"{image}.mx\"\nkind = \"monitor\"\n{wall}\n"
            ),
        );
    }

    /// Runs a script in a namespace of its own.
    fn script(&self, text: &str) -> Output {
        let mut command = self.command("unshare");
        let apart = [
            "--net",
            "--mount",
            "--pid",
            "--mount-proc",
            "--fork",
            "--kill-child",
        ];
        command.args(apart).args(["bash", "-euc", text]);
        command.output().unwrap()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap_or_default()
    }
}

const PROCESS: &str = "wall = \"process\"";

#[test]
fn a_type_that_wants_a_process_has_one_and_no_window() {
    let office = Office::new();
    let possible = office.script(SETUP);
    if !possible.status.success() {
        let said = String::from_utf8_lossy(&possible.stderr);
        eprintln!("not run: namespaces and veth are not to be had here: {said}");
        return;
    }
    office.compile("c", &office.at("apart-c.toml"), "monitor.c");
    office.compile("plain", &here().join("types/monitor.toml"), "monitor.c");
    let has_rust = office.compile("rust", &office.at("apart-rust.toml"), "monitor.rs");
    let record = office.read("c.mx.record");
    assert!(!record.is_empty());
    // Nothing is said of a wall, and neither has the role: that would be the window.
    office.wish("window", "c", "");
    office.wish("apart", "c", PROCESS);
    // Here the role says it.
    office.wish("rust", "rust", "");
    // A type for windows is behind a window wherever it is.
    office.wish("both", "plain", PROCESS);
    office.wish("plain", "plain", "");
    office.write("sent.py", SENT);
    let rust = if has_rust { "rust" } else { "" };
    let output = office.script(&format!(
        r#"{SETUP}
        packets() {{ "$MULLION" packets "$@"; }}
        "$MULLION" packets run two.toml --control ./control --users ./users > run.txt 2>&1 & forwarder=$!
        for i in $(seq 300); do [ -S users ] && break; sleep 0.1; done
        if packets load --to users --as alice window.toml 2> refused.txt; then exit 3; fi
        for module in apart both plain {rust}; do packets load --to users --as alice $module.toml; done
        python3 sent.py
        packets status --to users --as alice --json > status.json
        for module in apart both plain {rust}; do
            packets reports --to users --as alice $module > $module.txt
        done
        for process in $(cat /proc/$forwarder/task/*/children); do
            grep -h -e Seccomp: -e CapEff: /proc/$process/status
        done > inside.txt
        kill -INT $forwarder; wait $forwarder"#
    ));
    let said = format!(
        "{}{}{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        office.read("run.txt"),
        office.read("refused.txt")
    );
    assert!(output.status.success(), "{said}");
    let refused = office.read("refused.txt");
    assert!(
        refused.contains("does not allow the mechanism window"),
        "{refused}"
    );
    assert!(refused.contains("write wall = \"process\""), "{refused}");

    let status: Status = serde_json::from_str(&office.read("status.json")).unwrap();
    let mut expected = vec![
        ("apart", Wall::Process),
        ("both", Wall::Process),
        ("plain", Wall::Window),
    ];
    expected.extend(has_rust.then_some(("rust", Wall::Process)));
    let found = status.modules.iter();
    let found = found.map(|module| (module.module.name.as_str(), module.module.wall));
    assert_eq!(found.collect::<Vec<_>>(), expected);
    for module in &status.modules {
        let name = &module.module.name;
        assert_eq!((&module.stopped, module.frames), (&None, 1000), "{name}");
        let reports = office.read(&format!("{name}.txt"));
        assert!(reports.starts_with("1000 "), "{name}: {reports}");
    }
    // Each has a process without powers, and the module in a window has none.
    let inside = office.read("inside.txt");
    let count = |line: &str| inside.lines().filter(|found| *found == line).count();
    let processes = expected.len() - 1;
    assert_eq!(count("Seccomp:\t2"), processes, "{inside}");
    assert_eq!(count("CapEff:\t0000000000000000"), processes, "{inside}");
    // The log says which wall the policy was asked for.
    let log = office.read("log");
    assert!(log.contains("\"mechanism\":\"process\""), "{log}");
    assert!(log.contains("does not allow the mechanism window"), "{log}");
}
