//! The environment of elastic modules in Rust: the agreement with the forwarder, as packets.h has it, and what modules
//! may call. It is trusted, and a crate of its own that small functions are inlined from.
#![no_std]

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};

const ROOM: usize = 16384;
const FORM: u32 = 3;
const BATCH: u32 = 32;

/// A packet in its frame. Its members are private: what is there is read and written by functions that know its room.
#[repr(C)]
pub struct Frame {
    length: u32,
    original: u32,
    packet: u32,
    payload: u32,
    end: u32,
    port: u32,
    nanoseconds: u64,
    bytes: [u8; ROOM],
}

/// The packet goes on as it is.
pub const PASS: i32 = 0;
/// The packet goes on as the module left it.
pub const CHANGED: i32 = 1;
/// The packet ends here.
pub const DROP: i32 = 2;

impl Frame {
    /// How many bytes the module sees.
    #[inline(always)]
    pub fn length(&self) -> u32 {
        self.length
    }

    /// Where the bytes of the UDP payload begin, if there are any.
    #[inline(always)]
    pub fn payload(&self) -> u32 {
        self.payload
    }

    /// The interface that it came in by.
    #[inline(always)]
    pub fn port(&self) -> u32 {
        self.port
    }

    /// A byte; beyond the frame's room it is 0.
    #[inline(always)]
    pub fn byte(&self, at: u32) -> u8 {
        match self.bytes.get(at as usize) {
            Some(byte) => *byte,
            None => 0,
        }
    }

    /// Two bytes as a number, the first one highest.
    #[inline(always)]
    pub fn two(&self, at: u32) -> u16 {
        u16::from_be_bytes([self.byte(at), self.byte(at.wrapping_add(1))])
    }

    /// Writes a byte; beyond the frame's room nothing is written.
    #[inline(always)]
    pub fn put(&mut self, at: u32, byte: u8) {
        if let Some(place) = self.bytes.get_mut(at as usize) {
            *place = byte;
        }
    }
}

/// A number that stays from packet to packet. A call into a domain runs on one thread.
pub struct Counter(AtomicU64);

impl Counter {
    /// 0.
    pub const fn new() -> Self {
        Counter(AtomicU64::new(0))
    }

    /// Adds to it, and gives what it then is.
    #[inline(always)]
    pub fn add(&self, more: u64) -> u64 {
        let sum = self.0.load(Relaxed).wrapping_add(more);
        self.0.store(sum, Relaxed);
        sum
    }

    /// What it is.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

unsafe extern "C" {
    safe fn packets_next(frame: &mut Frame) -> i32;
    fn packets_report(text: *const u8, length: u32) -> i32;
    fn packets_send(at: u32, frame: *const u8, length: u32, end: u32) -> i32;
}

/// A place and a name for what the forwarder offers, as MULLION_IMPORT of mullion/ext.h makes them.
macro_rules! import {
    ($name:literal) => {
        core::arch::global_asm!(
            concat!(".pushsection .mullion.gates,\"axG\",@nobits,", $name, ",comdat"),
            concat!(".globl ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            ".skip 32",
            ".popsection",
            concat!(".pushsection .mullion.imports,\"aG\",@progbits,", $name, ",comdat"),
            concat!(".L", $name, "_record:"),
            concat!(".asciz \"", $name, "\""),
            concat!(".skip .L", $name, "_record + 64 - ."),
            ".popsection",
        );
    };
}

import!("packets_report");
import!("packets_send");

/// What forwarder and module share.
#[repr(C)]
struct Room {
    answers: [i32; BATCH as usize],
    of: [Place; BATCH as usize],
}

#[repr(C)]
struct Place {
    frame: Frame,
    apart: [u8; 1504],
}

static SHARED: AtomicPtr<Room> = AtomicPtr::new(core::ptr::null_mut());
static AT: AtomicU32 = AtomicU32::new(0);

#[unsafe(no_mangle)]
pub extern "C" fn packets_place(form: u32, room: *mut u8) -> i32 {
    SHARED.store(room.cast(), Relaxed);
    i32::from(form == FORM)
}

#[unsafe(no_mangle)]
pub extern "C" fn packets_steps(count: u32) {
    let room = SHARED.load(Relaxed);
    for at in 0..count.min(BATCH) {
        AT.store(at, Relaxed);
        // SAFETY: the forwarder has placed a room of that form, and leaves it alone while this runs.
        let (answer, place) = unsafe { (&raw mut (*room).answers[at as usize], &mut (*room).of[at as usize]) };
        let said = packets_next(&mut place.frame);
        // SAFETY: the place is within the room, which has `BATCH` answers, and the forwarder does not look yet.
        unsafe { answer.write(said) };
    }
}

/// Sends the frame that is at hand, as it is, beside the one that goes on.
pub fn emit(frame: &Frame) -> i32 {
    if frame.length as usize > ROOM {
        return -1;
    }
    // SAFETY: so many bytes are there.
    unsafe { packets_send(AT.load(Relaxed), frame.bytes.as_ptr(), frame.length, frame.end) }
}

/// Reports three numbers to the module's owner.
pub fn tell(first: u64, second: u64, third: u64) -> i32 {
    let mut line = [0u8; 64];
    let mut at = line.len() - 1;
    line[at] = b'\n';
    for (place, number) in [third, second, first].into_iter().enumerate() {
        if place > 0 {
            at -= 1;
            line[at] = b' ';
        }
        let mut left = number;
        loop {
            at -= 1;
            line[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
    }
    let text = &line[at..];
    // SAFETY: the text is there for the call.
    unsafe { packets_report(text.as_ptr(), text.len() as u32) }
}
