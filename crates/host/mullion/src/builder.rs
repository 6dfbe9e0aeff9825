//! What a domain is to be made of, and how it is made.

use crate::context::Context;
use crate::domain::Domain;
use crate::error::{Error, explain_load};
use crate::identity::Identity;
use crate::image::Image;
use crate::import::{Behind, Imports};
use crate::link;
use crate::output::Lines;
use crate::state::State;
use mullion_runtime::{CallEnd, HostFunction, Limits};
use mullion_system::{Grants, Mount, Streams, System};
use std::any::Any;
use std::sync::Arc;

/// The import by which the C library asks for the system interface.
const SYSTEM: &str = "__mullion_system";

/// What a domain is to be made of.
pub struct DomainBuilder {
    image: Image,
    name: Option<String>,
    recipe: Recipe,
    user: Option<Box<dyn Any + Send + Sync>>,
}

/// What a domain is made from.
pub(crate) struct Recipe {
    pub(crate) imports: Imports,
    pub(crate) limits: Limits,
    /// `None`: no system interface.
    pub(crate) grants: Option<Grants>,
    /// `None`: the log.
    pub(crate) streams: Option<Streams>,
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
        let identity = Identity::new(name, self.image, self.user);
        let lines: Arc<Lines> = Arc::default();
        let state = self.recipe.make(&identity, &lines)?;
        Ok(Domain::new(identity, lines, state))
    }
}

impl Image {
    /// A domain of it, to be made.
    #[must_use]
    pub fn domain(&self) -> DomainBuilder {
        DomainBuilder::new(self)
    }
}

impl Recipe {
    /// A domain whose constructors have run.
    fn make(&self, identity: &Arc<Identity>, lines: &Arc<Lines>) -> Result<State, Error> {
        let state = self.map(identity, lines)?;
        state.start()?;
        let image = identity.image();
        if let Some(map) = image.host().perf() {
            map.add(
                identity.name(),
                image.symbols(),
                state.domain().memory().base(),
            );
        }
        Ok(state)
    }

    /// A domain of which nothing has run.
    pub(crate) fn map(&self, identity: &Arc<Identity>, lines: &Arc<Lines>) -> Result<State, Error> {
        let image = identity.image();
        let system = self.grants.as_ref().map(|grants| {
            let mut grants = grants.clone();
            grants.streams = match &self.streams {
                Some(streams) => streams.clone(),
                None => Streams::Taken(lines.receiver(identity.name())),
            };
            Arc::new(System::new(grants))
        });
        let context = Arc::new(Context {
            identity: identity.clone(),
            heap: Arc::default(),
        });
        let mut functions = mullion_loader::Imports::new();
        let mut unknown = Vec::new();
        for name in image.imports() {
            match self.bind(name, &context, system.as_ref()) {
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
        let instance = image.loaded().instantiate(&functions, self.limits.clone());
        let state = State::new(instance.map_err(explain_load)?, context, system);
        identity.found_as(state.domain());
        for name in image.imports() {
            if let Some(Behind::Domain(callee)) = self.imports.get(name) {
                link::make(None, (identity, state.domain()), name, callee)?;
            }
        }
        Ok(state)
    }

    fn bind(
        &self,
        name: &str,
        context: &Arc<Context>,
        system: Option<&Arc<System>>,
    ) -> Option<HostFunction> {
        match self.imports.get(name) {
            Some(Behind::Host(import)) => {
                let (import, context) = (import.clone(), context.clone());
                Some(Arc::new(move |caller| import(caller, &context)))
            }
            // The link will stand in its place.
            Some(Behind::Domain(_) | Behind::Nobody) => {
                let (import, domain) = (name.to_owned(), context.identity.name().to_owned());
                Some(Arc::new(move |_| {
                    let (import, domain) = (import.clone(), domain.clone());
                    Err(CallEnd::Refused(Box::new(Error::Unlinked {
                        domain,
                        import,
                    })))
                }))
            }
            None => system.filter(|_| name == SYSTEM).map(System::import),
        }
    }
}
