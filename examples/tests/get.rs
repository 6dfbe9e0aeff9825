//! `mullion get`: libraries are made ready, and the examples of their recipes do what they say, in C and C++; stubs for
//! Rust compile.
//!
//! Three libraries are made by each run. All ten take some minutes:
//!
//!     cargo test -p mullion-examples --test get -- --ignored --nocapture

#[path = "../../crates/host/mullion/tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// The ones that are made in seconds.
const QUICK: [&str; 3] = ["expat", "lua", "zlib"];

static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    support::cargo_build(&["mullion-capi"]);
    support::target().join("libmullion.a")
});

fn tree(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Makes a library ready as a user does.
fn get(name: &str, into: &Path) {
    let mut command = Command::new(&*support::MULLION);
    let output = command.arg("get").arg(name).arg(into).output();
    let output = output.expect("the command starts");
    assert!(output.status.success(), "{name}: {}", said(&output));
}

/// A compiler on a host of `library`.
fn compile(compiler: &str, standard: &str, library: &Path) -> Command {
    let mut command = Command::new(compiler);
    command
        .args([standard, "-Wall", "-Wextra", "-pedantic", "-Werror", "-I"])
        .arg(library)
        .arg("-I")
        .arg(tree("include"))
        .arg("-I")
        .arg(tree("sysroot/include"));
    command
}

/// What the recipe's example prints.
fn example(name: &str, place: &Path) -> String {
    let program = place.join("host");
    let output = compile("gcc", "-std=c11", place)
        .arg(place.join("host.c"))
        .arg(&*LIBRARY)
        .args(["-lgcc_s", "-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .expect("a compiler");
    assert!(output.status.success(), "{name}: {}", said(&output));
    let image = place.join(format!("{name}.mx"));
    let output = Command::new(&program).arg(image).output();
    let output = output.expect("the host starts");
    assert!(output.status.success(), "{name}: {}", said(&output));
    String::from_utf8(output.stdout).expect("text")
}

fn try_out(name: &str) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = directory.path().join(name);
    get(name, &place);
    let expected = tree("recipes").join(name).join("expected.txt");
    let expected = fs::read_to_string(expected).expect("what is expected");
    assert_eq!(example(name, &place), expected, "{name}");

    let stem = format!("walled_{}", name.replace('-', "_"));
    let unit = place.join("unit.cc");
    fs::write(&unit, format!("#include \"{stem}_host.h\"\n")).expect("written");
    let output = compile("g++", "-std=c++17", &place)
        .args(["-fsyntax-only", "-Wno-unused-function"])
        .arg(&unit)
        .output()
        .expect("a compiler");
    assert!(output.status.success(), "{name} in C++: {}", said(&output));

    let header = place.join(format!("{stem}.h"));
    let interface = mullion_bind::read(&header, &[]).expect("an interface");
    let module = fs::read_to_string(place.join(format!("{stem}.rs"))).expect("a module");
    assert_eq!(module, mullion_bind::rust(&interface, &format!("{stem}.h")));
    for function in &interface.functions {
        assert!(module.contains(&format!("fn {}(", function.name)), "{name}");
    }

    let licences = fs::read_dir(place.join("licences")).expect("licences");
    assert!(licences.count() > 0, "{name}");
}

#[test]
fn small_libraries_are_made_ready_and_their_examples_run() {
    for name in QUICK {
        try_out(name);
    }
}

#[test]
#[ignore = "minutes"]
fn every_library_is_made_ready_and_its_example_runs() {
    let output = Command::new(&*support::MULLION).arg("get").output();
    let listed = said(&output.expect("the command starts"));
    let mut count = 0;
    for name in listed.lines().filter_map(|line| line.split(' ').next()) {
        try_out(name);
        println!("{name}: as expected");
        count += 1;
    }
    assert_eq!(count, 10, "{listed}");
}

#[test]
fn a_library_without_a_recipe_is_an_error_that_names_those_with_one() {
    let output = Command::new(&*support::MULLION)
        .args(["get", "libfoo"])
        .output();
    let output = output.expect("the command starts");
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    assert!(
        said.contains("no recipe for libfoo") && said.contains("zstd"),
        "{said}"
    );
}

#[test]
fn files_that_are_there_are_kept_unless_asked() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let own = directory.path().join("host.c");
    fs::write(&own, "mine").expect("written");
    let run = |more: &[&str]| {
        let mut command = Command::new(&*support::MULLION);
        let output = command
            .args(["get", "zlib"])
            .arg(directory.path())
            .args(more)
            .output();
        output.expect("the command starts")
    };
    let refused = run(&[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("--force"), "{}", said(&refused));
    assert_eq!(fs::read_to_string(&own).expect("a file"), "mine");
    let replaced = run(&["--force"]);
    assert!(replaced.status.success(), "{}", said(&replaced));
    assert_ne!(fs::read_to_string(&own).expect("a file"), "mine");
}
