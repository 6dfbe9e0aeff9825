//! Lists of places with bytes, as the module passes them for one write.

use crate::apr;
use crate::call::{self, mediate};
use crate::copied;
use crate::frame::Frame;
use crate::rings::Passing;
use crate::walled::Answer;

/// So many places and bytes are taken at once.
const PLACES: u64 = 1024;
const MOST: u64 = 16 << 20;

/// What all places of a list have.
fn gathered(frame: &Frame, list: u64, count: u64) -> Answer<Vec<u8>> {
    let mut all: Vec<u8> = Vec::new();
    if count > PLACES {
        return Err(format!("{count} places are too many"));
    }
    for at in 0..count {
        let [from, bytes] = copied::words(frame, list.wrapping_add(16 * at))?;
        let old = all.len();
        if bytes > MOST - old as u64 {
            return Err(format!("{bytes} bytes are too many"));
        }
        all.resize(old + bytes as usize, 0);
        // SAFETY: it is our own memory, and has that room.
        unsafe { copied::into(frame, from, all[old..].as_mut_ptr(), bytes as usize) }?;
    }
    Ok(all)
}

pub(crate) extern "C" fn apr_brigade_writev(
    brigade: u64,
    flush: u64,
    filter: u64,
    list: u64,
    count: u64,
) -> u64 {
    mediate(|frame| {
        let flush = call::flush(frame, flush, filter)
            .ok_or_else(|| format!("{flush:#x} is no way to flush"))?;
        let all = gathered(frame, list, count)?;
        let mut passing = Passing::new(frame);
        let brigade = passing.brigade(brigade)?;
        let (from, bytes) = (all.as_ptr() as u64, all.len() as u64);
        // SAFETY: the brigade is the core's, and so many bytes are ours. APR copies them, or passes them on before it returns.
        let status = unsafe { apr::apr_brigade_write(brigade, flush, filter, from, bytes) };
        passing.end()?;
        Ok(status as u32 as u64)
    })
}
