//! Where modules are made, and servers run.

use mullion_driver::{Arguments, Language, compile};
use mullion_fetch::Lock;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The stock server. Debian has one program by several names: with the tools alone it is there as another one.
fn program() -> Command {
    let is_there = |name: &str| {
        let mut looks = Command::new("sh");
        looks.args(["-c", "command -v \"$0\" >/dev/null", name]);
        looks.status().is_ok_and(|status| status.success())
    };
    match is_there("redis-server") {
        true => Command::new("redis-server"),
        false => {
            let mut program = Command::new("redis-check-rdb");
            program.arg0("redis-server");
            program
        }
    }
}

/// The stock server, new enough.
pub(crate) fn server_is_there() -> Result<(), String> {
    let output = program().arg("--version").output();
    let missing = "there is no `redis-server` (Debian's packages redis-tools, redis-server)";
    let output = output.map_err(|_| missing.to_owned())?;
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = version.split("v=").nth(1).unwrap_or_default();
    match number
        .split('.')
        .next()
        .and_then(|major| major.parse().ok())
    {
        Some(7..) => Ok(()),
        _ => Err(format!("Redis 7.0 is needed: {}", version.trim())),
    }
}

pub(crate) struct Place {
    pub(crate) scratch: tempfile::TempDir,
    pub(crate) sources: PathBuf,
    pub(crate) library: PathBuf,
}

/// Modules of Redis's own sources, and a script for each.
pub(crate) const MODULES: [(&str, &str); 7] = [
    ("src/modules/hellotype", HELLOTYPE),
    ("src/modules/helloworld", HELLOWORLD),
    ("src/modules/hellodict", HELLODICT),
    ("src/modules/hellotimer", "HELLOTIMER.TIMER\nDBSIZE\n"),
    ("tests/modules/list", LIST),
    ("tests/modules/hash", HASH),
    ("tests/modules/zset", ZSET),
];

const HELLOTYPE: &str = "HELLOTYPE.INSERT k 5\nHELLOTYPE.INSERT k 3\nHELLOTYPE.INSERT k 9\nHELLOTYPE.LEN k\n\
    HELLOTYPE.RANGE k 0 10\nHELLOTYPE.RANGE k 1 1\nHELLOTYPE.INSERT k x\nHELLOTYPE.INSERT k\nSET s 1\nHELLOTYPE.LEN s\n\
    DEBUG DIGEST-VALUE k\nDEBUG RELOAD\nHELLOTYPE.RANGE k 0 10\nTYPE k\nCOPY k j\nOBJECT ENCODING k\nDEL k\nHELLOTYPE.LEN k\n";
const HELLOWORLD: &str = "HELLO.SIMPLE\nHELLO.PUSH.NATIVE l one\nHELLO.PUSH.CALL l two\nHELLO.PUSH.CALL2 l three\n\
    HELLO.LIST.SUM.LEN l\nHELLO.LIST.SPLICE l m 2\nHELLO.LIST.SPLICE.AUTO l m 1\nSET s abcDEF\nHELLO.TOGGLE.CASE s\nGET s\n\
    HELLO.TOGGLE.CASE m\nHELLO.REPL1\nHELLO.REPL2 m\nHELLO.MORE.EXPIRE s 1000\nZADD z 1 a 2 b 3 c 4 d\n\
    HELLO.ZSUMRANGE z 2 3\nZADD x 0 a 0 b 0 c 0 d\nHELLO.LEXRANGE x [b [c 0 0\nHELLO.HCOPY h a b\nHSET h a v\nHELLO.HCOPY h a b\n\
    HGETALL h\nHELLO.LEFTPAD text 10 .\n";
const HELLODICT: &str = "HELLODICT.SET a 1\nHELLODICT.SET c 3\nHELLODICT.SET b 2\nHELLODICT.GET b\nHELLODICT.GET x\n\
    HELLODICT.KEYRANGE a z 10\nHELLODICT.KEYRANGE b z 1\n";
const LIST: &str = "RPUSH k a b c\nlist.getall k\nlist.get k 0\nlist.get k -1\nlist.get k 9\nlist.set k 1 x\nlist.getall k\n\
    list.insert k 0 y\nlist.delete k 1\nlist.getall k\nlist.edit k iir k1 k2\nlist.getall nokey\n";
const HASH: &str = "hash.set k 0 a 1 b 2\nHGETALL k\nhash.set k nxc c 3 a 9\nHGETALL k\nhash.set k xn d 4\nHGETALL k\n";
const ZSET: &str =
    "ZADD k 1 a 2 b\nzset.rem k a\nZRANGE k 0 -1\nzset.rem k b\nEXISTS k\nzset.rem k b\n";

pub(crate) fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A server on a socket in the file system, which ends with this value.
pub(crate) struct Server {
    child: Child,
    pub(crate) socket: PathBuf,
}

impl Server {
    /// What it answers to one command, on one line for each part.
    pub(crate) fn ask(&self, command: &str) -> String {
        self.tell(
            &[
                "-c",
                "exec redis-cli -s \"$0\" $1 2>&1",
                &self.socket.to_string_lossy(),
                command,
            ],
            None,
        )
    }

    /// What it answers to a script.
    pub(crate) fn run(&self, script: &str) -> String {
        self.tell(
            &[
                "-c",
                "exec redis-cli -s \"$0\" 2>&1",
                &self.socket.to_string_lossy(),
            ],
            Some(script),
        )
    }

    fn tell(&self, arguments: &[&str], script: Option<&str>) -> String {
        let mut client = Command::new("timeout");
        client
            .args(["60", "sh"])
            .args(arguments)
            .stdout(Stdio::piped());
        client.stdin(if script.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        let mut client = client.spawn().expect("it starts");
        if let (Some(script), Some(mut input)) = (script, client.stdin.take()) {
            std::io::Write::write_all(&mut input, script.as_bytes()).expect("it reads");
        }
        let output = client.wait_with_output().expect("it ends");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none() && self.ask("PING").contains("PONG")
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone_or_not = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Place {
    pub(crate) fn new() -> Place {
        let lock =
            Lock::parse(include_str!("../../../../sysroot/sources.toml")).expect("a lock file");
        let source = lock.source("redis").expect("it is listed");
        let program = std::env::current_exe().expect("a path");
        let deps = program.parent().expect("a folder");
        let folders = [deps.to_path_buf(), deps.join("..")];
        let libraries = folders.map(|folder| folder.join("libmullion_redis.so"));
        let library = libraries.into_iter().find(|library| library.is_file());
        let library = library.expect("Cargo builds the library with its tests");
        Place {
            scratch: tempfile::tempdir().expect("a temporary directory"),
            sources: mullion_fetch::fetch(source).expect("the package client has it"),
            library: library.canonicalize().expect("it is there"),
        }
    }

    pub(crate) fn source(&self, name: &str) -> PathBuf {
        self.sources.join(format!("{name}.c"))
    }

    pub(crate) fn native(&self, source: &Path, name: &str, options: &[&str]) -> PathBuf {
        let to = self.scratch.path().join(format!("{name}.native.so"));
        let mut command = Command::new("gcc");
        command.args(["-O2", "-w", "-shared", "-fPIC", "-I"]);
        command.arg(self.sources.join("src")).args(options);
        command.arg(source).arg("-o").arg(&to);
        assert!(command.status().expect("gcc starts").success(), "{name}");
        to
    }

    pub(crate) fn walled(
        &self,
        source: &Path,
        name: &str,
        policy: &str,
        options: &[&str],
    ) -> PathBuf {
        let to = self.scratch.path().join(format!("{name}.so"));
        let mut line: Vec<OsString> = ["--wall=word", "-O2", "-g", "-w", "-I"]
            .map(OsString::from)
            .into();
        line.extend([
            self.sources.join("src").into(),
            source.into(),
            "-o".into(),
            (&to).into(),
        ]);
        line.extend(options.iter().map(OsString::from));
        let arguments = Arguments::parse(&line).expect("a good command line");
        let compiled = compile(Language::C, &arguments).expect("a compiler");
        assert_eq!(compiled.code, 0, "{source:?}");
        fs::write(to.with_extension("toml"), policy).expect("written");
        to
    }

    pub(crate) fn policy(&self, name: &str) -> String {
        let name = name.rsplit('/').next().expect("a name");
        fs::read_to_string(here("policies").join(format!("{name}.toml")))
            .expect("each has a policy")
    }

    /// A server with these modules, in a folder of its own.
    pub(crate) fn server(&self, folder: &str, modules: &[String], more: &[&str]) -> Server {
        self.server_with(&[], folder, modules, more)
    }

    pub(crate) fn server_with(
        &self,
        variables: &[(&str, &Path)],
        name: &str,
        modules: &[String],
        more: &[&str],
    ) -> Server {
        let folder = self.scratch.path().join(name);
        if name != "saved" {
            let _older = fs::remove_dir_all(&folder);
        }
        fs::create_dir_all(&folder).expect("made");
        let socket = folder.join("socket");
        let _old = fs::remove_file(&socket);
        let mut command = program();
        command.envs(variables.iter().copied());
        command.args([
            "--port",
            "0",
            "--save",
            "",
            "--enable-debug-command",
            "yes",
            "--unixsocket",
        ]);
        command.arg(&socket);
        command.arg("--dir").arg(&folder).args(more);
        for module in modules {
            command.arg("--loadmodule").args(module.split(' '));
        }
        let log = fs::File::create(folder.join("log")).expect("made");
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log);
        let mut server = Server {
            child: command.spawn().expect("it starts"),
            socket,
        };
        // It answers, or it has ended.
        while !server.is_alive() {
            let ended = server.child.try_wait().expect("a child");
            let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
            assert!(ended.is_none(), "{log}");
            std::thread::sleep(Duration::from_millis(5));
        }
        server
    }

    /// The argument of `loadmodule` for a module behind its wall.
    pub(crate) fn bridged(&self, module: &Path) -> String {
        format!("{} {}", self.library.display(), module.display())
    }

    pub(crate) fn modules_answer_as_without_the_wall(&self) {
        for (source, script) in MODULES {
            let name = source.rsplit('/').next().expect("a name");
            let native = self.native(&self.source(source), name, &[]);
            let server = self.server("native", &[native.display().to_string()], &[]);
            let expected = server.run(script);
            drop(server);
            assert!(expected.lines().count() > 1, "{name}: {expected}");
            for protection in ["--protection=write", "--protection=read-write"] {
                let walled = self.walled(
                    &self.source(source),
                    name,
                    &self.policy(name),
                    &[protection],
                );
                let server = self.server("walled", &[self.bridged(&walled)], &[]);
                assert_eq!(server.run(script), expected, "{name}, {protection}");
            }
            self.a_learnt_policy_serves(name, script, &expected);
        }
        println!(
            "{} modules answer as without the wall, with both protections",
            MODULES.len()
        );
    }

    /// A run without a policy, in which nothing is refused, gives one with which the same run goes.
    fn a_learnt_policy_serves(&self, name: &str, script: &str, expected: &str) {
        let module = self.scratch.path().join(format!("{name}.so"));
        let learnt = self.scratch.path().join("learnt");
        fs::create_dir_all(&learnt).expect("made");
        let given = fs::read_to_string(module.with_extension("toml")).expect("written");
        // Which commands it may run is no function's name: a person says that.
        let group = given.find("[group]").map_or("", |at| &given[at..]);
        fs::write(module.with_extension("toml"), group).expect("written");
        let modules = [self.bridged(&module)];
        let server = self.server_with(&[("MULLION_WORD_LEARN", &learnt)], "walled", &modules, &[]);
        assert_eq!(server.run(script), expected, "{name} learns");
        server.run("SHUTDOWN NOSAVE\n");
        drop(server);
        let trace = self.scratch.path().join(format!("{name}.mmt"));
        let variables = [
            ("MULLION_WORD_POLICIES", learnt.as_path()),
            ("MULLION_WORD_TRACE", trace.as_path()),
        ];
        let mut server = self.server_with(&variables, "walled", &modules, &[]);
        assert_eq!(
            server.run(script),
            expected,
            "{name} with what it has learnt"
        );
        server.run("SHUTDOWN NOSAVE\n");
        let _ended = server.child.wait();
        let traced = fs::metadata(&trace).expect("the server has written it");
        assert!(traced.len() > 100, "{name}: {} bytes", traced.len());
    }

    /// What a native module has saved, a walled one loads, and the other way round: by a copy of the process each time.
    pub(crate) fn values_are_saved_and_loaded(&self) {
        let (source, name) = (self.source("src/modules/hellotype"), "hellotype");
        let native = self.native(&source, name, &[]).display().to_string();
        let walled = self.walled(&source, name, &self.policy(name), &[]);
        let ways = [native, self.bridged(&walled)];
        for (saves, loads) in [(0, 1), (1, 0)] {
            let script: String = (0..2000)
                .map(|number| format!("HELLOTYPE.INSERT k{} {number}\n", number % 7))
                .collect();
            let server = self.server("saved", &ways[saves..=saves], &["--appendonly", "no"]);
            server.run("FLUSHALL\n");
            server.run(&script);
            let expected = server.run("HELLOTYPE.RANGE k3 0 1000\n");
            server.run("BGSAVE\n");
            while server
                .ask("INFO persistence")
                .contains("rdb_bgsave_in_progress:1")
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(
                server
                    .ask("INFO persistence")
                    .contains("rdb_last_bgsave_status:ok")
            );
            drop(server);
            let server = self.server("saved", &ways[loads..=loads], &[]);
            assert_eq!(server.run("HELLOTYPE.RANGE k3 0 1000\n"), expected);
            // Scheduled, if another copy of the process is at work.
            let said = server.run("BGREWRITEAOF\n");
            assert!(
                said.contains("started") || said.contains("scheduled"),
                "{said}"
            );
            let works = |said: &str| {
                said.contains("aof_rewrite_in_progress:1")
                    || said.contains("aof_rewrite_scheduled:1")
            };
            let said = loop {
                let said = server.ask("INFO persistence");
                if !works(&said) {
                    break said;
                }
                std::thread::sleep(Duration::from_millis(5));
            };
            assert!(said.contains("aof_last_bgrewrite_status:ok"), "{said}");
        }
        println!("values are saved and loaded with and without the wall");
    }

    /// Values of a module that was stopped are in no file: saving fails, and the file of before stays.
    pub(crate) fn a_lost_value_is_not_saved(&self) {
        let policy = "allow = [\"@register\", \"@memory\", \"@strings\", \"@keys\", \"@types\", \"@server\", \"RedisModule_ReplyWithError\", \"RedisModule_ReplyWithLongLong\", \
            \"RedisModule_SignalKeyAsReady\", \"RedisModule_ReplicateVerbatim\"]\n";
        let source = self.source("src/modules/hellotype");
        let module = self.walled(&source, "hellotype", policy, &[]);
        let server = self.server("lost", &[self.bridged(&module)], &[]);
        let saved = |expected: &str| {
            server.run("BGSAVE\n");
            while server
                .ask("INFO persistence")
                .contains("rdb_bgsave_in_progress:1")
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            let said = server.ask("INFO persistence");
            let status = format!("rdb_last_bgsave_status:{expected}");
            assert!(said.contains(&status), "{said}");
        };
        assert_eq!(server.run("HELLOTYPE.INSERT k 5\n"), "1\n");
        saved("ok");
        let stopped = server.run("HELLOTYPE.RANGE k 0 9\n");
        assert!(stopped.contains("the wall stopped hellotype"), "{stopped}");
        saved("err");
        // A new life has no value there, and the key can be deleted.
        let script =
            "mullion.hellotype restart\nHELLOTYPE.INSERT k 6\nDEL k\nHELLOTYPE.INSERT k 6\n";
        let said = server.run(script);
        assert!(
            said.contains("WRONGTYPE") && said.ends_with("1\n1\n"),
            "{said}"
        );
        saved("ok");
    }

    pub(crate) fn what_a_policy_does_not_name_is_refused(&self) {
        let source = self.source("src/modules/helloworld");
        let policy = "allow = [\"@register\", \"@strings\", \"@replies\", \"@keys\", \"@call\"]\n[group]\ncommands = [\"RPUSH\"]\n";
        let module = self.walled(&source, "helloworld", policy, &[]);
        let server = self.server("refused", &[self.bridged(&module)], &[]);
        let said = server.run("HELLO.SIMPLE\nPING\n");
        let expected =
            "a call of RedisModule_GetSelectedDb, which `allow = [\"RedisModule_GetSelectedDb\"]`";
        assert!(
            said.contains(expected) && said.ends_with("PONG\n"),
            "{said}"
        );
        drop(server);
        let text = policy
            .replace("RPUSH", "GET")
            .replace("\"@keys\"", "\"@keys\", \"@server\"");
        fs::write(module.with_extension("toml"), text).expect("written");
        let server = self.server("refused", &[self.bridged(&module)], &[]);
        let said = server.run("HELLO.PUSH.CALL l x\nPING\n");
        let expected = "the command RPUSH, which `commands = [\"RPUSH\"]` in [group] of its policy would allow";
        assert!(
            said.contains(expected) && said.ends_with("PONG\n"),
            "{said}"
        );
    }
}
