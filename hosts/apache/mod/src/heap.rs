//! Memory that modules have from allocators other than pools, and memory that processes share. Blocks of `apr_bucket_alloc` and
//! `malloc` live as long as the request, or else as the server: to free one does nothing.

use crate::apr;
use crate::call::{self, mediate};
use crate::copied;
use crate::frame::Frame;
use crate::layout::{self, read};
use crate::listed::List;
use crate::object::Kind;
use crate::rings::Passing;
use crate::walled::Answer;

/// The pool of the process, for blocks that belong to no request.
pub(crate) fn lasting(frame: &Frame) -> Answer<u64> {
    let at = apr::symbol("ap_server_conf").ok_or("the server does not have it")?;
    // SAFETY: they are the core's variables and structures.
    unsafe {
        let server = read(at as u64);
        let known = match server {
            0 => apr::symbol("apr_hook_global_pool").map_or(0, |at| read(at as u64)),
            server => read(read(server + layout::S_PROCESS) + layout::P_PCONF),
        };
        match known {
            0 => frame.home().ok_or_else(|| "no pool".to_owned()),
            pool => Ok(pool),
        }
    }
}

fn block(bytes: u64) -> u64 {
    mediate(|frame| {
        let pool = match frame.home() {
            Some(pool) => pool,
            None => lasting(frame)?,
        };
        frame.walled.take(frame, pool, bytes)
    })
}

pub(crate) extern "C" fn apr_bucket_alloc(bytes: u64, _: u64) -> u64 {
    block(bytes)
}

pub(crate) extern "C" fn ap_malloc(bytes: u64) -> u64 {
    block(bytes)
}

/// To free such a block does nothing.
pub(crate) fn unblock(frame: &Frame, at: u64, name: &str) -> Answer<u64> {
    match at == 0 || frame.walled.writes(at, 1) {
        true => Ok(0),
        false => Err(format!("{name}: {at:#x} is no memory of the module")),
    }
}

/// A bucket, too, may be freed by it.
pub(crate) extern "C" fn apr_bucket_free(at: u64) -> u64 {
    mediate(|frame| unblock(frame, at, "apr_bucket_free"))
}

/// What the escaped string needs: three bytes for each character at most, so it is made elsewhere first.
pub(crate) extern "C" fn ap_escape_urlencoded_buffer(to: u64, from: u64) -> u64 {
    mediate(|frame| {
        let real =
            apr::symbol("ap_escape_urlencoded_buffer").ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function.
        let real: extern "C" fn(u64, u64) -> u64 = unsafe { std::mem::transmute(real) };
        let from = copied::with_zero(from)?;
        let mut made = vec![0u8; 3 * from.len() + 1];
        real(made.as_mut_ptr() as u64, from.as_ptr() as u64);
        let bytes = made.iter().position(|byte| *byte == 0).unwrap_or(0) + 1;
        frame
            .walled
            .must_write(to, bytes as u64)
            .map_err(|what| format!("ap_escape_urlencoded_buffer: {what}"))?;
        // SAFETY: the module may write so many bytes there.
        unsafe { (to as *mut u8).copy_from_nonoverlapping(made.as_ptr(), bytes) };
        Ok(to)
    })
}

/// The core's array has brigades; the module gets one of its own, with copies of them.
pub(crate) extern "C" fn ap_parse_form_data(
    r: u64,
    filter: u64,
    to: u64,
    fields: u64,
    bytes: u64,
) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        if !call::is_request(frame, r) || !crate::filters::leads_in(frame, filter) {
            return Err("ap_parse_form_data: no request of the module".to_owned());
        }
        walled.must_write(to, 8)?;
        let real = apr::symbol("ap_parse_form_data").ok_or("the server does not have it")?;
        let mut array = 0u64;
        // SAFETY: it is httpd's function, with a word of ours.
        let real: extern "C" fn(u64, u64, *mut u64, u64, u64) -> i32 =
            unsafe { std::mem::transmute(real) };
        let status = real(r, filter, &mut array, fields, bytes);
        let mut copy = 0;
        if array != 0 {
            // SAFETY: the core has made the array, of pairs of a string and a brigade, in the request's pool.
            unsafe {
                let pool = read(r + layout::R_POOL);
                let count = u64::from(read(array + 12) as u32);
                let elements = read(array + 24);
                copy = walled.take(frame, pool, 32)?;
                let room = walled.take(frame, pool, 16 * count.max(1))?;
                (copy as *mut [u64; 4]).write([pool, 16 | count << 32, count.max(1), room]);
                let passing = Passing::new(frame);
                for at in 0..count {
                    let [name, value] = ((elements + 16 * at) as *const [u64; 2]).read();
                    let value = passing.made_brigade(value)?;
                    ((room + 16 * at) as *mut [u64; 2]).write([name, value]);
                }
            }
        }
        // SAFETY: the module may write there.
        unsafe { (to as *mut u64).write(copy) };
        Ok(status as u32 as u64)
    })
}

pub(crate) extern "C" fn apr_file_read_full(file: u64, to: u64, bytes: u64, count: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        if !walled.knows_or_shares(file, Kind::File) {
            return Err(format!("{file:#x} is no file that the module has opened"));
        }
        walled.must_write(to, bytes)?;
        if count != 0 {
            walled.must_write(count, 8)?;
        }
        let real = apr::symbol("apr_file_read_full").ok_or("the server does not have it")?;
        // SAFETY: it is APR's function, with room for what it writes.
        let real: extern "C" fn(u64, u64, u64, u64) -> u64 = unsafe { std::mem::transmute(real) };
        Ok(real(file, to, bytes, count))
    })
}

/// The word is read, and may be changed.
pub(crate) extern "C" fn apr_global_mutex_child_init(at: u64, file: u64, pool: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        walled.must_write(at, 8)?;
        walled.pool(frame, pool)?;
        // APR keeps the name in the pool, or its address.
        let file = match copied::name_or_null(frame, file)? {
            None => 0,
            // SAFETY: the pool lives, and this thread works with it.
            Some(name) => unsafe { copied::keep(pool, &name) },
        };
        // SAFETY: the module may write, and so read, there.
        let mut lock = unsafe { read(at) };
        if !walled.knows_or_shares(lock, Kind::GlobalLock) {
            return Err(format!("{lock:#x} is no lock that the module has made"));
        }
        let real =
            apr::symbol("apr_global_mutex_child_init").ok_or("the server does not have it")?;
        // SAFETY: it is APR's function, with a word of ours.
        let real: extern "C" fn(*mut u64, u64, u64) -> i32 = unsafe { std::mem::transmute(real) };
        let status = real(&mut lock, file, pool);
        walled.know(frame, Some(pool), lock, Kind::GlobalLock)?;
        // SAFETY: the module may write there.
        unsafe { (at as *mut u64).write(lock) };
        Ok(status as u32 as u64)
    })
}

pub(crate) extern "C" fn apr_vsnprintf(to: u64, bytes: u64, format: u64, list: u64) -> u64 {
    mediate(|frame| {
        frame.walled.must_write(to, bytes)?;
        let list = List::of(frame.walled, list)?;
        let format = crate::format::checked(frame, format, &list, true)?;
        let real = apr::symbol("apr_vsnprintf").ok_or("the server does not have it")?;
        // SAFETY: it is APR's function, with room for what it writes, and a format that writes nothing else.
        let real: extern "C" fn(u64, u64, u64, u64) -> i32 = unsafe { std::mem::transmute(real) };
        Ok(real(to, bytes, format.at(), list.at()) as u32 as u64)
    })
}

/// What comes out of a cipher goes to memory of the module's, which it changes and extends.
fn cipher(name: &str, arguments: [u64; 5]) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        let [to, length, from, bytes, cipher] = arguments;
        if !walled.knows(cipher, Kind::Cipher) {
            return Err(format!(
                "{name}: {cipher:#x} is no cipher that the module has begun"
            ));
        }
        walled.must_write(to, 8)?;
        walled.must_write(length, 8)?;
        let is_there = walled.must_find(from, bytes);
        is_there.map_err(|what| format!("{name}: {what}"))?;
        let real = apr::symbol(name).ok_or("the server does not have it")?;
        // SAFETY: it is APR's function, with words of ours.
        let real: extern "C" fn(*mut u64, *mut u64, u64, u64, u64) -> i32 =
            unsafe { std::mem::transmute(real) };
        let mut most = 0u64;
        let status = real(std::ptr::null_mut(), &mut most, from, bytes, cipher);
        // SAFETY: the module may write, and so read, there.
        let mut place = unsafe { read(to) };
        if status != 0 {
            return Ok(status as u32 as u64);
        }
        match place {
            0 => {
                let home = frame.home().ok_or("a cipher without a request")?;
                place = walled.take(frame, home, most + 32)?;
            }
            place => walled.must_write(place, most)?,
        }
        let mut count = 0u64;
        let status = real(&mut place, &mut count, from, bytes, cipher);
        // SAFETY: the module may write these words.
        unsafe {
            (to as *mut u64).write(place);
            (length as *mut u64).write(count);
        }
        Ok(status as u32 as u64)
    })
}

pub(crate) extern "C" fn apr_crypto_block_encrypt(a: u64, b: u64, c: u64, d: u64, e: u64) -> u64 {
    cipher("apr_crypto_block_encrypt", [a, b, c, d, e])
}

pub(crate) extern "C" fn apr_crypto_block_decrypt(a: u64, b: u64, c: u64, d: u64, e: u64) -> u64 {
    cipher("apr_crypto_block_decrypt", [a, b, c, d, e])
}

fn decode(to: u64, from: u64, name: &str, ends: bool) -> u64 {
    mediate(|frame| {
        // A copy: another thread of the module may make its own one longer.
        let from = copied::with_zero(from)?;
        // Three bytes of four characters, and the zero that one of the two functions writes: to memory of ours.
        let mut made = vec![0u8; from.len().div_ceil(4) * 3 + 1];
        let real = apr::symbol(name).ok_or("the server does not have it")?;
        // SAFETY: it is APR's function, with room for what it writes.
        let real: extern "C" fn(*mut u8, *const u8) -> i32 = unsafe { std::mem::transmute(real) };
        let count = real(made.as_mut_ptr(), from.as_ptr());
        let bytes = u64::try_from(count).unwrap_or(0) + u64::from(ends);
        frame.walled.must_write(to, bytes)?;
        // SAFETY: the module may write so many bytes there, and there are more in ours.
        unsafe { (to as *mut u8).copy_from_nonoverlapping(made.as_ptr(), bytes as usize) };
        Ok(count as u32 as u64)
    })
}

pub(crate) extern "C" fn apr_base64_decode(to: u64, from: u64) -> u64 {
    decode(to, from, "apr_base64_decode", true)
}

pub(crate) extern "C" fn apr_base64_decode_binary(to: u64, from: u64) -> u64 {
    decode(to, from, "apr_base64_decode_binary", false)
}
