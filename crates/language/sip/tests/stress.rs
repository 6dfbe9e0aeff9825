//! Random traffic between threads, with endpoints that end at any point: every message arrives once and in order,
//! everybody is told of the end, and at last every block is free again. `MULLION_STRESS_ROUNDS` makes it longer.

use std::sync::Mutex;
use std::thread;

use mullion_sip::ExBox;
use mullion_sip::channel::ChannelClosed;
use mullion_sip::exchange::census;
use mullion_sip_hosting::Parcel;

mod walks;
use walks::{Random, client, inner, server, walk};

/// The census counts every thread's blocks, so tests take turns.
static TURN: Mutex<()> = Mutex::new(());

fn rounds() -> u64 {
    std::env::var("MULLION_STRESS_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(200)
}

#[test]
fn walks_of_two_threads() {
    let _turn = TURN.lock();
    let before = census().in_use;
    let mut messages = 0;
    for round in 0..rounds() {
        let (near, far) = walk::channel().expect("memory");
        let far = Parcel::pack(far);
        let patience = if round % 2 == 0 { 20 } else { 500 };
        let serving = thread::spawn(move || {
            let mut random = Random(round * 2 + 1);
            server(far.open(), &mut random, patience).0
        });
        let (here, _) = client(near, &mut Random(round * 2 + 2), patience);
        let there = serving.join().expect("no panic");
        // What was sent may be on its way when the receiver goes; nothing arrives that was not sent.
        assert!(there.received <= here.sent && here.received <= there.sent);
        messages += here.received + there.received;
    }
    assert!(messages > rounds());
    assert_eq!(census().in_use, before);
}

#[test]
fn many_walks_at_once_on_one_thread_each() {
    let _turn = TURN.lock();
    let before = census().in_use;
    let threads: Vec<_> = (1..5)
        .map(|seed| {
            thread::spawn(move || {
                for round in 0..rounds() / 4 {
                    let (near, far) = walk::channel().expect("memory");
                    let far = Parcel::pack(far);
                    let other = thread::spawn(move || server(far.open(), &mut Random(seed), 50).0);
                    let _ = client(near, &mut Random(seed * 1000 + round + 1), 50);
                    other.join().expect("no panic");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert_eq!(census().in_use, before);
}

#[test]
fn a_hundred_thousand_channels_alive() {
    let _turn = TURN.lock();
    let before = census().in_use;
    let mut channels: Vec<_> = (0..100_000)
        .map(|_| inner::channel().expect("memory"))
        .collect();
    assert_eq!(census().in_use, before + 300_000);
    let last = channels.len() as u64;
    channels = channels
        .into_iter()
        .zip(0..last)
        .map(|((asking, telling), number)| {
            let asking = asking.number(number).expect("alive");
            let Ok(inner::AskMessage::Number(number, tell)) = telling.recv() else {
                panic!("lost")
            };
            let telling = tell.number(number).expect("alive");
            let Ok(inner::TellMessage::Number(told, asking)) = asking.recv() else {
                panic!("lost")
            };
            assert_eq!(told, number);
            (asking, telling)
        })
        .collect();
    drop(channels);
    assert_eq!(census().in_use, before);
}

#[test]
fn packed_and_never_opened() {
    let _turn = TURN.lock();
    let before = census().in_use;
    let (near, far) = walk::channel().expect("memory");
    let far = Parcel::pack(far);
    let near = near.block(ExBox::new(0)).expect("alive");
    drop(far);
    assert!(matches!(near.three(1), Err(ChannelClosed)));
    assert_eq!(census().in_use, before);
}
