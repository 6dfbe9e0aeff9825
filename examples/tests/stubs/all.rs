//! Made by `mullion bind` from all.h; do not edit.

#![allow(dead_code, unused_imports, unreachable_pub, clippy::all, reason = "generated")]

use mullion::zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};
use mullion::{Caller, Domain, Error, Function, Imports, Ptr, Within};

/// `struct size`.
#[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable)]
#[zerocopy(crate = "mullion::zerocopy")]
#[repr(C)]
pub struct Size {
    /// `width`.
    pub width: u32,
    /// `height`.
    pub height: u32,
}

/// The extension's functions, in one domain.
pub struct Extension {
    domain: Domain,
    pass_on: Function<fn(i32, i32, i32, i32, i32, i32, i8, i64) -> i64>,
    grow: Function<fn(Ptr<Size>, Ptr<Size>, Ptr<Size>)>,
    gain: Function<fn(u32, u32) -> i32>,
}

impl Extension {
    /// Finds them.
    ///
    /// # Errors
    /// [`Error::NoExport`].
    pub fn new(domain: &Domain) -> Result<Self, Error> {
        Ok(Self {
            domain: domain.clone(),
            pass_on: domain.function("pass_on")?,
            grow: domain.function("grow")?,
            gain: domain.function("gain")?,
        })
    }

    /// `pass_on`.
    ///
    /// # Errors
    /// The call did not return; a length does not fit.
    pub fn pass_on(&self, a: i32, b: i32, c: i32, d: i32, e: i32, f: i32, g: i8, h: i64) -> Result<i64, Error> {
        let result = self.pass_on.call(a, b, c, d, e, f, g, h)?;
        Ok(result)
    }

    /// `grow`.
    ///
    /// # Errors
    /// The call did not return; a length does not fit.
    pub fn grow(&self, size: &mut Size, by: &Size, old: &mut Size) -> Result<(), Error> {
        let size_inside = self.domain.copy_in(std::slice::from_ref(&*size))?;
        let by_inside = self.domain.copy_in(std::slice::from_ref(&*by))?;
        let old_inside = self.domain.alloc::<Size>(1)?;
        let result = self.grow.call(size_inside.ptr().cast(), by_inside.ptr().cast(), old_inside.ptr().cast())?;
        size_inside.slice(&self.domain)?.copy_to(std::slice::from_mut(size))?;
        old_inside.slice(&self.domain)?.copy_to(std::slice::from_mut(old))?;
        Ok(result)
    }

    /// `gain`.
    ///
    /// # Errors
    /// The call did not return; a length does not fit.
    pub fn gain(&self, width: u32, height: u32) -> Result<i32, Error> {
        let result = self.gain.call(width, height)?;
        Ok(result)
    }
}

/// The length that all these slices have, as the extension counts.
fn mullion_length<N: TryFrom<usize>>(lengths: &[usize]) -> Result<N, Error> {
    let first = lengths.first().copied().unwrap_or(0);
    let wrong = |other: usize| Error::Index { index: first as u64, length: other as u64 };
    match lengths.iter().find(|length| **length != first) {
        Some(other) => Err(wrong(*other)),
        None => N::try_from(first).map_err(|_| wrong(0)),
    }
}

/// Most bytes that are copied for one argument of a host function.
const LONGEST: u64 = 1048576;

/// The host's functions. What the extension passes by pointer has been copied.
pub trait Host: Send + Sync + 'static {
    /// `weigh`.
    ///
    /// # Errors
    /// Ends the extension's call.
    fn weigh(&self, caller: &Caller<'_>, a: i32, b: i32, c: i32, d: i32, e: i32, f: i32, g: i8, h: i64) -> Result<i64, Error>;

    /// `host_grow`.
    ///
    /// # Errors
    /// Ends the extension's call.
    fn host_grow(&self, caller: &Caller<'_>, size: &mut Size, by: &Size, old: &mut Size) -> Result<(), Error>;
}

/// The list of them.
pub fn imports(host: impl Host) -> Imports {
    let host = std::sync::Arc::new(host);
    let imports = Imports::new();
    let own = host.clone();
    let imports = imports.function("weigh", move |caller: &Caller<'_>, a: i32, b: i32, c: i32, d: i32, e: i32, f: i32, g: i8, h: i64| {
        let result = own.weigh(caller, a, b, c, d, e, f, g, h)?;
        Ok::<_, Error>(result)
    });
    let own = host.clone();
    let imports = imports.function("host_grow", move |caller: &Caller<'_>, size: Ptr<Size>, by: Ptr<Size>, old: Ptr<Size>| {
        let mut size_copy = <Size>::new_zeroed();
        size.slice(caller, 1)?.copy_to(std::slice::from_mut(&mut size_copy))?;
        let mut by_copy = <Size>::new_zeroed();
        by.slice(caller, 1)?.copy_to(std::slice::from_mut(&mut by_copy))?;
        let mut old_copy = <Size>::new_zeroed();
        let result = own.host_grow(caller, &mut size_copy, &by_copy, &mut old_copy)?;
        size.slice(caller, 1)?.copy_from(std::slice::from_ref(&size_copy))?;
        old.slice(caller, 1)?.copy_from(std::slice::from_ref(&old_copy))?;
        Ok::<_, Error>(result)
    });
    imports
}

/// A number of elements as the extension states it, unless they are too many.
fn mullion_elements<T, N: TryInto<u64>>(count: N) -> Result<u64, Error> {
    let most = LONGEST / size_of::<T>() as u64;
    match count.try_into() {
        Ok(count) if count <= most => Ok(count),
        Ok(count) => Err(Error::Index { index: count, length: most }),
        Err(_) => Err(Error::Index { index: u64::MAX, length: most }),
    }
}
