//! The same modules in safe Rust, linked to the forwarder: the language alone, as a trusted author writes it.

use crate::native::{BATCH, Frame, Room};
use std::cell::UnsafeCell;

struct Own(UnsafeCell<Room>);

// SAFETY: the benchmark has one thread.
unsafe impl Sync for Own {}

// SAFETY: all zeros are a room of empty frames.
static OWN: Own = Own(UnsafeCell::new(unsafe { std::mem::zeroed() }));

pub(crate) fn room() -> *mut Room {
    OWN.0.get()
}

fn steps(count: u32, mut next: impl FnMut(&mut Frame) -> i32) {
    // SAFETY: the caller looks at the room before and afterwards.
    let room = unsafe { &mut *room() };
    for at in 0..(count as usize).min(BATCH) {
        room.answers[at] = next(&mut room.of[at].frame);
    }
}

pub(crate) unsafe extern "C" fn nothing(count: u32) {
    steps(count, |frame| if frame.length == 0 { 2 } else { 0 });
}

pub(crate) unsafe extern "C" fn monitor(count: u32) {
    static COUNTED: [std::sync::atomic::AtomicU64; 3] =
        [const { std::sync::atomic::AtomicU64::new(0) }; 3];
    use std::sync::atomic::Ordering::Relaxed;
    let add = |at: usize, by: u64| COUNTED[at].store(COUNTED[at].load(Relaxed) + by, Relaxed);
    steps(count, |frame| {
        if frame.length < 20 || frame.bytes[0] >> 4 != 4 {
            return 0;
        }
        add(0, 1);
        add(
            1,
            u64::from(u16::from_be_bytes([frame.bytes[2], frame.bytes[3]])),
        );
        add(2, u64::from(frame.bytes[9] == 17));
        0
    });
}

fn means(four: u64) -> u64 {
    const BOTH: u64 = 0x0000_ffff_0000_ffff;
    let four = four ^ 0x8000_8000_8000_8000;
    let sums = ((four & BOTH) + (four >> 16 & BOTH)) >> 1 & BOTH;
    ((sums | sums >> 16) & 0xffff_ffff) ^ 0x8000_8000
}

fn eight(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

pub(crate) unsafe extern "C" fn resample(count: u32) {
    steps(count, |frame| {
        let (from, end) = (frame.payload as usize, frame.end as usize);
        let Some(payload) = frame.bytes.get_mut(from..end) else {
            return 0;
        };
        let pairs = payload.len() / 4;
        if pairs == 0 {
            return 0;
        }
        let mut pair = 0;
        while pair + 4 <= pairs {
            let both = means(eight(payload, pair * 4)) | means(eight(payload, pair * 4 + 8)) << 32;
            payload[pair * 2..pair * 2 + 8].copy_from_slice(&both.to_le_bytes());
            pair += 4;
        }
        for pair in pair..pairs {
            let at = pair * 4;
            let one = i32::from(i16::from_le_bytes([payload[at], payload[at + 1]]));
            let two = i32::from(i16::from_le_bytes([payload[at + 2], payload[at + 3]]));
            let mean = ((one + two) >> 1) as i16;
            payload[pair * 2..pair * 2 + 2].copy_from_slice(&mean.to_le_bytes());
        }
        frame.end = (from + 2 * pairs) as u32;
        frame.length = frame.end;
        1
    });
}

const CODES: [u8; 16] = [
    0x00, 0x0f, 0x33, 0x3c, 0x55, 0x5a, 0x66, 0x69, 0x96, 0x99, 0xa5, 0xaa, 0xc3, 0xcc, 0xf0, 0xff,
];

fn put(bytes: &mut [u8], byte: u8) {
    bytes[0] = CODES[usize::from(byte & 15)];
    bytes[1] = CODES[usize::from(byte >> 4)];
}

fn code(four: u64) -> u64 {
    const ONE: u64 = 0x0101_0101_0101_0101;
    let all = (four | four << 16) & 0x0000_ffff_0000_ffff;
    let all = (all | all << 8) & 0x00ff_00ff_00ff_00ff;
    let all = (all & 0x000f_000f_000f_000f) | (all & 0x00f0_00f0_00f0_00f0) << 4;
    let near = all ^ all >> 1;
    (all & ONE) << 3
        | (all & 0x0e0e_0e0e_0e0e_0e0e) << 4
        | ((near ^ all >> 2) & ONE)
        | ((near ^ all >> 3) & ONE) << 1
        | ((all ^ all >> 2 ^ all >> 3) & ONE) << 2
        | ((near >> 1 ^ all >> 3) & ONE) << 4
}

/// Codes `length` bytes at `from` to `to`, from their end.
fn part(bytes: &mut [u8], from: usize, to: usize, length: usize) {
    let mut at = length;
    while !at.is_multiple_of(8) {
        at -= 1;
        let byte = bytes[from + at];
        put(&mut bytes[to + 2 * at..], byte);
    }
    while at > 0 {
        at -= 8;
        let found = eight(bytes, from + at);
        bytes[to + 2 * at + 8..to + 2 * at + 16].copy_from_slice(&code(found >> 32).to_le_bytes());
        bytes[to + 2 * at..to + 2 * at + 8]
            .copy_from_slice(&code(found & 0xffff_ffff).to_le_bytes());
    }
}

/// Parts beyond the first are coded behind the frame's own room, as nobody sends them here.
pub(crate) unsafe extern "C" fn fec_send(count: u32) {
    steps(count, |frame| {
        let (payload, end) = (frame.payload as usize, frame.end as usize);
        if end < payload || end - payload > 3 * 732 || payload > 200 {
            return 0;
        }
        let length = end - payload;
        let parts = length.div_ceil(732).max(1);
        let each = length.div_ceil(parts);
        for one in 1..parts {
            frame.bytes.copy_within(0..payload, 4096);
            let rest = each.min(length - one * each);
            part(
                &mut frame.bytes,
                payload + one * each,
                4096 + payload + 8,
                rest,
            );
        }
        let first = each.min(length);
        part(&mut frame.bytes, payload, payload + 8, first);
        for (at, byte) in [0xfe, 0, 0, parts as u8].into_iter().enumerate() {
            put(&mut frame.bytes[payload + 2 * at..], byte);
        }
        frame.end = (payload + 8 + 2 * first) as u32;
        frame.length = frame.end;
        1
    });
}
