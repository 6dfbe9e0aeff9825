//! Redis's own tests of the interface for modules (`tests/unit/moduleapi`, in Tcl), with modules behind their walls: a stub by
//! each module's own name is in its place, so the tests are as they are.

use crate::place::{Place, here};
use std::fs;
use std::process::Command;

/// Files of tests that pass whole.
const UNITS: [&str; 6] = ["basics", "hash", "list", "scan", "timer", "zset"];

const POLICY: &str = "allow = [\"@plain\", \"@keys\", \"@scan\", \"@dicts\", \"@types\", \"@timers\", \"@call\", \"@print\"]\n\
    [group]\ncommands = [\"ALL\"]\n";

pub(crate) fn run(place: &Place) {
    let folder = place.scratch.path().join("suite");
    fs::create_dir_all(folder.join("src")).expect("made");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(place.sources.join("tests"))
        .arg(&folder)
        .status();
    assert!(copied.expect("cp starts").success());
    for program in ["redis-server", "redis-cli", "redis-benchmark"] {
        let found = Command::new("sh")
            .args(["-c", "command -v \"$0\"", program])
            .output()
            .expect("a shell");
        let at = String::from_utf8_lossy(&found.stdout).trim().to_owned();
        std::os::unix::fs::symlink(at, folder.join("src").join(program)).expect("made");
    }
    for unit in UNITS {
        let modules = folder.join("tests/modules");
        let source = modules.join(format!("{unit}.c"));
        let walled = place.walled(&source, unit, POLICY, &[]);
        fs::copy(&walled, modules.join(format!("{unit}.word.so"))).expect("copied");
        fs::write(modules.join(format!("{unit}.word.toml")), POLICY).expect("written");
        let bridge = format!("-DBRIDGE=\"{}\"", place.library.display());
        let stub = Command::new("gcc")
            .args(["-O2", "-shared", "-fPIC", &bridge])
            .arg(here("stub.c"))
            .arg("-o")
            .arg(modules.join(format!("{unit}.so")))
            .status();
        assert!(stub.expect("gcc starts").success());
        let output = Command::new("tclsh")
            .args(["tests/test_helper.tcl", "--clients", "1", "--single"])
            .arg(format!("unit/moduleapi/{unit}"))
            .current_dir(&folder)
            .output()
            .expect("there is a `tclsh` (Debian's package tcl)");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{unit}: {said}");
        let passed = said.matches("ok\u{1b}").count();
        println!("{unit}: {passed} tests of Redis's own pass");
        assert!(passed > 0, "{said}");
    }
}
