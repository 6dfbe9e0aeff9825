//! `mullion top`: what it shows of a server, what it refuses, and how it ends.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};

const HEAD: &str = "module calls asked faults microseconds state";

fn top(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mullion"));
    let output = command.arg("top").args(arguments).output();
    output.expect("the command runs")
}

/// Answers each request for the path; how many are answered before the server ends.
fn answer(mut stream: impl Read + Write, text: &str) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let text = match head.starts_with("GET /status HTTP/1.0\r\n") {
        true => text,
        false => "HTTP/1.1 404 Not Found\r\n\r\n",
    };
    let _gone = stream.write_all(text.as_bytes());
}

/// A server on loopback that gives each request what the function makes of its number.
fn server(make: impl Fn(u64) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        let count = AtomicU64::new(0);
        for stream in listener.incoming().flatten() {
            answer(stream, &make(count.fetch_add(1, Ordering::Relaxed)));
        }
    });
    format!("http://127.0.0.1:{port}/status")
}

fn page(process: Option<u64>, rows: &str) -> String {
    let process = process.map_or(String::new(), |process| {
        format!("X-Mullion-Process: {process}\r\n")
    });
    format!("HTTP/1.1 200 OK\r\n{process}Content-Type: text/plain\r\n\r\n{HEAD}\n{rows}")
}

fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn said(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr.clone()).expect("text")
}

#[test]
fn figures_of_several_processes_are_summed() {
    let url = server(|count| {
        let rows = match count % 2 {
            0 => "alias_module 10 4 0 500 runs\nlua_module 2 9 1 3000 stopped\n",
            _ => "alias_module 5 1 2 100 runs\nlua_module 1 1 0 10 runs\n",
        };
        page(Some(100 + count % 2), rows)
    });
    let view = json(&top(&[&url, "--json"]));
    assert_eq!(view["processes"], serde_json::json!([100, 101]));
    let lua = &view["modules"][0];
    assert_eq!(lua["module"], "lua_module");
    assert_eq!(lua["microseconds"], 3010);
    assert_eq!(lua["state"], "stopped");
    let alias = &view["modules"][1];
    let figures = ["calls", "asked", "refusals"].map(|name| alias[name].as_u64());
    assert_eq!(figures, [Some(15), Some(5), Some(2)]);
    assert!(alias.get("calls_per_second").is_none());
}

#[test]
fn a_table_is_sorted_as_it_is_asked_for() {
    let rows = "first_module 1 0 7 900 runs\nsecond_module 5 0 0 100 runs\n";
    let url = server(move |_| page(Some(7), rows));
    let first = |order: &str| {
        let output = top(&[&url, "--once", "--sort", order]);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(text.starts_with("2 modules, 1 processes   6 calls, 0 asked, 7 refusals\n"));
        let line = text.lines().nth(3).expect("a row").to_owned();
        line.split(' ').next().expect("a name").to_owned()
    };
    assert_eq!(first("time"), "first_module");
    assert_eq!(first("calls"), "second_module");
    assert_eq!(first("refusals"), "first_module");
    assert_eq!(first("name"), "first_module");
}

#[test]
fn two_views_give_rates_of_the_processes_that_answered_both() {
    let url = server(|count| {
        page(
            Some(7),
            &format!("a_module {} 0 {count} 1 runs\n", 1000 * count),
        )
    });
    let view = json(&top(&[&url, "--json", "--every", "10ms", "--asks", "1"]));
    let row = &view["modules"][0];
    let calls = row["calls_per_second"].as_f64().expect("a rate");
    let refusals = row["refusals_per_second"].as_f64().expect("a rate");
    assert!(
        calls > 0.0 && (calls / refusals - 1000.0).abs() < 0.001,
        "{row}"
    );
}

#[test]
fn a_server_may_be_asked_over_a_unix_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("status.sock");
    let listener = UnixListener::bind(&file).expect("a socket");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream, &page(None, "a_module 1 2 3 4 runs\n"));
        }
    });
    let file = file.to_str().expect("text");
    let view = json(&top(&["http://name/status", "--unix", file, "--json"]));
    assert_eq!(view["modules"][0]["refusals"], 3);
    assert_eq!(view["processes"], serde_json::json!([]));
}

#[test]
fn what_is_no_such_page_is_refused_with_the_reason() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = closed.local_addr().expect("an address").port();
    drop(closed);
    let text = said(&top(&[
        &format!("http://127.0.0.1:{port}/status"),
        "--once",
    ]));
    assert!(text.contains("no server answers at 127.0.0.1:"), "{text}");
    let text = said(&top(&["--unix", "/nowhere/at/all", "--once"]));
    assert!(
        text.contains("no server answers at /nowhere/at/all"),
        "{text}"
    );
    let text = said(&top(&["http://192.0.2.1/status", "--once"]));
    assert!(
        text.contains("192.0.2.1:80 is not on this machine"),
        "{text}"
    );
    let text = said(&top(&["https://localhost/status", "--once"]));
    assert!(text.contains("is no page of HTTP"), "{text}");
    let url = server(|_| page(Some(7), ""));
    let other = url.replace("/status", "/other");
    let text = said(&top(&[&other, "--once"]));
    assert!(text.contains("404 Not Found"), "{text}");
    for (answer, words) in [
        (
            "HTTP/1.1 200 OK\r\n\r\n<html>",
            "no page of SetHandler mullion-status",
        ),
        ("220 ready\r\n", "does not speak HTTP"),
    ] {
        let url = server(move |_| answer.to_owned());
        let text = said(&top(&[&url, "--once"]));
        assert!(text.contains(words), "{text}");
    }
    for row in [
        "a_module 1 2 3 runs",
        "a_module 1 2 3 x runs",
        "a_module 1 2 3 -4 runs",
    ] {
        let url = server(move |_| page(Some(7), &format!("{row}\n")));
        let text = said(&top(&[&url, "--once"]));
        assert!(text.contains(row), "{text}");
    }
}

#[test]
fn names_from_a_server_do_not_reach_the_terminal_as_they_are() {
    let url = server(|_| page(Some(7), "a\x1b[2Jmodule 1 2 3 4 runs\n"));
    let text = said(&top(&[&url, "--once"]));
    assert!(!text.contains('\x1b'), "{text:?}");
    assert!(
        text.contains("a name has characters that no module's has"),
        "{text}"
    );
}

#[test]
fn a_wrong_command_line_is_status_2() {
    for arguments in [["--every", "soon"], ["--asks", "0"], ["--sort", "luck"]] {
        assert_eq!(top(&arguments).status.code(), Some(2), "{arguments:?}");
    }
}
