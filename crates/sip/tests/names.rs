//! The name server, between processes.

use std::any::Any;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mullion_sip::heap::ProcessHeaps;
use mullion_sip::process::names::{NAMES, NameError, Offer, bind, bound, connect, unbind};
use mullion_sip::process::{Cause, Child, Handover, Options, Program, Rights, spawn};
use mullion_sip::{Start, thread};

#[global_allocator]
static HEAPS: ProcessHeaps = ProcessHeaps;

const DIGEST: [u8; 32] = [7; 32];
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Takes numbers but 0.
struct Numbers;

// SAFETY: it holds nothing.
unsafe impl Handover for Numbers {}

impl Offer for Numbers {
    fn digest(&self) -> [u8; 32] {
        DIGEST
    }

    fn connect(&mut self, end: &mut dyn Any) -> bool {
        let number = end
            .downcast_mut::<Option<u64>>()
            .and_then(|end| end.take_if(|number| *number != 0));
        TAKEN.store(number.unwrap_or(0), Ordering::SeqCst);
        number.is_some()
    }
}

fn run(main: fn(()), rights: Rights) -> Child {
    mullion_sip::start(Start {
        workers: NonZeroUsize::new(1),
    })
    .expect("a worker");
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

#[test]
fn a_service_is_found_by_who_may_until_it_ends() {
    let server = run(
        |()| {
            bind("/numbers/one", Numbers).expect("permitted");
            assert_eq!(bind("/numbers/one", Numbers), Err(NameError::Taken));
            assert_eq!(bind("/elsewhere", Numbers), Err(NameError::NotPermitted));
            assert_eq!(bind("numbers", Numbers), Err(NameError::Malformed));
            thread::sleep(Duration::from_secs(1000));
        },
        Rights::none().bind("/numbers"),
    );
    while !bound().iter().any(|(path, owner, digest)| {
        path == "/numbers/one" && *owner == server.owner() && *digest == DIGEST
    }) {
        std::thread::yield_now();
    }
    returned(
        |()| {
            let mut end = Some(5u64);
            assert_eq!(
                connect("/numbers/one", [8; 32], &mut end),
                Err(NameError::ContractDiffers)
            );
            assert_eq!(
                connect("/numbers/two", DIGEST, &mut end),
                Err(NameError::Unbound)
            );
            assert_eq!(
                connect("/numbers/one", DIGEST, &mut Some(0u64)),
                Err(NameError::Busy)
            );
            assert_eq!(
                connect("/numbers/one", DIGEST, &mut "not a number"),
                Err(NameError::Busy)
            );
            assert_eq!(end, Some(5));
            assert_eq!(connect("/numbers/one", DIGEST, &mut end), Ok(()));
            assert_eq!(end, None);
            assert_eq!(
                unbind("/numbers/one"),
                Err(NameError::NotPermitted),
                "another's"
            );
        },
        Rights::none().look_up("/"),
    );
    assert_eq!(TAKEN.load(Ordering::SeqCst), 5);
    returned(
        |()| {
            let refused = connect("/numbers/one", DIGEST, &mut Some(5u64));
            assert_eq!(refused, Err(NameError::NotPermitted));
        },
        Rights::none().look_up("/number"),
    );
    server.kill();
    server.wait();
    assert_eq!(
        connect("/numbers/one", DIGEST, &mut Some(5u64)),
        Err(NameError::Unbound)
    );
}

#[test]
fn names_are_limited_and_a_child_gets_no_more_rights() {
    returned(
        |()| {
            for number in 0..NAMES {
                bind(&format!("/many/{number}"), Numbers).expect("not too many");
            }
            assert_eq!(bind("/many/more", Numbers), Err(NameError::TooMany));
            unbind("/many/0").expect("its own");
            bind("/many/more", Numbers).expect("not too many");
            let child = run(
                |()| {
                    assert_eq!(bind("/other", Numbers), Err(NameError::NotPermitted));
                    bind("/many/children/one", Numbers).expect("permitted");
                },
                Rights::none().bind("/").bind("/many/children"),
            );
            assert_eq!(child.wait().cause, Cause::Returned);
        },
        Rights::none().bind("/many"),
    );
    assert!(!bound().iter().any(|(path, ..)| path.starts_with("/many")));
}
