//! A server on loopback that ends with its test, and requests to it.

use crate::{Place, SERVER};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// For machines that do other things; no test is about time.
const PATIENCE: Duration = Duration::from_secs(60);
/// So long a server may take until it sleeps, if a thread of it does not go round for ever.
const REST: Duration = Duration::from_secs(5);

/// How a server starts of which the test expects that it ends, and one that only tells of its configuration.
const ENDS: &str = "-DNO_DETACH";
const TELLS: &str = "-tDDUMP_RUN_CFG";

pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    /// Another one, `{echo}` in its configuration.
    pub(crate) second: u16,
    log: PathBuf,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Without the ones that are never the same.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let (_, value) = headers.find(|(known, _)| known == name)?;
        Some(value)
    }
}

impl Server {
    fn begin(place: &Place, lines: &str, how: &str) -> Server {
        let root = place.scratch.path();
        content(root);
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("an address").port();
        let other = TcpListener::bind("127.0.0.1:0").expect("a port");
        let second = other.local_addr().expect("an address").port();
        drop((free, other));
        let log = root.join(format!("error.{port}"));
        let modules = crate::MODULES;
        let user = match is_root() {
            true => "User nobody\nGroup nogroup\n",
            false => "",
        };
        let core = match lines.contains("authz_core_module") {
            true => String::new(),
            false => format!("LoadModule authz_core_module {modules}/mod_authz_core.so\n"),
        };
        // A server that tells of its locks has none that its configuration says.
        let locks = if how == TELLS { "" } else { "Mutex pthread\n" };
        let text = format!(
            "ServerRoot {root}\nServerName localhost\nListen 127.0.0.1:{port}\nPidFile {root}/pid.{port}\n\
             DefaultRuntimeDir {root}\n{locks}ErrorLog {log}\nLogLevel warn\nDocumentRoot {root}/htdocs\n{user}\
             LoadModule mpm_event_module {modules}/mod_mpm_event.so\n\
             {core}AcceptFilter http none\nFileETag None\n{lines}",
            root = root.display(),
            lines = lines
                .replace("{port}", &port.to_string())
                .replace("{echo}", &second.to_string()),
            log = log.display(),
        );
        let file = root.join(format!("conf.{port}"));
        fs::write(&file, text).expect("written");
        let mut command = Command::new(SERVER);
        command.args(["-f", &file.display().to_string()]);
        command.arg(how);
        if lines.contains("LogLevel debug") {
            // Also for lines that belong to no server.
            command.args(["-e", "debug"]);
        }
        if how == ENDS || how == TELLS {
            let said = File::create(root.join("said")).expect("a file");
            command.stdout(said.try_clone().expect("a file"));
            command.stderr(said);
        }
        command.stdin(Stdio::null()).process_group(0);
        let child = command.spawn().expect("it starts");
        Server {
            child,
            port,
            second,
            log,
        }
    }

    /// A server that ends while it reads its configuration or behind that: how, and what it and its log say.
    pub(crate) fn ends(place: &Place, lines: &str) -> (ExitStatus, String) {
        let server = Server::begin(place, lines, ENDS);
        server.ended(place)
    }

    /// A server's own words about its configuration, when it has read it.
    pub(crate) fn tells(place: &Place, lines: &str) -> String {
        let (_, said) = Server::begin(place, lines, TELLS).ended(place);
        said
    }

    fn ended(mut self, place: &Place) -> (ExitStatus, String) {
        let start = Instant::now();
        let status = loop {
            match self.child.try_wait().expect("ours") {
                Some(status) => break status,
                None => assert!(start.elapsed() < PATIENCE, "it goes on: {}", self.log()),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let said = fs::read_to_string(place.scratch.path().join("said")).expect("it is there");
        (status, said + &self.log())
    }

    /// Starts a server with these lines in its configuration: as one process, or with children.
    pub(crate) fn start(place: &Place, lines: &str, single: bool) -> Server {
        let how = if single { "-X" } else { "-DFOREGROUND" };
        let mut server = Server::begin(place, lines, how);
        let port = server.port;
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let gone = server.child.try_wait().expect("ours");
            assert!(gone.is_none(), "{gone:?}: {}", server.log());
            assert!(start.elapsed() < PATIENCE, "{}", server.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: i32) {
        let pid = self.child.id().to_string();
        let done = Command::new("kill")
            .arg(format!("-{signal}"))
            .arg(pid)
            .status();
        assert!(done.expect("it starts").success());
    }

    /// Waits until there is an answer.
    pub(crate) fn until<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(start.elapsed() < PATIENCE, "{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until all threads of a server of one process sleep. When it is told to end, the event MPM closes the sockets of threads that
    /// work, and such a socket may have gone with its pool (`close_worker_sockets`). A stock server, too, ends by signal 11 then.
    fn rests(&self) {
        let state = |folder: PathBuf| {
            let text = fs::read_to_string(folder.join("stat")).unwrap_or_default();
            // The name in front of it may have spaces.
            let rest = text.rsplit(") ").next();
            rest.is_none_or(|rest| rest.starts_with('S'))
        };
        let sleep = || {
            let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id()));
            let mut tasks = tasks.into_iter().flatten().flatten();
            tasks.all(|task| state(task.path()))
        };
        let start = Instant::now();
        let mut seen = 0;
        while seen < 5 && start.elapsed() < REST {
            std::thread::sleep(Duration::from_millis(20));
            seen = if sleep() { seen + 1 } else { 0 };
        }
    }

    /// Ends it as an administrator does.
    ///
    /// # Errors
    /// It ends by a fault, or does not end: how, and where its threads are.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        use std::os::unix::process::ExitStatusExt;
        self.rests();
        self.signal(libc::SIGTERM);
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Ok(Some(status)) = self.child.try_wait() {
                return match status.signal() {
                    None | Some(libc::SIGTERM) => Ok(()),
                    Some(signal) => Err(format!("the server ended by signal {signal}")),
                };
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let waits = self.threads();
        Err(format!("the server did not end: its threads are {waits}"))
    }

    /// Where each thread waits: its name, what it waits for in the kernel, and its call with arguments.
    fn threads(&self) -> String {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let of = |folder: PathBuf| {
            ["comm", "wchan", "syscall"]
                .map(|file| fs::read_to_string(folder.join(file)).unwrap_or_default())
                .map(|text| text.trim().to_owned())
                .join(" ")
        };
        let tasks = tasks.into_iter().flatten().flatten();
        let lines: Vec<String> = tasks.map(|task| of(task.path())).collect();
        lines.join("; ")
    }

    pub(crate) fn stop(&mut self) {
        let group = format!("-{}", self.child.id());
        // Its children are of its group. They may be gone.
        let mut kill = Command::new("kill");
        kill.args(["-TERM", "--", &group]).stderr(Stdio::null());
        let _gone = kill.status();
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if start.elapsed() > Duration::from_secs(10) {
                let _gone = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut kill = Command::new("kill");
        kill.args(["-KILL", "--", &group]).stderr(Stdio::null());
        let _gone = kill.status();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id starts");
    output.stdout.starts_with(b"0\n")
}

/// What is served.
fn content(root: &Path) {
    let folder = root.join("htdocs/sub");
    if folder.is_dir() {
        return;
    }
    fs::create_dir_all(&folder).expect("made");
    let write = |name: &str, text: &str| {
        let file = root.join("htdocs").join(name);
        fs::write(file, text).expect("written");
    };
    write("page.html", "<p>A page</p>\n");
    write("page.txt", "A text\n");
    write(
        "links.html",
        "<html><head><meta http-equiv=\"X-Of\" content=\"page\"><title>A & B</title></head><body onclick=\"go('http://inside.example/x')\">\n\
         <!-- a note --><a href=\"http://inside.example/thing?a=b&c=d\">inside</a><img src=/old/picture.gif alt=none>\n\
         <script>var at = \"http://inside.example/s\";</script><p>text &lt; more</body></html>\n",
    );
    write("image.gif", "GIF89a");
    write("note.html.de", "<p>deutsch</p>\n");
    write("note.html.en", "<p>english</p>\n");
    write("sub/index.html", "<p>An index</p>\n");
    write(
        "saved.asis",
        "Status: 201 made\nContent-Type: text/plain\nX-As: is\n\nAs it is\n",
    );
    write(
        "words.txt",
        &"the quick brown fox jumps over it\n".repeat(200),
    );
    write(
        "whole.shtml",
        "<!--#set var=\"x\" value=\"7\" --><p><!--#echo var=\"x\" -->\n\
         <!--#if expr=\"$x = 7\" -->yes<!--#else -->no<!--#endif -->\n\
         <!--#include virtual=\"page.txt\" --><!--#fsize file=\"page.txt\" -->\n\
         <!--#echo encoding=\"none\" var=\"DOCUMENT_URI\" --></p>\n",
    );
    // Each byte of a directive is a bucket of its own, and so is what it includes (mod_bucketeer).
    let directive = "<!--#include virtual=\"pieces.shtml\" -->";
    let apart: String = directive.chars().flat_map(|one| ['\u{2}', one]).collect();
    write("apart.shtml", &format!("{apart}\n"));
    write(
        "pieces.shtml",
        "____\n___________\n\u{2}__________\n_____\n<\u{6}/table>\n\n####<\u{2}/tr>\n####<\u{10}/tr>\n####<\u{6}/tr>\n@@@@\n",
    );
    write(
        "links.map",
        "default /page.html\nrect /small.txt 0,0 10,10\n",
    );
    fs::create_dir_all(root.join("htdocs/scripts")).expect("made");
    write(
        "scripts/words",
        "#!/bin/sh\nbody=\"from a script: $(cat)\"\necho Content-Type: text/plain\necho X-Query: $QUERY_STRING\n\
         echo Content-Length: ${#body}\necho\nprintf %s \"$body\"\n",
    );
    let script = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(root.join("htdocs/scripts/words"), script).expect("ours");
    fs::create_dir_all(root.join("htdocs/lua")).expect("made");
    write("lua/hello.lua", include_str!("../hello.lua"));
    write("big.txt", &"0123456789abcdef".repeat(4096));
    write("small.txt", &"0123456789abcdef".repeat(64));
    fs::create_dir_all(root.join("htdocs/list")).expect("made");
    write("list/one.txt", "1");
    write("list/two.html", "<title>Two</title>");
    write("list/untyped", "GIF89a0000");
    fs::write(root.join("magic"), "0\tstring\tGIF\timage/gif\n").expect("written");
    fs::create_dir_all(root.join("htdocs/secret")).expect("made");
    write("secret/page.html", "<p>secret</p>\n");
    // `user:word`, as htpasswd -s has it.
    fs::write(
        root.join("users"),
        "user:{SHA}PLzZCtxLGSqHpiWFC38jHK3fDrM=\n",
    )
    .expect("written");
    fs::write(root.join("groups"), "friends: user other\n").expect("written");
    fs::write(
        root.join("mime.types"),
        "text/html html\ntext/plain txt\nimage/gif gif\n",
    )
    .expect("written");
}

/// A request on a connection of its own.
pub(crate) fn get(port: u16, path: &str, headers: &[(&str, &str)]) -> Answer {
    try_get(port, path, headers).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn try_get(port: u16, path: &str, headers: &[(&str, &str)]) -> io::Result<Answer> {
    ask(port, path, headers, "")
}

/// A request whose answer nobody waits for.
pub(crate) fn begin(port: u16, path: &str) -> TcpStream {
    send(port, path, &[], "").expect("the server takes a request")
}

/// A request with a body.
pub(crate) fn ask(
    port: u16,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<Answer> {
    let stream = send(port, path, headers, body)?;
    answer(stream)
}

fn send(port: u16, path: &str, headers: &[(&str, &str)], body: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let (method, path) = path.split_once(' ').unwrap_or(("GET", path));
    let mut request =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        request.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    stream.write_all(format!("{request}\r\n{body}").as_bytes())?;
    Ok(stream)
}

fn answer(mut stream: TcpStream) -> io::Result<Answer> {
    let mut bytes = Vec::new();
    let mut piece = [0; 1 << 14];
    loop {
        let is_whole = is_whole(&bytes);
        if is_whole {
            // A stock mod_dialup leaves the connection open behind the answer.
            stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        }
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(_) if is_whole => break,
            Err(error) => return Err(error),
        }
    }
    parse(&bytes).ok_or_else(|| io::Error::other("no answer"))
}

/// Whether an answer's header says how long it is, and so much is there.
fn is_whole(bytes: &[u8]) -> bool {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let answer = parse(bytes);
    let length = answer.and_then(|answer| answer.header("content-length")?.parse::<usize>().ok());
    end.zip(length)
        .is_some_and(|(end, length)| bytes.len() >= end + 4 + length)
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    let mut headers: Vec<(String, String)> = headers.filter(|(name, _)| name != "date").collect();
    headers.sort();
    let body = bytes[end + 4..]
        .iter()
        .map(|byte| char::from(*byte))
        .collect();
    Some(Answer {
        status,
        headers,
        body,
    })
}

/// Requests on one connection, one after the other; the answers' bodies are read and dropped.
pub(crate) fn many(port: u16, path: &str, count: u64) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_nodelay(true).expect("ours");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut buffer = vec![0u8; 1 << 17];
    for _ in 0..count {
        stream.write_all(request.as_bytes()).expect("it reads");
        let (mut have, mut want) = (0, None);
        while want.is_none_or(|want| have < want) {
            let got = stream.read(&mut buffer[have..]).expect("it answers");
            assert_ne!(got, 0, "it closes");
            have += got;
            let end = buffer[..have]
                .windows(4)
                .position(|four| four == b"\r\n\r\n");
            if let (None, Some(end)) = (want, end) {
                let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
                let length = head.split("content-length: ").nth(1).expect("a length");
                let length: usize = length
                    .lines()
                    .next()
                    .and_then(|n| n.parse().ok())
                    .expect("a number");
                want = Some(end + 4 + length);
            }
        }
    }
}

/// Seconds of the processor that a process's threads have had, in user code and in the kernel; those that live.
pub(crate) fn time(pid: u32) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
    let ran = tasks.filter_map(|task| {
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    ran.sum::<u64>() as f64 / 1e9
}

/// A line that comes back.
pub(crate) fn echo(port: u16, text: &str) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{text}\n").as_bytes())?;
    let mut bytes = vec![0; text.len() + 1];
    stream.read_exact(&mut bytes)?;
    Ok(Answer {
        status: 200,
        headers: Vec::new(),
        body: String::from_utf8_lossy(&bytes).into_owned(),
    })
}
