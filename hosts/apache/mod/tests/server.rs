//! Debian's stock `apache2` with its own modules behind the wall, against the same without; and a module that attacks.
//!
//! gcc calls this very program as its assembler and linker, so it has a `main` of its own.

#[path = "server/backends.rs"]
mod backends;
#[path = "server/cases.rs"]
mod cases;
#[path = "server/directory.rs"]
mod directory;
#[path = "server/files.rs"]
mod files;
#[path = "server/holes.rs"]
mod holes;
#[path = "server/learn.rs"]
mod learn;
#[path = "server/rows.rs"]
mod rows;
#[path = "server/running.rs"]
mod running;
#[path = "server/same.rs"]
mod same;

use mullion_apache::{Maker, Module, Outcome, Protection, complete, modules, tool};
use mullion_fetch::{Lock, fetch};
use running::Server;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const SERVER: &str = "/usr/sbin/apache2";
const MODULES: &str = "/usr/lib/apache2/modules";

type Test = fn(&Place);

fn main() -> ExitCode {
    if let Some(done) = tool() {
        return done;
    }
    let needed = [SERVER, "/usr/include/apache2/httpd.h"];
    if needed.iter().any(|file| !Path::new(file).is_file()) {
        let missing = "httpd is not here (Debian's packages apache2-bin and apache2-dev)";
        println!("skipped: {missing}");
        assert!(
            std::env::var_os("MULLION_REQUIRE_APACHE").is_none(),
            "{missing}"
        );
        return ExitCode::SUCCESS;
    }
    let place = Place::new();
    let wanted = std::env::args().nth(1);
    let tests: [(&str, Test); 15] = [
        ("rows", |_| rows::each_structure_is_looked_at()),
        ("fields", fields_are_where_the_headers_have_them),
        ("same", same::walled_modules_answer_as_stock_ones),
        ("cases", |place| {
            cases::cases(place, std::env::args().nth(2).as_deref())
        }),
        ("children", several_children_and_restarts),
        ("hostile", attacks_end_as_500_and_the_process_goes_on),
        ("holes", |place| {
            holes::holes(place, 40);
            holes::without_the_wall(place);
        }),
        (
            "threads",
            what_another_thread_works_with_is_not_ended_nor_used,
        ),
        (
            "leaves",
            a_child_in_which_a_module_stays_stopped_is_replaced,
        ),
        ("reads", what_only_reads_is_part_of_a_module),
        ("start", a_module_that_is_stopped_at_the_start_is_told_of),
        ("plain", the_same_attacks_end_or_corrupt_a_stock_server),
        ("policy", what_a_policy_does_not_name_is_refused),
        ("learn", learn::a_module_that_learns_leaves_its_policy),
        ("map", learn::a_server_shows_who_may_touch_what),
    ];
    for (name, test) in tests {
        if wanted.as_deref().is_none_or(|wanted| wanted == name) {
            test(&place);
            println!("{name}: passed");
        }
    }
    if wanted.as_deref() == Some("thousand") {
        holes::holes(&place, 1000);
    }
    if wanted.as_deref() == Some(learn::LEARNER) {
        learn::learner(&place);
    }
    if wanted.as_deref() == Some("cost") {
        same::cost(&place);
    }
    ExitCode::SUCCESS
}

/// Where modules are made and servers run.
struct Place {
    scratch: tempfile::TempDir,
    tree: PathBuf,
    maker: Maker,
    modules: Vec<Module>,
    library: PathBuf,
}

/// The files of a module of the tests': one, or those of a folder.
fn own_files(name: &str) -> Vec<PathBuf> {
    let Ok(folder) = fs::read_dir(here(&format!("tests/{name}"))) else {
        return vec![here(&format!("tests/{name}.c"))];
    };
    let files = folder.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|end| end == "c"))
        .collect();
    files.sort();
    files
}

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

impl Place {
    fn new() -> Place {
        let lock =
            Lock::parse(include_str!("../../../../sysroot/sources.toml")).expect("a lock file");
        let tree = fetch(lock.source("apache").expect("it is listed")).expect("httpd's source");
        let mut modules = modules(&tree).expect("a tree");
        complete(&mut modules, &lock).expect("libraries of modules");
        for name in ["hostile", "slots", "reader"] {
            modules.push(Module {
                name: name.to_owned(),
                files: own_files(name),
            });
        }
        // The others of these call the host for all that they read.
        if let Some(reader) = modules.last_mut() {
            reader.files.push(mullion_apache::reads());
        }
        let scratch = tempfile::tempdir().expect("a temporary directory");
        // The server's children are another user.
        let all = fs::Permissions::from_mode(0o755);
        fs::set_permissions(scratch.path(), all).expect("ours");
        // Modules that were made by this very program are used again.
        let made = match std::env::var_os("MULLION_APACHE_MADE") {
            Some(folder) => PathBuf::from(folder),
            None => scratch.path().join("modules"),
        };
        let maker = Maker::new(&tree, &modules, &made).expect("headers");
        let program = std::env::current_exe().expect("a path");
        let deps = program.parent().expect("a folder");
        let folders = [deps.to_path_buf(), deps.join("..")];
        let libraries = folders.map(|folder| folder.join("libmod_mullion.so"));
        let library = libraries.into_iter().find(|library| library.is_file());
        Place {
            tree,
            scratch,
            maker,
            modules,
            library: library.expect("Cargo builds the library with its tests"),
        }
    }

    /// The line that loads a module behind the wall.
    fn walled(&self, name: &str) -> String {
        let module = self.modules.iter().find(|module| module.name == name);
        let module = module.expect("httpd has it");
        let row = self.maker.make(module, Protection::Write).expect("tools");
        assert!(
            matches!(row.outcome, Outcome::Verified { .. }),
            "{name}: {:?}",
            row.outcome
        );
        let file = self.maker.place(module, Protection::Write);
        let own = here("policies").join(format!("{name}.toml"));
        let policy = match own.is_file() {
            true => own,
            false => here("policies/default.toml"),
        };
        let policy = match name {
            "hostile" => here("tests/hostile/hostile.toml"),
            _ => policy,
        };
        format!(
            "MullionLoadModule {name}_module {} {}\n",
            file.display(),
            policy.display()
        )
    }

    /// The line that loads Debian's own, or one without the wall if Debian has none.
    fn stock(&self, name: &str) -> String {
        let own = format!("{MODULES}/mod_{name}.so");
        match Path::new(&own).is_file() {
            true => format!("LoadModule {name}_module {own}\n"),
            false => {
                let module = self.modules.iter().find(|module| module.name == name);
                self.compile(name, &module.expect("httpd has it").files)
            }
        }
    }

    fn wall(&self) -> String {
        format!("LoadModule mullion_module {}\n", self.library.display())
    }

    /// A module of ours, as any other module is made.
    fn native(&self, name: &str) -> String {
        self.compile(name, &own_files(name))
    }

    fn compile(&self, name: &str, files: &[PathBuf]) -> String {
        let to = self.scratch.path().join(format!("mod_{name}.so"));
        let mut gcc = Command::new("gcc");
        gcc.args([
            "-O2",
            "-w",
            "-shared",
            "-fPIC",
            "-D_GNU_SOURCE",
            "-DLINUX",
            "-D_REENTRANT",
            "-DWITHOUT_WALL",
        ]);
        gcc.args(["-I/usr/include/apache2", "-I/usr/include/apr-1.0"]);
        let module = self.modules.iter().find(|module| module.name == name);
        let folders = module
            .into_iter()
            .flat_map(|module| &module.files)
            .filter_map(|file| file.parent());
        folders.for_each(|folder| {
            gcc.arg("-I").arg(folder);
        });
        gcc.args(["-DLUA_COMPAT_5_2", "-DLUA_USE_POSIX"]);
        let plain = files
            .iter()
            .filter(|file| **file != mullion_apache::reads());
        gcc.args(plain).arg("-lm").arg("-o").arg(&to);
        assert!(gcc.status().expect("gcc starts").success());
        format!("LoadModule {name}_module {}\n", to.display())
    }
}

fn fields_are_where_the_headers_have_them(place: &Place) {
    let table = include_str!("../src/fields.txt");
    let mut source = String::from("#include <stdio.h>\n#include <stddef.h>\n");
    for header in [
        "httpd",
        "http_config",
        "util_filter",
        "apr_tables",
        "apr_buckets",
        "ap_listen",
        "scoreboard",
    ] {
        source.push_str(&format!("#include \"{header}.h\"\n"));
    }
    source.push_str("int main(void) {\n");
    for line in table.lines() {
        let name = line.split(' ').next().expect("a name");
        let (structure, field) = name.split_once('.').expect("a field");
        source.push_str(&format!(
            "printf(\"{name} %zu %zu\\n\", offsetof({structure}, {field}), sizeof((({structure} *)0)->{field}));\n"
        ));
    }
    source.push_str("return sizeof(request_rec) == 736 && sizeof(conn_rec) == 208 && sizeof(module) == 112 && sizeof(command_rec) == 40 ? 0 : 1; }\n");
    let file = place.scratch.path().join("fields.c");
    let program = place.scratch.path().join("fields");
    fs::write(&file, source).expect("written");
    let mut gcc = Command::new("gcc");
    gcc.args([
        "-w",
        "-D_GNU_SOURCE",
        "-DLINUX",
        "-I/usr/include/apache2",
        "-I/usr/include/apr-1.0",
    ]);
    assert!(
        gcc.arg(&file)
            .arg("-o")
            .arg(&program)
            .status()
            .expect("gcc starts")
            .success()
    );
    let output = Command::new(&program).output().expect("it starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), table);
    assert!(output.status.success(), "the sizes of structures");
}

/// The event MPM with three children: each has a table of its own, and a graceful restart reads modules anew.
fn several_children_and_restarts(place: &Place) {
    let lines = format!(
        "{}{}{}{}StartServers 3\nServerLimit 3\nThreadsPerChild 8\nMaxRequestWorkers 24\n\
         ExpiresActive on\nExpiresDefault \"access plus 1 hour\"\n\
         <Location /hostile>\nSetHandler hostile\n</Location>\n",
        place.wall(),
        place.walled("expires"),
        place.walled("hostile"),
        place.stock("mime"),
    );
    let server = Server::start(place, &lines, false);
    // A server answers before all have begun.
    let before = server.until(|| Some(processes(&server)).filter(|all| all.len() == 3));
    let threads: Vec<_> = (0..6)
        .map(|_| {
            let port = server.port;
            std::thread::spawn(move || {
                for _ in 0..40 {
                    let answer = running::get(port, "/page.html", &[]);
                    let header = answer.header("cache-control");
                    // A request that is in the module itself when another thread stops it gets 500, too.
                    assert!(
                        header == Some("max-age=3600") || answer.status == 500,
                        "{answer:?}"
                    );
                }
            })
        })
        .collect();
    for _ in 0..10 {
        // The module may be in a call of another thread, and then it is not called again at once.
        assert_eq!(
            running::get(server.port, "/hostile/scoreboard", &[]).status,
            500
        );
    }
    for thread in threads {
        thread.join().expect("all requests are answered");
    }
    assert_eq!(processes(&server), before);
    server.signal(libc::SIGUSR1);
    server.until(|| {
        let now = children(&server);
        now.iter().all(|pid| !before.contains(pid)).then_some(())
    });
    let answer = running::get(server.port, "/page.html", &[]);
    assert_eq!(answer.header("cache-control"), Some("max-age=3600"));
}

/// The server's children.
fn processes(server: &Server) -> Vec<String> {
    let all = fs::read_dir("/proc").expect("a folder").flatten();
    let mut pids: Vec<String> = all
        .filter(|entry| {
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            // Behind the name, which may have anything in it: the state, and the parent.
            let behind = stat.rsplit(')').next().unwrap_or_default();
            behind.split_ascii_whitespace().nth(1) == Some(&server.pid().to_string())
        })
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    pids.sort();
    pids
}

/// The processes that answer.
fn children(server: &Server) -> Vec<String> {
    let mut pids: Vec<String> = (0..60)
        .map(|_| running::get(server.port, "/hostile/pid", &[]).body)
        .filter(|pid| pid.parse::<u32>().is_ok())
        .collect();
    pids.sort();
    pids.dedup();
    pids
}

/// Each attack, and what the error log says of it.
const ATTACKS: [(&str, &str); 87] = [
    ("lock-kept", "Access of 0x10"),
    ("statement-as-pool", "is no pool that the module was given"),
    ("table-nowhere", "is no table"),
    ("table-of-others", "is no table"),
    ("table-empty", "is no table"),
    ("hash-nowhere", "is no hash"),
    ("array-nowhere", "cannot be read"),
    ("array-behind", "cannot be read"),
    ("array-elements", "cannot be read"),
    ("receive", "`conn_rec.pool`"),
    ("unopened", "is no file"),
    ("scoreboard", "Access of"),
    ("configuration", "memory of expires_module"),
    ("freed", "Access of"),
    ("function", "Access of"),
    ("field", "`request_rec.pool`"),
    ("connection", "`conn_rec.pool`"),
    ("null", "Access of 0x10"),
    ("deputy", "`request_rec.pool`"),
    ("buffer", "`conn_rec.pool`"),
    ("table", "is no table"),
    ("hash-called", "is no hash"),
    ("hash-laid-over", "is no hash"),
    ("request-of-its-own", "is no request"),
    ("piped-log", "is no piped log"),
    ("score-elsewhere", "is no place in the scoreboard"),
    ("copied-table", "is no table"),
    ("directive", "is no state of a directive"),
    ("directive-walk", "is no state of this directive"),
    ("directive-pool", "is no pool that the module was given"),
    ("segment-ended", "Access of"),
    ("name-of-others", "which the module may not write"),
    ("table-pool", "is a pool that a call works with"),
    ("table-part", "is a pool that a call works with"),
    ("hash-pool", "is a pool that a call works with"),
    ("list-again", "a call works with the list"),
    ("hook-later", "the server serves already"),
    ("table-above", "is a pool that a call works with"),
    ("pool", "is no pool that the module has made"),
    ("oldpool", "is no pool that the module has made"),
    ("format", "a format with %n"),
    ("exit", "exit: the host does not offer it"),
    ("trap", "Abort"),
    ("loop", "its time is over"),
    ("recurse", "its stack is full"),
    ("allocate", "used up"),
    ("jump", "a call of 0x4141"),
    ("characters", "Access of"),
    ("ring", "in a brigade is no bucket"),
    ("twice", "is in a brigade twice"),
    ("type", "changed into something else"),
    ("longer", "changed into something else"),
    ("elsewhere", "changed into something else"),
    ("forged", "is no bucket"),
    ("freed-bucket", "is no bucket"),
    ("scoreboard", "hostile.c:"),
    ("filter", "Access of"),
    ("insert", "Access of"),
    ("kind", "in a brigade is no bucket"),
    ("bytes", "is no memory of the module's"),
    ("resource", "Access of 0x10"),
    (
        "end-whole",
        "is no part of a request that the module has made",
    ),
    (
        "end-twice",
        "is no part of a request that the module has made",
    ),
    ("end-pool", "is no pool that the module has made"),
    ("end-running", " runs"),
    ("end-ending", "is no pool that the module has made"),
    ("end-first", "is no pool that the module has made"),
    (
        "end-redirected",
        "is no part of a request that the module has made",
    ),
    ("ldap-forged", "is no Directory of the module"),
    ("ldap-answer", "is no Found of the module"),
    ("ldap-option", "the option 0x7005 is not for modules"),
    ("ldap-read", "`request_rec.pool`"),
    ("ldap-rebind", "is no Directory of the module"),
    ("ldap-search", "is no Directory of the module"),
    ("ldap-control", "controls are not passed on"),
    ("page-forged", "is no Parser of the module"),
    ("page-options", "is no Parser of the module"),
    ("page-function", "is no function of the module"),
    ("page-place", "a parser's function 0 is not passed on"),
    ("page-again", "is in use by another call"),
    ("page-length", "a length below zero"),
    ("descriptor", "is no socket of the module"),
    ("file-of-lines", "is no function of the module"),
    ("swap-filter", "is put where a Output"),
    ("swap-forged", "is put where a Output"),
    ("swap-crossed", "is put where a Output"),
    ("swap-socket", "is put where a Socket is"),
];

fn attacked(lines: &str) -> String {
    format!(
        "{lines}ExpiresActive on\nExpiresDefault \"access plus 1 hour\"\n\
         <Location /hostile>\nSetHandler hostile\n</Location>\n"
    )
}

fn attacks_end_as_500_and_the_process_goes_on(place: &Place) {
    let lines = [
        place.stock("mime"),
        place.wall(),
        place.walled("expires"),
        place.walled("hostile"),
    ];
    let access = place.scratch.path().join("access");
    let lines = format!("{}CustomLog {} %r\n", lines.concat(), access.display());
    let mut server = Server::start(place, &attacked(&lines), true);
    let pid = running::get(server.port, "/hostile/pid", &[]).body;
    // A file of keys and values, of which APR has its own kind, is no filter.
    let folder = place.scratch.path().join("open");
    fs::create_dir_all(&folder).expect("made");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("ours");
    let from = server.log().len();
    let path = format!("/hostile/keys-as-filter?{}/keys", folder.display());
    let answer = running::get(server.port, &path, &[]);
    let said = server.log()[from..].to_owned();
    assert_eq!(answer.status, 500, "{answer:?}: {said}");
    assert!(said.contains("is no filter"), "{said}");
    let has_driver = Path::new("/usr/lib/x86_64-linux-gnu/apr-util-1/apr_dbd_sqlite3.so").is_file();
    for (attack, words) in ATTACKS {
        if attack == "statement-as-pool" && !has_driver {
            continue;
        }
        let from = server.log().len();
        let answer = running::get(server.port, &format!("/hostile/{attack}"), &[]);
        assert_eq!(answer.status, 500, "{attack}: {}", server.log());
        let said = server.log()[from..].to_owned();
        assert!(
            said.contains("the wall stopped hostile_module: "),
            "{attack}: {said}"
        );
        assert!(said.contains(words), "{attack}: {said}");
        let page = running::get(server.port, "/page.html", &[]);
        assert_eq!(
            page.header("cache-control"),
            Some("max-age=3600"),
            "behind {attack}"
        );
        let now = running::get(server.port, "/hostile/pid", &[]).body;
        assert_eq!(now, pid, "behind {attack}");
    }
    // What a stopped call had locked, others can lock.
    let answer = running::get(server.port, "/hostile/lock-taken", &[]);
    assert_eq!(answer.body, "0 0", "{answer:?}");
    // APR writes over the format itself, which is another one then.
    for attack in ["format-over", "scan-over"] {
        let answer = running::get(server.port, &format!("/hostile/{attack}"), &[]);
        assert_eq!(answer.body, "as before", "{attack}: {answer:?}");
    }
    // A function of the module's changes what APR goes through: that is what there was before.
    for (attack, much) in [("table-grown", "2"), ("hash-grown", "1")] {
        let answer = running::get(server.port, &format!("/hostile/{attack}"), &[]);
        assert_eq!(answer.body, much, "{attack}: {answer:?}");
    }
    // The core ends a pool, and a function of the module's ends it then, too.
    for attack in ["later", "later-first"] {
        let from = server.log().len();
        let answer = running::get(server.port, &format!("/hostile/{attack}"), &[]);
        assert_eq!(answer.status, 200, "{attack}: {}", server.log());
        server.until(|| {
            let said = server.log()[from..].to_owned();
            said.contains("is no pool that the module has made")
                .then_some(())
        });
        let now = running::get(server.port, "/hostile/pid", &[]).body;
        assert_eq!(now, pid, "behind {attack}");
    }
    // A request that was suspended goes on in another thread. Nobody answers it.
    let from = server.log().len();
    let _waits = running::begin(server.port, "/hostile/swap-later");
    server.until(|| {
        let said = server.log()[from..].to_owned();
        said.contains("is put where a Output").then_some(())
    });
    let now = running::get(server.port, "/hostile/pid", &[]).body;
    assert_eq!(now, pid, "behind swap-later");
    // Where the core asks several modules, those behind the stopped one are asked, too: the one that sends the header, and logs.
    assert_eq!(running::get(server.port, "/hostile/next", &[]).status, 200);
    let answer = running::get(server.port, "/page.html", &[]);
    assert_eq!(answer.status, 500, "{answer:?}");
    let page = running::get(server.port, "/page.html", &[]);
    assert_eq!(page.header("cache-control"), Some("max-age=3600"));
    running::get(server.port, "/hostile/log", &[]);
    let access = place.scratch.path().join("access");
    let access = server.until(|| {
        fs::read_to_string(&access)
            .ok()
            .filter(|text| text.contains("hostile/log"))
    });
    assert_eq!(access.matches("GET /hostile/log").count(), 1, "{access}");
    // What was sent cannot be taken back: the client sees that the rest is missing.
    let cut = running::get(server.port, "/hostile/late", &[]);
    assert_eq!(cut.status, 200, "{cut:?}");
    assert!(cut.body.contains("first"), "{cut:?}");
    assert!(!cut.body.contains("second"), "{cut:?}");
    assert!(!cut.body.ends_with("0\r\n\r\n"), "{cut:?}");
    let now = running::get(server.port, "/hostile/pid", &[]).body;
    assert_eq!(now, pid, "behind an answer that was cut");
    // What the calls had of a list of resources was given back: APR would abort otherwise.
    let ended = server.end();
    assert!(ended.is_ok(), "{ended:?}: {}", server.log());
}

/// The module that attacks, with time enough to wait.
fn patient(place: &Place) -> String {
    let patient = place.scratch.path().join("patient.toml");
    let policy = fs::read_to_string(here("tests/hostile/hostile.toml")).expect("it is there");
    let policy = policy.replace("time = \"500 ms\"", "time = \"60 s\"");
    fs::write(&patient, policy).expect("written");
    let own = here("tests/hostile/hostile.toml").display().to_string();
    let module = place.walled("hostile");
    let module = module.replace(&own, &patient.display().to_string());
    assert!(module.contains("patient.toml"), "{module}");
    module
}

/// One request has a table and waits in a function that APR calls for it. Another one, in another thread, attacks that table.
fn what_another_thread_works_with_is_not_ended_nor_used(place: &Place) {
    let lines = [
        place.stock("mime"),
        place.wall(),
        place.walled("expires"),
        patient(place),
    ];
    let server = Server::start(place, &attacked(&lines.concat()), true);
    let pid = running::get(server.port, "/hostile/pid", &[]).body;
    // Two threads change a table, a hash and a pool at the same time, and wait for each other before. All of it must be there.
    let port = server.port;
    let second = std::thread::spawn(move || running::try_get(port, "/hostile/raced-second", &[]));
    let first = running::try_get(port, "/hostile/raced-first", &[]);
    let second = second.join().expect("it ends");
    let bodies = [&first, &second].map(|answer| answer.as_ref().map(|answer| &answer.body));
    assert!(
        matches!(bodies, [Ok(first), Ok(_)] if first == "80000 80000 80000"),
        "{first:?} {second:?}: {}",
        server.log()
    );
    for (keeps, attack, words) in [
        (
            "keep-merging",
            "use-kept",
            "is in use by another thread's call",
        ),
        (
            "keep-lasting",
            "end-kept",
            "is a pool that a call works with",
        ),
        ("keep-own", "change-kept", "is no table"),
        ("keep-own", "use-kept", "is a pool of another request"),
    ] {
        // Until the thread of the attack before is out of the module, the module's calls end with errors.
        server.until(|| {
            let now = running::get(server.port, "/hostile/is-kept", &[]);
            (now.body == "no").then_some(())
        });
        let from = server.log().len();
        let _waits = running::begin(server.port, &format!("/hostile/{keeps}"));
        server.until(|| {
            let now = running::get(server.port, "/hostile/is-kept", &[]);
            (now.body == "yes").then_some(())
        });
        let answer = running::get(server.port, &format!("/hostile/{attack}"), &[]);
        assert_eq!(answer.status, 500, "{attack}: {}", server.log());
        let said = server.log()[from..].to_owned();
        assert!(said.contains(words), "{attack}: {said}");
        let now = running::get(server.port, "/page.html", &[]);
        assert_eq!(now.header("cache-control"), Some("max-age=3600"));
    }
    let now = server.until(|| {
        let now = running::get(server.port, "/hostile/pid", &[]);
        (now.status == 200).then_some(now.body)
    });
    assert_eq!(now, pid);
}

/// A thread waits in a function of the host for good, and another one stops the module. It cannot begin anew in this child, which takes
/// no more connections; the server starts another one.
fn a_child_in_which_a_module_stays_stopped_is_replaced(place: &Place) {
    let lines = [
        place.stock("mime"),
        place.wall(),
        place.walled("expires"),
        patient(place),
    ];
    let lines = format!(
        "{}StartServers 1\nServerLimit 4\nThreadsPerChild 8\nMaxRequestWorkers 16\nMinSpareThreads 1\nMaxSpareThreads 32\n",
        attacked(&lines.concat())
    );
    let server = Server::start(place, &lines, false);
    let ask = |path: &str| running::get(server.port, path, &[]);
    let first = server.until(|| Some(processes(&server)).filter(|all| all.len() == 1));
    assert_eq!(ask("/hostile/pid").body, first[0]);
    let _waits = running::begin(server.port, "/hostile/wait-for-good");
    server.until(|| (ask("/hostile/is-kept").body == "yes").then_some(()));
    assert_eq!(ask("/hostile/null").status, 500);
    let second = server.until(|| {
        let answer = running::try_get(server.port, "/hostile/pid", &[]).ok()?;
        (answer.status == 200).then_some(answer.body)
    });
    assert_ne!(second, first[0]);
    let said = server.log();
    assert!(said.contains("takes no more connections"), "{said}");
    // The first one has its thread still, and answers nothing new.
    for _ in 0..10 {
        assert_eq!(ask("/hostile/pid").body, second);
        let page = ask("/page.html");
        assert_eq!(page.header("cache-control"), Some("max-age=3600"));
    }
    assert!(processes(&server).contains(&first[0]));
}

/// Functions of APR that only read: with them in itself, a module has what APR answers, and an address that leads nowhere ends
/// its call.
fn what_only_reads_is_part_of_a_module(place: &Place) {
    let lines = |module: String| {
        format!(
            "{}{}{module}<Location /reader>\nSetHandler reader\n</Location>\n",
            place.stock("mime"),
            place.wall()
        )
    };
    let ask = |server: &Server, path: &str| running::get(server.port, path, &[("X-Asked", "so")]);
    let walled = Server::start(place, &lines(place.walled("reader")), true);
    let stock = Server::start(place, &lines(place.native("reader")), true);
    let answers = [&walled, &stock].map(|server| ask(server, "/reader/same").body);
    assert_eq!(
        answers,
        ["11 00 1 3 - so 10 0 -1 -1"; 2],
        "{}",
        walled.log()
    );
    for attack in ["wild", "wild-array"] {
        let from = walled.log().len();
        assert_eq!(ask(&walled, &format!("/reader/{attack}")).status, 500);
        let said = walled.log()[from..].to_owned();
        assert!(
            said.contains("the wall stopped reader_module: ") && said.contains("reads.c:"),
            "{attack}: {said}"
        );
        assert_eq!(ask(&walled, "/reader/same").body, answers[0]);
    }
    let gone = running::try_get(stock.port, "/reader/wild", &[]);
    assert!(gone.is_err(), "{gone:?}");
}

/// The server that reads the configuration has handlers of its own for faults: a stopped module is told of, all the same.
fn a_module_that_is_stopped_at_the_start_is_told_of(place: &Place) {
    let lines = [place.stock("mime"), place.wall(), place.walled("hostile")].concat();
    let (status, log) = Server::ends(place, &format!("{lines}Define HOSTILE\n"));
    assert_eq!(status.code(), Some(1), "{status:?}: {log}");
    assert!(log.contains("the wall stopped hostile_module: "), "{log}");
}

/// Without the wall: the process is gone, or what it answers is not what it was.
fn the_same_attacks_end_or_corrupt_a_stock_server(place: &Place) {
    let lines = [
        place.stock("mime"),
        place.stock("expires"),
        place.native("hostile"),
    ];
    let lines = attacked(&lines.concat());
    for attack in [
        "configuration",
        "function",
        "field",
        "connection",
        "null",
        "table",
        "exit",
        "recurse",
        "ring",
        "type",
        "hash-called",
        "request-of-its-own",
        "piped-log",
        "score-elsewhere",
        "directive",
    ] {
        let mut server = Server::start(place, &lines, true);
        let pid = running::get(server.port, "/hostile/pid", &[]).body;
        let _gone = running::try_get(server.port, &format!("/hostile/{attack}"), &[]);
        let page = running::try_get(server.port, "/page.html", &[]);
        let is_well = page.is_ok_and(|page| page.header("cache-control") == Some("max-age=3600"));
        let now = running::try_get(server.port, "/hostile/pid", &[]);
        let is_same = now.is_ok_and(|now| now.body == pid);
        assert!(
            !(is_well && is_same),
            "{attack} does no harm to a stock server"
        );
        server.stop();
    }
}

fn what_a_policy_does_not_name_is_refused(place: &Place) {
    let module = place.walled("alias");
    let without = module.replace("policies/alias.toml", "policies/default.toml");
    let lines = format!(
        "{}{}{without}Alias /elsewhere {}/htdocs/sub\n",
        place.stock("mime"),
        place.wall(),
        place.scratch.path().display()
    );
    let server = Server::start(place, &lines, true);
    let answer = running::get(server.port, "/elsewhere/index.html", &[]);
    assert_eq!(answer.status, 500);
    let log = server.log();
    assert!(
        log.contains("`request_rec.filename`, which its policy does not name"),
        "{log}"
    );
}
