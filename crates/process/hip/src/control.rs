//! The socket between the host and a domain: whole messages, and descriptors of memory with them.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use mullion_sip::Exchange;
use mullion_sip::exchange::wire::{from_bytes, to_bytes};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::message::LONGEST;

/// Descriptors with a message, at most: three fewer than Linux lets pass.
pub(crate) const DESCRIPTORS: usize = 250;

/// One end.
#[derive(Debug)]
pub(crate) struct Control(OwnedFd);

impl Control {
    pub(crate) fn pair() -> io::Result<(Control, OwnedFd)> {
        let (mine, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Control(mine), theirs))
    }

    pub(crate) fn new(socket: OwnedFd) -> Control {
        Control(socket)
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Sends a message. Never waits: a peer that does not read what it is told would miss that others have ended,
    /// and wait for them for ever, so the socket is shut instead, and the host ends the domain.
    pub(crate) fn send<T: Exchange>(
        &self,
        message: &T,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        self.try_send(message, descriptors).inspect_err(|_| {
            // It may be shut already.
            let _ = rustix::net::shutdown(&self.0, rustix::net::Shutdown::Both);
        })
    }

    fn try_send<T: Exchange>(&self, message: &T, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = to_bytes(message, LONGEST).map_err(io::Error::other)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut control, flags)?;
        Ok(())
    }

    /// Waits for a message; `None` when the peer is no more. Of descriptors so many come with it (Linux may round up), and
    /// others do not even for a moment: there is a limit to how many a program has.
    ///
    /// # Errors
    /// What came is no message.
    pub(crate) fn receive<T: Exchange>(
        &self,
        descriptors: usize,
    ) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        let mut bytes = vec![0; LONGEST];
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(descriptors))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let mut into = [IoSliceMut::new(&mut bytes)];
            match recvmsg(&self.0, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::CONNRESET) => return Ok(None),
                other => break other?.bytes,
            }
        };
        if received == 0 {
            return Ok(None);
        }
        let descriptors = control
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
                _ => None,
            })
            .flatten()
            .collect();
        let message = from_bytes(&bytes[..received]).map_err(io::Error::other)?;
        Ok(Some((message, descriptors)))
    }
}
