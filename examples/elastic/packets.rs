//! The environment of packet monitors in Rust: what a monitor sees, and what stands behind it; packets.c says the same
//! to monitors in C.
//!
//! A monitor defines OKE_monitor_handle_packet and OKE_monitor_report. This file is trusted: it reads packets from
//! standard input (two bytes of length, then the packet), gives the first 28 bytes of those that are for UDP port 53
//! to the monitor, and prints what the monitor reports. What the type's `public` does not name is private to it.
#![no_std]

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// An IPv4 address that can be copied and not looked at.
#[derive(Clone, Copy)]
pub struct Address(u32);

/// The first 28 bytes of a packet: its IPv4 header, and the first 8 bytes behind it.
pub struct Packet {
    pub version: u8,
    pub service: u8,
    pub length: u16,
    pub identification: u16,
    /// Flags and offset.
    pub fragment: u16,
    pub life: u8,
    pub protocol: u8,
    pub sum: u16,
    pub source: Address,
    pub target: u32,
    pub behind: [u8; 8],
}

pub const MORE_FRAGMENTS: u16 = 0x2000;
pub const OFFSET: u16 = 0x1fff;

/// What a monitor reports.
pub struct Report {
    pub packets: u64,
    pub fragments: u64,
    /// Copied, unseen.
    pub last: Address,
}

/// A number that stays from packet to packet. A call into a domain runs on one thread.
pub struct Counter(AtomicU64);

impl Counter {
    pub const fn new() -> Self {
        Counter(AtomicU64::new(0))
    }

    pub fn add(&self, more: u64) {
        self.0.store(self.get().wrapping_add(more), Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// An address that stays from packet to packet.
pub struct Kept(AtomicU32);

impl Kept {
    pub const fn new() -> Self {
        Kept(AtomicU32::new(0))
    }

    pub fn set(&self, address: Address) {
        self.0.store(address.0, Relaxed);
    }

    pub fn get(&self) -> Address {
        Address(self.0.load(Relaxed))
    }
}

unsafe extern "C" {
    safe fn OKE_monitor_handle_packet(packet: &Packet);
    safe fn OKE_monitor_report(report: &mut Report);
    static stdin: *mut c_void;
    safe fn getchar() -> c_int;
    fn fread(to: *mut c_void, size: usize, count: usize, from: *mut c_void) -> usize;
    fn printf(form: *const c_char, ...) -> c_int;
}

/// A lock of the host's, as a monitor takes it. What it does not give back is given back for it.
static LOCKS: AtomicU32 = AtomicU32::new(0);
static GIVEN_BACK: AtomicU32 = AtomicU32::new(0);

pub fn lock_table() {
    LOCKS.fetch_add(1, Relaxed);
}

pub fn unlock_table() {
    LOCKS.store(LOCKS.load(Relaxed).saturating_sub(1), Relaxed);
}

pub fn give_back() {
    GIVEN_BACK.fetch_add(LOCKS.swap(0, Relaxed), Relaxed);
}

fn taken_apart(at: &[u8]) -> Packet {
    let two = |from: usize| u16::from_be_bytes([at[from], at[from + 1]]);
    let four = |from: usize| u32::from_be_bytes([at[from], at[from + 1], at[from + 2], at[from + 3]]);
    let mut behind = [0; 8];
    behind.copy_from_slice(&at[20..28]);
    Packet {
        version: at[0],
        service: at[1],
        length: two(2),
        identification: two(4),
        fragment: two(6),
        life: at[8],
        protocol: at[9],
        sum: two(10),
        source: Address(four(12)),
        target: four(16),
        behind,
    }
}

/// The filter: for UDP port 53, or a later fragment.
fn wanted(packet: &Packet) -> bool {
    let port = u16::from_be_bytes([packet.behind[2], packet.behind[3]]);
    packet.protocol == 17 && (packet.fragment & OFFSET != 0 || port == 53)
}

fn length() -> Option<usize> {
    let (high, low) = (getchar(), getchar());
    (high >= 0 && low >= 0).then_some((high << 8 | low) as usize)
}

#[unsafe(no_mangle)]
pub extern "C" fn main() -> c_int {
    let mut data = [0u8; 2048];
    while let Some(length) = length() {
        if length > data.len() {
            return 1;
        }
        // SAFETY: so many bytes are there.
        if unsafe { fread(data.as_mut_ptr().cast(), 1, length, stdin) } != length {
            return 1;
        }
        if length >= 28 {
            let packet = taken_apart(&data);
            if wanted(&packet) {
                OKE_monitor_handle_packet(&packet);
            }
        }
    }
    let mut report = Report { packets: 0, fragments: 0, last: Address(0) };
    OKE_monitor_report(&mut report);
    let form = c"%lu packets seen, of which %lu were fragments; the last came from %08x; %d locks given back\n";
    // SAFETY: the arguments are those that the form names.
    unsafe { printf(form.as_ptr(), report.packets, report.fragments, report.last.0, GIVEN_BACK.load(Relaxed)) };
    0
}
