//! Processes and channels together: the two halves of the crate meet.

mod host;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use host::host;
use mullion_sip::channel::{ChannelClosed, Contract as _};
use mullion_sip::heap::ProcessHeaps;
use mullion_sip::process::names::NameError;
use mullion_sip::process::{self, Cause, Child, Home, Limits, Options, Program, Rights, spawn};
use mullion_sip::{ExVec, contract, thread};
use mullion_sip_hosting::Start;

#[global_allocator]
static HEAPS: ProcessHeaps = ProcessHeaps;

contract! {
    /// Bytes there, their number back.
    mod count {
        Give: client { Bytes(ExVec<u8>) -> Answer, Bye -> end }
        Answer: server { Number(u64) -> Give }
    }
}

type Server = count::Server<count::Give>;
type Client = count::Client<count::Give>;

fn serve(mut server: Server) {
    while let Ok(count::GiveMessage::Bytes(bytes, answering)) = server.recv() {
        match answering.number(bytes.len() as u64) {
            Ok(next) => server = next,
            Err(_) => return,
        }
    }
}

fn served(main: fn(Server), home: usize, exchange: u64) -> (Client, Child) {
    host()
        .start(Start {
            workers: NonZeroUsize::new(2),
        })
        .expect("workers");
    let (client, server) = count::channel().expect("memory");
    // SAFETY: the servers of this file keep numbers in statics, nothing else.
    let program = unsafe { Program::new("server", main) };
    let limits = Limits {
        exchange,
        ..Limits::default()
    };
    let options = Options {
        home: Home::Worker(home),
        limits,
        ..Options::default()
    };
    let child = spawn(program, server, &options).expect("a process");
    (client, child)
}

#[test]
fn a_process_serves_the_host() {
    for home in [0, 1] {
        let (mut client, child) = served(serve, home, 1 << 20);
        for length in 0..1000 {
            let answer = client
                .bytes(ExVec::copy_of(&vec![1; length]))
                .expect("alive");
            let count::AnswerMessage::Number(number, next) = answer.recv().expect("alive");
            assert_eq!(number, length as u64);
            client = next;
        }
        client.bye().expect("alive");
        assert_eq!(child.wait().cause, Cause::Returned);
    }
}

#[test]
fn a_killed_peer_is_a_closed_channel_and_never_a_hang() {
    let mains = [
        |_kept| {
            thread::sleep(Duration::from_secs(1000));
        },
        |_kept| {
            panic!("on purpose");
        },
        std::mem::forget,
    ] as [fn(Server); 3];
    let pauses = [
        Duration::ZERO,
        Duration::from_micros(50),
        Duration::from_millis(5),
    ];
    for (main, pause) in mains
        .into_iter()
        .flat_map(|main| pauses.map(|pause| (main, pause)))
    {
        let (client, child) = served(main, 1, 1 << 20);
        // It may have run or not.
        std::thread::sleep(pause);
        child.kill();
        let answer = client
            .bytes(ExVec::copy_of(b"anybody?"))
            .map(|answer| answer.recv());
        assert!(matches!(answer, Err(_) | Ok(Err(ChannelClosed))));
        let owner = child.owner();
        child.wait();
        assert_eq!(mullion_sip_hosting::share(owner).held, 0);
    }
}

#[test]
fn blocks_that_a_process_forgets_come_back() {
    static KEPT: AtomicU32 = AtomicU32::new(0);
    let (_client, child) = served(
        |_| {
            let mut refused = false;
            while !refused {
                match ExVec::<u8>::try_with_capacity(4096) {
                    Ok(block) => std::mem::forget(block),
                    Err(_) => refused = true,
                }
                KEPT.fetch_add(1, Ordering::Relaxed);
            }
        },
        0,
        1 << 20,
    );
    let owner = child.owner();
    assert_eq!(child.wait().cause, Cause::Returned);
    assert!(
        (200..=257).contains(&KEPT.load(Ordering::Relaxed)),
        "{KEPT:?}"
    );
    assert_eq!(mullion_sip_hosting::share(owner).held, 0);
}

#[test]
fn a_service_is_reached_by_its_name() {
    fn server(_: ()) {
        let service = process::serve("/count", count::Contract::INFO).expect("permitted");
        for _ in 0..2 {
            let server = Server::from_any(service.accept()).expect("this contract");
            let served = thread::spawn(move || serve(server));
            served.expect("a thread");
        }
        thread::sleep(Duration::from_millis(20));
    }
    fn client(_: ()) {
        let (mut client, server) = count::channel().expect("memory");
        let mut end = server.into_any();
        while let Err((error, back)) = process::open("/count", end) {
            assert_eq!(error, NameError::Unbound);
            end = back;
            thread::sleep(Duration::from_millis(1));
        }
        for length in [0, 3, 5000] {
            let answer = client
                .bytes(ExVec::copy_of(&vec![1; length]))
                .expect("alive");
            let count::AnswerMessage::Number(number, next) = answer.recv().expect("alive");
            assert_eq!(number, length as u64);
            client = next;
        }
        client.bye().expect("alive");
    }
    host()
        .start(Start {
            workers: NonZeroUsize::new(2),
        })
        .expect("workers");
    let all = [(server as fn(()), 0), (client, 0), (client, 1)].map(|(main, home)| {
        // SAFETY: these keep nothing in statics.
        let program = unsafe { Program::new("service", main) };
        let options = Options {
            home: Home::Worker(home),
            rights: Rights::all(),
            ..Options::default()
        };
        spawn(program, (), &options).expect("a process")
    });
    for process in all {
        let exit = process.wait();
        assert_eq!(exit.cause, Cause::Returned, "{}", exit.message);
        assert_eq!(mullion_sip_hosting::share(process.owner()).held, 0);
    }
}
