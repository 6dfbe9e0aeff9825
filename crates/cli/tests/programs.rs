//! Programs built by `mullion cc` at every level of optimisation and in every
//! protection: they verify, and do in a domain what their native build does.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Level of optimisation and protection.
const BUILDS: &[(&str, &str)] = &[
    ("-O0", "read-write-call"),
    ("-O1", "read-write-call"),
    ("-O2", "read-write-call"),
    ("-O3", "read-write-call"),
    ("-Os", "read-write-call"),
    ("-O0", "write-call"),
    ("-O2", "write-call"),
    ("-O1", "trap"),
    ("-O3", "trap"),
];

/// Arguments that every program gets.
const WORDS: [&str; 2] = ["one", "two three"];

/// Libraries that every program gets.
const LIBRARIES: [&str; 2] = ["-lm", "-latomic"];

/// What a program is built with besides.
fn options(name: &str) -> &'static [&'static str] {
    match name {
        "regions.c" => &["-fopenmp"],
        _ => &[],
    }
}

/// Libraries that a program is linked with.
fn libraries(name: &str) -> &'static [&'static str] {
    match name {
        "quad.c" => &["-lquadmath", "-lm"],
        _ => &[],
    }
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

fn must(command: &mut Command) -> Output {
    let output = command.output().expect("the command starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{said}",
        output.status
    );
    output
}

/// What a program printed, and its status.
fn outcome(command: &mut Command) -> (String, Option<i32>) {
    let output = command.output().expect("the command starts");
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        output.status.code(),
    )
}

/// Builds a program in every way and compares what it does with the native one.
fn agrees(name: &str, compiler: &str) {
    let work = tempfile::tempdir().expect("a temporary directory");
    let native = work.path().join("native");
    let host = if compiler == "cc" { "gcc" } else { "g++" };
    let mut build = Command::new(host);
    build
        .args(["-O1", "-w"])
        .args(options(name))
        .arg(source(name));
    must(build.arg("-o").arg(&native).args(LIBRARIES));
    let mut run = Command::new(&native);
    // A domain has one thread.
    let expected = outcome(run.args(WORDS).env("OMP_NUM_THREADS", "1"));
    for (level, protection) in BUILDS {
        let image = work.path().join(format!("{name}{level}-{protection}.mx"));
        let mut build = Command::new(env!("CARGO_BIN_EXE_mullion"));
        build
            .arg(compiler)
            .args([level, "-g", "-w"])
            .args(options(name))
            .arg(format!("--mullion-protection={protection}"));
        must(
            build
                .arg(source(name))
                .arg("-o")
                .arg(&image)
                .args(LIBRARIES),
        );
        must(
            Command::new(env!("CARGO_BIN_EXE_mullion"))
                .arg("verify")
                .arg(&image),
        );
        let mut run = Command::new(env!("CARGO_BIN_EXE_mullion"));
        let found = outcome(run.arg("run").arg(&image).args(WORDS));
        assert_eq!(found, expected, "{name} {level} {protection}");
    }
}

#[test]
fn the_processor_says_who_it_is() {
    agrees("identity.c", "cc");
}

#[test]
fn signals_pipes_and_devices_of_its_own() {
    agrees("own.c", "cc");
}

#[test]
fn regions_of_one_thread() {
    agrees("regions.c", "cc");
}

#[test]
fn functions_that_need_not_exist() {
    agrees("weak.c", "cc");
}

#[test]
fn arguments_and_status() {
    agrees("hello.c", "cc");
}

#[test]
fn numbers() {
    agrees("numbers.c", "cc");
}

#[test]
fn formats() {
    agrees("formats.c", "cc");
}

#[test]
fn control_flow() {
    agrees("control.c", "cc");
}

#[test]
fn memory_and_strings() {
    agrees("memory.c", "cc");
}

#[test]
fn compiler_helpers() {
    agrees("helpers.c", "cc");
}

#[test]
fn exceptions() {
    agrees("exceptions.cc", "c++");
}

#[test]
fn exceptions_that_nobody_catches() {
    let work = tempfile::tempdir().expect("a temporary directory");
    for (level, protection) in BUILDS {
        let image = work.path().join("uncaught.mx");
        let mut build = Command::new(env!("CARGO_BIN_EXE_mullion"));
        build.args(["c++", level, "-g", "-w"]);
        build.arg(format!("--mullion-protection={protection}"));
        must(build.arg(source("uncaught.cc")).arg("-o").arg(&image));
        let end = |case: &str| {
            let mut run = Command::new(env!("CARGO_BIN_EXE_mullion"));
            let output = run.arg("run").arg(&image).arg(case).output();
            let output = output.expect("the command starts");
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (
                output.status.code(),
                text(&output.stdout),
                text(&output.stderr),
            )
        };
        for case in ["0", "1", "2", "3"] {
            let (status, printed, said) = end(case);
            let found = (status, &*printed);
            assert_eq!(
                found,
                (Some(125), ""),
                "{case} {level} {protection}: {said}"
            );
            assert!(said.contains("terminate called"), "{said}");
            assert!(said.contains("aborted"), "{said}");
            let place = if case == "3" { "main" } else { "thrower" };
            assert!(case == "2" || said.contains(place), "{said}");
        }
        let (status, printed, said) = end("4");
        assert_eq!((status, &*printed), (Some(7), "my own end\n"), "{said}");
    }
}

#[test]
fn the_library_of_cxx() {
    agrees("library.cc", "c++");
}

/// Builds a program with these options and compares what it does with the native one. It has a directory, `/work`,
/// and clocks.
fn agrees_with_files(name: &str, compiler: &str, options: &[&str]) {
    let work = tempfile::tempdir().expect("a temporary directory");
    let native = work.path().join("native");
    let host = if compiler == "cc" { "gcc" } else { "g++" };
    let mut build = Command::new(host);
    build.args(options).args(["-O1", "-w"]).arg(source(name));
    must(build.arg("-o").arg(&native).args(libraries(name)));
    let directory = |name: &str| {
        let directory = work.path().join(name);
        std::fs::create_dir(&directory).expect("room");
        directory
    };
    let expected = outcome(Command::new(&native).arg(directory("of-native")));
    for level in ["-O1", "-O2"] {
        let image = work.path().join("image.mx");
        let mut build = Command::new(env!("CARGO_BIN_EXE_mullion"));
        build.arg(compiler).args(options).args([level, "-g1", "-w"]);
        build.arg(source(name)).arg("-o").arg(&image);
        must(build.args(libraries(name)));
        let mut run = Command::new(env!("CARGO_BIN_EXE_mullion"));
        run.args(["run", "--clock", "--dir"]);
        run.arg(format!("{}::/work", directory(level).display()));
        let found = outcome(run.arg(&image).arg("/work"));
        assert_eq!(found, expected, "{name} {level}");
    }
}

/// The others go through them, so what was allocated here is never freed there.
#[test]
fn replaced_operators_of_cxx() {
    agrees("replaced.cc", "c++");
}

#[test]
fn streams_locales_and_the_rest_of_cxx() {
    agrees_with_files("streams.cc", "c++", &["-std=c++20"]);
}

#[test]
fn files_in_cxx() {
    agrees_with_files("files.cc", "c++", &["-std=c++17"]);
}

/// `_Decimal32`, `_Decimal64` and `_Decimal128`, by their bits.
#[test]
fn decimal_floating_point() {
    agrees_with_files("decimal.c", "cc", &[]);
}

/// libquadmath: functions, text and complex numbers of `__float128`.
#[test]
fn numbers_of_128_bits() {
    agrees_with_files("quad.c", "cc", &[]);
}

#[test]
fn headers_of_glibc() {
    agrees_with_files("headers.c", "cc", &[]);
}

#[test]
fn a_name_that_no_library_has_is_an_error_as_ever() {
    let work = tempfile::tempdir().expect("a temporary directory");
    let text = "namespace std { void none(); }\nint main() { std::none(); }\n";
    std::fs::write(work.path().join("none.cc"), text).expect("room");
    let mut build = Command::new(env!("CARGO_BIN_EXE_mullion"));
    build.args(["c++", "none.cc", "-o", "none.mx"]);
    let output = build.current_dir(&work).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("`std::none()'"),
        "{said}"
    );
    assert!(!work.path().join("none.mx").exists());
}
