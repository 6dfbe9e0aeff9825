//! Numbered frames at a steady rate, and what becomes of them: to measure a forwarder.

use crate::frame;
use crate::port::{Port, Sender};
use serde::Serialize;
use std::io;
use std::time::{Duration, Instant};

/// Frames that are sent together, at most.
const BURST: u64 = 32;
/// What numbered frames carry, in front of their number.
const MARK: &[u8; 8] = b"mullion#";
/// Bytes of Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;

/// What was sent.
#[derive(Clone, Debug, Serialize)]
pub struct Sent {
    /// Frames.
    pub frames: u64,
    /// Those that the system did not take.
    pub unsent: u64,
    /// Frames in a second.
    pub rate: f64,
}

/// What arrived.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Arrived {
    /// Frames with a number.
    pub frames: u64,
    /// Numbers up to the highest wanted that did not come.
    pub missing: u64,
    /// Frames behind one with a higher number.
    pub reordered: u64,
    /// Frames that were changed on their way, but for being longer or shorter.
    pub unsound: u64,
    /// Frames that this side did not keep up with.
    pub lost_here: u64,
}

/// Sends so many frames of UDP, from 10.9.0.1 to port 9 of 10.9.0.2, at so many a second.
#[must_use]
pub fn send(to: &mut Sender, count: u64, rate: u64, payload: usize) -> Sent {
    let begun = Instant::now();
    let mut frames = vec![Vec::new(); BURST as usize];
    let (mut next, mut taken) = (0, 0);
    while next < count {
        let due = (begun.elapsed().as_secs_f64() * rate as f64) as u64;
        let burst = due.saturating_sub(next).min(BURST).min(count - next);
        if burst == 0 {
            std::thread::sleep(Duration::from_micros(50));
            continue;
        }
        let frames = &mut frames[..burst as usize];
        for (number, frame) in (next..).zip(frames.iter_mut()) {
            make(frame, number, payload);
        }
        taken += to.send(frames.iter().map(Vec::as_slice));
        next += burst;
    }
    Sent {
        frames: count,
        unsent: count - taken,
        rate: count as f64 / begun.elapsed().as_secs_f64(),
    }
}

fn make(bytes: &mut Vec<u8>, number: u64, payload: usize) {
    bytes.clear();
    // To everybody: the other end need not be asked for its address.
    bytes.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1]);
    bytes.extend([0x08, 0x00, 0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0]);
    bytes.extend([10, 9, 0, 1, 10, 9, 0, 2, 0x13, 0x88, 0, 9, 0, 0, 0, 0]);
    bytes.extend(MARK);
    bytes.extend(number.to_be_bytes());
    bytes.resize(bytes.len().max(HEADERS + payload), 0x55);
    let end = bytes.len();
    frame::repair(bytes, end);
}

/// Receives numbered frames until `count` have come, or none for so long.
///
/// # Errors
/// The interface has gone.
pub fn receive(mut from: Port, count: u64, patience: Duration) -> io::Result<Arrived> {
    let mut arrived = Arrived::default();
    let mut due = 0;
    let mut last = Instant::now();
    while arrived.frames < count && (last.elapsed() < patience || arrived.frames == 0) {
        let taken = from.take(BURST as usize);
        if taken.is_empty() {
            drop(taken);
            from.wait(Duration::from_millis(100))?;
            // Nobody may ever send.
            if last.elapsed() > patience * 10 {
                break;
            }
            continue;
        }
        for frame in taken.frames() {
            let Some(number) = number(frame.bytes) else {
                continue;
            };
            last = Instant::now();
            arrived.frames += 1;
            arrived.reordered += u64::from(number < due);
            arrived.unsound += u64::from(!frame::is_sound(frame.bytes));
            due = due.max(number + 1);
        }
    }
    arrived.missing = count.saturating_sub(arrived.frames);
    arrived.lost_here = from.lost()[0];
    Ok(arrived)
}

fn number(frame: &[u8]) -> Option<u64> {
    let (mark, rest) = frame.get(HEADERS..)?.split_first_chunk()?;
    (mark == MARK).then(|| rest.first_chunk().copied().map(u64::from_be_bytes))?
}
