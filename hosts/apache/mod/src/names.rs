//! What a module keeps under a name, in a pool or for good. The core and other modules keep things in the same places, and follow what
//! they find there. So a module's names are its own: what the server has is the name with the module's in front of it.

use crate::apr;
use crate::back;
use crate::call::mediate;
use crate::copied;
use crate::frame::Frame;
use crate::interface::back as kind;
use crate::layout::read;
use crate::owners;
use crate::pools;
use crate::walled::Answer;
use std::ffi::CString;
use std::sync::OnceLock;

/// So much at a time stays for good.
const RETAINED: u64 = 1 << 20;

/// A name as the server has it.
fn own(frame: &Frame, name: u64) -> Answer<CString> {
    let name = copied::text(frame, name)?;
    let own = [b"mullion ", frame.walled.name.as_bytes(), b" ", &name].concat();
    CString::new(own).map_err(|error| error.to_string())
}

fn keep(data: u64, name: u64, cleanup: u64, pool: u64) -> u64 {
    mediate(|frame| {
        frame.only_computes();
        frame.walled.pool(frame, pool)?;
        let cleanup = back::stand_in(frame, kind("cleanup"), cleanup)?;
        let name = own(frame, name)?;
        let real = apr::symbol("apr_pool_userdata_set").ok_or("the server does not have it")?;
        // SAFETY: it is APR's function, which copies the name. The pool lives.
        let real: extern "C" fn(u64, *const i8, u64, u64) -> i32 =
            unsafe { std::mem::transmute(real) };
        Ok(real(data, name.as_ptr(), cleanup, pool) as u32 as u64)
    })
}

pub(crate) extern "C" fn apr_pool_userdata_set(
    data: u64,
    name: u64,
    cleanup: u64,
    pool: u64,
) -> u64 {
    keep(data, name, cleanup, pool)
}

/// The other one does not copy the name, which the module could change.
pub(crate) extern "C" fn apr_pool_userdata_setn(
    data: u64,
    name: u64,
    cleanup: u64,
    pool: u64,
) -> u64 {
    keep(data, name, cleanup, pool)
}

pub(crate) extern "C" fn apr_pool_userdata_get(to: u64, name: u64, pool: u64) -> u64 {
    mediate(|frame| {
        frame.only_computes();
        frame.walled.pool(frame, pool)?;
        frame.walled.must_write(to, 8)?;
        let name = own(frame, name)?;
        static REAL: OnceLock<Option<usize>> = OnceLock::new();
        let real = *REAL.get_or_init(|| apr::symbol("apr_pool_userdata_get"));
        let real = real.ok_or("the server does not have it")?;
        // SAFETY: it is APR's function, with a word of ours. The pool lives.
        let real: extern "C" fn(*mut u64, *const i8, u64) -> i32 =
            unsafe { std::mem::transmute(real) };
        let mut found = 0;
        let status = real(&mut found, name.as_ptr(), pool);
        // SAFETY: the module may write there.
        unsafe { (to as *mut u64).write_unaligned(found) };
        Ok(status as u32 as u64)
    })
}

/// The pool of the process, in which the core keeps what stays.
fn lasting(frame: &Frame) -> Answer<()> {
    let at = apr::symbol("ap_pglobal").ok_or("the server does not have ap_pglobal")?;
    // SAFETY: it is a variable of httpd's, which has the pool.
    let pool = unsafe { read(at as u64) };
    frame.only_computes();
    frame.take_turn(pool)
}

/// It stays over restarts of the server.
pub(crate) extern "C" fn ap_retained_data_create(name: u64, bytes: u64) -> u64 {
    mediate(|frame| {
        pools::before_serving("ap_retained_data_create")?;
        let name = own(frame, name)?;
        if bytes > RETAINED {
            return Err(format!(
                "ap_retained_data_create: {bytes} bytes are too many"
            ));
        }
        let real = apr::symbol("ap_retained_data_create").ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function, which copies the name.
        let real: extern "C" fn(*const i8, u64) -> u64 = unsafe { std::mem::transmute(real) };
        let made = real(name.as_ptr(), bytes.next_multiple_of(8));
        std::mem::forget(frame.walled.grant(made, bytes.next_multiple_of(8))?);
        Ok(made)
    })
}

pub(crate) extern "C" fn ap_retained_data_get(name: u64) -> u64 {
    mediate(|frame| {
        lasting(frame)?;
        let name = own(frame, name)?;
        let real = apr::symbol("ap_retained_data_get").ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function.
        let real: extern "C" fn(*const i8) -> u64 = unsafe { std::mem::transmute(real) };
        Ok(real(name.as_ptr()))
    })
}

/// A kind of locks as the server has it, with a zero at its end. Others make their locks by kinds of theirs, as the kind was registered
/// last.
pub(crate) fn lock(frame: &Frame, kind: u64) -> Answer<Vec<u8>> {
    let kind = copied::text(frame, kind)?;
    let mut own = owners::lock_of(&frame.walled.name, &kind);
    own.push(0);
    Ok(own)
}

/// A kind of lock by its name. The core keeps both strings where they are, and its list as long as the configuration.
pub(crate) extern "C" fn ap_mutex_register(
    pool: u64,
    name: u64,
    folder: u64,
    how: u64,
    options: u64,
) -> u64 {
    mediate(|frame| {
        pools::before_serving("ap_mutex_register")?;
        frame.walled.pool(frame, pool)?;
        let text = lock(frame, name)?;
        // SAFETY: the server does not serve yet.
        let name = unsafe { pools::lasting_copy(&text)? };
        let folder = copied::name_or_null(frame, folder)?;
        // SAFETY: the server does not serve yet, so one thread alone works with the pool.
        let folder = unsafe { pools::lasting_or_null(folder.as_ref())? };
        let real = apr::symbol("ap_mutex_register").ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function, with strings that stay.
        let real: extern "C" fn(u64, u64, u64, u64, u64) -> i32 =
            unsafe { std::mem::transmute(real) };
        Ok(real(pools::lasting()?, name, folder, how, options) as u32 as u64)
    })
}

/// A method of requests by its name, or all of them for null.
pub(crate) extern "C" fn ap_method_register(pool: u64, name: u64) -> u64 {
    mediate(|frame| {
        pools::before_serving("ap_method_register")?;
        frame.walled.pool(frame, pool)?;
        let name = copied::name_or_null(frame, name)?;
        // SAFETY: the server does not serve yet, so one thread alone works with the pool.
        let name = unsafe { pools::lasting_or_null(name.as_ref())? };
        let real = apr::symbol("ap_method_register").ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function, with a string that stays.
        let real: extern "C" fn(u64, u64) -> i32 = unsafe { std::mem::transmute(real) };
        Ok(real(pools::lasting()?, name) as u32 as u64)
    })
}
