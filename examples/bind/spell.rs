//! Made by `mullion bind` from spell.h; do not edit.

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

/// `struct mistake`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[derive(::mullion::zerocopy::FromBytes, ::mullion::zerocopy::IntoBytes, ::mullion::zerocopy::Immutable)]
#[zerocopy(crate = "::mullion::zerocopy")]
#[repr(C)]
pub struct Mistake {
    /// `start`.
    pub start: u32,
    /// `length`.
    pub length: u32,
    /// `severity`.
    pub severity: i32,
    /// `reserved`.
    pub reserved: u32,
}

/// The extension's functions, in one domain.
pub struct Extension {
    domain: ::mullion::Domain,
    call_check: ::mullion::Function<fn(::mullion::Ptr<i8>, ::mullion::Ptr<Mistake>, u32) -> u32>,
    call_count_letters: ::mullion::Function<fn(::mullion::Ptr<u8>, u64, ::mullion::Ptr<u32>)>,
}

impl Extension {
    /// Finds them.
    ///
    /// # Errors
    /// [`::mullion::Error::NoExport`].
    pub fn new(domain: &::mullion::Domain) -> ::core::result::Result<Self, ::mullion::Error> {
        Ok(Self {
            domain: domain.clone(),
            call_check: domain.function("check")?,
            call_count_letters: domain.function("count_letters")?,
        })
    }

    /// `check`.
    ///
    /// # Errors
    /// The call did not return; a length does not fit.
    pub fn check(&self, text: &str, found: &mut [Mistake]) -> ::core::result::Result<u32, ::mullion::Error> {
        let mullion_text_inside = self.domain.string_in(text)?;
        let mullion_found_inside = self.domain.alloc::<Mistake>(found.len() as u64)?;
        let mullion_most_number: u32 = mullion_length(&[found.len()])?;
        let mullion_result = self.call_check.call(mullion_text_inside.ptr().cast(), mullion_found_inside.ptr().cast(), mullion_most_number)?;
        mullion_found_inside.slice(&self.domain)?.copy_to(&mut found[..])?;
        Ok(mullion_result)
    }

    /// `count_letters`.
    ///
    /// # Errors
    /// The call did not return; a length does not fit.
    pub fn count_letters(&self, text: &[u8], counts: &mut [u32; 26]) -> ::core::result::Result<(), ::mullion::Error> {
        let mullion_text_inside = self.domain.copy_in(&text[..])?;
        let mullion_length_number: u64 = mullion_length(&[text.len()])?;
        let mullion_counts_inside = self.domain.copy_in(&counts[..])?;
        let mullion_result = self.call_count_letters.call(mullion_text_inside.ptr().cast(), mullion_length_number, mullion_counts_inside.ptr().cast())?;
        mullion_counts_inside.slice(&self.domain)?.copy_to(&mut counts[..])?;
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
    /// `is_word`.
    ///
    /// # Errors
    /// Ends the extension's call.
    fn is_word(&self, mullion_caller: &::mullion::Caller<'_>, letters: &[i8]) -> ::core::result::Result<bool, ::mullion::Error>;

    /// `note`.
    ///
    /// # Errors
    /// Ends the extension's call.
    fn note(&self, mullion_caller: &::mullion::Caller<'_>, text: &str) -> ::core::result::Result<(), ::mullion::Error>;
}

/// The list of them.
pub fn imports(host: impl Host) -> ::mullion::Imports {
    let mullion_host = ::std::sync::Arc::new(host);
    let mullion_imports = ::mullion::Imports::new();
    let mullion_own = mullion_host.clone();
    let mullion_imports = mullion_imports.function("is_word", move |mullion_caller: &::mullion::Caller<'_>, letters: ::mullion::Ptr<i8>, length: u32| {
        let mullion_letters_slice = letters.slice(mullion_caller, mullion_elements::<i8, _>(length)?)?;
        let mut mullion_letters_copy = ::std::vec![<i8>::new_zeroed(); mullion_letters_slice.len() as usize];
        mullion_letters_slice.copy_to(&mut mullion_letters_copy)?;
        let mullion_result = Host::is_word(&*mullion_own, mullion_caller, &mullion_letters_copy)?;
        Ok::<_, ::mullion::Error>(mullion_result)
    });
    let mullion_own = mullion_host.clone();
    let mullion_imports = mullion_imports.function("note", move |mullion_caller: &::mullion::Caller<'_>, text: ::mullion::Ptr<i8>| {
        let mullion_text_copy = text.string(mullion_caller, 1048576)?;
        let mullion_result = Host::note(&*mullion_own, mullion_caller, &mullion_text_copy)?;
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
