//! Functions of a domain, typed.

use crate::call::{Call, Running};
use crate::domain::Domain;
use crate::error::Error;
use crate::image::Image;
use crate::link::Callee;
use crate::live::LiveFunction;
use crate::value::sealed::Sealed;
use crate::value::{Outcome, Registers, Value};
use crate::within::Within;
use mullion_runtime::{Arguments, CallLimits, Canceller, Returned};
use mullion_symbols::{Class, Unknown as UnknownType};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The type of a function in a domain, written as a type of the language:
/// `fn(u32, Ptr<u8>) -> u64`. Up to eight [`Value`]s; one more is an error of the compiler.
pub trait Signature: Sealed + 'static {
    /// How many of its arguments are integers or pointers.
    #[doc(hidden)]
    const INTEGERS: usize;
    /// How many are floating-point numbers.
    #[doc(hidden)]
    const VECTORS: usize;
    /// What it takes and returns, as debug information has it.
    #[doc(hidden)]
    const CLASSES: (&'static [Class], Option<Class>);
}

/// An export of a domain, by name. It stays good when the domain is restarted.
///
/// That it exists and may be entered is checked. Where the image has debug information
/// (`-g`), its type there is compared with `F`: how many arguments there are, which are
/// floating-point numbers, and how many bytes each has; a result may be left unlooked at.
/// Nothing in an image is evidence, though: without debug information, or with
/// information that lies, a wrong type makes the domain compute nonsense, or fault,
/// within its walls.
pub struct Function<F> {
    domain: Domain,
    export: usize,
    /// `None`: without anything of the kind.
    terms: Option<Arc<Terms>>,
    kind: PhantomData<F>,
}

/// What ends a function's calls, beside the limits of its domain.
#[derive(Clone, Default)]
pub(crate) struct Terms {
    pub(crate) limits: Option<CallLimits>,
    /// Each of them.
    pub(crate) cancellers: Vec<Canceller>,
}

/// An export of an image, to be called in any domain of it, with registers for
/// arguments: for hosts that learn its type only when they run.
#[derive(Clone, Debug)]
pub struct Export {
    image: Image,
    number: usize,
}

/// A function pointer as a domain states it: an allegation. When it is called,
/// it is checked to be an address at which the domain may be entered.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(transparent)]
pub struct Callback<F> {
    address: u64,
    kind: PhantomData<F>,
}

impl<F: Signature> Function<F> {
    pub(crate) fn new(domain: Domain, export: usize) -> Self {
        Self {
            domain,
            export,
            terms: None,
            kind: PhantomData,
        }
    }

    /// The same function, whose every call has these limits beside those of its domain:
    /// of each the stricter holds. A call that exceeds them ends by a fault, and its
    /// domain with it, as by the domain's own limits.
    #[must_use]
    pub fn limited(&self, limits: CallLimits) -> Self {
        self.on(Terms {
            limits: Some(limits),
            ..self.terms()
        })
    }

    /// The same function, whose calls from the host end when `canceller` is told to
    /// cancel, on whatever threads they run; those that would begin later are not made. Both is
    /// [`Error::Cancelled`], which says in what state that leaves the domain. Cancellers add up.
    #[must_use]
    pub fn cancellable(&self, canceller: &Canceller) -> Self {
        let mut terms = self.terms();
        terms.cancellers.push(canceller.clone());
        self.on(terms)
    }

    fn on(&self, terms: Terms) -> Self {
        Self {
            terms: Some(Arc::new(terms)),
            ..self.clone()
        }
    }

    fn terms(&self) -> Terms {
        self.terms.as_deref().cloned().unwrap_or_default()
    }

    pub(crate) fn limits(&self) -> Option<CallLimits> {
        self.terms.as_ref()?.limits
    }

    fn begin(&self, arguments: Arguments) -> Result<Running, Error> {
        Running::new(&self.domain, self.export, arguments, self.terms())
    }

    pub(crate) fn number(&self) -> usize {
        self.export
    }

    /// The domain that it belongs to.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
}

impl Terms {
    fn limited(limits: Option<&CallLimits>) -> Self {
        Self {
            limits: limits.copied(),
            cancellers: Vec::new(),
        }
    }
}

impl Export {
    pub(crate) fn new(image: Image, number: usize) -> Self {
        Self { image, number }
    }

    /// Its type by the image's debug information, as its source has it, roughly.
    ///
    /// # Errors
    /// Why nothing is known of it: then [`Export::check`] and [`Domain::function`] compare nothing.
    pub fn type_in_image(&self) -> Result<String, UnknownType> {
        let signature = self.image.signature(self.number)?;
        Ok(signature.to_string())
    }

    /// Compares what the image's debug information says of its type with what the host
    /// means to pass and to find, as [`Domain::function`] does: how many arguments there
    /// are, which are floating-point numbers, and how many bytes each has. `None`: the
    /// result is not looked at. It finds mistakes, and is no evidence: without debug
    /// information there is nothing to compare.
    ///
    /// # Errors
    /// [`Error::WrongType`].
    pub fn check(&self, parameters: &[Class], result: Option<Class>) -> Result<(), Error> {
        let host = || {
            let parameters: Vec<String> = parameters.iter().map(Class::to_string).collect();
            let result = result.map_or("void".to_owned(), |class| class.to_string());
            format!("{result}({})", parameters.join(", "))
        };
        self.image
            .check_export(self.number, (parameters, result), host)
    }

    /// Calls it in a domain of its image, and waits until it returns.
    ///
    /// # Errors
    /// As [`Function`]'s `call`; [`Error::NoExport`]: the domain is another image's.
    pub fn call(&self, within: &impl Within, arguments: &Arguments) -> Result<Returned, Error> {
        self.call_limited(within, arguments, None)
    }

    /// As [`Export::call`], with limits of its own: see [`Function::limited`].
    ///
    /// # Errors
    /// As [`Export::call`].
    #[inline]
    pub fn call_limited(
        &self,
        within: &impl Within,
        arguments: &Arguments,
        limits: Option<&CallLimits>,
    ) -> Result<Returned, Error> {
        if let Some(domain) = within.outside() {
            let number = self.number_in(domain.image())?;
            return match limits {
                None => domain.call(number, arguments, None),
                Some(_) => domain.call(number, arguments, Some(&Terms::limited(limits))),
            };
        }
        let access = within.access()?;
        let number = self.number_in(access.image())?;
        access.call(access.export(number)?, arguments, limits)
    }

    /// Calls it in a domain of its image on a thread of its own, and does not wait: as
    /// [`Function`]'s `start`.
    ///
    /// # Errors
    /// [`Error::Thread`]; [`Error::NoExport`].
    pub fn start(
        &self,
        domain: &Domain,
        arguments: &Arguments,
        limits: Option<&CallLimits>,
    ) -> Result<Call<Returned>, Error> {
        let number = self.number_in(domain.image())?;
        let running = Running::new(domain, number, arguments.clone(), Terms::limited(limits))?;
        Ok(Call::new(running, |returned| *returned))
    }

    /// Its number, if `image` is the one that it belongs to.
    #[inline]
    pub(crate) fn number_in(&self, image: &Image) -> Result<usize, Error> {
        if *image == self.image {
            return Ok(self.number);
        }
        Err(self.not_of(image))
    }

    #[cold]
    fn not_of(&self, image: &Image) -> Error {
        image.no_export(&self.image.file().exports()[self.number].name)
    }
}

impl<F> Callback<F> {
    /// An address of a domain. Nothing is checked until it is called.
    #[must_use]
    pub const fn from_address(address: u64) -> Self {
        Self {
            address,
            kind: PhantomData,
        }
    }

    /// The address, unchecked.
    #[must_use]
    pub const fn address(self) -> u64 {
        self.address
    }
}

impl<F> Callback<F> {
    /// Calls it with registers for arguments, whatever `F` says.
    ///
    /// # Errors
    /// As [`Function`]'s `call`, and [`Error::NotAFunction`].
    pub fn call_raw(self, within: &impl Within, arguments: &Arguments) -> Result<Returned, Error> {
        let access = within.access()?;
        let entry = access.entry(self.address)?;
        access.call(entry, arguments, None)
    }
}

macro_rules! arities {
    ($(($($name:ident: $type:ident),*))*) => {$(
        impl<R: Outcome, $($type: Value),*> Sealed for fn($($type),*) -> R {}
        impl<R: Outcome, $($type: Value),*> Signature for fn($($type),*) -> R {
            const INTEGERS: usize = 0 $(+ !$type::IS_VECTOR as usize)*;
            const VECTORS: usize = 0 $(+ $type::IS_VECTOR as usize)*;
            const CLASSES: (&'static [Class], Option<Class>) =
                (&[$($type::CLASS),*], R::CLASS_RETURNED);
        }

        impl<R: Outcome, $($type: Value),*> Function<fn($($type),*) -> R> {
            /// Calls it on this thread, and waits until it returns.
            ///
            /// # Errors
            /// [`Error::Fault`], [`Error::Exit`], [`Error::Refused`]: the call did not
            /// return, [`Error::Callee`] included; [`Error::Ended`], [`Error::Unloaded`],
            /// [`Error::NotOpen`], [`Error::Depth`], [`Error::TimeSpent`], [`Error::ProcessorTimeSpent`], [`Error::Runtime`]:
            /// it was not made.
            ///
            /// # Panics
            /// With the panic of a host function that the domain called.
            #[allow(clippy::too_many_arguments, reason = "as many as the function has")]
            #[inline]
            pub fn call(&self, $($name: $type),*) -> Result<R, Error> {
                #[allow(unused_mut, reason = "without arguments")]
                let mut registers = Registers::default();
                $(registers.push($name);)*
                self.domain.call(self.export, &registers.finish(), self.terms.as_deref()).map(|returned| R::take(&returned))
            }

            /// Calls it on a thread of its own, and does not wait: the [`Call`] is to be
            /// awaited, waited for, or cancelled, and dropping it cancels it.
            ///
            /// # Errors
            /// [`Error::Thread`]: the system has no thread. Others are the call's result.
            #[allow(clippy::too_many_arguments, reason = "as many as the function has")]
            pub fn start(&self, $($name: $type),*) -> Result<Call<R>, Error> {
                #[allow(unused_mut, reason = "without arguments")]
                let mut registers = Registers::default();
                $(registers.push($name);)*
                Ok(Call::new(self.begin(registers.finish())?, R::take))
            }

            /// This function for another domain to call
            /// ([`Imports::link`](crate::Imports::link)), which finds `failed` as its result
            /// if this one's domain faults, takes no calls, or has gone.
            #[must_use]
            pub fn or(&self, failed: R) -> Callee {
                Callee::from(self).or(failed.into_returned())
            }
        }

        impl<R: Outcome, $($type: Value),*> LiveFunction<fn($($type),*) -> R> {
            /// Calls it in the domain that serves now, and waits until it returns.
            ///
            /// # Errors
            /// As [`Function`]'s `call`.
            ///
            /// # Panics
            /// As [`Function`]'s `call`.
            #[allow(clippy::too_many_arguments, reason = "as many as the function has")]
            pub fn call(&self, $($name: $type),*) -> Result<R, Error> {
                #[allow(unused_mut, reason = "without arguments")]
                let mut registers = Registers::default();
                $(registers.push($name);)*
                self.call_raw(&registers.finish()).map(|returned| R::take(&returned))
            }
        }

        impl<R: Outcome, $($type: Value),*> Callback<fn($($type),*) -> R> {
            /// Calls it, and waits until it returns; in a host function, on top of
            /// what the domain was doing.
            ///
            /// # Errors
            /// As [`Function`]'s `call`, and [`Error::NotAFunction`].
            ///
            /// # Panics
            /// With the panic of a host function that the domain called.
            #[allow(clippy::too_many_arguments, reason = "as many as the function has")]
            pub fn call(self, within: &impl Within, $($name: $type),*) -> Result<R, Error> {
                #[allow(unused_mut, reason = "without arguments")]
                let mut registers = Registers::default();
                $(registers.push($name);)*
                self.call_raw(within, &registers.finish()).map(|returned| R::take(&returned))
            }
        }
    )*};
}
arities! {
    ()
    (a: A)
    (a: A, b: B)
    (a: A, b: B, c: C)
    (a: A, b: B, c: C, d: D)
    (a: A, b: B, c: C, d: D, e: E)
    (a: A, b: B, c: C, d: D, e: E, f: F)
    (a: A, b: B, c: C, d: D, e: E, f: F, g: G)
    (a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H)
}

impl<F> Clone for Function<F> {
    fn clone(&self) -> Self {
        Self {
            domain: self.domain.clone(),
            export: self.export,
            terms: self.terms.clone(),
            kind: PhantomData,
        }
    }
}

impl<F> Clone for Callback<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Callback<F> {}

impl<F> fmt::Debug for Callback<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Callback({:#x})", self.address)
    }
}

impl<F> Sealed for Callback<F> {}
impl<F: 'static> Value for Callback<F> {
    fn into_raw(self) -> u64 {
        self.address
    }
    fn from_raw(raw: u64) -> Self {
        Self::from_address(raw)
    }
}
