//! Values and structures as `mullion.h` lays them out.

use crate::status::Failure;
use mullion_host::{Arguments, Returned};
use std::ffi::{c_char, c_void};

/// `mullion_pointer`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Pointer {
    pub(crate) address: u64,
}

/// A pointer of the host's own, handed back to its functions.
#[derive(Clone, Copy)]
pub(crate) struct User(pub(crate) *mut c_void);

// SAFETY: it is never dereferenced here. The header says that functions are
// called with it from every thread, and that is the host's to bear in mind.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

pub(crate) const INTEGER: u32 = 0;
pub(crate) const DOUBLE: u32 = 1;
pub(crate) const FLOAT: u32 = 2;
pub(crate) const NOTHING: u32 = 3;

/// `mullion_value`: of the union, the bits. A float is their low half.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Value {
    pub(crate) kind: u32,
    pub(crate) reserved: u32,
    pub(crate) bits: u64,
}

/// `mullion_arguments`.
#[repr(C)]
pub(crate) struct HostArguments {
    pub(crate) integers: [u64; 6],
    pub(crate) reals: [f64; 8],
}

/// `mullion_limits`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Limits {
    pub(crate) size: usize,
    pub(crate) memory: u64,
    pub(crate) stack: u64,
    pub(crate) nanoseconds: u64,
    pub(crate) threads: u32,
    pub(crate) depth: u32,
}

/// `mullion_candidate`.
#[repr(C)]
pub(crate) struct Candidate {
    pub(crate) size: usize,
    pub(crate) name: *const c_char,
    pub(crate) path: *const c_char,
    pub(crate) bytes: *const c_void,
    pub(crate) length: usize,
}

const MOST: usize = 8;

/// Arguments for a domain.
///
/// # Safety
/// The pointer is null or points to `count` values.
pub(crate) unsafe fn arguments(values: *const Value, count: usize) -> Result<Arguments, Failure> {
    if count > MOST {
        return Err(Failure::argument("a call has at most eight arguments"));
    }
    if values.is_null() && count > 0 {
        return Err(Failure::null());
    }
    let (mut integers, mut reals) = (Vec::new(), Vec::new());
    for index in 0..count {
        // SAFETY: there are `count` of them.
        let value = unsafe { values.add(index).read() };
        match value.kind {
            INTEGER => integers.push(value.bits),
            DOUBLE => reals.push(f64::from_bits(value.bits)),
            FLOAT => reals.push(f64::from_bits(value.bits & 0xffff_ffff)),
            _ => {
                return Err(Failure::argument(
                    "an argument's kind is none that there is",
                ));
            }
        }
    }
    let arguments = Arguments::new(&integers);
    Ok(match reals.is_empty() {
        true => arguments,
        false => arguments.with_doubles(&reals),
    })
}

/// Whether the result wants something that there is.
///
/// # Safety
/// The pointer is null or points to a value.
pub(crate) unsafe fn check_result(result: *mut Value) -> Result<(), Failure> {
    // SAFETY: by the caller's promise.
    match unsafe { result.as_ref() } {
        Some(value) if value.kind > NOTHING => {
            Err(Failure::argument("the result's kind is none that there is"))
        }
        _ => Ok(()),
    }
}

/// Hands over what was returned, as the kind of the result says.
///
/// # Safety
/// The pointer is null or points to a value.
pub(crate) unsafe fn set_result(result: *mut Value, returned: &Returned) {
    // SAFETY: by the caller's promise.
    if let Some(value) = unsafe { result.as_mut() } {
        value.reserved = 0;
        value.bits = match value.kind {
            INTEGER => returned.integer,
            DOUBLE => returned.double.to_bits(),
            FLOAT => returned.double.to_bits() & 0xffff_ffff,
            _ => 0,
        };
    }
}

/// Room of C's for `length` bytes, made into bytes that are initialised.
///
/// # Safety
/// The pointer is null, or `length` bytes there are the caller's to write.
pub(crate) unsafe fn room<'a>(to: *mut u8, length: usize) -> Result<&'a mut [u8], Failure> {
    if to.is_null() || isize::try_from(length).is_err() {
        return Err(Failure::null());
    }
    // SAFETY: by the caller's promise. Written first, since C need not have.
    unsafe {
        to.write_bytes(0, length);
        Ok(std::slice::from_raw_parts_mut(to, length))
    }
}
