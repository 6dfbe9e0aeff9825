//! `mullion sip`: separately built SIPs, from the command line.

#[path = "../../process/sip-host/tests/built/mod.rs"]
mod built;
#[allow(dead_code, reason = "others use more of it")]
mod sips;

use std::path::Path;
use std::process::Command;

use built::library;
use sips::{Run, mullion};

#[test]
fn a_configuration_is_run_looked_at_and_ended() {
    let run = Run::of(
        r#"
        [processes.echo]
        library = "LIB_echo.so"
        bind = ["/echo"]
        [processes.asker]
        library = "LIB_asker.so"
        arguments = ["0", "100"]
        look-up = ["/echo"]
        [processes.failing]
        library = "LIB_odd.so"
        arguments = ["panic"]
        "#,
    );
    let table = run.look(&["top", "--once"], "Panic: ");
    assert!(table.contains("3 processes, 2 running"), "{table}");
    run.look(&["top", "--json"], "\"contract\": \"echo\"");
    run.look(&["graph", "--layout", "column"], ">domain main</text>");
    run.look(&["graph", "--dot"], "label=\"domain main\"");
    // By Graphviz where it is, otherwise in a column.
    run.look(&["graph"], ">domain main</text>");
    // Heaps, stacks and blocks of living processes, as `mullion map` takes them.
    for wanted in ["\"asker\"", "\"heap\"", "\"stack\"", "\"exchange heap\""] {
        let state = run.look(&["map"], wanted);
        let file = run.directory().join("state.json");
        std::fs::write(&file, state).expect("written");
        let painted = Command::new(env!("CARGO_BIN_EXE_mullion"))
            .arg("map")
            .arg(&file)
            .output();
        let painted = painted.expect("it runs");
        assert!(painted.status.success(), "{painted:?}");
    }
    run.terminate();
    let (code, log) = run.end();
    assert_eq!(code, Some(143), "{log}");
    for line in [
        "started process=\"echo\"",
        "ended process=\"failing\" cause=Panic",
        "ended process=\"asker\" cause=Killed",
    ] {
        assert!(log.contains(line), "{line} in {log}");
    }
}

/// The process number of a domain, by the table that `top` shows.
fn domain_of(table: &str, process: &str) -> rustix::process::Pid {
    let line = table.lines().find(|line| line.starts_with(process));
    let number = line.and_then(|line| line.split_whitespace().nth(2)?.parse().ok());
    rustix::process::Pid::from_raw(number.expect(table)).expect("a number")
}

/// Threads, memory, messages and limits of every process, wherever it is.
fn shows_both_sides_of_a_wall(view: &str) {
    let view: serde_json::Value = serde_json::from_str(view).expect("JSON");
    for process in view["processes"].as_array().expect("a list") {
        let number = |field: &str| process[field].as_f64().unwrap_or(-1.0);
        assert_eq!(process["silent"], false, "{process}");
        assert!(number("messages") > 0.0, "{process}");
        assert!(number("messages_per_second") > 0.0, "{process}");
        for (used, limit) in [
            ("threads", "thread_limit"),
            ("heap", "heap_limit"),
            ("exchange", "exchange_limit"),
        ] {
            assert!(
                number(used) >= 0.0 && number(used) <= number(limit),
                "{process}"
            );
            assert!(number(limit) > 0.0, "{process}");
        }
        assert_eq!(process["os_process"].is_null(), process["name"] == "asker");
    }
}

#[test]
fn a_domain_is_an_os_process_that_is_started_again() {
    let run = Run::of(
        r#"
        [domains.service]
        kind = "process"
        [processes.echo]
        library = "LIB_echo.so"
        domain = "service"
        bind = ["/echo"]
        restart = "on-failure"
        [processes.asker]
        library = "LIB_asker.so"
        arguments = ["0", "100"]
        look-up = ["/echo"]
        restart = "on-failure"
        "#,
    );
    run.look(&["top", "--json"], "\"server\": \"echo\"");
    // On a busy machine a domain may be silent for a while.
    let both = loop {
        let view = run.look(&["top", "--json", "--every", "50ms"], "per_second");
        if view.matches("per_second").count() == 2 {
            break view;
        }
    };
    shows_both_sides_of_a_wall(&both);
    let domain = domain_of(&run.look(&["top", "--once"], "running"), "echo");
    rustix::process::kill_process(domain, rustix::process::Signal::KILL).expect("it lives");
    run.look(&["top", "--once"], "Killed: signal 9");
    run.look(&["top", "--json"], "\"server\": \"echo\"");
    run.look(&["graph"], ">domain service</text>");
    let next = domain_of(&run.look(&["top", "--once"], "2 running"), "echo");
    assert_ne!(next, domain);
    let number = run.supervisor.id().cast_signed();
    let pid = rustix::process::Pid::from_raw(number).expect("a number");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it lives");
    let (code, log) = run.end();
    assert_eq!(code, Some(130), "{log}");
    assert_eq!(log.matches("started process=\"echo\"").count(), 2, "{log}");
    let left = rustix::process::test_kill_process(next);
    assert!(left.is_err(), "its domain has ended");
}

/// Even one that does nothing any more: who is stopped does not hear that its socket is closed.
#[test]
fn a_domain_ends_with_its_host() {
    let mut run = Run::of(
        r#"
        [domains.service]
        kind = "process"
        [processes.echo]
        library = "LIB_echo.so"
        domain = "service"
        bind = ["/echo"]
        "#,
    );
    let seen = |view: &str| serde_json::from_str::<serde_json::Value>(view).expect("JSON");
    let domain = loop {
        let view = seen(&run.look(&["top", "--json"], "\"echo\""));
        match view["processes"][0]["os_process"].as_i64() {
            Some(number) => break rustix::process::Pid::from_raw(number as i32).expect("a number"),
            None => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    };
    rustix::process::kill_process(domain, rustix::process::Signal::STOP).expect("it lives");
    run.supervisor.kill().expect("it lives");
    run.supervisor.wait().expect("it ends");
    let lives = || {
        let path = format!("/proc/{}/stat", domain.as_raw_nonzero());
        // Until somebody has asked after it, it is a zombie.
        std::fs::read_to_string(path).is_ok_and(|stat| !stat.contains(") Z "))
    };
    let begin = std::time::Instant::now();
    while lives() {
        if begin.elapsed() > std::time::Duration::from_secs(20) {
            let _ = rustix::process::kill_process(domain, rustix::process::Signal::KILL);
            panic!("it outlives its host");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn the_status_says_how_it_went() {
    let good = "[processes.good]\nlibrary = \"LIB_odd.so\"\narguments = [\"return\"]";
    assert_eq!(Run::of(good).end().0, Some(0));
    let (code, log) = Run::of(&good.replace("return", "fail")).end();
    assert_eq!(code, Some(1));
    assert!(log.contains("as it was told"), "{log}");
    // What a process says is quoted: it cannot pass for another line, or do anything to a terminal.
    let (_, log) = Run::of(&good.replace("return", "shout")).end();
    let said = log
        .lines()
        .find(|line| line.contains("cause=Panic"))
        .expect(&log);
    assert!(said.contains("[2Jone") && said.contains("two"), "{log}");
    assert!(!log.contains('\u{1b}'), "{log}");
    let (_, log) = Run::of(&good.replace("return", "hook")).end();
    assert!(
        log.contains("cause=Panic") && !log.contains("destructor"),
        "{log}"
    );
    let (_, log) = Run::of(&good.replace("return", "memory")).end();
    assert!(log.contains("more than 1024 KiB (limits.memory)"), "{log}");
    let (code, log) = Run::of(&good.replace("_odd", "_hostile")).end();
    assert_eq!(code, Some(1));
    assert!(
        log.contains("processes.good") && log.contains("constructor"),
        "{log}"
    );
    let (code, log) = Run::of(&good.replace("arguments", "argumants")).end();
    assert_eq!(code, Some(1));
    assert!(log.contains("line 3") && log.contains("argumants"), "{log}");
}

#[test]
fn who_looks_where_nobody_serves_is_told_the_way_out() {
    let nowhere = std::env::temp_dir().join(format!("mullion-nobody-{}.sock", std::process::id()));
    for looks in ["top", "graph", "map"] {
        let mut asked = mullion();
        asked.arg(looks).arg("--status").arg(&nowhere);
        if looks == "top" {
            asked.arg("--once");
        }
        let asked = asked.output().expect("it runs");
        let said = String::from_utf8(asked.stderr).expect("text");
        assert_eq!(asked.status.code(), Some(1), "{looks}");
        for wanted in [
            &*nowhere.to_string_lossy(),
            "no `mullion sip run` answers",
            "--status",
        ] {
            assert!(said.contains(wanted), "{looks}: {said}");
        }
    }
}

#[test]
fn a_library_is_checked() {
    let check = |name: &str| {
        let asked = mullion().arg("check").arg(library(name)).output();
        asked.expect("it runs")
    };
    let taken = check("echo");
    let text = String::from_utf8(taken.stdout).expect("text");
    assert!(
        taken.status.success() && text.contains("name       echo"),
        "{text}"
    );
    let refused = check("hostile");
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stdout.is_empty());
}

/// What a page of the guides gives as the contents of a file.
fn file_of<'a>(page: &'a str, name: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("`{name}`:\n\n```")).expect(name);
    let (_, text) = rest.split_once('\n').expect("a block");
    text.split_once("```").expect("its end").0
}

/// docs/sip-running.md, "A first SIP of one's own": by the letter, and then behind a wall.
#[test]
fn the_first_sip_of_the_guide_is_built_and_run() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let page = std::fs::read_to_string(format!("{root}/docs/sip-running.md")).expect("there");
    // Always the same directory: there cargo finds what the SIP depends on as it has built it before.
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("first-sip");
    std::fs::create_dir_all(directory.join("src")).expect("made");
    for name in ["Cargo.toml", "src/lib.rs"] {
        let text = file_of(&page, name).replace("MULLION", root);
        std::fs::write(directory.join(name), text).expect("written");
    }
    let lock = format!("{root}/examples/sip/Cargo.lock");
    std::fs::copy(lock, directory.join("Cargo.lock")).expect("copied");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--offline"])
        .current_dir(&directory)
        .env("CARGO_TARGET_DIR", directory.join("target"))
        .status();
    assert!(built.expect("cargo runs").success());
    let library = directory.join("target/release/libcounter.so");
    let checked = mullion().arg("check").arg(&library).output();
    assert!(checked.expect("it runs").status.success());
    let here = file_of(&page, "sips.toml").replace("target/release", "LIBRARIES");
    let here = here.replace(
        "LIBRARIES",
        &library.parent().expect("one").to_string_lossy(),
    );
    for (from, to) in [("", ""), ("kind = \"same\"", "kind = \"process\"")] {
        let mut run = Run::of(&here.replacen(from, to, 1));
        run.said("ended process=\"asker\" cause=Returned");
        run.terminate();
        let (code, log) = run.end();
        assert_eq!(code, Some(143), "{log}");
        assert!(log.lines().any(|line| line == "55"), "{log}");
    }
}
