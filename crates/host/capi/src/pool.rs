//! Domains kept ready: taken out, given back, restarted behind.
//!
//! C holds a handle of a domain, and behind it is one structure for all that hold the domain. A pool keeps that
//! structure ([`Member`]), and counts whether anybody else has it. A handle is good for one use. It is void when the
//! domain goes back, and the domain has another one before its constructors run again.

use crate::domain::Domain;
use crate::pointers::place;
use crate::recipe::Recipe;
use crate::status::{Failure, Status, guarded};
use crate::table::{self, Handle, Object};
use crate::value;
use mullion_host as host;
use mullion_host::{PoolLimits, Renewable};
use std::ffi::c_char;
use std::sync::Arc;

/// What a handle of a pool stands for.
pub(crate) type Pool = Arc<host::Pool<Member>>;

/// A domain that is taken out: it goes back when this is dropped.
pub(crate) type Taken = host::Pooled<Member>;

/// A domain of a pool.
pub(crate) struct Member {
    domain: Arc<Domain>,
}

impl Renewable for Member {
    type Error = Failure;

    fn domain(&self) -> &host::Domain {
        let loaded = self.domain.loaded().ok();
        loaded.expect("a member is made of a domain that has been loaded")
    }

    /// The handle, until it is freed; functions; calls that run.
    fn is_shared(&self) -> bool {
        Arc::strong_count(&self.domain) > 1 || self.domain().is_shared()
    }

    fn renew(&self) -> Result<(), Failure> {
        // Constructors may call functions of the host.
        self.domain.give_handle()?;
        self.domain.restart(None)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // Void already, if the domain has come back and was not renewed.
        let _void = table::free_handle(self.domain.handle(), Object::domain);
    }
}

/// `mullion_pool_figures`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Stats {
    pub(crate) size: usize,
    pub(crate) ready: u64,
    pub(crate) taken: u64,
    pub(crate) returned: u64,
    pub(crate) made: u64,
    pub(crate) uses: u64,
    pub(crate) waits: u64,
    pub(crate) restarts: u64,
    pub(crate) ended: u64,
    pub(crate) replaced: u64,
}

fn limits(given: Option<value::PoolBounds>) -> PoolLimits {
    let default = PoolLimits::default();
    let or = |given: u64, default: u64| if given == 0 { default } else { given };
    let number = |given, default: usize| usize::try_from(or(given, default as u64));
    given.map_or(default, |given| PoolLimits {
        most: number(given.most, default.most).unwrap_or(usize::MAX),
        ready: number(given.ready, default.ready).unwrap_or(usize::MAX),
        memory: or(given.memory, default.memory),
    })
}

fn make(recipe: Recipe) -> impl Fn() -> Result<Member, Failure> + Send + Sync {
    move || {
        let domain = Domain::load(recipe.builder())?;
        Ok(Member { domain })
    }
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_pool_new(
    image: Handle,
    name: *const c_char,
    imports: Handle,
    limits_of_each: *const value::Limits,
    bounds: *const value::PoolBounds,
    pool: *mut Handle,
) -> Status {
    guarded(|| {
        // SAFETY: null, or what mullion.h says, for the call: `pool` a place for the result, `bounds` a structure
        // that says its size.
        let (place, bounds) = unsafe { (place(pool)?, value::pool_limits(bounds)?) };
        // SAFETY: null, or what mullion.h says, for the call: `name` a string, the limits a structure that says its
        // size.
        let recipe = unsafe { Recipe::new(image, name, imports, limits_of_each) }?;
        let made = host::Pool::new(limits(bounds), make(recipe))?;
        place.write(table::add(Object::Pool(Arc::new(made)))?);
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_pool_get(
    pool: Handle,
    nanoseconds: u64,
    domain: *mut Handle,
) -> Status {
    guarded(|| {
        // SAFETY: `domain` is null or where the host wants the result, by mullion.h.
        let place = unsafe { place(domain) }?;
        let pool = table::find(pool, Object::pool)?;
        let taken = match nanoseconds {
            value::NEVER => pool.get()?,
            some => pool.get_within(value::at_most(some))?,
        };
        let domain = taken.domain.clone();
        domain.take_from_pool(taken);
        place.write(domain.handle());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_pool_put(domain: Handle) -> Status {
    guarded(|| {
        let found = table::find(domain, Object::domain)?;
        if !found.is_from_pool() {
            return Err(Failure::argument("the domain is of no pool"));
        }
        // Of several who give it back, one does.
        table::free_handle(domain, Object::domain)?;
        found.give_back();
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_pool_upgrade(
    pool: Handle,
    image: Handle,
    name: *const c_char,
    imports: Handle,
    limits_of_each: *const value::Limits,
) -> Status {
    guarded(|| {
        // SAFETY: null, or what mullion.h says, for the call: `name` a string, the limits a structure that says its
        // size.
        let recipe = unsafe { Recipe::new(image, name, imports, limits_of_each) }?;
        table::find(pool, Object::pool)?.upgrade(make(recipe))
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_pool_stats(pool: Handle, given: *mut Stats) -> Status {
    guarded(|| {
        // SAFETY: null or a structure of the host's, whose first member is its size, by mullion.h.
        let size = unsafe { given.cast::<usize>().as_ref() }.copied();
        if size.ok_or_else(Failure::null)? != size_of::<Stats>() {
            return Err(Failure::argument(
                "`size` is not sizeof(mullion_pool_figures)",
            ));
        }
        let stats = table::find(pool, Object::pool)?.stats();
        let filled = Stats {
            size: size_of::<Stats>(),
            ready: stats.ready as u64,
            taken: stats.taken as u64,
            returned: stats.returned as u64,
            made: stats.made,
            uses: stats.uses,
            waits: stats.waits,
            restarts: stats.restarts,
            ended: stats.ended,
            replaced: stats.replaced,
        };
        // SAFETY: the structure is of the size that it says, by mullion.h, and no more than that is written.
        unsafe { given.write(filled) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_pool_free(pool: Handle) -> Status {
    guarded(|| table::free_handle(pool, Object::pool))
}
