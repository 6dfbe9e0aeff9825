//! What happens to each frame between two ports.

use crate::config::Description;
use crate::frame;
use crate::module::{LoadError, Module, Verdict};
use mullion::Host;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
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
    /// Frames that the kernel could not keep for us, because we were too slow.
    pub lost: AtomicU64,
}

/// Why a module was not loaded, replaced or unloaded.
#[derive(Debug, Error)]
pub enum ChangeError {
    /// The name is taken.
    #[error("there is a module `{0}` already; unload it first, or replace it")]
    Taken(String),
    /// No such module.
    #[error("there is no module `{0}`")]
    Unknown(String),
    /// It could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// The modules that frames go through, and what was counted.
#[derive(Debug)]
pub struct Forwarder {
    host: Host,
    chain: RwLock<Arc<Vec<Arc<Module>>>>,
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

    /// Loads a module behind the others, or in the place of one of its name. Frames go on meanwhile: one that is
    /// inside a module that is replaced goes through the old one.
    ///
    /// # Errors
    /// As [`ChangeError`] lists; nothing has changed then.
    pub fn load(&self, description: &Description, replace: bool) -> Result<(), ChangeError> {
        let module = Arc::new(Module::load(&self.host, description)?);
        self.change(|chain| {
            let place = chain
                .iter()
                .position(|other| other.description().name == description.name);
            match place {
                Some(place) if replace => chain[place] = module,
                Some(_) => return Err(ChangeError::Taken(description.name.clone())),
                None => chain.push(module),
            }
            Ok(())
        })
    }

    /// Takes a module out.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn unload(&self, name: &str) -> Result<(), ChangeError> {
        self.change(|chain| {
            let place = chain
                .iter()
                .position(|module| module.description().name == name);
            match place {
                Some(place) => {
                    chain.remove(place);
                    Ok(())
                }
                None => Err(ChangeError::Unknown(name.to_owned())),
            }
        })
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Vec<Arc<Module>>) -> Result<(), ChangeError>,
    ) -> Result<(), ChangeError> {
        let mut chain = self.chain.write().unwrap_or_else(PoisonError::into_inner);
        let mut new = Vec::clone(&chain);
        change(&mut new)?;
        *chain = Arc::new(new);
        Ok(())
    }

    /// Takes a frame that came in at `port` through the modules, and hands to `out` what goes on.
    ///
    /// Frames that a module adds go out behind the frame; they do not meet other modules.
    pub fn handle(
        &self,
        chain: &[Arc<Module>],
        port: u32,
        time: Duration,
        mut frame: Vec<u8>,
        out: &mut dyn FnMut(&[u8]),
    ) {
        let traffic = &self.traffic[usize::from(port != 0)];
        traffic.received.fetch_add(1, Ordering::Relaxed);
        traffic
            .received_bytes
            .fetch_add(frame.len() as u64, Ordering::Relaxed);
        let mut added = Vec::new();
        let mut layout = frame::layout(&frame);
        for module in chain {
            if !module.wants(port, &layout) {
                continue;
            }
            match module.run(port, time, &layout, &frame, &mut |frame| added.push(frame)) {
                Verdict::Pass => {}
                Verdict::Changed(new) => {
                    frame = new;
                    layout = frame::layout(&frame);
                }
                Verdict::Drop => {
                    traffic.dropped.fetch_add(1, Ordering::Relaxed);
                    added.iter().for_each(|frame| out(frame));
                    return;
                }
            }
        }
        out(&frame);
        added.iter().for_each(|frame| out(frame));
    }
}
