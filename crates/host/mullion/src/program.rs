//! Programs: images with a `main`, each run once and as a whole, as `mullion run` does.

use crate::builder::Recipe;
use crate::domain::Domain;
use crate::error::{Error, explain_load};
use crate::fault::Fault;
use crate::gate::Asked;
use crate::held;
use crate::host::Host;
use crate::identity::Identity;
use crate::image::Image;
use crate::import::Imports;
use crate::threads::ProgramThreads;
use mullion_loader::{Admitted, Start};
use mullion_runtime::{CallArguments, Entry, Limits, MAX_STACKS};
use mullion_system::{Grants, Mount, Streams, Threads};
#[cfg(feature = "trust")]
use mullion_trust::Decision;
use mullion_verifier::ImageKind;
use std::sync::Arc;

/// Greatest number of threads that a program has beside its first one: each has a data stack.
pub const MAX_PROGRAM_THREADS: u32 = MAX_STACKS - 1;

/// A program that may be loaded. Nothing of it has been laid out.
///
/// ```no_run
/// use mullion::{Host, ProgramEnd};
///
/// # fn run(bytes: Vec<u8>) -> Result<(), mullion::Error> {
/// let program = Host::new().program("count.mx", bytes)?;
/// let run = program.run().arguments(["count.mx", "a", "b"]).load()?;
/// match run.finish()? {
///     ProgramEnd::Exit(status) => println!("it ended with {status}"),
///     ProgramEnd::Fault(fault) => println!("{fault}"),
///     _ => println!("its entry returned"),
/// }
/// # Ok(()) }
/// ```
pub struct Program {
    host: Host,
    name: String,
    admitted: Admitted,
}

/// What a run of a program is to be made of.
pub struct ProgramBuilder<'a> {
    program: &'a Program,
    arguments: Vec<Vec<u8>>,
    environment: Vec<Vec<u8>>,
    grants: Grants,
    threads: u32,
    limits: Limits,
}

/// A program in a domain of its own, of which nothing has run.
pub struct ProgramRun {
    domain: Domain,
    entry: Entry,
    arguments: CallArguments,
    threads: Option<Arc<ProgramThreads>>,
}

/// How a program ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProgramEnd {
    /// By itself, with this status.
    Exit(i32),
    /// By what it did, or by a limit.
    Fault(Box<Fault>),
    /// Its entry returned without ending the program, as no program of the sysroot does.
    Returned,
}

impl Host {
    /// Verifies a program that is in memory, under a name for errors and logs.
    ///
    /// # Errors
    /// [`Error::Rejected`], [`Error::NotPermitted`], [`Error::NotAProgram`].
    pub fn program(&self, name: &str, bytes: impl Into<Arc<[u8]>>) -> Result<Program, Error> {
        self.program_as(name, bytes.into(), &Asked::default())
    }

    /// As [`Host::program`], with who asks, a compilation record and credentials for the
    /// authoriser.
    ///
    /// # Errors
    /// As [`Host::program`].
    #[cfg(feature = "trust")]
    pub fn program_asked(
        &self,
        name: &str,
        bytes: impl Into<Arc<[u8]>>,
        asked: &Asked<'_>,
    ) -> Result<Program, Error> {
        self.program_as(name, bytes.into(), asked)
    }

    fn program_as(
        &self,
        name: &str,
        bytes: Arc<[u8]>,
        asked: &Asked<'_>,
    ) -> Result<Program, Error> {
        let admitted = self.ask(name, None, bytes, asked)?;
        if admitted.image().kind() != ImageKind::Program {
            return Err(Error::NotAProgram {
                image: name.to_owned(),
            });
        }
        Ok(Program {
            host: self.clone(),
            name: name.to_owned(),
            admitted,
        })
    }
}

impl Program {
    /// What its file says of itself.
    #[must_use]
    pub fn file(&self) -> &mullion_verifier::Image {
        self.admitted.image()
    }

    /// By whose leave, and with which limits. `None` if the host asks nobody.
    #[cfg(feature = "trust")]
    #[must_use]
    pub fn decision(&self) -> Option<&Decision> {
        self.admitted.decision()
    }

    /// A run of it, to be made: without arguments, with the host's standard streams, and with no other power than
    /// memory.
    #[must_use]
    pub fn run(&self) -> ProgramBuilder<'_> {
        ProgramBuilder {
            program: self,
            arguments: Vec::new(),
            environment: Vec::new(),
            grants: Grants::default(),
            threads: 0,
            limits: Limits::default(),
        }
    }
}

impl ProgramBuilder<'_> {
    /// Its arguments, its own name first.
    #[must_use]
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Its environment, `NAME=value` each.
    #[must_use]
    pub fn environment(mut self, variables: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        self.environment
            .extend(variables.into_iter().map(Into::into));
        self
    }

    /// What it may use.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Grants it a directory.
    #[must_use]
    pub fn directory(mut self, mount: Arc<Mount>) -> Self {
        self.grants.mounts.push(mount);
        self
    }

    /// The directory that it begins in, by its own path: in one that it is granted.
    #[must_use]
    pub fn working_directory(mut self, path: impl Into<String>) -> Self {
        self.grants.working = Some(path.into());
        self
    }

    /// Grants it the clocks.
    #[must_use]
    pub fn clock(mut self) -> Self {
        self.grants.clock = true;
        self
    }

    /// Lets it have so many threads at a time beside its first one, at most [`MAX_PROGRAM_THREADS`]. They end with the
    /// program: when its first thread returns from `main`, when any of them calls `exit`, and at a fault of any.
    /// Limits of each call hold for each thread, those of all calls for all threads together. A thread that counts is
    /// a clock, so this grants the measuring of time too.
    #[must_use]
    pub fn threads(mut self, most: u32) -> Self {
        self.threads = most.min(MAX_PROGRAM_THREADS);
        self
    }

    /// Where its standard streams lead, in the place of the host's.
    #[must_use]
    pub fn streams(mut self, streams: Streams) -> Self {
        self.grants.streams = streams;
        self
    }

    /// Lays the program out and maps it. It waits in front of its first instruction.
    ///
    /// # Errors
    /// [`Error::Grants`]; [`Error::UnknownImports`]; [`Error::Runtime`], [`Error::Load`]: it takes more memory than
    /// its limit, or there is no window, memory or mapping left, or a string has a zero byte.
    pub fn load(mut self) -> Result<ProgramRun, Error> {
        let Program {
            host,
            name,
            admitted,
        } = self.program;
        self.grants.check()?;
        // Before it is laid out, which takes as much again.
        let (needed, limit) = (admitted.occupied(), self.limits.memory);
        if needed > limit {
            return Err(mullion_runtime::Error::Memory { needed, limit }.into());
        }
        let image = Image::of_any_kind(host, name, admitted.clone())?;
        let threads = (self.threads > 0).then(|| ProgramThreads::new(self.threads));
        self.grants.threads = threads.clone().map(|threads| threads as Arc<dyn Threads>);
        let identity = Identity::new(name.clone(), image, None);
        let recipe = Recipe {
            imports: Imports::default(),
            limits: self.limits,
            streams: Some(self.grants.streams.clone()),
            grants: Some(self.grants),
        };
        let lines = Arc::default();
        let state = recipe.map(&identity, &lines)?;
        let start = Start::new(self.arguments, self.environment);
        let (entry, arguments) = state.begin(&start).map_err(explain_load)?;
        Ok(ProgramRun {
            domain: Domain::new(identity, lines, state),
            entry,
            arguments,
            threads,
        })
    }
}

impl ProgramRun {
    /// The address at which its window begins: `BASE` in gdb's `add-symbol-file IMAGE -o BASE`.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.domain.base()
    }

    /// The domain that it runs in, for its figures and its place in pictures.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Runs it to its end, on this thread, and waits for the end of its own threads. It runs once: later this is [`Error::Ended`].
    ///
    /// # Errors
    /// What a call may end with, beside a fault and its own end.
    pub fn finish(&self) -> Result<ProgramEnd, Error> {
        let access = self.domain.hold()?;
        let domain = access.domain()?;
        domain.open();
        let called = match &self.threads {
            None => held::invocation(|| domain.call(self.entry, &self.arguments)),
            Some(threads) => threads.run(&self.domain, self.entry, &self.arguments),
        };
        match called {
            Ok(_) => Ok(ProgramEnd::Returned),
            Err(error) => match self.domain.identity().explain(*error) {
                Error::Exit { status, .. } => Ok(ProgramEnd::Exit(status)),
                Error::Fault(fault) => Ok(ProgramEnd::Fault(fault)),
                other => Err(other),
            },
        }
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Program({})", self.name)
    }
}

impl std::fmt::Debug for ProgramRun {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ProgramRun({})", self.domain.name())
    }
}
