//! Debian's stock server on loopback, as one process, with what is asked for.

use mullion_apache::{STOCK, Set, Setup, library};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to start, on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lines for modules, where the module is loaded. `{root}` is the server's folder.
const LINES: [(&str, &str); 12] = [
    (
        "expires",
        "ExpiresActive on\nExpiresDefault \"access plus 1 hour\"\n",
    ),
    ("headers", "Header set X-One one\n"),
    ("alias", "Alias /other {root}/htdocs\n"),
    ("dir", "DirectoryIndex index.html\n"),
    (
        "mime",
        "TypesConfig {root}/mime.types\nAddType text/html .shtml\n",
    ),
    ("setenvif", "SetEnvIf User-Agent Robot marked\n"),
    ("env", "SetEnv always 1\n"),
    (
        "rewrite",
        "RewriteEngine on\nRewriteRule ^/rewritten$ /1.txt\n",
    ),
    (
        "reqtimeout",
        "RequestReadTimeout header=20-40,minrate=500 body=20,minrate=500\n",
    ),
    (
        "deflate",
        "<Location /deflated>\nSetOutputFilter DEFLATE\n</Location>\n",
    ),
    (
        "substitute",
        "<Location /substituted>\nSetOutputFilter SUBSTITUTE\nSubstitute \"s/fox/cat/n\"\n</Location>\n",
    ),
    (
        "include",
        "<Directory {root}/htdocs>\nSSILegacyExprParser on\nOptions +Includes\n</Directory>\n<Location /page.shtml>\nSetOutputFilter INCLUDES\n</Location>\n",
    ),
];

/// Modules whose names begin so need another one.
const NEEDS: [(&str, &str); 5] = [
    ("", "authz_core"),
    ("deflate", "filter"),
    ("auth_basic", "authn_core"),
    ("proxy_", "proxy"),
    ("lbmethod_", "proxy_balancer"),
];

/// What is asked for in a case.
///
/// # Errors
/// There is no such case.
pub(crate) fn path(case: &str) -> Result<&'static str, String> {
    Ok(match case {
        "1" => "/1.txt",
        "4" => "/4.txt",
        "16" => "/16.txt",
        "64" => "/64.txt",
        "256" => "/256.txt",
        "headers" => "/1.txt",
        "rewrite" => "/rewritten",
        "deflate" => "/deflated/words.txt",
        "substitute" => "/substituted/words.txt",
        "include" => "/page.shtml",
        _ => return Err(format!("{case} is no case")),
    })
}

pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    /// Its files, which go with it.
    _folder: tempfile::TempDir,
}

fn io<T>(path: &Path, result: std::io::Result<T>) -> Result<T, Setup> {
    result.map_err(|cause| Setup::Io(path.to_path_buf(), cause))
}

fn content(root: &Path) -> std::io::Result<()> {
    let htdocs = root.join("htdocs");
    for folder in ["deflated", "substituted"] {
        fs::create_dir_all(htdocs.join(folder))?;
        let words = "the quick brown fox jumps over it\n".repeat(200);
        fs::write(htdocs.join(folder).join("words.txt"), words)?;
    }
    for size in [1usize, 4, 16, 64, 256] {
        let text = "0123456789abcdef".repeat(64 * size);
        // Less than the client's buffer with its head.
        let text = &text[..text.len().min((1 << 18) - 4096)];
        fs::write(htdocs.join(format!("{size}.txt")), text)?;
    }
    let page = "<!--#set var=\"x\" value=\"7\" --><p><!--#echo var=\"x\" --><!--#if expr=\"$x = 7\" -->yes<!--#else -->no<!--#endif -->\
                <!--#include virtual=\"1.txt\" --></p>\n";
    fs::write(htdocs.join("page.shtml"), page)?;
    fs::write(root.join("mime.types"), "text/html html\ntext/plain txt\n")
}

impl Server {
    pub(crate) fn start(
        set: &Set,
        names: &[&str],
        walled: bool,
        threads: usize,
    ) -> Result<Server, Setup> {
        let folder = io(Path::new("/tmp"), tempfile::tempdir())?;
        let root = folder.path();
        io(
            root,
            fs::set_permissions(root, fs::Permissions::from_mode(0o755)),
        )?;
        io(root, content(root))?;
        let free = io(root, TcpListener::bind("127.0.0.1:0"))?;
        let port = io(root, free.local_addr())?.port();
        drop(free);
        let (wall, status) = match walled {
            true => (
                format!("LoadModule mullion_module {}\n", library()?.display()),
                "<Location /status>\nSetHandler mullion-status\n</Location>\n",
            ),
            false => (String::new(), ""),
        };
        let id = io(Path::new("id"), Command::new("id").arg("-u").output())?;
        let user = match id.stdout.starts_with(b"0\n") {
            true => "User nobody\nGroup nogroup\n",
            false => "",
        };
        let mut text = format!(
            "ServerRoot {root}\nServerName localhost\nListen 127.0.0.1:{port}\nPidFile {root}/pid\nDefaultRuntimeDir {root}\n\
             Mutex pthread\nErrorLog {root}/error\nLogLevel warn\nDocumentRoot {root}/htdocs\n{user}AcceptFilter http none\n\
             FileETag None\nMaxKeepAliveRequests 0\nKeepAliveTimeout 60\nThreadsPerChild {threads}\nMaxRequestWorkers {threads}\nServerLimit 1\nAsyncRequestWorkerFactor 20\n\
             LoadModule mpm_event_module {STOCK}/mod_mpm_event.so\n{wall}",
            root = root.display()
        );
        // Some need another one to be there.
        for (one, needed) in NEEDS {
            let is_there = |name: &&str| name.starts_with(one);
            if names.iter().any(is_there) && !names.contains(&needed) {
                text.push_str(&format!(
                    "LoadModule {needed}_module {STOCK}/mod_{needed}.so\n"
                ));
            }
        }
        text.push_str(&set.lines(names, walled));
        for (name, lines) in LINES {
            if names.contains(&name) {
                text.push_str(&lines.replace("{root}", &root.display().to_string()));
            }
        }
        text.push_str(status);
        let file = root.join("conf");
        io(&file, fs::write(&file, text))?;
        let mut command = Command::new("/usr/sbin/apache2");
        command.arg("-f").arg(&file).arg("-X").stdin(Stdio::null());
        let child = io(Path::new("/usr/sbin/apache2"), command.spawn())?;
        let mut server = Server {
            child,
            port,
            _folder: folder,
        };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let is_gone = !matches!(server.child.try_wait(), Ok(None));
            if is_gone || start.elapsed() > PATIENCE {
                let log = fs::read(server._folder.path().join("error")).unwrap_or_default();
                let log = String::from_utf8_lossy(&log).into_owned();
                return Err(Setup::Generate(format!("the server does not start: {log}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Microseconds of the processor that its threads have had, in user code and in the kernel.
    pub(crate) fn time(&self) -> f64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let ran = tasks.into_iter().flatten().filter_map(|task| {
            let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        });
        ran.sum::<u64>() as f64 / 1e3
    }

    /// Calls into modules, and calls of theirs that were looked at.
    pub(crate) fn counts(&self) -> Result<(u64, u64), Setup> {
        let asked = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.write_all(
                b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            )?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        };
        let text = io(Path::new("/status"), asked())?;
        let rows = text.lines().filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            let calls = words.next()?.parse::<u64>().ok()?;
            Some((calls, words.next()?.parse::<u64>().ok()?))
        });
        Ok(rows.fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1)))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut kill = Command::new("kill");
        let _gone = kill
            .arg(self.child.id().to_string())
            .stderr(Stdio::null())
            .status();
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if start.elapsed() > Duration::from_secs(10) {
                let _gone = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
