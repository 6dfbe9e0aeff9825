//! Values and structures as `mullion.h` lays them out.

use crate::status::Failure;
use mullion_host::{CallArguments, Class, Clock, Permission, Returned};
use std::ffi::{c_char, c_void};
use std::time::Duration;

/// `MULLION_NEVER`.
pub(crate) const NEVER: u64 = u64::MAX;

/// A time that C states, in nanoseconds.
pub(crate) fn at_most(nanoseconds: u64) -> Duration {
    match nanoseconds {
        NEVER => Duration::MAX,
        some => Duration::from_nanos(some),
    }
}

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
// SAFETY: a reference to it gives a number, which is handed on as it is.
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
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Limits {
    pub(crate) size: usize,
    pub(crate) memory: u64,
    pub(crate) stack: u64,
    pub(crate) nanoseconds: u64,
    pub(crate) threads: u32,
    pub(crate) depth: u32,
    pub(crate) total_nanoseconds: u64,
    pub(crate) gate_calls: u64,
    pub(crate) output: u64,
    pub(crate) processor_nanoseconds: u64,
    pub(crate) total_processor_nanoseconds: u64,
    pub(crate) start_wait_nanoseconds: u64,
    pub(crate) mappings: u64,
    pub(crate) measured: u64,
    pub(crate) steps: u64,
}

/// `MULLION_CLOCK_WALL` and its kin.
pub(crate) fn clock(number: u64) -> Result<Option<Clock>, Failure> {
    match number {
        0 => Ok(None),
        1 => Ok(Some(Clock::Wall)),
        2 => Ok(Some(Clock::Processor)),
        _ => Err(Failure::argument("there is no such clock to measure by")),
    }
}

/// What `sizeof(mullion_limits)` was before it grew.
const FIRST_LIMITS: usize = std::mem::offset_of!(Limits, total_nanoseconds);

/// # Safety
/// The pointer is null or points to a structure whose `size` is set.
pub(crate) unsafe fn limits(given: *const Limits) -> Result<Option<Limits>, Failure> {
    // SAFETY: null or a structure whose first member is its size: this function's condition. All zeroes is a value of
    // it.
    unsafe {
        versioned(
            given,
            FIRST_LIMITS,
            "`size` of the limits is not sizeof(mullion_limits)",
        )
    }
}

/// `mullion_pool_limits`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct PoolBounds {
    pub(crate) size: usize,
    pub(crate) most: u64,
    pub(crate) ready: u64,
    pub(crate) memory: u64,
}

/// `mullion_pool_limits`.
///
/// # Safety
/// The pointer is null or points to a structure whose `size` is set.
pub(crate) unsafe fn pool_limits(given: *const PoolBounds) -> Result<Option<PoolBounds>, Failure> {
    // SAFETY: null or a structure whose first member is its size: this function's condition. All zeroes is a value of
    // it.
    unsafe {
        versioned(
            given,
            size_of::<PoolBounds>(),
            "`size` of the limits is not sizeof(mullion_pool_limits)",
        )
    }
}

/// A structure that has grown, and says by its first member how large the host's version is: at
/// least `first` bytes. What an older one does not have is 0.
///
/// # Safety
/// The pointer is null or points to a structure whose size is its first member. All zeroes is a
/// value of `T`, and so is every version followed by zeroes.
unsafe fn versioned<T: Copy>(
    given: *const T,
    first: usize,
    refusal: &'static str,
) -> Result<Option<T>, Failure> {
    // SAFETY: the first member is there in every version of the structure.
    let Some(size) = (unsafe { given.cast::<usize>().as_ref() }) else {
        return Ok(None);
    };
    if !(first..=size_of::<T>()).contains(size) || !size.is_multiple_of(8) {
        return Err(Failure::argument(refusal));
    }
    let mut whole = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: it is of the size that it says (this function's condition), which is no
    // more than ours, and the whole is a value then.
    unsafe {
        std::ptr::copy_nonoverlapping(given.cast::<u8>(), whole.as_mut_ptr().cast(), *size);
        Ok(Some(whole.assume_init()))
    }
}

/// `mullion_call_limits`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CallLimits {
    pub(crate) size: usize,
    pub(crate) nanoseconds: u64,
    pub(crate) gate_calls: u64,
    pub(crate) depth: u32,
    pub(crate) reserved: u32,
    pub(crate) processor_nanoseconds: u64,
}

/// What `sizeof(mullion_call_limits)` was before it grew.
const FIRST_CALL_LIMITS: usize = std::mem::offset_of!(CallLimits, processor_nanoseconds);

/// # Safety
/// The pointer is null or points to a structure whose `size` is set.
#[inline]
pub(crate) unsafe fn call_limits(
    given: *const CallLimits,
) -> Result<Option<mullion_host::CallLimits>, Failure> {
    let refusal = "`size` is not sizeof(mullion_call_limits)";
    // SAFETY: null or a structure that says its size: this function's condition. All members are integers.
    let Some(given) = (unsafe { versioned(given, FIRST_CALL_LIMITS, refusal) })? else {
        return Ok(None);
    };
    let some = |given: u64| (given != 0).then_some(given);
    Ok(Some(mullion_host::CallLimits {
        time: some(given.nanoseconds).map(Duration::from_nanos),
        processor_time: some(given.processor_nanoseconds).map(Duration::from_nanos),
        gate_calls: some(given.gate_calls),
        depth: (given.depth != 0).then_some(given.depth),
    }))
}

const PERMISSIONS: [Permission; 3] = [Permission::None, Permission::Read, Permission::ReadWrite];

/// `MULLION_NONE` and its kin.
pub(crate) fn permission(number: u32) -> Result<Permission, Failure> {
    let found = PERMISSIONS.get(number as usize).copied();
    found.ok_or_else(|| Failure::argument("the permission is none that there is"))
}

/// Its number in the header; for one that has none, one that means nothing.
pub(crate) fn permission_number(permission: Permission) -> u32 {
    let place = PERMISSIONS.iter().position(|known| *known == permission);
    place.map_or(u32::MAX, |place| place as u32)
}

/// What a function returns that returns this value.
pub(crate) fn returned(value: &Value) -> Result<Returned, Failure> {
    let (integer, double) = match value.kind {
        INTEGER => (value.bits, 0),
        DOUBLE => (0, value.bits),
        FLOAT => (0, value.bits & 0xffff_ffff),
        NOTHING => (0, 0),
        _ => return Err(Failure::argument("the value's kind is none that there is")),
    };
    Ok(Returned {
        integer,
        high: 0,
        double: f64::from_bits(double),
    })
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

/// `MULLION_TYPE_NOTHING`; other types are numbers of bytes, with a mark for floating
/// point.
pub(crate) const TYPE_NOTHING: u32 = 0;
pub(crate) const TYPE_REAL: u32 = 0x100;

/// A `mullion_type` that is something.
pub(crate) fn class(number: u32) -> Result<Class, Failure> {
    let bytes = u64::from(number & !TYPE_REAL);
    match (number & TYPE_REAL != 0, bytes) {
        (false, 1 | 2 | 4 | 8) => Ok(Class::Integer(bytes)),
        (true, 4 | 8) => Ok(Class::Real(bytes)),
        _ => Err(Failure::argument("a type is none that crosses the wall")),
    }
}

/// The type of a result; `None`: it is not looked at.
pub(crate) fn result_class(number: u32) -> Result<Option<Class>, Failure> {
    match number {
        TYPE_NOTHING => Ok(None),
        other => Ok(Some(class(other)?)),
    }
}

/// Types of parameters.
///
/// # Safety
/// The pointer is null or points to `count` types.
pub(crate) unsafe fn classes(types: *const u32, count: usize) -> Result<Vec<Class>, Failure> {
    if count > MOST {
        return Err(Failure::argument("a call has at most eight arguments"));
    }
    if types.is_null() && count > 0 {
        return Err(Failure::null());
    }
    // SAFETY: there are `count` of them.
    let given = (0..count).map(|index| unsafe { types.add(index).read() });
    given.map(class).collect()
}

/// Arguments for a domain, behind those that there are: in their place, since to move
/// what has been written in small parts takes as long as a call.
///
/// # Safety
/// The pointer is null or points to `count` values.
#[inline]
pub(crate) unsafe fn arguments(
    values: *const Value,
    count: usize,
    arguments: &mut CallArguments,
) -> Result<(), Failure> {
    if count > MOST {
        return Err(Failure::argument("a call has at most eight arguments"));
    }
    if values.is_null() && count > 0 {
        return Err(Failure::null());
    }
    let (mut reals, mut of_reals) = ([0.0; MOST], 0);
    for index in 0..count {
        // SAFETY: there are `count` of them.
        let value = unsafe { values.add(index).read() };
        let real = match value.kind {
            INTEGER => {
                arguments.push(value.bits);
                continue;
            }
            DOUBLE => f64::from_bits(value.bits),
            FLOAT => f64::from_bits(value.bits & 0xffff_ffff),
            _ => {
                return Err(Failure::argument(
                    "an argument's kind is none that there is",
                ));
            }
        };
        reals[of_reals] = real;
        of_reals += 1;
    }
    if of_reals > 0 {
        arguments.set_doubles(&reals[..of_reals]);
    }
    Ok(())
}

/// Whether the result wants something that there is.
///
/// # Safety
/// The pointer is null or points to a value.
pub(crate) unsafe fn check_result(result: *mut Value) -> Result<(), Failure> {
    // SAFETY: null or a value of the host's that nobody else uses for the call: this function's condition.
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
    // SAFETY: null or a value of the host's that nobody else uses for the call: this function's condition.
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
    // SAFETY: null or room for `length` bytes that nobody else uses: this function's condition. Written first, since C need not have.
    unsafe {
        to.write_bytes(0, length);
        Ok(std::slice::from_raw_parts_mut(to, length))
    }
}
