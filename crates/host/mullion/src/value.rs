//! Scalars that cross the wall in registers.

use crate::context::Context;
use crate::error::Error;
use mullion_runtime::{BadAddress, CallArguments, CallEnd, GateCall, Returned};
use mullion_symbols::Class;

pub(crate) mod sealed {
    /// Which types cross is decided here, so that each has been thought about.
    pub trait Sealed {}
}
use sealed::Sealed;

/// A value that crosses the wall in one register: an integer of any size, `bool`,
/// `f32`, `f64`, a [`Ptr`](crate::Ptr) or a [`Callback`](crate::Callback).
///
/// A value from a domain is taken from the register's low part, whatever the domain left in the
/// rest. Every bit pattern is a value of these types, so that nothing a domain returns can be
/// invalid. (A `bool` is true unless its byte is 0.)
pub trait Value: Sealed + Copy + 'static {
    #[doc(hidden)]
    const IS_VECTOR: bool = false;
    /// How the debug information of a function that takes it has it.
    #[doc(hidden)]
    const CLASS: Class = match Self::IS_VECTOR {
        true => Class::Real(size_of::<Self>() as u64),
        false => Class::Integer(size_of::<Self>() as u64),
    };
    #[doc(hidden)]
    fn into_raw(self) -> u64;
    #[doc(hidden)]
    fn from_raw(raw: u64) -> Self;
}

macro_rules! integers {
    ($($type:ty => $wide:ty),*) => {$(
        impl Sealed for $type {}
        impl Value for $type {
            /// Extended to the whole register, as compilers expect of their callers.
            fn into_raw(self) -> u64 {
                self as $wide as u64
            }
            fn from_raw(raw: u64) -> Self {
                raw as Self
            }
        }
    )*};
}
integers!(u8 => u64, u16 => u64, u32 => u64, u64 => u64, usize => u64);
integers!(i8 => i64, i16 => i64, i32 => i64, i64 => i64, isize => i64);

impl Sealed for bool {}
impl Value for bool {
    fn into_raw(self) -> u64 {
        u64::from(self)
    }
    fn from_raw(raw: u64) -> Self {
        raw as u8 != 0
    }
}

impl Sealed for f64 {}
impl Value for f64 {
    const IS_VECTOR: bool = true;
    fn into_raw(self) -> u64 {
        self.to_bits()
    }
    fn from_raw(raw: u64) -> Self {
        Self::from_bits(raw)
    }
}

impl Sealed for f32 {}
impl Value for f32 {
    const IS_VECTOR: bool = true;
    fn into_raw(self) -> u64 {
        u64::from(self.to_bits())
    }
    fn from_raw(raw: u64) -> Self {
        Self::from_bits(raw as u32)
    }
}

/// What a function returns: a [`Value`], or nothing.
pub trait Outcome: Sealed + 'static {
    #[doc(hidden)]
    fn take(returned: &Returned) -> Self;
    #[doc(hidden)]
    fn give(self, caller: &mut GateCall<'_>) -> u64;
    #[doc(hidden)]
    fn into_returned(self) -> Returned;
    /// `None`: whatever the function returns is not looked at.
    #[doc(hidden)]
    const CLASS_RETURNED: Option<Class>;
}

impl Sealed for () {}
impl Outcome for () {
    fn take(_: &Returned) {}
    fn give(self, _: &mut GateCall<'_>) -> u64 {
        0
    }
    fn into_returned(self) -> Returned {
        0u64.into_returned()
    }
    const CLASS_RETURNED: Option<Class> = None;
}

impl<V: Value> Outcome for V {
    fn take(returned: &Returned) -> Self {
        match V::IS_VECTOR {
            true => Self::from_raw(returned.double.to_bits()),
            false => Self::from_raw(returned.integer),
        }
    }

    fn give(self, caller: &mut GateCall<'_>) -> u64 {
        let raw = self.into_raw();
        if V::IS_VECTOR {
            caller.return_double(f64::from_bits(raw));
            return 0;
        }
        raw
    }

    const CLASS_RETURNED: Option<Class> = Some(V::CLASS);

    fn into_returned(self) -> Returned {
        let raw = self.into_raw();
        let (integer, double) = if V::IS_VECTOR { (0, raw) } else { (raw, 0) };
        Returned {
            integer,
            high: 0,
            double: f64::from_bits(double),
        }
    }
}

/// Arguments of a call into a domain, as they are given.
#[derive(Default)]
pub(crate) struct Registers {
    integers: [u64; MOST],
    doubles: [f64; MOST],
    used: (usize, usize),
}

impl Registers {
    #[inline]
    pub(crate) fn push<V: Value>(&mut self, value: V) {
        // No call has more of either: there is none with more arguments.
        if V::IS_VECTOR {
            self.doubles[self.used.1] = f64::from_bits(value.into_raw());
            self.used.1 += 1;
        } else {
            self.integers[self.used.0] = value.into_raw();
            self.used.0 += 1;
        }
    }

    #[inline]
    pub(crate) fn finish(&self) -> CallArguments {
        let arguments = CallArguments::new(&self.integers[..self.used.0]);
        match self.used.1 {
            0 => arguments,
            count => arguments.with_doubles(&self.doubles[..count]),
        }
    }
}

/// Arguments of a call that came from a domain, as they are taken.
pub(crate) struct Taker<'a, 'b> {
    caller: &'a GateCall<'b>,
    context: &'a Context,
    used: (u32, usize),
}

impl<'a, 'b> Taker<'a, 'b> {
    #[inline]
    pub(crate) fn new(caller: &'a GateCall<'b>, context: &'a Context) -> Self {
        Self {
            caller,
            context,
            used: (0, 0),
        }
    }

    #[inline]
    pub(crate) fn next<V: Value>(&mut self) -> Result<V, CallEnd> {
        if V::IS_VECTOR {
            self.used.1 += 1;
            return Ok(V::from_raw(self.caller.double(self.used.1 - 1).to_bits()));
        }
        self.used.0 += 1;
        match self.caller.argument(self.used.0 - 1) {
            Ok(raw) => Ok(V::from_raw(raw)),
            Err(bad) => Err(no_stack(self.context, bad)),
        }
    }
}

/// The domain's stack pointer leads nowhere.
#[cold]
fn no_stack(context: &Context, bad: BadAddress) -> CallEnd {
    CallEnd::Refused(Box::new(Error::Memory {
        domain: context.identity.name().to_owned(),
        address: bad.address.0,
        length: bad.length,
    }))
}

/// Most arguments of a call.
const MOST: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_integers_fill_their_register() {
        assert_eq!((-1i8).into_raw(), u64::MAX);
        assert_eq!(255u8.into_raw(), 255);
        assert_eq!(i32::MIN.into_raw(), 0xffff_ffff_8000_0000);
    }

    #[test]
    fn what_a_domain_leaves_in_the_rest_of_a_register_is_ignored() {
        assert_eq!(u8::from_raw(0xdead_beef_0000_0107), 7);
        assert_eq!(i16::from_raw(0x1_ffff), -1);
        assert!(!bool::from_raw(0x100));
        assert!(bool::from_raw(0x1ff));
        assert_eq!(f32::from_raw(0xffff_ffff_3f80_0000), 1.0);
    }
}
