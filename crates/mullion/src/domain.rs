//! Domains: an image in a window of its own, called, restarted, unloaded.

use crate::caller::{Context, Identity};
use crate::error::Error;
use crate::fault::Fault;
use crate::function::{Function, Signature};
use crate::heap::Heap;
use crate::image::Image;
use crate::import::Imports;
use crate::output::Lines;
use crate::within::Access;
use mullion_loader::{Instance, LoadError, Start};
use mullion_runtime::{Arguments, CallError, Claimed, Entry, HostFunction, Limits, Returned};
use mullion_system::{Grants, Mount, Streams, System};
use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, TryLockError};

/// The import by which the C library asks for the system interface.
const SYSTEM: &str = "__mullion_system";

/// A protection domain. Cheap to clone: every clone is the same domain, which
/// goes when the last one (and the last [`Function`] of it) does, or earlier, when
/// it is unloaded.
///
/// It may be called from several threads at once, and while it is being called.
#[derive(Clone)]
pub struct Domain {
    core: Arc<Core>,
}

struct Core {
    identity: Arc<Identity>,
    recipe: Recipe,
    lines: Arc<Lines>,
    /// Whoever uses the domain holds a reading lock, and nobody ever waits for the
    /// writing one: restarting and unloading are refused while it is in use. So a
    /// thread may take the reading lock again while it holds it.
    state: RwLock<Option<State>>,
}

/// What a domain is made from, again at each restart.
struct Recipe {
    imports: Imports,
    limits: Limits,
    /// `None`: no system interface.
    grants: Option<Grants>,
    /// `None`: the log.
    streams: Option<Streams>,
}

/// A domain in its window.
pub(crate) struct State {
    instance: Instance,
    heap: Arc<Heap>,
    /// Of the exports, in the order of the image; filled as they are called.
    entries: Box<[OnceLock<Entry>]>,
}

/// What a domain is to be made of.
pub struct DomainBuilder {
    image: Image,
    name: Option<String>,
    recipe: Recipe,
    user: Option<Box<dyn Any + Send + Sync>>,
}

impl DomainBuilder {
    pub(crate) fn new(image: &Image) -> Self {
        Self {
            image: image.clone(),
            name: None,
            recipe: Recipe {
                imports: Imports::default(),
                limits: Limits::default(),
                grants: Some(Grants::default()),
                streams: None,
            },
            user: None,
        }
    }

    /// Its name in errors and logs, instead of the image's.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// The host's functions that it may call.
    #[must_use]
    pub fn imports(mut self, imports: Imports) -> Self {
        self.recipe.imports = imports;
        self
    }

    /// What it may use.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.recipe.limits = limits;
        self
    }

    /// Something of the host's that host functions find by [`Caller::user`](crate::Caller::user).
    #[must_use]
    pub fn user(mut self, user: impl Any + Send + Sync) -> Self {
        self.user = Some(Box::new(user));
        self
    }

    /// Grants it a directory.
    #[must_use]
    pub fn directory(self, mount: Arc<Mount>) -> Self {
        self.granting(|grants| grants.mounts.push(mount))
    }

    /// Grants it the clocks.
    #[must_use]
    pub fn clock(self) -> Self {
        self.granting(|grants| grants.clock = true)
    }

    /// Where its standard output and error go, instead of the log.
    #[must_use]
    pub fn streams(mut self, streams: Streams) -> Self {
        self.recipe.streams = Some(streams);
        self
    }

    /// Refuses it the system interface: images with a C library are then refused
    /// as [`Error::UnknownImports`], unless the imports have a `__mullion_system`.
    #[must_use]
    pub fn without_system(mut self) -> Self {
        self.recipe.grants = None;
        self
    }

    fn granting(mut self, change: impl FnOnce(&mut Grants)) -> Self {
        change(self.recipe.grants.get_or_insert_default());
        self
    }

    /// Makes the domain, and runs its constructors.
    ///
    /// # Errors
    /// [`Error::UnknownImports`]; [`Error::Runtime`], [`Error::Load`]: no window, memory or
    /// mapping left; what a call may end with, if the constructors do.
    pub fn load(self) -> Result<Domain, Error> {
        let name = self.name.unwrap_or_else(|| self.image.name().to_owned());
        let core = Core {
            identity: Arc::new(Identity {
                name,
                image: self.image,
                user: self.user,
            }),
            recipe: self.recipe,
            lines: Arc::default(),
            state: RwLock::new(None),
        };
        let state = core.instantiate()?;
        *core.state.write().unwrap_or_else(PoisonError::into_inner) = Some(state);
        Ok(Domain {
            core: Arc::new(core),
        })
    }
}

impl Domain {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.identity.name
    }

    /// The image it came from.
    #[must_use]
    pub fn image(&self) -> &Image {
        &self.core.identity.image
    }

    /// What the host attached to it, if it is a `T`.
    #[must_use]
    pub fn user<T: Any>(&self) -> Option<&T> {
        self.core.identity.user.as_deref()?.downcast_ref()
    }

    /// The function that it exports as `name`; see [`Function`] for what is checked
    /// about `F` and what cannot be.
    ///
    /// # Errors
    /// [`Error::NoExport`].
    pub fn function<F: Signature>(&self, name: &str) -> Result<Function<F>, Error> {
        let export = self.core.identity.image.export(name)?;
        Ok(Function::new(self.clone(), export))
    }

    /// Whether it has faulted or exited, and takes no calls until it is restarted.
    ///
    /// # Errors
    /// [`Error::Unloaded`]; [`Error::InUse`]: it is just being restarted.
    pub fn has_ended(&self) -> Result<bool, Error> {
        let guard = self.hold()?;
        Ok(guard.is_ended())
    }

    /// Bytes of its image and heap that it can use now.
    ///
    /// # Errors
    /// As [`Domain::has_ended`].
    pub fn memory_in_use(&self) -> Result<u64, Error> {
        let guard = self.hold()?;
        Ok(guard.memory().in_use())
    }

    /// Gives it the state that it had when it was loaded, constructors run.
    /// Functions of it stay good; pointers into it, and buffers, do not.
    ///
    /// # Errors
    /// [`Error::InUse`]: calls are in it, or slices of it are held, on this thread or
    /// another one; and what [`DomainBuilder::load`] may answer: then it is as before.
    pub fn restart(&self) -> Result<(), Error> {
        let core = &self.core;
        let mut slot = match core.state.try_write() {
            Ok(slot) => slot,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(self.in_use()),
        };
        if slot.is_none() {
            return Err(self.unloaded());
        }
        *slot = Some(core.instantiate()?);
        tracing::info!(domain = self.name(), "restarted");
        Ok(())
    }

    /// Takes it out of memory. Every later use is [`Error::Unloaded`].
    ///
    /// # Errors
    /// [`Error::InUse`] as for [`Domain::restart`]; [`Error::Unloaded`]: it was before.
    pub fn unload(&self) -> Result<(), Error> {
        let taken = match self.core.state.try_write() {
            Ok(mut slot) => slot.take(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().take(),
            Err(TryLockError::WouldBlock) => return Err(self.in_use()),
        };
        if taken.is_none() {
            return Err(self.unloaded());
        }
        drop(taken);
        self.core.lines.finish(self.name());
        tracing::debug!(domain = self.name(), "unloaded");
        Ok(())
    }

    /// Keeps it in place, to be used.
    pub(crate) fn hold(&self) -> Result<Access<'_>, Error> {
        let guard = match self.core.state.try_read() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(self.in_use()),
        };
        match guard.is_some() {
            true => Ok(Access::held(guard, &self.core.identity)),
            false => Err(self.unloaded()),
        }
    }

    #[inline]
    pub(crate) fn call(&self, export: usize, arguments: &Arguments) -> Result<Returned, Error> {
        let access = self.hold()?;
        let entry = access.export(export)?;
        tracing::trace!(target: "mullion::call", domain = self.name(),
            function = self.image().file().exports()[export].name);
        access.call(entry, arguments)
    }

    #[cold]
    fn in_use(&self) -> Error {
        Error::InUse {
            domain: self.name().to_owned(),
        }
    }

    #[cold]
    fn unloaded(&self) -> Error {
        Error::Unloaded {
            domain: self.name().to_owned(),
        }
    }
}

impl Core {
    /// A fresh domain, constructors run.
    fn instantiate(&self) -> Result<State, Error> {
        let image = &self.identity.image;
        let context = Arc::new(Context {
            identity: self.identity.clone(),
            heap: Arc::default(),
        });
        let mut functions = mullion_loader::Imports::new();
        let mut unknown = Vec::new();
        for name in image.imports() {
            match self.bind(name, &context) {
                Some(function) => functions = functions.with(name, function),
                None => unknown.push(name.to_owned()),
            }
        }
        if !unknown.is_empty() {
            return Err(Error::UnknownImports {
                image: image.name().to_owned(),
                names: unknown,
            });
        }
        let limits = self.recipe.limits.clone();
        let instance = image.loaded().instantiate(&functions, limits);
        let instance = instance.map_err(explain_load)?;
        self.start(&instance)?;
        if let Some(map) = image.host().perf() {
            map.add(
                &self.identity.name,
                image,
                instance.domain().memory().base(),
            );
        }
        let exports = image.file().exports();
        Ok(State {
            instance,
            heap: context.heap.clone(),
            entries: exports.iter().map(|_| OnceLock::new()).collect(),
        })
    }

    fn bind(&self, name: &str, context: &Arc<Context>) -> Option<HostFunction> {
        if let Some(import) = self.recipe.imports.get(name) {
            let (import, context) = (import.clone(), context.clone());
            return Some(Arc::new(move |caller| import(caller, &context)));
        }
        let grants = self.recipe.grants.as_ref().filter(|_| name == SYSTEM)?;
        let mut grants = grants.clone();
        grants.streams = match &self.recipe.streams {
            Some(streams) => streams.clone(),
            None => Streams::Taken(self.lines.receiver(&self.identity.name)),
        };
        Some(System::new(grants).into_import())
    }

    /// Runs the constructors.
    fn start(&self, instance: &Instance) -> Result<(), Error> {
        let mut random = [0; 16];
        // The C library's protection against itself is weaker without; no wall is.
        let _unseeded = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
        let block = Start {
            arguments: vec![self.identity.name.replace('\0', "").into_bytes()],
            environment: Vec::new(),
            random,
        };
        let block = block.place(instance).map_err(explain_load)?;
        let entry = instance.start()?;
        let arguments = Arguments::new(&[block]);
        let called = crate::held::invocation(|| instance.domain().call(entry, &arguments));
        called.map_err(|error| self.identity.explain(error))?;
        Ok(())
    }
}

impl State {
    pub(crate) fn domain(&self) -> &mullion_runtime::Domain {
        self.instance.domain()
    }

    pub(crate) fn heap(&self) -> &Arc<Heap> {
        &self.heap
    }

    /// Where an export is entered.
    #[inline]
    pub(crate) fn entry(&self, export: usize, image: &Image) -> Result<Entry, Error> {
        if let Some(entry) = self.entries[export].get() {
            return Ok(*entry);
        }
        let address = self.domain().memory().base() + image.offset_of(export);
        let entry = self.domain().entry(Claimed(address))?;
        Ok(*self.entries[export].get_or_init(|| entry))
    }
}

impl Identity {
    /// What the host is told, and its log.
    #[cold]
    pub(crate) fn explain(&self, error: CallError) -> Error {
        let domain = self.name.clone();
        let error = match error {
            CallError::Fault(fault) => {
                Error::Fault(Box::new(Fault::new(&domain, &self.image, *fault)))
            }
            CallError::Exit(status) => Error::Exit { domain, status },
            CallError::Refused(source) => Error::Refused { domain, source },
            CallError::NotMade(mullion_runtime::Error::Ended) => Error::Ended { domain },
            CallError::NotMade(mullion_runtime::Error::Depth { depth }) => {
                Error::Depth { domain, depth }
            }
            CallError::NotMade(other) => Error::Runtime(other),
        };
        match &error {
            Error::Fault(fault) => {
                let (domain, place) = (fault.domain(), fault.location().unwrap_or_default());
                tracing::error!(target: "mullion::fault", domain, address = fault.address(),
                    "{}, in {place}", fault.cause());
            }
            other => tracing::debug!(target: "mullion::call", "{other}"),
        }
        error
    }
}

fn explain_load(error: LoadError) -> Error {
    match error {
        LoadError::Runtime(error) => Error::Runtime(error),
        other => Error::Load(other),
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Domain({})", self.name())
    }
}
