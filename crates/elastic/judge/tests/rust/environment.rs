//! The environment of the tests of elastic Rust.
#![no_std]

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Locked where a type says so.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(transparent)]
pub struct Address(pub u32);

#[repr(C)]
pub struct Packet {
    pub length: u32,
    pub source: Address,
    pub flags: u32,
    pub bytes: [u8; 28],
    hidden: u32,
}

impl Packet {
    pub fn byte(&self, at: u32) -> u8 {
        self.bytes.get(at as usize).copied().unwrap_or(0)
    }
}

pub fn packet() -> Packet {
    let mut bytes = [0; 28];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = at as u8;
    }
    Packet { length: 28, source: Address(7), flags: 3, bytes, hidden: 1 }
}

pub fn same(one: Address, other: Address) -> bool {
    one == other
}

pub struct Counter(AtomicU32);

impl Counter {
    pub const fn new() -> Self {
        Counter(AtomicU32::new(0))
    }

    pub fn add(&self, more: u32) -> u32 {
        self.0.fetch_add(more, Relaxed).wrapping_add(more)
    }
}

pub fn count(number: u32) -> u32 {
    number.wrapping_add(1)
}

pub fn apply(function: impl Fn(u32) -> u32, number: u32) -> u32 {
    function(number)
}

/// Calls as often as the number says.
pub fn repeat(function: impl Fn(u32) -> u32, number: u32) -> u32 {
    (0..number).map(function).fold(0, u32::wrapping_add)
}

pub trait Weighed {
    fn weight(&self) -> u32;
}

impl Weighed for u8 {
    fn weight(&self) -> u32 {
        u32::from(*self) * 2
    }
}

pub trait Apart {
    fn apart(&self) -> u32;
}

impl Apart for u8 {
    fn apart(&self) -> u32 {
        1
    }
}

pub struct Private;

impl Private {
    pub fn open() -> u32 {
        1
    }
}

pub mod inner {
    pub fn secret() -> u32 {
        0
    }
}

/// Not public to the role, though values of it come by what is.
pub struct Covert {
    pub key: u32,
    pub list: [u32; 2],
}

impl core::ops::Add<u32> for Covert {
    type Output = u32;
    fn add(self, more: u32) -> u32 {
        self.key.wrapping_add(more)
    }
}

pub fn covert() -> Covert {
    Covert { key: 77, list: [1, 2] }
}

pub struct Cover {
    pub within: Covert,
}

pub fn cover() -> Cover {
    Cover { within: covert() }
}

pub const LIMIT: u32 = 9;
pub const KEY: u32 = 77;

pub fn before() {}
pub fn after() {}

#[macro_export]
macro_rules! twice {
    ($value:expr) => {
        $crate::count($value).wrapping_add($crate::inner::secret()).wrapping_add($value)
    };
}

#[macro_export]
macro_rules! private_macro {
    () => {
        0u32
    };
}

unsafe extern "C" {
    pub safe fn handle(packet: &mut Packet) -> u32;
    pub safe fn plain(one: u32, two: bool);
}
