//! Buckets of types that a module has made itself: what is in them comes when somebody reads them. The core gets a bucket of a
//! type of ours in its place. To read it, the module's function is called with a copy, which it turns into bytes of its memory.
//!
//! ```text
//!   core ──► read (ours) ──► gate ──► the module: apr_bucket_heap_make(copy, bytes), more buckets behind the copy
//!            bytes are copied into the core's bucket, and the others are put behind it
//! ```

use crate::apr;
use crate::call::mediate;
use crate::caught::caught;
use crate::frame::{Frame, Root, Roots};
use crate::layout::{self, read};
use crate::rings::{BUCKET, DATA, FREE, LENGTH, LIST, START, TYPE, link, write};
use crate::slots;
use crate::walled::{Answer, Walled, lock};
use mullion_word_table::Access;
use std::sync::OnceLock;

/// So many buckets of its own a module may pass or add in one call.
pub(crate) const MOST: usize = 64;

/// Of a type: its function that reads.
const READ: u64 = 24;
/// What a bucket's length is before it is read.
const UNKNOWN: u64 = u64::MAX;
/// `APR_ENOTIMPL`, `APR_EGENERAL`.
const NOT_THERE: i32 = 70_023;
const GENERAL: i32 = 20_014;

/// `apr_bucket_type_t`.
#[repr(C)]
struct Type {
    name: *const i8,
    functions: i32,
    is_metadata: i32,
    destroy: extern "C" fn(u64),
    read: extern "C" fn(u64, u64, u64, u64) -> i32,
    set_aside: extern "C" fn(u64, u64) -> i32,
    split: extern "C" fn(u64, u64) -> i32,
    copy: extern "C" fn(u64, u64) -> i32,
}

// SAFETY: nothing in it changes.
unsafe impl Sync for Type {}

static OURS: Type = Type {
    name: c"MULLION".as_ptr(),
    functions: 5,
    is_metadata: 0,
    destroy,
    read: read_own,
    set_aside: not_there,
    split: not_there,
    copy: not_there,
};

/// What a bucket of our type stands for.
struct Own {
    walled: &'static Walled,
    /// The module's type, its function that reads, and its data.
    kind: u64,
    read: u64,
    data: u64,
    /// The request that the module was called for, the pool that it goes with, and which of all that had this address.
    r: u64,
    home: u64,
    number: u64,
}

/// A bucket that is being read: its copy, and what the module has made of it.
pub(crate) struct Reading {
    copy: u64,
    made: Option<(u64, u64)>,
}

/// The functions that a module may call by the type's address.
pub(crate) fn functions() -> [(usize, crate::rings::Of); 2] {
    use crate::rings::Of;
    [
        (destroy as *const () as usize, Of::Destroy),
        (read_own as *const () as usize, Of::Read),
    ]
}

extern "C" fn destroy(data: u64) {
    // SAFETY: `adopt` has made it, and a bucket is destroyed once.
    drop(unsafe { Box::from_raw(data as *mut Own) });
}

extern "C" fn not_there(_: u64, _: u64) -> i32 {
    NOT_THERE
}

/// A bucket of the core's for one that a module has in its own memory, of a type of its own.
pub(crate) fn adopt(walled: &'static Walled, frame: &Frame, at: u64) -> Answer<u64> {
    let wrong = || format!("{at:#x} in a brigade is no bucket");
    if !at.is_multiple_of(8) || !walled.writes(at, BUCKET) {
        return Err(wrong());
    }
    // SAFETY: the module may write, and so read, there.
    let (kind, data, list) = unsafe { (read(at + TYPE), read(at + DATA), read(at + LIST)) };
    let view = walled.domain.view();
    if !kind.is_multiple_of(8) || !view.allows(kind, size_of::<Type>() as u64, Access::READ) {
        return Err(wrong());
    }
    // SAFETY: the module may read there, so there is memory.
    let function = unsafe { read(kind + READ) };
    if !walled.is_gate(function) || !frame.has_allocator(list) {
        return Err(wrong());
    }
    let r = frame.requests().next();
    let r = r.ok_or("a bucket without a request")?;
    // SAFETY: it is a request of this call.
    let home = unsafe { read(r + layout::R_POOL) };
    walled.pool(frame, home)?;
    let own = Own {
        walled,
        kind,
        read: function,
        data,
        r,
        home,
        number: walled.number_of(home).ok_or("a bucket without a request")?,
    };
    static FREES: OnceLock<Option<usize>> = OnceLock::new();
    let free = *FREES.get_or_init(|| apr::symbol("apr_bucket_free"));
    let free = free.ok_or("the server does not have apr_bucket_free")?;
    // SAFETY: the allocator is a connection's of this call, and gives room for a bucket.
    unsafe {
        let real = apr::apr_bucket_alloc(BUCKET, list);
        write(real + TYPE, &raw const OURS as u64);
        write(real + LENGTH, UNKNOWN);
        write(real + START, UNKNOWN);
        write(real + DATA, Box::into_raw(Box::new(own)) as u64);
        write(real + FREE, free as u64);
        write(real + LIST, list);
        link(real, real);
        Ok(real)
    }
}

extern "C" fn read_own(real: u64, text: u64, length: u64, block: u64) -> i32 {
    // SAFETY: the core calls a bucket's own type's function, so its data is what `adopt` has made.
    let own = unsafe { &*(read(real + DATA) as *const Own) };
    let walled = own.walled;
    // A bucket may be older than the request that is served now.
    let is_here = walled.number_of(own.home) == Some(own.number);
    if !is_here || walled.domain.is_ended() && !walled.revive() {
        return GENERAL;
    }
    let given = |roots: &mut Roots| roots.push(Root::Request(own.r));
    Frame::enter(walled, given, |frame| {
        let done = caught(|| fill(own, frame, real, [text, length, block]));
        match done {
            Ok(status) if !walled.domain.is_ended() => status,
            Ok(_) => {
                walled.tell();
                GENERAL
            }
            Err(why) => {
                apr::log(0, &format!("{}: {why}", walled.name));
                GENERAL
            }
        }
    })
}

/// Has the module read its bucket, and puts what it has made of it into the core's.
fn fill(own: &Own, frame: &Frame, real: u64, [text, length, block]: [u64; 3]) -> Answer<i32> {
    let walled = own.walled;
    // The copy, the words of the answer, and what the module may write of the bytes' own record.
    let copy = walled.take(frame, own.home, BUCKET)?;
    let words = walled.take(frame, own.home, 16)?;
    // SAFETY: the two were just taken; the bucket is the core's.
    unsafe {
        (copy as *mut u8).copy_from_nonoverlapping(real as *const u8, BUCKET as usize);
        write(copy + TYPE, own.kind);
        write(copy + DATA, own.data);
        link(copy, copy);
        (words as *mut [u64; 2]).write([0, 0]);
    }
    lock(&walled.readings).push(Reading { copy, made: None });
    // SAFETY: it was seen to be a gate of the module, whose text stays mapped; arguments are numbers to it.
    let status = unsafe {
        let gate = std::mem::transmute::<u64, slots::Function>(own.read);
        gate(copy, words, words + 8, block, 0, 0) as i32
    };
    let mut readings = lock(&walled.readings);
    let place = readings.iter().position(|reading| reading.copy == copy);
    let reading = place.map(|place| readings.swap_remove(place));
    drop(readings);
    if status != 0 || walled.domain.is_ended() {
        return Ok(status);
    }
    let made = reading.and_then(|reading| reading.made);
    let (from, bytes) = made.ok_or("a bucket was read and has no bytes")?;
    // SAFETY: the core's ring; the copies are looked up before they are followed.
    unsafe {
        let (mut last, mut at) = (real, read(copy));
        for _ in 0..MOST {
            if at == copy {
                break;
            }
            let next = adopt(walled, frame, at)?;
            let behind = read(last);
            link(last, next);
            link(next, behind);
            last = next;
            at = read(at);
        }
        let record = read(real + DATA);
        let name = match bytes {
            0 => "apr_bucket_immortal_make",
            _ => "apr_bucket_heap_make",
        };
        let make = apr::symbol(name).ok_or("the server does not have it")?;
        // Without a function that frees them, the bytes are copied.
        let make: extern "C" fn(u64, u64, u64, u64) -> u64 = std::mem::transmute(make);
        let from = if bytes == 0 {
            c"".as_ptr() as u64
        } else {
            from
        };
        if make(real, from, bytes, 0) == 0 {
            return Err("no memory for a bucket".to_owned());
        }
        destroy(record);
        // A bucket of bytes has them behind a pointer of its record; one of a constant has their address.
        const BASE: u64 = 8;
        let data = read(real + DATA);
        let at = if bytes == 0 { data } else { read(data + BASE) };
        write(text, at);
        write(length, bytes);
    }
    Ok(0)
}

/// The module has the bytes of a bucket that is being read.
fn make(frame: &Frame, copy: u64, from: u64, bytes: u64) -> Answer<u64> {
    let walled = frame.walled;
    if bytes != 0 && !walled.writes(from, bytes) {
        return Err(format!("{from:#x} is no memory of the module's"));
    }
    let home = frame.home().ok_or("a bucket without a request")?;
    // `apr_bucket_heap` begins with a count, and has the bytes' address behind that.
    let record = walled.take(frame, home, 32)?;
    let mut readings = lock(&walled.readings);
    let mut known = readings.iter_mut();
    let reading = known.find(|reading| reading.copy == copy);
    let reading = reading.ok_or_else(|| format!("{copy:#x} is no bucket that is being read"))?;
    reading.made = Some((from, bytes));
    // SAFETY: both are the module's memory: the record was just taken, and `fill` has taken the copy.
    unsafe {
        (record as *mut [u64; 4]).write([1, from, bytes, 0]);
        write(copy + LENGTH, bytes);
        write(copy + START, 0);
        write(copy + DATA, if bytes == 0 { from } else { record });
    }
    Ok(copy)
}

pub(crate) extern "C" fn apr_bucket_heap_make(copy: u64, from: u64, bytes: u64, _: u64) -> u64 {
    mediate(|frame| make(frame, copy, from, bytes))
}

pub(crate) extern "C" fn apr_bucket_immortal_make(copy: u64, from: u64, bytes: u64) -> u64 {
    mediate(|frame| make(frame, copy, from, bytes))
}
