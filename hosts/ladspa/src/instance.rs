//! An instance of a plug-in, and its ports.
//!
//! ```text
//!   control ports   the host's float ◄──copy──► a float that is the module's          (one word each)
//!   audio ports     the host's buffer itself, granted for the length of `run`: inputs to read, outputs to write
//! ```
//!
//! A module that is stopped is silent: outputs are zeros, and the host goes on.

use crate::abi::{AUDIO, CONTROL, Descriptor, Handle, INPUT, Method, OUTPUT};
use crate::plugin::{Plugin, Theirs};
use mullion_bridge::gate;
use mullion_word_runtime::PreparedGrant;
use std::ffi::c_ulong;

/// A buffer of the host's, and its grant.
struct Buffer {
    at: usize,
    count: c_ulong,
    grant: PreparedGrant,
}

/// A port.
#[derive(Default)]
struct Port {
    /// What the host has connected.
    at: usize,
    buffer: Option<Buffer>,
}

/// An instance. One thread at a time uses it, as LADSPA has it.
struct Instance {
    plugin: &'static Plugin,
    theirs: Theirs,
    /// The module's own handle.
    inner: u64,
    /// The floats of control ports, on the module's heap.
    controls: u64,
    ports: Vec<Port>,
}

/// The instance of a handle.
///
/// # Safety
/// `instantiate` has made it, and nobody else uses it meanwhile.
unsafe fn instance<'a>(handle: Handle) -> &'a mut Instance {
    // SAFETY: `instantiate` made the handle from a box, and the caller lets nobody else use it meanwhile.
    unsafe { &mut *handle.cast::<Instance>() }
}

pub(crate) extern "C" fn instantiate(descriptor: *const Descriptor, rate: c_ulong) -> Handle {
    let Some(plugin) = crate::find(descriptor) else {
        return std::ptr::null_mut();
    };
    let module = plugin.library.module;
    let made = plugin.theirs().and_then(|theirs| {
        let controls = module.take(4 * plugin.ports.len().max(1) as u64)?;
        let make = gate!(theirs.method(Method::Instantiate), fn(u64, c_ulong) -> u64);
        let inner = make(theirs.descriptor, rate);
        if inner == 0 || !module.runs() {
            module.heap().give(controls);
            return None;
        }
        Some(Instance {
            plugin,
            theirs,
            inner,
            controls,
            ports: plugin.ports.iter().map(|_| Port::default()).collect(),
        })
    });
    match made {
        Some(instance) => Box::into_raw(Box::new(instance)).cast(),
        None => {
            if !module.runs() {
                plugin.library.tell();
            }
            std::ptr::null_mut()
        }
    }
}

impl Instance {
    fn is_alive(&self) -> bool {
        let module = self.plugin.library.module;
        module.runs() && module.life() == self.theirs.life
    }

    /// Calls a function of the module, if it has one and takes calls; whether it has returned.
    fn call(&self, method: Method, call: impl FnOnce(u64)) -> bool {
        let function = self.theirs.method(method);
        if function == 0 || !self.is_alive() {
            return false;
        }
        call(function);
        let returned = self.is_alive();
        if !returned {
            self.plugin.library.tell();
        }
        returned
    }

    fn kind(&self, port: usize) -> i32 {
        self.plugin.ports[port]
    }

    fn is(&self, port: usize, kind: i32) -> bool {
        self.kind(port) & kind == kind
    }

    fn control(&self, port: usize) -> *mut f32 {
        (self.controls as *mut f32).wrapping_add(port)
    }

    /// Copies the floats of control ports: before a call those for input, behind it those for output.
    fn copy_controls(&self, direction: i32) {
        for (number, port) in self.ports.iter().enumerate() {
            if port.at != 0 && self.is(number, CONTROL | direction) {
                let (ours, theirs) = (port.at as *mut f32, self.control(number));
                let (from, to) = match direction {
                    INPUT => (ours, theirs),
                    _ => (theirs, ours),
                };
                // SAFETY: the host has connected its float, and the other is on the module's heap, for as many as there
                // are ports. Any bits are a float.
                unsafe { to.write_volatile(from.read_volatile()) };
            }
        }
    }

    /// Grants the buffers of audio ports; whether that could be done.
    fn grant(&mut self, count: c_ulong) -> bool {
        let module = self.plugin.library.module;
        for (number, port) in self.ports.iter_mut().enumerate() {
            let kind = self.plugin.ports[number];
            if kind & AUDIO == 0 || port.at == 0 || count == 0 {
                continue;
            }
            let is_same = |buffer: &Buffer| (buffer.at, buffer.count) == (port.at, count);
            if !port.buffer.as_ref().is_some_and(is_same) {
                let bytes = count as usize * size_of::<f32>();
                let (host, domain) = (&module.host, &module.domain);
                // SAFETY: the host has connected so many floats, which the plug-in is to read or write.
                let grant = unsafe { host.prepare(domain, port.at, bytes, kind & OUTPUT != 0) };
                let Ok(grant) = grant else {
                    return false;
                };
                port.buffer = Some(Buffer {
                    at: port.at,
                    count,
                    grant,
                });
            }
            let granted = port.buffer.as_mut().map(|buffer| buffer.grant.grant());
            if !matches!(granted, Some(Ok(()))) {
                return false;
            }
        }
        true
    }

    fn revoke(&mut self) {
        for port in &mut self.ports {
            if let Some(buffer) = &mut port.buffer {
                buffer.grant.revoke();
            }
        }
    }

    /// Outputs are zeros.
    fn silence(&self, count: c_ulong) {
        for (number, port) in self.ports.iter().enumerate() {
            if port.at != 0 && self.is(number, AUDIO | OUTPUT) {
                // SAFETY: the host has connected so many floats for output.
                unsafe { std::ptr::write_bytes(port.at as *mut f32, 0, count as usize) };
            }
        }
    }

    fn run(&mut self, method: Method, count: c_ulong) {
        let mut ran = false;
        if self.is_alive() {
            self.copy_controls(INPUT);
            if self.grant(count) {
                let inner = self.inner;
                ran = self.call(method, |run| gate!(run, fn(u64, c_ulong))(inner, count));
            }
            self.revoke();
            if ran {
                self.copy_controls(OUTPUT);
            }
        }
        if !ran && matches!(method, Method::Run) {
            self.silence(count);
        }
    }
}

pub(crate) extern "C" fn connect_port(handle: Handle, port: c_ulong, at: *mut f32) {
    // SAFETY: the host passes a handle that it was given.
    let instance = unsafe { instance(handle) };
    let number = port as usize;
    let Some(known) = instance.ports.get_mut(number) else {
        return;
    };
    let is_same = known.at == at as usize;
    known.at = at as usize;
    if is_same {
        return;
    }
    known.buffer = None;
    let theirs = match instance.is(number, CONTROL) {
        true if !at.is_null() => {
            // A plug-in may look at it at once. The first value is there, then.
            instance.copy_controls(INPUT);
            instance.control(number) as u64
        }
        _ => at as u64,
    };
    let inner = instance.inner;
    instance.call(Method::ConnectPort, |connect| {
        gate!(connect, fn(u64, c_ulong, u64))(inner, port, theirs);
    });
}

/// Functions whose argument is an instance.
macro_rules! plain {
    ($($name:ident, $method:ident;)*) => { $(
        pub(crate) extern "C" fn $name(handle: Handle) {
            // SAFETY: the host passes a handle that it was given.
            let instance = unsafe { instance(handle) };
            // A plug-in may look at its controls here.
            instance.copy_controls(INPUT);
            let inner = instance.inner;
            instance.call(Method::$method, |function| gate!(function, fn(u64))(inner));
        }
    )* };
}
plain! {
    activate, Activate;
    deactivate, Deactivate;
}

pub(crate) extern "C" fn run(handle: Handle, count: c_ulong) {
    // SAFETY: the host passes a handle that it was given.
    unsafe { instance(handle) }.run(Method::Run, count);
}

pub(crate) extern "C" fn run_adding(handle: Handle, count: c_ulong) {
    // SAFETY: the host passes a handle that it was given, and runs an instance on one thread at a time.
    unsafe { instance(handle) }.run(Method::RunAdding, count);
}

pub(crate) extern "C" fn set_run_adding_gain(handle: Handle, gain: f32) {
    // SAFETY: the host passes a handle that it was given, and calls an instance on one thread at a time.
    let instance = unsafe { instance(handle) };
    let inner = instance.inner;
    instance.call(Method::SetRunAddingGain, |set| {
        gate!(set, fn(u64, f32))(inner, gain);
    });
}

pub(crate) extern "C" fn cleanup(handle: Handle) {
    // SAFETY: as above; the host does not use it any more.
    let instance = unsafe { Box::from_raw(handle.cast::<Instance>()) };
    let inner = instance.inner;
    instance.call(Method::Cleanup, |function| {
        gate!(function, fn(u64))(inner);
    });
    if instance.is_alive() {
        let module = instance.plugin.library.module;
        module.heap().give(instance.controls);
    }
}
