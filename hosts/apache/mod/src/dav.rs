//! What mod_dav and its partners need of the wall: an error for a call that was ended, and names for the state of a file.

use crate::apr;
use crate::call::{has, mediate};
use crate::copied;
use crate::frame::Frame;
use crate::layout::{self, read};
use crate::object::Kind;
use crate::opened;
use crate::states::real;
use crate::walled::Answer;
use std::os::fd::AsRawFd;

/// A `dav_error` for what the wall has ended: its status, and nothing else. No module may write it.
static ENDED: [u64; 8] = [500, 0, 0, 0, 0, 0, 0, 0];

/// What a function of mod_dav's answers that was ended.
pub(crate) fn ended() -> u64 {
    ENDED.as_ptr() as u64
}

/// Words of an `etag_rec`, and where its parts are.
const RECORD: usize = 6;
mod record {
    pub(super) const INFO: usize = 2;
    pub(super) const PATH: usize = 3;
    pub(super) const FILE: usize = 4;
}

/// Words of an `apr_finfo_t`. Two numbers and a date are all that is read of it.
const INFO: usize = 15;
/// Where its pool is, and the three pointers at its end.
const POINTERS: [usize; 4] = [0, 12, 13, 14];
/// The word that has the kind of the file, and the kind of a regular one.
const KIND: usize = 2;
const REGULAR: u64 = 1;

/// `ap_make_etag_ex(request_rec *, etag_rec *)`. The server may read the file to its end, so it gets the very file that was looked at.
pub(crate) extern "C" fn ap_make_etag_ex(r: u64, record: u64) -> u64 {
    const NAME: &str = "ap_make_etag_ex";
    mediate(|frame| made(frame, r, record).map_err(|what| format!("{NAME}: {what}")))
}

fn made(frame: &Frame, r: u64, at: u64) -> Answer<u64> {
    let walled = frame.walled;
    let Some(r) = walled.shadow(frame, r)? else {
        return Err(format!(
            "{r:#x} is no request that the module was given or has made"
        ));
    };
    let mut copy: [u64; RECORD] = copied::words(frame, at)?;
    let mut info: [u64; INFO] = copied::words(frame, copy[record::INFO])?;
    for at in POINTERS {
        info[at] = 0;
    }
    copy[0] = 0;
    copy[record::INFO] = info.as_mut_ptr() as u64;
    let file = copy[record::FILE];
    if file != 0 && !has(frame, Kind::File, file) {
        return Err(format!("{file:#x} is no file that the module has opened"));
    }
    let path = copied::name_or_null(frame, copy[record::PATH])?;
    // Of other files than regular ones none is read.
    let path = path.filter(|_| file == 0 && info[KIND] as u32 as u64 == REGULAR);
    let opened = match &path {
        Some(path) => opened::to_be_read(path),
        None => None,
    };
    let path = opened.as_ref().map(|file| {
        let mut path = format!("/proc/self/fd/{}", file.as_raw_fd()).into_bytes();
        path.push(0);
        path
    });
    copy[record::PATH] = copied::place(path.as_ref());
    let real = real("ap_make_etag_ex")?;
    // SAFETY: it is httpd's function, with a request of the core's and a record of ours, whose parts are ours or were looked at.
    let tag = unsafe {
        let real: extern "C" fn(u64, *mut u64) -> u64 = std::mem::transmute(real);
        real(r, copy.as_mut_ptr())
    };
    if tag == 0 {
        return Ok(0);
    }
    // SAFETY: the request lives, and the core's strings end with a zero.
    unsafe { walled.copy(frame, read(r + layout::R_POOL), apr::text(tag)) }
}
