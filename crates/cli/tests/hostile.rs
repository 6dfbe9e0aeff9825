//! Bad input to every subcommand: files that are empty, cut off, foreign, hostile or none at all,
//! output that cannot be written, and readers that have gone away. What must hold: an exit status
//! of the command's own, a message fit for a terminal, no panic, and nothing half-written.

#[allow(dead_code, reason = "made for the verifier's tests")]
#[path = "../../window/verifier/tests/support/build.rs"]
mod build;

use mullion_abi::Protection;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const MULLION: &str = env!("CARGO_BIN_EXE_mullion");
/// `call import; ret`.
const GOOD: &[u8] = &[0xe8, 0xf4, 0x01, 0xff, 0xff, 0xc3];

/// Every reader of a file: `@` is the file, `OUT` what must not be there after a failure. Second,
/// the status of a failure.
const READERS: &[(&str, i32)] = &[
    ("verify @", 1),
    ("verify --json @", 1),
    ("inspect @", 1),
    ("inspect --json @", 1),
    ("inspect --policy @ good.mx", 1),
    ("run @", 126),
    ("run --policy @ --as k good.mx", 126),
    ("admit --policy @ --as k good.mx", 1),
    ("rewrite @ -o OUT", 1),
    ("cc -c -x assembler @ -o OUT", 1),
    ("cc -c -x c @ -o OUT", 1),
    ("c++ -c -x c++ @ -o OUT", 1),
    ("cc @ -o OUT", 1),
    ("cc -c @@ -o OUT", 1),
    ("bind --c @ -o OUT", 1),
    ("map @ -o OUT", 1),
    ("model run @", 1),
    ("model run --config @ empty", 1),
    ("model sweep @ -o OUT", 1),
    ("sip check @", 1),
    ("sip run @", 1),
    ("sip top --once --status @", 1),
    ("sip graph --status @ -o OUT", 1),
    ("type check @", 1),
    ("policy check @", 1),
    ("keynote verify -e @ -r a,b -k @ -l @ @", 1),
    ("grant show @", 1),
    ("grant check --policy @ --as k --type t", 1),
    ("log show @", 1),
    ("log verify @", 1),
    ("sign @ --type @ --key k -o OUT", 1),
    ("key import other @", 1),
    ("load --to @ --as k good.mx", 1),
    ("loader list --to @ --as k", 1),
    ("loader serve --trust-everyone --socket @", 1),
    ("loader serve --listen 127.0.0.1:1 --policy @", 1),
    ("fetch @", 1),
];

/// What reads nothing wrong in a file of this kind: no failure is asked for.
fn may_succeed(command: &str, file: &str) -> bool {
    let text = matches!(file, "empty" | "/dev/null" | "/proc/self/mem");
    match command.split(' ').next().unwrap_or_default() {
        "loader" => file == "missing",
        "rewrite" | "cc" | "c++" => text || file == "zeros",
        // One line without its end is taken for an interrupted one.
        "log" => true,
        _ => false,
    }
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a temporary directory"));
        place.write(
            "good.mx",
            &build::build(GOOD, Protection::ReadWriteCall).bytes,
        );
        place.write("empty", b"");
        place.write("text", b"hello\n");
        place.write("zeros", &[0; 4096]);
        place.write("ones", &[0xff; 4096]);
        place.write("terminal", b"\x1b[31m\x07\x08 = [\n");
        place.write("long", &[b'a'; 300_000]);
        place.write("deep", &[b'['; 100_000]);
        place.write("object", b"{}");
        place.write("toml", b"[a]\nb =\n");
        fs::create_dir(place.path().join("directory")).expect("a directory");
        std::os::unix::fs::symlink("loop", place.path().join("loop")).expect("a link");
        let made = place.run("key new k");
        assert!(made.status.success(), "{made:?}");
        place
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path().join(name), bytes).expect("a file");
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path()).stdin(Stdio::null());
        command.env("MULLION_KEYS", self.path().join("keys"));
        command
    }

    fn run(&self, line: &str) -> Output {
        let output = self.command(MULLION).args(line.split(' ')).output();
        output.expect("started")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).expect("a directory");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<_> = names
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// A command that must fail with `status`, say why, and leave nothing.
    #[track_caller]
    fn fails(&self, line: &str, status: i32) {
        let before = self.names();
        self.judge(line, &self.run(line), status);
        assert_eq!(self.names(), before, "{line}");
    }

    #[track_caller]
    fn judge(&self, line: &str, output: &Output, status: i32) {
        let said = String::from_utf8_lossy(&output.stderr);
        let shown: String = said.chars().take(400).collect();
        assert_eq!(output.status.code(), Some(status), "{line}: {shown}");
        assert!(!said.contains("panicked"), "{line}: {shown}");
        assert!(
            !said.is_empty() || !output.stdout.is_empty(),
            "{line} is silent"
        );
        let gcc = line.starts_with('c');
        assert!(
            gcc || said.is_empty() || said.starts_with("mullion: "),
            "{line}: {shown}"
        );
        assert!(gcc || said.len() < 20_000, "{line}: {} bytes", said.len());
        let control = said
            .chars()
            .find(|one| one.is_control() && !"\n\t".contains(*one));
        assert!(gcc || control.is_none(), "{line}: {control:?}: {shown}");
    }
}

#[test]
fn every_reader_survives_every_file() {
    let place = Place::new();
    let files = [
        "empty",
        "text",
        "zeros",
        "ones",
        "terminal",
        "long",
        "deep",
        "object",
        "toml",
        "loop",
        "missing",
        "directory",
        "/dev/null",
        "/proc/self/mem",
        "/bin/true",
    ];
    for (command, status) in READERS {
        for file in files {
            // g++ takes minutes for the one; the others are not asked to read.
            let slow = command.starts_with("c++") && matches!(file, "deep" | "long" | "/bin/true");
            if slow || may_succeed(command, file) {
                continue;
            }
            place.fails(
                &command
                    .replace('@', file)
                    .replace("cc -c ", "cc -c -fmax-errors=3 "),
                *status,
            );
        }
    }
}

#[test]
fn every_reader_of_images_survives_every_header() {
    let place = Place::new();
    let good = fs::read(place.path().join("good.mx")).expect("an image");
    let mut hostile: Vec<Vec<u8>> = (0..=64)
        .step_by(8)
        .map(|end| good[..end].to_vec())
        .collect();
    hostile.extend([120, 344, 0x1000, 0x1008].map(|end| good[..end].to_vec()));
    let mut patch = |at: usize, bytes: &[u8]| {
        let mut image = good.clone();
        image[at..at + bytes.len()].copy_from_slice(bytes);
        hostile.push(image);
    };
    // Class, byte order, type, machine.
    for (at, value) in [(4, 1), (5, 2), (16, 1), (18, 183)] {
        patch(at, &[value]);
    }
    for value in [3, 1 << 40, 1 << 63, u64::MAX] {
        // Entry and table of program headers; offsets, addresses and sizes in these.
        patch(24, &value.to_le_bytes());
        patch(32, &value.to_le_bytes());
        for header in (0..3).filter(|_| value != 3) {
            for field in [8, 16, 32, 40] {
                patch(64 + 56 * header + field, &value.to_le_bytes());
            }
        }
    }
    for value in [0, u16::MAX] {
        for at in [52, 54, 56] {
            patch(at, &value.to_le_bytes());
        }
    }
    for (number, bytes) in hostile.iter().enumerate() {
        let name = format!("hostile{number}");
        place.write(&name, bytes);
        place.fails(&format!("verify {name}"), 1);
        place.fails(&format!("verify --json {name}"), 1);
        place.fails(&format!("run {name}"), 126);
        place.fails(&format!("sip check {name}"), 1);
        let described = place.run(&format!("inspect {name}"));
        if described.status.success() {
            let text = String::from_utf8_lossy(&described.stdout);
            assert!(text.contains("NOT verified"), "{name}: {text}");
        } else {
            place.judge(&format!("inspect {name}"), &described, 1);
        }
    }
}

/// What writes a file `OUT`, of more than a few hundred bytes.
const WRITERS: &[&str] = &[
    "cc -c big.c -o OUT",
    "cc -S big.c -o OUT",
    "cc -E big.c -o OUT",
    "cc big.c -o OUT",
    "cc -c big.c -o small.o --mullion-keep=OUT",
    "rewrite big.s -o OUT",
    "model synth --events 20000 -o OUT",
    "map figure.json -o OUT",
    "grant --from k --to k --comment COMMENT -o OUT",
    "key new other",
];

#[test]
fn a_full_disk_leaves_nothing_behind() {
    let place = Place::new();
    let numbers = "1, 2, 3, 4, 5, 6, 7, 8,\n".repeat(3000);
    place.write(
        "big.c",
        format!("const int big[] = {{{numbers}}};\nint main(void) {{ return big[3]; }}\n")
            .as_bytes(),
    );
    assert!(place.run("cc -S big.c -o big.s").status.success());
    let figure = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/pictures/figure-5-after.json"
    );
    fs::copy(figure, place.path().join("figure.json")).expect("a state");
    for command in WRITERS {
        let before = place.names();
        // A file may have no more than so many blocks, which writers see as they see a full disk.
        let blocks = if command.starts_with("key") || command.starts_with("grant") {
            0
        } else {
            1
        };
        let line = command.replace("COMMENT", &"x".repeat(2000));
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {MULLION} {line}");
        let output = place.command("sh").args(["-c", &script]).output();
        let output = output.expect("started");
        assert_ne!(output.status.code(), Some(0), "{command}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !said.contains("panicked") && !said.is_empty(),
            "{command}: {said}"
        );
        let left: Vec<_> = place
            .names()
            .into_iter()
            .filter(|name| !before.contains(name))
            .collect();
        match fs::read_dir(place.path().join("OUT")) {
            Ok(mut kept) => assert!(kept.next().is_none(), "{command}"),
            Err(_) => assert!(left.is_empty(), "{command} left {left:?}"),
        }
        let _absent = fs::remove_dir(place.path().join("OUT"));
        let keys = fs::read_dir(place.path().join("keys"))
            .expect("a directory")
            .count();
        assert_eq!(keys, 2, "{command}");
    }
}

#[test]
fn output_that_nobody_takes_is_an_error_or_nothing() {
    let place = Place::new();
    place.write("a.s", b"f:\n\tret\n");
    for command in [
        "version",
        "fetch",
        "verify good.mx",
        "verify --json good.mx",
        "verify --rules",
        "inspect good.mx",
        "rewrite a.s",
        "map --explain",
        "key list",
        "key show k",
        "grant --from k --to k",
        "cc --mullion-help",
    ] {
        let status = |redirection: &str| {
            let script = format!("{MULLION} {command} {redirection}");
            let output = place.command("bash").args(["-c", &script]).output();
            let output = output.expect("started");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!said.contains("panicked"), "{script}: {said}");
            output.status.code()
        };
        assert_eq!(status(">/dev/full"), Some(1), "{command}");
        assert_eq!(
            status("| true; exit ${PIPESTATUS[0]}"),
            Some(0),
            "{command}"
        );
        assert_eq!(status(">&-"), Some(0), "{command}");
    }
    for redirection in ["2>/dev/full", "2>&-"] {
        let script = format!("{MULLION} verify missing {redirection}");
        let output = place.command("sh").args(["-c", &script]).output();
        assert_eq!(
            output.expect("started").status.code(),
            Some(1),
            "{redirection}"
        );
    }
}

#[test]
fn every_help_tells_the_exit_statuses() {
    let place = Place::new();
    let listed = |help: &str| -> Vec<String> {
        let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
        let lines = lines.take_while(|line| !line.is_empty());
        let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        let names = names.filter(|name| {
            ![
                "", "help", "cc", "c++", "clang", "clang++", "rustc", "cargo",
            ]
            .contains(name)
        });
        names.map(str::to_owned).collect()
    };
    let mut open = vec![String::new()];
    let mut seen = 0;
    while let Some(command) = open.pop() {
        let output = place.run(format!("{command} --help").trim_start());
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{command}");
        assert!(help.contains("xit status"), "{command}:\n{help}");
        open.extend(
            listed(&help)
                .iter()
                .map(|name| format!("{command} {name}").trim_start().to_owned()),
        );
        seen += 1;
    }
    assert!(seen > 40, "{seen} helps");
}
