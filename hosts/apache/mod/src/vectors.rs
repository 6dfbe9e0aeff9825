//! Lists of places with bytes, as the module passes them for one write.

use crate::apr;
use crate::call::{self, mediate};
use crate::copied;
use crate::frame::Frame;
use crate::interface::Answer as Result_;
use crate::rings::Passing;
use crate::states::by_row;
use crate::walled::Answer;

/// So many places and bytes are taken at once.
const PLACES: u64 = 1024;
const MOST: u64 = 16 << 20;

/// The list as a copy, so that nobody changes it. All that it says is there.
fn places(frame: &Frame, list: u64, count: u64) -> Answer<Vec<[u64; 2]>> {
    if count > PLACES {
        return Err(format!("{count} places are too many"));
    }
    let mut sum = 0u64;
    let places = (0..count).map(|at| {
        let [from, bytes] = copied::words(frame, list.wrapping_add(16 * at))?;
        sum = sum.saturating_add(bytes);
        match sum <= MOST {
            true => frame.walled.must_find(from, bytes)?,
            false => return Err(format!("{bytes} bytes are too many")),
        }
        Ok([from, bytes])
    });
    places.collect()
}

/// What all places of a list have.
fn gathered(frame: &Frame, list: u64, count: u64) -> Answer<Vec<u8>> {
    let mut all: Vec<u8> = Vec::new();
    for [from, bytes] in places(frame, list, count)? {
        let old = all.len();
        all.resize(old + bytes as usize, 0);
        // SAFETY: it is our own memory, and has that room.
        unsafe { copied::into(frame, from, all[old..].as_mut_ptr(), bytes as usize) }?;
    }
    Ok(all)
}

/// The count is an `apr_int32_t`.
pub(crate) extern "C" fn apr_socket_sendv(socket: u64, list: u64, count: u64, sent: u64) -> u64 {
    const NAME: &str = "apr_socket_sendv";
    mediate(|frame| {
        let count = i64::from(count as i32) as u64;
        let list = places(frame, list, count).map_err(|what| format!("{NAME}: {what}"))?;
        let arguments = [socket, list.as_ptr() as u64, count, sent];
        by_row(frame, NAME, "S . . w8", Result_::Plain, &arguments)
    })
}

pub(crate) extern "C" fn apr_file_writev_full(file: u64, list: u64, count: u64, done: u64) -> u64 {
    const NAME: &str = "apr_file_writev_full";
    mediate(|frame| {
        let list = places(frame, list, count).map_err(|what| format!("{NAME}: {what}"))?;
        let arguments = [file, list.as_ptr() as u64, count, done];
        by_row(frame, NAME, "i . . w8?", Result_::Plain, &arguments)
    })
}

pub(crate) extern "C" fn apr_pstrcatv(pool: u64, list: u64, count: u64, length: u64) -> u64 {
    mediate(|frame| {
        let whole = gathered(frame, list, count);
        let whole = whole.map_err(|what| format!("apr_pstrcatv: {what}"))?;
        if length != 0 {
            frame.walled.must_write(length, 8)?;
            // SAFETY: the module may write there.
            unsafe { (length as *mut u64).write(whole.len() as u64) };
        }
        frame.walled.copy(frame, pool, &whole)
    })
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
