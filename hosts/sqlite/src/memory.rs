//! `sqlite3_malloc` and its kin, for modules: each has a heap of its own.

use crate::api::host;
use crate::values::TRANSIENT;
use crate::walled::{Answer, Handle, Walled, gate, mediate};
use std::ffi::{c_char, c_int, c_void};

pub(crate) extern "C" fn malloc(bytes: c_int) -> u64 {
    malloc64(u64::try_from(bytes).unwrap_or(0))
}

pub(crate) extern "C" fn malloc64(bytes: u64) -> u64 {
    mediate(|frame| match bytes {
        0 => Ok(0),
        bytes => Ok(frame.walled.take(bytes).unwrap_or(0)),
    })
}

pub(crate) extern "C" fn free(at: u64) {
    mediate(|frame| frame.walled.free(at));
}

pub(crate) extern "C" fn msize(at: u64) -> u64 {
    mediate(|frame| Ok(frame.walled.heap.borrow().size(at).unwrap_or(0)))
}

pub(crate) extern "C" fn realloc(at: u64, bytes: c_int) -> u64 {
    realloc64(at, u64::try_from(bytes).unwrap_or(0))
}

pub(crate) extern "C" fn realloc64(at: u64, bytes: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        if at == 0 || bytes == 0 {
            walled.free(at)?;
            return Ok(if bytes == 0 {
                0
            } else {
                walled.take(bytes).unwrap_or(0)
            });
        }
        let old = walled.heap.borrow().size(at);
        match old {
            Some(old) if bytes <= old && 2 * bytes > old => Ok(at),
            Some(old) => {
                let Some(to) = walled.take(bytes) else {
                    return Ok(0);
                };
                let kept = walled.bytes(at, old.min(bytes))?;
                walled.write(to, kept)?;
                walled.free(at)?;
                Ok(to)
            }
            None => walled.free(at).map(|()| 0),
        }
    })
}

/// What SQLite does with a piece of a module's that it has copied: as the module said.
pub(crate) fn dispose(walled: &'static Walled, destructor: u64, at: u64) -> Answer<()> {
    if matches!(destructor as isize, 0 | TRANSIENT) {
        return Ok(());
    }
    if destructor == free as *const () as u64 {
        return walled.free(at);
    }
    let destructor = walled.function(destructor)?;
    walled.enter(std::ptr::null_mut(), &[], |_| {
        gate!(destructor, fn(u64))(at);
        Some(())
    });
    Ok(())
}

/// A string that SQLite has allocated, on the module's heap; SQLite's goes.
pub(crate) fn adopt(walled: &Walled, text: *mut c_char) -> u64 {
    if text.is_null() {
        return 0;
    }
    // SAFETY: SQLite's strings end with a zero.
    let bytes = unsafe { std::ffi::CStr::from_ptr(text) };
    let copy = walled.give(bytes.to_bytes()).unwrap_or(0);
    host!(free: fn(*mut c_void))(text.cast());
    copy
}

/// A string of the module's, as SQLite allocates one; the module's goes.
pub(crate) fn hand_over(walled: &Walled, at: u64) -> *mut c_char {
    if at == 0 {
        return std::ptr::null_mut();
    }
    let copy = match walled.text(at) {
        Ok(text) => allocated(text),
        Err(_) => std::ptr::null_mut(),
    };
    walled.heap.borrow_mut().give(at);
    copy
}

/// A string as SQLite allocates one.
pub(crate) fn allocated(text: &[u8]) -> *mut c_char {
    let at = host!(malloc64: fn(u64) -> *mut u8)(text.len() as u64 + 1);
    if !at.is_null() {
        // SAFETY: SQLite has given that much.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), at, text.len());
            at.add(text.len()).write(0);
        }
    }
    at.cast()
}

pub(crate) extern "C" fn randomness(bytes: c_int, to: u64) {
    mediate(|frame| {
        let mut random = vec![0u8; usize::try_from(bytes.clamp(0, 1 << 20)).unwrap_or(0)];
        host!(randomness: fn(c_int, *mut u8))(random.len() as c_int, random.as_mut_ptr());
        frame.walled.write(to, &random)
    });
}

/// Comparisons of two strings.
macro_rules! compare {
    ($($name:ident($($more:ident: $kind:ty)?);)*) => { $(
        pub(crate) extern "C" fn $name(a: u64, b: u64 $(, $more: $kind)?) -> c_int {
            mediate(|frame| {
                let (a, b) = (frame.walled.c_string_or_null(a)?, frame.walled.c_string_or_null(b)?);
                let pointer = |text: &Option<std::ffi::CString>| {
                    text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr())
                };
                Ok(host!($name: fn(*const c_char, *const c_char $(, $kind)?) -> c_int)(
                    pointer(&a), pointer(&b) $(, $more)?
                ))
            })
        }
    )* };
}

compare! {
    stricmp();
    strglob();
    strlike(escape: u32);
}

pub(crate) extern "C" fn strnicmp(a: u64, b: u64, most: c_int) -> c_int {
    mediate(|frame| {
        let most_bytes = u64::try_from(most).unwrap_or(0);
        let text = |at| frame.walled.text_up_to(at, most_bytes).map(<[u8]>::to_vec);
        let (mut a, mut b) = (text(a)?, text(b)?);
        a.push(0);
        b.push(0);
        let compare = host!(strnicmp: fn(*const u8, *const u8, c_int) -> c_int);
        Ok(compare(a.as_ptr(), b.as_ptr(), most))
    })
}

/// Where an aggregate's state is on the module's heap, in memory that SQLite keeps for the aggregate.
#[repr(C)]
pub(crate) struct State {
    at: u64,
    life: u64,
}

fn state(context: Handle, bytes: c_int) -> *mut State {
    host!(aggregate_context: fn(Handle, c_int) -> *mut State)(context, bytes)
}

pub(crate) extern "C" fn aggregate_context(context: Handle, bytes: c_int) -> u64 {
    mediate(|frame| {
        let context = frame.context(context)?;
        let walled = frame.walled;
        let wanted = if bytes > 0 {
            size_of::<State>() as c_int
        } else {
            0
        };
        // SAFETY: null, or what SQLite keeps for this aggregate, zero at first.
        let Some(state) = (unsafe { state(context, wanted).as_mut() }) else {
            return Ok(0);
        };
        if state.at != 0 && state.life == walled.life.get() {
            return Ok(state.at);
        }
        let bytes = u64::try_from(bytes).unwrap_or(0);
        let Some(at) = walled.take(bytes.max(1)) else {
            return Ok(0);
        };
        walled.write(at, &vec![0; bytes as usize])?;
        *state = State {
            at,
            life: walled.life.get(),
        };
        Ok(at)
    })
}

/// The aggregate is over: its state goes.
pub(crate) fn drop_state(walled: &Walled, context: Handle) {
    // SAFETY: null, or what SQLite keeps for this aggregate, which nobody else uses meanwhile.
    if let Some(state) = unsafe { state(context, 0).as_ref() }
        && state.at != 0
        && state.life == walled.life.get()
    {
        walled.heap.borrow_mut().give(state.at);
    }
}
