//! Ends of channels that leave and come with messages.

use std::ptr::NonNull;

/// The kernel's end of a channel. It is on nobody's list, so any thread may close it; a lock of its holder keeps
/// threads from using it at once. What it does is in `channel::foreign`.
#[derive(Debug)]
pub struct Foreign(pub(crate) NonNull<()>);

// SAFETY: an end in flight belongs to no thread.
unsafe impl Send for Foreign {}

/// Endpoints that go along with messages in one direction of a channel.
#[derive(Debug, Default)]
pub struct Leaving {
    pub(crate) next: u32,
    /// Those of the message that is being written, by their numbers.
    pub ends: Vec<(u32, Foreign)>,
}

/// Endpoints that come along with messages in one direction of a channel.
#[derive(Debug, Default)]
pub struct Arriving {
    pub(crate) next: u32,
    /// The peers of those of the message that is being read, by their numbers.
    pub ends: Vec<(u32, Foreign)>,
}
