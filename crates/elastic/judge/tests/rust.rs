//! Elastic Rust: programs that must be refused, each with its rule and place, and programs that must be accepted and
//! that run. The judge is made of the compiler's libraries (rustc-dev of 1.99.1). Where they are not installed, the
//! tests say so; `MULLION_REQUIRE_RUSTC_DEV=1` makes that a failure.

#[path = "rust/matrix.rs"]
mod matrix;

use mullion_elastic::Elastic;
use mullion_judge::rust::{Answer, SOURCES, told};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// What is public in the environment of the tests.
const PUBLIC: &str = "public = [\"covert\", \"Cover\", \"cover\", \"Address\", \"Packet\", \"packet\", \"same\", \"Counter\", \"count\", \"apply\", \
     \"repeat\", \"Weighed\", \"LIMIT\", \"twice\"]";

fn here() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rust"))
}

/// The compiler, the judge, and the environment as a library.
struct Tools {
    directory: tempfile::TempDir,
    compiler: PathBuf,
}

static TOOLS: LazyLock<Option<Tools>> = LazyLock::new(|| {
    let named = std::env::var_os("MULLION_RUST").map(PathBuf::from);
    let home = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".rustup")));
    let usual = home.map(|home| home.join("toolchains/1.99.1-x86_64-unknown-linux-gnu"));
    let toolchain = named.or(usual).unwrap_or_default();
    let libraries = toolchain.join("lib/rustlib/x86_64-unknown-linux-gnu/lib");
    let files = std::fs::read_dir(&libraries)
        .into_iter()
        .flatten()
        .flatten();
    let mut names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    if !names.any(|name| name.starts_with("librustc_middle-")) {
        assert!(
            std::env::var_os("MULLION_REQUIRE_RUSTC_DEV").is_none(),
            "rustc-dev of 1.99.1 is not there"
        );
        eprintln!("not tested: elastic Rust, since rustc-dev of 1.99.1 is not there");
        return None;
    }
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in SOURCES {
        std::fs::write(directory.path().join(name), text).expect("room");
    }
    let tools = Tools {
        compiler: toolchain.join("bin/rustc"),
        directory,
    };
    let lib = toolchain.join("lib");
    let mut judge = Command::new(&tools.compiler);
    judge.current_dir(tools.at("")).env("RUSTC_BOOTSTRAP", "1");
    judge.args([
        "--edition=2024",
        "--crate-name=judge",
        "-Dwarnings",
        "main.rs",
        "-o",
        "judge",
    ]);
    judge.arg(format!("-Lnative={}", lib.display()));
    judge.arg(format!("-Clink-arg=-Wl,-rpath,{}", lib.display()));
    must(&mut judge);
    let mut environment = Command::new(&tools.compiler);
    environment.current_dir(tools.at(""));
    environment.args([
        "--edition=2024",
        "--crate-name=environment",
        "--crate-type=rlib",
        "-Cpanic=abort",
    ]);
    must(environment.arg(here().join("environment.rs")));
    Some(tools)
});

fn must(command: &mut Command) {
    let output = command.output().expect("it starts");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

impl Tools {
    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Judges a program; if it is accepted, it is compiled.
    fn judge(&self, name: &str, table: &str, text: &str) -> (bool, Answer, String) {
        let directory = self.at(name);
        std::fs::create_dir(&directory).expect("room");
        let mut parts = text.split("//-- ");
        std::fs::write(
            directory.join("program.rs"),
            parts.next().unwrap_or_default(),
        )
        .expect("room");
        for part in parts {
            let (file, text) = part.split_once('\n').expect("a file");
            let file = directory.join(file.trim());
            std::fs::create_dir_all(file.parent().expect("a parent")).expect("room");
            std::fs::write(file, text).expect("room");
        }
        let found = elastic(table);
        let root = directory.canonicalize().expect("it is there");
        let said = told(&found, &root);
        std::fs::write(directory.join("told"), said).expect("room");
        let mut judge = Command::new(self.at("judge"));
        judge
            .current_dir(&directory)
            .env_remove("RUSTC_BOOTSTRAP")
            .env("MULLION_JUDGE", &directory);
        judge
            .arg("--edition=2024")
            .arg(format!("--crate-name=case_{}", name.replace('-', "_")));
        judge.args([
            "--crate-type=rlib",
            "-Awarnings",
            "-Coverflow-checks=on",
            "-Cdebug-assertions=off",
            "-Cpanic=abort",
        ]);
        judge.arg(format!(
            "--sysroot={}",
            self.compiler
                .parent()
                .and_then(Path::parent)
                .expect("bin")
                .display()
        ));
        judge.arg(format!(
            "--extern=environment={}",
            self.at("libenvironment.rlib").display()
        ));
        judge
            .args(["program.rs", "-o"])
            .arg(self.at(&format!("libcase_{}.rlib", name.replace('-', "_"))));
        let output = judge.output().expect("it starts");
        let answer = std::fs::read_to_string(directory.join("answer")).unwrap_or_default();
        let answer = Answer::read(&answer).unwrap_or_default();
        (
            output.status.success(),
            answer,
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }
}

fn elastic(table: &str) -> Elastic {
    let environment = here().join("environment.rs");
    let digest =
        mullion_decide::Sha256Digest::of(&std::fs::read(&environment).expect("it is there"));
    let text = format!(
        "version = 1\nid = \"tested\"\nlanguage = \"rust\"\nprotection = \"read-write-call\"\nmechanism = [\"window\"]\n\
         [elastic]\n{table}\n[elastic.environment]\nfile = {:?}\nsha256 = \"{digest}\"\n{PUBLIC}\n",
        environment.display().to_string()
    );
    let read = Elastic::parse(&text, Path::new("tested.toml"));
    let (_, elastic) = read.unwrap_or_else(|error| panic!("{error}\n{text}"));
    elastic.expect("a table")
}

/// The cases of a file. Each begins with `//== NAME WORDS... | TABLE; TABLE`.
fn cases(file: &str) -> Vec<(Vec<String>, String, String)> {
    let text = std::fs::read_to_string(here().join(file)).expect("it is there");
    let mut found = Vec::new();
    for part in text.split("//== ").skip(1) {
        let (head, text) = part.split_once('\n').expect("a program");
        let (words, table) = head.split_once('|').unwrap_or((head, ""));
        let words = words.split_whitespace().map(str::to_owned).collect();
        found.push((words, table.replace(';', "\n"), text.to_owned()));
    }
    found
}

#[test]
fn each_program_is_refused_by_its_rule_at_its_place() {
    let Some(tools) = &*TOOLS else { return };
    let (mut wrong, mut blessed) = (Vec::new(), String::new());
    let cases = cases("refused.txt");
    for (words, table, text) in &cases {
        let (name, rule) = (&words[0], &words[1]);
        let (done, answer, said) = tools.judge(&format!("r-{name}"), table, text);
        let mut found: Vec<String> = answer
            .refusals
            .iter()
            .map(|refusal| match &refusal.place {
                Some(place) => format!("{} {}:{}", refusal.rule, place.line, place.column),
                None => format!("{} -", refusal.rule),
            })
            .collect();
        // Nothing was refused, but rustc has: whatever compiles has been judged as a whole.
        if !done && answer.refusals.is_empty() {
            found.push("types -".to_owned());
        }
        let expected = words[1..].join(" ");
        let place = found
            .iter()
            .find(|found| found.split(' ').next() == Some(rule));
        let table = table.replace('\n', ";");
        let bar = if table.is_empty() { "" } else { " |" };
        blessed.push_str(&format!(
            "//== {name} {}{bar}{table}\n{text}",
            place.unwrap_or(&expected)
        ));
        if !found.contains(&expected) {
            wrong.push(format!(
                "{name}: expected {expected}, found {found:?}\n{said}"
            ));
        }
    }
    if std::env::var_os("MULLION_BLESS").is_some() {
        std::fs::write(here().join("refused.txt"), blessed).expect("room");
    }
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Programs that each file of cases has at least.
const PROMISED: usize = 150;

#[test]
fn there_are_as_many_as_were_promised() {
    for (file, words) in [("refused.txt", 3), ("accepted.txt", 2)] {
        let cases = cases(file);
        let names: BTreeSet<&str> = cases.iter().map(|(words, ..)| words[0].as_str()).collect();
        assert_eq!(names.len(), cases.len(), "{file}: a name is there twice");
        // A program that is refused as a whole has no place, and does not count.
        let told =
            |found: &[String]| found.len() == words && found.last().is_some_and(|word| word != "-");
        let count = cases.iter().filter(|(words, ..)| told(words)).count();
        assert!(count >= PROMISED, "{file}: {count}");
    }
}

#[test]
fn each_program_is_accepted_and_runs() {
    let Some(tools) = &*TOOLS else { return };
    let (mut wrong, mut uses, mut checks) = (Vec::new(), String::new(), String::new());
    for (words, table, text) in cases("accepted.txt") {
        let name = format!("a-{}", words[0]);
        let (done, answer, said) = tools.judge(&name, &table, &text);
        let told: Vec<_> = answer
            .refusals
            .iter()
            .map(|refusal| refusal.render("tested", false))
            .collect();
        if !done || !answer.whole || !told.is_empty() {
            wrong.push(format!("{name}: {}{said}", told.join("\n")));
            continue;
        }
        let own = format!("case_{}", name.replace('-', "_"));
        uses.push_str(&format!("extern crate {own};\n"));
        checks.push_str(&format!(
            "    told({:?}, {own}::answer(), {});\n",
            words[0], words[1]
        ));
    }
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    // One program runs them all.
    let text = format!(
        "{uses}fn told(name: &str, found: u32, expected: u32) {{\n    \
         if found != expected {{ println!(\"{{name}}: {{found}}, where {{expected}} was expected\"); }}\n}}\n\
         fn main() {{\n{checks}}}\n"
    );
    std::fs::write(tools.at("all.rs"), text).expect("room");
    let mut all = Command::new(&tools.compiler);
    all.current_dir(tools.at(""))
        .args(["--edition=2024", "-Cpanic=abort", "-L.", "all.rs"]);
    must(&mut all);
    let output = Command::new(tools.at("all")).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

/// Constructs that no elastic Rust has, or that the table of the test takes away.
const PIECES: [&str; 14] = [
    "unsafe {}",
    "unsafe",
    "unsafe fn x() {}",
    "unsafe impl Send for X {}",
    "extern \"C\" {}",
    "unsafe extern \"C\" {}",
    "extern crate core;",
    "#[unsafe(no_mangle)]",
    "core::arch::asm!(\"nop\")",
    "include!(\"x\")",
    "async {}",
    "loop {}",
    "1.5",
    "static X: u32 = 0;",
];

/// A forbidden piece lands somewhere in an accepted program: whatever that becomes, it does not pass.
#[test]
fn a_forbidden_piece_anywhere_is_refused() {
    let Some(tools) = &*TOOLS else { return };
    let table = "forbid = [\"loops\", \"floating-point\", \"statics\"]";
    // Where a piece would be text, or nobody's, it may pass.
    let bare = |text: &&str| {
        !["//", "\"", "macro_rules", "cfg", "static"]
            .iter()
            .any(|part| text.contains(part))
    };
    let cases = cases("accepted.txt");
    let texts: Vec<&str> = cases
        .iter()
        .map(|(_, _, text)| text.as_str())
        .filter(bare)
        .collect();
    let mut seed = 1u32;
    let mut next = move |below: usize| {
        seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12345);
        (seed >> 8) as usize % below
    };
    for round in 0..100 {
        let text = texts[next(texts.len())];
        let ends: Vec<usize> = text
            .match_indices([' ', '(', ')', '{', '}', ';', ','])
            .map(|(at, _)| at)
            .collect();
        let at = ends[next(ends.len())];
        let piece = PIECES[next(PIECES.len())];
        let mutant = format!("{} {piece} {}", &text[..at], &text[at..]);
        let (done, answer, _) = tools.judge(&format!("m-{round}"), table, &mutant);
        assert!(
            !done || !answer.refusals.is_empty(),
            "this passed:\n{mutant}"
        );
    }
}
