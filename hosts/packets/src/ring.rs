//! A port on a network interface: a packet socket with a ring of frames that the kernel and we share.
//!
//! ```text
//!   kernel ──► block 0 | block 1 | ...     each frame: a header with its status, then its bytes
//!              status 0: the kernel's, 1 (USER): ours; what we have read we give back
//! ```
//! packet(7), and "Packet MMAP" in the kernel's documentation (TPACKET_V2). Frames are sent by `send`.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Bytes of a ring, unless it is said: at 100,000 frames a second of an interface of 1500 bytes, a sixth of a second.
pub const RING: usize = 32 << 20;
/// Bytes of a block at least.
const BLOCK: usize = 64 << 10;
/// Bytes in front of a frame in its place, at most: the kernel's header, and what it leaves free.
const BEFORE: usize = 128;

/// Bytes of a tag of a VLAN, which the kernel takes out of a frame and tells apart from it.
const TAG: usize = 4;

const OFFLOADS: [u32; 4] = [
    // ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_SUFO: frames as they would be on a wire.
    0x1f, 0x24, 0x2c, 0x22,
];
const SIOCETHTOOL: libc::c_ulong = 0x8946;
const SIOCGIFMTU: libc::c_ulong = 0x8921;
/// Frames that are handed to the kernel in one call, at most.
const SENT: usize = 64;

/// A port.
#[derive(Debug)]
pub struct Port {
    socket: OwnedFd,
    ring: *mut u8,
    /// Bytes of the ring, and of a frame's place in it.
    length: usize,
    slot: usize,
    next: usize,
}

// SAFETY: the ring belongs to this value alone, and whoever reads it has it mutably.
unsafe impl Send for Port {}

/// What is known of a frame that came in.
#[derive(Debug)]
pub struct Received {
    /// Since 1970.
    pub time: Duration,
    /// Its checksum is still to be made: it comes from this machine.
    pub wants_checksum: bool,
    /// It is longer than the interface lets through, and cut off: its sender leaves it to its card to cut it.
    pub is_uncut: bool,
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
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
        let name = CString::new(interface).map_err(io::Error::other)?;
        // SAFETY: a string with its end.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        let all = (libc::ETH_P_ALL as u16).to_be();
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // Protocol 0: nothing comes in before it is bound.
        // SAFETY: no memory is handed over.
        let socket = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        // SAFETY: it was just made, and nobody else has it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        switch_off_offloads(&socket, name.as_bytes());
        set(
            &socket,
            libc::PACKET_VERSION,
            &libc::tpacket_versions::TPACKET_V2,
        )?;
        // Not what we send ourselves; and not twice through the queues.
        set(&socket, libc::PACKET_IGNORE_OUTGOING, &1i32)?;
        let slot = slot(&socket, name.as_bytes())?;
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
        };
        let promiscuous = libc::packet_mreq {
            mr_ifindex: index as i32,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set(&port.socket, libc::PACKET_ADD_MEMBERSHIP, &promiscuous)?;
        // SAFETY: all zeros are an address of no kind, made one below.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = all;
        address.sll_ifindex = index as i32;
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

    /// The next frame, if there is one; its bytes, with its tag if it had one, take the place of what is in `bytes`.
    pub fn receive(&mut self, bytes: &mut Vec<u8>) -> Option<Received> {
        // SAFETY: `next` is a slot of the ring, and slots are aligned.
        let slot = unsafe { self.ring.add(self.next * self.slot) };
        // SAFETY: the first field of a slot's header is its status, which the kernel and we write by turns.
        let status = unsafe { AtomicU32::from_ptr(slot.cast()) };
        let found = status.load(Ordering::Acquire);
        if found & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the kernel has filled the header, and leaves the slot alone until we give it back.
        let header = unsafe { slot.cast::<libc::tpacket2_hdr>().read() };
        let start = usize::from(header.tp_mac).min(self.slot);
        let length = (header.tp_snaplen as usize).min(self.slot - start);
        bytes.clear();
        // SAFETY: it lies in the slot, which is ours until its status changes: nothing writes it meanwhile.
        bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(slot.add(start), length) });
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % (self.length / self.slot);
        if found & libc::TP_STATUS_VLAN_VALID != 0 && bytes.len() >= 12 {
            let kind = match found & libc::TP_STATUS_VLAN_TPID_VALID {
                0 => 0x8100,
                _ => header.tp_vlan_tpid,
            };
            let tag: [u8; TAG] = [kind.to_be_bytes(), header.tp_vlan_tci.to_be_bytes()]
                .concat()
                .try_into()
                .unwrap_or_default();
            bytes.splice(12..12, tag);
        }
        Some(Received {
            time: Duration::new(header.tp_sec.into(), header.tp_nsec.min(999_999_999)),
            wants_checksum: found & libc::TP_STATUS_CSUMNOTREADY != 0,
            is_uncut: header.tp_len as usize > length,
        })
    }

    /// Waits until there may be a frame, at most so long.
    ///
    /// # Errors
    /// The interface has gone.
    pub fn wait(&self, at_most: Duration) -> io::Result<()> {
        let mut poll = libc::pollfd {
            fd: self.socket.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let time = at_most.as_millis().min(10_000) as libc::c_int;
        // SAFETY: one entry, as it is told.
        let found = unsafe { libc::poll(&raw mut poll, 1, time) };
        if found > 0 && poll.revents & libc::POLLERR != 0 {
            return Err(io::Error::from_raw_os_error(libc::ENETDOWN));
        }
        Ok(())
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
        let mut pieces = [libc::iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        }; SENT];
        let mut count = 0;
        for frame in frames {
            pieces[count] = libc::iovec {
                iov_base: frame.as_ptr().cast_mut().cast(),
                iov_len: frame.len(),
            };
            count += 1;
            if count == SENT {
                sent += self.send_pieces(&mut pieces);
                count = 0;
            }
        }
        sent + self.send_pieces(&mut pieces[..count])
    }

    /// Each piece is a frame that is there for the call.
    fn send_pieces(&self, pieces: &mut [libc::iovec]) -> u64 {
        // SAFETY: all zeros are a message without address, pieces and control.
        let mut messages: [libc::mmsghdr; SENT] = unsafe { std::mem::zeroed() };
        for (message, piece) in messages.iter_mut().zip(pieces.iter_mut()) {
            message.msg_hdr.msg_iov = piece;
            message.msg_hdr.msg_iovlen = 1;
        }
        let (mut sent, mut next) = (0, 0);
        while next < pieces.len() {
            // SAFETY: as many messages as are told, of a piece each; the kernel only reads what the pieces name.
            let done = unsafe {
                libc::sendmmsg(
                    self.0.as_raw_fd(),
                    messages[next..].as_mut_ptr(),
                    (pieces.len() - next) as u32,
                    0,
                )
            };
            match usize::try_from(done) {
                Ok(done) if done > 0 => {
                    sent += done as u64;
                    next += done;
                }
                _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                // The first of them is the one that is not taken.
                _ => next += 1,
            }
        }
        sent
    }
}

/// Bytes of a frame's place in the ring: the longest that the interface lets through, its tags, and what is before it.
fn slot(socket: &OwnedFd, interface: &[u8]) -> io::Result<usize> {
    let mut request = Request::of(interface, ptr::null_mut());
    // SAFETY: the request is there for the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGIFMTU, &raw mut request) })?;
    // A number lies in the first four bytes of what is a pointer elsewhere.
    let longest = (request.data.addr() as u32).min(0xffff) as usize;
    Ok((BEFORE + 14 + 2 * TAG + longest).next_power_of_two())
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
