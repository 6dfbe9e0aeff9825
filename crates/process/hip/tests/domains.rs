//! Domains as OS processes: what crosses, what ends, and what they may not. This program is the host and, run
//! again, each of its domains; so it has a `main` of its own.

#[path = "../../../language/sip/tests/host/mod.rs"]
mod host;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use host::host;
use mullion_hip::{Launch, LaunchError, Member, Notice, Output, enter, launch, on_notice};
use mullion_sip::channel::Contract;
use mullion_sip::process::names::NameError;
use mullion_sip::process::{
    Cause, Child, Exit, Options, Policy, Program, Rights, open, serve, spawn, supervise,
};
use mullion_sip::{ExVec, contract};
use mullion_sip_hosting::Start;
use mullion_sip_hosting::common_memory::{self, Sharing};

mod listed;
mod powers;

use listed::{listed, run};

contract! {
    /// A service that answers with its argument, and one more.
    mod ask {
        Ask: client { Question(u32) -> Answer, Bytes(ExVec<u8>) -> Answer, Bye -> end }
        Answer: server { Reply(u64) -> Ask, Back(ExVec<u8>) -> Ask }
    }
}

#[global_allocator]
static HEAPS: mullion_sip::heap::ProcessHeaps = mullion_sip::heap::ProcessHeaps;

/// Bytes that a server keeps, and never frees.
const KEPT: usize = 9_001;

/// Serves `/ask` for ever, in as many threads as there are clients.
fn server(_: u64) {
    let Ok(service) = serve("/ask", ask::Contract::INFO) else {
        mullion_sip::process::exit(9);
    };
    loop {
        let Ok(end) = ask::Server::<ask::Ask>::from_any(service.accept()) else {
            continue;
        };
        let _ = mullion_sip::thread::spawn(move || answer(end));
    }
}

fn answer(mut end: ask::Server<ask::Ask>) {
    loop {
        let next = match end.recv() {
            Ok(ask::AskMessage::Question(13, _)) => panic!("thirteen"),
            Ok(ask::AskMessage::Question(14, _)) => {
                // SAFETY: none: this is the test of a process that does what no safe code can.
                unsafe { std::ptr::null_mut::<u8>().write_volatile(1) };
                return;
            }
            Ok(ask::AskMessage::Question(15, _)) => loop {
                std::hint::spin_loop();
            },
            Ok(ask::AskMessage::Question(number, end)) => end.reply(u64::from(number) + 1),
            Ok(ask::AskMessage::Bytes(bytes, end)) if bytes.len() == KEPT => {
                std::mem::forget(bytes);
                end.reply(1)
            }
            Ok(ask::AskMessage::Bytes(bytes, end)) => end.back(bytes),
            Ok(ask::AskMessage::Bye) | Err(_) => return,
        };
        let Ok(next) = next else { return };
        end = next;
    }
}

/// A client within a domain: asks, and ends with 0 if all was well.
fn client(count: u64) {
    if count == 0 {
        return;
    }
    let end = ask_end("/ask").unwrap_or_else(|error| panic!("{error}"));
    for number in 100..100 + count as u32 {
        assert_eq!(question(&end, number), Some(u64::from(number) + 1));
    }
}

/// Tries what its rights do not cover.
fn trespasser(_: u64) {
    let open = ask_end("/private").err();
    let bind = serve("/elsewhere", ask::Contract::INFO).err();
    assert_eq!(
        (open, bind),
        (Some(NameError::NotPermitted), Some(NameError::NotPermitted))
    );
}

/// A client's end between two questions.
type Cell = std::cell::RefCell<Option<ask::Client<ask::Ask>>>;

/// Opens a name, and waits a while for it to be bound.
fn ask_end(path: &str) -> Result<Cell, NameError> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let (client, server) = ask::channel().expect("memory");
        match open(path, server.into_any()) {
            Ok(()) => return Ok(Cell::new(Some(client))),
            Err((NameError::Unbound, _)) if Instant::now() < deadline => {
                mullion_sip::wait::park_until(Instant::now() + Duration::from_millis(2));
            }
            Err((error, _)) => return Err(error),
        }
    }
}

/// None if the service has gone.
fn question(end: &Cell, number: u32) -> Option<u64> {
    let client = end.borrow_mut().take()?;
    match client.question(number).ok()?.recv().ok()? {
        ask::AnswerMessage::Reply(reply, client) => {
            end.replace(Some(client));
            Some(reply)
        }
        ask::AnswerMessage::Back(..) => None,
    }
}

/// Keeps its worker asleep: a thread of its own holds the lock that it waits for, and never runs meanwhile.
fn lock(_: u64) {
    let lock = Rc::new(Mutex::new(()));
    let held = Rc::clone(&lock);
    let holder = mullion_sip::thread::spawn(move || {
        let _held = held.lock();
        loop {
            mullion_sip::thread::yield_now();
        }
    });
    holder.expect("a thread");
    mullion_sip::thread::yield_now();
    let _never = lock.lock();
}

/// Keeps its worker asleep: another thread of its own is about to initialise what it wants.
fn once(_: u64) {
    let once = Rc::new(OnceLock::new());
    let begun = Rc::clone(&once);
    let initialiser = mullion_sip::thread::spawn(move || {
        begun.get_or_init(|| {
            loop {
                mullion_sip::thread::yield_now();
            }
        });
    });
    initialiser.expect("a thread");
    mullion_sip::thread::yield_now();
    once.get_or_init(|| ());
}

/// Keeps its worker asleep in short pieces.
fn doze(_: u64) {
    loop {
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// What domains can run: `name argument`, one on each line.
fn load(configuration: &str, _: Vec<OwnedFd>) -> Result<Vec<Member>, String> {
    configuration.lines().map(member).collect()
}

fn member(line: &str) -> Result<Member, String> {
    let (name, argument) = line.split_once(' ').unwrap_or((line, "0"));
    let argument: u64 = argument
        .parse()
        .map_err(|_| format!("no number: {argument}"))?;
    let main: fn(u64) = match name {
        "server" => server,
        "client" => client,
        "sender" => sender,
        "trespasser" => trespasser,
        "lock" => lock,
        "once" => once,
        "doze" => doze,
        _ => powers::program(name).ok_or_else(|| format!("no program {name}"))?,
    };
    Ok(Member {
        name: name.into(),
        begin: Box::new(move || {
            // SAFETY: the programs of this test keep nothing anywhere.
            let program = unsafe { Program::new("member", main) };
            let options = Options {
                rights: Rights::all(),
                ..Options::default()
            };
            spawn(program, argument, &options)
        }),
    })
}

fn domain(configuration: &str) -> Launch {
    Launch {
        name: configuration
            .split(['\n', ' '])
            .next()
            .unwrap_or("domain")
            .into(),
        configuration: configuration.into(),
        files: Vec::new(),
        workers: 1,
        processor: None,
        share: None,
        rights: Rights::none().bind("/ask").look_up("/ask"),
        output: Output::Inherited,
        program: None,
    }
}

fn started(configuration: &str) -> Child {
    launch(&domain(configuration)).expect("a domain")
}

static NOTICES: Mutex<Vec<Notice>> = Mutex::new(Vec::new());

fn ended(name: &str) -> Option<Exit> {
    NOTICES
        .lock()
        .expect("whole")
        .iter()
        .rev()
        .find_map(|notice| match notice {
            Notice::Ended(ended, exit) if ended == name => Some(*exit),
            _ => None,
        })
}

fn the_host_talks_to_a_domain() {
    let server = started("server");
    let end = ask_end("/ask").expect("bound");
    for number in 100..2000 {
        assert_eq!(question(&end, number), Some(u64::from(number) + 1));
    }
    let bytes: Vec<u8> = (0..200_000u32).map(|index| index as u8).collect();
    let client = end
        .take()
        .expect("alive")
        .bytes(ExVec::copy_of(&bytes))
        .expect("alive");
    let Ok(ask::AnswerMessage::Back(back, _client)) = client.recv() else {
        panic!("no answer")
    };
    assert_eq!(&*back, &*bytes);
    server.kill();
    assert_eq!(server.wait().cause, Cause::Killed);
}

fn domains_talk_to_each_other() {
    let server = started("server");
    let clients = started("client 500\nclient 300");
    assert_eq!(clients.wait(), Exit::from(Cause::Returned));
    server.kill();
    server.wait();
}

fn processes_of_one_domain_talk_too() {
    let all = started("client 50\nserver");
    while ended("client").is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(
        ended("client").map(|exit| exit.cause),
        Some(Cause::Returned)
    );
    all.kill();
    all.wait();
}

fn a_domain_talks_to_a_process_of_the_host() {
    // SAFETY: the programs of this test keep nothing anywhere.
    let program = unsafe { Program::new("server", server) };
    let options = Options {
        rights: Rights::all(),
        ..Options::default()
    };
    let server = spawn(program, 0, &options).expect("a process");
    assert_eq!(started("client 200").wait(), Exit::from(Cause::Returned));
    server.kill();
    server.wait();
}

/// A domain that shares memory with the others that do.
fn sharing(configuration: &str) -> Child {
    let launched = launch(&Launch {
        share: Some(Sharing::Open),
        ..domain(configuration)
    });
    launched.expect("a domain")
}

/// Large vectors to `/ask` and back, so many times; false if it has gone.
fn exchange(end: &Cell, count: usize, size: usize) -> bool {
    let mut bytes = ExVec::copy_of(&vec![7u8; size]);
    for round in 0..count {
        bytes[round % size] = round as u8;
        let Some(client) = end.borrow_mut().take() else {
            return false;
        };
        let answer = client.bytes(bytes).and_then(|asked| asked.recv());
        let Ok(ask::AnswerMessage::Back(back, client)) = answer else {
            return false;
        };
        assert_eq!((back.len(), back[round % size]), (size, round as u8));
        bytes = back;
        end.replace(Some(client));
    }
    true
}

/// A client within a domain that sends so many vectors of 40,000 bytes.
fn sender(count: u64) {
    let end = ask_end("/ask").unwrap_or_else(|error| panic!("{error}"));
    assert!(exchange(&end, count as usize, 40_000));
}

fn domains_that_share_memory_send_vectors_by_number() {
    let server = sharing("server");
    let before = common_memory::arrived();
    let end = ask_end("/ask").expect("bound");
    assert!(exchange(&end, 300, 40_000) && exchange(&end, 300, 100));
    assert_eq!(
        common_memory::arrived() - before,
        300,
        "small ones are copied"
    );
    assert_eq!(sharing("sender 300").wait(), Exit::from(Cause::Returned));
    // One that does not share gets copies, as ever.
    assert_eq!(started("sender 30").wait(), Exit::from(Cause::Returned));
    drop(end);
    server.kill();
    server.wait();
}

/// Domains die anywhere between two messages, and whatever they have comes back.
fn blocks_come_back_from_domains_that_are_killed() {
    use rustix::process::{Signal, kill_process};
    let before = mullion_sip::exchange::census().in_use;
    let mut seed = 1u32;
    for _ in 0..12 {
        let server = sharing("server");
        let end = ask_end("/ask").expect("bound");
        let senders = sharing("sender 1000000");
        seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
        let pause = Duration::from_micros(u64::from(seed >> 16) / 4);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(pause);
            for process in children() {
                // It may have ended.
                let _ = kill_process(process, Signal::KILL);
            }
        });
        while exchange(&end, 50, 9_000) {}
        drop(end);
        killer.join().expect("no panic");
        for child in [server, senders] {
            child.kill();
            child.wait();
        }
    }
    // The last ones have ended, which is when their blocks are looked for; what was sent to them later is found when
    // the next one begins.
    let last = sharing("client 0");
    last.wait();
    let begin = Instant::now();
    loop {
        let (held, blocks) = (
            common_memory::holders(),
            mullion_sip::exchange::census().in_use,
        );
        if held.is_empty() && blocks == before {
            return;
        }
        let late = begin.elapsed() > Duration::from_secs(10);
        assert!(!late, "{held:?}, and {blocks} blocks, not {before}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// And not only when another domain begins.
fn what_the_dead_had_comes_back_at_once() {
    let server = sharing("server");
    let end = ask_end("/ask").expect("bound");
    let client = end.take().expect("alive");
    let kept = client.bytes(ExVec::copy_of(&[1; KEPT])).expect("alive");
    let Ok(ask::AnswerMessage::Reply(1, client)) = kept.recv() else {
        panic!("no answer")
    };
    assert!(!common_memory::holders().is_empty());
    server.kill();
    server.wait();
    let begin = Instant::now();
    // What stood for it ends first, then Linux ends it.
    while !common_memory::holders().is_empty() {
        let late = begin.elapsed() > Duration::from_secs(20);
        assert!(!late, "{:?}", common_memory::holders());
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(client);
}

fn rights_are_the_hosts_to_look_at() {
    // Its own kernel would let it, by the rights of its processes; the host does not, by those of the domain.
    assert_eq!(started("trespasser").wait(), Exit::from(Cause::Returned));
}

fn every_end_of_a_process_is_the_end_it_would_be() {
    for (number, cause) in [(13, Cause::Panic), (14, Cause::Fault), (15, Cause::Slice)] {
        let server = started("server");
        let end = ask_end("/ask").expect("bound");
        assert_eq!(question(&end, number), None, "{cause:?}");
        let exit = server.wait();
        assert_eq!(exit.cause, cause, "{exit:?}");
        if number == 13 {
            assert!(exit.message.as_str().contains("thirteen"), "{exit:?}");
        }
    }
}

/// Its sibling on that worker, which the sleeper keeps waiting, goes on.
fn nobody_keeps_a_worker_of_a_domain_asleep() {
    for name in ["lock", "once", "doze"] {
        let domain = started(&format!("server\n{name}"));
        let end = ask_end("/ask").expect("bound");
        let begin = Instant::now();
        while ended(name).is_none() {
            let late = begin.elapsed() > Duration::from_secs(60);
            assert!(!late, "{name} keeps its worker asleep");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(ended(name).map(|exit| exit.cause), Some(Cause::Slice));
        assert_eq!(question(&end, 200), Some(201), "{name}");
        domain.kill();
        domain.wait();
    }
}

/// OS processes of domains that run.
fn children() -> Vec<rustix::process::Pid> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("proc");
    let read = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).ok();
    let all: String = tasks.flatten().filter_map(read).collect();
    all.split_whitespace()
        .filter_map(|pid| rustix::process::Pid::from_raw(pid.parse().ok()?))
        .collect()
}

fn every_signal_is_an_end_that_peers_and_parent_hear_of() {
    use rustix::process::{Signal, kill_process};
    for (signal, cause) in [
        (Signal::KILL, Cause::Killed),
        (Signal::TERM, Cause::Killed),
        (Signal::HUP, Cause::Killed),
        (Signal::INT, Cause::Killed),
        (Signal::USR1, Cause::Killed),
        (Signal::SYS, Cause::Fault),
        // The kernel of processes has handlers for these, which are for what its own processes do.
        (Signal::ABORT, Cause::Abort),
        (Signal::SEGV, Cause::Fault),
        (Signal::BUS, Cause::Fault),
        (Signal::ILL, Cause::Fault),
        (Signal::FPE, Cause::Fault),
        (Signal::TRAP, Cause::Fault),
    ] {
        let server = started("server");
        let end = ask_end("/ask").expect("bound");
        assert_eq!(question(&end, 200), Some(201));
        let waiting = end
            .take()
            .expect("alive")
            .question(1)
            .expect("alive")
            .recv();
        let Ok(ask::AnswerMessage::Reply(2, client)) = waiting else {
            panic!("no answer")
        };
        // Those of tests before may take a moment to be gone.
        let process = loop {
            match children()[..] {
                [process] => break process,
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        kill_process(process, signal).expect("alive");
        let exit = server.wait();
        assert_eq!(exit.cause, cause, "{exit:?}");
        assert!(exit.message.as_str().contains("signal"), "{exit:?}");
        // The client has heard, or hears; it does not hang.
        if let Ok(client) = client.question(2) {
            assert!(client.recv().is_err());
        }
        assert_eq!(
            open("/ask", ask::channel().expect("memory").1.into_any())
                .err()
                .map(|error| error.0),
            Some(NameError::Unbound)
        );
    }
}

/// In the environment of this program: it is a host that does nothing but to have a domain.
const ONLY_HOST: &str = "MULLION_TEST_ONLY_HOST";

/// A host with one domain, which is said; it is killed then.
fn only_host() {
    let server = started("server");
    println!("{}", children()[0].as_raw_nonzero());
    server.wait();
}

/// Whatever the domain does: this one is stopped, so it cannot see that its host is no more.
fn a_domain_ends_with_its_host() {
    use rustix::process::{Pid, Signal, kill_process, test_kill_process};
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let program = std::env::current_exe().expect("this one");
    let mut host = Command::new(program)
        .env(ONLY_HOST, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("a host");
    let mut said = String::new();
    let output = host.stdout.take().expect("piped");
    BufReader::new(output).read_line(&mut said).expect("said");
    let domain = Pid::from_raw(said.trim().parse().expect("a number")).expect("not 0");
    kill_process(domain, Signal::STOP).expect("alive");
    host.kill().expect("alive");
    host.wait().expect("killed");
    // Nobody may have waited for it yet.
    let dead = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", domain.as_raw_nonzero()));
        test_kill_process(domain).is_err() || status.is_ok_and(|text| text.contains("State:\tZ"))
    };
    let begin = Instant::now();
    while !dead() {
        if begin.elapsed() > Duration::from_secs(10) {
            kill_process(domain, Signal::KILL).expect("alive");
            panic!("it has outlived its host");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn a_domain_is_started_again_by_policy() {
    let mut lives = 0;
    let policy = Policy::OnFailure {
        first: Duration::from_millis(1),
        most: Duration::from_millis(5),
    };
    let exit = supervise(policy, || {
        lives += 1;
        Ok(match lives {
            1 | 2 => started("abort"),
            _ => started("client 0\nclient 0"),
        })
    });
    assert_eq!(
        (exit.map(|exit| exit.cause), lives),
        (Ok(Cause::Returned), 3)
    );
}

fn what_cannot_begin_says_why() {
    match launch(&domain("nonsense")) {
        Err(LaunchError::Failed(reason)) => assert_eq!(reason, "no program nonsense"),
        other => panic!("{other:?}"),
    }
    let mut missing = domain("server");
    missing.program = Some("/nowhere/at/all".into());
    assert!(matches!(launch(&missing), Err(LaunchError::System(_))));
    missing.program = Some("/bin/true".into());
    assert!(matches!(launch(&missing), Err(LaunchError::Ended(_))));
}

fn no_power_is_left() {
    let host = std::process::id();
    for name in powers::NAMES {
        let exit = started(&format!("{name} {host}")).wait();
        assert_eq!(exit.cause, Cause::Fault, "{name}: {exit:?}");
        let said = exit.message.as_str();
        assert!(
            said.starts_with("signal 31: a system call"),
            "{name}: {said}"
        );
    }
}

/// As Linux shows it to the host, of each thread.
fn no_thread_of_a_domain_has_a_capability_or_is_without_the_filter() {
    let server = started("server");
    let process = loop {
        match children()[..] {
            [process] => break process.as_raw_nonzero(),
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("alive");
    let threads: Vec<_> = threads.flatten().collect();
    // The first, a worker, the watch, and those that talk to the host.
    assert!(threads.len() >= 5, "{threads:?}");
    for thread in threads {
        let status = std::fs::read_to_string(thread.path().join("status")).expect("alive");
        let none = "0000000000000000";
        for line in [
            format!("CapInh:\t{none}"),
            format!("CapPrm:\t{none}"),
            format!("CapEff:\t{none}"),
            format!("CapAmb:\t{none}"),
            "NoNewPrivs:\t1".into(),
            "Seccomp:\t2".into(),
        ] {
            assert!(status.lines().any(|one| one == line), "{line}: {status}");
        }
    }
    server.kill();
    server.wait();
}

/// Signals of a terminal go to groups of OS processes, so a domain has one of its own. A processor is shared out by
/// sessions first, so a domain is in its host's: else to give the processor away would not give it to the host.
fn a_domain_is_in_a_group_of_its_own_and_in_the_session_of_its_host() {
    let server = started("server");
    let process = loop {
        match children()[..] {
            [process] => break process,
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    assert_eq!(rustix::process::getpgid(Some(process)), Ok(process));
    // Not by `getsid`: where the session's leader is in another name space of processes (a container, say), its number
    // is 0, and rustix takes no such number.
    let session = |process: &str| -> i32 {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        // Behind the name: state, parent, group, session.
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        fields.split(' ').nth(3).unwrap().parse().unwrap()
    };
    assert_eq!(
        session(&process.as_raw_nonzero().to_string()),
        session("self")
    );
    // Where Linux has such groups, they are the same.
    let group = |process: &str| std::fs::read_to_string(format!("/proc/{process}/autogroup")).ok();
    assert_eq!(group(&process.as_raw_nonzero().to_string()), group("self"));
    server.kill();
    server.wait();
}

/// Those that only root can leave are left: this program is run again as nobody.
fn nor_under_a_user_who_is_not_root() {
    use std::os::unix::process::CommandExt;
    if !rustix::process::getuid().is_root() {
        return no_power_is_left();
    }
    let again = std::process::Command::new("/proc/self/exe")
        .arg("no_power_is_left")
        .current_dir("/")
        .uid(65534)
        .gid(65534)
        .output()
        .expect("run again");
    let said = String::from_utf8_lossy(&again.stdout);
    assert!(again.status.success(), "{again:?}");
    assert!(said.contains("ok. 1 passed"), "{again:?}");
}

/// A host whose standard output is a file that it also reads, with a line of its own in it, and one domain.
fn host_with_a_file(configuration: &str) -> String {
    use std::io::{Read, Seek, SeekFrom, Write};
    let memory = rustix::fs::memfd_create("output", rustix::fs::MemfdFlags::CLOEXEC);
    let mut file = std::fs::File::from(memory.expect("a file"));
    writeln!(file, "the host's line").expect("written");
    let same = || file.try_clone().expect("a descriptor");
    let mut host = std::process::Command::new("/proc/self/exe")
        .env(ONLY_HOST, configuration)
        .stdout(same())
        .stderr(same())
        .spawn()
        .expect("a host");
    assert!(host.wait().expect("ended").success());
    let mut said = String::new();
    file.seek(SeekFrom::Start(0)).expect("a place");
    file.read_to_string(&mut said).expect("text");
    said
}

fn no_domain_reaches_what_the_host_has_said() {
    for name in ["seek_output", "seek_errors"] {
        let said = host_with_a_file(&format!("{name} 0"));
        assert!(said.starts_with("the host's line\n"), "{name}: {said}");
        assert!(
            said.contains("Fault") && !said.contains("was answered"),
            "{name}: {said}"
        );
    }
    for name in powers::OWN {
        let said = host_with_a_file(&format!("{name} 0"));
        assert!(said.contains("Returned"), "{name}: {said}");
    }
}

fn all_that_a_domain_says_is_passed_on_before_its_end() {
    let said = host_with_a_file("speaker");
    let mut lines = said.lines().filter(|line| *line != "and an error");
    assert_eq!(lines.next(), Some("the host's line"));
    for line in 0..powers::LINES {
        let wanted = format!("line {line} of what a domain says");
        assert_eq!(lines.next(), Some(wanted.as_str()));
    }
    assert!(lines.next().is_some_and(|line| line.contains("Returned")));
    assert!(said.contains("\nand an error\n"));
}

fn nothing_is_inherited() {
    // Without close-on-exec, as a library in C would leave it.
    let leaked = std::fs::File::open("/etc/passwd").expect("a file");
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).expect("a descriptor");
    assert_eq!(started("inherited").wait(), Exit::from(Cause::Returned));
}

fn main() {
    enter(load);
    host().start(Start::default()).expect("workers");
    match std::env::var(ONLY_HOST).ok().as_deref() {
        Some("1") => return only_host(),
        Some(configuration) => return println!("{:?}", started(configuration).wait()),
        None => {}
    }
    on_notice(|_, notice| NOTICES.lock().expect("whole").push(notice.clone()));
    run(listed![
        the_host_talks_to_a_domain,
        domains_talk_to_each_other,
        processes_of_one_domain_talk_too,
        a_domain_talks_to_a_process_of_the_host,
        domains_that_share_memory_send_vectors_by_number,
        blocks_come_back_from_domains_that_are_killed,
        what_the_dead_had_comes_back_at_once,
        rights_are_the_hosts_to_look_at,
        every_end_of_a_process_is_the_end_it_would_be,
        nobody_keeps_a_worker_of_a_domain_asleep,
        every_signal_is_an_end_that_peers_and_parent_hear_of,
        a_domain_ends_with_its_host,
        a_domain_is_started_again_by_policy,
        what_cannot_begin_says_why,
        no_power_is_left,
        nor_under_a_user_who_is_not_root,
        no_thread_of_a_domain_has_a_capability_or_is_without_the_filter,
        a_domain_is_in_a_group_of_its_own_and_in_the_session_of_its_host,
        no_domain_reaches_what_the_host_has_said,
        all_that_a_domain_says_is_passed_on_before_its_end,
        nothing_is_inherited,
    ]);
}
