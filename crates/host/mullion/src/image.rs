//! Verified images, ready to become domains.

use crate::error::Error;
use crate::host::Host;
use crate::symbols::{ImageSymbols, Known};
use mullion_loader::{Admitted, Loaded};
use mullion_symbols::{Class, DebugSignature, DebugType};
use mullion_verifier::ImageKind;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A verified image, laid out once for all its domains. Cheap to clone.
#[derive(Clone)]
pub struct Image {
    inner: Arc<Inner>,
}

struct Inner {
    host: Host,
    name: String,
    loaded: Loaded,
    exports: HashMap<String, usize>,
    symbols: Arc<ImageSymbols>,
}

impl Image {
    /// Lays out an extension.
    pub(crate) fn new(host: &Host, name: &str, admitted: Admitted) -> Result<Self, Error> {
        if admitted.image().kind() != ImageKind::Extension {
            return Err(Error::NotAnExtension {
                image: name.to_owned(),
            });
        }
        Self::of_any_kind(host, name, admitted)
    }

    /// Lays out an extension or a program. Only the first becomes an [`Image`] that a host has.
    pub(crate) fn of_any_kind(host: &Host, name: &str, admitted: Admitted) -> Result<Self, Error> {
        let exports = admitted.image().exports().iter().enumerate();
        let exports = exports.map(|(index, export)| (export.name.clone(), index));
        let exports = exports.collect();
        let loaded = match host.perf() {
            None => Loaded::new(admitted),
            Some(_) => Loaded::for_profiles(admitted),
        };
        let loaded = loaded.map_err(Error::Load)?;
        let bytes = loaded.image().bytes().clone();
        let symbols = ImageSymbols::new(bytes, host.reads_debug_information());
        Ok(Self {
            inner: Arc::new(Inner {
                host: host.clone(),
                name: name.to_owned(),
                exports,
                loaded,
                symbols: Arc::new(symbols),
            }),
        })
    }

    /// Maps windows in advance, until so many domains can be made without. Each takes a third of
    /// the time then. So does one that follows a domain of the image that has gone: up to 16
    /// windows wait for the next one by themselves. A window that waits takes 4 GiB of address
    /// space, four mappings, and what pages the image has relocations in. Nothing of the image
    /// runs.
    ///
    /// # Errors
    /// [`Error::Load`]: no window or memory left; those that were mapped wait.
    pub fn prepare(&self, domains: usize) -> Result<(), Error> {
        self.inner.loaded.prepare(domains).map_err(Error::Load)
    }

    /// Its name: the file's, or what it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The names of the functions that it offers.
    pub fn exports(&self) -> impl Iterator<Item = &str> {
        let exports = self.file().exports().iter();
        exports.map(|export| export.name.as_str())
    }

    /// The names of the functions that it asks for.
    pub fn imports(&self) -> impl Iterator<Item = &str> {
        self.file().imports().iter().map(String::as_str)
    }

    /// What its file says of itself.
    #[must_use]
    pub fn file(&self) -> &mullion_verifier::Image {
        self.inner.loaded.image()
    }

    /// Whether the verifier has accepted every instruction, as it has unless the
    /// host's policy trusts the compiler instead.
    #[must_use]
    pub fn is_verified(&self) -> bool {
        self.inner.loaded.is_verified()
    }

    pub(crate) fn loaded(&self) -> &Loaded {
        &self.inner.loaded
    }

    pub(crate) fn host(&self) -> &Host {
        &self.inner.host
    }

    /// The number of the export of that name.
    pub(crate) fn export(&self, name: &str) -> Result<usize, Error> {
        let found = self.inner.exports.get(name).copied();
        found.ok_or_else(|| self.no_export(name))
    }

    /// Whether the debug information says that the export has another type than those
    /// classes, for which the host has a name.
    pub(crate) fn check_export(
        &self,
        export: usize,
        classes: (&[Class], Option<Class>),
        host: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        match self.signature(export) {
            Ok(signature) if !agrees(&signature, classes) => Err(Error::WrongType {
                image: self.inner.name.clone(),
                name: self.file().exports()[export].name.clone(),
                host: host(),
                image_type: signature.to_string(),
            }),
            _ => Ok(()),
        }
    }

    pub(crate) fn signature(&self, export: usize) -> Known {
        self.symbols().signature(self.offset_of(export))
    }

    /// The number of the import of that name.
    pub(crate) fn import(&self, name: &str) -> Result<usize, Error> {
        let found = self.imports().position(|import| import == name);
        found.ok_or_else(|| Error::NoImport {
            image: self.inner.name.clone(),
            name: name.to_owned(),
        })
    }

    #[cold]
    pub(crate) fn no_export(&self, name: &str) -> Error {
        Error::NoExport {
            image: self.inner.name.clone(),
            name: name.to_owned(),
            exports: self.exports().map(str::to_owned).collect(),
        }
    }

    /// The offset of an export that [`Image::export`] has found.
    pub(crate) fn offset_of(&self, export: usize) -> u64 {
        self.file().exports()[export].offset
    }

    pub(crate) fn symbols(&self) -> &Arc<ImageSymbols> {
        &self.inner.symbols
    }
}

/// Whether it is the same image, not an equal one.
impl PartialEq for Image {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Image {}

impl fmt::Debug for Image {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Image({})", self.inner.name)
    }
}

/// Whether a function of that type can be called with what the host means to pass.
fn agrees(signature: &DebugSignature, (parameters, result): (&[Class], Option<Class>)) -> bool {
    let same = |theirs: &Vec<DebugType>| {
        let theirs = theirs.iter().map(|of| of.class);
        theirs.eq(parameters.iter().copied())
    };
    let returned = signature.result.as_ref().map(|of| of.class);
    // A structure that is returned in memory takes the place of an argument.
    returned != Some(Class::Other)
        && signature.parameters.as_ref().is_none_or(same)
        && (result.is_none() || result == returned)
}
