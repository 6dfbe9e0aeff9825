//! A port on a network interface by AF_XDP. Frames lie in memory that the kernel and we share, and the system behind the
//! interface does not see them.
//!
//! ```text
//!   memory:  chunk | chunk | ... frames that come in     | chunk | ... frames that go out
//!   fill ring       ── empty chunks ──►  kernel  ── frames ──►  receive ring
//!   transmit ring   ── frames ────────►  kernel  ── sent ────►  completion ring
//! ```
//! "AF_XDP" in the kernel's documentation. A program of five instructions at the interface (`attach.rs`) puts each frame
//! into the receive ring. It is attached in the generic mode, which each interface has, so frames are copied once.

mod attach;
mod queue;

use crate::frame;
use crate::memory::Memory;
use crate::port::Received;
use crate::ring::{self, index_of, longest};
use queue::Queue;
use rustix::io::Errno;
use rustix::net::xdp::{SocketAddrXdp, SocketAddrXdpFlags, XdpUmemReg, XdpUmemRegFlags};
use rustix::net::{AddressFamily, SendFlags, sockopt};
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes in front of a frame in its chunk, which the kernel leaves free (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;
/// Chunks for frames that go out.
const OUTGOING: u32 = 1024;
/// Chunks for frames that come in, at least and at most.
const INCOMING: Range<u32> = 64..1 << 20;
/// Bytes of an Ethernet header, and of a tag of a VLAN.
const HEADER: usize = 14;
const TAG: usize = 4;
/// How often the kernel is asked to send on, at most, before frames are given up.
const TRIES: u32 = 1000;

/// A port.
#[derive(Debug)]
pub struct Port {
    socket: Arc<OwnedFd>,
    memory: Arc<Memory>,
    chunk: usize,
    received: Queue<libc::xdp_desc>,
    fill: Queue<u64>,
    sender: Option<Sender>,
    /// The frames that are taken.
    found: Vec<Found>,
    /// What was told of lost and of uncut frames.
    told: [u64; 2],
    /// The program at the interface goes with the first, the interface's promiscuity with the second.
    _attached: (OwnedFd, OwnedFd),
}

#[derive(Debug)]
struct Found {
    place: Range<usize>,
    time: Duration,
}

/// Frames in our memory, which are ours as long as this is there.
#[derive(Debug)]
pub struct Taken<'p> {
    port: &'p mut Port,
}

impl Taken<'_> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.port.found.len()
    }

    /// There are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, at: usize) -> Received<'_> {
        let found = &self.port.found[at];
        Received {
            time: found.time,
            // SAFETY: it was found to lie in the memory. Its chunk is ours, and nobody writes to it until `self` goes.
            bytes: unsafe {
                std::slice::from_raw_parts(
                    self.port.memory.start().add(found.place.start),
                    found.place.len(),
                )
            },
            is_uncut: false,
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let port = &mut *self.port;
        let chunk = port.chunk;
        for found in &port.found {
            // There is a place for each chunk: it has as many as there are.
            port.fill.put((found.place.start / chunk * chunk) as u64);
        }
        port.fill.publish();
        port.found.clear();
    }
}

impl Port {
    /// Opens the interface: every frame that comes in there is ours, and nobody else's.
    ///
    /// `ring` bytes of frames may wait, about.
    ///
    /// # Errors
    /// No such interface; no right to it (`CAP_NET_RAW`, `CAP_NET_ADMIN` and `CAP_BPF`); the kernel has no AF_XDP; the
    /// interface has frames longer than a page, or several queues.
    pub fn open(interface: &str, ring: usize) -> io::Result<Port> {
        let index = index_of(interface)?;
        let promiscuous = ring::promiscuous(interface, index)?;
        let queues = ring::queues(&promiscuous, interface);
        if queues > 1 {
            return Err(io::Error::other(format!(
                "it has {queues} queues, and one is needed (ethtool -L {interface} combined 1)"
            )));
        }
        let socket = Arc::new(ring::raw_socket(AddressFamily::XDP)?);
        let longest = longest(&promiscuous, interface)? + HEADER;
        let chunk = [2048, 4096]
            .into_iter()
            .find(|chunk| longest + TAG <= chunk - HEADROOM)
            .ok_or_else(|| io::Error::other("its frames are longer than a page"))?;
        let incoming = (ring / chunk).clamp(INCOMING.start as usize, INCOMING.end as usize);
        let incoming = 1u32 << incoming.ilog2();
        let memory = Memory::anonymous((incoming + OUTGOING) as usize * chunk)?;
        let register = XdpUmemReg {
            addr: memory.start().addr() as u64,
            len: memory.len() as u64,
            chunk_size: chunk as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(&*socket, register)?;
        let fill = queue::fill(&socket, incoming)?;
        let completed = queue::completion(&socket, OUTGOING)?;
        let received = queue::receive(&socket, incoming)?;
        let to_send = queue::transmit(&socket, OUTGOING)?;
        let memory = Arc::new(memory);
        let chunks = |chunks: Range<u32>| chunks.map(move |at| u64::from(at) * chunk as u64);
        let mut port = Port {
            sender: Some(Sender {
                socket: socket.clone(),
                memory: memory.clone(),
                chunk,
                longest,
                to_send,
                completed,
                free: chunks(incoming..incoming + OUTGOING).collect(),
            }),
            _attached: (attach::to_interface(&socket, index)?, promiscuous),
            socket,
            memory,
            chunk,
            received,
            fill,
            found: Vec::new(),
            told: [0; 2],
        };
        chunks(0..incoming).for_each(|chunk| port.fill.put(chunk));
        port.fill.publish();
        let address = SocketAddrXdp::new(SocketAddrXdpFlags::XDP_COPY, index, 0);
        rustix::net::bind(&*port.socket, &address)?;
        Ok(port)
    }

    /// Frames that have come, at most so many: they lie in our memory, and their chunks go back to the kernel with what
    /// this gives.
    pub fn take(&mut self, most: usize) -> Taken<'_> {
        self.found.clear();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let time = now.unwrap_or_default();
        while self.found.len() < most {
            let Some(found) = self.received.take() else {
                break;
            };
            let place = found.addr as usize..found.addr as usize + found.len as usize;
            // SAFETY: the kernel has just given us the chunk, so it is the receiver's, and lent to nobody.
            if let Some(bytes) = unsafe { bytes(&raw const *self.memory, &place) } {
                frame::complete(bytes);
                self.found.push(Found { place, time });
            }
        }
        self.received.release();
        Taken { port: self }
    }

    /// Waits until there may be a frame, at most so long.
    ///
    /// # Errors
    /// The interface has gone.
    pub fn wait(&self, at_most: Duration) -> io::Result<()> {
        ring::wait(&self.socket, at_most)
    }

    /// What sends frames out here, for another thread; once.
    ///
    /// # Errors
    /// It was given already.
    pub fn sender(&mut self) -> io::Result<Sender> {
        let sender = self.sender.take();
        sender.ok_or_else(|| io::Error::other("the port's sender is somebody else's"))
    }

    /// Frames that the kernel could not keep for us since the last question, and frames that were longer than a chunk.
    pub fn lost(&mut self) -> [u64; 2] {
        let Ok(found) = sockopt::xdp_statistics(&*self.socket) else {
            return [0; 2];
        };
        let without = found.rx_fill_ring_empty_descs.unwrap_or_default();
        let full = found.rx_ring_full.unwrap_or_default();
        // What had no chunk is counted twice: as dropped, and as an empty fill ring.
        let without = without.min(found.rx_dropped);
        let all = [full + without, found.rx_dropped - without];
        let new = [0, 1].map(|at: usize| all[at].saturating_sub(self.told[at]));
        self.told = all;
        new
    }
}

/// Sends frames out at a port.
#[derive(Debug)]
pub struct Sender {
    socket: Arc<OwnedFd>,
    memory: Arc<Memory>,
    chunk: usize,
    /// Bytes of a frame without a tag, at most.
    longest: usize,
    to_send: Queue<libc::xdp_desc>,
    completed: Queue<u64>,
    /// Chunks that nothing lies in.
    free: Vec<u64>,
}

impl Sender {
    /// Sends frames, as many as it can: how many that are. The others were longer than the interface lets through, or
    /// the kernel did not take them.
    pub fn send<'f>(&mut self, frames: impl Iterator<Item = &'f [u8]>) -> u64 {
        let mut sent = 0;
        for frame in frames {
            let tag = if frame::layout(frame).vlans.is_empty() {
                0
            } else {
                TAG
            };
            if frame.len() < HEADER || frame.len() > self.longest + tag {
                continue;
            }
            if self.free.is_empty() {
                sent -= self.push_out();
            }
            let Some(chunk) = self.free.pop() else {
                continue;
            };
            let at = chunk as usize + HEADROOM;
            // SAFETY: it lies in a chunk of the sender's, which was free.
            let Some(place) = (unsafe { bytes(&raw const *self.memory, &(at..at + frame.len())) })
            else {
                continue;
            };
            place.copy_from_slice(frame);
            self.to_send.put(libc::xdp_desc {
                addr: at as u64,
                len: frame.len() as u32,
                options: 0,
            });
            sent += 1;
        }
        (sent - self.push_out()).max(0) as u64
    }

    /// Has the kernel send what is in the ring: how many frames of it went nowhere.
    fn push_out(&mut self) -> i64 {
        self.to_send.publish();
        let mut failed = 0;
        for _ in 0..TRIES {
            if self.to_send.is_consumed() {
                break;
            }
            match rustix::net::send(&*self.socket, &[], SendFlags::DONTWAIT) {
                // A frame of it went nowhere.
                Err(Errno::BUSY) => failed += 1,
                // After some frames the kernel wants to be asked again; or it has no memory now.
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => std::thread::yield_now(),
            }
            self.reclaim();
        }
        self.reclaim();
        failed
    }

    fn reclaim(&mut self) {
        while let Some(at) = self.completed.take() {
            self.free.push(at / self.chunk as u64 * self.chunk as u64);
        }
        self.completed.release();
    }
}

/// Bytes of a chunk, which must be the caller's alone as long as it has them. Nothing, if they do not lie in the memory.
unsafe fn bytes<'m>(memory: *const Memory, place: &Range<usize>) -> Option<&'m mut [u8]> {
    // SAFETY: whoever has the chunk has the memory.
    let (start, length) = unsafe { ((*memory).start(), (*memory).len()) };
    if place.start > place.end || place.end > length {
        return None;
    }
    // SAFETY: it lies in the memory, and the chunk is the caller's alone.
    Some(unsafe { std::slice::from_raw_parts_mut(start.add(place.start), place.len()) })
}
