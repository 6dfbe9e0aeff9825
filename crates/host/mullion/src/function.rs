//! Functions of a domain, typed.

use crate::arity::for_each_arity;
use crate::call::{Call, Running};
use crate::callee::Callee;
use crate::domain::Domain;
use crate::error::Error;
use crate::signature::Signature;
use crate::terms::Terms;
use crate::value::{Outcome, Registers, Value};
use mullion_runtime::{CallArguments, CallLimits, Canceller};
use std::marker::PhantomData;
use std::sync::Arc;

/// An export of a domain, by name. It stays good when the domain is restarted.
///
/// That it exists and may be entered is checked. Where the image has debug information (`-g`), its type there is
/// compared with `F`. What is compared: how many arguments there are, which are floating-point numbers, and how many
/// bytes each has. A result may be left unlooked at. Nothing in an image is evidence, though. Without debug
/// information, or with information that lies, a wrong type makes the domain compute nonsense, or fault, within its
/// walls.
pub struct Function<F> {
    domain: Domain,
    export: usize,
    /// `None`: without anything of the kind.
    terms: Option<Arc<Terms>>,
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

    /// The same function, whose calls from the host end when `canceller` is told to cancel, on whatever threads they
    /// run. Those that would begin later are not made. Both is [`Error::Cancelled`], which says in what state that
    /// leaves the domain. Cancellers add up.
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

    fn begin(&self, arguments: CallArguments) -> Result<Running, Error> {
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

macro_rules! arities {
    ($(($($name:ident: $type:ident),*))*) => {$(
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

            /// Calls it on a thread of its own, and does not wait. The [`Call`] is to be
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
    )*};
}
for_each_arity!(arities);

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

impl<F: Signature> From<&Function<F>> for Callee {
    fn from(function: &Function<F>) -> Self {
        Self {
            domain: function.domain().clone(),
            export: function.number(),
            doubles: F::VECTORS > 0,
            integers: F::INTEGERS,
            limits: function.limits(),
            failed: None,
        }
    }
}

impl Domain {
    /// The function that it exports as `name`; see [`Function`] for what is checked
    /// about `F` and what cannot be.
    ///
    /// # Errors
    /// [`Error::NoExport`]; [`Error::WrongType`].
    pub fn function<F: Signature>(&self, name: &str) -> Result<Function<F>, Error> {
        let export = self.image().export_as::<F>(name)?;
        Ok(Function::new(self.clone(), export))
    }
}
