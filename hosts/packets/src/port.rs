//! A port, in either of the ways that the system has: a ring of a packet socket, or AF_XDP.

use crate::{ring, xdp};
use serde::{Deserialize, Serialize};
use std::io;
use std::time::Duration;

/// By which way frames come in and go out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// A packet socket: frames are copies of what the system behind the interface gets too.
    #[default]
    Packet,
    /// AF_XDP: frames are ours alone.
    Xdp,
}

/// A port.
#[derive(Debug)]
pub enum Port {
    /// See there.
    Packet(ring::Port),
    /// See there.
    Xdp(Box<xdp::Port>),
}

/// Frames that came in, which are ours as long as this is there.
#[derive(Debug)]
pub enum Taken<'p> {
    /// See there.
    Packet(ring::Taken<'p>),
    /// See there.
    Xdp(xdp::Taken<'p>),
}

/// A frame that came in.
#[derive(Debug)]
pub struct Received<'t> {
    /// Since 1970.
    pub time: Duration,
    /// With its tag, if it had one, and its checksum.
    pub bytes: &'t [u8],
    /// It is longer than the interface lets through, and cut off: its sender leaves it to its card to cut it.
    pub is_uncut: bool,
}

/// Sends frames out at a port.
#[derive(Debug)]
pub enum Sender {
    /// See there.
    Packet(ring::Sender),
    /// See there.
    Xdp(Box<xdp::Sender>),
}

impl Port {
    /// Opens an interface, by a way.
    ///
    /// # Errors
    /// As [`ring::Port::open`] and [`xdp::Port::open`] list.
    pub fn open(interface: &str, way: Way, ring: usize) -> io::Result<Port> {
        match way {
            Way::Packet => ring::Port::open(interface, ring).map(Port::Packet),
            Way::Xdp => {
                let port = xdp::Port::open(interface, ring)?;
                Ok(Port::Xdp(Box::new(port)))
            }
        }
    }

    /// By which way.
    #[must_use]
    pub fn way(&self) -> Way {
        match self {
            Port::Packet(_) => Way::Packet,
            Port::Xdp(_) => Way::Xdp,
        }
    }

    /// Frames that have come, at most so many. They go back to the kernel with what this gives.
    pub fn take(&mut self, most: usize) -> Taken<'_> {
        match self {
            Port::Packet(port) => Taken::Packet(port.take(most)),
            Port::Xdp(port) => Taken::Xdp(port.take(most)),
        }
    }

    /// Waits until there may be a frame, at most so long.
    ///
    /// # Errors
    /// The interface has gone.
    pub fn wait(&self, at_most: Duration) -> io::Result<()> {
        match self {
            Port::Packet(port) => port.wait(at_most),
            Port::Xdp(port) => port.wait(at_most),
        }
    }

    /// What sends frames out here, for another thread; once.
    ///
    /// # Errors
    /// The system's; it was given already.
    pub fn sender(&mut self) -> io::Result<Sender> {
        match self {
            Port::Packet(port) => port.sender().map(Sender::Packet),
            Port::Xdp(port) => Ok(Sender::Xdp(Box::new(port.sender()?))),
        }
    }

    /// Since the last question: frames that the kernel could not keep for us, and frames longer than the interface that
    /// we never saw.
    pub fn lost(&mut self) -> [u64; 2] {
        match self {
            Port::Packet(port) => [port.lost(), 0],
            Port::Xdp(port) => port.lost(),
        }
    }
}

impl Taken<'_> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Taken::Packet(taken) => taken.len(),
            Taken::Xdp(taken) => taken.len(),
        }
    }

    /// There are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The frames, in the order in which they came.
    pub fn frames(&self) -> impl Iterator<Item = Received<'_>> {
        (0..self.len()).map(|at| match self {
            Taken::Packet(taken) => taken.get(at),
            Taken::Xdp(taken) => taken.get(at),
        })
    }
}

impl Sender {
    /// Sends frames, as many as it can: how many that are.
    pub fn send<'f>(&mut self, frames: impl Iterator<Item = &'f [u8]>) -> u64 {
        match self {
            Sender::Packet(sender) => sender.send(frames),
            Sender::Xdp(sender) => sender.send(frames),
        }
    }
}
