//! What Linux has between two threads: pipes, socket pairs and a futex.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;

use crate::row::{Row, Where, beside};

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for place in [Where::OneCore, Where::TwoCores] {
        for bytes in [1, 32, 1 << 10, 32 << 10] {
            rows.push(Row::new("pipe", place, bytes, move |times| {
                let (arriving, there) = std::io::pipe().expect("a pipe");
                let (returning, back) = std::io::pipe().expect("a pipe");
                ping_pong(place, bytes, times, (there, returning), (back, arriving));
            }));
        }
        for bytes in [1, 32, 1 << 10, 32 << 10] {
            rows.push(Row::new("socketpair", place, bytes, move |times| {
                let (here, far) = UnixStream::pair().expect("a pair");
                let again = |end: &UnixStream| end.try_clone().expect("a descriptor");
                let (here_too, far_too) = (again(&here), again(&far));
                ping_pong(place, bytes, times, (here, here_too), (far, far_too));
            }));
        }
        rows.push(Row::new("futex", place, 0, move |times| {
            futexes(place, times)
        }));
    }
    rows
}

fn ping_pong<W: Write + Send, R: Read + Send>(
    place: Where,
    bytes: usize,
    times: u32,
    (mut there, mut returning): (W, R),
    (mut back, mut arriving): (W, R),
) {
    beside(
        place,
        move || {
            let mut message = vec![1; bytes];
            for _ in 0..times {
                there.write_all(&message).expect("alive");
                returning.read_exact(&mut message).expect("alive");
            }
        },
        move || {
            let mut message = vec![1; bytes];
            for _ in 0..times {
                arriving.read_exact(&mut message).expect("alive");
                back.write_all(&message).expect("alive");
            }
        },
    );
}

/// A word that two threads take turns at, asleep in between.
fn futexes(place: Where, times: u32) {
    let turn = AtomicU32::new(0);
    let wait_for = |value: u32| {
        while turn.load(Ordering::Acquire) != value {
            // An error means that the word has changed already.
            let _ = futex::wait(&turn, futex::Flags::PRIVATE, 1 - value, None);
        }
    };
    let pass = |value: u32| {
        turn.store(value, Ordering::Release);
        let _ = futex::wake(&turn, futex::Flags::PRIVATE, 1);
    };
    beside(
        place,
        || {
            for _ in 0..times {
                pass(1);
                wait_for(0);
            }
        },
        || {
            for _ in 0..times {
                wait_for(1);
                pass(0);
            }
        },
    );
}
