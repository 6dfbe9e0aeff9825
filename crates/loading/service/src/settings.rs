//! What clients may take of the loader.

use mullion_modules::Limits;
use std::time::Duration;

/// Bounds, all of them: who is over one is refused or disconnected, nobody waits.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Connections at the same time. One more, and the connection that has been
    /// idle longest is closed.
    pub connections: usize,
    /// Bytes of a frame's body.
    pub frame: usize,
    /// Bytes of frames over [`Settings::SMALL`], of all connections together,
    /// that have come and are not yet done with. Strangers have half of it.
    pub buffered: usize,
    /// Time from the connection to the whole first frame.
    pub hello: Duration,
    /// Time from a later frame's first byte to its last, and for an answer to
    /// be taken.
    pub transfer: Duration,
    /// Time between frames.
    pub idle: Duration,
    /// How long a connection's challenge is good.
    pub lifetime: Duration,
    /// Threads that verify signatures and images, and decide. All but one serve strangers too.
    pub workers: usize,
    /// Modules of all owners.
    pub modules: usize,
    /// Modules of one owner.
    pub modules_of_one: usize,
    /// Bytes of memory that all modules may use together: as their limits say, and what their
    /// images take.
    pub memory: u64,
    /// What a domain gets at most; type and credentials may say less.
    pub limits: Limits,
    /// How long requests in progress are waited for when the loader stops.
    pub grace: Duration,
}

impl Settings {
    /// Frames up to so many bytes are received whatever else is.
    pub const SMALL: usize = 64 << 10;
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            connections: 2048,
            frame: 64 << 20,
            buffered: 256 << 20,
            hello: Duration::from_secs(5),
            transfer: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            lifetime: Duration::from_secs(600),
            workers: std::thread::available_parallelism().map_or(2, |count| count.get().max(2)),
            modules: 256,
            modules_of_one: 16,
            memory: 4 << 30,
            limits: Limits {
                memory: 64 << 20,
                stack: 1 << 20,
                time: Some(Duration::from_secs(1)),
                ..Limits::default()
            },
            grace: Duration::from_secs(5),
        }
    }
}
