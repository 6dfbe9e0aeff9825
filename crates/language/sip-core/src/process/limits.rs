//! What a process may use.

use std::time::Duration;

/// Limits of one process. Its children have their own, and are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of its heap, in units of [`crate::heap::UNIT`]. Exceeding it ends the process.
    pub memory: usize,
    /// Bytes of the exchange heap that it holds or has sent without an answer. More are refused.
    pub exchange: u64,
    /// Threads at a time, the main one included. More are refused.
    pub threads: u32,
    /// Children at a time. More are refused.
    pub children: u32,
    /// Processor time that a thread may run without parking or yielding. Exceeding it ends the process, at
    /// most two ticks of the watch ([`crate::thread::TICK`]) later.
    pub slice: Duration,
}

impl Limits {
    /// What a process gets that asks for nothing else.
    pub const DEFAULT: Limits = Limits {
        memory: 64 << 20,
        exchange: 64 << 20,
        threads: 1024,
        children: 1024,
        slice: Duration::from_millis(500),
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}
