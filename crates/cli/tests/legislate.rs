//! `mullion legislate`: what its server answers to whom, and the page in a real browser, by the keyboard alone.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);

fn types() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/elastic/types")
}

/// A server that ends with its test.
struct Served {
    server: Child,
    /// `127.0.0.1:PORT`, and the path with its secret.
    host: String,
    path: String,
    directory: tempfile::TempDir,
}

impl Served {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut server = Command::new(env!("CARGO_BIN_EXE_mullion"))
            .arg("legislate")
            .args(
                [
                    "student.toml",
                    "staff.toml",
                    "monitor.toml",
                    "monitor-rust.toml",
                ]
                .map(|name| types().join(name)),
            )
            .arg("--output")
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut line = String::new();
        let said = server.stdout.take().expect("a pipe");
        BufReader::new(said).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("http://").expect(&line);
        let (host, path) = address.split_once('/').expect("a path");
        Served {
            host: host.to_owned(),
            path: format!("/{path}"),
            server,
            directory,
        }
    }

    fn url(&self) -> String {
        format!("http://{}{}", self.host, self.path)
    }

    /// Status and body.
    fn request(&self, head: &str, host: &str, body: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.host).expect("it listens");
        let length = body.len();
        write!(
            stream,
            "{head} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        )
        .expect("sent");
        // The server may answer before it has read everything.
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).expect("text");
        let status = answer.split(' ').nth(1).expect("a status").parse();
        let body = answer.split_once("\r\n\r\n").expect("a body").1;
        (status.expect("a number"), body.to_owned())
    }

    fn ask(&self, what: &str, question: &Value) -> (u16, Value) {
        let head = format!("POST {}{what}", self.path);
        let (status, body) = self.request(&head, &self.host, question.to_string().as_bytes());
        (status, serde_json::from_str(&body).expect("JSON"))
    }

    fn draft(&self, id: &str) -> Value {
        let (_, start) = self.ask("start", &json!({}));
        let types = start["types"].as_array().expect("types");
        let found = types.iter().find(|draft| draft["id"] == id);
        found.expect(id).clone()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.server.kill().expect("it lived");
        self.server.wait().expect("it ended");
    }
}

#[test]
fn only_who_was_told_the_address_is_answered() {
    let office = Served::new();
    let page = format!("GET {}", office.path);
    let (status, body) = office.request(&page, &office.host, b"");
    assert!(
        status == 200 && body.contains("What may this code say?"),
        "{body}"
    );
    let (_, port) = office.host.split_once(':').expect("a port");
    let guessed = format!("GET /{}/", "0".repeat(32));
    for (head, host) in [
        ("GET /", &office.host[..]),
        (&guessed, &office.host),
        (&page, "localhost"),
        (&page, &format!("evil.example:{port}")),
        (&format!("GET {}page.py", office.path), &office.host),
        (&format!("POST {}run", office.path), &office.host),
        (&format!("PUT {}save", office.path), &office.host),
    ] {
        assert_eq!(office.request(head, host, b"").0, 404, "{head} {host}");
    }
}

#[test]
fn a_sample_is_held_against_the_type() {
    let office = Served::new();
    let sample = "int main(void)\n{\n    while (1)\n        ;\n}\n";
    let question = |id: &str| json!({ "draft": office.draft(id), "sample": sample });
    let (_, said) = office.ask("look", &question("student"));
    let refusal = &said["refusals"][0];
    assert_eq!(
        (
            &refusal["rule"],
            &refusal["line"],
            &refusal["column"],
            &refusal["by"]
        ),
        (&json!("loops"), &json!(3), &json!(5), &json!("student")),
        "{said}"
    );
    let (_, said) = office.ask("look", &question("staff"));
    assert_eq!(said["refusals"], json!([]), "{said}");
    let (_, said) = office.ask("look", &question("new-type"));
    assert_eq!(said["refusals"], json!([]), "{said}");
    // Of Rust, by rustc.
    let sample = "pub fn f() -> u32 {\n    loop {}\n}\n";
    let mut draft = office.draft("new-type-rust");
    let (_, said) = office.ask("look", &json!({ "draft": draft, "sample": sample }));
    if said["unjudged"]
        .as_str()
        .is_some_and(|why| why.contains("rustup"))
    {
        assert!(
            std::env::var_os("MULLION_REQUIRE_RUSTC_DEV").is_none(),
            "{said}"
        );
        eprintln!("not tested: samples of Rust: {said}");
        return;
    }
    assert_eq!(said["refusals"], json!([]), "{said}");
    assert!(said["rules"].to_string().contains("own-traits"), "{said}");
    draft["elastic"]["forbid"] = json!(["loops"]);
    let (_, said) = office.ask("look", &json!({ "draft": draft, "sample": sample }));
    let refusal = &said["refusals"][0];
    assert_eq!(
        (&refusal["rule"], &refusal["line"], &refusal["column"]),
        (&json!("loops"), &json!(2), &json!(5)),
        "{said}"
    );
}

#[test]
fn what_is_no_type_is_told_and_not_saved() {
    let office = Served::new();
    let mut draft = office.draft("student");
    draft["elastic"]["locked"] = json!(["struct packet.source"]);
    draft["elastic"]["memory"] = json!("wall");
    let (status, said) = office.ask("look", &json!({ "draft": draft }));
    let problem = said["problem"].as_str().expect("a problem");
    assert!(
        status == 200 && problem.contains("memory is not checked"),
        "{problem}"
    );
    for id in ["../escaped", "a/b", "", ".hidden"] {
        let mut draft = office.draft("student");
        draft["id"] = json!(id);
        let (status, said) = office.ask("save", &json!({ "draft": draft, "replace": true }));
        assert_eq!(status, 400, "{id}: {said}");
    }
    let mut draft = office.draft("student");
    draft["users"] = json!(["alice"]);
    assert_eq!(office.ask("look", &json!({ "draft": draft })).0, 400);
    let long = json!({ "draft": office.draft("student"), "sample": "x".repeat((1 << 20) + 1) });
    assert_eq!(office.ask("look", &long).0, 400);
    let left = std::fs::read_dir(office.directory.path())
        .expect("there")
        .count();
    assert_eq!(left, 0);
    let parent = office.directory.path().parent().expect("one");
    assert!(!parent.join("escaped.toml").exists());
}

#[test]
fn a_file_is_replaced_only_on_demand() {
    let office = Served::new();
    let question =
        |replace: bool| json!({ "draft": office.draft("oke-monitor"), "replace": replace });
    let (_, said) = office.ask("save", &question(false));
    let path = office
        .directory
        .path()
        .canonicalize()
        .expect("there")
        .join("oke-monitor.toml");
    assert_eq!(said["path"], json!(path), "{said}");
    let checked = Command::new(env!("CARGO_BIN_EXE_mullion"))
        .args(["type", "check"])
        .arg(&path)
        .output()
        .expect("it runs");
    let text = String::from_utf8(checked.stdout).expect("text");
    assert!(
        text.contains(said["digest"].as_str().expect("a digest")),
        "{text}"
    );
    // The environment is found from the other directory too.
    let judged = Command::new(env!("CARGO_BIN_EXE_mullion"))
        .args(["compile", "--check", "--type"])
        .arg(&path)
        .arg(types().join("../monitor.c"))
        .output()
        .expect("it runs");
    assert!(
        judged.status.success(),
        "{}",
        String::from_utf8_lossy(&judged.stderr)
    );
    assert_eq!(
        office.ask("save", &question(false)).1,
        json!({ "exists": path })
    );
    assert_eq!(office.ask("save", &question(true)).1, said);
}

/// A browser without a window, spoken to by its debugging pipe.
struct Browser {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    number: u64,
    session: Option<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// `None` where there is none.
    fn new() -> Option<Self> {
        let profile = tempfile::tempdir().expect("a directory");
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let path = std::env::var_os("PATH").unwrap_or_default();
        let name = names.into_iter().find(|name| {
            std::env::split_paths(&path).any(|directory| directory.join(name).exists())
        })?;
        // The pipe's ends are 3 and 4.
        let mut process = Command::new("sh")
            .args([
                "-c",
                "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1",
                "sh",
                name,
            ])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--remote-debugging-pipe",
                "--window-size=1400,1500",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .env("HOME", profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        Some(Browser {
            to: process.stdin.take().expect("a pipe"),
            from: BufReader::new(process.stdout.take().expect("a pipe")),
            process,
            number: 0,
            session: None,
            _profile: profile,
        })
    }

    fn command(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to
            .write_all(message.to_string().as_bytes())
            .expect("sent");
        self.to.write_all(b"\0").expect("sent");
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).expect("read");
            assert_eq!(bytes.pop(), Some(0), "the browser has ended");
            let said: Value = serde_json::from_slice(&bytes).expect("JSON");
            if said["id"] == json!(self.number) {
                assert!(said["error"].is_null(), "{method}: {said}");
                return said["result"].clone();
            }
        }
    }

    fn open(&mut self, url: &str) {
        let target = self.command("Target.createTarget", json!({ "url": url }));
        let wanted = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = self.command("Target.attachToTarget", wanted);
        self.session = attached["sessionId"].as_str().map(str::to_owned);
    }

    /// The value of an expression.
    fn value(&mut self, expression: &str) -> Value {
        let wanted = json!({ "expression": expression, "returnByValue": true });
        let said = self.command("Runtime.evaluate", wanted);
        assert!(said["exceptionDetails"].is_null(), "{expression}: {said}");
        said["result"]["value"].clone()
    }

    fn until(&mut self, expression: &str) {
        let end = Instant::now() + PATIENCE;
        while self.value(expression) != json!(true) {
            assert!(
                Instant::now() < end,
                "{expression}: {}",
                self.value("document.body.innerText")
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn key(&mut self, name: &str, code: u32, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({
                "type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code,
            });
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.command("Input.dispatchKeyEvent", event);
        }
    }

    /// Goes on by the tabulator until that holds of the element.
    fn tab_to(&mut self, condition: &str) {
        for _ in 0..200 {
            if self.value(&format!("(e => {condition})(document.activeElement)")) == json!(true) {
                return;
            }
            self.key("Tab", 9, "");
        }
        panic!("no way by the keyboard to {condition}");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session = None;
        let _ended = self.process.kill();
        let _status = self.process.wait();
    }
}

/// By `MULLION_PICTURE=FILE` whoever wants gets a picture of the page.
#[test]
fn a_type_is_made_in_a_browser_without_a_mouse() {
    let Some(mut browser) = Browser::new() else {
        eprintln!("not tested: there is no Chromium (Debian package chromium)");
        return;
    };
    let office = Served::new();
    browser.open(&office.url());
    browser.until("document.body?.dataset.asked === '1'");
    assert_eq!(
        browser.value("document.getElementById('id').value"),
        json!("student")
    );
    // Each rule that can be taken has its reason and its cost beside it, in sight.
    let told = "[...document.querySelectorAll('#rules .rule:not([hidden])')].map(e => \
                [e.querySelector('label').innerText, e.querySelector('small').innerText, e.querySelector('small').checkVisibility()])";
    let rules = browser.value(told);
    let rules = rules.as_array().expect("rules");
    assert!(rules.len() > 15, "{rules:?}");
    for rule in rules {
        let text = rule[1].as_str().expect("text");
        let (reason, cost) = text.split_once(". Costs ").expect(text);
        assert!(
            reason.len() > 10 && cost.len() > 5 && rule[2] == json!(true),
            "{rule}"
        );
    }
    // Nothing came from elsewhere.
    let origins = "[...new Set(performance.getEntriesByType('resource').map(e => new URL(e.name).origin))].join()";
    assert_eq!(
        browser.value(origins),
        json!(format!("http://{}", office.host))
    );
    // Another base by its first letters.
    browser.tab_to("e.id === 'base'");
    for letter in ["o", "k"] {
        browser.key(
            letter,
            u32::from(letter.as_bytes()[0].to_ascii_uppercase()),
            letter,
        );
    }
    browser.until("document.getElementById('id').value === 'oke-monitor'");
    browser.until(
        "document.getElementById('worst').textContent.includes('cannot look at `address_t`')",
    );
    browser.tab_to("e.id === 'base'");
    browser.key("ArrowUp", 38, "");
    browser.until("document.getElementById('id').value === 'staff'");
    // A rule is chosen, and what it brings along is ticked too.
    browser.tab_to("e.id === 'rule-loops'");
    browser.key(" ", 32, " ");
    browser.until("document.getElementById('rule-backward-goto').disabled");
    browser.until("document.getElementById('rule-backward-goto').checked");
    browser.tab_to("e.id === 'sample'");
    let sample =
        "int main(void)\n{\n    for (int i = 0; i < 3; i++)\n        ;\n    return 0;\n}\n";
    browser.command("Input.insertText", json!({ "text": sample }));
    browser.until("document.getElementById('verdict').textContent === '1 refused'");
    // The refusal leads to its place.
    browser.tab_to("e.textContent === 'line 3, column 5'");
    browser.key("Enter", 13, "\r");
    let chosen =
        "(e => e.value.substring(e.selectionStart, e.selectionEnd))(document.activeElement)";
    assert_eq!(browser.value(chosen), json!("for"));
    // One that is dropped is judged too.
    let dropped = "(() => { const data = new DataTransfer(); data.items.add(new File(['int main(void) { while (1) ; }'], 'a.c')); \
                   document.getElementById('sample').dispatchEvent(new DragEvent('drop', { dataTransfer: data, cancelable: true, bubbles: true })); })()";
    browser.value(dropped);
    browser.until("document.getElementById('refusals').innerText.startsWith('line 1, column 18')");
    // Compared with another type, and saved.
    browser.tab_to("e.id === 'other'");
    for letter in ["s", "t", "u"] {
        browser.key(
            letter,
            u32::from(letter.as_bytes()[0].to_ascii_uppercase()),
            letter,
        );
    }
    browser.until("document.getElementById('difference').innerText.includes('limits.time')");
    if let Some(path) = std::env::var_os("MULLION_PICTURE") {
        browser.value("scrollTo(0, 0)");
        let bits = browser.command("Page.captureScreenshot", json!({ "format": "png" }));
        let bits = bits["data"].as_str().expect("a picture");
        let bits = data_encoding::BASE64.decode(bits.as_bytes()).expect("bits");
        std::fs::write(path, bits).expect("written");
    }
    browser.tab_to("e.id === 'save'");
    browser.key("Enter", 13, "\r");
    browser.until("document.getElementById('saved').textContent.includes('was written')");
    let said = browser.value("document.getElementById('saved').textContent");
    let path = office.directory.path().join("staff.toml");
    let checked = Command::new(env!("CARGO_BIN_EXE_mullion"))
        .args(["type", "check"])
        .arg(&path)
        .output()
        .expect("it runs");
    let text = String::from_utf8(checked.stdout).expect("text");
    let digest = text.split('\t').nth(1).expect("a digest");
    assert!(
        said.as_str().expect("text").contains(digest),
        "{said} {text}"
    );
    let text = std::fs::read_to_string(&path).expect("a file");
    assert!(
        text.contains("\"loops\"") && text.contains("\"integer-to-pointer\""),
        "{text}"
    );
}

/// By `MULLION_PICTURE_OF_RUST=FILE` whoever wants gets a picture of the page.
#[test]
fn a_type_of_rust_is_made_in_a_browser() {
    let Some(mut browser) = Browser::new() else {
        eprintln!("not tested: there is no Chromium (Debian package chromium)");
        return;
    };
    let office = Served::new();
    browser.open(&office.url());
    browser.until("document.body?.dataset.asked === '1'");
    browser.tab_to("e.id === 'base'");
    for id in ["staff", "oke-monitor", "oke-monitor-rust"] {
        browser.key("ArrowDown", 40, "");
        browser.until(&format!("document.getElementById('id').value === '{id}'"));
    }
    // The fields and rules are those of Rust.
    let shown = |id: &str| format!("document.getElementById('{id}').checkVisibility()");
    for (id, wanted) in [
        ("authors", true),
        ("rule-panics", true),
        ("rule-closures", true),
        ("memory", false),
        ("rule-goto", false),
    ] {
        assert_eq!(browser.value(&shown(id)), json!(wanted), "{id}");
    }
    browser
        .until("document.getElementById('worst').textContent.includes('what safe Rust reaches')");
    // What untrusted authors bring along cannot be taken out, and goes with them.
    browser.until("document.getElementById('rule-own-traits').disabled");
    browser.tab_to("e.id === 'authors'");
    browser.key("ArrowDown", 40, "");
    browser.until("!document.getElementById('rule-own-traits').disabled");
    browser.key("ArrowUp", 38, "");
    browser.until("document.getElementById('rule-own-traits').disabled");
    browser.tab_to("e.id === 'sample'");
    let sample = "use environment::{Packet, Report};\n\npub fn OKE_monitor_handle_packet(packet: &Packet) {\n    \
                  for byte in packet.behind {\n        assert!(byte != 0);\n    }\n}\n\n\
                  pub fn OKE_monitor_report(report: &mut Report) {\n    report.packets = 1;\n}\n";
    browser.command("Input.insertText", json!({ "text": sample }));
    browser.until("/refused$|rustup/.test(document.getElementById('verdict').textContent)");
    let verdict = browser.value("document.getElementById('verdict').textContent");
    if verdict.as_str().is_some_and(|said| said.contains("rustup")) {
        eprintln!("not tested: {verdict}");
        return;
    }
    let said = browser.value("document.getElementById('refusals').innerText");
    let said = said.as_str().expect("text");
    assert!(
        said.contains("line 4, column") && said.contains("loops"),
        "{said}"
    );
    assert!(
        said.contains("line 5, column") && said.contains("panics"),
        "{said}"
    );
    if let Some(path) = std::env::var_os("MULLION_PICTURE_OF_RUST") {
        browser.value("scrollTo(0, 0)");
        let bits = browser.command("Page.captureScreenshot", json!({ "format": "png" }));
        let bits = bits["data"].as_str().expect("a picture");
        let bits = data_encoding::BASE64.decode(bits.as_bytes()).expect("bits");
        std::fs::write(path, bits).expect("written");
    }
    browser.tab_to("e.id === 'save'");
    browser.key("Enter", 13, "\r");
    browser.until("document.getElementById('saved').textContent.includes('was written')");
    let path = office.directory.path().join("oke-monitor-rust.toml");
    let checked = Command::new(env!("CARGO_BIN_EXE_mullion"))
        .args(["compile", "--check", "--type"])
        .arg(&path)
        .arg(types().join("../monitor.rs"))
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{said}");
}
