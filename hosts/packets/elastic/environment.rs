//! The environment of elastic modules in Rust: the agreement with the forwarder, as packets.h has it, and what modules
//! may call. It is trusted, and a crate of its own that small functions are inlined from.
#![no_std]

use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

const ROOM: usize = 16384;
const FORM: u32 = 4;
const BATCH: u32 = 32;
/// Frames that may be added to a batch, and to each frame of it.
const ADDED: u32 = 128;
const ADDED_EACH: u32 = 16;
/// Of an added frame that is not sent.
const NOWHERE: u32 = u32::MAX;

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

    /// Where the packet ends: behind it may be what pads the frame.
    #[inline(always)]
    pub fn end(&self) -> u32 {
        self.end
    }

    /// Lets packet and frame end there.
    #[inline(always)]
    pub fn end_at(&mut self, end: u32) {
        self.end = end;
        self.length = end;
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

    /// Eight bytes as a number, the first one lowest; beyond the frame's room it is 0.
    #[inline(always)]
    pub fn eight(&self, at: u32) -> u64 {
        match self.bytes.get(at as usize..).and_then(|rest| rest.first_chunk()) {
            Some(eight) => u64::from_le_bytes(*eight),
            None => 0,
        }
    }

    /// Writes eight bytes, the lowest first; beyond the frame's room nothing is written.
    #[inline(always)]
    pub fn put_eight(&mut self, at: u32, value: u64) {
        let place = self.bytes.get_mut(at as usize..);
        if let Some(place) = place.and_then(|rest| rest.first_chunk_mut()) {
            *place = value.to_le_bytes();
        }
    }

    /// Copies `length` bytes of another frame; what goes beyond either room is not copied at all.
    #[inline(always)]
    pub fn copy(&mut self, to: u32, from: &Frame, at: u32, length: u32) {
        let (to, at, length) = (to as usize, at as usize, length as usize);
        let from = from.bytes.get(at..at + length);
        if let (Some(to), Some(from)) = (self.bytes.get_mut(to..to + length), from) {
            to.copy_from_slice(from);
        }
    }
}

/// One more frame: written by the module, and sent behind the frame at hand. Who drops it sends nothing.
pub struct Another {
    slot: u32,
}

impl Another {
    /// The frame.
    #[inline(always)]
    pub fn frame(&mut self) -> &mut Frame {
        let room = SHARED.load(Relaxed);
        // SAFETY: the slot is one of the room's, which the forwarder has placed, and no other `Another` has it.
        unsafe { &mut (*room).more[(self.slot % ADDED) as usize].frame }
    }

    /// Sends it.
    #[inline(always)]
    pub fn send(self) {
        let room = SHARED.load(Relaxed);
        // SAFETY: the number is within the room's list, and nobody borrows from that.
        unsafe { (*room).behind[(self.slot % ADDED) as usize] = AT.load(Relaxed) };
    }
}

/// A place for one more frame; `None` if there are too many.
#[inline(always)]
pub fn another() -> Option<Another> {
    let room = SHARED.load(Relaxed);
    // SAFETY: the forwarder has placed a room of that form, and leaves it alone while this runs.
    let (slot, refused) = unsafe { (&mut (*room).added, &mut (*room).refused) };
    let each = EACH.load(Relaxed);
    if *slot >= ADDED || each >= ADDED_EACH {
        *refused = refused.wrapping_add(1);
        return None;
    }
    let found = *slot;
    *slot += 1;
    EACH.store(each + 1, Relaxed);
    // SAFETY: the number is within the room's list, and nobody borrows from that.
    unsafe { (*room).behind[(found % ADDED) as usize] = NOWHERE };
    Some(Another { slot: found })
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

/// Numbers that stay, by their place; beyond their room they are 0, and nothing is put.
pub struct Numbers<const N: usize>([AtomicU64; N]);

impl<const N: usize> Numbers<N> {
    /// All 0.
    pub const fn new() -> Self {
        Numbers([const { AtomicU64::new(0) }; N])
    }

    /// The one at a place.
    #[inline(always)]
    pub fn get(&self, at: u32) -> u64 {
        match self.0.get(at as usize) {
            Some(number) => number.load(Relaxed),
            None => 0,
        }
    }

    /// Puts one there.
    #[inline(always)]
    pub fn put(&self, at: u32, value: u64) {
        if let Some(number) = self.0.get(at as usize) {
            number.store(value, Relaxed);
        }
    }
}

/// Bytes that stay, as [`Numbers`] do.
pub struct Bytes<const N: usize>([AtomicU8; N]);

impl<const N: usize> Bytes<N> {
    /// All 0.
    pub const fn new() -> Self {
        Bytes([const { AtomicU8::new(0) }; N])
    }

    /// The one at a place.
    #[inline(always)]
    pub fn get(&self, at: u32) -> u8 {
        match self.0.get(at as usize) {
            Some(byte) => byte.load(Relaxed),
            None => 0,
        }
    }

    /// Puts one there.
    #[inline(always)]
    pub fn put(&self, at: u32, value: u8) {
        if let Some(byte) = self.0.get(at as usize) {
            byte.store(value, Relaxed);
        }
    }
}

unsafe extern "C" {
    safe fn packets_next(frame: &mut Frame) -> i32;
}
#[cfg(not(any(packets_alone, language_alone)))]
unsafe extern "C" {
    fn packets_report(text: *const u8, length: u32) -> i32;
}

/// Behind the language alone there are no gates: the forwarder gives its function, and what to call it with.
#[cfg(language_alone)]
mod offered {
    use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

    type Report = extern "C" fn(*const u8, *const u8, u32) -> i32;

    static REPORT: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
    static WHOSE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

    #[unsafe(no_mangle)]
    extern "C" fn packets_offer(whose: *const u8, report: Report) -> i32 {
        WHOSE.store(whose.cast_mut(), Relaxed);
        REPORT.store(report as *mut u8, Relaxed);
        0
    }

    /// A type bounds it by its name, so it stays a function of its own.
    #[inline(never)]
    #[unsafe(no_mangle)]
    pub(crate) extern "C" fn packets_report(text: *const u8, length: u32) -> i32 {
        let report = REPORT.load(Relaxed);
        if report.is_null() {
            return -1;
        }
        // SAFETY: nothing but a function of this type is stored there.
        let report = unsafe { core::mem::transmute::<*mut u8, Report>(report) };
        report(WHOSE.load(Relaxed), text, length)
    }
}
#[cfg(language_alone)]
use offered::packets_report;

/// Without a forwarder, as the benchmark runs the same modules by the language alone, nobody reads reports.
#[cfg(packets_alone)]
unsafe fn packets_report(_text: *const u8, length: u32) -> i32 {
    length as i32
}

/// A place and a name for what the forwarder offers, as MULLION_IMPORT of mullion/ext.h makes them.
#[cfg(not(any(packets_alone, language_alone)))]
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

#[cfg(not(any(packets_alone, language_alone)))]
import!("packets_report");

/// What forwarder and module share.
#[repr(C)]
struct Room {
    answers: [i32; BATCH as usize],
    added: u32,
    refused: u32,
    behind: [u32; ADDED as usize],
    apart: [u32; 14],
    of: [Place; BATCH as usize],
    more: [Place; ADDED as usize],
}

#[repr(C)]
struct Place {
    frame: Frame,
    apart: [u8; 1504],
}

static SHARED: AtomicPtr<Room> = AtomicPtr::new(core::ptr::null_mut());
static AT: AtomicU32 = AtomicU32::new(0);
static EACH: AtomicU32 = AtomicU32::new(0);

#[unsafe(no_mangle)]
pub extern "C" fn packets_place(form: u32) -> i32 {
    i32::from(form == FORM)
}

#[unsafe(no_mangle)]
pub extern "C" fn packets_steps(room: *mut u8, count: u32) {
    let room: *mut Room = room.cast();
    SHARED.store(room, Relaxed);
    for at in 0..count.min(BATCH) {
        AT.store(at, Relaxed);
        EACH.store(0, Relaxed);
        // SAFETY: the forwarder has placed a room of that form, and leaves it alone while this runs.
        let (answer, place) = unsafe { (&raw mut (*room).answers[at as usize], &mut (*room).of[at as usize]) };
        let said = packets_next(&mut place.frame);
        // SAFETY: the place is within the room, which has `BATCH` answers, and the forwarder does not look yet.
        unsafe { answer.write(said) };
    }
}

/// Says how often a loop runs, to types that bound instructions.
macro_rules! rounds {
    ($name:literal, $rounds:literal) => {
        // SAFETY: it is a comment.
        unsafe { core::arch::asm!(concat!("# mullion-loop ", $name, " ", $rounds), options(nomem, nostack, preserves_flags)) }
    };
}

/// Reports three numbers to the module's owner.
pub fn tell(first: u64, second: u64, third: u64) -> i32 {
    let mut line = [0u8; 64];
    let mut at = 64u32;
    let mut before = |byte: u8| {
        at = at.wrapping_sub(1);
        if let Some(place) = line.get_mut(at as usize) {
            *place = byte;
        }
    };
    before(b'\n');
    let mut number = 0;
    while number < 3 {
        rounds!("tell-number", 3);
        if number > 0 {
            before(b' ');
        }
        let mut left = match number {
            0 => third,
            1 => second,
            _ => first,
        };
        loop {
            rounds!("tell-digit", 20);
            before(b'0'.wrapping_add((left % 10) as u8));
            left /= 10;
            if left == 0 {
                break;
            }
        }
        number += 1;
    }
    let text = line.get(at as usize..).unwrap_or(&[]);
    // SAFETY: the text is there for the call.
    #[allow(unused_unsafe, reason = "behind the language alone the function is the environment's own")]
    unsafe {
        packets_report(text.as_ptr(), text.len() as u32)
    }
}
