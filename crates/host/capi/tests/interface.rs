//! Hosts in C and C++, compiled with warnings as errors and run.

#[path = "../../mullion/tests/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    support::cargo_build(&["mullion-capi"]);
    support::target()
});

/// Builds and runs a host; it prints one line if it is content.
fn host(compiler: &str, standard: &str, source: &str, shared: bool) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let image = directory.path().join("extension.mx");
    support::build(&here("tests/extension.c"), &image, &[]);
    let program = compile(compiler, standard, source, shared, directory.path(), &[]);
    content(source, directory.path(), Command::new(&program).arg(&image));
}

/// Builds a host.
fn compile(
    compiler: &str,
    standard: &str,
    source: &str,
    shared: bool,
    directory: &Path,
    options: &[&str],
) -> PathBuf {
    let program = directory.join("host");
    let mut command = Command::new(compiler);
    command
        .args([
            standard,
            "-g",
            "-O1",
            "-Wall",
            "-Wextra",
            "-pedantic",
            "-Werror",
        ])
        .args(options)
        .arg("-I")
        .arg(here("../../../include"))
        .arg(here(source))
        .arg("-o")
        .arg(&program);
    if shared {
        // Found under its own name when the program starts.
        let link = directory.join("libmullion.so.0");
        std::os::unix::fs::symlink(LIBRARY.join("libmullion.so"), link).expect("a link");
        command.arg("-L").arg(&*LIBRARY).arg("-l:libmullion.so");
    } else {
        command.arg(LIBRARY.join("libmullion.a"));
        command.args(["-lgcc_s", "-lpthread", "-ldl", "-lm"]);
    }
    let output = command.output().expect("a compiler");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{source}: {said}");
    program
}

/// Runs a host that is to be content.
fn content(source: &str, directory: &Path, host: &mut Command) {
    let output = host.env("LD_LIBRARY_PATH", directory).output();
    let output = output.expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        printed, "all as the header says\n",
        "{source}: {}: {said}",
        output.status
    );
}

#[test]
fn a_host_in_c_with_the_static_library() {
    host("gcc", "-std=c99", "tests/host.c", false);
}

#[test]
fn a_host_in_c_with_the_shared_library() {
    host("gcc", "-std=gnu11", "tests/host.c", true);
}

#[test]
fn threads_of_a_host_in_c_that_end() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let image = directory.path().join("thread_end.mx");
    let extension = here("../mullion/tests/extensions/thread_end.cc");
    support::build(&extension, &image, &[]);
    let source = "tests/threads.c";
    let program = compile("gcc", "-std=c99", source, false, directory.path(), &[]);
    content(source, directory.path(), Command::new(&program).arg(&image));
}

/// Images of `tests/pooled.c`: two that have the same functions, and one that has others.
fn pooled(directory: &Path) -> [PathBuf; 3] {
    let all = ["-DVERSION=1", "-DVERSION=2", "-DOTHER"];
    all.map(|option| {
        let image = directory.join(format!("pooled{option}.mx"));
        support::build(&here("tests/pooled.c"), &image, &[option]);
        image
    })
}

#[test]
fn pools_and_domains_that_are_replaced_under_threads() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let images = pooled(directory.path());
    let source = "tests/pools.c";
    let program = compile("gcc", "-std=c99", source, false, directory.path(), &[]);
    content(
        source,
        directory.path(),
        Command::new(&program).args(&images),
    );
}

#[test]
fn host_functions_that_are_left_by_jumps() {
    host("gcc", "-std=gnu11", "tests/jumps.c", false);
}

#[test]
fn a_log_function_that_calls_the_library() {
    host("gcc", "-std=c99", "tests/log.c", false);
}

#[test]
fn a_host_function_that_throws() {
    host("g++", "-std=c++17", "tests/thrown.cc", false);
}

#[test]
fn a_host_in_cxx() {
    host("g++", "-std=c++17", "tests/host.cc", false);
}

#[test]
fn grafts_in_cxx() {
    host("g++", "-std=c++17", "tests/graft.cc", false);
}

/// What the tests of links call, in an image with a compilation record, and a policy
/// that lets one key load it: image, policy, keyring, record.
fn signed_links(directory: &Path) -> [PathBuf; 4] {
    let [keys, types, policy, image] =
        ["keys", "links.toml", "policy.toml", "links.mx"].map(|name| directory.join(name));
    let mullion = |arguments: &[&str]| {
        let output = Command::new(&*support::MULLION)
            .args(arguments)
            .env("MULLION_KEYS", &keys)
            .output()
            .expect("the command starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).expect("text")
    };
    for name in ["compiler", "loader", "stranger"] {
        mullion(&["key", "new", name]);
    }
    let key = |name: &str| mullion(&["key", "show", name]).trim().to_owned();
    let module_type = "version = 1\nid = \"links\"\ndescription = \"Calls others.\"\nlanguage = \"c\"\n\
        protection = \"read-write-call\"\nmechanism = [\"window\"]\nverification = \"required\"\n\
        imports = [\"__mullion_system\", \"other\", \"other_real\", \"host_who\", \"host_eight\"]\n";
    std::fs::write(&types, module_type).expect("written");
    let text = format!(
        "version = 1\ntypes = [\"links.toml\"]\n[keys]\nloader = \"{}\"\ncompiler = \"{}\"\n\
        [allow]\nload = [\"loader\"]\ncompile = [\"compiler\"]\n",
        key("loader"),
        key("compiler")
    );
    std::fs::write(&policy, text).expect("written");
    let source = here("../mullion/tests/extensions/links.c");
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    mullion(&[
        "cc",
        "--mullion-kind=extension",
        "-g",
        "-O1",
        "--type",
        &text(&types),
        "--key",
        "compiler",
        &text(&source),
        "-o",
        &text(&image),
    ]);
    let record = directory.join("links.mx.record");
    [image, policy, keys, record]
}

#[test]
fn domains_pages_limits_and_credentials_in_c() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = "tests/domains.c";
    let program = compile("gcc", "-std=c99", source, false, directory.path(), &[]);
    let files = signed_links(directory.path());
    let (json, svg) = (
        directory.path().join("books.json"),
        directory.path().join("books.svg"),
    );
    content(
        source,
        directory.path(),
        Command::new(&program).args(&files).arg(&json),
    );
    let mut map = Command::new(&*support::MULLION);
    let status = map.arg("map").arg(&json).arg("-o").arg(&svg).status();
    assert!(status.expect("the command starts").success());
    let picture = std::fs::read_to_string(svg).expect("a picture");
    let names = [
        "host",
        "the caller",
        "the called one",
        "who",
        "the third",
        "the page",
    ];
    for name in names {
        assert!(picture.contains(name), "{name}");
    }
}

#[test]
fn misuse_in_c_and_cxx_does_nothing_that_the_address_sanitizer_sees() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let image = directory.path().join("extension.mx");
    support::build(&here("tests/extension.c"), &image, &[]);
    let links = directory.path().join("links.mx");
    support::build(&here("../mullion/tests/extensions/links.c"), &links, &[]);
    let sanitized = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let (c, cxx) = (("gcc", "-std=c99"), ("g++", "-std=c++17"));
    for (source, image, (compiler, standard)) in [
        ("tests/host.c", &image, c),
        ("tests/domains.c", &links, c),
        ("tests/host.cc", &image, cxx),
        ("tests/graft.cc", &image, cxx),
    ] {
        let program = compile(
            compiler,
            standard,
            source,
            false,
            directory.path(),
            &sanitized,
        );
        content(
            source,
            directory.path(),
            // The library's own thread and tables live until the end.
            Command::new(&program).arg(image).env(
                "ASAN_OPTIONS",
                "detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_sigill=0:handle_sigfpe=0",
            ),
        );
    }
}

#[test]
fn an_installed_library_is_found_by_pkg_config() {
    support::cargo_build(&["mullion-cli", "mullion-word"]);
    let root = tempfile::tempdir().expect("a temporary directory");
    let script = Command::new(here("../../../scripts/install"))
        .arg("--from")
        .arg(&*LIBRARY)
        .arg("--prefix")
        .arg(root.path())
        .status();
    assert!(script.expect("the script starts").success());
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs", "mullion"])
        .env("PKG_CONFIG_PATH", root.path().join("lib/pkgconfig"))
        .output();
    let Ok(flags) = flags else {
        assert!(
            std::env::var_os("MULLION_REQUIRE_PKG_CONFIG").is_none(),
            "no pkg-config"
        );
        println!("skipped: there is no pkg-config");
        return;
    };
    let flags = String::from_utf8(flags.stdout).expect("text");
    let source = root.path().join("version.c");
    let text = "#include <mullion.h>\n#include <stdio.h>\nint main(void) { puts(mullion_version()); return 0; }\n";
    std::fs::write(&source, text).expect("written");
    let program = root.path().join("version");
    let built = Command::new("gcc")
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .args(flags.split_whitespace())
        .status();
    assert!(built.expect("a compiler").success(), "{flags}");
    let output = Command::new(&program)
        .env("LD_LIBRARY_PATH", root.path().join("lib"))
        .output()
        .expect("it starts");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        env!("CARGO_PKG_VERSION")
    );
}
