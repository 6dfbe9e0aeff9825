//! Channels between processes: on one worker and on two, and what remains when they are ended at any point.

mod host;

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use host::host;
use mullion_sip::channel::ChannelClosed;
use mullion_sip::exchange::{Handles, census};
use mullion_sip::heap::ProcessHeaps;
use mullion_sip::process::{Cause, Child, Home, Options, Program, spawn};
use mullion_sip::{ExBox, ExVec, contract};
use mullion_sip_hosting::Start;
use mullion_sip_hosting::share;

#[global_allocator]
static HEAPS: ProcessHeaps = ProcessHeaps;

contract! {
    mod echo {
        Ask: client { Block(ExVec<u64>) -> Answer, Stop -> end }
        Answer: server { Block(ExVec<u64>) -> Ask }
    }
}

type Client = echo::Client<echo::Ask>;
type Server = echo::Server<echo::Ask>;

/// The census counts everybody's blocks, so tests take turns.
static TURN: Mutex<()> = Mutex::new(());

fn run<T: Handles>(main: fn(T), argument: T, worker: usize) -> Child {
    let workers = NonZeroUsize::new(2);
    host().start(Start { workers }).expect("workers");
    let options = Options {
        home: Home::Worker(worker),
        ..Options::default()
    };
    // SAFETY: the programs below keep nothing beyond themselves.
    spawn(unsafe { Program::new("test", main) }, argument, &options).expect("a process")
}

fn serve(mut server: Server) {
    while let Ok(echo::AskMessage::Block(block, answering)) = server.recv() {
        match answering.block(block) {
            Ok(again) => server = again,
            Err(ChannelClosed) => return,
        }
    }
}

fn ask((mut client, times): (Client, u64)) {
    for number in 0..times {
        let Ok(waiting) = client.block(ExVec::copy_of(&[number; 100])) else {
            return;
        };
        let Ok(echo::AnswerMessage::Block(block, again)) = waiting.recv() else {
            return;
        };
        assert!(block.iter().all(|&value| value == number));
        client = again;
    }
    let _ = client.stop();
}

/// Waits until the blocks of ended processes are back.
fn settled(blocks: u64) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    while census().in_use != blocks && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    census().in_use == blocks
}

#[test]
fn two_processes_talk_on_one_worker_and_on_two() {
    let _turn = TURN.lock();
    let before = census().in_use;
    for worker in [0, 1] {
        let (client, server) = echo::channel().expect("memory");
        let serving = run(serve, server, 0);
        let asking = run(ask, (client, 1000), worker);
        assert_eq!(asking.wait().cause, Cause::Returned);
        assert_eq!(serving.wait().cause, Cause::Returned);
    }
    assert!(settled(before), "{:?}", census());
}

#[test]
fn whoever_is_killed_its_peer_is_told_and_nothing_is_left() {
    let _turn = TURN.lock();
    let before = census().in_use;
    for round in 0..60 {
        let (client, server) = echo::channel().expect("memory");
        let serving = run(serve, server, 0);
        let asking = run(ask, (client, u64::MAX), round % 2);
        std::thread::sleep(Duration::from_micros(50 * (round as u64 % 7)));
        let (killed, other) = if round % 3 == 0 {
            (serving, asking)
        } else {
            (asking, serving)
        };
        killed.kill();
        assert_eq!(killed.wait().cause, Cause::Killed);
        assert_eq!(other.wait().cause, Cause::Returned, "told of the end");
    }
    assert!(settled(before), "{:?}", census());
}

#[test]
fn what_a_process_forgets_is_freed_when_it_ends() {
    let _turn = TURN.lock();
    let before = census().in_use;
    let (client, server) = echo::channel().expect("memory");
    let leaking = run(
        |server: Server| {
            std::mem::forget(server);
            for number in 0..1000 {
                std::mem::forget(ExBox::new([number; 10]));
            }
        },
        server,
        0,
    );
    let waiting = client.block(ExVec::copy_of(&[1])).ok();
    assert!(leaking.wait().cause.is_success());
    if let Some(waiting) = waiting {
        assert!(matches!(waiting.recv(), Err(ChannelClosed)));
    }
    assert!(settled(before), "{:?}", census());
    assert_eq!(share(leaking.owner()).held, 0);
}
