//! Large vectors whose pages change hands: that they do, that nobody else can touch them, and that all of them come
//! back whoever dies or has no room for them. This program is the host and, run again, each of its domains; so it has a
//! `main` of its own.

#[path = "../../../language/sip/tests/host/mod.rs"]
mod host;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use host::host;
use mullion_hip::{Launch, Member, Notice, Output, Sharing, enter, launch, on_notice};
use mullion_sip::channel::Contract;
use mullion_sip::exchange::census;
use mullion_sip::process::names::NameError;
use mullion_sip::process::{Cause, Child, Exit, Limits, Options, Program, Rights};
use mullion_sip::process::{open, serve, spawn};
use mullion_sip::{ExVec, contract};
use mullion_sip_hosting::Start;
use mullion_sip_hosting::common_memory;
use rustix::process::{Pid, Signal, kill_process};

contract! {
    #[endless]
    mod talk {
        Ask: client {
            Back(ExVec<u64>) -> Answer,
            /// To the service with that number, and back.
            Onwards((u64, ExVec<u64>)) -> Answer,
            Sum(ExVec<u64>) -> Answer,
            /// A new one, of so many numbers.
            Make(u64) -> Answer,
            /// Where the service had the last vector that it has given away, or dropped.
            Touch -> Answer,
            /// Until Linux has no more mappings for it.
            Exhaust -> Answer,
            /// Sends the middle one of three that lie beside each other.
            Middle -> Answer
        }
        Answer: server { Vector(ExVec<u64>) -> Ask, Number(u64) -> Ask }
    }
}

#[global_allocator]
static HEAPS: mullion_sip::heap::ProcessHeaps = mullion_sip::heap::ProcessHeaps;

type Client = talk::Client<talk::Ask>;

/// Numbers in a mebibyte.
const MEBI: usize = (1 << 20) / 8;

fn path(service: u64) -> String {
    format!("/service/{service}")
}

/// A process that serves its number's name for ever.
fn service(number: u64) {
    let service = serve(&path(number), talk::Contract::INFO).expect("free");
    loop {
        if let Ok(end) = talk::Server::<talk::Ask>::from_any(service.accept()) {
            let _ = mullion_sip::thread::spawn(move || answer(end));
        }
    }
}

fn sum(numbers: &[u64]) -> u64 {
    numbers.iter().copied().fold(0, u64::wrapping_add)
}

fn answer(mut end: talk::Server<talk::Ask>) {
    let mut last = std::ptr::null::<u64>();
    while let Ok(message) = end.recv() {
        use talk::AskMessage as Ask;
        let next = match message {
            Ask::Back(vector, end) => {
                last = vector.as_ptr();
                end.vector(vector)
            }
            Ask::Onwards((to, vector), end) => {
                let Some((vector, _)) = client(to).and_then(|next| back(next, vector)) else {
                    return;
                };
                end.vector(vector)
            }
            Ask::Sum(vector, end) => {
                let total = sum(&vector);
                last = vector.as_ptr();
                drop(vector);
                end.number(total)
            }
            Ask::Make(count, end) => end.vector((0..count).collect()),
            // SAFETY: none: this is the test of a process that does what no safe code can.
            Ask::Touch(end) => end.number(unsafe { last.read_volatile() }),
            Ask::Exhaust(end) => end.number(exhaust()),
            Ask::Middle(end) => {
                let [one, two, three] = [1, 2, 3].map(|value| filled(MEBI, value));
                let middle = [one.as_ptr(), two.as_ptr(), three.as_ptr()];
                let beside = middle[0].wrapping_add(MEBI) == middle[1]
                    && middle[1].wrapping_add(MEBI) == middle[2];
                assert!(beside, "{middle:?}");
                exhaust();
                end.vector(two)
            }
        };
        let Ok(next) = next else { return };
        end = next;
    }
}

/// Splits mappings until there can be no more, and gives how many.
fn exhaust() -> u64 {
    const PAGES: usize = 1 << 18;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: new memory, which nobody uses.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), PAGES << 12, 0, kind, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        let refused = (0..PAGES / 2)
            .position(|page| libc::mprotect(at.byte_add(page << 13), 4096, libc::PROT_READ) != 0);
        refused.expect("a bound") as u64
    }
}

fn filled(count: usize, value: u64) -> ExVec<u64> {
    ExVec::copy_of(&vec![value; count])
}

fn client(service: u64) -> Option<Client> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let (client, server) = talk::channel().expect("memory");
        match open(&path(service), server.into_any()) {
            Ok(()) => return Some(client),
            Err((NameError::Unbound, _)) if Instant::now() < deadline => {
                mullion_sip::wait::park_until(Instant::now() + Duration::from_millis(2));
            }
            Err(_) => return None,
        }
    }
}

/// The vector of the answer.
fn vector(asked: Option<talk::Client<talk::Answer>>) -> Option<(ExVec<u64>, Client)> {
    match asked?.recv().ok()? {
        talk::AnswerMessage::Vector(vector, client) => Some((vector, client)),
        talk::AnswerMessage::Number(..) => None,
    }
}

/// The number of the answer.
fn number(asked: Option<talk::Client<talk::Answer>>) -> Option<(u64, Client)> {
    match asked?.recv().ok()? {
        talk::AnswerMessage::Number(number, client) => Some((number, client)),
        talk::AnswerMessage::Vector(..) => None,
    }
}

fn back(client: Client, sent: ExVec<u64>) -> Option<(ExVec<u64>, Client)> {
    vector(client.back(sent).ok())
}

/// A client within a domain that sends vectors of 200,000 numbers to the first service until one of the two ends.
fn sender(_: u64) {
    let mut client = client_of(1);
    let mut numbers = filled(200_000, 3);
    while let Some((came, next)) = back(client, numbers) {
        assert_eq!(sum(&came), 600_000);
        (numbers, client) = (came, next);
    }
}

fn load(configuration: &str, _: Vec<OwnedFd>) -> Result<Vec<Member>, String> {
    let number: u64 = configuration.parse().map_err(|_| "no number".to_owned())?;
    let main: fn(u64) = if number == 0 { sender } else { service };
    Ok(vec![Member {
        name: configuration.into(),
        begin: Box::new(move || {
            // SAFETY: it keeps nothing anywhere.
            let program = unsafe { Program::new("member", main) };
            let limits = Limits {
                exchange: u64::MAX,
                ..Limits::default()
            };
            let options = Options {
                rights: Rights::all(),
                limits,
                ..Options::default()
            };
            spawn(program, number, &options)
        }),
    }])
}

/// A domain with the service of that number, or a sender.
fn domain(number: u64, share: Option<Sharing>) -> Child {
    let launched = launch(&Launch {
        name: format!("domain{number}"),
        configuration: number.to_string(),
        files: Vec::new(),
        workers: 1,
        processor: None,
        share,
        rights: Rights::all(),
        output: Output::Inherited,
        program: None,
    });
    launched.expect("a domain")
}

fn remapped(number: u64) -> Child {
    domain(number, Some(Sharing::Remapped))
}

fn ended(child: Child) -> Exit {
    child.kill();
    child.wait()
}

static NOTICES: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn faults() -> Vec<String> {
    std::mem::take(&mut *NOTICES.lock().expect("whole"))
}

/// Everything comes back.
fn settled(before: u64) {
    let begin = Instant::now();
    loop {
        let (held, blocks) = (common_memory::holders(), census().in_use);
        if held.is_empty() && blocks == before {
            return;
        }
        let late = begin.elapsed() > Duration::from_secs(10);
        assert!(!late, "{held:?}, and {blocks} blocks, not {before}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether Linux lets this OS process read there.
fn readable(at: *const u64) -> bool {
    let (from, to) = std::io::pipe().expect("a pipe");
    // SAFETY: Linux looks whether the memory can be read, and copies it if so; what is in it does not matter.
    let written = unsafe { libc::write(std::os::fd::AsRawFd::as_raw_fd(&to), at.cast(), 8) };
    drop(from);
    written == 8
}

fn there_and_back_onwards_and_dropped() {
    let before = census().in_use;
    let all = [remapped(1), remapped(2)];
    for mebi in [1, 8, 64] {
        let count = mebi * MEBI;
        let came = common_memory::arrived();
        let mut one = client_of(1);
        let mut numbers = filled(count, 5);
        let mut wanted = 5 * count as u64;
        for round in 0..6 {
            // Whoever has it writes.
            numbers[round] += 1;
            wanted += 1;
            let asked = match round % 2 {
                0 => one.back(numbers),
                _ => one.onwards((2, numbers)),
            };
            (numbers, one) = vector(asked.ok()).expect("an answer");
            assert_eq!((numbers.len(), sum(&numbers)), (count, wanted));
        }
        assert_eq!(common_memory::arrived() - came, 6, "{mebi} MiB by number");
        // Dropped by who received it, and made again by its maker, more often than there is room for at once.
        let (mut last, mut places) = (numbers, std::collections::HashSet::new());
        for value in 0..300 / mebi as u64 {
            places.insert(last.as_ptr().addr());
            let sent = sum(&last);
            let (answer, next) = number(one.sum(last).ok()).expect("an answer");
            assert_eq!(answer, sent);
            one = next;
            last = filled(count, value);
        }
        assert!(places.len() <= 3, "{} blocks for one vector", places.len());
        // Theirs, dropped here.
        for _ in 0..3 {
            let (came, next) = vector(one.make(count as u64).ok()).expect("an answer");
            assert!(came.iter().copied().eq(0..count as u64));
            one = next;
        }
    }
    // Smaller ones are copied.
    let came = common_memory::arrived();
    let one = client_of(1);
    drop(back(one, filled(MEBI / 2, 1)).expect("an answer"));
    assert_eq!(common_memory::arrived() - came, 0);
    for child in all {
        ended(child);
    }
    assert_eq!(faults(), Vec::<String>::new());
    settled(before);
}

fn who_has_given_it_away_cannot_touch_it() {
    let before = census().in_use;
    // The host, until it has need of the block again.
    let one = remapped(1);
    let numbers = filled(MEBI, 1);
    let at = numbers.as_ptr();
    assert!(readable(at));
    let (_, asks) = number(client_of(1).sum(ExVec::new()).ok()).expect("it is there");
    let asked = asks.sum(numbers).ok();
    // A worker puts it into the line, on a busy machine some time later; from then on it is closed.
    let begin = Instant::now();
    while readable(at) {
        assert!(begin.elapsed() < Duration::from_secs(10));
        std::thread::yield_now();
    }
    let (_, asks) = number(asked).expect("an answer");
    assert!(!readable(at));
    let numbers = filled(MEBI, 1);
    let at = numbers.as_ptr();
    let (numbers, asks) = back(asks, numbers).expect("an answer");
    assert!(numbers.as_ptr() == at && readable(at));
    // A domain: it ends as by a panic.
    let asked = asks.touch().expect("alive");
    assert!(asked.recv().is_err());
    assert_eq!(one.wait().cause, Cause::Fault);
    // One that has dropped another's make.
    let one = remapped(1);
    let (_, asks) = number(client_of(1).sum(filled(MEBI, 1)).ok()).expect("an answer");
    let asked = asks.touch().expect("alive");
    assert!(asked.recv().is_err());
    assert_eq!(one.wait().cause, Cause::Fault);
    // A third one, which neither has sent it last nor is to get it.
    let (one, two) = (remapped(1), remapped(2));
    let first = client_of(1);
    let (numbers, first) = back(first, numbers).expect("an answer");
    let (numbers, second) = back(client_of(2), numbers).expect("an answer");
    let asked = first.touch().expect("alive");
    assert!(asked.recv().is_err());
    assert_eq!(one.wait().cause, Cause::Fault);
    let (numbers, second) = back(second, numbers).expect("nothing has happened to it");
    assert_eq!(sum(&numbers), MEBI as u64);
    drop((numbers, second));
    assert!(!ended(two).cause.is_success());
    faults();
    settled(before);
}

/// Domains of the other arrangements, and of none, have copies.
fn who_shares_otherwise_has_copies() {
    let before = census().in_use;
    let others = [domain(1, None), domain(2, Some(Sharing::Open)), remapped(3)];
    let came = common_memory::arrived();
    for (service, by_number) in [(1, 0), (2, 0), (3, 1)] {
        let came = common_memory::arrived();
        let client = client(service).expect("bound");
        let (numbers, client) = back(client, filled(2 * MEBI, 4)).expect("an answer");
        assert_eq!(sum(&numbers), 8 * MEBI as u64);
        assert_eq!(
            common_memory::arrived() - came,
            by_number,
            "service {service}"
        );
        // From there to the first and the last one, and back.
        for to in [1, 3] {
            if to != service {
                let asked = client_of(service).onwards((to, filled(2 * MEBI, 4)));
                let (numbers, _) = vector(asked.ok()).expect("an answer");
                assert_eq!(sum(&numbers), 8 * MEBI as u64);
            }
        }
        drop(client);
    }
    assert!(common_memory::arrived() > came);
    for child in others {
        ended(child);
    }
    assert_eq!(faults(), Vec::<String>::new());
    settled(before);
}

fn client_of(service: u64) -> Client {
    client(service).expect("bound")
}

/// Domains die anywhere between two messages, and whatever they have comes back.
fn blocks_come_back_from_domains_that_are_killed() {
    let before = census().in_use;
    let mut seed = 5u32;
    let mut rounds = 0;
    let wanted = std::env::var("REMAPPED_ROUNDS").ok();
    // More by hand.
    let kills = wanted.and_then(|kills| kills.parse().ok()).unwrap_or(16);
    for _ in 0..kills {
        let (server, senders) = (remapped(1), remapped(0));
        let mut end = client(1);
        seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
        let pause = Duration::from_micros(u64::from(seed >> 16) / 2);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(pause);
            for process in domains() {
                // It may have ended.
                let _ = kill_process(process, Signal::KILL);
            }
        });
        let mut numbers = filled(300_000, 1);
        while let Some((came, next)) = end.and_then(|end| back(end, numbers)) {
            assert_eq!(sum(&came), 300_000);
            (numbers, end, rounds) = (came, Some(next), rounds + 1);
        }
        killer.join().expect("no panic");
        ended(server);
        ended(senders);
    }
    println!("{rounds} messages came back");
    // What was sent to the last ones after their ends is found when the next one begins.
    ended(remapped(4));
    faults();
    settled(before);
}

/// The OS processes of all domains. (Linux's lists of children are whole only while none of them ends.)
fn domains() -> Vec<Pid> {
    let all = mullion_hip::groups().domains;
    all.iter()
        .filter_map(|domain| Pid::from_raw(domain.process()?.cast_signed()))
        .collect()
}

/// Linux refuses to open a block to who gets it: the channel is closed, and the domain goes on.
fn who_has_no_mapping_left_gets_none() {
    let before = census().in_use;
    let one = remapped(1);
    let (first, second) = (client_of(1), client_of(1));
    let (exhausted, first) = number(first.exhaust().ok()).expect("an answer");
    assert!(exhausted > 1000, "{exhausted}");
    assert!(back(first, filled(MEBI, 1)).is_none());
    // The host hears of it on another way than its client.
    let begin = Instant::now();
    let said = loop {
        let said = faults();
        if !said.is_empty() || begin.elapsed() > Duration::from_secs(10) {
            break said;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(
        said.len() == 1 && said[0].contains("vm.max_map_count"),
        "{said:?}"
    );
    let (total, second) = number(second.sum(filled(100, 2)).ok()).expect("it goes on");
    assert_eq!(total, 200);
    drop(second);
    ended(one);
    settled(before);
}

/// Linux refuses to open a block to who makes it: it is made elsewhere, and copied.
fn who_has_no_mapping_left_makes_none() {
    let before = census().in_use;
    let one = remapped(1);
    let came = common_memory::arrived();
    let (exhausted, client) = number(client_of(1).exhaust().ok()).expect("an answer");
    assert!(exhausted > 1000, "{exhausted}");
    let (numbers, client) = vector(client.make(MEBI as u64).ok()).expect("an answer");
    assert!(numbers.iter().copied().eq(0..MEBI as u64));
    assert_eq!(common_memory::arrived() - came, 0);
    assert_eq!(faults(), Vec::<String>::new());
    drop((numbers, client));
    ended(one);
    settled(before);
}

/// Linux refuses to close a block to who sends it: a copy goes.
fn who_cannot_close_a_block_sends_a_copy() {
    let before = census().in_use;
    let one = remapped(1);
    let came = common_memory::arrived();
    let (numbers, client) = vector(client_of(1).middle().ok()).expect("an answer");
    assert!(numbers.len() == MEBI && numbers.iter().all(|number| *number == 2));
    assert_eq!(common_memory::arrived() - came, 0);
    assert_eq!(faults(), Vec::<String>::new());
    drop((numbers, client));
    ended(one);
    settled(before);
}

/// The memory of a domain that has ended goes back to the system.
fn nothing_is_left_of_a_domain() {
    let one = remapped(1);
    let before = shared_memory();
    let (numbers, client) = vector(client_of(1).make(64 * MEBI as u64).ok()).expect("an answer");
    let used = shared_memory() - before;
    assert!(used >= 64 << 10, "{used} KiB");
    drop((numbers, client));
    ended(one);
    let begin = Instant::now();
    while shared_memory() > before + 1024 {
        let late = begin.elapsed() > Duration::from_secs(10);
        assert!(!late, "{} KiB, not {before}", shared_memory());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kilobytes of the file that all remapped domains have mapped.
fn shared_memory() -> u64 {
    let all = std::fs::read_dir("/proc/self/fd").expect("proc").flatten();
    let common_memory = all.filter_map(|file| {
        let name = std::fs::read_link(file.path()).ok()?;
        name.to_string_lossy()
            .contains("mullion-common_memory")
            .then(|| std::fs::metadata(file.path()).ok())?
    });
    let blocks = common_memory.map(|file| std::os::unix::fs::MetadataExt::blocks(&file));
    blocks.sum::<u64>() / 2
}

fn main() {
    enter(load);
    host().start(Start::default()).expect("workers");
    on_notice(|domain, notice| match notice {
        Notice::Fault(..) | Notice::Malformed(_) => NOTICES
            .lock()
            .expect("whole")
            .push(format!("{domain}: {notice:?}")),
        Notice::Ended(name, exit) if exit.cause == Cause::Panic => {
            println!("{domain}: {name}: {exit:?}");
        }
        _ => {}
    });
    let tests: &[(&str, fn())] = &[
        (
            "there_and_back_onwards_and_dropped",
            there_and_back_onwards_and_dropped,
        ),
        (
            "who_has_given_it_away_cannot_touch_it",
            who_has_given_it_away_cannot_touch_it,
        ),
        (
            "who_shares_otherwise_has_copies",
            who_shares_otherwise_has_copies,
        ),
        (
            "blocks_come_back_from_domains_that_are_killed",
            blocks_come_back_from_domains_that_are_killed,
        ),
        (
            "who_has_no_mapping_left_gets_none",
            who_has_no_mapping_left_gets_none,
        ),
        (
            "who_has_no_mapping_left_makes_none",
            who_has_no_mapping_left_makes_none,
        ),
        (
            "who_cannot_close_a_block_sends_a_copy",
            who_cannot_close_a_block_sends_a_copy,
        ),
        ("nothing_is_left_of_a_domain", nothing_is_left_of_a_domain),
    ];
    let wanted = std::env::args()
        .nth(1)
        .filter(|argument| !argument.starts_with('-'));
    let mut run = 0;
    for (name, test) in tests {
        if wanted.as_deref().is_none_or(|wanted| name.contains(wanted)) {
            println!("test {name}");
            test();
            run += 1;
        }
    }
    println!("test result: ok. {run} passed");
}
