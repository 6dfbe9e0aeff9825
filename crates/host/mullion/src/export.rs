//! Exports of images, called with registers.

use crate::call::{Call, Running};
use crate::domain::Domain;
use crate::domain_memory::DomainMemory;
use crate::error::Error;
use crate::image::Image;
use crate::terms::Terms;
use mullion_runtime::{CallArguments, CallLimits, Returned};
use mullion_symbols::{Class, Unknown as UnknownType};

/// An export of an image, to be called in any domain of it, with registers for
/// arguments. It is for hosts that learn its type only when they run.
#[derive(Clone, Debug)]
pub struct Export {
    image: Image,
    number: usize,
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

    /// Compares what the image's debug information says of its type with what the host means to pass and
    /// to find, as [`Domain::function`] does. It compares how many arguments there are, which of them
    /// are floating-point numbers, and how many bytes each has. `None`: the result is not looked at. It
    /// finds mistakes, and is no evidence: without debug information there is nothing to compare.
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
    /// As [`Function`](crate::Function)'s `call`; [`Error::NoExport`]: the domain is another image's.
    pub fn call(
        &self,
        within: &impl DomainMemory,
        arguments: &CallArguments,
    ) -> Result<Returned, Error> {
        self.call_limited(within, arguments, None)
    }

    /// As [`Export::call`], with limits of its own: see [`Function::limited`](crate::Function::limited).
    ///
    /// # Errors
    /// As [`Export::call`].
    #[inline]
    pub fn call_limited(
        &self,
        within: &impl DomainMemory,
        arguments: &CallArguments,
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
    /// [`Function`](crate::Function)'s `start`.
    ///
    /// # Errors
    /// [`Error::Thread`]; [`Error::NoExport`].
    pub fn start(
        &self,
        domain: &Domain,
        arguments: &CallArguments,
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

impl Image {
    /// The function that it exports as `name`, for calls with registers.
    ///
    /// # Errors
    /// [`Error::NoExport`].
    pub fn find(&self, name: &str) -> Result<Export, Error> {
        Ok(Export::new(self.clone(), self.export(name)?))
    }
}
