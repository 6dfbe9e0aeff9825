//! Structures in a module's memory that a function of the server's goes on with. The server gets a copy. Each pointer of the copy leads
//! to a copy, and each place lies where it must. Another thread of the module may write into its own one meanwhile.

use crate::apr;
use crate::call::{self, mediate};
use crate::copied;
use crate::frame::Frame;
use crate::heap::lasting;
use crate::interface::{Answer as Result_, param};
use crate::layout;
use crate::layout::read;
use crate::object::Kind;
use crate::slots::WIDE;
use crate::walled::Answer;

/// httpd's or APR's function.
pub(crate) fn real(name: &str) -> Answer<usize> {
    apr::symbol(name).ok_or_else(|| "the server does not have it".to_owned())
}

/// Calls a function as by a row of `httpd.txt`.
pub(crate) fn by_row(
    frame: &Frame,
    name: &str,
    words: &str,
    answer: Result_,
    arguments: &[u64],
) -> Answer<u64> {
    let params: Vec<_> = words.split_ascii_whitespace().map(param).collect();
    let mut all = [0; WIDE];
    all[..arguments.len()].copy_from_slice(arguments);
    call::checked(frame, name, &params, answer, real(name)?, &mut all)
}

/// The state of a digest: as many words of 32 bits as its structure has.
const DIGEST: usize = 24;

/// Goes on with a digest whose state is as `may` says, or ends it with so many bytes at a place.
fn digest(
    name: &'static str,
    state: u64,
    end: Option<(u64, usize)>,
    (from, bytes): (u64, u64),
    may: impl FnOnce(&mut [u32; DIGEST]) -> Answer<()>,
) -> u64 {
    const MOST: usize = 20;
    let act = |frame: &Frame| -> Answer<u64> {
        let walled = frame.walled;
        walled.must_write(state, 4 * DIGEST as u64)?;
        if let Some((to, bytes)) = end {
            walled.must_write(to, bytes as u64)?;
        }
        walled.must_find(from, bytes)?;
        let mut copy = [0u32; DIGEST];
        // SAFETY: it is our own memory.
        unsafe { copied::into(frame, state, copy.as_mut_ptr().cast(), 4 * DIGEST) }?;
        may(&mut copy)?;
        let mut made = [0u8; MOST];
        let (own, to) = (copy.as_mut_ptr() as u64, made.as_mut_ptr() as u64);
        let [a, b, c] = match end {
            Some(_) => [to, own, 0],
            None => [own, from, bytes],
        };
        // SAFETY: it is APR's function, with a state and a place of ours, and with memory that was looked at.
        let status = unsafe {
            let real: extern "C" fn(u64, u64, u64) -> i32 = std::mem::transmute(real(name)?);
            real(a, b, c)
        };
        // SAFETY: `must_write` has seen that the module may write there.
        unsafe {
            (state as *mut [u32; DIGEST]).write_unaligned(copy);
            if let Some((to, bytes)) = end {
                (to as *mut u8).copy_from_nonoverlapping(made.as_ptr(), bytes);
            }
        }
        Ok(status as u32 as u64)
    };
    mediate(|frame| act(frame).map_err(|what| format!("{name}: {what}")))
}

/// APR would have the translation of characters at the end of the state translate. Modules cannot make one there.
fn untranslated(state: &mut [u32; DIGEST]) -> Answer<()> {
    state[DIGEST - 2..].fill(0);
    Ok(())
}

pub(crate) extern "C" fn apr_md5_update(state: u64, from: u64, bytes: u64) -> u64 {
    digest("apr_md5_update", state, None, (from, bytes), untranslated)
}

pub(crate) extern "C" fn apr_md5_final(to: u64, state: u64) -> u64 {
    digest("apr_md5_final", state, Some((to, 16)), (0, 0), untranslated)
}

/// The last word counts bytes that wait for more of them, in a block of 64. APR writes behind them.
fn within_a_block(state: &mut [u32; DIGEST]) -> Answer<()> {
    match state[DIGEST - 1] {
        0..64 => Ok(()),
        count => Err(format!("a block of 64 bytes with {}", count as i32)),
    }
}

/// The count is an `unsigned int`.
pub(crate) extern "C" fn apr_sha1_update(state: u64, from: u64, count: u64) -> u64 {
    let of = (from, count & 0xffff_ffff);
    digest("apr_sha1_update", state, None, of, within_a_block)
}

pub(crate) extern "C" fn apr_sha1_update_binary(state: u64, from: u64, count: u64) -> u64 {
    let of = (from, count & 0xffff_ffff);
    digest("apr_sha1_update_binary", state, None, of, within_a_block)
}

pub(crate) extern "C" fn apr_sha1_final(to: u64, state: u64) -> u64 {
    digest(
        "apr_sha1_final",
        state,
        Some((to, 20)),
        (0, 0),
        within_a_block,
    )
}

/// `apr_finfo_t`: its pool, the two names behind its numbers, and a file.
const INFO: usize = 15;
const INFO_POOL: usize = 0;
const INFO_NAMES: [usize; 2] = [12, 13];
const INFO_FILE: usize = 14;

/// The new request has what is said of the file, so the names are copied into the request's pool.
pub(crate) extern "C" fn ap_sub_req_lookup_dirent(info: u64, r: u64, kind: u64, next: u64) -> u64 {
    const NAME: &str = "ap_sub_req_lookup_dirent";
    mediate(|frame| {
        let request = frame.walled.shadow(frame, r)?;
        let request = request.ok_or_else(|| format!("{NAME}: {r:#x} is no request"))?;
        // SAFETY: it was seen to be a request.
        let pool = unsafe { read(request + layout::R_POOL) };
        let mut copy: [u64; INFO] =
            copied::words(frame, info).map_err(|what| format!("{NAME}: {what}"))?;
        copy[INFO_POOL] = pool;
        copy[INFO_FILE] = 0;
        // The one that names the entry in its folder.
        if copy[INFO_NAMES[1]] == 0 {
            return Err(format!("{NAME}: an entry without a name"));
        }
        for place in INFO_NAMES {
            let name = copy[place];
            if name == 0 {
                continue;
            }
            let text = copied::text(frame, name);
            let mut text = text.map_err(|what| format!("{NAME}: the file's name: {what}"))?;
            text.push(0);
            // SAFETY: the request's pool lives, and gives so many bytes.
            unsafe {
                let own = apr::apr_palloc(pool, text.len() as u64);
                (own as *mut u8).copy_from_nonoverlapping(text.as_ptr(), text.len());
                copy[place] = own;
            }
        }
        let arguments = [copy.as_ptr() as u64, r, kind, next];
        by_row(frame, NAME, ". r . F?", Result_::Request, &arguments)
    })
}

/// `struct tm`: its last word names a zone of time.
const TIME: usize = 7;

pub(crate) extern "C" fn strftime(to: u64, room: u64, format: u64, time: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        walled.must_write(to, room)?;
        let format = copied::text(frame, format).map(ended)?;
        let mut copy: [u64; TIME] = copied::words(frame, time)?;
        let zone = match copy[TIME - 1] {
            0 => None,
            zone => Some(copied::text(frame, zone).map(ended)?),
        };
        copy[TIME - 1] = zone.as_ref().map_or(0, |zone| zone.as_ptr() as u64);
        // SAFETY: so much may be written there; the format and the time are ours.
        Ok(unsafe {
            libc::strftime(
                to as *mut _,
                room as usize,
                format.as_ptr().cast(),
                copy.as_ptr().cast(),
            )
        } as u64)
    })
}

/// With a zero at its end.
fn ended(mut text: Vec<u8>) -> Vec<u8> {
    text.push(0);
    text
}

/// The number of the entry where the encoding goes on is the module's, and is one of a table.
fn environment(name: &str, words: &str, arguments: [u64; 5], at: usize) -> u64 {
    mediate(|frame| {
        let place = arguments[at];
        frame.walled.must_write(place, 4)?;
        // SAFETY: the module may write, and so read, there.
        let mut first = unsafe { (place as *const i32).read_unaligned() };
        if first < 0 {
            return Err(format!("{name}: {first} is no place in a table"));
        }
        let mut passed = arguments;
        passed[at] = &raw mut first as u64;
        let count = words.split_ascii_whitespace().count();
        let done = by_row(frame, name, words, Result_::Plain, &passed[..count])?;
        // SAFETY: `must_write` has seen that the module may write there.
        unsafe { (place as *mut i32).write_unaligned(first) };
        Ok(done)
    })
}

pub(crate) extern "C" fn ap_fcgi_encode_env(r: u64, t: u64, to: u64, room: u64, at: u64) -> u64 {
    environment("ap_fcgi_encode_env", "r t w*3 . .", [r, t, to, room, at], 4)
}

pub(crate) extern "C" fn ap_fcgi_encoded_env_len(t: u64, most: u64, at: u64) -> u64 {
    environment("ap_fcgi_encoded_env_len", "t . .", [t, most, at, 0, 0], 2)
}

/// httpd does not look whether there is such a place in the scoreboard.
pub(crate) extern "C" fn ap_copy_scoreboard_worker(to: u64, child: u64, thread: u64) -> u64 {
    const NAME: &str = "ap_copy_scoreboard_worker";
    const LINE: u64 = 736;
    mediate(|frame| {
        frame.walled.must_write(to, LINE)?;
        // SAFETY: it is httpd's function for two numbers, which looks at them.
        let found = unsafe {
            let find = real("ap_get_scoreboard_worker_from_indexes")?;
            let find: extern "C" fn(u64, u64) -> u64 = std::mem::transmute(find);
            find(child, thread)
        };
        if found == 0 {
            let (child, thread) = (child as i32, thread as i32);
            return Err(format!(
                "{NAME}: {child}, {thread} is no place in the scoreboard"
            ));
        }
        by_row(
            frame,
            NAME,
            "w!736 . .",
            Result_::Plain,
            &[to, child, thread],
        )
    })
}

/// So long is what the first block of a cipher is mixed with, at most (OpenSSL's `EVP_MAX_IV_LENGTH`).
const MIXED: u64 = 16;

/// The word may have what the first block is mixed with, or gets it.
pub(crate) extern "C" fn apr_crypto_block_encrypt_init(
    to: u64,
    mixed: u64,
    key: u64,
    size: u64,
    pool: u64,
) -> u64 {
    const NAME: &str = "apr_crypto_block_encrypt_init";
    mediate(|frame| {
        let walled = frame.walled;
        let mut word = 0u64;
        if mixed != 0 {
            walled.must_write(mixed, 8)?;
            // SAFETY: the module may write, and so read, there.
            word = unsafe { read(mixed) };
        }
        let (own, was) = (MIXED, word);
        if word != 0 {
            let is_there = walled.must_find(word, own);
            is_there.map_err(|what| format!("{NAME}: {what}"))?;
        }
        let passed = match mixed {
            0 => 0,
            _ => &raw mut word as u64,
        };
        let arguments = [to, passed, key, size, pool];
        let status = by_row(frame, NAME, ">E . K w8? p", Result_::Plain, &arguments)?;
        if word != was {
            // SAFETY: `must_write` has seen that the module may write there.
            unsafe { (mixed as *mut u64).write_unaligned(word) };
        }
        Ok(status)
    })
}

/// httpd ends the process if there is no such user or group. A number behind a `#` is its own name.
fn number_of(name: &'static str, text: u64, find: &str, words: &str) -> u64 {
    mediate(|frame| {
        let mut copy = copied::text(frame, text).map_err(|what| format!("{name}: {what}"))?;
        let is_number = copy.first() == Some(&b'#');
        copy.push(0);
        let own = copy.as_ptr() as u64;
        if !is_number {
            let pool = frame.any_home().map_or_else(|| lasting(frame), Ok)?;
            let mut found = [0u32; 2];
            let [first, second] = [0, 1].map(|place| &raw mut found[place] as u64);
            // SAFETY: it is APR's function, with words and a string of ours, and with a pool that lives.
            let status = unsafe {
                let find = std::mem::transmute::<usize, crate::slots::Function>(real(find)?);
                match words {
                    "user" => find(first, second, own, pool, 0, 0),
                    _ => find(first, own, pool, 0, 0, 0),
                }
            };
            if status as u32 != 0 {
                return Err(format!("{name}: there is no such {words}"));
            }
        }
        // SAFETY: it is httpd's function for a string.
        unsafe {
            let real: extern "C" fn(u64) -> u32 = std::mem::transmute(real(name)?);
            Ok(u64::from(real(own)))
        }
    })
}

pub(crate) extern "C" fn ap_uname2id(text: u64) -> u64 {
    number_of("ap_uname2id", text, "apr_uid_get", "user")
}

pub(crate) extern "C" fn ap_gname2id(text: u64) -> u64 {
    number_of("ap_gname2id", text, "apr_gid_get", "group")
}

/// APR's file of keys does not look at the key before, and others' do.
pub(crate) extern "C" fn apr_dbm_nextkey(file: u64, key: u64) -> u64 {
    const NAME: &str = "apr_dbm_nextkey";
    mediate(|frame| {
        let walled = frame.walled;
        walled.must_write(key, 16)?;
        let mut copy: [u64; 2] = copied::words(frame, key)?;
        let is_there = walled.must_find(copy[0], copy[1]);
        is_there.map_err(|what| format!("{NAME}: {what}"))?;
        let arguments = [file, copy.as_mut_ptr() as u64];
        let status = by_row(frame, NAME, "J .", Result_::Plain, &arguments)?;
        // SAFETY: `must_write` has seen that the module may write there.
        unsafe { (key as *mut [u64; 2]).write_unaligned(copy) };
        Ok(status)
    })
}

/// Some drivers would free any address. What they have given goes with their file.
pub(crate) extern "C" fn apr_dbm_freedatum(file: u64, _: u64, _: u64) -> u64 {
    mediate(|frame| match call::has(frame, Kind::Dbm, file) {
        true => Ok(0),
        false => Err(format!("apr_dbm_freedatum: {file:#x} is no file of keys")),
    })
}
