//! What is the library's to give back. It is what host functions register with the call that they
//! belong to, and what was handed over with a host function.

use crate::pointers::place;
use crate::status::{BAD_HANDLE, Failure, Status, guarded};
use crate::table::{self, Handle, Object};
use crate::value::User;
use mullion_host::Held;
use std::ffi::c_void;

/// `mullion_release_function`.
pub(crate) type Release = unsafe extern "C" fn(*mut c_void);

/// Gives back a resource of the host's when it is dropped.
pub(crate) struct Guard {
    release: Release,
    user: User,
}

impl Guard {
    pub(crate) fn new(release: Release, user: User) -> Self {
        Self { release, user }
    }

    /// A method, so that a closure that calls it keeps the guard and not the pointer alone.
    pub(crate) fn user(&self) -> User {
        self.user
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: the host's promise when it registered it; it is called once.
        unsafe { (self.release)(self.user.0) };
    }
}

/// # Safety
/// As the header has it: `release` may be called with `user`, once, on this thread.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_hold(
    domain: Handle,
    release: Option<Release>,
    user: *mut c_void,
    number: *mut u64,
) -> Status {
    guarded(|| {
        // SAFETY: `number` is null or where the host wants the result, by mullion.h.
        let place = unsafe { place(number) }?;
        let release = release.ok_or_else(Failure::null)?;
        let domain = table::find(domain, Object::domain)?;
        let held = domain.calling(|caller| {
            let user = User(user);
            Ok(caller.hold(Guard::new(release, user)).number())
        })?;
        place.write(held);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_release(domain: Handle, number: u64) -> Status {
    guarded(|| {
        let domain = table::find(domain, Object::domain)?;
        let held = Held::<Guard>::from_number(number);
        let released = domain.calling(|caller| Ok(caller.release(held)))?;
        match released {
            Some(guard) => {
                drop(guard);
                Ok(())
            }
            None => Err(Failure::with(
                BAD_HANDLE,
                "the call holds nothing of that number",
            )),
        }
    })
}
