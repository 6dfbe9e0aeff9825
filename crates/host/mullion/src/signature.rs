//! Types of functions in domains.

use crate::arity::for_each_arity;
use crate::error::Error;
use crate::image::Image;
use crate::value::sealed::Sealed;
use crate::value::{Outcome, Value};
use mullion_symbols::Class;

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

macro_rules! arities {
    ($(($($name:ident: $type:ident),*))*) => {$(
        impl<R: Outcome, $($type: Value),*> Sealed for fn($($type),*) -> R {}
        impl<R: Outcome, $($type: Value),*> Signature for fn($($type),*) -> R {
            const INTEGERS: usize = 0 $(+ !$type::IS_VECTOR as usize)*;
            const VECTORS: usize = 0 $(+ $type::IS_VECTOR as usize)*;
            const CLASSES: (&'static [Class], Option<Class>) =
                (&[$($type::CLASS),*], R::CLASS_RETURNED);
        }
    )*};
}
for_each_arity!(arities);

impl Image {
    /// The number of the export of that name, if the debug information does not say that
    /// it has another type than `F`.
    pub(crate) fn export_as<F: Signature>(&self, name: &str) -> Result<usize, Error> {
        let export = self.export(name)?;
        let host = || std::any::type_name::<F>().replace("mullion::pointer::", "");
        self.check_export(export, F::CLASSES, host)?;
        Ok(export)
    }
}
