//! Every example, built as its first lines say and run.

#[path = "../../crates/host/mullion/tests/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use tempfile::TempDir;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// An extension of these examples, in a directory for the example's output.
fn extension(source_name: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let image = directory.path().join("extension.mx");
    support::build(
        &source(source_name),
        &image,
        &["-O2", "-Wall", "-Wextra", "-Werror"],
    );
    (directory, image)
}

/// What a host prints; it must succeed.
fn run(host: &Path, arguments: &[&Path]) -> String {
    run_with_input(host, arguments, Stdio::null())
}

fn run_with_input(host: &Path, arguments: &[&Path], input: Stdio) -> String {
    let output = Command::new(host).args(arguments).stdin(input).output();
    let output = output.expect("the host starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", host.display());
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn hello() {
    let (_directory, image) = extension("hello/extension.c");
    let printed = run(Path::new(env!("CARGO_BIN_EXE_hello")), &[&image]);
    assert_eq!(printed, "2 + 3 = 5\n");
}

#[test]
fn callbacks() {
    let (_directory, image) = extension("callbacks/extension.c");
    let printed = run(Path::new(env!("CARGO_BIN_EXE_callbacks")), &[&image]);
    let mut records: Vec<u32> = (1..=12).collect();
    records.sort_by_key(|record: &u32| record.wrapping_mul(2_654_435_761) >> 24);
    assert!(
        printed.starts_with(&format!("sorted by weight: {records:?}\n")),
        "{printed}"
    );
    assert!(printed.contains("the domain asked "), "{printed}");
}

#[test]
fn player() {
    let (directory, decoder) = extension("player/decoder.c");
    let (_second, player) = extension("player/player.c");
    let [json, svg] = ["host.json", "host.svg"].map(|name| directory.path().join(name));
    let printed = run(
        Path::new(env!("CARGO_BIN_EXE_player")),
        &[&decoder, &player, &json],
    );
    let mut map = Command::new(&*support::MULLION);
    let status = map.arg("map").arg(&json).arg("-o").arg(&svg).status();
    assert!(status.expect("the command starts").success());
    let picture = std::fs::read_to_string(svg).expect("a picture");
    for name in [
        "A player and its decoder",
        "host",
        "player",
        "decoder",
        "decode",
        "frame",
    ] {
        assert!(picture.contains(&format!(">{name}<")), "{name}");
    }
    let lines: Vec<_> = printed.lines().collect();
    let expected = [
        "the host may not give player the bytes 0x0 to 0x1000 of frame as ReadWrite: only decoders write frames",
        "player asks, frame 0: abcdefghijklmnop, 4 vowels",
        "player asks, frame 1: bcdefghijklmnopq, 3 vowels",
        "player asks, frame 2: cdefghijklmnopqr, 3 vowels",
        "player asks, frame 3: skipped, the decoder starts again",
        "player asks, frame 4: efghijklmnopqrst, 3 vowels",
        "player asks, frame 5: fghijklmnopqrstu, 3 vowels",
        "player's decode was called 6 times",
    ];
    assert_eq!(lines[..8], expected);
    assert!(
        lines[8].starts_with("domain player: write to read-only memory"),
        "{printed}"
    );
}

#[test]
fn pipeline() {
    let (directory, image) = extension("pipeline/filters.c");
    let picture = directory.path().join("picture.pgm");
    let printed = run(
        Path::new(env!("CARGO_BIN_EXE_pipeline")),
        &[&image, &picture],
    );
    assert!(
        printed.contains("read of memory that is not mapped at offset 0x0"),
        "{printed}"
    );
    assert!(printed.contains("filters.c:"), "{printed}");
    assert!(printed.contains("blur: 256 rows, 0 skipped\n"), "{printed}");
    assert!(
        printed.contains("sharpen: 131 rows, 125 skipped\n"),
        "{printed}"
    );
    assert!(printed.contains("in spite of 125 crashes\n"), "{printed}");
    assert_eq!(
        std::fs::read(picture).expect("a picture").len(),
        15 + 256 * 256
    );
}

static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    support::cargo_build(&["mullion-capi"]);
    support::target().join("libmullion.a")
});

/// Builds a host in C or C++.
fn compile(name: &str, directory: &Path) -> PathBuf {
    let (compiler, standard) = match name.ends_with(".cc") {
        true => ("g++", "-std=c++17"),
        false => ("gcc", "-std=c99"),
    };
    let program = directory.join("host");
    let output = Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-pedantic", "-Werror", "-I"])
        .arg(source("../include"))
        .arg("-I")
        .arg(source("../sysroot/include"))
        .arg("-I")
        .arg(source("bind"))
        .arg("-I")
        .arg(directory)
        .arg(source(name))
        .arg(&*LIBRARY)
        .args(["-lgcc_s", "-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .expect("a compiler");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {said}");
    program
}

#[test]
fn limits() {
    let (_directory, image) = extension("limits/extension.c");
    let printed = run(Path::new(env!("CARGO_BIN_EXE_limits")), &[&image]);
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines.len(), 8, "{printed}");
    assert!(
        lines[0].starts_with("time: domain extension.mx: limit of 100ms on a processor exceeded"),
        "{printed}"
    );
    let megabytes = lines[1]
        .strip_prefix("memory: ")
        .and_then(|rest| rest.split(' ').next());
    assert!(
        (1..8).contains(&megabytes.and_then(|count| count.parse().ok()).unwrap_or(0)),
        "{printed}"
    );
    assert!(
        lines[2].contains("data stack overflow (256 KiB)"),
        "{printed}"
    );
    assert!(lines[3].contains("10 invocations are nested"), "{printed}");
    for (line, part) in lines[4..].iter().zip([
        "one call: domain extension.mx: limit of 10ms on a processor exceeded",
        "gate calls: domain extension.mx: limit of 2 gate calls exceeded",
        "output: domain extension.mx: output limit of 1000 bytes exceeded",
        "all calls: domain extension.mx: limit of 50ms on processors for all calls exceeded",
    ]) {
        assert!(line.starts_with(part), "{printed}");
    }
}

#[test]
fn plugins() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let images = ["shout", "reverse", "curious"].map(|name| {
        let image = directory.path().join(format!("{name}.mx"));
        support::build(&source(&format!("plugins/{name}.c")), &image, &["-O2"]);
        image
    });
    let stranger = directory.path().join("stranger.mx");
    support::build(&source("hello/extension.c"), &stranger, &["-O2"]);
    let arguments: Vec<&Path> = images
        .iter()
        .chain([&stranger])
        .map(PathBuf::as_path)
        .collect();
    let printed = run(Path::new(env!("CARGO_BIN_EXE_plugins")), &arguments);
    let expected = "12 characters\n\
        curious.mx: it imports read_secret, which this host does not offer\n\
        stranger.mx: not permitted: it does not export `transform`\n\
        DLROW ,OLLEH\n";
    assert_eq!(printed, expected);
}

#[test]
fn hello_in_c() {
    let (directory, image) = extension("hello/extension.c");
    let host = compile("hello-c/host.c", directory.path());
    assert_eq!(run(&host, &[&image]), "2 + 3 = 5\n");
}

#[test]
fn words_in_c() {
    let (directory, image) = extension("words-c/extension.c");
    let host = compile("words-c/host.c", directory.path());
    let text = directory.path().join("text");
    std::fs::write(
        &text,
        "the quick\nDonaudampfschifffahrtsgesellschaft\nbrown fox\n",
    )
    .expect("written");
    let input = std::fs::File::open(text).expect("a text");
    let printed = run_with_input(&host, &[&image], input.into());
    assert!(printed.contains(" The Quick\n"), "{printed}");
    assert!(
        printed.contains("overran the buffer by 10 bytes"),
        "{printed}"
    );
    assert!(
        printed.contains("; starting again)\n Brown Fox\n4 words\n"),
        "{printed}"
    );
}

#[test]
fn tainted_values_in_cxx() {
    let (directory, image) = extension("tainted-cc/extension.cc");
    let host = compile("tainted-cc/host.cc", directory.path());
    assert_eq!(run(&host, &[&image]), "##..\n####\n...#\nnot taken\n");
}

#[test]
fn a_grafted_policy_in_cxx() {
    let (directory, image) = extension("graft-cc/extension.c");
    let host = compile("graft-cc/host.cc", directory.path());
    let printed = run(&host, &[&image]);
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines[0], "as it was: 1200 misses");
    assert_eq!(lines[1], "grafted: 219 misses");
    assert_eq!(lines[2], "another cache: 1200 misses");
    assert_eq!(lines[3], "it faulted, and the original went on");
    assert_eq!(lines[4], "taken back: 1200 misses");
}

#[test]
fn stubs_made_from_a_header() {
    let interface = mullion_bind::read(&source("bind/spell.h"), &[]).expect("it can be read");
    let made = mullion_bind::rust(&interface, "spell.h");
    let kept = std::fs::read_to_string(source("bind/spell.rs")).expect("it is kept");
    assert_eq!(
        made, kept,
        "make it again: mullion bind --rust examples/bind/spell.h -o examples/bind/spell.rs"
    );

    let directory = tempfile::tempdir().expect("a temporary directory");
    let records = directory.path().join("records.c");
    std::fs::write(&records, mullion_bind::extension(&interface, "spell.h")).expect("written");
    let image = directory.path().join("spell.mx");
    let include = format!("-I{}", source("bind").display());
    let records = records.display().to_string();
    support::build(
        &source("bind/extension.c"),
        &image,
        &["-Wall", "-Wextra", "-Werror", &include, &records],
    );
    let stubs = mullion_bind::c(&interface, "spell.h").expect("stubs for C");
    std::fs::write(directory.path().join("spell_host.h"), stubs).expect("written");
    let in_c = compile("bind-c/host.c", directory.path());
    let printed = run(&in_c, &[&image]);
    assert_eq!(
        printed,
        "spell: 2 mistakes\nneigbours: really?\nfrends: really?\n5 times e\n"
    );

    let printed = run(Path::new(env!("CARGO_BIN_EXE_bind")), &[&image]);
    let expected = "spell: 2 mistakes\nneigbours: really?\nfrends: really?\n5 times e\n";
    assert_eq!(printed, expected);
}
