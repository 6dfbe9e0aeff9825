//! Processes in the address space of the program.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use mullion_sip::process::{Child, Exit, Options, Program, SpawnError, spawn};
use mullion_sip::wait::Waiter;
use mullion_sip_hosting::Host;
use mullion_sip_hosting::enter_kernel_as_host;

use crate::domain::{DomainStartError, Process, RunningDomain, SipDomain};
use crate::instance::Instance;

/// Instances of libraries that no process has, by name of the process.
type Idle = Arc<Mutex<HashMap<&'static str, Vec<&'static Instance>>>>;

/// The program's own address space.
#[derive(Default)]
pub(crate) struct InHost {
    idle: Idle,
}

/// What a process is started with. It stays until the process has ended.
pub(crate) struct Launch {
    pub(crate) instance: &'static Instance,
    pub(crate) arguments: Vec<String>,
}

struct Life {
    child: Child,
    name: &'static str,
    launch: Mutex<Option<Box<Launch>>>,
    idle: Idle,
}

impl SipDomain for InHost {
    fn start(&mut self, process: &Process) -> Result<Box<dyn RunningDomain>, DomainStartError> {
        // Without a host's power nothing is started at all.
        if let Some(host) = Host::here() {
            host.end_sleepers();
        }
        let free = lock(&self.idle).entry(process.name).or_default().pop();
        let instance = match free {
            Some(instance) => instance,
            None => Instance::load(&process.image)?,
        };
        let launch = Box::new(Launch {
            instance,
            arguments: process.config.arguments.clone(),
        });
        let options = Options {
            limits: process.config.limits.over(process.image.limits()),
            home: process.config.home(),
            rights: process.config.rights(),
        };
        let child = begin(process.name, &launch, &options)?;
        Ok(Box::new(Life {
            child,
            name: process.name,
            launch: Mutex::new(Some(launch)),
            idle: Arc::clone(&self.idle),
        }))
    }
}

/// Begins a life. Its launch, which is this life's alone, stays until it has ended.
pub(crate) fn begin(
    name: &'static str,
    launch: &Launch,
    options: &Options,
) -> Result<Child, SpawnError> {
    // SAFETY: `main` keeps nothing of its own, and the library's statics and thread-locals are put back before
    // each life, so that none sees what another has left there.
    let program = unsafe { Program::new(name, main) };
    let argument = std::ptr::from_ref::<Launch>(launch).expose_provenance();
    spawn(program, argument, options)
}

/// The main function of every process here.
fn main(launch: usize) {
    // SAFETY: the life that was started with it keeps it until the process has ended, or for ever.
    let launch: &Launch = unsafe { &*std::ptr::with_exposed_provenance(launch) };
    {
        // SAFETY: to renew copies memory and makes the library's thread-locals: it does not park, nor run the SIP's code.
        // What it allocates stays with the instance.
        let _host = unsafe { enter_kernel_as_host() };
        // SAFETY: the instance was idle, and is this process's alone from then on.
        unsafe { launch.instance.renew() };
    }
    (launch.instance.main())(&launch.arguments);
}

impl RunningDomain for Life {
    fn look(&self, waiter: Waiter) -> Option<Exit> {
        let exit = self.child.look(Some(waiter))?;
        if let Some(launch) = lock(&self.launch).take() {
            lock(&self.idle)
                .entry(self.name)
                .or_default()
                .push(launch.instance);
        }
        Some(exit)
    }

    fn kill(&self) {
        self.child.kill();
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        // The process may live on, and use it.
        std::mem::forget(lock(&self.launch).take());
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
