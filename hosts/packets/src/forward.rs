//! What happens to each frame between two ports.

use crate::batch::Batch;
use crate::config::Description;
use crate::module::{LoadError, Module};
use mullion::Host;
use mullion::trust::PublicKey;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use thiserror::Error;

/// What went in at a port and out again.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Frames that came in.
    pub received: AtomicU64,
    /// Their bytes.
    pub received_bytes: AtomicU64,
    /// Frames that went out at the other port, added ones among them.
    pub sent: AtomicU64,
    /// Frames that a module dropped.
    pub dropped: AtomicU64,
    /// Frames that the system did not take: longer than the interface lets through, or no memory.
    pub unsent: AtomicU64,
    /// Frames longer than the interface they came in at lets through: their sender leaves it to its card to cut them.
    pub uncut: AtomicU64,
    /// Frames that the kernel could not keep for us, because we were too slow.
    pub lost: AtomicU64,
    /// Frames come in by AF_XDP, and not by a packet socket.
    pub is_xdp: AtomicBool,
}

/// Modules that one key may have.
const OWNED: usize = 16;

/// Why a module was not loaded, replaced or unloaded.
#[derive(Debug, Error)]
pub enum ChangeError {
    /// The name is taken.
    #[error("there is a module `{0}` already; unload it first, or replace it")]
    Taken(String),
    /// No such module.
    #[error("there is no module `{0}`")]
    Unknown(String),
    /// One owner has too many.
    #[error("one key may have {OWNED} modules; unload one first")]
    Many,
    /// It could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Modules as somebody has last seen them, who looks again at each batch and when it is silent: what was unloaded ends then.
#[derive(Debug, Default)]
pub struct Chain {
    modules: Option<Arc<Vec<Arc<Module>>>>,
    changes: u64,
}

/// The modules that frames go through, and what was counted.
#[derive(Debug)]
pub struct Forwarder {
    host: Host,
    chain: RwLock<Arc<Vec<Arc<Module>>>>,
    /// How often it has changed.
    changes: AtomicU64,
    /// By port.
    pub traffic: [Traffic; 2],
}

impl Forwarder {
    /// Loads the modules.
    ///
    /// # Errors
    /// As [`ChangeError`] lists.
    pub fn new(host: Host, modules: &[Description]) -> Result<Forwarder, ChangeError> {
        let forwarder = Forwarder {
            host,
            chain: RwLock::default(),
            changes: AtomicU64::new(0),
            traffic: Default::default(),
        };
        for module in modules {
            forwarder.load(module, false)?;
        }
        Ok(forwarder)
    }

    /// The modules, in the order in which frames meet them.
    #[must_use]
    pub fn modules(&self) -> Arc<Vec<Arc<Module>>> {
        self.chain
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Brings a chain up to date, which costs nothing if no module came or went.
    #[inline]
    pub fn refresh<'c>(&self, chain: &'c mut Chain) -> &'c [Arc<Module>] {
        let changes = self.changes.load(Ordering::Acquire);
        if chain.modules.is_none() || chain.changes != changes {
            chain.changes = changes;
            chain.modules = Some(self.modules());
        }
        chain.modules.as_deref().map_or(&[], Vec::as_slice)
    }

    /// The module of a name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<Arc<Module>> {
        let modules = self.modules();
        let mut modules = modules.iter();
        modules
            .find(|module| module.description().name == name)
            .cloned()
    }

    /// Loads a module behind the others, or in the place of one of its name. Frames go on meanwhile: those that are
    /// inside a module that is replaced go through the old one.
    ///
    /// # Errors
    /// As [`ChangeError`] lists; nothing has changed then.
    pub fn load(&self, description: &Description, replace: bool) -> Result<(), ChangeError> {
        self.put(Module::load(&self.host, description)?, replace)
    }

    /// As [`Forwarder::load`], of a module that is loaded. One with an owner takes the place of its owner's only.
    ///
    /// # Errors
    /// As [`ChangeError`] lists; nothing has changed then.
    pub fn put(&self, module: Module, replace: bool) -> Result<(), ChangeError> {
        let name = module.description().name.clone();
        self.change(|chain| {
            let place = chain
                .iter()
                .position(|other| other.description().name == name);
            match place {
                Some(place) if replace && is_theirs(&chain[place], module.owner.as_ref()) => {
                    chain[place] = Arc::new(module);
                }
                Some(_) => return Err(ChangeError::Taken(name)),
                None if module.owner.is_some() && owned(chain, module.owner.as_ref()) >= OWNED => {
                    return Err(ChangeError::Many);
                }
                None => chain.push(Arc::new(module)),
            }
            Ok(())
        })
    }

    /// Takes a module out.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn unload(&self, name: &str) -> Result<(), ChangeError> {
        self.unload_as(None, name)
    }

    /// As [`Forwarder::unload`], for somebody who may be no operator.
    ///
    /// # Errors
    /// They have none of this name.
    pub fn unload_as(&self, who: Option<&PublicKey>, name: &str) -> Result<(), ChangeError> {
        self.change(|chain| {
            let place = chain
                .iter()
                .position(|module| module.description().name == name && is_theirs(module, who));
            match place {
                Some(place) => {
                    chain.remove(place);
                    Ok(())
                }
                None => Err(ChangeError::Unknown(name.to_owned())),
            }
        })
    }

    /// The host of the operator's modules, which asks nobody.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Vec<Arc<Module>>) -> Result<(), ChangeError>,
    ) -> Result<(), ChangeError> {
        let mut chain = self.chain.write().unwrap_or_else(PoisonError::into_inner);
        let mut new = Vec::clone(&chain);
        change(&mut new)?;
        *chain = Arc::new(new);
        self.changes.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Takes frames that came in at `port` through the modules. What goes on is in [`Batch::out`].
    pub fn handle(&self, chain: &[Arc<Module>], port: u32, batch: &mut Batch<'_>) {
        let traffic = &self.traffic[usize::from(port != 0)];
        traffic
            .received
            .fetch_add(batch.len() as u64, Ordering::Relaxed);
        traffic
            .received_bytes
            .fetch_add(batch.came as u64, Ordering::Relaxed);
        for module in chain {
            module.run(port, batch);
        }
        if batch.dropped > 0 {
            traffic.dropped.fetch_add(batch.dropped, Ordering::Relaxed);
        }
    }
}

/// Whether somebody may do away with a module: the operator, or its owner.
pub(crate) fn is_theirs(module: &Module, who: Option<&PublicKey>) -> bool {
    who.is_none() || module.owner.as_ref() == who
}

fn owned(chain: &[Arc<Module>], who: Option<&PublicKey>) -> usize {
    let theirs = chain.iter().filter(|module| module.owner.as_ref() == who);
    theirs.count()
}
