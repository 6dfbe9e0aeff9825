//! Domains behind handles, and the host functions that they call.

use crate::jump;
use crate::live::LiveFunction;
use crate::pool::Taken;
use crate::status::{Failure, HostRefused, OK, OUTPUT_LIMIT, Status};
use crate::table::{self, Handle, Object};
use crate::value::{self, HostArguments, Pointer, User, Value};
use mullion_host as host;
use mullion_host::{
    BoxedError, Buffer, CallArguments, CallLimits, Callback, Callee, Caller, Class, DomainBuilder,
    DomainMemory, Export, Identity, Ptr, RawArguments, RawResult, Returned, Target,
};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// What a handle of a domain stands for. There before the domain is, since its
/// constructors may call host functions, which are told the handle.
pub(crate) struct Domain {
    loaded: OnceLock<host::Domain>,
    own: Arc<Own>,
    /// What has it taken out of a pool, until that is to go back.
    taken: Mutex<Option<Taken>>,
}

/// What the domain and its host functions both know of it.
struct Own {
    /// Of its handle. A domain of a pool has another one for each use.
    number: AtomicU64,
    /// What `mullion_alloc` gave, by address.
    buffers: Mutex<HashMap<u64, Buffer<u8>>>,
}

/// An export, of one domain, or of whatever one serves.
pub(crate) enum Function {
    Of(Exported),
    Live(LiveFunction),
}

/// An export of one domain.
pub(crate) struct Exported {
    pub(crate) domain: Arc<Domain>,
    pub(crate) export: Export,
}

thread_local! {
    /// The innermost caller on whose behalf a host function is running on this thread.
    /// Without a destructor: host functions are called in the very end of a thread, too.
    static CALLER: Cell<*const Calling> = const { Cell::new(ptr::null()) };
}

/// A domain that has called a host function.
struct Calling {
    /// The domain's.
    number: u64,
    caller: *const c_void,
    outer: *const Calling,
}

impl Domain {
    /// Makes a domain and its handle.
    pub(crate) fn load(builder: DomainBuilder) -> Result<Arc<Self>, Failure> {
        let own = Arc::new(Own {
            number: AtomicU64::new(0),
            buffers: Mutex::default(),
        });
        let domain = Arc::new(Self {
            loaded: OnceLock::new(),
            own: own.clone(),
            taken: Mutex::default(),
        });
        domain.give_handle()?;
        match builder.user(own).load() {
            Ok(loaded) => {
                domain.loaded.get_or_init(|| loaded);
                Ok(domain)
            }
            Err(error) => {
                // A constructor's host function may have unloaded it before.
                let _taken = table::free_handle(domain.handle(), Object::domain);
                Err(error.into())
            }
        }
    }

    /// A handle, in the place of one that is void.
    pub(crate) fn give_handle(self: &Arc<Self>) -> Result<(), Failure> {
        let handle = table::add(Object::Domain(self.clone()))?;
        self.own.number.store(handle.number, Ordering::Relaxed);
        Ok(())
    }

    /// The one that it has.
    pub(crate) fn handle(&self) -> Handle {
        self.own.handle()
    }

    /// The domain, unless its constructors are still running.
    #[inline]
    pub(crate) fn loaded(&self) -> Result<&host::Domain, Failure> {
        self.loaded.get().ok_or_else(Failure::loading)
    }

    /// At once, or when it is idle.
    pub(crate) fn restart(&self, at_most: Option<Duration>) -> Result<(), Failure> {
        let loaded = self.loaded()?;
        match at_most {
            None => loaded.restart()?,
            Some(at_most) => loaded.restart_when_idle(at_most)?,
        }
        // Other threads may have allocated since; or restarted it again, and do this then.
        let restarts = loaded.restarts().unwrap_or(0);
        self.buffers(|buffers| buffers.retain(|_, buffer| buffer.restarts() >= restarts));
        Ok(())
    }

    pub(crate) fn restarts(&self) -> Result<u64, Failure> {
        self.within(|target| target.restarts())
    }

    pub(crate) fn unload(&self) -> Result<(), Failure> {
        self.loaded()?.unload()?;
        self.buffers(|buffers| buffers.clear());
        // A pool makes another one in its place.
        self.give_back();
        Ok(())
    }

    fn taken(&self) -> MutexGuard<'_, Option<Taken>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It was taken out of a pool, and knows what is to go back.
    pub(crate) fn take_from_pool(&self, taken: Taken) {
        *self.taken() = Some(taken);
    }

    pub(crate) fn is_from_pool(&self) -> bool {
        self.taken().is_some()
    }

    /// It goes back to the pool that it was taken out of, if it was.
    pub(crate) fn give_back(&self) {
        let taken = self.taken().take();
        drop(taken);
    }

    #[inline]
    pub(crate) fn read(&self, from: Pointer, to: &mut [u8]) -> Result<(), Failure> {
        self.within(|target| {
            let from = Ptr::<u8>::from_address(from.address);
            from.slice(target, to.len() as u64)?.copy_to(to)
        })
    }

    #[inline]
    pub(crate) fn write(&self, to: Pointer, from: &[u8]) -> Result<(), Failure> {
        self.within(|target| {
            let to = Ptr::<u8>::from_address(to.address);
            to.slice(target, from.len() as u64)?.copy_from(from)
        })
    }

    pub(crate) fn read_string(&self, from: Pointer, longest: usize) -> Result<CString, Failure> {
        self.within(|target| Ptr::<u8>::from_address(from.address).c_string(target, longest))
    }

    pub(crate) fn alloc(&self, length: u64) -> Result<Pointer, Failure> {
        let buffer = self.within(|target| target.alloc(length))?;
        Ok(self.keep(buffer))
    }

    pub(crate) fn copy_in(&self, content: &[u8]) -> Result<Pointer, Failure> {
        let buffer = self.within(|target| target.copy_in(content))?;
        Ok(self.keep(buffer))
    }

    /// Gives back what is there, if `is_it` says so.
    pub(crate) fn free(
        &self,
        pointer: Pointer,
        is_it: impl FnOnce(&Buffer<u8>) -> bool,
    ) -> Result<(), Failure> {
        let taken = self.buffers(|buffers| {
            is_it(buffers.get(&pointer.address)?).then(|| buffers.remove(&pointer.address))?
        });
        match taken {
            None if pointer.address != 0 => Err(Failure::not_allocated(pointer.address)),
            _ => Ok(()),
        }
    }

    pub(crate) fn call_pointer(
        &self,
        function: Pointer,
        arguments: &CallArguments,
    ) -> Result<Returned, Failure> {
        let function = Callback::<fn()>::from_address(function.address);
        self.within(|target| function.call_raw(target, arguments))
    }

    fn keep(&self, buffer: Buffer<u8>) -> Pointer {
        let address = buffer.ptr().address();
        self.buffers(|buffers| {
            // Of two from the same place the one is from before a restart, whoever comes first.
            let newer = buffers
                .get(&address)
                .is_some_and(|other| other.restarts() > buffer.restarts());
            if !newer {
                buffers.insert(address, buffer);
            }
        });
        Pointer { address }
    }

    fn buffers<R>(&self, change: impl FnOnce(&mut HashMap<u64, Buffer<u8>>) -> R) -> R {
        let mut buffers = self
            .own
            .buffers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        change(&mut buffers)
    }

    /// Uses the domain as the one that has called on this thread.
    pub(crate) fn calling<R>(
        &self,
        run: impl FnOnce(&Caller<'_>) -> Result<R, host::Error>,
    ) -> Result<R, Failure> {
        self.within(|target| match target {
            Target::Caller(caller) => Ok(Some(run(caller)?)),
            Target::Domain(_) => Ok(None),
        })?
        .ok_or_else(|| Failure::argument("no host function of the domain's runs on this thread"))
    }

    pub(crate) fn shared_pointer(
        &self,
        shared: &host::Shared,
        offset: u64,
    ) -> Result<u64, Failure> {
        self.within(|target| Ok(shared.ptr::<u8>(target, offset)?.address()))
    }

    /// Uses the domain: as the one that has called on this thread, if it has.
    #[expect(
        clippy::inline_always,
        reason = "what `run` gives is not moved in memory"
    )]
    #[inline(always)]
    fn within<R>(
        &self,
        run: impl FnOnce(&Target<'_>) -> Result<R, host::Error>,
    ) -> Result<R, Failure> {
        let number = self.handle().number;
        let innermost = CALLER.get();
        if !innermost.is_null() {
            // Unless the host function was left by a jump.
            host::check_thread()?;
        }
        // SAFETY: `call_host` has put it there from its own frame, and takes it away
        // before that ends; it has not returned, as we are called by the host function
        // that it called, on the same thread.
        let mut calling = unsafe { innermost.as_ref() };
        while let Some(inner) = calling.filter(|calling| calling.number != number) {
            // SAFETY: null, or put there by the `call_host` that the inner one is nested in, which has not returned
            // either.
            calling = unsafe { inner.outer.as_ref() };
        }
        let answer = match calling {
            // SAFETY: made from the reference that `call_host` has for its whole run, which goes on.
            Some(calling) => run(&Target::Caller(unsafe {
                &*calling.caller.cast::<Caller<'_>>()
            })),
            None => run(&Target::Domain(self.loaded()?)),
        };
        Ok(answer?)
    }
}

impl Own {
    #[inline]
    fn handle(&self) -> Handle {
        Handle {
            number: self.number.load(Ordering::Relaxed),
        }
    }
}

impl Function {
    /// Calls it, and gives what it returns to `take`: where it is, since to move it
    /// takes as long as the call.
    #[inline]
    pub(crate) fn call(
        &self,
        arguments: &CallArguments,
        limits: Option<&CallLimits>,
        take: impl FnOnce(&Returned),
    ) -> Result<(), Failure> {
        match self {
            Self::Of(one) => one.call(arguments, limits, take),
            Self::Live(live) => live.with(|one| one.call(arguments, limits, take)),
        }
    }

    /// Calls it on a thread of its own.
    pub(crate) fn start(
        &self,
        arguments: &CallArguments,
        limits: Option<&CallLimits>,
    ) -> Result<host::Call<Returned>, Failure> {
        self.with(|one| {
            let domain = one.domain.loaded()?;
            Ok(one.export.start(domain, arguments, limits)?)
        })
    }

    pub(crate) fn check(&self, parameters: &[Class], result: Option<Class>) -> Result<(), Failure> {
        self.with(|one| Ok(one.export.check(parameters, result)?))
    }

    /// For another domain to call: of the domain that serves now.
    pub(crate) fn callee(&self) -> Result<Callee, Failure> {
        self.with(|one| Ok(Callee::new(one.domain.loaded()?, &one.export)?))
    }

    fn with<R>(&self, run: impl FnOnce(&Exported) -> Result<R, Failure>) -> Result<R, Failure> {
        match self {
            Self::Of(one) => run(one),
            Self::Live(live) => live.with(run),
        }
    }
}

impl Exported {
    pub(crate) fn find(domain: Arc<Domain>, name: &str) -> Result<Self, Failure> {
        let export = domain.within(|target| target.image().find(name))?;
        Ok(Self { domain, export })
    }

    #[inline]
    fn call(
        &self,
        arguments: &CallArguments,
        limits: Option<&CallLimits>,
        take: impl FnOnce(&Returned),
    ) -> Result<(), Failure> {
        self.domain.within(|target| {
            let returned = self.export.call_limited(target, arguments, limits)?;
            take(&returned);
            Ok(())
        })
    }
}

/// The handle of a domain that this interface has loaded.
pub(crate) fn handle_of(identity: &Identity) -> Handle {
    let own = identity.user::<Arc<Own>>();
    own.map_or(Handle { number: 0 }, |own| own.handle())
}

/// `mullion_host_function`. A C++ exception that leaves it ends the process, with the reason: `dispatch`
/// lets nothing unwind through the trampoline.
pub(crate) type HostFunction =
    unsafe extern "C-unwind" fn(Handle, *mut c_void, *const HostArguments, *mut Value) -> Status;

/// It is the innermost caller no more, however the host function ends.
impl Drop for Calling {
    fn drop(&mut self) {
        CALLER.set(self.outer);
    }
}

/// Calls a function of the host for a domain.
///
/// # Safety
/// `function` may be called with `user` on any thread.
pub(crate) unsafe fn call_host(
    function: HostFunction,
    user: User,
    caller: &Caller<'_>,
    arguments: &RawArguments,
) -> Result<RawResult, BoxedError> {
    let own = caller.user::<Arc<Own>>();
    let number = own.map_or(0, |own| own.handle().number);
    let arguments = HostArguments {
        integers: arguments.integers,
        reals: arguments.doubles,
    };
    let mut result = Value {
        kind: value::NOTHING,
        reserved: 0,
        bits: 0,
    };
    let calling = Calling {
        number,
        caller: ptr::from_ref(caller).cast(),
        outer: CALLER.get(),
    };
    CALLER.set(&raw const calling);
    // SAFETY: `function` may be called so (this function's condition); both structures live until it returns.
    let call = || unsafe { function(Handle { number }, user.0, &arguments, &mut result) };
    let status = jump::watched(call);
    drop(calling);
    if status == OUTPUT_LIMIT {
        // It has asked, and the answer was no: more than any limit.
        caller.charge_output(u64::MAX)?;
    }
    if status != OK {
        return Err(Box::new(HostRefused(status)));
    }
    Ok(match result.kind {
        value::INTEGER => RawResult {
            integer: result.bits,
            double: 0.0,
        },
        value::DOUBLE => RawResult {
            integer: 0,
            double: f64::from_bits(result.bits),
        },
        value::FLOAT => RawResult {
            integer: 0,
            double: f64::from_bits(result.bits & 0xffff_ffff),
        },
        _ => RawResult::default(),
    })
}
