//! What the guides tell people to type: the commands, options, targets and files that they name exist, and what can be
//! run here is run, as it stands there.

#[path = "../../crates/host/mullion/tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::MULLION;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).expect("a page")
}

/// Every page, by its name from the root.
fn pages() -> BTreeMap<String, String> {
    let mut names: Vec<String> = [
        "README.md",
        "ARCHITECTURE.md",
        "SECURITY.md",
        "examples/README.md",
    ]
    .map(str::to_owned)
    .into();
    names.push("examples/sip/README.md".to_owned());
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("the guides") {
            let entry = entry.expect("an entry");
            let name = format!("{folder}/{}", entry.file_name().to_str().expect("text"));
            if entry.path().is_dir() {
                folders.push(name);
            } else if name.ends_with(".md") {
                names.push(name);
            }
        }
    }
    let read = |name: String| (name.clone(), page(&name));
    names.into_iter().map(read).collect()
}

/// A piece of code, and what language its fence names: an indented piece is like one without a name.
struct Code {
    language: String,
    text: String,
}

fn code(page: &str) -> Vec<Code> {
    let mut pieces: Vec<Code> = Vec::new();
    let mut fenced = false;
    let mut indented = false;
    for line in page.lines() {
        if let Some(language) = line.strip_prefix("```") {
            fenced = !fenced;
            if fenced {
                let (language, text) = (language.to_owned(), String::new());
                pieces.push(Code { language, text });
            }
            indented = false;
            continue;
        }
        let own = match line.strip_prefix("    ") {
            Some(own) if !fenced => own,
            _ if fenced => line,
            _ => {
                indented &= line.is_empty();
                continue;
            }
        };
        if !fenced && !indented {
            let (language, text) = (String::new(), String::new());
            pieces.push(Code { language, text });
        }
        indented = !fenced;
        let last = pieces.last_mut().expect("begun");
        last.text += own;
        last.text += "\n";
    }
    pieces
}

/// The first piece of a page in a language that has this in it.
fn piece(page: &str, language: &str, part: &str) -> String {
    let mut pieces = code(page).into_iter();
    let found = pieces.find(|piece| piece.language == language && piece.text.contains(part));
    found.expect("the page has it").text
}

/// What a page says to type: one string for each command, continued lines joined, remarks left out.
fn commands(page: &str) -> Vec<String> {
    const PROGRAMS: &[&str] = &[
        "mullion ", "make ", "cargo ", "cc ", "MULLION_", "sudo ", "curl ",
    ];
    let shell = |piece: &Code| piece.language.is_empty() || piece.language == "sh";
    let mut commands = Vec::new();
    for piece in code(page).iter().filter(|piece| shell(piece)) {
        let text = piece.text.replace("\\\n", " ");
        for line in text.lines() {
            let line = line.split(" # ").next().unwrap_or_default().trim();
            if PROGRAMS.iter().any(|program| line.starts_with(program)) {
                commands.push(line.split_whitespace().collect::<Vec<_>>().join(" "));
            }
        }
    }
    commands
}

/// What stands between backquotes within the text of a page.
fn spans(page: &str) -> Vec<String> {
    let outside: String = page
        .split("```")
        .step_by(2)
        .flat_map(|text| text.lines().filter(|line| !line.starts_with("    ")))
        .map(|line| format!("{line}\n"))
        .collect();
    let spans = outside.split('`').skip(1).step_by(2);
    spans
        .map(|span| span.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

fn help(words: &[&str]) -> String {
    let option = match words {
        ["cc" | "c++" | "clang" | "clang++" | "rustc", ..] => "--mullion-help",
        _ => "--help",
    };
    let output = Command::new(&*MULLION).args(words).arg(option).output();
    String::from_utf8(output.expect("it starts").stdout).expect("text")
}

/// What is wrong with a command line, if anything.
fn wrong(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    let names = |count: usize| words.get(..count).map(|words| words.join(" "));
    // `as` and `ld` take what gcc gives its assembler and its linker.
    if matches!(
        words[..],
        ["help" | "--help" | "--version" | "as" | "ld", ..]
    ) {
        return None;
    }
    // They hand on what they are given, and their help is that of the program behind them.
    let compiler = matches!(
        words[0],
        "cc" | "c++" | "clang" | "clang++" | "rustc" | "cargo"
    );
    let told = [2, 1].into_iter().find_map(|count| {
        let usage = format!("Usage: mullion {}", names(count)?);
        let told = help(&words[..count]);
        (compiler || told.contains(&usage)).then_some(told)
    });
    let Some(told) = told else {
        return Some(format!("there is no `mullion {}`", words[0]));
    };
    let options = words.iter().take_while(|word| **word != "--");
    let names = options.filter_map(|word| word.split('=').next());
    let ours = |name: &&str| name.starts_with("--") && (!compiler || name.starts_with("--mullion"));
    let mut unknown = names
        .map(|name| name.trim_end_matches([']', ',', ')']))
        .filter(ours)
        .filter(|name| !told.contains(*name));
    unknown.next().map(|name| format!("it has no {name}"))
}

#[test]
fn commands_have_the_options_that_guides_give_them() {
    let mut problems = Vec::new();
    let mut seen = 0;
    for (name, text) in pages() {
        let units = text
            .lines()
            .filter_map(|line| line.split_once("ExecStart=/usr/local/bin/"));
        let units: Vec<String> = units.map(|(_, command)| command.to_owned()).collect();
        let lines = [commands(&text), spans(&text), units].concat();
        for line in lines {
            for part in line.split(['|', ';']).map(str::trim) {
                if part.starts_with("mullion ") && part.split_whitespace().count() > 1 {
                    seen += 1;
                    problems.extend(wrong(part).map(|what| format!("{name}: {part}: {what}")));
                }
            }
        }
    }
    assert!(seen > 60, "{seen}");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Where the package of that name lies.
fn package(name: &str) -> Option<PathBuf> {
    let mut places = vec![
        root().join("bench"),
        root().join("checks"),
        root().join("conformance"),
        root().join("examples"),
    ];
    for room in fs::read_dir(root().join("crates")).expect("the rooms") {
        let room = room.expect("an entry").path();
        let crates = fs::read_dir(&room).expect("the crates of a room");
        places.extend(crates.map(|entry| entry.expect("an entry").path()));
        places.push(room);
    }
    let hosts = fs::read_dir(root().join("hosts")).expect("the hosts");
    places.extend(hosts.map(|entry| entry.expect("an entry").path()));
    let line = format!("name = \"{name}\"");
    places.into_iter().find(|place| {
        let manifest = fs::read_to_string(place.join("Cargo.toml"));
        // The package's own name is the first; a program or a library may have another one.
        let name =
            |text: String| text.lines().find(|own| own.starts_with("name = ")) == Some(&line);
        manifest.is_ok_and(name)
    })
}

/// Whether cargo would find what is named.
fn cargo_finds(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let value = |option: &str| {
        let at = words.iter().position(|word| *word == option)?;
        words.get(at + 1).copied()
    };
    if let Some(manifest) = value("--manifest-path") {
        return root().join(manifest).is_file();
    }
    let Some(name) = value("-p") else {
        return true;
    };
    let Some(place) = package(name) else {
        return false;
    };
    let manifest = fs::read_to_string(place.join("Cargo.toml")).expect("read");
    [
        ("--test", "tests"),
        ("--example", "examples"),
        ("--bench", "benches"),
        ("--bin", "src/bin"),
    ]
    .into_iter()
    .filter_map(|(option, directory)| Some((value(option)?, directory)))
    .all(|(name, directory)| {
        place.join(directory).join(format!("{name}.rs")).is_file()
            || place.join(directory).join(name).join("main.rs").is_file()
            || manifest.contains(&format!("name = \"{name}\""))
    })
}

#[test]
fn targets_scripts_and_packages_that_guides_name_exist() {
    let makefile = page("Makefile");
    let mut problems = Vec::new();
    for (name, text) in pages() {
        for line in [commands(&text), spans(&text)].concat() {
            let mut words = line
                .split_whitespace()
                .skip_while(|word| word.contains('=') || *word == "sudo");
            let program = words.next().unwrap_or_default();
            let found = match (program, words.next()) {
                ("make", Some(target)) => makefile.contains(&format!("\n{target}:")),
                ("cargo", _) => cargo_finds(&line),
                (path, _) if path.starts_with("scripts/") || path.starts_with("fuzz/") => {
                    root().join(path).exists()
                }
                _ => true,
            };
            if !found {
                problems.push(format!("{name}: {line}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn links_lead_somewhere() {
    let mut problems = Vec::new();
    for (name, text) in pages() {
        let place = root().join(&name);
        let place = place.parent().expect("a directory");
        for rest in text.split("](").skip(1) {
            let target = rest.split(')').next().unwrap_or_default();
            let file = target.split('#').next().unwrap_or_default();
            let elsewhere = target.starts_with("http") || target.contains(char::is_whitespace);
            if !elsewhere && !file.is_empty() && !place.join(file).exists() {
                problems.push(format!("{name}: {target}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Runs the commands of a page that begin with `mullion`, in this order, as one script in that directory. What is in
/// `instead` replaces parts of it; `left_out` are beginnings of commands that are not run here.
#[track_caller]
fn walk(name: &str, place: &Path, before: &str, instead: &[(&str, &str)], left_out: &[&str]) {
    let text = page(name);
    let typed = commands(&text);
    for beginning in left_out {
        let unused = !typed.iter().any(|line| line.starts_with(beginning));
        assert!(!unused, "{name} has no {beginning}");
    }
    let run = typed
        .iter()
        .filter(|line| !left_out.iter().any(|beginning| line.starts_with(beginning)));
    let mut script = run.fold(String::new(), |script, line| script + line + "\n");
    assert!(!script.is_empty());
    for (from, to) in instead {
        assert!(script.contains(from), "{name} has no {from}");
        script = script.replace(from, to);
    }
    let bin = MULLION.parent().expect("a directory").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("bash");
    shell
        .arg("-euxo")
        .arg("pipefail")
        .arg("-c")
        .arg(format!("{before}\n{script}"));
    shell.env("PATH", format!("{bin}:{path}"));
    shell.env("MULLION_KEYS", place.join("keys"));
    for name in ["MULLION_POLICY", "MULLION_AS", "MULLION_RUN"] {
        shell.env_remove(name);
    }
    let Output { status, stderr, .. } = shell.current_dir(place).output().expect("bash");
    assert!(
        status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&stderr)
    );
}

/// A policy of keys that are made first.
const POLICY: &str = "cat > policy.toml <<END
version = 1
types = [\"types/packet-monitor.toml\"]
log = \"admissions.log\"
[keys]
root = \"$(mullion key show root)\"
cc = \"$(mullion key show cc)\"
[allow]
load = [\"root\"]
compile = [\"cc\"]
END
";

/// A copy of `examples/trust/types`, and `x.mx` to be loaded.
fn types(place: &Path) {
    fs::create_dir(place.join("types")).expect("made");
    let kind = "examples/trust/types/packet-monitor.toml";
    fs::copy(root().join(kind), place.join("types/packet-monitor.toml")).expect("copied");
    let source = root().join("examples/trust/packet_monitor.c");
    support::build(&source, &place.join("x.mx"), &["-O2"]);
}

#[test]
fn the_first_steps_are_followed() {
    let text = page("docs/first-steps.md");
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    fs::write(place.join("hello.c"), piece(&text, "c", "puts(")).expect("written");
    fs::write(place.join("checksum.c"), piece(&text, "c", "65521")).expect("written");
    walk("docs/first-steps.md", place, "", &[], &["make "]);
    assert!(place.join("library.mx").is_file());
}

/// Whether `mullion clang` has all that it needs. If not, this says so; `MULLION_REQUIRE_CLANG=1` makes that a failure.
fn has_clang(place: &Path) -> bool {
    let mut command = Command::new(&*MULLION);
    command.args(["clang", "-c", "program.c", "-o", "clang.o"]);
    let output = command.current_dir(place).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let missing = said.contains("install");
    assert!(missing || output.status.success(), "{said}");
    if missing {
        let required = std::env::var_os("MULLION_REQUIRE_CLANG").is_some();
        assert!(!required, "{said}");
        eprintln!("not tested: mullion clang: {said}");
    }
    !missing
}

#[test]
fn the_guide_for_extensions_is_followed() {
    let text = page("docs/extension.md");
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    fs::write(place.join("sum.c"), piece(&text, "c", "sum,")).expect("written");
    fs::write(place.join("spell.h"), piece(&text, "c", "bind.h")).expect("written");
    // A library, and a program that calls it.
    fs::write(place.join("text.c"), "int text(void) { return 7; }\n").expect("written");
    // One of its links is without that library.
    let main =
        "int text(void) __attribute__((weak));\nint main(void) { return text ? text() - 7 : 0; }\n";
    fs::write(place.join("main.c"), main).expect("written");
    fs::create_dir(place.join("plugins")).expect("a directory");
    fs::write(place.join("plug.c"), "int plug(void) { return 7; }\n").expect("written");
    let program = "int main(void) { return 0; }\n";
    fs::write(place.join("program.c"), program).expect("written");
    let clang = ["mullion clang"];
    let left_out = usize::from(!has_clang(place));
    walk("docs/extension.md", place, "", &[], &clang[..left_out]);
    for made in [
        "sum.mx",
        "records.c",
        "spell.rs",
        "spell_host.h",
        "program.mx",
    ] {
        assert!(place.join(made).is_file(), "{made}");
    }
}

#[test]
fn the_guide_to_trust_is_followed() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    types(place);
    let types = place.join("types").display().to_string();
    let keys = "mullion key new cc\n";
    let instead = [
        (keys, &*format!("{keys}{POLICY}")),
        ("examples/trust/types", &types),
        // An hour that is open now.
        ("hour >= \"09\" && hour < \"17\"", "hour >= \"00\""),
    ];
    walk(
        "docs/trust.md",
        place,
        "",
        &instead,
        &["MULLION_KEYNOTE_REFERENCE"],
    );
}

#[test]
fn the_guide_for_operators_is_followed() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    types(place);
    fs::create_dir(place.join("credentials")).expect("made");
    let (here, log) = (place.display().to_string(), place.join("admissions.log"));
    let admitted = "mullion sign x.mx --type types/packet-monitor.toml --key cc\n\
        mullion admit x.mx --policy policy.toml --credentials alice.kn --as alice --log\n";
    let before =
        format!("for name in root alice cc auditor; do mullion key new $name; done\n{POLICY}");
    let instead = [
        ("/etc/mullion", &*here),
        (
            "/var/lib/mullion/admissions.log",
            &log.display().to_string(),
        ),
        ("hour >= \"09\" && hour < \"17\"", "hour >= \"00\""),
        ("20271231", "20991231"),
        ("mullion log show", &format!("{admitted}mullion log show")),
    ];
    // No server runs here.
    walk(
        "docs/operating.md",
        place,
        &before,
        &instead,
        &["mullion top"],
    );
}
