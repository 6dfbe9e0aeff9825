//! The web server of `examples/sip`: four processes, asked by clients as there are, and by worse ones.

#[path = "../../process/sip-host/tests/built/mod.rs"]
mod built;
#[path = "../../../examples/sip/web-parser/src/request.rs"]
mod request;
#[allow(dead_code, reason = "others use more of it")]
mod sips;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Instant;

use proptest::prelude::*;
use request::{Parsed, parse};
use sips::{Run, example};

/// The server with files of its own, on a port that was free; its parser panics at the path `fatal`.
fn server(change: impl Fn(String) -> String) -> (Run, SocketAddr) {
    let directory = tempfile::tempdir().expect("a directory");
    let site = directory.path().join("site");
    std::fs::create_dir_all(site.join("sub dir")).expect("made");
    for (path, bytes) in [
        ("site/index.html", b"<p>index".to_vec()),
        ("site/sub dir/index.html", b"<p>sub".to_vec()),
        ("site/.hidden", b"hidden".to_vec()),
        ("site/empty.txt", vec![]),
        ("site/large.bin", large()),
        ("secret", b"secret".to_vec()),
    ] {
        std::fs::write(directory.path().join(path), bytes).expect("written");
    }
    std::os::unix::fs::symlink("../secret", site.join("link")).expect("made");
    let parser = "bind = [\"/web/parser\"]";
    let text = example("web")
        .replace("127.0.0.1:8080", "127.0.0.1:0")
        .replace(parser, &format!("{parser}\narguments = [\"fatal\"]"));
    let mut run = Run::within(directory, &change(text));
    let line = run.said("serves service=\"web\"");
    let address = line.rsplit("listen=").next().expect("an address");
    let address = address.parse().expect("an address");
    (run, address)
}

/// More than the pieces in which files are read, and no multiple of them.
fn large() -> Vec<u8> {
    (0..300_001u32).map(|number| (number / 7) as u8).collect()
}

/// What comes until the connection is closed.
fn ask(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(request).expect("connected");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("no reset");
    answer
}

fn get(address: SocketAddr, path: &str) -> (u16, Vec<u8>) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    let answer = ask(address, request.as_bytes());
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, body) = answer.split_at(end.expect("a head") + 4);
    let length = format!("Content-Length: {}\r\n", body.len());
    assert!(String::from_utf8_lossy(head).contains(&length), "{path}");
    (status(head), body.to_vec())
}

fn status(answer: &[u8]) -> u16 {
    let text = String::from_utf8_lossy(answer);
    let number = text
        .strip_prefix("HTTP/1.1 ")
        .and_then(|text| text.get(..3));
    number.and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[test]
fn files_are_served() {
    let (run, address) = server(|text| text);
    let text = |text: &str| (200, text.as_bytes().to_vec());
    assert_eq!(get(address, "/"), text("<p>index"));
    assert_eq!(get(address, "/index.html?x=1"), text("<p>index"));
    assert_eq!(get(address, "/sub%20dir/"), text("<p>sub"));
    assert_eq!(get(address, "/empty.txt"), text(""));
    assert_eq!(get(address, "http://anybody/"), text("<p>index"));
    // From the disk, and from the cache.
    assert_eq!(get(address, "/large.bin"), (200, large()));
    assert_eq!(get(address, "/large.bin"), (200, large()));
    for none in ["/none", "/sub%20dir", "/.hidden", "/link", "/index.html/"] {
        assert_eq!(get(address, none).0, 404, "{none}");
    }
    // Three requests on one connection, sent at once; the last one closes it.
    let one = "HEAD / HTTP/1.1\r\nHost: test\r\n\r\n";
    let last = "GET / HTTP/1.0\r\n\r\n";
    let answer = ask(address, format!("{one}{one}{last}").as_bytes());
    let answer = String::from_utf8(answer).expect("text");
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 3, "{answer}");
    assert_eq!(answer.matches("<p>index").count(), 1, "{answer}");
    // A file that changes is seen within moments.
    std::fs::write(run.directory().join("site/index.html"), "<p>new").expect("written");
    while get(address, "/") != text("<p>new") {}
}

#[test]
fn curl_gets_what_the_browser_gets() {
    let (_run, address) = server(|text| text);
    let curl = Command::new("curl")
        .args(["--silent", "--fail", "--include"])
        .arg(format!("http://{address}/large.bin"))
        .arg(format!("http://{address}/"))
        .output();
    let Ok(output) = curl else {
        assert!(std::env::var_os("MULLION_NEED_CURL").is_none(), "no curl");
        println!("not run: curl is not installed");
        return;
    };
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.ends_with(b"<p>index"));
    let whole = large();
    assert!(output.stdout.windows(whole.len()).any(|part| part == whole));
}

#[test]
fn hostile_requests_are_refused_and_the_next_is_served() {
    let (_run, address) = server(|text| text);
    let long = "x".repeat(9000);
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
    let with = |field: &str| format!("GET / HTTP/1.1\r\nHost: x\r\n{field}\r\n\r\n");
    for (request, wanted) in [
        (get("/../secret"), 400),
        (get("/sub%20dir/../../secret"), 400),
        (get("/%2e%2e/secret"), 400),
        (get("/%2E./secret"), 400),
        (get("/..%2fsecret"), 400),
        (get("/.%00./secret"), 400),
        (get("/..\\secret"), 400),
        (get("//etc/passwd"), 400),
        (get("/%"), 400),
        (get("/%ff"), 400),
        (get("secret"), 400),
        (get("*"), 400),
        (get(&format!("/{}", "y".repeat(2000))), 414),
        (with(&format!("X: {long}")), 431),
        (long.clone(), 431),
        (with("Content-Length: 5"), 413),
        (with("Transfer-Encoding: chunked"), 501),
        (with("Host: y"), 400),
        (with(" folded: x"), 400),
        (with("Host : y"), 400),
        (with("X: a\rb"), 400),
        (with("X: a\nb"), 400),
        (with("no colon"), 400),
        ("GET / HTTP/1.1\r\n\r\n".into(), 400),
        ("GET / HTTP/2.0\r\nHost: x\r\n\r\n".into(), 505),
        ("GET  / HTTP/1.1\r\nHost: x\r\n\r\n".into(), 400),
        ("POST / HTTP/1.1\r\nHost: x\r\n\r\n".into(), 405),
        ("\0\u{1}\u{2}garbage\r\n\r\n".into(), 400),
        ("\u{16}\u{3}\u{1}TLS\r\n\r\n".into(), 400),
        ("\r\n\r\n".into(), 400),
    ] {
        let shown = request.escape_debug().to_string();
        let shown = &shown[..shown.len().min(80)];
        // Their words are the last: the server closes, or has nothing more to answer.
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("connected");
        stream.shutdown(std::net::Shutdown::Write).expect("open");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("no reset");
        assert_eq!(status(&answer), wanted, "{shown}");
        assert!(!answer.windows(6).any(|part| part == b"secret"), "{shown}");
    }
    assert_eq!(self::get(address, "/").0, 200);
}

/// As many as there are places but one keep them with the beginning of a request; the last place serves the others.
#[test]
fn slow_clients_are_told_and_keep_nobody_waiting() {
    let (_run, address) = server(|text| text);
    let begun = Instant::now();
    let mut slow: Vec<TcpStream> = (0..15)
        .map(|_| {
            let mut stream = TcpStream::connect(address).expect("it listens");
            stream
                .write_all(b"GET / HTTP/1.1\r\nHo")
                .expect("connected");
            stream
        })
        .collect();
    for _ in 0..50 {
        assert_eq!(get(address, "/large.bin").0, 200);
    }
    for stream in &mut slow {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("no reset");
        assert_eq!(status(&answer), 408);
    }
    // Not before the server's five seconds.
    assert!(begun.elapsed().as_secs() >= 4);
    assert_eq!(get(address, "/").0, 200);
}

#[test]
fn a_parser_that_dies_is_another_one_soon() {
    let (mut run, address) = server(|text| text);
    assert_eq!(get(address, "/").0, 200);
    for _ in 0..3 {
        // It ends two parsers, and is not given to a third.
        assert_eq!(get(address, "/fatal").0, 500);
        assert_eq!(get(address, "/").0, 200);
    }
    let line = run.said("ended process=\"parser\"");
    assert!(
        line.contains("Panic") && line.contains("a bug in the parser"),
        "{line}"
    );
    // Two for each request, or one: who serves it may have had a channel to a parser that has gone, and that was one try.
    assert!((3..=6).contains(&parser(&run)["restarts"].as_u64().expect("a number")));
    run.terminate();
    let (status, log) = run.end();
    assert_eq!(status, Some(143));
    assert!(log.matches("a bug in the parser").count() >= 3, "{log}");
}

/// As `top` has it.
fn parser(run: &Run) -> serde_json::Value {
    let top = run.look(&["top", "--json"], "parser");
    let view: serde_json::Value = serde_json::from_str(&top).expect("JSON");
    let processes = view["processes"].as_array().expect("a list");
    let parser = processes.iter().find(|process| process["name"] == "parser");
    parser.expect("it is there").clone()
}

/// The domains of the configuration, and the one that holds everybody else.
const WALLS: [&str; 3] = ["[domains.untrusted]", "[domains.files]", "[domains.main]"];

/// Moves a domain into an OS process: one line is another.
fn walled(text: &str, domain: &str) -> String {
    let same = format!("{domain}\nkind = \"same\"");
    assert!(text.contains(&same), "{same} in {text}");
    text.replace(&same, &same.replace("same", "process"))
}

#[test]
fn one_line_moves_processes_behind_a_wall() {
    let main = |text: String| format!("{text}\n[domains.main]\nkind = \"same\"\n");
    for moved in [&WALLS[..1], &WALLS[1..2], &WALLS[2..], &WALLS[..]] {
        let all = |text| {
            moved
                .iter()
                .fold(main(text), |text, domain| walled(&text, domain))
        };
        let (run, address) = server(all);
        assert_eq!(get(address, "/"), (200, b"<p>index".to_vec()), "{moved:?}");
        for _ in 0..3 {
            assert_eq!(get(address, "/large.bin"), (200, large()), "{moved:?}");
        }
        assert_eq!(get(address, "/link").0, 404, "{moved:?}");
        assert_eq!(get(address, "/%2e%2e/secret").0, 400, "{moved:?}");
        assert_eq!(get(address, "/fatal").0, 500, "{moved:?}");
        assert_eq!(get(address, "/").0, 200, "{moved:?}");
        run.terminate();
        assert_eq!(run.end().0, Some(143));
    }
}

/// SIGKILL, from outside: the same to the others as a panic.
#[test]
fn a_parser_behind_a_wall_is_killed_and_another_one_soon() {
    let (run, address) = server(|text| walled(&text, WALLS[0]));
    let mut before = 0;
    for restarts in 1..4 {
        assert_eq!(get(address, "/").0, 200);
        let pid = loop {
            let pid = parser(&run)["os_process"].as_i64();
            match pid {
                Some(pid) if pid != before => break pid,
                _ => continue,
            }
        };
        before = pid;
        let number = rustix::process::Pid::from_raw(pid as i32).expect("a number");
        rustix::process::kill_process(number, rustix::process::Signal::KILL).expect("it lives");
        assert_eq!(get(address, "/").0, 200);
        run.look(&["top", "--json"], &format!("\"restarts\": {restarts}"));
    }
    run.terminate();
    let (_, log) = run.end();
    // The last one may have been ended so, too.
    assert!(log.matches("signal 9").count() >= 3, "{log}");
}

/// Bytes that look like requests, mostly.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let word = proptest::sample::select(vec![
        &b"GET "[..],
        &b"HEAD "[..],
        &b"/"[..],
        &b"a%2eb"[..],
        &b"%2e%2e/"[..],
        &b".."[..],
        &b" HTTP/1.1\r\n"[..],
        &b" HTTP/1.0\r\n"[..],
        &b"Host: x\r\n"[..],
        &b"Connection: close, x\r\n"[..],
        &b"\r\n"[..],
        &b":"[..],
        &b"\xff"[..],
    ]);
    let words = proptest::collection::vec(word, 0..12).prop_map(|words| words.concat());
    prop_oneof![words, proptest::collection::vec(any::<u8>(), 0..200)]
}

proptest! {
    /// No path leads out, and what has been understood is not understood otherwise when more comes.
    #[test]
    fn any_bytes_are_read(bytes in nearly(), more in nearly()) {
        let parsed = parse(&bytes);
        if let Parsed::Request(request) = &parsed {
            prop_assert!(request.used <= bytes.len());
            let parts: Vec<&str> = request.path.split('/').collect();
            prop_assert!(!parts.contains(&"..") && !parts.contains(&"."));
            prop_assert!(!request.path.starts_with('/'));
        }
        let whole = parse(&[&bytes[..], &more[..]].concat());
        prop_assert!(parsed == Parsed::More || parsed == whole);
    }
}
