//! Functions of the host that a domain may call: an explicit list.

use crate::callee::Callee;
use crate::caller::Caller;
use crate::context::Context;
use crate::error::{BoxedError, Error};
use crate::value::sealed::Sealed;
use crate::value::{Outcome, Taker, Value};
use mullion_runtime::CallEnd;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A function of the list, whatever its type.
pub(crate) type Import =
    Arc<dyn Fn(&mut mullion_runtime::GateCall<'_>, &Context) -> Result<u64, CallEnd> + Send + Sync>;

/// The functions that a host offers to an image, by name. What is not in the list
/// does not exist for it.
#[derive(Clone, Default)]
pub struct Imports {
    functions: HashMap<String, Behind>,
}

/// Who stands behind an import.
#[derive(Clone)]
pub(crate) enum Behind {
    Host(Import),
    /// Another domain.
    Domain(Callee),
    /// Another domain, but whose is said later.
    Nobody,
}

impl Imports {
    /// Offers nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Offers `function` as `name`, in place of an earlier one.
    ///
    /// A function takes the [`Caller`] and up to eight [`Value`]s. It returns a `Value`, nothing, or a
    /// `Result` of those: an error ends the call into the domain, which then returns
    /// [`Error::Refused`](crate::Error::Refused) with it. A panic goes on in the host's caller.
    ///
    /// It may be called from every thread that is in the domain, and may call the
    /// domain again.
    ///
    /// ```
    /// use mullion::{Caller, Imports, Ptr};
    ///
    /// let imports = Imports::new()
    ///     .function("log", |caller: &Caller<'_>, level: u32, message: Ptr<u8>| {
    ///         let message = message.string(caller, 1000)?;
    ///         println!("{}: {level}: {message}", caller.name());
    ///         Ok::<(), mullion::Error>(())
    ///     })
    ///     .function("half", |_: &Caller<'_>, number: f64| number / 2.0);
    /// # drop(imports);
    /// ```
    ///
    /// That the domain passes what the function's type says is not checked: it
    /// finds what the registers hold, and each of these is a value.
    #[must_use]
    pub fn function<M>(self, name: &str, function: impl IntoImport<M>) -> Self {
        self.with(name, Behind::Host(function.into_import().0))
    }

    /// Offers a function of another domain as `name`, in place of an earlier one. This
    /// domain calls it with the host out of the way, from its constructors on.
    ///
    /// The [`Policy`](crate::Policy) of the called one's host is asked when the domain is
    /// loaded. The link holds while both domains live, over restarts; while the list
    /// lives, so does the called domain.
    ///
    /// ```no_run
    /// use mullion::{Caller, Image, Imports};
    ///
    /// # fn load(words: &Image, spell: &Image) -> Result<(), mullion::Error> {
    /// let spell = spell.domain().imports(Imports::new().function("who", |caller: &Caller<'_>| {
    ///     // Who asks? `None` is the host.
    ///     u64::from(caller.called_by().is_some_and(|caller| caller.name() == "words.mx"))
    /// })).load()?;
    /// let is_word = spell.function::<fn(u32) -> i32>("is_word")?;
    /// let words = words.domain().imports(Imports::new().link("is_word", is_word.or(-1))).load()?;
    /// for link in words.links()? {
    ///     println!("{}: {:?}, {} times", link.import, link.callee, link.calls);
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn link(self, name: &str, callee: impl Into<Callee>) -> Self {
        self.with(name, Behind::Domain(callee.into()))
    }

    /// Offers a function of another domain as `name`, of which
    /// [`Domain::link`](crate::Domain::link) will say which it is. A call before that is
    /// refused, with [`Error::Unlinked`](crate::Error::Unlinked).
    #[must_use]
    pub fn link_later(self, name: &str) -> Self {
        self.with(name, Behind::Nobody)
    }

    /// Offers `function` as `name`, which finds its arguments as registers: six
    /// integers or pointers and eight vectors, whether the domain set them or not.
    #[must_use]
    pub fn raw(
        self,
        name: &str,
        function: impl Fn(&Caller<'_>, &RawArguments) -> Result<RawResult, BoxedError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let import: Import = Arc::new(move |raw, context| {
            let arguments = RawArguments {
                integers: raw.integers(),
                doubles: std::array::from_fn(|index| raw.double(index)),
            };
            let result = function(&Caller::new(raw, context), &arguments).map_err(refused)?;
            raw.return_double(result.double);
            Ok(result.integer)
        });
        self.with(name, Behind::Host(import))
    }

    fn with(mut self, name: &str, behind: Behind) -> Self {
        self.functions.insert(name.to_owned(), behind);
        self
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Behind> {
        self.functions.get(name)
    }
}

impl fmt::Debug for Imports {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_set()
            .entries(self.functions.keys())
            .finish()
    }
}

/// The registers in which a domain passes arguments. Nothing about them is checked.
#[derive(Clone, Copy, Debug)]
pub struct RawArguments {
    /// Integers and pointers.
    pub integers: [u64; 6],
    /// Floating-point numbers; of an `f32`, the low half of the bits.
    pub doubles: [f64; 8],
}

/// What a raw function returns: both registers.
#[derive(Clone, Copy, Debug, Default)]
pub struct RawResult {
    /// An integer or pointer.
    pub integer: u64,
    /// A floating-point number.
    pub double: f64,
}

/// How a host function's error ends the invocation.
#[cold]
fn refused(error: BoxedError) -> CallEnd {
    match error.downcast_ref() {
        Some(Error::OutputLimit { granted, .. }) => CallEnd::OutputLimit { granted: *granted },
        _ => CallEnd::Refused(error),
    }
}

/// What a host function returns: an [`Outcome`], or a `Result` of one.
pub trait Answer: Sealed {
    #[doc(hidden)]
    type Outcome: Outcome;
    #[doc(hidden)]
    fn into_result(self) -> Result<Self::Outcome, CallEnd>;
}

impl<V: Outcome> Answer for V {
    type Outcome = V;
    fn into_result(self) -> Result<V, CallEnd> {
        Ok(self)
    }
}

impl<V: Outcome, E> Sealed for Result<V, E> {}
impl<V: Outcome, E: Into<BoxedError> + 'static> Answer for Result<V, E> {
    type Outcome = V;
    fn into_result(self) -> Result<V, CallEnd> {
        self.map_err(|error| refused(error.into()))
    }
}

/// A closure or function that can be offered to a domain: see [`Imports::function`].
pub trait IntoImport<M> {
    #[doc(hidden)]
    fn into_import(self) -> AnyImport;
}

/// A host function, whatever its type.
#[doc(hidden)]
pub struct AnyImport(Import);

macro_rules! arities {
    ($(($($type:ident),*))*) => {$(
        impl<Function, R, $($type),*> IntoImport<fn($($type),*) -> R> for Function
        where
            Function: Fn(&Caller<'_>, $($type),*) -> R + Send + Sync + 'static,
            R: Answer,
            $($type: Value,)*
        {
            #[allow(non_snake_case, reason = "a value for each type")]
            fn into_import(self) -> AnyImport {
                AnyImport(Arc::new(move |raw, context| {
                    #[allow(unused_mut, unused_variables, reason = "without arguments")]
                    let mut taker = Taker::new(raw, context);
                    $(let $type: $type = taker.next()?;)*
                    let answer = self(&Caller::new(raw, context), $($type),*);
                    Ok(answer.into_result()?.give(raw))
                }))
            }
        }
    )*};
}
arities! {
    () (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E)
    (A, B, C, D, E, F) (A, B, C, D, E, F, G) (A, B, C, D, E, F, G, H)
}
