//! What a host may grant its processes beyond memory and time: a socket that listens, a directory to read.
//!
//! A process has no files and no sockets. Where a configuration says so (`[services.NAME]`, docs/sip-running.md), the
//! host serves one of these contracts at the name `/host/NAME`. A process that may look that name up has the power.
//! So a grant is a right on a name like any other. It is the same in one address space and behind a wall of the
//! hardware. The contract says what a process can do with it: to answer who calls, but not to call anybody. Another:
//! to read below one directory, but not to write.
//!
//! Both contracts answer each request at once or within a time that the request names. So neither a silent client of
//! the network nor a slow disk keeps a process for longer than it wants.

use crate::{ExString, ExVec, Exchange, contract};

/// Where a name of the host begins: the service `web` is at `/host/web`.
pub const PREFIX: &str = "/host/";

/// Bytes of one [`socket`] read and of one piece of a [`directory`]'s file, at most.
pub const LARGEST: u32 = 64 << 10;

/// Channels to one service at a time, at most. More are closed at once.
pub const CHANNELS: usize = 64;

/// Milliseconds that a [`Wanted`] may wait, at most.
pub const LONGEST_WAIT: u32 = 60_000;

/// Who is at the other end of a connection.
#[derive(Exchange, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// IPv6; of an IPv4 address the form `::ffff:a.b.c.d`.
    pub address: [u8; 16],
    /// Its port.
    pub port: u16,
}

/// What is to be read from a connection.
#[derive(Exchange, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Bytes, at most; no more than [`LARGEST`].
    pub bytes: u32,
    /// How long to wait for the first of them, in milliseconds; no more than [`LONGEST_WAIT`].
    pub within: u32,
}

contract! {
    /// A connection of a listening socket, and after it the next. A process that wants several at a time opens the
    /// service as often.
    pub mod socket {
        Idle: client { Accept -> Waiting, Done -> end }
        // `Nobody` comes after a second at most, so that a peer that has ended is found out.
        Waiting: server { Accepted(super::Peer) -> Open, Nobody -> Idle }
        // To close is to be idle again; the connection is shut in both directions.
        Open: client { Read(super::Wanted) -> Reading, Write(ExVec<u8>) -> Writing, Close -> Idle }
        // `Late`: nothing has come within the time. `Ended`: nothing will come.
        Reading: server { Data(ExVec<u8>) -> Open, Late -> Open, Ended -> Open }
        // `Lost`: not everything could be written, within ten seconds or at all.
        Writing: server { Written -> Open, Lost -> Open }
    }
}

/// A piece of a file.
#[derive(Exchange, Debug)]
pub struct Piece {
    /// Path below the directory: `part/part`, without a `/` in front.
    pub path: ExString,
    /// Where the piece begins, in bytes.
    pub offset: u64,
    /// How long it may be; no more than [`LARGEST`].
    pub bytes: u32,
}

/// What there was.
#[derive(Exchange, Debug)]
pub struct Found {
    /// Bytes of the whole file, at this moment.
    pub size: u64,
    /// The piece; shorter than was asked for at the end of the file only, and empty beyond it.
    pub bytes: ExVec<u8>,
}

/// Why a file could not be read.
#[derive(Exchange, Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Refused {
    /// There is none of that path, or the path leads out of the directory.
    NotFound,
    /// It is a directory, a socket or whatever else is no file.
    NotAFile,
    /// The system does not let the host read it.
    NotPermitted,
    /// Reading failed, or there is no memory for the piece.
    Failed,
}

contract! {
    /// Files below a directory, to be read. Nothing is kept between two requests.
    pub mod directory {
        Idle: client { Read(super::Piece) -> Busy, Done -> end }
        Busy: server { Piece(super::Found) -> Idle, Refused(super::Refused) -> Idle }
    }
}
