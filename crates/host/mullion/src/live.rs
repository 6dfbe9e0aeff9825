//! A new image behind the same functions, while the host runs.
//!
//! A [`Live`] names the domain that serves now. Its functions look that up at each call, and keep it until the
//! call has ended. So a call ends where it began, and a domain that was replaced goes with its last call.

use crate::arity::for_each_arity;
use crate::domain::Domain;
use crate::error::Error;
use crate::function::Function;
use crate::image::Image;
use crate::signature::Signature;
use crate::value::{Outcome, Registers, Value};
use mullion_runtime::{CallArguments, Returned};
use mullion_symbols::Class;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// A place for a domain that can be replaced by one of another image ([`Live::upgrade`]). Clones are the
/// same place.
#[derive(Clone)]
pub struct Live {
    inner: Arc<Inner>,
}

/// A function of whatever domain a [`Live`] has when it is called.
///
/// To pass memory, the domain must be the same for several steps: [`LiveFunction::now`] is the function of
/// the present one.
pub struct LiveFunction<F> {
    live: Arc<Inner>,
    number: usize,
    kind: PhantomData<F>,
}

struct Inner {
    serving: RwLock<Arc<Serving>>,
    /// The functions that hosts have asked for; changed together with `serving`.
    wanted: Mutex<Vec<Wanted>>,
}

/// A domain, and where in its image the wanted functions are, in that order.
struct Serving {
    domain: Domain,
    exports: Vec<usize>,
}

/// A function that every image must have.
struct Wanted {
    name: String,
    classes: (&'static [Class], Option<Class>),
    host: fn() -> &'static str,
}

impl Wanted {
    fn find(&self, image: &Image) -> Result<usize, Error> {
        let export = image.export(&self.name)?;
        let host = || (self.host)().replace("mullion::pointer::", "");
        image.check_export(export, self.classes, host)?;
        Ok(export)
    }
}

impl Live {
    /// A place with this domain in it.
    #[must_use]
    pub fn new(domain: Domain) -> Self {
        Self {
            inner: Arc::new(Inner {
                serving: RwLock::new(Arc::new(Serving {
                    domain,
                    exports: Vec::new(),
                })),
                wanted: Mutex::default(),
            }),
        }
    }

    /// The domain that serves now.
    #[must_use]
    pub fn domain(&self) -> Domain {
        self.inner.serving().domain.clone()
    }

    /// The function that the domain exports as `name`, and that every later one must export
    /// with this type: see [`Function`] for what is checked about `F`.
    ///
    /// # Errors
    /// [`Error::NoExport`]; [`Error::WrongType`].
    pub fn function<F: Signature>(&self, name: &str) -> Result<LiveFunction<F>, Error> {
        let mut wanted = self
            .inner
            .wanted
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let new = Wanted {
            name: name.to_owned(),
            classes: F::CLASSES,
            host: std::any::type_name::<F>,
        };
        let is_it = |other: &Wanted| other.name == name && (other.host)() == (new.host)();
        let number = match wanted.iter().position(is_it) {
            Some(number) => number,
            None => {
                let serving = self.inner.serving();
                let mut exports = serving.exports.clone();
                exports.push(new.find(serving.domain.image())?);
                let domain = serving.domain.clone();
                self.inner.serve(Serving { domain, exports });
                wanted.push(new);
                wanted.len() - 1
            }
        };
        Ok(LiveFunction {
            live: self.inner.clone(),
            number,
            kind: PhantomData,
        })
    }

    /// Puts another domain in its place: of another image, usually. Calls that come from now on go there. Those
    /// that are in the former one end there, and it goes with the last of them, unless the host holds it.
    ///
    /// # Errors
    /// [`Error::NoExport`], [`Error::WrongType`]: of a function that the host has asked for, in the new
    /// image. Then the former one goes on to serve.
    pub fn upgrade(&self, domain: Domain) -> Result<(), Error> {
        let wanted = self
            .inner
            .wanted
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let exports = wanted.iter().map(|function| function.find(domain.image()));
        let exports = exports.collect::<Result<_, _>>()?;
        tracing::info!(domain = domain.name(), "serves from now on");
        self.inner.serve(Serving { domain, exports });
        Ok(())
    }
}

impl Inner {
    #[inline]
    fn serving(&self) -> Arc<Serving> {
        let serving = self.serving.read();
        serving.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn serve(&self, serving: Serving) {
        let mut place = self.serving.write().unwrap_or_else(PoisonError::into_inner);
        let former = std::mem::replace(&mut *place, Arc::new(serving));
        drop(place);
        // Behind the lock: a domain may go with it.
        drop(former);
    }
}

impl<F: Signature> LiveFunction<F> {
    /// The function of the domain that serves now. While there is one, so is that domain: to copy memory in,
    /// call, and read what came of it.
    #[must_use]
    pub fn now(&self) -> Function<F> {
        let serving = self.live.serving();
        Function::new(serving.domain.clone(), serving.exports[self.number])
    }
}

impl<F> LiveFunction<F> {
    fn call_raw(&self, arguments: &CallArguments) -> Result<Returned, Error> {
        let serving = self.live.serving();
        serving
            .domain
            .call(serving.exports[self.number], arguments, None)
    }
}

macro_rules! arities {
    ($(($($name:ident: $type:ident),*))*) => {$(
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
    )*};
}
for_each_arity!(arities);

impl<F> Clone for LiveFunction<F> {
    fn clone(&self) -> Self {
        Self {
            live: self.live.clone(),
            number: self.number,
            kind: PhantomData,
        }
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Live({})", self.inner.serving().domain.name())
    }
}

impl<F> fmt::Debug for LiveFunction<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let serving = self.live.serving();
        let exports = serving.domain.image().file().exports();
        let name = &exports[serving.exports[self.number]].name;
        write!(
            formatter,
            "LiveFunction({name} of {})",
            serving.domain.name()
        )
    }
}
