//! Processes in the address space of the program.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use mullion_sip::critical::as_host;
use mullion_sip::process::{Child, Exit, Options, Program, spawn};
use mullion_sip::wait::Waiter;

use crate::domain::{Domain, LaunchError, Process, Running};
use crate::instance::Instance;

/// Instances of libraries that no process has, by name of the process.
type Idle = Arc<Mutex<HashMap<&'static str, Vec<&'static Instance>>>>;

/// The program's own address space.
#[derive(Default)]
pub(crate) struct Same {
    idle: Idle,
}

/// What a process is started with. It stays until the process has ended.
struct Launch {
    instance: &'static Instance,
    arguments: Vec<String>,
}

struct Life {
    child: Child,
    name: &'static str,
    launch: Mutex<Option<Box<Launch>>>,
    idle: Idle,
}

impl Domain for Same {
    fn start(&mut self, process: &Process) -> Result<Box<dyn Running>, LaunchError> {
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
        // SAFETY: `main` keeps nothing of its own, and the library's statics and thread-locals are put back before
        // each life, so that none sees what another has left there.
        let program = unsafe { Program::new(process.name, main) };
        let argument = std::ptr::from_ref::<Launch>(&launch).expose_provenance();
        let child = spawn(program, argument, &options)?;
        Ok(Box::new(Life {
            child,
            name: process.name,
            launch: Mutex::new(Some(launch)),
            idle: Arc::clone(&self.idle),
        }))
    }
}

/// The main function of every process here.
fn main(launch: usize) {
    // SAFETY: the life that was started with it keeps it until the process has ended, or for ever.
    let launch: &Launch = unsafe { &*std::ptr::with_exposed_provenance(launch) };
    {
        let _host = as_host();
        // SAFETY: the instance was idle, and is this process's alone from then on.
        unsafe { launch.instance.renew() };
    }
    (launch.instance.main())(&launch.arguments);
}

impl Running for Life {
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
