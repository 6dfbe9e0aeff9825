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
    support::cargo_build(&["--package", "mullion-capi"]);
    support::target()
});

/// Builds and runs a host; it prints one line if it is content.
fn host(compiler: &str, standard: &str, source: &str, shared: bool) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let image = directory.path().join("extension.mx");
    support::build(&here("tests/extension.c"), &image, &[]);
    let program = directory.path().join("host");
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
        .arg("-I")
        .arg(here("../../include"))
        .arg(here(source))
        .arg("-o")
        .arg(&program);
    if shared {
        // Found under its own name when the program starts.
        let link = directory.path().join("libmullion.so.0");
        std::os::unix::fs::symlink(LIBRARY.join("libmullion.so"), link).expect("a link");
        command.arg("-L").arg(&*LIBRARY).arg("-l:libmullion.so");
    } else {
        command.arg(LIBRARY.join("libmullion.a"));
        command.args(["-lgcc_s", "-lpthread", "-ldl", "-lm"]);
    }
    let output = command.output().expect("a compiler");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{source}: {said}");
    let output = Command::new(&program)
        .arg(&image)
        .env("LD_LIBRARY_PATH", directory.path())
        .output()
        .expect("it starts");
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
fn a_host_in_cxx() {
    host("g++", "-std=c++17", "tests/host.cc", false);
}

#[test]
fn grafts_in_cxx() {
    host("g++", "-std=c++17", "tests/graft.cc", false);
}

#[test]
fn an_installed_library_is_found_by_pkg_config() {
    support::cargo_build(&["--package", "mullion-cli"]);
    let root = tempfile::tempdir().expect("a temporary directory");
    let script = Command::new(here("../../scripts/install"))
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
