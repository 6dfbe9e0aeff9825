//! Addresses of the web, taken apart. APR puts the pieces into a pool, as memory of the server's. Modules change them in their
//! place, as `mod_auth_digest` does, so a module gets pieces of its own.

use crate::apr;
use crate::call::mediate;
use crate::copied;

/// `apr_uri_t`: nine strings, from `scheme` to `fragment`, and then a host's entry, numbers and bits.
const STRINGS: usize = 9;
const WORDS: usize = 11;

fn parse(name: &'static str, pool: u64, text: u64, to: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        frame.only_computes();
        walled.pool(frame, pool)?;
        let bytes = (WORDS * 8) as u64;
        let may = walled.must_write(to, bytes);
        may.map_err(|what| format!("{name}: {what}"))?;
        let real = apr::symbol(name).ok_or("the server does not have it")?;
        // The function may read the string twice.
        let text = copied::with_zero(text)?;
        // One word more than it has today.
        let mut words = [0_u64; WORDS + 1];
        // SAFETY: it is APR's function, with a pool that lives, a string of ours that ends with a zero, and room for what it fills in.
        let status = unsafe {
            let real: extern "C" fn(u64, u64, u64) -> i32 = std::mem::transmute(real);
            real(pool, text.as_ptr() as u64, words.as_mut_ptr() as u64)
        };
        for piece in words[..STRINGS].iter_mut().filter(|piece| **piece != 0) {
            // SAFETY: APR has put it there, with a zero behind it.
            *piece = walled.copy(frame, pool, unsafe { apr::text(*piece) })?;
        }
        // SAFETY: the module may write so many bytes there.
        unsafe { (to as *mut u64).copy_from_nonoverlapping(words.as_ptr(), WORDS) };
        Ok(status as u32 as u64)
    })
}

/// Each piece is a copy, and there is no host's entry.
pub(crate) extern "C" fn apr_uri_unparse(pool: u64, from: u64, flags: u64) -> u64 {
    const NAME: &str = "apr_uri_unparse";
    mediate(|frame| {
        let walled = frame.walled;
        frame.only_computes();
        walled.pool(frame, pool)?;
        let words = copied::words::<WORDS>(frame, from);
        let mut words = words.map_err(|what| format!("{NAME}: {what}"))?;
        let mut pieces = Vec::new();
        for piece in words[..STRINGS].iter_mut().filter(|piece| **piece != 0) {
            let text = copied::text(frame, *piece);
            let mut text = text.map_err(|what| format!("{NAME}: a piece: {what}"))?;
            text.push(0);
            *piece = text.as_ptr() as u64;
            pieces.push(text);
        }
        words[STRINGS] = 0;
        let real = apr::symbol(NAME).ok_or("the server does not have it")?;
        // SAFETY: it is APR's function, with a pool that lives and pieces of ours; its strings end with a zero.
        let made = unsafe {
            let real: extern "C" fn(u64, *const u64, u64) -> u64 = std::mem::transmute(real);
            apr::text(real(pool, words.as_ptr(), flags))
        };
        walled.copy(frame, pool, made)
    })
}

pub(crate) extern "C" fn apr_uri_parse(pool: u64, text: u64, to: u64) -> u64 {
    parse("apr_uri_parse", pool, text, to)
}

pub(crate) extern "C" fn apr_uri_parse_hostinfo(pool: u64, text: u64, to: u64) -> u64 {
    parse("apr_uri_parse_hostinfo", pool, text, to)
}
