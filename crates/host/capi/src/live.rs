//! A new image behind the same functions, while the host runs: as `mullion_host::Live`, with functions whose types the
//! host states when it runs.

use crate::domain::{Domain, Exported, Function};
use crate::pointers::place;
use crate::pointers::text;
use crate::status::{Failure, Status, guarded};
use crate::table::{self, Handle, Object};
use crate::value;
use mullion_host::Class;
use std::ffi::c_char;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// A place for a domain that can be replaced.
pub(crate) struct Live {
    serving: RwLock<Arc<Serving>>,
    /// The functions that the host has asked for; changed together with `serving`.
    wanted: Mutex<Vec<Wanted>>,
}

/// A domain, and the wanted functions of it, in that order.
struct Serving {
    domain: Arc<Owned>,
    exports: Vec<Exported>,
}

/// A domain whose handle goes with the last call of it.
struct Owned(Arc<Domain>);

/// A function that every image must have.
#[derive(PartialEq)]
struct Wanted {
    name: String,
    parameters: Vec<Class>,
    result: Option<Class>,
}

/// A function of whatever domain serves when it is called.
pub(crate) struct LiveFunction {
    live: Arc<Live>,
    number: usize,
}

impl Wanted {
    fn find(&self, domain: &Arc<Domain>) -> Result<Exported, Failure> {
        let found = Exported::find(domain.clone(), &self.name)?;
        found.export.check(&self.parameters, self.result)?;
        Ok(found)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // Void already, if the host has unloaded it.
        let _void = table::free_handle(self.0.handle(), Object::domain);
    }
}

impl Live {
    fn new(domain: Arc<Domain>) -> Self {
        let serving = Serving {
            domain: Arc::new(Owned(domain)),
            exports: Vec::new(),
        };
        Self {
            serving: RwLock::new(Arc::new(serving)),
            wanted: Mutex::default(),
        }
    }

    fn serving(&self) -> Arc<Serving> {
        let serving = self.serving.read();
        serving.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn serve(&self, serving: Serving) {
        let mut place = self.serving.write().unwrap_or_else(PoisonError::into_inner);
        let former = std::mem::replace(&mut *place, Arc::new(serving));
        drop(place);
        // Behind the lock: a domain may go with it.
        drop(former);
    }

    fn function(self: Arc<Self>, new: Wanted) -> Result<LiveFunction, Failure> {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match wanted.iter().position(|other| *other == new) {
            Some(number) => number,
            None => {
                let domain = self.serving().domain.clone();
                let all = wanted.iter().chain([&new]);
                let exports = all.map(|function| function.find(&domain.0));
                let exports = exports.collect::<Result<_, _>>()?;
                self.serve(Serving { domain, exports });
                wanted.push(new);
                wanted.len() - 1
            }
        };
        drop(wanted);
        Ok(LiveFunction { live: self, number })
    }

    fn upgrade(&self, domain: Arc<Domain>) -> Result<(), Failure> {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let exports = wanted.iter().map(|function| function.find(&domain));
        let exports = exports.collect::<Result<_, _>>()?;
        let domain = Arc::new(Owned(domain));
        self.serve(Serving { domain, exports });
        Ok(())
    }
}

impl LiveFunction {
    /// Of the domain that serves now, which stays meanwhile.
    pub(crate) fn with<R>(
        &self,
        run: impl FnOnce(&Exported) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        run(&self.live.serving().exports[self.number])
    }
}

/// A domain for such a place: loaded, and of no pool, which would wait for it.
fn own(domain: Handle) -> Result<Arc<Domain>, Failure> {
    let found = table::find(domain, Object::domain)?;
    found.loaded()?;
    match found.is_from_pool() {
        true => Err(Failure::argument("the domain is of a pool")),
        false => Ok(found),
    }
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_live_new(domain: Handle, live: *mut Handle) -> Status {
    guarded(|| {
        // SAFETY: `live` is null or where the host wants the result, by mullion.h.
        let place = unsafe { place(live) }?;
        let new = Arc::new(Live::new(own(domain)?));
        place.write(table::add(Object::Live(new))?);
        Ok(())
    })
}

/// # Safety
/// As the header has it: `parameters` are `count` types.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_live_function(
    live: Handle,
    name: *const c_char,
    result: u32,
    parameters: *const u32,
    count: usize,
    function: *mut Handle,
) -> Status {
    guarded(|| {
        // SAFETY: null, or what mullion.h says, for the call: `name` a string, `function` a place for the result.
        let (name, place) = unsafe { (text(name)?.to_owned(), place(function)?) };
        // SAFETY: null, or what mullion.h says, for the call: `parameters` so many numbers.
        let parameters = unsafe { value::classes(parameters, count) }?;
        let result = value::result_class(result)?;
        let wanted = Wanted {
            name,
            parameters,
            result,
        };
        let found = table::find(live, Object::live)?.function(wanted)?;
        place.write(table::add(Object::Function(Arc::new(Function::Live(
            found,
        ))))?);
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_live_domain(live: Handle, domain: *mut Handle) -> Status {
    guarded(|| {
        // SAFETY: `domain` is null or where the host wants the result, by mullion.h.
        let place = unsafe { place(domain) }?;
        let serving = table::find(live, Object::live)?.serving();
        place.write(serving.domain.0.handle());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_live_upgrade(live: Handle, domain: Handle) -> Status {
    guarded(|| table::find(live, Object::live)?.upgrade(own(domain)?))
}

#[unsafe(no_mangle)]
extern "C" fn mullion_live_free(live: Handle) -> Status {
    guarded(|| table::free_handle(live, Object::live))
}
