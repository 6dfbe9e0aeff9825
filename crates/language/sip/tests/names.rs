//! The name server, between processes.

mod host;

use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use host::host;
use mullion_sip::channel::{AnyEndpoint, Contract};
use mullion_sip::heap::ProcessHeaps;
use mullion_sip::owner::{self, Owner};
use mullion_sip::process::names::{NAMES, NameError, bind, unbind};
use mullion_sip::process::{BACKLOG, Cause, Child, Options, Program, Rights, open, serve, spawn};
use mullion_sip::{contract, thread};
use mullion_sip_hosting::Start;

#[global_allocator]
static HEAPS: ProcessHeaps = ProcessHeaps;

contract! {
    /// A question.
    pub mod ask { Ask: client { Question(u32) -> Answer } Answer: server { Reply(u32) -> end } }
}

contract! {
    /// Another one.
    pub mod tell { Tell: client { Word(u32) -> end } }
}

const DIGEST: [u8; 32] = ask::Contract::INFO.digest.0;

fn run(main: fn(()), rights: Rights) -> Child {
    // Processes have children by this, too.
    if owner::current() == Owner::HOST {
        let workers = NonZeroUsize::new(1);
        host().start(Start { workers }).expect("a worker");
    }
    // SAFETY: numbers in statics only.
    let program = unsafe { Program::new("names", main) };
    spawn(
        program,
        (),
        &Options {
            rights,
            ..Options::default()
        },
    )
    .expect("a process")
}

fn returned(main: fn(()), rights: Rights) {
    let exit = run(main, rights).wait();
    assert_eq!(exit.cause, Cause::Returned, "{}", exit.message);
}

fn question() -> (ask::Client<ask::Ask>, AnyEndpoint) {
    let (client, server) = ask::channel().expect("memory");
    (client, server.into_any())
}

fn refused(path: &str, end: AnyEndpoint) -> NameError {
    open(path, end).expect_err("refused").0
}

#[test]
fn a_service_is_found_by_who_may_until_it_ends() {
    let server = run(
        |()| {
            let service = serve("/numbers/one", ask::Contract::INFO).expect("permitted");
            assert_eq!(bind("/numbers/one", DIGEST), Err(NameError::Taken));
            assert_eq!(bind("/elsewhere", DIGEST), Err(NameError::NotPermitted));
            assert_eq!(bind("numbers", DIGEST), Err(NameError::Malformed));
            loop {
                let asked = ask::Server::<ask::Ask>::from_any(service.accept()).expect("its own");
                if let Ok(ask::AskMessage::Question(number, server)) = asked.recv() {
                    let _ = server.reply(number + 1);
                }
            }
        },
        Rights::none().bind("/numbers"),
    );
    while !host().names().iter().any(|(path, owner, digest)| {
        path == "/numbers/one" && *owner == server.owner() && *digest == DIGEST
    }) {
        std::thread::yield_now();
    }
    returned(
        |()| {
            let (_, other) = tell::channel().expect("memory");
            assert_eq!(
                refused("/numbers/one", other.into_any()),
                NameError::ContractDiffers
            );
            let (client, end) = question();
            let (error, end) = open("/numbers/two", end).expect_err("nobody is there");
            assert_eq!(error, NameError::Unbound);
            open("/numbers/one", end).expect("permitted");
            let client = client.question(5).expect("taken");
            assert!(matches!(client.recv(), Ok(ask::AnswerMessage::Reply(6))));
            assert_eq!(
                unbind("/numbers/one"),
                Err(NameError::NotPermitted),
                "another's"
            );
        },
        Rights::none().look_up("/"),
    );
    returned(
        |()| {
            assert_eq!(
                refused("/numbers/one", question().1),
                NameError::NotPermitted
            )
        },
        Rights::none().look_up("/number"),
    );
    server.kill();
    server.wait();
    assert_eq!(refused("/numbers/one", question().1), NameError::Unbound);
}

#[test]
fn who_does_not_accept_keeps_few_waiting() {
    returned(
        |()| {
            let service = serve("/busy", ask::Contract::INFO).expect("permitted");
            let mut clients = Vec::new();
            for _ in 0..BACKLOG {
                let (client, end) = question();
                open("/busy", end).expect("room");
                clients.push(client);
            }
            assert_eq!(refused("/busy", question().1), NameError::Busy);
            assert!(service.try_accept().is_some());
            open("/busy", question().1).expect("room again");
        },
        Rights::all(),
    );
}

/// Whoever waits is woken, however many wait, and whoever looks without waiting.
#[test]
fn every_thread_that_accepts_gets_a_client() {
    static ACCEPTED: AtomicU32 = AtomicU32::new(0);
    returned(
        |()| {
            let service = Rc::new(serve("/shared", ask::Contract::INFO).expect("permitted"));
            for _ in 0..3 {
                let service = service.clone();
                let accepts = thread::spawn(move || {
                    drop(service.accept());
                    ACCEPTED.fetch_add(1, Ordering::Relaxed);
                });
                accepts.expect("a thread");
            }
            // They wait.
            thread::sleep(Duration::from_millis(2));
            assert!(service.try_accept().is_none());
            let begin = Instant::now();
            for clients in 1..=3 {
                open("/shared", question().1).expect("room");
                while ACCEPTED.load(Ordering::Relaxed) < clients {
                    assert!(begin.elapsed() < Duration::from_secs(20), "{clients}");
                    thread::sleep(Duration::from_millis(1));
                }
            }
        },
        Rights::all(),
    );
}

/// So nobody accepts at a name that is gone.
#[test]
fn the_name_of_a_service_is_its_own_to_give_up() {
    returned(
        |()| {
            let service = serve("/held", ask::Contract::INFO).expect("permitted");
            assert_eq!(unbind("/held"), Err(NameError::Served));
            open("/held", question().1).expect("it is still there");
            drop(service.accept());
            drop(service);
            assert_eq!(unbind("/held"), Err(NameError::Unbound));
            let again = serve("/held", ask::Contract::INFO).expect("free");
            drop(again);
        },
        Rights::all(),
    );
}

#[test]
fn names_are_limited_and_a_child_gets_no_more_rights() {
    returned(
        |()| {
            for number in 0..NAMES {
                bind(&format!("/many/{number}"), DIGEST).expect("not too many");
            }
            assert_eq!(bind("/many/more", DIGEST), Err(NameError::TooMany));
            unbind("/many/0").expect("its own");
            bind("/many/more", DIGEST).expect("not too many");
            let child = run(
                |()| {
                    assert_eq!(bind("/other", DIGEST), Err(NameError::NotPermitted));
                    bind("/many/children/one", DIGEST).expect("permitted");
                },
                Rights::none().bind("/").bind("/many/children"),
            );
            assert_eq!(child.wait().cause, Cause::Returned);
        },
        Rights::none().bind("/many"),
    );
    assert!(
        !host()
            .names()
            .iter()
            .any(|(path, ..)| path.starts_with("/many"))
    );
}
