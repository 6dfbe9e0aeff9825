//! Debian's stock `apache2` with its own modules behind the wall, against the same without; and a module that attacks.
//!
//! gcc calls this very program as its assembler and linker, so it has a `main` of its own.

#[path = "server/attacks.rs"]
mod attacks;
#[path = "server/backends.rs"]
mod backends;
#[path = "server/cases.rs"]
mod cases;
#[path = "server/directory.rs"]
mod directory;
#[path = "server/files.rs"]
mod files;
#[path = "server/headers.rs"]
mod headers;
#[path = "server/holes.rs"]
mod holes;
#[path = "server/learn.rs"]
mod learn;
#[path = "server/left.rs"]
mod left;
#[path = "server/overlooked.rs"]
mod overlooked;
#[path = "server/proxies.rs"]
mod proxies;
#[path = "server/reading.rs"]
mod reading;
#[path = "server/rows.rs"]
mod rows;
#[path = "server/running.rs"]
mod running;
#[path = "server/same.rs"]
mod same;
#[path = "server/storages.rs"]
mod storages;
#[path = "server/sweep.rs"]
mod sweep;
#[path = "server/taken.rs"]
mod taken;
#[path = "server/written.rs"]
mod written;

use mullion_apache::{Maker, Module, Outcome, Protection, complete, modules, tool};
use mullion_fetch::{Lock, fetch};
use running::Server;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

const SERVER: &str = "/usr/sbin/apache2";
/// The variable that names a folder of modules. Those that were made by this very program are used again.
const MADE: &str = "MULLION_APACHE_MADE";
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
    let tests: [(&str, Test); 26] = [
        ("rows", rows::each_structure_is_looked_at),
        ("fields", fields_are_where_the_headers_have_them),
        (
            "numbers",
            reading::structures_are_as_large_as_the_headers_have_them,
        ),
        ("same", same::walled_modules_answer_as_stock_ones),
        ("reading", |place| {
            reading::modules_whose_loads_are_checked_answer_as_stock_ones(
                place,
                std::env::args().nth(2).as_deref(),
            );
        }),
        ("spy", reading::what_is_not_a_modules_is_not_read),
        ("cases", |place| {
            cases::cases(place, std::env::args().nth(2).as_deref())
        }),
        ("children", several_children_and_restarts),
        (
            "hostile",
            attacks::attacks_end_as_500_and_the_process_goes_on,
        ),
        ("holes", |place| {
            holes::holes(place, 40);
            holes::without_the_wall(place);
        }),
        ("left", |place| {
            left::what_is_left_does_no_harm(place);
            overlooked::what_rows_overlook_does_no_harm(place);
        }),
        ("written", written::files_are_written_where_the_policy_says),
        ("threads", |place| {
            attacks::what_another_thread_works_with_is_not_ended_nor_used(place);
            taken::the_distance_of_a_field_is_looked_at_and_used_once(place);
            taken::what_is_used_behind_a_request_lives(place);
        }),
        ("twice", attacks::texts_that_change_are_read_once),
        (
            "leaves",
            attacks::a_child_in_which_a_module_stays_stopped_is_replaced,
        ),
        ("sweep", sweep::wrong_arguments_end_no_server),
        ("reads", what_only_reads_is_part_of_a_module),
        ("slow", a_client_that_is_too_slow_is_told_so),
        ("start", a_module_that_is_stopped_at_the_start_is_told_of),
        ("names", |place| {
            names_of_others_are_not_taken(place);
            taken::what_others_offer_is_not_taken(place);
        }),
        (
            "plain",
            attacks::the_same_attacks_end_or_corrupt_a_stock_server,
        ),
        ("storages", storages::storages_do_not_misuse_mod_dav),
        ("proxies", |place| {
            proxies::proxies_and_protocols_do_not_misuse_each_other(place);
            proxies::a_member_that_is_down_is_found_and_left_out(place);
        }),
        ("policy", what_a_policy_does_not_name_is_refused),
        ("learn", learn::a_module_that_learns_leaves_its_policy),
        ("map", learn::a_server_shows_who_may_touch_what),
    ];
    let Some(wanted) = wanted else {
        return all(&tests.map(|(name, _)| name), place.scratch.path());
    };
    if let Some((name, test)) = tests.iter().find(|(name, _)| *name == wanted) {
        test(&place);
        println!("{name}: passed");
    }
    if wanted == "thousand" {
        holes::holes(&place, 1000);
    }
    if wanted == learn::LEARNER {
        learn::learner(&place);
    }
    if wanted == "cost" {
        same::cost(&place);
    }
    ExitCode::SUCCESS
}

/// Runs all parts, two at a time, for much of a part's time is spent in waiting. Each is a process of its own.
fn all(parts: &[&str], scratch: &Path) -> ExitCode {
    let program = std::env::current_exe().expect("a path");
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let work = || {
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begun = Instant::now();
            // Not a pipe: a server that such a process forgets would keep it open.
            let words = scratch.join(format!("{part}.words"));
            let file = File::create(&words).expect("a file");
            let mut command = Command::new(&program);
            command.arg(part).stdin(Stdio::null());
            command.stdout(file.try_clone().expect("a file"));
            command.stderr(file);
            if std::env::var_os(MADE).is_none() {
                command.env(MADE, scratch.join("modules"));
            }
            let status = command.status().expect("this program starts");
            let words = fs::read(&words).unwrap_or_default();
            println!(
                "{}{part}: {status}, {} s",
                String::from_utf8_lossy(&words),
                begun.elapsed().as_secs()
            );
            failed.fetch_or(!status.success(), Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    match failed.into_inner() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
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
        for name in [
            "hostile", "slots", "spy", "storage", "backend", "protocol", "reader",
        ] {
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
        let made = match std::env::var_os(MADE) {
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
        self.walled_by(name, Protection::Write)
    }

    /// The same with stores checked, or loads as well.
    fn walled_by(&self, name: &str, protection: Protection) -> String {
        let module = self.modules.iter().find(|module| module.name == name);
        let module = module.expect("httpd has it");
        let row = self.maker.make(module, protection).expect("tools");
        assert!(
            matches!(row.outcome, Outcome::Verified { .. }),
            "{name}: {:?}",
            row.outcome
        );
        let file = self.maker.place(module, protection);
        let own = here("policies").join(format!("{name}.toml"));
        let policy = match own.is_file() {
            true => own,
            false => here("policies/default.toml"),
        };
        let policy = match name {
            "hostile" => here("tests/hostile/hostile.toml"),
            "spy" => here("tests/spy.toml"),
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
    source.push_str("return sizeof(request_rec) == 736 && sizeof(conn_rec) == 208 && sizeof(module) == 112 && sizeof(command_rec) == 40 && sizeof(cmd_parms) == 120 ? 0 : 1; }\n");
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

/// `mod_reqtimeout` ends a request that does not come in time, and closes its connection.
fn a_client_that_is_too_slow_is_told_so(place: &Place) {
    let answers = [false, true].map(|is_walled| {
        let module = match is_walled {
            true => place.wall() + &place.walled("reqtimeout"),
            false => place.stock("reqtimeout"),
        };
        let lines = format!(
            "{}{module}RequestReadTimeout header=1\n",
            place.stock("mime")
        );
        let server = Server::start(place, &lines, true);
        let mut client = TcpStream::connect(("127.0.0.1", server.port)).expect("it listens");
        let begun = b"GET /page.html HTTP/1.1\r\nHost: localhost\r\n";
        client.write_all(begun).expect("it takes it");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it closes");
        assert_eq!(running::get(server.port, "/page.html", &[]).status, 200);
        let log = server.log();
        assert!(!log.contains("the wall stopped"), "{log}");
        answer.lines().next().unwrap_or_default().to_owned()
    });
    assert_eq!(answers[0], answers[1]);
    assert!(answers[0].contains("408"), "{answers:?}");
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
    let expected = "11 00 1 3 - so 10 0 -1 -1 2 4 whole MATCH_FIRST - MATCH_THIRD of two places";
    assert_eq!(answers[0], answers[1]);
    assert!(
        answers[0].contains(expected),
        "{answers:?}: {}",
        walled.log()
    );
    // Hashes are read in the module, or are asked of the host. Strings and lengths are made in the module.
    for (path, begins) in [
        ("/reader/made", "1 150 0 longer 1 empty - -\n0|-1x|"),
        ("/reader/asked", "0 150 0 longer 1 empty - -\n0|-1x|"),
    ] {
        let answers = [&walled, &stock].map(|server| ask(server, path).body);
        assert_eq!(answers[0], answers[1], "{}", walled.log());
        assert!(answers[0].starts_with(begins), "{answers:?}");
    }
    for attack in [
        "wild",
        "wild-array",
        "wild-hash",
        "wild-brigade",
        "foreign-length",
    ] {
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

/// The core follows what it has kept under a name, and takes filters with certain records for its own. Names of modules are theirs
/// alone, and a filter's name has one owner.
fn names_of_others_are_not_taken(place: &Place) {
    let lines = [place.stock("mime"), place.wall(), place.walled("hostile")].concat();
    for name in ["NAME_OF_DATA", "NAME_OF_LASTING_DATA", "NAME_OF_RETAINED"] {
        let server = Server::start(place, &format!("{lines}Define {name}\n"), false);
        let page = || running::get(server.port, "/page.html", &[]).status;
        assert_eq!(page(), 200, "{name}: {}", server.log());
        let before = processes(&server);
        server.signal(libc::SIGUSR1);
        server.until(|| {
            let now = processes(&server);
            let are_new = !now.is_empty() && now.iter().all(|pid| !before.contains(pid));
            are_new.then_some(())
        });
        assert_eq!(page(), 200, "{name}: {}", server.log());
    }
    for name in [
        "NAME_OF_FILTER",
        "NAME_OF_INPUT_FILTER",
        "NAME_OF_ABSENT_FILTER",
    ] {
        let (status, log) = Server::ends(place, &format!("Define {name}\n{lines}"));
        assert!(!status.success(), "{name}: {log}");
        assert!(
            log.contains("is a filter of another module"),
            "{name}: {log}"
        );
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
