//! `scripts/install`, and what the guide for hosts in C and C++ does with what it installs.

#[path = "../../crates/host/mullion/tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn script(arguments: &[&str]) {
    let mut install = Command::new(root().join("scripts/install"));
    let output = install.args(arguments).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// Installed into a directory of its own.
fn installed() -> (TempDir, PathBuf) {
    // One by one, as other tests do: together they are built with other features, anew.
    std::sync::LazyLock::force(&support::MULLION);
    support::cargo_build(&["mullion-capi"]);
    support::cargo_build(&["mullion-word"]);
    let place = tempfile::tempdir().expect("a directory");
    let prefix = place.path().join("prefix");
    let from = support::target();
    script(&[
        "--from",
        from.to_str().expect("text"),
        "--prefix",
        prefix.to_str().expect("text"),
    ]);
    (place, prefix)
}

#[test]
fn what_is_installed_serves_and_can_be_removed() {
    let (place, prefix) = installed();
    has_everything(&prefix);
    needs_no_cargo(place.path(), &prefix);
    follow_the_guide(place.path(), &prefix);
    cmake_finds_it(place.path(), &prefix);
    hosts_of_the_word_wall(place.path(), &prefix);
    remove(&prefix);
}

/// `make install` in a fresh copy of the sources has nothing but what its own recipe builds.
#[test]
fn make_builds_what_is_installed() {
    let mut make = Command::new("make");
    let plan = make.args(["--dry-run", "install"]).current_dir(root());
    let plan = plan.output().expect("make");
    let plan = String::from_utf8(plan.stdout).expect("text");
    let packages = plan.split(" -p ").skip(1);
    let packages = packages.filter_map(|rest| rest.split_whitespace().next());
    let built = files_of(&packages.collect::<Vec<_>>());

    let place = tempfile::tempdir().expect("a directory");
    let (from, prefix) = (place.path().join("from"), place.path().join("prefix"));
    fs::create_dir(&from).expect("made");
    for file in &built {
        fs::write(from.join(file), "").expect("written");
    }
    let mut install = Command::new(root().join("scripts/install"));
    install.arg("--from").arg(from).arg("--prefix").arg(&prefix);
    let output = install.output().expect("it starts");
    // It makes directories once it has found every file, and fails then, as these are empty.
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(prefix.join("bin").is_dir(), "{built:?}: {said}");
}

/// The files that cargo makes of these packages, by their manifests.
fn files_of(packages: &[&str]) -> Vec<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version=1"]);
    let output = cargo.current_dir(root()).output().expect("cargo");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let all = metadata["packages"].as_array().expect("a list");
    let targets = all
        .iter()
        .filter(|package| packages.contains(&package["name"].as_str().expect("a name")))
        .flat_map(|package| package["targets"].as_array().expect("a list"));
    let mut files = Vec::new();
    for target in targets {
        let name = target["name"].as_str().expect("a name");
        for kind in target["kind"].as_array().expect("a list") {
            match kind.as_str() {
                Some("bin") => files.push(name.to_owned()),
                Some("staticlib") => files.push(format!("lib{name}.a")),
                Some("cdylib") => files.push(format!("lib{name}.so")),
                _ => {}
            }
        }
    }
    files
}

fn has_everything(prefix: &Path) {
    for file in [
        "bin/mullion",
        "include/mullion.h",
        "include/mullion.hpp",
        "include/mullion_graft.hpp",
        "include/mullion_kernel.h",
        "include/mullion_word.h",
        "include/mullion/bind.h",
        "include/mullion/packets.h",
        "lib/libmullion.a",
        "lib/libmullion.so",
        "lib/libmullion_word.a",
        "lib/libmullion_word.so",
        "lib/pkgconfig/mullion.pc",
        "lib/pkgconfig/mullion_word.pc",
        "lib/cmake/mullion/mullion-config.cmake",
        "lib/cmake/mullion/mullion-config-version.cmake",
        "share/man/man1/mullion.1",
        "share/man/man1/mullion-loader-serve.1",
    ] {
        assert!(prefix.join(file).is_file(), "{file}");
    }
}

/// No cache, no cargo, no apt: the sources are there.
fn needs_no_cargo(place: &Path, prefix: &Path) {
    let mut fetch = Command::new(prefix.join("bin/mullion"));
    fetch.args(["fetch", "musl", "compiler-rt"]).env_clear();
    let output = fetch.env("HOME", place).output().expect("it starts");
    let found = String::from_utf8_lossy(&output.stdout);
    assert_eq!(found.lines().count(), 2, "{output:?}");
    for line in found.lines() {
        let sources = Path::new(line).canonicalize().expect("a directory");
        assert!(
            sources.starts_with(prefix.canonicalize().expect("there")),
            "{line}"
        );
    }
}

fn remove(prefix: &Path) {
    fs::write(prefix.join("lib/other"), "not ours").expect("written");
    script(&["--remove", "--prefix", prefix.to_str().expect("text")]);
    let left = Command::new("find")
        .arg(prefix)
        .args(["!", "-type", "d"])
        .output();
    let left = String::from_utf8(left.expect("find").stdout).expect("text");
    assert_eq!(left.trim(), prefix.join("lib/other").display().to_string());
}

/// Whether there is such a tool; what needs it is not run without.
fn is_there(tool: &str, required_by: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    let required = std::env::var_os(required_by).is_some();
    assert!(found || !required, "there is no {tool}");
    if !found {
        eprintln!("not run: there is no {tool}");
    }
    found
}

/// Runs a line of a page, and what it has built; gives what that said.
fn follow(line: &str, then: &str, place: &Path, prefix: &Path) -> String {
    let mut shell = Command::new("bash");
    shell.arg("-euc").arg(format!("{line}\n{then}"));
    shell.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    shell.env("LD_LIBRARY_PATH", prefix.join("lib"));
    let output = shell.current_dir(place).output().expect("bash");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The first host of docs/host-c.md, linked in each way that the page names, and run.
fn follow_the_guide(place: &Path, prefix: &Path) {
    if !is_there("pkg-config", "MULLION_REQUIRE_PKG_CONFIG") {
        return;
    }
    let page = fs::read_to_string(root().join("docs/host-c.md")).expect("the page");
    let host = page
        .split("```c\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    fs::write(place.join("host.c"), host.expect("a host")).expect("written");
    let add =
        "#include <mullion/ext.h>\nMULLION_EXPORT(int, add, (int a, int b)) { return a + b; }\n";
    fs::write(place.join("add.c"), add).expect("written");
    support::build(&place.join("add.c"), &place.join("add.mx"), &[]);

    let lines: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with("cc "))
        .collect();
    assert_eq!(
        lines.len(),
        2,
        "with the shared library and with the static one"
    );
    for line in lines {
        assert_eq!(follow(line, "./a.out", place, prefix), "5\n", "{line}");
    }
}

/// The example of docs/word.md, its module made by the command that is installed, linked in each way that the page names,
/// and by CMake.
fn hosts_of_the_word_wall(place: &Path, prefix: &Path) {
    let place = place.join("word");
    fs::create_dir(&place).expect("made");
    for file in ["host.c", "list.h", "module.c"] {
        let from = root().join("examples/word-c").join(file);
        fs::copy(from, place.join(file)).expect("copied");
    }
    let command = prefix.join("bin/mullion");
    let made = format!(
        "{} cc --wall=word -g -O1 module.c -o module.so",
        command.display()
    );
    follow(&made, "true", &place, prefix);
    let is_content = |said: &str| said.ends_with("content\n");
    if is_there("pkg-config", "MULLION_REQUIRE_PKG_CONFIG") {
        let page = fs::read_to_string(root().join("docs/word.md")).expect("the page");
        let lines: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("cc host.c -o host "))
            .collect();
        assert_eq!(lines.len(), 2, "with each library: {lines:?}");
        for line in lines {
            let said = follow(line, "./host module.so", &place, prefix);
            assert!(is_content(&said), "{line}: {said}");
        }
    }
    if is_there("cmake", "MULLION_REQUIRE_CMAKE") {
        for target in ["mullion::word", "mullion::word_static"] {
            let project = format!(
                "cmake_minimum_required(VERSION 3.16)\nproject(host C)\nfind_package(mullion REQUIRED)\n\
                 add_executable(host host.c)\ntarget_link_libraries(host PRIVATE {target})\n"
            );
            fs::write(place.join("CMakeLists.txt"), project).expect("written");
            let said = cmake(&place, prefix, "build/host module.so").expect("it is found");
            assert!(is_content(&said), "{target}: {said}");
        }
    }
}

/// The project of docs/host-c.md, with the host and the extension that `follow_the_guide` has left.
fn cmake_finds_it(place: &Path, prefix: &Path) {
    if !is_there("cmake", "MULLION_REQUIRE_CMAKE") {
        return;
    }
    if !place.join("host.c").exists() {
        eprintln!("not run: the host of the guide was not made");
        return;
    }
    let page = fs::read_to_string(root().join("docs/host-c.md")).expect("the page");
    let project = page
        .split("```cmake\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("a project");
    for target in ["mullion::mullion", "mullion::static"] {
        let project = project.replace("mullion::mullion", target);
        fs::write(place.join("CMakeLists.txt"), project).expect("written");
        let said = cmake(place, prefix, "build/host").expect("it is found");
        assert_eq!(said, "5\n", "{target}");
    }
    for (version, is_found) in [("0.1", true), ("0.1.0", true), ("0.2", false), ("1", false)] {
        let project = project.replace("mullion REQUIRED", &format!("mullion {version} REQUIRED"));
        fs::write(place.join("CMakeLists.txt"), project).expect("written");
        let result = cmake(place, prefix, "build/host");
        assert_eq!(result.is_ok(), is_found, "{version}: {result:?}");
    }
}

/// Configures and builds the project in `place`, and runs the host: what that said.
fn cmake(place: &Path, prefix: &Path, then: &str) -> Result<String, String> {
    let _ = fs::remove_dir_all(place.join("build"));
    let mut shell = Command::new("bash");
    shell
        .arg("-euc")
        .arg(format!(
            "cmake -S . -B build >&2 && cmake --build build >&2 && {then}"
        ))
        .env("CMAKE_PREFIX_PATH", prefix)
        .current_dir(place);
    let output = shell.output().expect("bash");
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
