//! What code pays that knows no types: the same operations by number, through the kernel's table.

use std::hint::black_box;
use std::mem::MaybeUninit;

use mullion_sip::channel::Contract;
use mullion_sip::contract;
use mullion_sip::kernel::{Argument, kernel};
use mullion_sip::process::Program;

use crate::kernel::{BATCHES, in_process, of};
use crate::row::measure;

contract! {
    /// A byte there and back.
    #[endless]
    pub mod byte {
        There: client { Ping(u8) -> Back }
        Back: server { Pong(u8) -> There }
    }
}

const NAME: &str = "/bench/number";
const NOW: u64 = 0;

pub(crate) fn run() {
    crate::host::host().offer_contract(byte::Contract::INFO);
    // SAFETY: it does nothing.
    crate::host::host().offer_program(unsafe { Program::new("by-number", |_: Argument| ()) });
    in_process(calls, (), 0).wait();
}

/// The table's calls are given places and bytes of this thread's stack, as many as they say.
fn calls(_: ()) {
    let table = black_box(kernel());
    let digest = byte::Contract::INFO.digest.0;
    let mut contract = 0;
    // SAFETY: the digest has 32 bytes, and the place of the answer is this thread's.
    let found = unsafe { (table.contract)(digest.as_ptr(), &mut contract) };
    assert_eq!(found, 0);
    let channel = || {
        let (mut client, mut server) = (0, 0);
        // SAFETY: both places are this thread's.
        let made = unsafe { (table.create_channel)(contract, &mut client, &mut server) };
        assert_eq!(made, 0);
        (client, server)
    };
    measure(
        of("channel by number, made and closed"),
        BATCHES,
        1_000,
        |times| {
            for _ in 0..times {
                let (client, server) = channel();
                (table.close)(client);
                (table.close)(server);
            }
        },
    );
    let (client, server) = channel();
    let move_one = |from, to, message| {
        let (mut number, mut byte, mut length) = (0, 7u8, 0);
        // SAFETY: a message of one byte is read from `byte` and written to it; all places are this thread's.
        unsafe {
            (table.send)(from, message, &byte, 1);
            (table.receive)(to, NOW, &mut number, &mut byte, 1, &mut length)
        }
    };
    measure(
        of("send-receive by number").bytes(1),
        BATCHES,
        500,
        |times| {
            for _ in 0..times {
                assert_eq!(move_one(client, server, 0), 0);
                assert_eq!(move_one(server, client, 1), 0);
            }
        },
    );
    measure(
        of("name bind and unbind by number"),
        BATCHES,
        200,
        |times| {
            for _ in 0..times {
                // SAFETY: the name is as long as is said.
                unsafe {
                    assert_eq!((table.bind)(NAME.as_ptr(), NAME.len(), contract), 0);
                    assert_eq!((table.unbind)(NAME.as_ptr(), NAME.len()), 0);
                }
            }
        },
    );
    measure(of("statistics by number"), BATCHES, 1_000, |times| {
        let mut statistics = MaybeUninit::uninit();
        for _ in 0..times {
            // SAFETY: the place has room for the structure and is this thread's.
            assert_eq!(unsafe { (table.statistics)(0, statistics.as_mut_ptr()) }, 0);
        }
        black_box(statistics);
    });
    let (name, mut program) = ("by-number", 0);
    // SAFETY: the name is as long as is said, and the place is this thread's.
    let found = unsafe { (table.program)(name.as_ptr(), name.len(), &mut program) };
    assert_eq!(found, 0);
    measure(
        of("process by number, made, run, ended and waited for"),
        BATCHES,
        64,
        |times| {
            let mut children = [0; 64];
            let mut end = MaybeUninit::uninit();
            let children = &mut children[..times as usize];
            // SAFETY: the places of the numbers and of the end are this thread's, and the program takes no argument.
            unsafe {
                for child in &mut *children {
                    assert_eq!(
                        (table.create_process)(program, std::ptr::null(), 0, 0, child),
                        0
                    );
                }
                for child in children {
                    assert_eq!((table.wait)(*child, u64::MAX, end.as_mut_ptr()), 0);
                }
            }
        },
    );
}
