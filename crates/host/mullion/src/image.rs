//! Verified images, ready to become domains.

use crate::builder::DomainBuilder;
use crate::error::Error;
use crate::function::{Export, Signature as SomeSignature};
use crate::host::Host;
use mullion_loader::{Admitted, Loaded};
use mullion_symbols::{Class, Signature, Symbols, Type, Unknown};
use mullion_verifier::ImageKind;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

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
    symbols: LazySymbols,
    /// The types of exports that somebody has asked for.
    signatures: Mutex<HashMap<usize, Known>>,
}

/// What the debug information says of an export's type.
type Known = Result<Arc<Signature>, Unknown>;

impl Image {
    /// Reads, verifies and lays out an image, on a host without policy.
    ///
    /// # Errors
    /// As [`Host::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Host::new().open(path)
    }

    pub(crate) fn new(host: &Host, name: &str, admitted: Admitted) -> Result<Self, Error> {
        if admitted.image().kind() != ImageKind::Extension {
            return Err(Error::NotAnExtension {
                image: name.to_owned(),
            });
        }
        let exports = admitted.image().exports().iter().enumerate();
        let exports = exports.map(|(index, export)| (export.name.clone(), index));
        let exports = exports.collect();
        let loaded = match host.perf() {
            None => Loaded::new(admitted),
            Some(_) => Loaded::for_profiles(admitted),
        };
        Ok(Self {
            inner: Arc::new(Inner {
                host: host.clone(),
                name: name.to_owned(),
                exports,
                loaded: loaded.map_err(Error::Load)?,
                symbols: LazySymbols::default(),
                signatures: Mutex::default(),
            }),
        })
    }

    /// A domain of it, to be made.
    #[must_use]
    pub fn domain(&self) -> DomainBuilder {
        DomainBuilder::new(self)
    }

    /// Maps windows in advance, until so many domains can be made without: each takes a third of
    /// the time then, as it does where a domain of the image has gone (up to 16 windows wait
    /// for the next one by themselves). A window that waits takes 4 GiB of address space, four
    /// mappings, and what pages the image has relocations in. Nothing of the image runs.
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

    /// The function that it exports as `name`, for calls with registers.
    ///
    /// # Errors
    /// [`Error::NoExport`].
    pub fn find(&self, name: &str) -> Result<Export, Error> {
        Ok(Export::new(self.clone(), self.export(name)?))
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

    /// The number of the export of that name, if the debug information does not say that
    /// it has another type than `F`.
    pub(crate) fn export_as<F: SomeSignature>(&self, name: &str) -> Result<usize, Error> {
        let export = self.export(name)?;
        let host = || std::any::type_name::<F>().replace("mullion::pointer::", "");
        self.check_export(export, F::CLASSES, host)?;
        Ok(export)
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
        let known = self.inner.signatures.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        let read = || {
            let offset = self.offset_of(export);
            let signature = self.symbols().with(|symbols| symbols.signature(offset));
            signature.map(Arc::new)
        };
        known.entry(export).or_insert_with(read).clone()
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

    pub(crate) fn symbols(&self) -> Borrowed<'_> {
        Borrowed(self)
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
fn agrees(signature: &Signature, (parameters, result): (&[Class], Option<Class>)) -> bool {
    let same = |theirs: &Vec<Type>| {
        let theirs = theirs.iter().map(|of| of.class);
        theirs.eq(parameters.iter().copied())
    };
    let returned = signature.result.as_ref().map(|of| of.class);
    // A structure that is returned in memory takes the place of an argument.
    returned != Some(Class::Other)
        && signature.parameters.as_ref().is_none_or(same)
        && (result.is_none() || result == returned)
}

/// Names and lines, read when first asked for.
#[derive(Default)]
struct LazySymbols(Mutex<Option<Symbols>>);

/// An image's names and lines.
pub(crate) struct Borrowed<'a>(&'a Image);

impl Borrowed<'_> {
    pub(crate) fn with<R>(&self, use_them: impl FnOnce(&mut Symbols) -> R) -> R {
        let inner = &self.0.inner;
        let mut symbols = inner
            .symbols
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        use_them(symbols.get_or_insert_with(|| {
            let bytes = inner.loaded.image().bytes().clone();
            match inner.host.reads_debug_information() {
                true => Symbols::new(bytes),
                false => Symbols::without_debug_information(bytes),
            }
        }))
    }
}
