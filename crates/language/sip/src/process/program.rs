//! From a program to a process.

use mullion_sip_core::Refused;
use mullion_sip_core::owner::Owner;
use mullion_sip_core::process::{Child, Exit, First, Options, SpawnError};

use crate::inner::{CORE, EXCHANGE};
use mullion_sip_exchange::exchange::Handles;
use mullion_sip_exchange::interior::Parcel;

/// Code that can be a process: its main function, which gets one value.
#[derive(Debug)]
pub struct Program<T> {
    name: &'static str,
    main: fn(T),
}

impl<T> Clone for Program<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Program<T> {}

impl<T: Handles> Program<T> {
    /// A program that is linked into the host.
    ///
    /// # Safety
    /// The code keeps nothing of its heap, and nothing that refers to its stacks, in statics or in thread-local
    /// variables: these outlive the process. A separately built SIP has its own; for one in the host nobody
    /// checks it. It lends nothing of a thread's stack to another. It starts no threads of the operating system: these
    /// would use heaps and stacks that are another's after its end. No initialiser of a `thread_local!` waits or
    /// yields: another thread on the worker could initialise and borrow the value, which the first then replaces. It
    /// keeps its hands off the host's [`Host`] and
    /// [`Deputy`], wherever the host keeps them.
    ///
    /// [`Host`]: crate::host::Host
    /// [`Deputy`]: crate::host::Deputy
    pub const unsafe fn new(name: &'static str, main: fn(T)) -> Program<T> {
        Program { name, main }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}

/// What a new process runs first: the program's main function, with its argument.
struct Main<T: Handles> {
    main: fn(T),
    argument: Parcel<T>,
}

impl<T: Handles + 'static> First for Main<T> {
    #[inline]
    fn ask(&self, owner: Owner) -> Result<(), Refused> {
        EXCHANGE.ask(&self.argument, owner)
    }

    #[inline]
    fn into_main(self, owner: Owner) -> impl FnOnce() + 'static {
        let (main, argument) = (self.main, EXCHANGE.open_for(self.argument, owner));
        move || main(argument)
    }
}

/// Makes a process that runs `program` with `argument`, as a child of the calling one. Blocks and endpoints in
/// the argument are the child's from then on.
pub fn spawn<T: Handles>(
    program: Program<T>,
    argument: T,
    options: &Options,
) -> Result<Child, SpawnError> {
    let _host = CORE.as_host_moving::<T>();
    let first = || Main {
        main: program.main,
        argument: EXCHANGE.pack(argument),
    };
    CORE.spawn(program.name, first, options)
}

/// Ends the calling process with a status. Nothing of it runs again, and nothing is dropped.
///
/// # Panics
/// In no process.
pub fn exit(status: u8) -> ! {
    CORE.exit(status)
}

/// Ends the calling process as something that it stands for has ended.
///
/// # Panics
/// In no process.
pub fn end_as(exit: Exit) -> ! {
    CORE.end_as(exit)
}
