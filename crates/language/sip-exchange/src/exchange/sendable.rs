//! What may be sent.

use std::ptr::NonNull;

use mullion_sip_digest::Digest;

use super::coding::{DecodeError, EncodeError, Reader, Writer};
use super::shape::Shape;
use super::visitor::Visitor;

/// A type whose handles (boxes, vectors and endpoints in the exchange heap) can be found.
///
/// # Safety
/// `visit` visits each handle that the value holds directly, once. [`Handles::HOLDS`] is true if there can be any. The
/// value holds nothing else of its process, and nothing but its handles needs to be dropped.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sent to another process",
    label = "not exchangeable",
    note = "messages hold numbers, arrays, tuples, `Option`, `ExBox`, `ExVec`, `ExString`, endpoints that are to send, \
            and types with `#[derive(Exchange)]`; references, raw pointers, functions and `Box`, `Vec`, `Rc` belong to \
            their process"
)]
pub unsafe trait Handles: Sized + 'static {
    /// Whether a value can hold handles.
    const HOLDS: bool;
    /// Bytes of stack that a visit takes at most ([`Shape::frame`]), before it comes to the visitor.
    const STACK: u32 = Shape::<Self>::frame(0);
    /// Compiles if a visit surely finds its stack. Each `visit` that calls another one asks for it.
    const BOUNDED: () = assert!(
        Self::STACK <= MOST_STACK,
        "this type has too many fields, or too many types inside each other, to be sent; put a part of it into an ExBox"
    );

    /// Visits each handle that the value holds directly.
    fn visit<V: Visitor + ?Sized>(&self, visitor: &mut V);
}

/// Bytes of stack for the visit of a value. The kernel visits values on the process's stack, in critical pieces, for
/// which 16 KiB are sure. The rest is the visitor's.
const MOST_STACK: u32 = 8 << 10;

const fn larger(one: u32, other: u32) -> u32 {
    if one > other { one } else { other }
}

/// What may be sent over a channel: plain data, and trees of it in the exchange heap.
///
/// Derive it. The derive refuses references, raw pointers, functions, closures and whatever lives in the heap of a
/// process. It also refuses types with a destructor of their own:
///
/// ```
/// # extern crate mullion_sip_exchange as mullion_sip;
/// use mullion_sip::{ExBox, ExVec, Exchange};
///
/// #[derive(Exchange)]
/// struct Request {
///     file: u32,
///     buffer: ExVec<u8>,
///     after: Option<ExBox<Request>>,
/// }
/// ```
/// ```compile_fail
/// # extern crate mullion_sip_exchange as mullion_sip;
/// # use mullion_sip::Exchange;
/// #[derive(Exchange)]
/// struct Leak {
///     shared: std::rc::Rc<u8>,
/// }
/// ```
/// Types inside each other, and fields, are bounded ([`Handles::BOUNDED`]): some 30 structures deep compile, 40 do not.
///
/// ```
/// # extern crate mullion_sip_exchange as mullion_sip;
/// # use mullion_sip::{ExBox, Exchange};
/// #[derive(Exchange)]
/// struct In<T: Exchange>(T);
/// type In5<T> = In<In<In<In<In<T>>>>>;
/// let _boxes: Vec<ExBox<In5<In5<In5<In5<In5<In5<u8>>>>>>>> = Vec::new();
/// ```
/// ```compile_fail
/// # extern crate mullion_sip_exchange as mullion_sip;
/// # use mullion_sip::{ExBox, Exchange};
/// #[derive(Exchange)]
/// struct In<T: Exchange>(T);
/// type In5<T> = In<In<In<In<In<T>>>>>;
/// let _boxes: Vec<ExBox<In5<In5<In5<In5<In5<In5<In5<In5<ExBox<u8>>>>>>>>>>> = Vec::new();
/// ```
///
/// # Safety
/// As for [`Handles`]. [`Exchange::SHAPE`] describes the type and all its parts, and nobody but the trait says what
/// [`Exchange::DIGEST`] and [`Exchange::PLAIN`] are. What `encode` writes of a plain value is its bytes in memory. A
/// message in flight is nobody's: whoever holds the value can do with it what its owner could.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sent to another process",
    label = "not exchangeable",
    note = "messages hold numbers, arrays, tuples, `Option`, `ExBox`, `ExVec`, `ExString`, endpoints that are to send, \
            and types with `#[derive(Exchange)]`; references, raw pointers, functions and `Box`, `Vec`, `Rc` belong to \
            their process"
)]
pub unsafe trait Exchange: Handles {
    /// What a receiver relies on.
    const SHAPE: Shape<Self>;
    /// Covers the type's name and its layout, and those of its parts.
    const DIGEST: Digest = Self::SHAPE.digest();
    /// Whether any bytes are a value, and every byte of a value is part of it (there is no padding).
    const PLAIN: bool = Self::SHAPE.is_plain();

    /// Writes the value as bytes, for a peer in another OS process.
    ///
    /// # Errors
    /// It is too long, too deep, or has an endpoint in it.
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError>;

    /// Reads a value that a peer in another OS process has sent, who may be hostile. Its blocks are in flight:
    /// they belong to nobody yet.
    ///
    /// # Errors
    /// The bytes are no such value, or no block is to be had.
    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

/// Types without handles and without anything of a process, by name; size and alignment are theirs.
macro_rules! plain {
    ($($kind:ty),*) => {$(
        plain!(handles $kind);

        // SAFETY: plain data of which any bytes are a value; the digest has name and layout.
        unsafe impl Exchange for $kind {
            const SHAPE: Shape<Self> = Shape::value(stringify!($kind), true);
            #[inline]
            fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
                to.plain(std::slice::from_ref(self))
            }
            #[inline]
            fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
                from.value()
            }
        }
    )*};
    (handles $kind:ty) => {
        // SAFETY: plain data.
        unsafe impl Handles for $kind {
            const HOLDS: bool = false;
            #[inline]
            fn visit<V: Visitor + ?Sized>(&self, _: &mut V) {}
        }
    };
}

plain!(
    (),
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    i8,
    i16,
    i32,
    i64,
    i128,
    isize,
    f32,
    f64
);
plain!(handles bool);
plain!(handles char);

// SAFETY: plain data, but not of any bytes; the digest has name and layout.
unsafe impl Exchange for bool {
    const SHAPE: Shape<Self> = Shape::value("bool", false);
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.bytes(&[u8::from(*self)])
    }
    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match from.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(DecodeError::Invalid("bool")),
        }
    }
}

// SAFETY: it has no handles; a `char` is read from four bytes that are checked to be one.
unsafe impl Exchange for char {
    const SHAPE: Shape<Self> = Shape::value("char", false);
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.bytes(&u32::from(*self).to_le_bytes())
    }
    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        char::from_u32(u32::from_le_bytes(from.array()?)).ok_or(DecodeError::Invalid("char"))
    }
}

// SAFETY: its elements are all it has.
unsafe impl<T: Handles, const N: usize> Handles for [T; N] {
    const HOLDS: bool = T::HOLDS;
    const STACK: u32 = Shape::<Self>::frame(1) + T::STACK;
    #[inline]
    fn visit<V: Visitor + ?Sized>(&self, visitor: &mut V) {
        let () = Self::BOUNDED;
        if T::HOLDS {
            for value in self {
                value.visit(visitor);
            }
        }
    }
}

// SAFETY: its elements are all it has, one behind the other.
unsafe impl<T: Exchange, const N: usize> Exchange for [T; N] {
    const SHAPE: Shape<Self> = Shape::row::<T>(N);
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        encode_all(self, to)
    }
    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if T::PLAIN {
            return from.value();
        }
        let mut failed = None;
        // No unfinished array is ever there to be dropped wrongly: what was read before a fault is in options.
        let read: [Option<T>; N] = std::array::from_fn(|_| {
            if failed.is_some() {
                return None;
            }
            T::decode(from).map_err(|error| failed = Some(error)).ok()
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(read.map(|value| value.unwrap_or_else(|| unreachable!("no fault")))),
        }
    }
}

/// Writes values one after the other.
pub(super) fn encode_all<T: Exchange>(
    values: &[T],
    to: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    if T::PLAIN {
        return to.plain(values);
    }
    values.iter().try_for_each(|value| value.encode(to))
}

// SAFETY: its value is all it has.
unsafe impl<T: Handles> Handles for Option<T> {
    const HOLDS: bool = T::HOLDS;
    const STACK: u32 = Shape::<Self>::frame(1) + T::STACK;
    #[inline]
    fn visit<V: Visitor + ?Sized>(&self, visitor: &mut V) {
        let () = Self::BOUNDED;
        if let Some(value) = self {
            value.visit(visitor);
        }
    }
}

// SAFETY: its value is all it has. Where `None` is kept is the compiler's choice, the same for one compiler.
unsafe impl<T: Exchange> Exchange for Option<T> {
    const SHAPE: Shape<Self> = Shape::either::<(), T>("option");
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            None => to.bytes(&[0]),
            Some(value) => {
                to.bytes(&[1])?;
                value.encode(to)
            }
        }
    }
    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match from.array()? {
            [0] => Ok(None),
            [1] => T::decode(from).map(Some),
            _ => Err(DecodeError::Invalid("Option")),
        }
    }
}

// SAFETY: its value is all it has.
unsafe impl<T: Handles, E: Handles> Handles for Result<T, E> {
    const HOLDS: bool = T::HOLDS || E::HOLDS;
    const STACK: u32 = Shape::<Self>::frame(2) + larger(T::STACK, E::STACK);
    #[inline]
    fn visit<V: Visitor + ?Sized>(&self, visitor: &mut V) {
        let () = Self::BOUNDED;
        match self {
            Ok(value) => value.visit(visitor),
            Err(error) => error.visit(visitor),
        }
    }
}

// SAFETY: its value is all it has; which it is, as for `Option`.
unsafe impl<T: Exchange, E: Exchange> Exchange for Result<T, E> {
    const SHAPE: Shape<Self> = Shape::either::<T, E>("result");
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            Ok(value) => {
                to.bytes(&[0])?;
                value.encode(to)
            }
            Err(error) => {
                to.bytes(&[1])?;
                error.encode(to)
            }
        }
    }
    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match from.array()? {
            [0] => T::decode(from).map(Ok),
            [1] => E::decode(from).map(Err),
            _ => Err(DecodeError::Invalid("Result")),
        }
    }
}

/// Tuples, with the offset of each field.
macro_rules! tuple {
    ($($name:ident $index:tt),*) => {
        // SAFETY: its fields are all it has.
        unsafe impl<$($name: Handles),*> Handles for ($($name,)*) {
            const HOLDS: bool = $($name::HOLDS)||*;
            const STACK: u32 = {
                let deepest = 0;
                $(let deepest = larger(deepest, $name::STACK);)*
                Shape::<Self>::frame(4) + deepest
            };
            #[inline]
            fn visit<Vis: Visitor + ?Sized>(&self, visitor: &mut Vis) {
                let () = Self::BOUNDED;
                $(self.$index.visit(visitor);)*
            }
        }

        // SAFETY: its fields are all it has; the digest has their places.
        unsafe impl<$($name: Exchange),*> Exchange for ($($name,)*) {
            const SHAPE: Shape<Self> = {
                let place = Shape::<Self>::place();
                let at = place.as_ptr();
                let shape = Shape::structure("tuple", at);
                // SAFETY: each is a field of the place.
                $(let shape = unsafe { shape.field(stringify!($index), &raw const (*at).$index) };)*
                shape.finish()
            };
            fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
                if Self::PLAIN {
                    return to.plain(std::slice::from_ref(self));
                }
                $(self.$index.encode(to)?;)*
                Ok(())
            }
            fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
                if Self::PLAIN {
                    return from.value();
                }
                Ok(($($name::decode(from)?,)*))
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);

/// Visits `count` values of type `T` at `values`.
///
/// # Safety
/// There are that many.
pub(super) unsafe fn scan<T: Handles>(
    values: NonNull<u8>,
    count: usize,
    visitor: &mut dyn Visitor,
) {
    for index in 0..count {
        // SAFETY: there are `count` values, and `index` is less.
        unsafe { (*values.cast::<T>().as_ptr().add(index)).visit(visitor) };
    }
}
