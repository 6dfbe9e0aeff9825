//! Made by `mullion bind` from spell.h; do not edit.

#![allow(dead_code, unused_imports, unreachable_pub, clippy::all, reason = "generated")]

use mullion::zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};
use mullion::{Caller, Domain, Error, Function, Imports, Ptr, Within};

/// `struct mistake`.
#[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable)]
#[zerocopy(crate = "mullion::zerocopy")]
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
    domain: Domain,
    check: Function<fn(Ptr<i8>, Ptr<Mistake>, u32) -> u32>,
    count_letters: Function<fn(Ptr<u8>, u64, Ptr<u32>)>,
}

impl Extension {
    /// Finds them.
    ///
    /// # Errors
    /// [`Error::NoExport`].
    pub fn new(domain: &Domain) -> Result<Self, Error> {
        Ok(Self {
            domain: domain.clone(),
            check: domain.function("check")?,
            count_letters: domain.function("count_letters")?,
        })
    }

    /// `check`.
    ///
    /// # Errors
    /// The call did not return; a length does not fit.
    pub fn check(&self, text: &str, found: &mut [Mistake]) -> Result<u32, Error> {
        let text_inside = self.domain.string_in(text)?;
        let found_inside = self.domain.alloc::<Mistake>(found.len() as u64)?;
        let most: u32 = mullion_length(&[found.len()])?;
        let result = self.check.call(text_inside.ptr().cast(), found_inside.ptr().cast(), most)?;
        found_inside.slice(&self.domain)?.copy_to(&mut found[..])?;
        Ok(result)
    }

    /// `count_letters`.
    ///
    /// # Errors
    /// The call did not return; a length does not fit.
    pub fn count_letters(&self, text: &[u8], counts: &mut [u32; 26]) -> Result<(), Error> {
        let text_inside = self.domain.copy_in(&text[..])?;
        let length: u64 = mullion_length(&[text.len()])?;
        let counts_inside = self.domain.copy_in(&counts[..])?;
        let result = self.count_letters.call(text_inside.ptr().cast(), length, counts_inside.ptr().cast())?;
        counts_inside.slice(&self.domain)?.copy_to(&mut counts[..])?;
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
    /// `is_word`.
    ///
    /// # Errors
    /// Ends the extension's call.
    fn is_word(&self, caller: &Caller<'_>, letters: &[i8]) -> Result<bool, Error>;

    /// `note`.
    ///
    /// # Errors
    /// Ends the extension's call.
    fn note(&self, caller: &Caller<'_>, text: &str) -> Result<(), Error>;
}

/// The list of them.
pub fn imports(host: impl Host) -> Imports {
    let host = std::sync::Arc::new(host);
    let imports = Imports::new();
    let own = host.clone();
    let imports = imports.function("is_word", move |caller: &Caller<'_>, letters: Ptr<i8>, length: u32| {
        let letters_slice = letters.slice(caller, mullion_elements::<i8, _>(length)?)?;
        let mut letters_copy = vec![<i8>::new_zeroed(); letters_slice.len() as usize];
        letters_slice.copy_to(&mut letters_copy)?;
        let result = own.is_word(caller, &letters_copy)?;
        Ok::<_, Error>(result)
    });
    let own = host.clone();
    let imports = imports.function("note", move |caller: &Caller<'_>, text: Ptr<i8>| {
        let text_copy = text.string(caller, LONGEST as usize)?;
        let result = own.note(caller, &text_copy)?;
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
