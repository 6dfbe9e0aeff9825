//! The shape of a type that can be sent: everything that a receiver relies on, as a digest, and two facts.
//!
//! ```text
//!   digest = kind, name, size, alignment, niches          of the type itself
//!            each part: its name, its place, its digest   all the way down
//! ```
//! A shape is computed from the parts' own shapes, so a type without a shape has no place in one that has. The
//! compiler finds each part's type by looking at the part (a pointer to the field, a reference to the variant's
//! field). No text of a type is compared.
//!
//! **Recursion.** A constant cannot need itself. Where a type holds itself (`Option<ExBox<Node>>` in `Node`), the
//! macro describes the field with a marker in the type's place. The marker's shape says "the type around this one".
//! The marker is no type that a program can name, and implements nothing but what every sendable type does. So what
//! the program's traits say of the marker, they say of the type as well.
//!
//! **Names.** The derive's code calls no free function of this crate, and none of `core`: a program can give the
//! names `mullion_sip` and `core` to crates of its own. It calls functions of the types that [`Exchange`] itself
//! names. If these are other types, the program has implemented another trait.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::sendable::Exchange;
use mullion_sip_digest::Digest;
use mullion_sip_digest::Hasher;

/// What a receiver of a `T` relies on.
#[derive(Debug)]
pub struct Shape<T> {
    digest: Digest,
    plain: bool,
    holds: bool,
    _of: PhantomData<fn(T) -> T>,
}

impl<T> Clone for Shape<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shape<T> {}

/// What a part of a shape is. The numbers keep parts of different kinds apart.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Field = 1,
    Parameter,
    Number,
    Variant,
    Element,
}

impl<T> Shape<T> {
    pub(crate) const fn new(hasher: Hasher, plain: bool, holds: bool) -> Shape<T> {
        Shape {
            digest: hasher.finish(),
            plain,
            holds,
            _of: PhantomData,
        }
    }

    /// Of a value that has no parts; plain if any bytes are one.
    pub(crate) const fn value(name: &str, plain: bool) -> Shape<T> {
        Shape::new(start::<T>("value", name), plain, false)
    }

    /// Of a handle of something that the digest describes further.
    pub(crate) const fn handle(name: &str, of: Digest) -> Shape<T> {
        Shape::new(
            part(start::<T>("handle", name), Part::Element, of),
            false,
            true,
        )
    }

    /// Of elements in a row.
    pub(super) const fn row<E: Exchange>(count: usize) -> Shape<T> {
        let hasher = part(start::<T>("array", ""), Part::Element, E::DIGEST);
        Shape::new(hasher.number(count as u64), E::PLAIN, E::SHAPE.holds)
    }

    /// Of one of two types. The compiler keeps the choice where it likes, always at the same place for two types.
    pub(super) const fn either<A: Exchange, B: Exchange>(name: &str) -> Shape<T> {
        let hasher = part(start::<T>("either", name), Part::Element, A::DIGEST);
        let hasher = part(hasher, Part::Element, B::DIGEST);
        Shape::new(hasher, false, A::SHAPE.holds || B::SHAPE.holds)
    }

    /// Of a type inside of itself.
    pub const fn enclosing() -> Shape<T> {
        Shape::new(start::<T>("enclosing", ""), false, true)
    }

    /// Of a type with one field and the field's representation: the field's own. The function finds it.
    pub const fn wrapping<F: Exchange>(_find: fn(&T) -> &F) -> Shape<T> {
        assert!(size_of::<T>() == size_of::<F>());
        Shape {
            digest: F::DIGEST,
            plain: false,
            holds: F::SHAPE.holds,
            _of: PhantomData,
        }
    }

    /// A place to look for fields in.
    pub const fn place() -> MaybeUninit<T> {
        MaybeUninit::uninit()
    }

    /// Begins the shape of a structure; `at` points to a place.
    pub const fn structure(name: &str, at: *const T) -> Structure<T> {
        Structure {
            hasher: start::<T>("struct", name),
            at,
            bytes: 0,
            plain: true,
            holds: false,
        }
    }

    /// Begins the shape of an enumeration, with its representation as it is written.
    pub const fn enumeration(name: &str, representation: &str) -> Enumeration<T> {
        Enumeration {
            hasher: start::<T>("enum", name).text(representation),
            next: 0,
            holds: false,
            _of: PhantomData,
        }
    }

    /// Bytes of stack that the visit of a value with so many fields takes at most, in code without optimisation.
    /// The visits of its fields take more. There is a name for each field, and what every function takes.
    pub const fn frame(fields: u32) -> u32 {
        192 + 16 * fields
    }

    /// The digest of everything.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether any bytes are a value, and every byte of a value is part of it.
    pub const fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether a value can hold handles.
    pub const fn holds(&self) -> bool {
        self.holds
    }
}

/// The type itself, without its parts.
pub(crate) const fn start<T>(kind: &str, name: &str) -> Hasher {
    Digest::new()
        .text(kind)
        .text(name)
        .number(size_of::<T>() as u64)
        .number(align_of::<T>() as u64)
        .number(niches::<T>())
}

/// How many values of an enumeration around it the compiler keeps in a `T`: at least one, two, or many.
const fn niches<T>() -> u64 {
    #[allow(dead_code, reason = "only its size is asked for")]
    enum Many<T> {
        Value(T),
        Other(Numbered),
    }
    #[allow(dead_code, reason = "as above")]
    #[rustfmt::skip]
    enum Numbered { A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P }
    let size = size_of::<T>();
    (size_of::<Option<T>>() == size) as u64
        | ((size_of::<Option<Option<T>>>() == size) as u64) << 1
        | ((size_of::<Many<T>>() == size) as u64) << 2
}

pub(crate) const fn part(hasher: Hasher, part: Part, digest: Digest) -> Hasher {
    hasher.number(part as u64).digest(digest)
}

/// The shape of a structure in the making.
#[derive(Debug)]
pub struct Structure<T> {
    hasher: Hasher,
    at: *const T,
    /// Of the fields so far.
    bytes: usize,
    plain: bool,
    holds: bool,
}

impl<T> Structure<T> {
    /// A type among the parameters.
    #[must_use]
    pub const fn parameter<P: Exchange>(mut self) -> Self {
        self.hasher = part(self.hasher, Part::Parameter, P::DIGEST);
        self
    }

    /// A value among the parameters.
    #[must_use]
    pub const fn number(mut self, value: u128) -> Self {
        self.hasher = number(self.hasher, value);
        self
    }

    /// A field.
    ///
    /// # Safety
    /// `at` points to the field of the place that `structure` was given.
    #[must_use]
    pub const unsafe fn field<F: Exchange>(self, name: &str, at: *const F) -> Self {
        // SAFETY: by the caller; a type describes itself.
        unsafe { self.described::<F>(name, at, F::DIGEST, F::PLAIN, F::SHAPE.holds) }
    }

    /// A field whose type has the structure itself in it; `D` is that type with a marker in the structure's place.
    ///
    /// # Safety
    /// As for [`Structure::field`]. The structure is never laid out in itself, so it is behind a handle.
    #[must_use]
    pub const unsafe fn recursive<F, D: Exchange>(self, name: &str, at: *const F) -> Self {
        // SAFETY: `at` points to the field of the place that `structure` was given; `D` describes the same type.
        unsafe { self.described::<F>(name, at, D::DIGEST, false, true) }
    }

    /// # Safety
    /// As for [`Structure::field`].
    const unsafe fn described<F>(
        mut self,
        name: &str,
        at: *const F,
        digest: Digest,
        plain: bool,
        holds: bool,
    ) -> Self {
        // SAFETY: by the caller both point into one place.
        let offset = unsafe { at.byte_offset_from(self.at) };
        self.hasher = part(self.hasher, Part::Field, digest)
            .text(name)
            .number(offset as u64)
            .number(size_of::<F>() as u64);
        self.bytes += size_of::<F>();
        self.plain = self.plain && plain;
        self.holds = self.holds || holds;
        self
    }

    /// That is all of it.
    pub const fn finish(self) -> Shape<T> {
        let whole = self.bytes == size_of::<T>();
        Shape::new(self.hasher, self.plain && whole, self.holds)
    }
}

const fn number(hasher: Hasher, value: u128) -> Hasher {
    hasher
        .number(Part::Number as u64)
        .bytes(&value.to_le_bytes())
}

/// The shape of an enumeration in the making. Its representation fixes where everything is, given the parts.
#[derive(Debug)]
pub struct Enumeration<T> {
    hasher: Hasher,
    /// The discriminant of the next variant, unless it has one of its own.
    next: i128,
    holds: bool,
    _of: PhantomData<fn(T) -> T>,
}

/// Variants whose discriminants are written: as values of the representation's own type, so that each has the value
/// that the enumeration gives it.
macro_rules! discriminants {
    ($($kind:ident $name:ident)*) => {
        impl<T> Enumeration<T> {
            $(
                /// A variant with a discriminant of its own.
                #[must_use]
                pub const fn $name(mut self, name: &str, discriminant: $kind) -> Self {
                    self.next = discriminant as i128;
                    self.variant(name)
                }
            )*
        }
    };
}

discriminants! {
    u8 variant_u8 u16 variant_u16 u32 variant_u32 u64 variant_u64 usize variant_usize
    i8 variant_i8 i16 variant_i16 i32 variant_i32 i64 variant_i64 isize variant_isize
}

impl<T> Enumeration<T> {
    /// A type among the parameters.
    #[must_use]
    pub const fn parameter<P: Exchange>(mut self) -> Self {
        self.hasher = part(self.hasher, Part::Parameter, P::DIGEST);
        self
    }

    /// A value among the parameters.
    #[must_use]
    pub const fn number(mut self, value: u128) -> Self {
        self.hasher = number(self.hasher, value);
        self
    }

    /// A variant with the discriminant after the one before.
    #[must_use]
    pub const fn variant(mut self, name: &str) -> Self {
        self.hasher = self.hasher.number(Part::Variant as u64).text(name);
        self.hasher = number(self.hasher, self.next as u128);
        self.next += 1;
        self
    }

    /// A field of the variant that was named last. The function finds it in a value, and says its type.
    #[must_use]
    pub const fn field<F: Exchange>(self, name: &str, _find: fn(&T) -> &F) -> Self {
        self.described::<F>(name, F::DIGEST, F::SHAPE.holds)
    }

    /// A field whose type has the enumeration in it; see [`Structure::recursive`].
    #[must_use]
    pub const fn recursive<F, D: Exchange>(self, name: &str, _find: fn(&T) -> &F) -> Self {
        self.described::<F>(name, D::DIGEST, true)
    }

    const fn described<F>(mut self, name: &str, digest: Digest, holds: bool) -> Self {
        self.hasher = part(self.hasher, Part::Field, digest)
            .text(name)
            .number(size_of::<F>() as u64);
        self.holds = self.holds || holds;
        self
    }

    /// That is all of it.
    pub const fn finish(self) -> Shape<T> {
        Shape::new(self.hasher, false, self.holds)
    }
}
