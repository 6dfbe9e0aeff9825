//! Function pointers that domains state.

use crate::arity::for_each_arity;
use crate::domain_memory::DomainMemory;
use crate::error::Error;
use crate::value::sealed::Sealed;
use crate::value::{Outcome, Registers, Value};
use mullion_runtime::{CallArguments, Returned};
use std::fmt;
use std::marker::PhantomData;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A function pointer as a domain states it: an allegation. When it is called,
/// it is checked to be an address at which the domain may be entered.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(transparent)]
pub struct Callback<F> {
    address: u64,
    kind: PhantomData<F>,
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
    /// As [`Function`](crate::Function)'s `call`, and [`Error::NotAFunction`].
    pub fn call_raw(
        self,
        within: &impl DomainMemory,
        arguments: &CallArguments,
    ) -> Result<Returned, Error> {
        let access = within.access()?;
        let entry = access.entry(self.address)?;
        access.call(entry, arguments, None)
    }
}

macro_rules! arities {
    ($(($($name:ident: $type:ident),*))*) => {$(
        impl<R: Outcome, $($type: Value),*> Callback<fn($($type),*) -> R> {
            /// Calls it, and waits until it returns; in a host function, on top of
            /// what the domain was doing.
            ///
            /// # Errors
            /// As [`Function`](crate::Function)'s `call`, and [`Error::NotAFunction`].
            ///
            /// # Panics
            /// With the panic of a host function that the domain called.
            #[allow(clippy::too_many_arguments, reason = "as many as the function has")]
            pub fn call(self, within: &impl DomainMemory, $($name: $type),*) -> Result<R, Error> {
                #[allow(unused_mut, reason = "without arguments")]
                let mut registers = Registers::default();
                $(registers.push($name);)*
                self.call_raw(within, &registers.finish()).map(|returned| R::take(&returned))
            }
        }
    )*};
}
for_each_arity!(arities);

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
