//! Old holes put back: the fix of each is taken out of a copy of today's source. Behind the wall the call that uses the hole ends, and
//! the process and all other requests go on; without the wall the process ends, answers wrongly, or waits for ever.

use crate::running::{self, Server};
use crate::{Place, Protection};
use mullion_apache::{Maker, Module, Outcome};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

struct Hole {
    /// The advisory's number.
    name: &'static str,
    module: &'static str,
    file: &'static str,
    fixed: &'static str,
    before: &'static str,
    stock: &'static [&'static str],
    backend: Option<&'static str>,
    config: &'static str,
    /// What the error log says.
    said: &'static [&'static str],
}

const HOLES: [Hole; 3] = [
    Hole {
        name: "CVE-2021-26691",
        module: "session",
        file: "mod_session.c",
        fixed: "strlen(key) * 3 + strlen(val) * 3 + 2;",
        before: "strlen(key) * 3 + strlen(val) * 3 + 1;",
        stock: &["mime"],
        backend: None,
        config: "<Location /hole>\nSession On\nSessionMaxAge 3600\nSessionCookieName session path=/\n</Location>\n\
                 Alias /hole {root}/htdocs/page.html\n",
        said: &["the wall stopped session_module: ", "mod_session.c:"],
    },
    Hole {
        name: "CVE-2026-28780",
        module: "proxy_ajp",
        file: "ajp_msg.c",
        fixed: "if (msglen > (msg->max_size - AJP_HEADER_LEN)) {",
        before: "if (msglen > msg->max_size) {",
        stock: &["mime", "proxy"],
        backend: Some("bad-ajp"),
        config: "ProxyPass /hole ajp://127.0.0.1:{backend}/\n",
        said: &["the wall stopped proxy_ajp_module: ", "ajp_link.c:"],
    },
    Hole {
        name: "CVE-2021-44790",
        module: "lua",
        file: "lua_request.c",
        fixed: "if (end - crlf <= 8) break;",
        before: "",
        stock: &["mime"],
        backend: None,
        config: "LuaMapHandler /hole {root}/htdocs/lua/hello.lua form\n",
        said: &["the wall stopped lua_module: ", "lua_request.c:"],
    },
];

/// Keys of three characters and values of one, each of which is written as three: each pair but the first needs one byte more
/// than the hole's count has. With so many the block ends where the pool's memory does.
fn cookie() -> String {
    const PAIRS: usize = 610;
    const MARKS: &str = "!#$'()/:<>?@[]^`{|}~";
    let marks = || MARKS.chars();
    let all = marks().flat_map(|a| marks().flat_map(move |b| marks().map(move |c| (a, b, c))));
    let pairs = all.take(PAIRS).map(|(a, b, c)| format!("{a}{b}{c}=!"));
    format!("session={}", pairs.collect::<Vec<_>>().join("&"))
}

impl Hole {
    /// The module with the hole.
    fn module(&self, place: &Place) -> Module {
        let mut module = place
            .modules
            .iter()
            .find(|module| module.name == self.module)
            .expect("httpd has it")
            .clone();
        let folder = place.scratch.path().join("holes").join(self.name);
        fs::create_dir_all(&folder).expect("made");
        for file in &mut module.files {
            if file.file_name().is_none_or(|name| name != self.file) {
                continue;
            }
            let text = fs::read_to_string(&file).expect("the source");
            assert_eq!(text.matches(self.fixed).count(), 1, "{}", self.name);
            let holed = folder.join(self.file);
            fs::write(&holed, text.replace(self.fixed, self.before)).expect("written");
            *file = holed;
        }
        module
    }

    fn lines(&self, place: &Place, walled: bool) -> String {
        let module = self.module(place);
        let stock: String = self.stock.iter().map(|name| place.stock(name)).collect();
        let own = match walled {
            true => {
                let folder = place.scratch.path().join("holes").join("made");
                let maker = Maker::new(&place.tree, &place.modules, &folder).expect("headers");
                let row = maker.make(&module, Protection::Write).expect("tools");
                assert!(
                    matches!(row.outcome, Outcome::Verified { .. }),
                    "{:?}",
                    row.outcome
                );
                let file = maker.place(&module, Protection::Write);
                let policy = crate::here("policies").join(format!("{}.toml", self.module));
                let (name, file, policy) = (self.module, file.display(), policy.display());
                format!(
                    "{}MullionLoadModule {name}_module {file} {policy}\n",
                    place.wall()
                )
            }
            false => place.compile(self.module, &module.files),
        };
        // The session's record is made by another module.
        let with = match self.module {
            "session" => format!(
                "{}{}",
                place.stock("alias"),
                match walled {
                    true => place.walled("session_cookie"),
                    false => place.stock("session_cookie"),
                }
            ),
            _ => String::new(),
        };
        let root = place.scratch.path().display().to_string();
        let mut config = self.config.replace("{root}", &root);
        if let Some(kind) = self.backend {
            config = config.replace(
                "{backend}",
                &crate::backends::start(kind, place.scratch.path()).to_string(),
            );
        }
        format!("{stock}{own}{with}{config}")
    }

    fn attack(&self, port: u16) -> Option<u16> {
        let answer = match self.module {
            // Four bytes lie between the end of the fields and the next boundary, of which the parser takes eight away. So it
            // asks for nearly 2^64 bytes.
            "lua" => {
                let kind = [("Content-Type", "multipart/form-data; boundary=AaB03x")];
                running::ask(port, "POST /hole", &kind, "AaB03x\r\n\r\nAaB03x")
            }
            _ => running::try_get(port, "/hole", &[("Cookie", &cookie())]),
        };
        answer.ok().map(|answer| answer.status)
    }
}

/// Requests that have begun: each has sent all but its last line.
fn in_flight(port: u16, count: usize) -> Vec<TcpStream> {
    let begin = |_| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        stream
            .write_all(b"GET /page.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n")
            .expect("it reads");
        stream
    };
    (0..count).map(begin).collect()
}

fn answered(mut stream: TcpStream) -> bool {
    let mut text = String::new();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("ours");
    let is_read = stream.write_all(b"\r\n").is_ok() && stream.read_to_string(&mut text).is_ok();
    is_read && text.starts_with("HTTP/1.1 200") && text.ends_with("A text\n")
}

/// `count` requests are in flight when each hole is used.
pub(crate) fn holes(place: &Place, count: usize) {
    for hole in &HOLES {
        // A thread for each: it waits for the rest of the request.
        let threads = count + 16;
        let lines = format!(
            "ThreadLimit {threads}\nServerLimit 1\nThreadsPerChild {threads}\nMaxRequestWorkers {threads}\n{}",
            hole.lines(place, true)
        );
        let mut server = Server::start(place, &lines, true);
        let others = in_flight(server.port, count);
        // Each is to wait for its last line: one that is in the stopped module itself at that moment gets 500, too.
        std::thread::sleep(Duration::from_secs(2));
        for _ in 0..3 {
            let from = server.log().len();
            let status = hole.attack(server.port);
            let log = server.log()[from..].to_owned();
            let is_ended = matches!(status, Some(500 | 502));
            assert!(is_ended, "{}: {status:?}: {log}", hole.name);
            for words in hole.said {
                assert!(log.contains(words), "{}: {log}", hole.name);
            }
        }
        let well = others
            .into_iter()
            .filter_map(|stream| answered(stream).then_some(()))
            .count();
        assert_eq!(well, count, "{}: {}", hole.name, server.log());
        let page = running::get(server.port, "/page.txt", &[]);
        assert_eq!(page.status, 200, "{}: {}", hole.name, server.log());
        // What the ended calls had of mod_proxy's connections was given back: APR would abort otherwise.
        let ended = server.end();
        assert!(ended.is_ok(), "{}, {ended:?}: {}", hole.name, server.log());
        println!("{}: {count} other requests were answered", hole.name);
    }
}

/// A server that refuses an attack does so long before. One that takes it may wait for what is never sent.
const SLOW: Duration = Duration::from_secs(20);

/// Without the wall the process ends, or waits with memory that was written over. Which of the two it is depends on what lies
/// behind the block.
pub(crate) fn without_the_wall(place: &Place) {
    for hole in &HOLES {
        let lines = format!(
            "Timeout {}\n{}",
            SLOW.as_secs() + 2,
            hole.lines(place, false)
        );
        let mut server = Server::start(place, &lines, true);
        let harmed = (0..200).any(|_| {
            let start = Instant::now();
            hole.attack(server.port).is_none() || start.elapsed() > SLOW
        });
        let ended = server.end();
        assert!(
            harmed || ended.is_err(),
            "{} does no harm to a stock server",
            hole.name
        );
        println!("{}: harm was done", hole.name);
    }
}
