//! `tests/cases`: a file for each group of modules, with their configuration and requests. A stock server and one with the modules
//! behind the wall get the same requests, and must answer the same.
//!
//! ```text
//!   modules: session session_cookie          behind the wall
//!   stock: mime headers                      Debian's own in both servers
//!   needs: database                          the driver for SQLite, or the case is left out
//!   ignore: etag                             header fields that no two servers have the same
//!   differs: <date> <                        what stands between these two, in header fields and bodies
//!   unordered: <tag >                        words between these two stand in any order; alone: those of a header field
//!   backends: ajp fcgi                       servers of these protocols, at the ports {ajp} and {fcgi}
//!   said: a word                             both error logs have it, as often
//!   heard: a word                            a datagram begins with it, at the port {heard}
//!   config:
//!   Session On                               {root} and {port} are put in
//!   requests:
//!   GET /page.html
//!     Cookie: session=a                      a field; a line that begins with > is the body
//!     If: (<{lock-token}>)                   {port}, {lock-token} and {etag} are put in: the last ones that an answer had
//!     Digest: user:realm:word                the field that proves this password to the server
//!   echo a text                              a line to the port {echo}
//! ```

use crate::Place;
use crate::running::{self, Answer, Server};
use std::fs;
use std::io::Write;
use std::net::UdpSocket;
use std::process::{Command, Stdio};

#[derive(Default)]
struct Case {
    name: String,
    needs: bool,
    said: Vec<String>,
    heard: Option<String>,
    backends: Vec<String>,
    modules: Vec<String>,
    stock: Vec<String>,
    ignore: Vec<String>,
    differs: Vec<(String, String)>,
    unordered: Vec<(String, String)>,
    config: String,
    requests: Vec<Request>,
}

#[derive(Clone, Debug, Default)]
struct Request {
    line: String,
    fields: Vec<(String, String)>,
    body: String,
}

fn words(line: &str) -> Vec<String> {
    line.split_ascii_whitespace().map(str::to_owned).collect()
}

impl Case {
    fn parse(name: &str, text: &str) -> Case {
        let mut case = Case {
            name: name.to_owned(),
            ..Case::default()
        };
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        for line in lines.by_ref() {
            match line.split_once(':') {
                Some(("modules", rest)) => case.modules = words(rest),
                Some(("stock", rest)) => case.stock = words(rest),
                Some(("backends", rest)) => case.backends = words(rest),
                Some(("said", rest)) => case.said.push(rest.trim().to_owned()),
                Some(("heard", rest)) => case.heard = Some(rest.trim().to_owned()),
                Some(("needs", _)) => case.needs = true,
                Some(("ignore", rest)) => case.ignore = words(rest),
                Some((what @ ("differs" | "unordered"), rest)) => {
                    let rest = rest.trim();
                    let (begin, end) = rest.split_once(' ').unwrap_or((rest, ""));
                    let list = match what {
                        "differs" => &mut case.differs,
                        _ => &mut case.unordered,
                    };
                    list.push((begin.to_owned(), end.to_owned()));
                }
                Some(("config", _)) => break,
                _ => assert!(line.trim().is_empty(), "{name}: {line}"),
            }
        }
        for line in lines.by_ref() {
            if line == "requests:" {
                break;
            }
            case.config.push_str(line);
            case.config.push('\n');
        }
        for line in lines.filter(|line| !line.trim().is_empty()) {
            let Some(more) = line.strip_prefix("  ") else {
                let line = line.to_owned();
                case.requests.push(Request {
                    line,
                    ..Request::default()
                });
                continue;
            };
            let request = case.requests.last_mut().expect("a request");
            if let Some(body) = more.strip_prefix("> ") {
                request.body.push_str(body);
            } else if let Some((name, value)) = more.split_once(": ") {
                request.fields.push((name.to_owned(), value.to_owned()));
            }
        }
        case
    }

    fn lines(&self, place: &Place, walled: bool, ports: &[(String, u16)]) -> String {
        let mut lines: String = self.stock.iter().map(|name| place.stock(name)).collect();
        // In both, as `mod_info` lists it.
        lines.push_str(&place.wall());
        for name in &self.modules {
            lines.push_str(&match walled {
                true => place.walled(name),
                false => place.stock(name),
            });
        }
        let root = place.scratch.path().display().to_string();
        let mut config = self.config.replace("{root}", &root);
        for (kind, port) in ports {
            config = config.replace(&format!("{{{kind}}}"), &port.to_string());
        }
        lines + &config
    }

    /// Answers to all requests, each asked twice; the error log; how the server ended, unless it ended well.
    fn answers(
        &self,
        place: &Place,
        walled: bool,
    ) -> Option<(Vec<Answer>, String, Result<(), String>)> {
        // What the other server has stored is not found again.
        let _absent = fs::remove_dir_all(place.scratch.path().join("state"));
        let state = place.scratch.path().join("state");
        fs::create_dir_all(&state).expect("made");
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(&state, all).expect("ours");
        if !store(place) && self.needs {
            return None;
        }
        let root = place.scratch.path();
        let start = |kind: &String| (kind.clone(), crate::backends::start(kind, root));
        let mut ports: Vec<(String, u16)> = self.backends.iter().map(start).collect();
        let heard = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let port = heard.local_addr().expect("an address").port();
        ports.push(("heard".to_owned(), port));
        let mut server = Server::start(place, &self.lines(place, walled, &ports), true);
        let (port, pid) = (server.port.to_string(), format!(">{}<", server.pid()));
        let mut answers: Vec<Answer> = Vec::new();
        let mut last = Last::default();
        for request in self.requests.iter().chain(&self.requests) {
            let texts: Vec<(&str, String)> = request
                .fields
                .iter()
                .map(|(name, value)| (name.as_str(), last.put_in(value).replace("{port}", &port)))
                .collect();
            let fields: Vec<(&str, &str)> = texts
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect();
            let mut line = request.line.replace("{port}", &port);
            for (kind, port) in &ports {
                line = line.replace(&format!("{{{kind}}}"), &port.to_string());
            }
            let digest;
            let mut fields = fields;
            if let Some((_, user)) = fields.iter().find(|(name, _)| *name == "Digest") {
                digest = proof(server.port, &line, user);
                fields = vec![("Authorization", &digest)];
            }
            let answer = match line.strip_prefix("echo ") {
                Some(text) => running::echo(server.second, text),
                None => running::ask(server.port, &line, &fields, &request.body),
            };
            let mut answer = answer
                .unwrap_or_else(|error| panic!("{}, {line}: {error}\n{}", self.name, server.log()));
            last.note(&answer);
            // Whether all of a body is there when its first bytes are sent is a matter of time.
            if self.ignore.iter().any(|name| name == "transfer-encoding") {
                answer.body = whole(&answer);
            }
            answer
                .headers
                .retain(|(name, _)| !self.ignore.contains(name));
            if self.ignore.iter().any(|name| name == "body") {
                answer.body.clear();
            }
            for (name, value) in &mut answer.headers {
                *value = self.without_differences(value).replace(&port, "PORT");
                if self.unordered.contains(&(name.clone(), String::new())) {
                    let mut words: Vec<&str> = value.split(',').collect();
                    words.sort_unstable();
                    *value = words.join(",");
                }
            }
            answer.body = self.without_differences(&answer.body);
            answer.body = answer.body.replace(&port, "PORT").replace(&pid, "PID");
            answers.push(answer);
        }
        if let Some(words) = &self.heard {
            let mut bytes = [0; 1000];
            let wait = Some(std::time::Duration::from_secs(60));
            heard.set_read_timeout(wait).expect("ours");
            let (count, _) = heard.recv_from(&mut bytes).expect("a datagram");
            let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
            assert!(text.starts_with(words), "{}: {text}", self.name);
        }
        let ended = server.end();
        Some((answers, server.log(), ended))
    }
}

/// A text with something else in the place of what stands between each of the first and the second.
fn between(text: &str, (begin, end): &(String, String), to: impl Fn(&str) -> String) -> String {
    let mut pieces = text.split(begin.as_str());
    let mut made = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (inside, rest) = piece.split_at(piece.find(end.as_str()).unwrap_or(piece.len()));
        made = made + begin + &to(inside) + rest;
    }
    made
}

/// What the answers so far had, for the requests that come.
#[derive(Default)]
struct Last {
    token: String,
    etag: String,
}

impl Last {
    fn note(&mut self, answer: &Answer) {
        if let Some(token) = answer.header("lock-token") {
            self.token = token.trim_matches(['<', '>']).to_owned();
        }
        if let Some(etag) = answer.header("etag") {
            self.etag = etag.to_owned();
        }
    }

    fn put_in(&self, text: &str) -> String {
        let text = text.replace("{lock-token}", &self.token);
        text.replace("{etag}", &self.etag)
    }
}

impl Case {
    /// A text without what no two servers have the same.
    fn without_differences(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for ends in &self.differs {
            text = between(&text, ends, |_| "...".to_owned());
        }
        for ends in self.unordered.iter().filter(|ends| !ends.1.is_empty()) {
            text = between(&text, ends, |inside| {
                let mut words: Vec<&str> = inside.split(' ').collect();
                words.sort_unstable();
                words.join(" ")
            });
        }
        text
    }

    /// Whether the stock server is seen to end in this way, too. A thread of its mod_watchdog may still run when its hooks go
    /// (`ap_run_watchdog_step`), if the server is one process.
    fn ends_so_without_the_wall(&self, place: &Place, how: &str) -> bool {
        const TRIES: u32 = 240;
        let ends_so = |_| {
            let ended = self.answers(place, false).map(|(_, _, ended)| ended);
            ended.is_some_and(|ended| ended.is_err_and(|stock| stock == how))
        };
        how.contains("by signal") && (0..TRIES).any(ends_so)
    }
}

/// The last lines.
fn end_of(log: &str) -> String {
    let mut last: Vec<&str> = log.lines().rev().take(40).collect();
    last.reverse();
    last.join("\n")
}

/// A body, of pieces with their lengths or not.
fn whole(answer: &Answer) -> String {
    if answer.header("transfer-encoding") != Some("chunked") {
        return answer.body.clone();
    }
    let (mut rest, mut body) = (answer.body.as_str(), String::new());
    while let Some((length, more)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).expect("a length");
        body.push_str(&more[..length]);
        rest = more[length..].trim_start_matches("\r\n");
    }
    body
}

fn md5(text: &str) -> String {
    let mut sum = Command::new("md5sum");
    let mut child = sum
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("md5sum starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&output.stdout[..32]).into_owned()
}

/// What a user proves a password with (`user:realm:password`), to the number that the server gives.
fn proof(port: u16, line: &str, user: &str) -> String {
    let first = running::get(port, line, &[]);
    let asked = first.header("www-authenticate").expect("a challenge");
    let nonce = asked
        .split("nonce=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let nonce = nonce.expect("a number");
    let (method, path) = line.split_once(' ').expect("a path");
    let (name, rest) = user.split_once(':').expect("a realm");
    let (realm, _) = rest.split_once(':').expect("a password");
    let (first, second) = (md5(user), md5(&format!("{method}:{path}")));
    let count = "nc=00000001, cnonce=\"0a4f113b\", qop=auth";
    let answer = md5(&format!("{first}:{nonce}:00000001:0a4f113b:auth:{second}"));
    format!(
        "Digest username=\"{name}\", realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{path}\", algorithm=MD5, {count}, response=\"{answer}\""
    )
}

/// Makes what modules find in `state`, by a small program (`tests/store.c`).
fn store(place: &Place) -> bool {
    let program = place.scratch.path().join("store");
    if !program.is_file() {
        let mut gcc = Command::new("gcc");
        gcc.args(["-w", "-D_GNU_SOURCE", "-I/usr/include/apr-1.0"]);
        gcc.arg(crate::here("tests/store.c"))
            .arg("-o")
            .arg(&program);
        gcc.args(["-laprutil-1", "-lapr-1"]);
        assert!(gcc.status().expect("gcc starts").success());
    }
    let state = place.scratch.path().join("state");
    let run = |kind: &str, file: &str, words: &[&str]| {
        let mut command = Command::new(&program);
        command.arg(kind).arg(state.join(file)).args(words);
        command.status().expect("it starts").code()
    };
    // `user:word`, as htpasswd -s has it, with a group.
    let user = "{SHA}PLzZCtxLGSqHpiWFC38jHK3fDrM=";
    let rows = format!("insert into users values ('user', '{user}', 'friends')");
    let tables = [
        "create table users (name text, password text, grp text)",
        &rows,
        "create table session (key text, value text, expiry integer)",
        "insert into session values ('6b9a31f4-2b7f-4c54-9d9c-3b6f4f2a9d10', 'a=b', 0)",
    ];
    let made = run("sqlite", "users.sqlite", &tables);
    if made == Some(0) {
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        fs::set_permissions(state.join("users.sqlite"), all).expect("ours");
    }
    assert_eq!(run("dbm", "users", &["user", user]), Some(0));
    assert_eq!(run("dbm", "groups", &["user", "friends"]), Some(0));
    assert_eq!(
        run("dbm", "hosts", &["elsewhere", "http://127.0.0.1:9/"]),
        Some(0)
    );
    let digest = format!("user:realm:{}\n", md5("user:realm:word"));
    fs::write(state.join("digest"), digest).expect("written");
    let heartbeat = "127.0.0.1 &ready=75&busy=0&lastseen=1&port=0\n";
    fs::write(state.join("heartbeats"), heartbeat).expect("written");
    assert!(matches!(made, Some(0 | 4)), "{made:?}");
    made == Some(0)
}

/// All cases, or the one that is named.
pub(crate) fn cases(place: &Place, wanted: Option<&str>) {
    let folder = crate::here("tests/cases");
    // Cases that do not work yet are asked by name.
    let folder = match wanted {
        Some(name) if folder.join(format!("begun/{name}.case")).is_file() => folder.join("begun"),
        _ => folder,
    };
    let files = fs::read_dir(&folder).expect("a folder");
    let mut names: Vec<String> = files
        .filter_map(|file| file.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".case").map(str::to_owned))
        .collect();
    names.sort();
    let (mut asked, mut failed) = (Vec::new(), Vec::new());
    for name in names {
        if wanted.is_some_and(|wanted| wanted != name) {
            continue;
        }
        let text = fs::read_to_string(folder.join(format!("{name}.case"))).expect("a case");
        let case = Case::parse(&name, &text);
        let Some((stock, said, _)) = case.answers(place, false) else {
            println!("{name}: skipped: libaprutil1-dbd-sqlite3 is not here");
            continue;
        };
        let (walled, log, ended) = case.answers(place, true).expect("as before");
        let twice = case.requests.iter().chain(&case.requests);
        let ours: String = log
            .lines()
            .filter(|line| line.contains("mullion: "))
            .map(|line| format!("{line}\n"))
            .collect();
        let mut wrong = Vec::new();
        for ((request, stock), walled) in twice.zip(&stock).zip(&walled) {
            if stock != walled {
                wrong.push(format!(
                    "{request:?}\n  stock  {stock:?}\n  walled {walled:?}"
                ));
            }
        }
        for words in &case.said {
            let count = |log: &str| log.matches(words.as_str()).count();
            if count(&log) == 0 || count(&log) != count(&said) {
                wrong.push(format!(
                    "{words}: said {} and {} times",
                    count(&said),
                    count(&log)
                ));
            }
        }
        if !ours.is_empty() {
            wrong.push(ours);
        }
        if let Err(how) = ended {
            match case.ends_so_without_the_wall(place, &how) {
                true => println!("{name}: {how}. So does the stock one now and then"),
                false => wrong.push(format!("{how}; its log ends with\n{}", end_of(&log))),
            }
        }
        if !wrong.is_empty() {
            println!("{name}: {}", wrong.join("\n"));
            failed.push(name);
            continue;
        }
        println!(
            "{name}: {} requests to {}",
            stock.len(),
            case.modules.join(" ")
        );
        asked.extend(case.modules);
    }
    asked.sort();
    asked.dedup();
    println!("{} modules in cases", asked.len());
    assert!(failed.is_empty(), "{failed:?}");
}
