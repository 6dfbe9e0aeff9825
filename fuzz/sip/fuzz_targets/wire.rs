//! Any bytes as a message from another OS process: they are a value or an error. A value written again is the same bytes,
//! and no block is lost, whatever happened.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mullion_sip::exchange::census;
use mullion_sip::exchange::wire::{from_bytes, to_bytes};
use mullion_sip::{ExBox, ExString, ExVec, Exchange};

#[derive(Exchange)]
struct Node {
    label: char,
    text: ExString,
    numbers: ExVec<u32>,
    pairs: [(bool, u8); 3],
    kind: Kind,
    children: ExVec<Node>,
    next: Option<ExBox<Node>>,
    verdict: Result<u16, i8>,
}

#[derive(Exchange)]
#[repr(u8)]
enum Kind {
    Nothing,
    Flag(bool),
    Sizes { low: u64, high: f32 },
}

/// As it lies in memory.
#[derive(Exchange, Clone, Copy)]
struct Plain {
    a: u64,
    b: [u16; 4],
}

#[derive(Exchange)]
struct Chain(Option<ExBox<Chain>>);

fn read<T: Exchange>(bytes: &[u8]) {
    let before = census().in_use;
    if let Ok(value) = from_bytes::<T>(bytes) {
        assert!(census().in_use >= before);
        assert!(to_bytes(&value, bytes.len()).as_deref() == Ok(bytes));
    }
    assert_eq!(census().in_use, before);
}

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    match kind % 6 {
        0 => read::<Node>(bytes),
        1 => read::<ExVec<ExVec<ExString>>>(bytes),
        2 => read::<ExVec<Option<ExBox<Kind>>>>(bytes),
        3 => read::<Chain>(bytes),
        4 => read::<(ExVec<Plain>, Option<char>, ExVec<bool>)>(bytes),
        _ => read::<Result<[ExBox<[Option<bool>; 3]>; 2], ExVec<Option<[u64; 127]>>>>(bytes),
    }
});
