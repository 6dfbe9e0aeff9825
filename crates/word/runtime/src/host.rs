//! The host: one table for the process, and who is granted what.

use crate::core::{Core, Domain};
use crate::follow::{self, ModuleStep};
use crate::gates::Import;
use crate::holder::Holder;
use crate::load::{self, LoadError};
use crate::memory::lock;
use crate::module::Module;
use crate::note::Note;
use crate::policy::{FunctionPolicy, Policy};
use crate::report::Report;
use crate::rights::{
    GrantError, Raised, has_some, lower, lower_all, raise_for_good, raise_into, right, take_away,
    words,
};
use crate::world::{self, SetupError, world};
use crate::{fault, fork, thread, watchdog};
use mullion_supervisor::{AuditLog, Permission, Range};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The host's side of the word wall: one for the process, however many handles.
#[derive(Clone, Copy, Debug)]
pub struct Host(());

/// Memory that is granted until this is dropped.
pub struct Granted(Option<Raised>);

impl Granted {
    /// Ends many, and waits once until no access comes that was checked before.
    pub fn end_all(all: impl IntoIterator<Item = Granted>) {
        let raised = all.into_iter().filter_map(|mut granted| granted.0.take());
        let mut raised = raised.peekable();
        if raised.peek().is_some() {
            lower_all(&mut world().supervisor(), raised);
        }
    }
}

/// Memory that is granted to a domain again and again, and not yet. Once it has been granted, a grant and its
/// revocation allocate nothing.
pub struct PreparedGrant {
    core: &'static Core,
    range: Range,
    permission: Permission,
    raised: Option<Raised>,
}

impl Host {
    /// Reserves the table, and installs what is needed in this process. That is handlers for SIGSEGV, SIGBUS, SIGILL,
    /// SIGFPE and SIGTRAP, which pass on what is not theirs, and two real-time signals.
    pub fn new() -> Result<Host, SetupError> {
        world::open(|| {
            fault::install()?;
            mullion_signals::open_in_handlers(libc::SIGSEGV);
            watchdog::install()
        })?;
        fork::register();
        Ok(Host(()))
    }

    /// Sees to it that calls can be ended in the calling thread. A thread's first call does the same. A thread may
    /// later block SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGTRAP, or switch its alternate signal stack off. Then it
    /// calls this before its next call of a domain. So does the destructor of a thread-local, because Rust's standard
    /// library has switched the stack off by then. Otherwise a fault of the domain may end the process.
    ///
    /// It also opens SIGSEGV in all handlers of the process that are without SA_ONSTACK, as [`Host::new`] does. So a module
    /// that has left such a handler no room does not end the process.
    ///
    /// # Errors
    /// The system refuses memory.
    pub fn prepare_thread(&self) -> std::io::Result<()> {
        thread::prepare()
    }

    /// Puts this library's handlers of faults in front again, where the host has installed its own since, as httpd does in its
    /// children. What was installed over them is not called any more.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub fn take_signals_back(&self) -> std::io::Result<()> {
        mullion_signals::open_in_handlers(libc::SIGSEGV);
        fault::install()
    }

    /// Makes a domain of a module. Functions of the host are found by `dlsym`.
    pub fn load(&self, module: &Arc<Module>, policy: Policy) -> Result<Domain, LoadError> {
        self.load_with(module, policy, &mut load::dlsym)
    }

    /// As [`load`](Self::load); `resolve` says where a symbol of the host is.
    pub fn load_with(
        &self,
        module: &Arc<Module>,
        policy: Policy,
        resolve: &mut dyn FnMut(&str) -> Option<usize>,
    ) -> Result<Domain, LoadError> {
        Domain::load(module, policy, None, resolve)
    }

    /// Makes a domain that *learns*: what would be refused is told to `hook`, and done. So it is **not confined**, and
    /// this is for runs that find out what a policy must allow. What `policy` allows is not told.
    ///
    /// Other faults (an address without memory, a jump to no label, limits) end calls as in any domain. Each refused
    /// access traps again: a loop of a million of them takes seconds.
    ///
    /// `hook` may run in the handler of a signal, on a stack of 256 KiB. A call of a domain from there is refused.
    ///
    /// # Safety
    /// The host bears whatever the module does.
    pub unsafe fn learn_with(
        &self,
        module: &Arc<Module>,
        policy: Policy,
        resolve: &mut dyn FnMut(&str) -> Option<usize>,
        hook: impl Fn(&Note<'_>) + Send + Sync + 'static,
    ) -> Result<Domain, LoadError> {
        Domain::load(module, policy, Some(Arc::new(hook)), resolve)
    }

    /// As [`learn_with`](Self::learn_with); functions of the host are found by `dlsym`.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn learn(
        &self,
        module: &Arc<Module>,
        policy: Policy,
        hook: impl Fn(&Note<'_>) + Send + Sync + 'static,
    ) -> Result<Domain, LoadError> {
        // SAFETY: the host bears whatever the module does, as both functions say.
        unsafe { self.learn_with(module, policy, &mut load::dlsym, hook) }
    }

    /// Lets a domain read, or read and write, memory of the host until [`revoke`](Self::revoke).
    ///
    /// # Safety
    /// The host bears what the domain writes there, at any time.
    pub unsafe fn grant(
        &self,
        domain: &Domain,
        address: usize,
        bytes: usize,
        write: bool,
    ) -> Result<(), GrantError> {
        let range = words(address as u64, bytes as u64)?;
        let mut supervisor = world().supervisor();
        raise_for_good(&mut supervisor, &domain.core.holder, range, right(write))
    }

    /// As [`grant`](Self::grant), until the answer is dropped.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn grant_for(
        &self,
        domain: &Domain,
        address: usize,
        bytes: usize,
        write: bool,
    ) -> Result<Granted, GrantError> {
        let range = words(address as u64, bytes as u64)?;
        let (mut supervisor, holder) = (world().supervisor(), &domain.core.holder);
        let mut raised = Raised::Already;
        raise_into(&mut supervisor, holder, range, right(write), &mut raised)?;
        Ok(Granted(Some(raised)))
    }

    /// Prepares what [`grant_for`](Self::grant_for) does.
    ///
    /// # Safety
    /// The host bears what the domain writes there, whenever it is granted.
    pub unsafe fn prepare(
        &self,
        domain: &Domain,
        address: usize,
        bytes: usize,
        write: bool,
    ) -> Result<PreparedGrant, GrantError> {
        Ok(PreparedGrant {
            core: domain.core,
            range: words(address as u64, bytes as u64)?,
            permission: right(write),
            raised: None,
        })
    }

    /// Takes memory from all domains. When it returns, no access comes that was checked before, on any thread.
    pub fn revoke(&self, address: usize, bytes: usize) -> Result<(), GrantError> {
        let range = words(address as u64, bytes as u64)?;
        let domains: Vec<_> = lock(&world().domains).all().collect();
        for core in &domains {
            core.keep.settle(core);
        }
        let mut supervisor = world().supervisor();
        let has_some = |(_, holder): &(_, &Holder)| has_some(&supervisor, holder, range);
        let all = domains
            .iter()
            .flat_map(|core| core.holders().map(move |one| (core, one)));
        let holders: Vec<_> = all.filter(has_some).collect();
        for (core, holder) in holders {
            core.inner.edition.fetch_add(1, Ordering::Release);
            take_away(&mut supervisor, holder, range);
        }
        Ok(())
    }

    /// Lets a domain call addresses that it has not by name: a host's structures have pointers to functions. Each entry
    /// is the address of the call, a name for reports, where the call goes, and what the call means. A call goes to the
    /// same address, or to a function that stands for it. Every call of this makes a table anew that stays, so it is
    /// for few calls of many entries. A call whose policy says what [`load`](Self::load) would refuse, of which nobody would
    /// look at all, is refused.
    ///
    /// # Safety
    /// Functions are at the addresses where calls go, as long as the domain lives. They may be called with any arguments
    /// that their policies let through.
    pub unsafe fn offer(
        &self,
        domain: &Domain,
        calls: impl IntoIterator<Item = (usize, String, usize, Option<FunctionPolicy>)>,
    ) {
        let words = domain.core.module.parts.control_words;
        let import =
            |(at, name, target, policy): (usize, String, usize, Option<FunctionPolicy>)| {
                let import = match &policy {
                    Some(policy) if !policy.is_whole() => Import::refused(&name),
                    _ => Import::new(&name, target as u64, policy, words),
                };
                // A gate may have its address as long as the process lives.
                (at as u64, &*Box::leak(Box::new(import)))
            };
        load::offer(domain.core, calls.into_iter().map(import).collect());
    }

    /// Lets `from` call a function of `to` by its address, without the host.
    pub fn link(&self, from: &Domain, to: &Domain, name: &str) -> Result<(), GrantError> {
        let missing = GrantError::NoMemory {
            address: 0,
            bytes: 0,
        };
        let gate = to.function(name).ok_or(missing)? as u64;
        let from = from.core.holder.subject;
        load::export_gate(&mut world().supervisor(), from, to.core.id, gate)?;
        Ok(())
    }

    /// Keeps the latest `decisions` of the supervisor from now on: who was granted and lost what, made and ended. A log that is
    /// to be replayed by the hardware model (docs/model.md) begins before the first domain, and loses none.
    pub fn start_audit(&self, decisions: usize) {
        world().supervisor().start_audit(decisions);
    }

    /// Ends that, and gives what was kept.
    #[must_use]
    pub fn take_audit(&self) -> Option<AuditLog> {
        world().supervisor().stop_audit()
    }

    /// How many decisions there were since [`start_audit`](Self::start_audit).
    #[must_use]
    pub fn audited(&self) -> u64 {
        world().supervisor().audit().map_or(0, AuditLog::total)
    }

    /// Tells what modules do that are loaded from now on, instruction by instruction, on the first thread that enters one.
    /// Their calls take the slow way, and each instruction some microseconds: this is for traces. Instructions are told in the
    /// handler of a signal, on a stack of 256 KiB. The hook must not call into a domain. The first hook stays: says whether
    /// this one is it.
    pub fn follow(&self, hook: impl Fn(ModuleStep<'_>) + Send + Sync + 'static) -> bool {
        follow::set(Box::new(hook))
    }

    /// Is called with each report, behind the call that has ended, before its caller goes on.
    pub fn on_fault(&self, hook: impl Fn(&Report) + Send + Sync + 'static) {
        *lock(&world().hook) = Some(Arc::new(hook));
    }
}

impl PreparedGrant {
    /// The domain has it until [`revoke`](Self::revoke), or until this is dropped.
    pub fn grant(&mut self) -> Result<(), GrantError> {
        if self.raised.is_none() {
            let mut supervisor = world().supervisor();
            let raised = self.raised.insert(Raised::Already);
            let holder = &self.core.holder;
            let done = raise_into(&mut supervisor, holder, self.range, self.permission, raised);
            if done.is_err() {
                self.raised = None;
            }
            return done;
        }
        Ok(())
    }

    /// When it returns, no access comes that was checked before, on any thread.
    pub fn revoke(&mut self) {
        if let Some(raised) = &self.raised {
            lower(&mut world().supervisor(), raised);
            self.raised = None;
        }
    }
}

impl Drop for PreparedGrant {
    fn drop(&mut self) {
        self.revoke();
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        if let Some(raised) = &self.0 {
            lower(&mut world().supervisor(), raised);
        }
    }
}
