//! Hashes are APR's. A module goes through a list of what a hash has. The list is its own memory, so APR follows no place in a hash
//! that has ended or was changed.
//!
//! ```text
//!   list: place | count | key, length, value | key, length, value | ...
//! ```

use crate::apr;
use crate::back;
use crate::call::mediate;
use crate::copied;
use crate::frame::Frame;
use crate::interface::back as kind;
use crate::layout::read;
use crate::object::Kind;
use crate::walled::Answer;

const HEAD: u64 = 16;
const ENTRY: u64 = 24;

/// The word by which a module is told that hashes lie as its own part has it (`inside/reads.c`).
pub(crate) const READS: &str = "mullion_reads_hashes";

/// Whether APR's hashes lie as modules have it that read them themselves: a hash of ours is read so.
///
/// # Safety
/// The pool lives, and no other thread uses it.
pub(crate) unsafe fn lie_as_known(pool: u64) -> bool {
    const KEY: &[u8; 8] = b"mullion\0";
    const LENGTH: u64 = 7;
    const VALUE: u64 = 0x1234;
    let number = |at: u64| {
        let mut four = [0; 4];
        let read = crate::copied::bytes(at, &mut four);
        read.ok().map(|()| u64::from(u32::from_ne_bytes(four)))
    };
    let word = |at: u64| Some(number(at)? | number(at + 4)? << 32);
    let is_so = || {
        let set = apr::symbol("apr_hash_set")?;
        let key = KEY.as_ptr() as u64;
        // SAFETY: they are APR's functions, with a pool that lives, by this function's own condition. The key stays.
        let hash = unsafe {
            let set: extern "C" fn(u64, u64, u64, u64) = std::mem::transmute(set);
            let hash = apr::apr_hash_make(pool);
            set(hash, key, LENGTH, VALUE);
            hash
        };
        let (count, most, seed) = (number(hash + 48)?, number(hash + 52)?, number(hash + 56)?);
        let is_plain = count == 1 && (most + 1).is_power_of_two() && word(hash + 64)? == 0;
        let bytes = KEY[..LENGTH as usize].iter();
        let sum = bytes.fold(seed as u32, |sum, byte| {
            sum.wrapping_mul(33).wrapping_add((*byte).into())
        });
        let entry = word(word(hash + 8)? + 8 * (u64::from(sum) & most))?;
        let found = [word(entry)?, number(entry + 8)?, word(entry + 16)?];
        let is_it = found == [0, u64::from(sum), key];
        Some(is_plain && is_it && [word(entry + 24)?, word(entry + 32)?] == [LENGTH, VALUE])
    };
    is_so().unwrap_or(false)
}

/// The key, its length and the value of each entry.
fn entries(hash: u64) -> Answer<Vec<[u64; 3]>> {
    let this = apr::symbol("apr_hash_this").ok_or("the server does not have it")?;
    // SAFETY: it is APR's function for a place in a hash, with words of ours.
    let this: extern "C" fn(u64, *mut u64, *mut u64, *mut u64) =
        unsafe { std::mem::transmute(this) };
    let mut all = Vec::new();
    // SAFETY: the caller has seen that it is a hash, and holds it. APR's place is the hash's own.
    let mut at = unsafe { apr::apr_hash_first(0, hash) };
    while at != 0 {
        let [mut key, mut length, mut value] = [0; 3];
        this(at, &mut key, &mut length, &mut value);
        all.push([key, length, value]);
        // SAFETY: nobody has changed the hash since.
        at = unsafe { apr::apr_hash_next(at) };
    }
    Ok(all)
}

fn known(frame: &Frame, hash: u64, name: &str) -> Answer<()> {
    match crate::call::has(frame, Kind::ReadHash, hash) {
        true => Ok(()),
        false => Err(format!(
            "{name}: {hash:#x} is no hash that the module has made"
        )),
    }
}

/// APR keeps the key where it lies, and compares it with others later. So it stays: it is the module's own memory for good, or a copy
/// there.
pub(crate) extern "C" fn apr_hash_set(hash: u64, key: u64, length: u64, value: u64) -> u64 {
    const NAME: &str = "apr_hash_set";
    mediate(|frame| {
        let walled = frame.walled;
        frame.only_computes();
        if !crate::call::has(frame, Kind::Hash, hash) {
            return Err(format!(
                "{NAME}: argument 0, {hash:#x}, is no hash that the module was given or has made"
            ));
        }
        let named = |what: String| format!("{NAME}: argument 1: {what}");
        let bytes = match length {
            u64::MAX => walled.length(key, u64::MAX).map_err(named)? as u64 + 1,
            length => length,
        };
        walled.must_find(key, bytes).map_err(named)?;
        let own = match value == 0 || walled.is_for_good(key, bytes) {
            true => key,
            false => {
                // SAFETY: it is a hash of APR's, whose first word is its pool.
                let pool = unsafe { read(hash) };
                let mut copy = vec![0; bytes as usize];
                copied::bytes(key, &mut copy).map_err(named)?;
                walled.copy(frame, pool, &copy)?
            }
        };
        let real = apr::symbol(NAME).ok_or("the server does not have it")?;
        // SAFETY: it is APR's function, with a hash that this call holds and a key that is there.
        unsafe {
            let real: extern "C" fn(u64, u64, u64, u64) = std::mem::transmute(real);
            real(hash, own, length, value);
        }
        Ok(0)
    })
}

/// Without a pool the list goes with the call's request, or else with the process.
pub(crate) extern "C" fn apr_hash_first(pool: u64, hash: u64) -> u64 {
    mediate(|frame| {
        frame.only_computes();
        known(frame, hash, "apr_hash_first")?;
        let all = entries(hash)?;
        let count = all.len() as u64;
        if count == 0 {
            return Ok(0);
        }
        let pool = match pool {
            0 => match frame.any_home() {
                Some(pool) => pool,
                None => crate::heap::lasting(frame)?,
            },
            pool => pool,
        };
        let list = frame.walled.take(frame, pool, HEAD + ENTRY * count)?;
        // SAFETY: it was just taken, and has room for all of them.
        unsafe {
            (list as *mut [u64; 2]).write([0, count]);
            let to = (list + HEAD) as *mut [u64; 3];
            to.copy_from_nonoverlapping(all.as_ptr(), all.len());
        }
        Ok(list)
    })
}

pub(crate) extern "C" fn apr_hash_next(list: u64) -> u64 {
    mediate(|frame| {
        frame.walled.must_write(list, HEAD)?;
        // SAFETY: the module may write, and so read, there.
        unsafe {
            let next = read(list).saturating_add(1);
            if next >= read(list + 8) {
                return Ok(0);
            }
            (list as *mut u64).write(next);
        }
        Ok(list)
    })
}

/// What the list is at.
fn entry(frame: &Frame, list: u64) -> Answer<[u64; 3]> {
    frame.walled.must_write(list, HEAD)?;
    // SAFETY: the module may write, and so read, there.
    let place = unsafe { read(list) };
    let at = place
        .checked_mul(ENTRY)
        .and_then(|bytes| bytes.checked_add(list + HEAD));
    let at = at.ok_or("a place that no hash has")?;
    frame.walled.must_write(at, ENTRY)?;
    // SAFETY: the module may write, and so read, all of the entry.
    Ok(unsafe { (at as *const [u64; 3]).read() })
}

pub(crate) extern "C" fn apr_hash_this(list: u64, key: u64, length: u64, value: u64) -> u64 {
    mediate(|frame| {
        let entry = entry(frame, list)?;
        for (to, word) in [key, length, value].into_iter().zip(entry) {
            if to != 0 {
                frame.walled.must_write(to, 8)?;
                // SAFETY: the module may write there.
                unsafe { (to as *mut u64).write(word) };
            }
        }
        Ok(0)
    })
}

pub(crate) extern "C" fn apr_hash_this_key(list: u64) -> u64 {
    mediate(|frame| Ok(entry(frame, list)?[0]))
}

pub(crate) extern "C" fn apr_hash_this_val(list: u64) -> u64 {
    mediate(|frame| Ok(entry(frame, list)?[2]))
}

/// APR counts both hashes before it calls the module's function for a key that both have. So it gets copies, which nobody changes.
pub(crate) extern "C" fn apr_hash_merge(
    pool: u64,
    overlay: u64,
    base: u64,
    merger: u64,
    data: u64,
) -> u64 {
    const NAME: &str = "apr_hash_merge";
    mediate(|frame| {
        let walled = frame.walled;
        frame.only_computes();
        walled.pool(frame, pool)?;
        known(frame, overlay, NAME)?;
        known(frame, base, NAME)?;
        let merger = back::stand_in(frame, kind("hash_merge"), merger)?;
        let real = |name| apr::symbol(name).ok_or("the server does not have it");
        let (copy, merge) = (real("apr_hash_copy")?, real(NAME)?);
        // SAFETY: it is APR's function, with hashes that this call holds.
        let (overlay, base) = unsafe {
            let copy: extern "C" fn(u64, u64) -> u64 = std::mem::transmute(copy);
            (copy(pool, overlay), copy(pool, base))
        };
        // The module's function runs from here on. Others may use what was copied meanwhile, and not the pool.
        frame.end_turns();
        walled.pool(frame, pool)?;
        // SAFETY: it is APR's function, with hashes of ours, and a function that stands for the module's or null.
        let made = unsafe {
            let merge: extern "C" fn(u64, u64, u64, u64, u64) -> u64 = std::mem::transmute(merge);
            merge(pool, overlay, base, merger, data)
        };
        walled.know(frame, Some(pool), made, Kind::Hash)?;
        Ok(made)
    })
}
