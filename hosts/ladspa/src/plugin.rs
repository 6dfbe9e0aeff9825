//! A plug-in of a walled library: the host gets a descriptor of ours, made of what the module's says.
//!
//! ```text
//!   host ──► Descriptor here ──► Plugin { module, its descriptor, its functions }
//!                                          each read once in a life, each pointer looked at
//! ```

use crate::abi::{Descriptor, FIRST_METHOD, HINT, METHODS, Method};
use crate::instance;
use mullion_bridge::{Answer, Module, gate, refused};
use std::ffi::{c_char, c_int, c_ulong};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Ports of one plug-in, at most.
const PORTS: u64 = 4096;
/// Plug-ins of one library, at most.
const PLUGINS: u64 = 4096;

/// Where a life of a module has a plug-in.
#[derive(Clone, Copy)]
pub(crate) struct Theirs {
    pub(crate) descriptor: u64,
    pub(crate) methods: [u64; METHODS],
    pub(crate) life: u64,
}

impl Theirs {
    pub(crate) fn method(&self, method: Method) -> u64 {
        self.methods[method as usize]
    }
}

/// A plug-in.
pub(crate) struct Plugin {
    pub(crate) library: &'static Library,
    /// What hosts get.
    pub(crate) ours: Descriptor,
    /// Of each port: whether it is for input or output, audio or control.
    pub(crate) ports: Vec<c_int>,
    number: u64,
    theirs: Mutex<Theirs>,
}

// SAFETY: the descriptor's pointers lead to what stays and never changes.
unsafe impl Send for Plugin {}
// SAFETY: nobody writes the descriptor, nor what its pointers lead to, after the plug-in was made.
unsafe impl Sync for Plugin {}

/// A library of plug-ins.
pub(crate) struct Library {
    pub(crate) module: &'static Module,
    /// One thread at a time begins a life.
    turn: Mutex<()>,
    /// Whether somebody was told why it was stopped, by lives.
    told: Mutex<Option<u64>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Library {
    pub(crate) fn new(module: &'static Module) -> &'static Library {
        Box::leak(Box::new(Library {
            module,
            turn: Mutex::default(),
            told: Mutex::default(),
        }))
    }

    /// The module's own descriptor with a number.
    fn descriptor(&self, number: u64) -> Option<u64> {
        let function = self.module.domain.function("ladspa_descriptor")? as u64;
        let at = gate!(function, fn(c_ulong) -> u64)(number);
        (at != 0 && self.module.runs()).then_some(at)
    }

    /// All plug-ins.
    pub(crate) fn plugins(&'static self) -> Result<Vec<&'static Plugin>, String> {
        let mut all = Vec::new();
        for number in 0..PLUGINS {
            let Some(at) = self.descriptor(number) else {
                break;
            };
            let plugin = Plugin::read(self, number, at).map_err(|why| why.0)?;
            all.push(&*Box::leak(Box::new(plugin)));
        }
        match self.module.runs() {
            true => Ok(all),
            false => Err(self.module.fault()),
        }
    }

    /// Says once in each life why it was stopped.
    pub(crate) fn tell(&self) {
        let life = self.module.life();
        if lock(&self.told).replace(life) != Some(life) {
            eprintln!("mullion: {}", self.module.fault());
        }
    }
}

impl Plugin {
    fn read(library: &'static Library, number: u64, at: u64) -> Answer<Plugin> {
        let module = library.module;
        let word = |place: u64| module.read(at + place);
        let text = |at: u64| -> Answer<*const c_char> {
            // It stays for the life of the process, as the host expects of what it has once been given.
            match at {
                0 => Ok(std::ptr::null()),
                at => Ok(module.c_string(at)?.into_raw().cast_const()),
            }
        };
        let count = word(48)?;
        if count > PORTS {
            return refused(format!("a plug-in with {count} ports"));
        }
        let kinds = module.bytes(word(56)?, 4 * count)?.chunks_exact(4);
        let ports: Vec<c_int> = kinds
            .map(|kind| c_int::from_ne_bytes(kind.try_into().unwrap_or_default()))
            .collect();
        let names = word(64)?;
        let names = (0..count)
            .map(|port| text(module.read(names + 8 * port)?))
            .collect::<Answer<Vec<_>>>()?;
        let hints = module.bytes(word(72)?, HINT * count)?.to_vec();
        let theirs = Theirs::read(module, at)?;
        // Vectors and strings stay, as above.
        let ours = Descriptor {
            id: word(0)?,
            label: text(word(8)?)?,
            properties: word(16)? as c_int,
            name: text(word(24)?)?,
            maker: text(word(32)?)?,
            copyright: text(word(40)?)?,
            ports: count,
            port_descriptors: ports.clone().leak().as_ptr(),
            port_names: names.leak().as_ptr(),
            port_hints: aligned(&hints),
            data: std::ptr::null_mut(),
            instantiate: Some(instance::instantiate),
            connect_port: Some(instance::connect_port),
            activate: theirs.has(Method::Activate).then_some(instance::activate),
            run: Some(instance::run),
            run_adding: theirs
                .has(Method::RunAdding)
                .then_some(instance::run_adding),
            set_run_adding_gain: theirs
                .has(Method::SetRunAddingGain)
                .then_some(instance::set_run_adding_gain),
            deactivate: theirs
                .has(Method::Deactivate)
                .then_some(instance::deactivate),
            cleanup: Some(instance::cleanup),
        };
        let needed = [Method::Instantiate, Method::ConnectPort, Method::Run];
        if ours.label.is_null() || !needed.iter().all(|method| theirs.has(*method)) {
            return refused("a plug-in lacks its label, or a function that hosts always call");
        }
        Ok(Plugin {
            library,
            ours,
            ports,
            number,
            theirs: Mutex::new(theirs),
        })
    }

    /// Where the module has it in this life. A module that was stopped begins anew: its instances are of an earlier life then.
    pub(crate) fn theirs(&self) -> Option<Theirs> {
        let module = self.library.module;
        let _turn = lock(&self.library.turn);
        if !module.runs() {
            self.library.tell();
            module.restart().ok()?;
        }
        let mut theirs = lock(&self.theirs);
        if theirs.life != module.life() {
            let at = self.library.descriptor(self.number)?;
            *theirs = Theirs::read(module, at).ok()?;
        }
        Some(*theirs)
    }
}

impl Theirs {
    fn read(module: &Module, at: u64) -> Answer<Theirs> {
        let mut methods = [0; METHODS];
        for (place, method) in methods.iter_mut().enumerate() {
            *method = module.function(module.read(at + FIRST_METHOD + 8 * place as u64)?)?;
        }
        Ok(Theirs {
            descriptor: at,
            methods,
            life: module.life(),
        })
    }

    fn has(&self, method: Method) -> bool {
        self.method(method) != 0
    }
}

/// A copy of bytes that stays, where numbers of four bytes may lie.
fn aligned(bytes: &[u8]) -> *const std::ffi::c_void {
    let words = bytes.chunks_exact(4);
    let words: Vec<u32> = words
        .map(|word| u32::from_ne_bytes(word.try_into().unwrap_or_default()))
        .collect();
    words.leak().as_ptr().cast()
}
