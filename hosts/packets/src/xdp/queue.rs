//! The rings of AF_XDP, each with one writer and one reader: one of them is the kernel.

use crate::memory::Memory;
use rustix::net::sockopt;
use rustix::net::xdp::XdpRingOffset;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Our end of a ring.
#[derive(Debug)]
pub(super) struct Queue<T> {
    map: Memory,
    producer: usize,
    consumer: usize,
    entries: usize,
    mask: u32,
    /// How far we are: what we have put or taken, told or not.
    own: u32,
    of: std::marker::PhantomData<T>,
}

pub(super) fn fill(socket: &OwnedFd, count: u32) -> io::Result<Queue<u64>> {
    sockopt::set_xdp_umem_fill_ring_size(socket, count)?;
    let offset = sockopt::xdp_mmap_offsets(socket)?.fr;
    Queue::new(
        socket,
        libc::XDP_UMEM_PGOFF_FILL_RING as i64,
        count,
        &offset,
    )
}

pub(super) fn completion(socket: &OwnedFd, count: u32) -> io::Result<Queue<u64>> {
    sockopt::set_xdp_umem_completion_ring_size(socket, count)?;
    let offset = sockopt::xdp_mmap_offsets(socket)?.cr;
    let place = libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64;
    Queue::new(socket, place, count, &offset)
}

pub(super) fn receive(socket: &OwnedFd, count: u32) -> io::Result<Queue<libc::xdp_desc>> {
    sockopt::set_xdp_rx_ring_size(socket, count)?;
    let offset = sockopt::xdp_mmap_offsets(socket)?.rx;
    Queue::new(socket, libc::XDP_PGOFF_RX_RING, count, &offset)
}

pub(super) fn transmit(socket: &OwnedFd, count: u32) -> io::Result<Queue<libc::xdp_desc>> {
    sockopt::set_xdp_tx_ring_size(socket, count)?;
    let offset = sockopt::xdp_mmap_offsets(socket)?.tx;
    Queue::new(socket, libc::XDP_PGOFF_TX_RING, count, &offset)
}

impl<T: Copy> Queue<T> {
    /// `count` is a power of two.
    fn new(
        socket: &OwnedFd,
        place: i64,
        count: u32,
        offset: &XdpRingOffset,
    ) -> io::Result<Queue<T>> {
        let entries = offset.desc as usize;
        let length = entries + count as usize * size_of::<T>();
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Ok(Queue {
            map: Memory::map(length, flags, socket.as_raw_fd(), place)?,
            producer: offset.producer as usize,
            consumer: offset.consumer as usize,
            entries,
            mask: count - 1,
            own: 0,
            of: std::marker::PhantomData,
        })
    }

    fn number(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the kernel says that a number lies there, which it and we change atomically.
        unsafe { AtomicU32::from_ptr(self.map.start().add(at).cast()) }
    }

    fn entry(&self, at: u32) -> *mut T {
        let at = self.entries + (at & self.mask) as usize * size_of::<T>();
        // SAFETY: the ring has as many entries as the mask says and one.
        unsafe { self.map.start().add(at).cast() }
    }

    /// Puts an entry. The caller puts no more than there are places: so many chunks as the ring has entries.
    pub(super) fn put(&mut self, entry: T) {
        // SAFETY: the kernel does not read it before it is told.
        unsafe { self.entry(self.own).write(entry) };
        self.own = self.own.wrapping_add(1);
    }

    /// Tells what was put.
    pub(super) fn publish(&self) {
        self.number(self.producer)
            .store(self.own, Ordering::Release);
    }

    /// Whether the kernel has taken all that was told.
    pub(super) fn is_consumed(&self) -> bool {
        self.number(self.consumer).load(Ordering::Acquire) == self.own
    }

    /// The next entry that the kernel has put.
    pub(super) fn take(&mut self) -> Option<T> {
        if self.number(self.producer).load(Ordering::Acquire) == self.own {
            return None;
        }
        // SAFETY: the kernel has written it, and writes it no more before it is told that we have it.
        let entry = unsafe { self.entry(self.own).read() };
        self.own = self.own.wrapping_add(1);
        Some(entry)
    }

    /// Tells that what was taken may be written again.
    pub(super) fn release(&self) {
        self.number(self.consumer)
            .store(self.own, Ordering::Release);
    }
}
