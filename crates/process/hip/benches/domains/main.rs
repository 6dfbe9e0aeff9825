//! Messages there and back between two OS processes: a process of this program, and one of a domain; beside a futex,
//! pipes, a socket pair and a word that both spin on, between two OS processes as well.
//! `cargo bench -p mullion-hip --bench domains -- [--json FILE] [--iceoryx2 PROGRAM] [--large] [--only WHERE]`; `make
//! bench-sip` adds its rows to all others, and builds the program of `bench/iceoryx2`. With `--large`, nothing but large
//! messages is measured; with `--beside ROUNDS`, a byte and a futex in turn on one core, with a busy neighbour and without; with WHERE, the end of a place's name (as "one core, asleep"), nothing but the others there.
//!
//! *Awake*: the next message follows at once, so that neither side has gone to sleep (but Linux's do whenever they
//! wait). *Asleep*: a millisecond passes before each message. Cycles of the time-stamp counter; medians of batches.

mod beside;
mod cores;
#[path = "../../../../language/sip/tests/host/mod.rs"]
mod host;
mod large;
mod linux;
mod row;

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use host::host;
use mullion_hip::{Launch, Member, Output, Sharing, enter, launch};
use mullion_sip::channel::Contract;
use mullion_sip::process::names::NameError;
use mullion_sip::process::{Child, Options, Program, Rights, open, serve, spawn};
use mullion_sip::{ExVec, contract};
use mullion_sip_hosting::Start;
use mullion_sip_hosting::common_memory::arrived;

use cores::Place;
use row::{SIZES, measure};

contract! {
    #[endless]
    mod echo {
        Ask: client { Byte(u8) -> Answer, Small([u8; 32]) -> Answer, Bytes(ExVec<u8>) -> Answer }
        Answer: server { Same(u8) -> Ask, Also([u8; 32]) -> Ask, Back(ExVec<u8>) -> Ask }
    }
}

#[global_allocator]
static HEAPS: mullion_sip::heap::ProcessHeaps = mullion_sip::heap::ProcessHeaps;

fn answer(_: u64) {
    let Ok(service) = serve("/echo", echo::Contract::INFO) else {
        return;
    };
    loop {
        let Ok(mut end) = echo::Server::<echo::Ask>::from_any(service.accept()) else {
            return;
        };
        loop {
            let answered = match end.recv() {
                Ok(echo::AskMessage::Byte(byte, end)) => end.same(byte),
                Ok(echo::AskMessage::Small(bytes, end)) => end.also(bytes),
                Ok(echo::AskMessage::Bytes(bytes, end)) => end.back(bytes),
                Err(_) => break,
            };
            match answered {
                Ok(next) => end = next,
                Err(_) => break,
            }
        }
    }
}

fn client() -> echo::Client<echo::Ask> {
    loop {
        let (client, server) = echo::channel().expect("memory");
        match open("/echo", server.into_any()) {
            Ok(()) => return client,
            Err((NameError::Unbound, _)) => {
                mullion_sip::wait::park_until(Instant::now() + Duration::from_millis(2));
            }
            Err((error, _)) => panic!("{error}"),
        }
    }
}

type Client = echo::Client<echo::Ask>;

fn byte(client: Client) -> Client {
    match client.byte(7).expect("alive").recv() {
        Ok(echo::AnswerMessage::Same(_, client)) => client,
        _ => panic!("no answer"),
    }
}

fn small(client: Client) -> Client {
    match client.small([7; 32]).expect("alive").recv() {
        Ok(echo::AnswerMessage::Also(_, client)) => client,
        _ => panic!("no answer"),
    }
}

/// A process of this program that measures: its argument is the place of a [`Place`], and whether vectors go by pointer.
fn ask(what: u64) {
    let (place, share) = (cores::places()[what as usize >> 1], what & 1 == 1);
    let who = match share {
        true => "SIPs in OS processes, shared heap",
        false => "SIPs in OS processes",
    };
    let sleep = mullion_sip::thread::sleep;
    let mut end = Some(client());
    for size in SIZES {
        let mut bytes = Some(ExVec::copy_of(&vec![1u8; size]));
        measure(who, place, size, sleep, |times| {
            for _ in 0..times {
                let client = end.take().expect("it came back");
                end = Some(match size {
                    1 => byte(client),
                    32 => small(client),
                    _ => {
                        let sent = client.bytes(bytes.take().expect("they came back"));
                        let Ok(echo::AnswerMessage::Back(back, next)) = sent.expect("alive").recv()
                        else {
                            panic!("no answer")
                        };
                        bytes = Some(back);
                        next
                    }
                });
            }
        });
    }
}

fn load(configuration: &str, _: Vec<OwnedFd>) -> Result<Vec<Member>, String> {
    if let Some(members) = large::load(configuration) {
        return Ok(members);
    }
    Ok(vec![Member {
        name: "answer".into(),
        begin: Box::new(|| process(answer, 0)),
    }])
}

fn process(main: fn(u64), argument: u64) -> Result<Child, mullion_sip::process::SpawnError> {
    // SAFETY: the programs keep nothing anywhere.
    let program = unsafe { Program::new("member", main) };
    let options = Options {
        rights: Rights::all(),
        ..Options::default()
    };
    spawn(program, argument, &options)
}

fn domain(place: Place, share: Option<Sharing>) -> Child {
    let launched = launch(&Launch {
        name: "answer".into(),
        configuration: String::new(),
        files: Vec::new(),
        workers: 1,
        processor: Some(place.core as u32),
        share,
        rights: Rights::all(),
        output: Output::Inherited,
        program: None,
    });
    launched.expect("a domain")
}

fn main() -> std::io::Result<()> {
    enter(load);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if linux::peer(&arguments) {
        return Ok(());
    }
    // `cargo test` runs benches too, with other arguments.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).map(String::as_str)
    };
    let only = after("--only").unwrap_or_default();
    // One worker, on the first core.
    host()
        .start(Start {
            workers: std::num::NonZeroUsize::new(1),
        })
        .expect("workers");
    if let Some(rounds) = after("--beside") {
        beside::measure_all(rounds.parse().expect("a number"), only);
        return Ok(());
    }
    let large_only = arguments.iter().any(|argument| argument == "--large");
    let places = cores::places();
    let some = places.iter().enumerate().filter(|_| !large_only);
    for (index, place) in some.filter(|(_, place)| place.name().ends_with(only)) {
        for share in [false, true] {
            let server = domain(*place, share.then_some(Sharing::Open));
            let what = (index as u64) << 1 | u64::from(share);
            let exit = process(ask, what).expect("a process").wait();
            assert!(exit.cause.is_success(), "{exit:?}");
            // By pointer, as the row says: this program shares with whoever is the first to do so.
            assert!(!share || arrived() > 0);
            server.kill();
            server.wait();
        }
        linux::measure_all(*place);
    }
    if let Some(program) = after("--iceoryx2").filter(|_| !large_only) {
        iceoryx2(program)?;
    }
    let large_at = places.iter().find(|place| place.core != 0 && !place.asleep);
    if let Some(place) = large_at.filter(|_| only.is_empty()) {
        large::measure_all(*place);
    }
    print!("{}", row::table());
    if let Some(file) = after("--json") {
        std::fs::write(file, row::json())?;
    }
    Ok(())
}

/// Adds the rows of another program (`bench/iceoryx2`), between the same cores.
fn iceoryx2(program: &str) -> std::io::Result<()> {
    let file = std::env::temp_dir().join(format!("mullion-iceoryx2-{}.json", std::process::id()));
    let mut cores: Vec<_> = cores::places().iter().map(|place| place.core).collect();
    cores.retain(|core| *core != 0);
    cores.dedup();
    cores.truncate(2);
    let done = std::process::Command::new(program)
        .arg("--json")
        .arg(&file)
        .args(cores.iter().map(usize::to_string))
        .status()?;
    if done.success() {
        row::add(&std::fs::read_to_string(&file)?)?;
    } else {
        eprintln!("mullion: {program} failed: its rows are missing");
    }
    // It may not have come to be.
    let _ = std::fs::remove_file(&file);
    Ok(())
}
