//! Two OS threads play the kernels of two OS processes over one line: also for ThreadSanitizer and Miri.

use std::sync::atomic::AtomicBool;
use std::thread;

use super::*;
use crate::{ExString, ExVec, Exchange, contract};
use mullion_sip_exchange::channel::Contract;

contract! {
    mod talk {
        Ask: client { Number(u32) -> Answer, Bytes(ExVec<u8>) -> More }
        More: client { Text(ExString) -> Answer }
        Answer: server { Back(ExVec<u8>) -> Ask, Bye -> end }
    }
}

const ROUNDS: u32 = if cfg!(miri) { 7 } else { 3000 };
/// In the slot, beyond it, and beyond what is copied as words.
const SIZES: [usize; 7] = [0, 1, 39, 40, 41, 700, if cfg!(miri) { 70 } else { 9000 }];

fn lines() -> [Line; 2] {
    let info = talk::Contract::INFO;
    let [to_client, to_server] = Memory::both_ends(line_bytes(info));
    [(to_client, Side::Client), (to_server, Side::Server)]
        .map(|(memory, side)| Line::new(memory, info, side, 3).expect("large enough"))
}

fn send<T: Exchange>(line: &mut Line, number: u16, value: &T) {
    line.write(None, |to| value.encode(to)).expect("room");
    line.send(number);
}

fn receive<T: Exchange>(line: &mut Line, number: u16) -> T {
    while line.waits().is_none() {
        thread::yield_now();
    }
    assert_eq!(line.waits(), Some(number));
    let mut bytes = line.receive(None).ok().expect("within the memory");
    let value = T::decode(&mut bytes).expect("a value");
    bytes.finish().expect("no more");
    line.answered();
    value
}

fn bytes(round: u32) -> Vec<u8> {
    let size = SIZES[round as usize % SIZES.len()];
    (0..size).map(|at| (at as u32 + round) as u8).collect()
}

#[test]
#[cfg_attr(miri, ignore = "seven rounds did not end within two minutes")]
fn what_one_writes_the_other_reads() {
    let [mut client, mut server] = lines();
    let (watch, over) = (client.watch(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(move || {
            for round in 0..ROUNDS {
                if round % 3 == 0 {
                    assert_eq!(receive::<u32>(&mut server, 0), round);
                } else {
                    let got: ExVec<u8> = receive(&mut server, 1);
                    assert_eq!(*got, bytes(round));
                    let text: ExString = receive(&mut server, 2);
                    assert_eq!(*text, *"grüße".repeat(round as usize % 40));
                }
                send(&mut server, 3, &ExVec::copy_of(&bytes(round)));
            }
            server.close();
        });
        // Another thread of the client's, which looks for messages.
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                std::hint::black_box(watch.has_message());
                thread::yield_now();
            }
        });
        for round in 0..ROUNDS {
            if round % 3 == 0 {
                send(&mut client, 0, &round);
            } else {
                send(&mut client, 1, &ExVec::copy_of(&bytes(round)));
                let text = "grüße".repeat(round as usize % 40);
                send(&mut client, 2, &ExString::from(text.as_str()));
            }
            let back: ExVec<u8> = receive(&mut client, 3);
            watch.follow(&client);
            assert_eq!(*back, bytes(round));
        }
        while !client.peer_closed() {
            thread::yield_now();
        }
        assert_eq!((client.waits(), client.bell()), (None, 3));
        over.store(true, Ordering::Release);
    });
}

#[test]
fn nothing_outside_of_the_memory_is_read() {
    let [mut client, mut server] = lines();
    for (claim, offset) in [
        (u64::MAX, 0),
        (INLINE as u64 + 1, 0),
        (SPILLED | 1, u64::MAX),
        (SPILLED | 1, ARENA as u64),
        (SPILLED | 2, ARENA as u64 - 1),
        (SPILLED | (u64::MAX >> 1), 0),
    ] {
        let slot = server.slot(server.incoming);
        send(&mut client, 0, &7u32);
        // SAFETY: the slot is the peer's, and nobody else uses it.
        unsafe {
            (*slot).length.store(claim, Ordering::Relaxed);
            (&raw mut (*slot).bytes).cast::<u64>().write(offset);
        }
        assert_eq!(server.waits(), Some(0));
        assert!(server.receive(None).is_err(), "{claim:#x} {offset:#x}");
    }
}
