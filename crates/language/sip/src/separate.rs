//! SIPs that are built on their own, as libraries, and loaded by a host that has judged their manifest.
//!
//! ```text
//!   host: file -> manifest agrees -> library is mapped -> mullion_sip_entry(kernel) -> Entry
//!         each life: the library's own statics as they were -> a process -> Entry::main
//! ```
//! The library is written in safe Rust with the feature `separate` of this crate:
//!
//! ```ignore
//! #![forbid(unsafe_code)]
//!
//! fn main(arguments: Vec<String>) -> Result<(), mullion_sip::process::names::NameError> {
//!     let service = mullion_sip::process::serve("/echo", echo::Contract::INFO)?;
//!     // ...
//! }
//!
//! mullion_sip::sip_main! {
//!     name: "echo",
//!     main: main,
//!     contracts: [echo],
//!     limits: { memory: 4 << 20, threads: 8 },
//! }
//! ```

use std::fmt::Write;

pub use mullion_sip_core::locals::Template;

use crate::inner::CORE;
use crate::kernel::Kernel;
use crate::process::{self, Cause, Exit, Message};

/// The distance from the thread pointer to what an OS thread has in this program. It must be the same on each thread:
/// libraries that are attached find it by this.
pub fn here() -> usize {
    CORE.distance()
}

/// What a SIP gives its host when it is attached.
#[derive(Debug)]
pub struct Entry {
    /// Says where the initial image of the library's thread-locals is, once and before any process has it.
    ///
    /// # Safety of calls
    /// It is there, and stays.
    pub locals: unsafe fn(Template),
    /// Runs the SIP with arguments, in a process. They are copied.
    pub main: fn(arguments: &[String]),
    /// The manifest, once more.
    pub manifest: &'static [u8],
}

/// The function that a host calls, once after loading: [`crate::manifest::ENTRY`]. It gives null if the kernel's
/// version is another.
pub type EntryFunction = unsafe extern "C" fn(kernel: &'static Kernel) -> Option<&'static Entry>;

/// What the main function of a SIP may return.
pub trait Outcome {
    /// Ends the process if it failed.
    fn end(self);
}

impl Outcome for () {
    fn end(self) {}
}

/// A failure exits with 1 and leaves its text.
impl<E: std::fmt::Display> Outcome for Result<(), E> {
    fn end(self) {
        if let Err(error) = self {
            let mut message = Message::EMPTY;
            // Writing to a message does not fail; it cuts.
            let _ = write!(message, "{error}");
            process::end_as(Exit {
                cause: Cause::Exited(1),
                message,
            });
        }
    }
}

#[cfg(feature = "separate")]
pub use library::{attach, run};
#[cfg(feature = "separate")]
pub use mullion_sip_core::locals::{HERE, Index, LOCALS, THREAD, at_end, find, use_template};

#[cfg(feature = "separate")]
mod world;

#[cfg(feature = "separate")]
mod library {
    use std::io::{self, Write};

    use super::{Entry, Outcome};
    use crate::inner::CORE;
    use crate::kernel::{Kernel, VERSION};
    use crate::state;

    /// From here on this library's copy of the crate is the host's.
    ///
    /// # Safety
    /// `kernel` is the table of a host that has found this library's manifest to agree with it. The host calls this
    /// once, before anything else of the library.
    pub unsafe fn attach(kernel: &'static Kernel, entry: &'static Entry) -> Option<&'static Entry> {
        if kernel.version != VERSION {
            return None;
        }
        super::world::link();
        // SAFETY: the manifests agree, so the layouts do. Nothing of this library has run but its allocator.
        unsafe { state::attach(kernel.state.0) };
        crate::kernel::attach(kernel);
        CORE.install_panic_hook();
        // Made at its first use, which must not be a process's.
        let _ = io::stdout().flush();
        Some(entry)
    }

    /// [`Entry::main`].
    pub fn run<O: Outcome>(main: fn(Vec<String>) -> O, arguments: &[String]) {
        CORE.contain(|| main(arguments.to_vec()).end());
    }
}

/// Makes a library a SIP: its manifest, its entry and its allocator.
///
/// `name`, `main` and, if there are any, `contracts` (their modules' paths) and `limits` (fields of
/// [`Limits`](crate::process::Limits)), in this order. `main` gets the arguments of the configuration, and gives
/// nothing or a [`Result`].
#[macro_export]
macro_rules! sip_main {
    (
        name: $name:expr,
        main: $main:path
        $(, contracts: [$($($contract:ident)::+),* $(,)?])?
        $(, limits: { $($limit:ident: $value:expr),* $(,)? })?
        $(,)?
    ) => {
        #[global_allocator]
        static MULLION_SIP_HEAPS: $crate::heap::ProcessHeaps = $crate::heap::ProcessHeaps;

        $crate::__core::__locals!();

        const _: () = {
            const DECLARED: $crate::manifest::Declared = $crate::manifest::Declared {
                name: $name,
                #[allow(clippy::needless_update)]
                limits: $crate::process::Limits {
                    $($($limit: $value,)*)?
                    ..$crate::process::Limits::DEFAULT
                },
                contracts: &[$($(<$($contract)::+::Contract as $crate::channel::Contract>::INFO),*)?],
            };

            #[used]
            #[unsafe(link_section = ".mullion.sip")]
            static MANIFEST: [u8; DECLARED.length()] = DECLARED.encode();

            static ENTRY: $crate::separate::Entry = $crate::separate::Entry {
                locals: $crate::separate::use_template,
                main: |arguments| $crate::separate::run($main, arguments),
                manifest: &MANIFEST,
            };

            #[unsafe(no_mangle)]
            unsafe extern "C" fn mullion_sip_entry(
                kernel: &'static $crate::kernel::Kernel,
            ) -> Option<&'static $crate::separate::Entry> {
                // SAFETY: the host calls this once, with its own table, before anything else of the library runs:
                // `attach` asks for that.
                unsafe { $crate::separate::attach(kernel, &ENTRY) }
            }
        };
    };
}
