//! Messages there and back between two domains, beside a futex and a pipe between two OS processes.
//! `cargo bench -p mullion-hip`. Cycles of the time-stamp counter; medians and minima of batches.

use std::time::{Duration, Instant};

use mullion_hip::{Launch, Member, Output, enter, launch};
use mullion_sip::channel::Contract;
use mullion_sip::process::names::NameError;
use mullion_sip::process::{Child, Options, Program, Rights, open, serve, spawn};
use mullion_sip::{ExVec, Start, contract, start};

contract! {
    #[endless]
    mod echo {
        Ask: client { Byte(u8) -> Answer, Bytes(ExVec<u8>) -> Answer }
        Answer: server { Same(u8) -> Ask, Back(ExVec<u8>) -> Ask }
    }
}

#[global_allocator]
static HEAPS: mullion_sip::heap::ProcessHeaps = mullion_sip::heap::ProcessHeaps;

const BATCHES: usize = 101;

fn cycles() -> u64 {
    // SAFETY: reads a counter.
    unsafe { std::arch::x86_64::_rdtsc() }
}

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

fn byte(client: echo::Client<echo::Ask>) -> echo::Client<echo::Ask> {
    match client.byte(7).expect("alive").recv() {
        Ok(echo::AnswerMessage::Same(_, client)) => client,
        _ => panic!("no answer"),
    }
}

/// Measures, and prints: `pause` microseconds between two messages, so that the peer sleeps if there are any.
fn ask(pause: u64) {
    let mut end = client();
    let rounds = if pause > 0 { 20 } else { 500 };
    let wait = |pause: u64| {
        if pause > 0 {
            mullion_sip::thread::sleep(Duration::from_micros(pause));
        }
    };
    let mut times = Vec::new();
    for _ in 0..BATCHES {
        let mut taken = 0;
        for _ in 0..rounds {
            wait(pause);
            let begin = cycles();
            end = byte(end);
            taken += cycles() - begin;
        }
        times.push(taken / rounds);
    }
    row("1 byte", &mut times);
    for size in [1 << 10, 32 << 10] {
        let mut bytes = ExVec::copy_of(&vec![1u8; size]);
        let rounds = rounds / 5;
        for time in &mut times {
            let mut taken = 0;
            for _ in 0..rounds {
                wait(pause);
                let begin = cycles();
                let Ok(echo::AnswerMessage::Back(back, next)) =
                    end.bytes(bytes).expect("alive").recv()
                else {
                    panic!("no answer")
                };
                (end, bytes) = (next, back);
                taken += cycles() - begin;
            }
            *time = taken / rounds;
        }
        row(&format!("{} KiB", size >> 10), &mut times);
    }
}

fn row(what: &str, times: &mut [u64]) {
    times.sort_unstable();
    println!("| {what} | {} | {} |", times[times.len() / 2], times[0]);
}

fn load(configuration: &str) -> Result<Vec<Member>, String> {
    let (name, argument) = configuration
        .split_once(' ')
        .unwrap_or((configuration, "0"));
    let argument: u64 = argument.parse().map_err(|_| "no number".to_string())?;
    let main: fn(u64) = match name {
        "answer" => answer,
        "ask" => ask,
        _ => |_| mullion_sip::wait::park(),
    };
    Ok(vec![Member {
        name: name.into(),
        begin: Box::new(move || {
            // SAFETY: the programs keep nothing anywhere.
            let program = unsafe { Program::new("member", main) };
            let rights = Rights::all();
            spawn(
                program,
                argument,
                &Options {
                    rights,
                    ..Options::default()
                },
            )
        }),
    }])
}

fn started(configuration: &str) -> Child {
    launch(&Launch {
        name: configuration.replace(' ', "-"),
        configuration: configuration.into(),
        workers: 1,
        rights: Rights::all(),
        output: Output::Inherited,
        program: None,
    })
    .expect("a domain")
}

/// A message there and back through two pipes with another OS process (`cat`), which sleeps in between.
fn pipes() {
    use std::io::{Read, Write};
    let mut cat = std::process::Command::new("cat")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("cat");
    let (mut to, mut from) = (
        cat.stdin.take().expect("a pipe"),
        cat.stdout.take().expect("a pipe"),
    );
    for size in [1usize, 1 << 10, 32 << 10] {
        let mut bytes = vec![1u8; size];
        let mut times: Vec<u64> = (0..BATCHES)
            .map(|_| {
                let begin = cycles();
                for _ in 0..50 {
                    to.write_all(&bytes).expect("cat");
                    from.read_exact(&mut bytes).expect("cat");
                }
                (cycles() - begin) / 50
            })
            .collect();
        row(&format!("{size} bytes"), &mut times);
    }
    drop(to);
    let _ = cat.wait();
}

fn main() {
    enter(load);
    start(Start::default()).expect("workers");
    println!("| there and back | cycles (median) | least |\n| --- | ---: | ---: |");
    for (title, between, pause) in [
        ("two processors, both look", 0, 0),
        ("two processors, both sleep", 0, 1000),
        ("one processor", 1, 0),
    ] {
        println!("| **{title}** | | |");
        let server = started("answer");
        // Each domain gets the next processor.
        let fillers: Vec<Child> = (0..between).map(|_| started("filler")).collect();
        let exit = started(&format!("ask {pause}")).wait();
        assert!(exit.cause.is_success(), "{exit:?}");
        for domain in fillers.iter().chain([&server]) {
            domain.kill();
            domain.wait();
        }
    }
    println!("| **two pipes, through `cat`** | | |");
    pipes();
}
