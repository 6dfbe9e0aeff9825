//! What the processes do, however they talk to each other. With `CHECKED` each index is checked against its array and
//! each sum against overflow, as in safe Rust with overflow checks; without, neither is.

use std::time::Instant;

use crate::mix;

/// One of the two programs, and how much of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Work {
    pub(crate) kind: Kind,
    pub(crate) checked: bool,
    /// Files to read, or blocks to sort.
    pub(crate) count: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Files,
    Compute,
}

/// Times batches of requests.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Requests of a batch.
    every: u64,
    done: u64,
    since: Instant,
    pub(crate) batches: Vec<u64>,
}

/// Batches of a run, about: short beside what Linux gives a process at a time.
const BATCHES: u64 = 1000;

impl Watch {
    pub(crate) fn start(count: u64) -> Watch {
        Watch {
            every: count.div_ceil(BATCHES).max(1),
            done: 0,
            since: Instant::now(),
            batches: Vec::with_capacity(BATCHES as usize),
        }
    }

    /// One request is done.
    pub(crate) fn tick(&mut self) {
        self.done += 1;
        if self.done.is_multiple_of(self.every) {
            let now = Instant::now();
            self.batches.push((now - self.since).as_nanos() as u64);
            self.since = now;
        }
    }
}

/// Bytes of the block device's blocks.
const BLOCK: usize = 4096;
/// Bytes of one read at most.
pub(crate) const MOST: usize = 64 << 10;
/// Numbers of a block of the pipeline, which are 32 KiB.
pub(crate) const NUMBERS: usize = 4096;

#[inline]
fn at<const CHECKED: bool, T: Copy>(values: &[T], index: usize) -> T {
    if CHECKED {
        values[index]
    } else {
        // SAFETY: the indices are the same ones that stay within the array in the checked variant, which every round
        // runs on the same data.
        unsafe { *values.get_unchecked(index) }
    }
}

#[inline]
fn put<const CHECKED: bool, T: Copy>(values: &mut [T], index: usize, value: T) {
    if CHECKED {
        values[index] = value;
    } else {
        // SAFETY: the checked variant, which every round runs on the same data, has stayed within the array with these
        // indices.
        unsafe { *values.get_unchecked_mut(index) = value };
    }
}

#[inline]
fn add<const CHECKED: bool>(one: u64, other: u64) -> u64 {
    if CHECKED {
        one.checked_add(other).expect("no overflow")
    } else {
        one.wrapping_add(other)
    }
}

/// A block device of memory.
#[derive(Debug)]
pub(crate) struct Device(Vec<u8>);

impl Device {
    /// With room for all files, and something in each line.
    pub(crate) fn new() -> Device {
        let blocks: usize = mix::sizes().iter().map(|size| blocks_of(*size)).sum();
        Device(
            (0..blocks * BLOCK)
                .map(|at| (at / 64 % 251) as u8)
                .collect(),
        )
    }

    pub(crate) fn read<const CHECKED: bool>(&self, first: u64, count: u64) -> &[u8] {
        let begin = first as usize * BLOCK;
        let end = begin + count as usize * BLOCK;
        if CHECKED {
            &self.0[begin..end]
        } else {
            // SAFETY: the checked variant, which every round runs on the same data, has stayed within the device with
            // these blocks.
            unsafe { self.0.get_unchecked(begin..end) }
        }
    }
}

fn blocks_of(size: u64) -> usize {
    (size as usize).div_ceil(BLOCK)
}

/// The file system's table: each file's first block, and its bytes.
#[derive(Debug)]
pub(crate) struct Table(Vec<(u64, u64)>);

impl Table {
    pub(crate) fn new() -> Table {
        let mut next = 0;
        let place = |size: u64| {
            let first = next;
            next += blocks_of(size) as u64;
            (first, size)
        };
        Table(mix::sizes().into_iter().map(place).collect())
    }

    /// The blocks of a part of a file (first and count), and how many bytes of them are the file's.
    pub(crate) fn plan<const CHECKED: bool>(&self, file: u64, offset: u64) -> (u64, u64, usize) {
        let (first, size) = at::<CHECKED, _>(&self.0, file as usize);
        let bytes = (size.saturating_sub(offset) as usize).min(MOST);
        let first = add::<CHECKED>(first, offset / BLOCK as u64);
        (first, bytes.div_ceil(BLOCK) as u64, bytes)
    }
}

/// What the client makes of what it reads: it looks at each cache line.
pub(crate) fn sum<const CHECKED: bool>(mut sum: u64, bytes: &[u8]) -> u64 {
    for index in (0..bytes.len()).step_by(64) {
        sum = add::<CHECKED>(sum, at::<CHECKED, _>(bytes, index).into());
    }
    sum
}

/// The numbers of one block of the pipeline.
pub(crate) fn numbers(block: u64) -> impl Iterator<Item = u64> {
    let mut state = block.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..NUMBERS).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 32
    })
}

/// Heapsort: all of it indices and comparisons.
pub(crate) fn sort<const CHECKED: bool>(values: &mut [u64]) {
    for top in (0..values.len() / 2).rev() {
        sift::<CHECKED>(values, top, values.len());
    }
    for end in (1..values.len()).rev() {
        let (first, last) = (at::<CHECKED, _>(values, 0), at::<CHECKED, _>(values, end));
        put::<CHECKED, _>(values, 0, last);
        put::<CHECKED, _>(values, end, first);
        sift::<CHECKED>(values, 0, end);
    }
}

fn sift<const CHECKED: bool>(values: &mut [u64], mut top: usize, end: usize) {
    let value = at::<CHECKED, _>(values, top);
    loop {
        let mut child = 2 * top + 1;
        if child >= end {
            break;
        }
        let right = child + 1;
        if right < end && at::<CHECKED, _>(values, right) > at::<CHECKED, _>(values, child) {
            child = right;
        }
        let larger = at::<CHECKED, _>(values, child);
        if larger <= value {
            break;
        }
        put::<CHECKED, _>(values, top, larger);
        top = child;
    }
    put::<CHECKED, _>(values, top, value);
}

/// A sum in which the order counts.
pub(crate) fn weigh<const CHECKED: bool>(mut sum: u64, values: &[u64]) -> u64 {
    for index in 0..values.len() {
        sum = add::<CHECKED>(sum, (index as u64 * at::<CHECKED, _>(values, index)) >> 24);
    }
    sum
}
