//! What a module has borrowed: connections of mod_proxy's to backends, and what comes out of APR's lists of resources. A call that
//! ends gives back what it has. Otherwise the list finds at the server's end that something is missing, and aborts the process.

use crate::apr;
use crate::call::mediate;
use crate::deeds;
use crate::frame::{Frame, Held};
use crate::object::Kind;
use crate::walled::{Answer, Walled, lock};
use std::sync::Mutex;

/// A resource of a list, and the call that has taken it: 0 if that has returned.
struct Borrowed {
    list: u64,
    resource: u64,
    frame: usize,
}

/// What is out of lists.
static OUT: Mutex<Vec<Borrowed>> = Mutex::new(Vec::new());

/// Takes from what is out.
fn take(is_it: impl Fn(&Borrowed) -> bool) -> Vec<Borrowed> {
    lock(&OUT).extract_if(.., |one| is_it(one)).collect()
}

/// The list counts these no more.
fn end(resources: Vec<Borrowed>) {
    let Some(real) = apr::symbol("apr_reslist_invalidate") else {
        return;
    };
    for one in resources {
        // SAFETY: the list lives, and has given out the resource, which nobody has given back.
        let real: extern "C" fn(u64, u64) -> i32 = unsafe { std::mem::transmute(real) };
        real(one.list, one.resource);
    }
}

/// A list goes with its pool, in front of APR's own cleanup, which asserts that nothing is out. No module can take from it any more.
pub(crate) fn goes(list: u64) {
    end(take(|one| one.list == list));
}

impl Walled {
    /// A call has returned: what it has taken it keeps, if it was not ended.
    #[inline(always)]
    pub(crate) fn settle(&'static self, frame: &Frame, is_ended: bool) {
        if self.deeds.has(deeds::BORROWED) {
            self.settle_all(std::ptr::from_ref(frame) as usize, is_ended);
        }
        if is_ended && self.deeds.has(deeds::LOCKED) {
            self.unlock_all(frame);
        }
    }

    fn settle_all(&self, frame: usize, is_ended: bool) {
        if is_ended {
            return end(take(|one| one.frame == frame));
        }
        for one in lock(&OUT).iter_mut().filter(|one| one.frame == frame) {
            one.frame = 0;
        }
    }
}

fn known(frame: &Frame, list: u64, name: &str) -> Result<(), String> {
    // A list has a lock, which a function of the module's that the list calls would wait for.
    if frame.works_with(list) {
        return Err(format!("{name}: a call works with the list {list:#x}"));
    }
    if !frame.walled.knows_or_shares(list, Kind::List) {
        return Err(format!("{name}: {list:#x} is no list of the module"));
    }
    frame.keep(Held::List(list));
    Ok(())
}

pub(crate) extern "C" fn apr_reslist_acquire(list: u64, to: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        known(frame, list, "apr_reslist_acquire")?;
        walled.must_write(to, 8)?;
        let real = apr::symbol("apr_reslist_acquire").ok_or("the server does not have it")?;
        let mut resource = 0u64;
        // SAFETY: it is APR's function, with a word of ours.
        let real: extern "C" fn(u64, *mut u64) -> i32 = unsafe { std::mem::transmute(real) };
        let status = real(list, &mut resource);
        if status == 0 {
            lock(&OUT).push(Borrowed {
                list,
                resource,
                frame: std::ptr::from_ref(frame) as usize,
            });
            walled.deeds.add(deeds::BORROWED);
            // SAFETY: the module may write there.
            unsafe { (to as *mut u64).write(resource) };
        }
        Ok(status as u32 as u64)
    })
}

/// A resource goes back once: the list counts. Where it is released, a module may put another one in its place: the list keeps its address
/// and gives it out, and does not follow it.
fn is_back(list: u64, resource: u64, is_released: bool) -> Answer<()> {
    let mut out = lock(&OUT);
    let is_it = |one: &Borrowed| one.list == list && one.resource == resource;
    let found = out.iter().position(is_it);
    let other = || {
        let place = out.iter().position(|one| one.list == list);
        place.filter(|_| is_released)
    };
    let found = found.or_else(other);
    match found.map(|found| out.swap_remove(found)) {
        Some(_) => Ok(()),
        None => Err(format!("{resource:#x} is not out of the list")),
    }
}

fn back(list: u64, resource: u64, name: &'static str) -> u64 {
    mediate(|frame| {
        known(frame, list, name)?;
        let real = apr::symbol(name).ok_or("the server does not have it")?;
        is_back(list, resource, name == "apr_reslist_release")
            .map_err(|what| format!("{name}: {what}"))?;
        // SAFETY: it is APR's function for a list of the module's. APR keeps the resource's address, and does not follow it.
        let real: extern "C" fn(u64, u64) -> i32 = unsafe { std::mem::transmute(real) };
        Ok(real(list, resource) as u32 as u64)
    })
}

pub(crate) extern "C" fn apr_reslist_release(list: u64, resource: u64) -> u64 {
    back(list, resource, "apr_reslist_release")
}

pub(crate) extern "C" fn apr_reslist_invalidate(list: u64, resource: u64) -> u64 {
    back(list, resource, "apr_reslist_invalidate")
}
