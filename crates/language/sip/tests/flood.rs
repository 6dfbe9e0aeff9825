//! Hostile safe code that wants more than its share of what processes have in common: messages, endpoints, blocks. Each
//! test counts how far it gets, and would count to `FAR` if there were no limit; afterwards nothing of it is left.

mod host;

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use host::host;
use mullion_sip::channel::{AnyEndpoint, ChannelClosed, Contract};
use mullion_sip::exchange::{Share, census};
use mullion_sip::heap::ProcessHeaps;
use mullion_sip::process::names::NAMES;
use mullion_sip::process::{
    BACKLOG, Cause, Child, Exit, Limits, Options, Program, Rights, open, serve, spawn,
};
use mullion_sip::{ExBox, ExVec, contract};
use mullion_sip_hosting::Start;
use mullion_sip_hosting::{in_use, share};

#[global_allocator]
static HEAPS: ProcessHeaps = ProcessHeaps;

contract! {
    /// Large messages that should be answered.
    #[endless]
    pub mod post {
        Send: client { Block(ExVec<u8>) -> Sent }
        Sent: server { Got -> Send }
    }
}

/// More than any limit below allows.
const FAR: u32 = 100_000;
const SHARE: u64 = 1 << 20;
const BLOCK: usize = 16 << 10;

/// How far the hostile process has got.
static REACHED: AtomicU32 = AtomicU32::new(0);
/// They count blocks of the whole heap, and bind one name.
static ONE: Mutex<()> = Mutex::new(());

fn start(main: fn(())) -> Child {
    let workers = NonZeroUsize::new(1);
    host().start(Start { workers }).expect("a worker");
    let options = Options {
        limits: Limits {
            exchange: SHARE,
            memory: 8 << 20,
            ..Limits::default()
        },
        rights: Rights::all(),
        ..Options::default()
    };
    // SAFETY: they keep numbers in statics, nothing else.
    let program = unsafe { Program::new("flood", main) };
    spawn(program, (), &options).expect("a process")
}

/// Runs it beside a service that accepts whoever comes and never receives, and sees that nothing is left of either.
fn contained(hostile: fn(())) -> (Exit, u32) {
    let _one = ONE.lock();
    let idle = start(|()| {
        let service = serve("/post", post::Contract::INFO).expect("free");
        let mut ends: Vec<AnyEndpoint> = Vec::new();
        loop {
            ends.push(service.accept());
        }
    });
    while host().names().is_empty() {
        std::thread::yield_now();
    }
    let before = census().in_use;
    REACHED.store(0, Ordering::Relaxed);
    let exit = start(hostile).wait();
    idle.kill();
    assert_eq!(idle.wait().cause, Cause::Killed);
    assert_eq!(census().in_use, before, "blocks, ends and messages");
    assert_eq!(in_use(), 0, "bytes of heaps");
    (exit, REACHED.load(Ordering::Relaxed))
}

fn reach() {
    assert!(
        REACHED.fetch_add(1, Ordering::Relaxed) < FAR,
        "there is no limit"
    );
}

/// What nobody has received counts for who has sent it, however many channels it is spread over.
#[test]
fn message_flooding() {
    let (exit, reached) = contained(|()| {
        let mut waiting = Vec::new();
        loop {
            let (client, server) = post::channel().expect("small beside a block");
            let Ok(mut block) = ExVec::<u8>::try_with_capacity(BLOCK) else {
                return;
            };
            block.push(1);
            // The service has to run to take more than its backlog.
            mullion_sip::thread::yield_now();
            open("/post", server.into_any()).expect("it accepts");
            waiting.push(client.block(block).expect("alive"));
            reach();
        }
    });
    assert_eq!(exit.cause, Cause::Returned, "{}", exit.message);
    let most = SHARE / BLOCK as u64;
    assert!(
        (most / 2..=most).contains(&reached.into()),
        "{reached} of {most}"
    );
}

/// A message that is answered costs nothing any more: who is no flood goes on for ever.
#[test]
fn messages_that_are_answered_are_no_flood() {
    let (exit, reached) = contained(|()| {
        let (mut client, mut server) = post::channel().expect("memory");
        for _ in 0..10 * SHARE / BLOCK as u64 {
            let sent = client.block(ExVec::copy_of(&[1; BLOCK])).expect("alive");
            let post::SendMessage::Block(_, end) = server.recv().expect("sent");
            server = end.got().expect("alive");
            let post::SentMessage::Got(end) = sent.recv().expect("sent");
            client = end;
            reach();
        }
    });
    assert_eq!(
        (exit.cause, reached),
        (Cause::Returned, 640),
        "{}",
        exit.message
    );
}

/// Ends that are forgotten count like others, and are closed with their process: a peer hears of it.
#[test]
fn leaking_endpoints() {
    let (exit, reached) = contained(|()| {
        // SAFETY: it keeps nothing.
        let peer = unsafe { Program::new("peer", peer) };
        let (client, server) = post::channel().expect("memory");
        let peer = spawn(peer, server, &Options::default()).expect("a process");
        std::mem::forget((client, peer));
        while let Ok(ends) = post::channel() {
            std::mem::forget(ends);
            reach();
        }
    });
    assert_eq!(exit.cause, Cause::Returned, "{}", exit.message);
    assert!((100..10_000).contains(&reached), "{reached}");
}

fn peer(server: post::Server<post::Send>) {
    // Not told, it would be killed as an orphan; told, it is first.
    assert!(matches!(server.recv(), Err(ChannelClosed)));
}

#[test]
fn forgetting_blocks() {
    let (exit, reached) = contained(|()| {
        while let Ok(block) = ExBox::try_new([7u64; 16]) {
            std::mem::forget(block);
            reach();
        }
    });
    assert_eq!(exit.cause, Cause::Returned, "{}", exit.message);
    assert_eq!(reached, (SHARE / 128) as u32);
}

/// The same of its own heap, which ends it.
#[test]
fn forgetting_memory() {
    let (exit, reached) = contained(|()| {
        loop {
            std::mem::forget(std::hint::black_box(vec![1u8; BLOCK]));
            reach();
        }
    });
    assert_eq!(exit.cause, Cause::Memory);
    assert!((100..=512).contains(&reached), "{reached}");
}

/// Nobody can be made to hold more than a service's backlog by who does not wait for it.
#[test]
fn flooding_a_service_with_channels() {
    let (exit, reached) = contained(|()| {
        let mut clients = Vec::new();
        loop {
            let (client, server) = post::channel().expect("memory");
            if open("/post", server.into_any()).is_err() {
                return;
            }
            clients.push(client);
            reach();
        }
    });
    assert_eq!(exit.cause, Cause::Returned, "{}", exit.message);
    assert_eq!(reached as usize, mullion_sip::process::BACKLOG);
}

/// Binds as many names as there are, and calls the body for each of them and each place in its backlog, until it fails.
fn at_many_names(mut body: impl FnMut(&str) -> Result<(), ()>) {
    let names: Vec<_> = (0..NAMES - 1)
        .map(|number| format!("/flood/{number}"))
        .collect();
    for name in &names {
        std::mem::forget(serve(name, post::Contract::INFO).expect("free"));
        if (0..BACKLOG).any(|_| body(name).is_err()) {
            return;
        }
    }
}

/// Ends that wait at names count for who has given them there, whoever accepts. Meanwhile others work.
#[test]
fn ends_that_wait_at_names() {
    let (exit, reached) = contained(|()| {
        at_many_names(|name| {
            let Ok((_, server)) = post::channel() else {
                // The share is used up, and others have theirs.
                // SAFETY: it keeps nothing.
                let other = unsafe { Program::new("other", other) };
                let options = Options {
                    rights: Rights::all(),
                    ..Options::default()
                };
                let other = spawn(other, (), &options).expect("a process");
                assert_eq!(other.wait().cause, Cause::Returned);
                return Err(());
            };
            open(name, server.into_any()).expect("room");
            reach();
            Ok(())
        });
    });
    assert_eq!(exit.cause, Cause::Returned, "{}", exit.message);
    assert!((100..10_000).contains(&reached), "{reached}");
}

/// Serves, opens and talks.
fn other(_: ()) {
    let service = serve("/other", post::Contract::INFO).expect("free");
    for _ in 0..100 {
        let (client, server) = post::channel().expect("its own share");
        open("/other", server.into_any()).expect("room");
        let server = post::Server::<post::Send>::from_any(service.accept()).expect("its own");
        let sent = client.block(ExVec::copy_of(&[1; BLOCK])).expect("alive");
        let post::SendMessage::Block(_, server) = server.recv().expect("sent");
        let _server = server.got().expect("alive");
        assert!(sent.recv().is_ok());
    }
}

/// What is accepted is the service's, and its giver's share is free again.
#[test]
fn ends_that_are_accepted_count_for_the_service() {
    let (exit, reached) = contained(|()| {
        let service = serve("/flood", post::Contract::INFO).expect("free");
        for _ in 0..20_000 {
            let (_, server) = post::channel().expect("nothing is held");
            open("/flood", server.into_any()).expect("room");
            drop(service.accept());
            reach();
        }
        // And so it is if the name is given up.
        drop(service);
        for _ in 0..100 {
            let service = serve("/flood", post::Contract::INFO).expect("free");
            for _ in 0..BACKLOG {
                let (_, server) = post::channel().expect("nothing is held");
                open("/flood", server.into_any()).expect("room");
            }
            drop(service);
        }
    });
    assert_eq!(exit.cause, Cause::Returned, "{}", exit.message);
    assert_eq!(reached, 20_000);
}

/// Nobody pays for the dead, so few of their ends stay: a backlog in all for the process that does not accept them.
#[test]
fn ends_that_the_dead_have_left_at_names() {
    let (exit, reached) = contained(|()| {
        let before = census().in_use;
        for number in 0..100 {
            std::mem::forget(serve(&format!("/flood/{number}"), post::Contract::INFO));
        }
        for _ in 0..20 {
            // SAFETY: it keeps nothing.
            let child = unsafe { Program::new("child", leave_ends) };
            let options = Options {
                rights: Rights::all(),
                ..Options::default()
            };
            let child = spawn(child, (), &options).expect("a process");
            assert_eq!(child.wait().cause, Cause::Returned);
        }
        let left = census().in_use - before;
        // An end, and its channel.
        assert!(left <= 2 * BACKLOG as u64, "{left} blocks are left");
    });
    assert_eq!(exit.cause, Cause::Returned, "{}", exit.message);
    assert_eq!(reached, 2000);
}

fn leave_ends(_: ()) {
    for number in 0..100 {
        let (_, server) = post::channel().expect("memory");
        if open(&format!("/flood/{number}"), server.into_any()).is_ok() {
            reach();
        }
    }
}

/// The last words of a client that has ended are heard.
#[test]
fn what_the_dead_have_said_at_a_name_is_heard() {
    let (exit, _) = contained(|()| {
        let service = serve("/flood", post::Contract::INFO).expect("free");
        let last_words = |_: ()| {
            let (client, server) = post::channel().expect("memory");
            open("/flood", server.into_any()).expect("room");
            drop(client.block(ExVec::copy_of(&[7])));
        };
        // SAFETY: it keeps nothing.
        let child = unsafe { Program::new("child", last_words) };
        let options = Options {
            rights: Rights::all(),
            ..Options::default()
        };
        let child = spawn(child, (), &options).expect("a process");
        assert_eq!(child.wait().cause, Cause::Returned);
        let server = post::Server::<post::Send>::from_any(service.accept()).expect("its own");
        let post::SendMessage::Block(words, _) = server.recv().expect("sent");
        assert_eq!(words[..], [7]);
    });
    assert_eq!(exit.cause, Cause::Returned, "{}", exit.message);
}

/// At any time an end is its process's, or the name's: whenever the process is killed, none is lost.
#[test]
fn killed_between_an_offer_and_its_acceptance() {
    let _one = ONE.lock();
    let before = census().in_use;
    for round in 0..4000u32 {
        let trader = start(|()| {
            let service = serve("/trade", post::Contract::INFO).expect("free");
            REACHED.store(1, Ordering::Relaxed);
            loop {
                let (_, server) = post::channel().expect("nothing is held");
                open("/trade", server.into_any()).expect("room");
                let (_, server) = post::channel().expect("nothing is held");
                drop(open("/nobody", server.into_any()));
                drop(service.accept());
            }
        });
        while REACHED.swap(0, Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        for _ in 0..round % 500 {
            std::hint::spin_loop();
        }
        trader.kill();
        assert_eq!(trader.wait().cause, Cause::Killed);
    }
    assert_eq!(census().in_use, before, "ends and channels");
}

/// A number is used again, and whoever has kept the old owner sees nothing of the new one's.
#[test]
fn the_share_of_the_dead_is_nobodys() {
    let _one = ONE.lock();
    let dead = start(|()| {});
    let owner = dead.owner();
    dead.wait();
    drop(dead);
    REACHED.store(0, Ordering::Relaxed);
    let holder = start(|()| {
        std::mem::forget(ExBox::new([7u64; 16]));
        reach();
        wait_for_ever();
    });
    while REACHED.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(holder.owner().index(), owner.index(), "it is used again");
    assert_eq!(share(holder.owner()).held, 128);
    assert_eq!(share(owner), Share::default());
    holder.kill();
    holder.wait();
}

fn wait_for_ever() {
    loop {
        mullion_sip::wait::park();
    }
}

/// What a large block took of the machine it gives back when it is free, not when somebody needs another one.
#[test]
fn pages_of_large_blocks_go_back_to_the_system() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let resident = || {
        let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux");
        let pages = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok());
        pages.map_or(0, |pages: usize| pages * 4096)
    };
    const LARGE: usize = 64 << 20;
    let before = resident();
    let block = ExVec::copy_of(&vec![1u8; LARGE]);
    let held = resident();
    assert!(held > before + LARGE / 2, "{held} after {before}");
    drop(block);
    let after = resident();
    assert!(after < held - LARGE / 2, "{after} after {held}");
}
