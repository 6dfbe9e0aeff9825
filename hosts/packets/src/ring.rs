//! A port on a network interface: a packet socket with a ring of frames that the kernel and we share.
//!
//! ```text
//!   kernel ──► block 0 | block 1 | ...     each frame: a header with its status, then its bytes
//!              status 0: the kernel's, 1 (USER): ours; what we have read we give back
//! ```
//! packet(7), and "Packet MMAP" in the kernel's documentation (TPACKET_V2). Frames are sent by `send`.

use crate::frame;
use crate::port::Received;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::{
    AddressFamily, MMsgHdr, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, sendmmsg,
    socket_with,
};
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Bytes of a ring, unless it is said: at 100,000 frames a second of an interface of 1500 bytes, a third of a second.
pub const RING: usize = 64 << 20;
/// Bytes of a block at least.
const BLOCK: usize = 64 << 10;
/// Bytes in front of a frame in its place, at most: the kernel's header, and what it leaves free.
const BEFORE: usize = 128;

/// Bytes in front of a frame that are there at least: the header, and a place for a tag.
const LEFT: usize = size_of::<libc::tpacket2_hdr>() + TAG;
/// Bytes of a tag of a VLAN, which the kernel takes out of a frame and tells apart from it.
const TAG: usize = 4;

const OFFLOADS: [u32; 4] = [
    // ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_SUFO: frames as they would be on a wire.
    0x1f, 0x24, 0x2c, 0x22,
];
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const SIOCETHTOOL: libc::c_ulong = 0x8946;
const SIOCGIFMTU: libc::c_ulong = 0x8921;
/// Frames that are handed to the kernel in one call, at most.
const SENT: usize = 64;
/// How long a wait for a frame takes, at most.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A port.
#[derive(Debug)]
pub struct Port {
    socket: OwnedFd,
    ring: *mut u8,
    /// Bytes of the ring, and of a frame's place in it.
    length: usize,
    slot: usize,
    next: usize,
    /// The frames that are taken.
    found: Vec<Found>,
}

/// A frame that lies in a slot.
#[derive(Debug)]
struct Found {
    place: Range<usize>,
    time: Duration,
    is_uncut: bool,
}

/// Frames in the ring, which are ours as long as this is there.
#[derive(Debug)]
pub struct Taken<'p> {
    port: &'p mut Port,
    count: usize,
}

// SAFETY: the ring belongs to this value alone, and whoever reads it has it mutably.
unsafe impl Send for Port {}

impl Taken<'_> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// There are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// One of them, of those in the order in which they came.
    #[must_use]
    pub fn get(&self, at: usize) -> Received<'_> {
        let (port, found) = (&*self.port, &self.port.found[at]);
        let slots = port.length / port.slot;
        // SAFETY: it is a slot of the ring.
        let slot = unsafe { port.ring.add((port.next + at) % slots * port.slot) };
        // SAFETY: the slot is ours, and nobody writes to it until `self` goes.
        let slot = unsafe { std::slice::from_raw_parts(slot, port.slot) };
        Received {
            time: found.time,
            bytes: &slot[found.place.clone()],
            is_uncut: found.is_uncut,
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let port = &mut *self.port;
        let slots = port.length / port.slot;
        for _ in 0..self.count {
            // SAFETY: it is a slot of the ring, whose first field is its status, and nobody borrows from it any more.
            let status =
                unsafe { AtomicU32::from_ptr(port.ring.add(port.next * port.slot).cast()) };
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            port.next = (port.next + 1) % slots;
        }
    }
}

/// Finds a frame in its slot; puts its tag back, and makes a checksum that was left to a card.
fn frame(slot: &mut [u8], status: u32, header: &libc::tpacket2_hdr) -> Found {
    let mut start = usize::from(header.tp_mac).min(slot.len());
    let end = start + (header.tp_snaplen as usize).min(slot.len() - start);
    let is_uncut = header.tp_len as usize > end - start;
    if status & libc::TP_STATUS_VLAN_VALID != 0 && end - start >= 12 && start >= LEFT {
        let kind = match status & libc::TP_STATUS_VLAN_TPID_VALID {
            0 => 0x8100,
            _ => header.tp_vlan_tpid,
        };
        slot.copy_within(start..start + 12, start - TAG);
        start -= TAG;
        slot[start + 12..start + 14].copy_from_slice(&kind.to_be_bytes());
        slot[start + 14..start + 16].copy_from_slice(&header.tp_vlan_tci.to_be_bytes());
    }
    let bytes = &mut slot[start..end];
    if status & libc::TP_STATUS_CSUMNOTREADY != 0 && !is_uncut {
        let packet = frame::layout(bytes).packet;
        let end = packet.map_or(bytes.len(), |packet| packet.bytes.end);
        frame::repair(bytes, end);
    }
    Found {
        place: start..end,
        time: Duration::new(header.tp_sec.into(), header.tp_nsec.min(999_999_999)),
        is_uncut,
    }
}

pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    match result {
        0.. => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the value is there for the call, and its size is told.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })
    .map(|_| ())
}

#[repr(C)]
struct Request {
    name: [libc::c_char; libc::IFNAMSIZ],
    data: *mut libc::c_void,
    rest: [u64; 2],
}

impl Request {
    fn of(interface: &[u8], data: *mut libc::c_void) -> Request {
        let mut request = Request {
            name: [0; libc::IFNAMSIZ],
            data,
            rest: [0; 2],
        };
        let name = request.name.iter_mut().take(libc::IFNAMSIZ - 1);
        name.zip(interface)
            .for_each(|(to, from)| *to = *from as libc::c_char);
        request
    }
}

impl Port {
    /// Opens the interface: every frame that comes in there is ours to read, besides whatever else the system does
    /// with it. Segmentation by the card is switched off, where it can be, so that frames are those of a wire.
    ///
    /// The ring has about `ring` bytes.
    ///
    /// # Errors
    /// The system's: no such interface, or no right to it (`CAP_NET_RAW`).
    pub fn open(interface: &str, ring: usize) -> io::Result<Port> {
        let index = index_of(interface)?;
        let all = (libc::ETH_P_ALL as u16).to_be();
        let socket = raw_socket(AddressFamily::PACKET)?;
        switch_off_offloads(&socket, interface.as_bytes());
        set(
            &socket,
            libc::PACKET_VERSION,
            &libc::tpacket_versions::TPACKET_V2,
        )?;
        // Not what we send ourselves; and not twice through the queues.
        set(&socket, libc::PACKET_IGNORE_OUTGOING, &1i32)?;
        set(&socket, libc::PACKET_RESERVE, &(TAG as u32))?;
        // Its longest frame, its tags, and what is before it.
        let slot = BEFORE + 14 + 2 * TAG + longest(&socket, interface)?;
        let slot = slot.next_power_of_two();
        let block = BLOCK.max(slot);
        let blocks = (ring / block).max(1);
        let request = libc::tpacket_req {
            tp_block_size: block as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot as u32,
            tp_frame_nr: (block / slot * blocks) as u32,
        };
        set(&socket, libc::PACKET_RX_RING, &request)?;
        let length = block * blocks;
        // SAFETY: no address is asked for; the length is that of the ring.
        let ring = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if ring == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let port = Port {
            socket,
            ring: ring.cast(),
            length,
            slot,
            next: 0,
            found: Vec::new(),
        };
        be_promiscuous(&port.socket, index)?;
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: all,
            sll_ifindex: index as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: the address is there for the call, and its size is told.
        check(unsafe {
            libc::bind(
                port.socket.as_raw_fd(),
                ptr::from_ref(&address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        })?;
        Ok(port)
    }

    /// Frames that have come, at most so many: they lie in the ring, and go back to the kernel with what this gives.
    pub fn take(&mut self, most: usize) -> Taken<'_> {
        self.found.clear();
        let mut count = 0;
        let slots = self.length / self.slot;
        while count < most.min(slots) {
            // SAFETY: it is a slot of the ring, and slots are aligned.
            let slot = unsafe { self.ring.add((self.next + count) % slots * self.slot) };
            // SAFETY: the first field of a slot's header is its status, which the kernel and we write by turns.
            let status = unsafe { AtomicU32::from_ptr(slot.cast()) }.load(Ordering::Acquire);
            if status & libc::TP_STATUS_USER == 0 {
                break;
            }
            // SAFETY: the kernel has filled the header, and leaves the slot alone until we give it back.
            let header = unsafe { slot.cast::<libc::tpacket2_hdr>().read() };
            // SAFETY: it lies in the ring, of which nothing is lent while the port is had mutably.
            let slot = unsafe { std::slice::from_raw_parts_mut(slot, self.slot) };
            self.found.push(frame(slot, status, &header));
            count += 1;
        }
        Taken { port: self, count }
    }

    /// Waits until there may be a frame, at most so long.
    ///
    /// # Errors
    /// The interface has gone.
    pub fn wait(&self, at_most: Duration) -> io::Result<()> {
        wait(&self.socket, at_most)
    }

    /// What sends frames out here, for another thread.
    ///
    /// # Errors
    /// The system's: no descriptor is left.
    pub fn sender(&self) -> io::Result<Sender> {
        Ok(Sender(self.socket.try_clone()?))
    }

    /// Frames that the kernel could not keep for us since the last question.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let mut counts = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let mut size = size_of_val(&counts) as libc::socklen_t;
        // SAFETY: both are there for the call.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut counts).cast(),
                &raw mut size,
            )
        };
        if result == 0 {
            counts.tp_drops.into()
        } else {
            0
        }
    }
}

/// Sends frames out at a port.
#[derive(Debug)]
pub struct Sender(OwnedFd);

impl Sender {
    /// Sends frames, as many as it can: how many that are. The others were longer than the interface lets through, or
    /// there was no memory, or it is down.
    pub fn send<'f>(&self, frames: impl Iterator<Item = &'f [u8]>) -> u64 {
        let mut sent = 0;
        let mut pieces = [IoSlice::new(&[]); SENT];
        let mut count = 0;
        for frame in frames {
            pieces[count] = IoSlice::new(frame);
            count += 1;
            if count == SENT {
                sent += self.send_pieces(&pieces);
                count = 0;
            }
        }
        sent + self.send_pieces(&pieces[..count])
    }

    /// Each piece is a frame.
    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> u64 {
        let mut beside: [SendAncillaryBuffer<'_, '_, '_>; SENT] =
            std::array::from_fn(|_| SendAncillaryBuffer::default());
        let messages = pieces.iter().zip(&mut beside);
        let mut messages: Vec<_> = messages
            .map(|(piece, beside)| MMsgHdr::new(std::slice::from_ref(piece), beside))
            .collect();
        let (mut sent, mut next) = (0, 0);
        while next < pieces.len() {
            match sendmmsg(&self.0, &mut messages[next..], SendFlags::empty()) {
                Ok(done) if done > 0 => {
                    sent += done as u64;
                    next += done;
                }
                Err(Errno::INTR) => {}
                // The first of them is the one that is not taken.
                _ => next += 1,
            }
        }
        sent
    }
}

/// The number of an interface.
pub(crate) fn index_of(interface: &str) -> io::Result<u32> {
    // Any socket does for the question, by anybody.
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    Ok(name_to_index(&socket, interface)?)
}

/// A socket for frames that nothing comes in at before it is bound: of protocol 0.
pub(crate) fn raw_socket(family: AddressFamily) -> io::Result<OwnedFd> {
    Ok(socket_with(
        family,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Every frame comes in at the interface as long as this is there, and is one of a wire, as far as the interface can.
pub(crate) fn promiscuous(interface: &str, index: u32) -> io::Result<OwnedFd> {
    let socket = raw_socket(AddressFamily::PACKET)?;
    switch_off_offloads(&socket, interface.as_bytes());
    be_promiscuous(&socket, index)?;
    Ok(socket)
}

fn be_promiscuous(socket: &OwnedFd, index: u32) -> io::Result<()> {
    let promiscuous = libc::packet_mreq {
        mr_ifindex: index as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set(socket, libc::PACKET_ADD_MEMBERSHIP, &promiscuous)
}

/// Waits until something may be read, at most so long.
pub(crate) fn wait(socket: &OwnedFd, at_most: Duration) -> io::Result<()> {
    let mut polled = [PollFd::new(socket, PollFlags::IN)];
    let at_most = Timespec::try_from(at_most.min(LONGEST_WAIT)).map_err(io::Error::other)?;
    // An interrupted wait is a short one.
    let found = poll(&mut polled, Some(&at_most)).unwrap_or_default();
    if found > 0 && polled[0].revents().contains(PollFlags::ERR) {
        return Err(io::Error::from(Errno::NETDOWN));
    }
    Ok(())
}

/// Bytes of the longest packet that the interface lets through.
pub(crate) fn longest(socket: &OwnedFd, interface: &str) -> io::Result<usize> {
    let mut request = Request::of(interface.as_bytes(), ptr::null_mut());
    // SAFETY: the request is there for the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGIFMTU, &raw mut request) })?;
    // A number lies in the first four bytes of what is a pointer elsewhere.
    Ok((request.data.addr() as u32).min(0xffff) as usize)
}

/// Queues that frames come in by; one, if the interface does not tell.
pub(crate) fn queues(socket: &OwnedFd, interface: &str) -> u32 {
    // `struct ethtool_channels`: the command, four numbers of what there may be, four of what there is.
    let mut value = [ETHTOOL_GCHANNELS, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut request = Request::of(interface.as_bytes(), value.as_mut_ptr().cast());
    // SAFETY: the request and its value are there for the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    let [_, _, _, _, _, receive, _, _, both] = value;
    if result == 0 {
        (receive + both).max(1)
    } else {
        1
    }
}

/// As far as the interface has them, and we may.
fn switch_off_offloads(socket: &OwnedFd, interface: &[u8]) {
    for command in OFFLOADS {
        let mut value = [command, 0];
        let mut request = Request::of(interface, value.as_mut_ptr().cast());
        // SAFETY: the request and its value are there for the call. What it answers decides nothing.
        unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // SAFETY: it is the ring that was mapped, and nothing borrows from it.
        unsafe { libc::munmap(self.ring.cast(), self.length) };
    }
}
