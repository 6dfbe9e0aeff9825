//! Made by `mullion bind` from all.h; do not edit.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    non_camel_case_types,
    non_snake_case,
    clippy::all,
    reason = "generated"
)]

use ::mullion::DomainMemory as _;
use ::mullion::zerocopy::FromZeros as _;

/// `struct size`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[derive(::mullion::zerocopy::FromBytes, ::mullion::zerocopy::IntoBytes, ::mullion::zerocopy::Immutable)]
#[zerocopy(crate = "::mullion::zerocopy")]
#[repr(C)]
pub struct Size {
    /// `width`.
    pub width: u32,
    /// `height`.
    pub height: u32,
}

/// The extension's functions, in one domain.
pub struct Extension {
    domain: ::mullion::Domain,
    call_pass_on: ::mullion::Function<fn(i32, i32, i32, i32, i32, i32, i8, i64) -> i64>,
    call_grow: ::mullion::Function<fn(::mullion::Ptr<Size>, ::mullion::Ptr<Size>, ::mullion::Ptr<Size>)>,
    call_gain: ::mullion::Function<fn(u32, u32) -> i32>,
}

impl Extension {
    /// Finds them.
    ///
    /// # Errors
    /// [`::mullion::Error::NoExport`].
    pub fn new(domain: &::mullion::Domain) -> ::core::result::Result<Self, ::mullion::Error> {
        Ok(Self {
            domain: domain.clone(),
            call_pass_on: domain.function("pass_on")?,
            call_grow: domain.function("grow")?,
            call_gain: domain.function("gain")?,
        })
    }

    /// `pass_on`.
    ///
    /// # Errors
    /// The call did not return; a length does not fit.
    pub fn pass_on(&self, a: i32, b: i32, c: i32, d: i32, e: i32, f: i32, g: i8, h: i64) -> ::core::result::Result<i64, ::mullion::Error> {
        let mullion_result = self.call_pass_on.call(a, b, c, d, e, f, g, h)?;
        Ok(mullion_result)
    }

    /// `grow`.
    ///
    /// # Errors
    /// The call did not return; a length does not fit.
    pub fn grow(&self, size: &mut Size, by: &Size, old: &mut Size) -> ::core::result::Result<(), ::mullion::Error> {
        let mullion_size_inside = self.domain.copy_in(::core::slice::from_ref(&*size))?;
        let mullion_by_inside = self.domain.copy_in(::core::slice::from_ref(&*by))?;
        let mullion_old_inside = self.domain.alloc::<Size>(1)?;
        let mullion_result = self.call_grow.call(mullion_size_inside.ptr().cast(), mullion_by_inside.ptr().cast(), mullion_old_inside.ptr().cast())?;
        mullion_size_inside.slice(&self.domain)?.copy_to(::core::slice::from_mut(size))?;
        mullion_old_inside.slice(&self.domain)?.copy_to(::core::slice::from_mut(old))?;
        Ok(mullion_result)
    }

    /// `gain`.
    ///
    /// # Errors
    /// The call did not return; a length does not fit.
    pub fn gain(&self, width: u32, height: u32) -> ::core::result::Result<i32, ::mullion::Error> {
        let mullion_result = self.call_gain.call(width, height)?;
        Ok(mullion_result)
    }
}

/// The length that all these slices have, as the extension counts.
fn mullion_length<N: ::core::convert::TryFrom<usize>>(lengths: &[usize]) -> ::core::result::Result<N, ::mullion::Error> {
    let first = lengths.first().copied().unwrap_or(0);
    let wrong = |other: usize| ::mullion::Error::Index { index: first as u64, length: other as u64 };
    match lengths.iter().find(|length| **length != first) {
        Some(other) => Err(wrong(*other)),
        None => N::try_from(first).map_err(|_| wrong(0)),
    }
}

/// The host's functions. What the extension passes by pointer has been copied: for one argument
/// 1048576 bytes at most.
pub trait Host: ::core::marker::Send + ::core::marker::Sync + 'static {
    /// `weigh`.
    ///
    /// # Errors
    /// Ends the extension's call.
    fn weigh(&self, mullion_caller: &::mullion::Caller<'_>, a: i32, b: i32, c: i32, d: i32, e: i32, f: i32, g: i8, h: i64) -> ::core::result::Result<i64, ::mullion::Error>;

    /// `host_grow`.
    ///
    /// # Errors
    /// Ends the extension's call.
    fn host_grow(&self, mullion_caller: &::mullion::Caller<'_>, size: &mut Size, by: &Size, old: &mut Size) -> ::core::result::Result<(), ::mullion::Error>;
}

/// The list of them.
pub fn imports(host: impl Host) -> ::mullion::Imports {
    let mullion_host = ::std::sync::Arc::new(host);
    let mullion_imports = ::mullion::Imports::new();
    let mullion_own = mullion_host.clone();
    let mullion_imports = mullion_imports.function("weigh", move |mullion_caller: &::mullion::Caller<'_>, a: i32, b: i32, c: i32, d: i32, e: i32, f: i32, g: i8, h: i64| {
        let mullion_result = Host::weigh(&*mullion_own, mullion_caller, a, b, c, d, e, f, g, h)?;
        Ok::<_, ::mullion::Error>(mullion_result)
    });
    let mullion_own = mullion_host.clone();
    let mullion_imports = mullion_imports.function("host_grow", move |mullion_caller: &::mullion::Caller<'_>, size: ::mullion::Ptr<Size>, by: ::mullion::Ptr<Size>, old: ::mullion::Ptr<Size>| {
        let mut mullion_size_copy = <Size>::new_zeroed();
        size.slice(mullion_caller, 1)?.copy_to(::core::slice::from_mut(&mut mullion_size_copy))?;
        let mut mullion_by_copy = <Size>::new_zeroed();
        by.slice(mullion_caller, 1)?.copy_to(::core::slice::from_mut(&mut mullion_by_copy))?;
        let mut mullion_old_copy = <Size>::new_zeroed();
        let mullion_result = Host::host_grow(&*mullion_own, mullion_caller, &mut mullion_size_copy, &mullion_by_copy, &mut mullion_old_copy)?;
        size.slice(mullion_caller, 1)?.copy_from(::core::slice::from_ref(&mullion_size_copy))?;
        old.slice(mullion_caller, 1)?.copy_from(::core::slice::from_ref(&mullion_old_copy))?;
        Ok::<_, ::mullion::Error>(mullion_result)
    });
    mullion_imports
}

/// A number of elements as the extension states it, unless they are too many.
fn mullion_elements<T, N: ::core::convert::TryInto<u64>>(count: N) -> ::core::result::Result<u64, ::mullion::Error> {
    let most = 1048576 / ::core::mem::size_of::<T>() as u64;
    match count.try_into() {
        Ok(count) if count <= most => Ok(count),
        Ok(count) => Err(::mullion::Error::Index { index: count, length: most }),
        Err(_) => Err(::mullion::Error::Index { index: u64::MAX, length: most }),
    }
}
