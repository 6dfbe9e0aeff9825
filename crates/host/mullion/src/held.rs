//! Resources that belong to an invocation and go with it.
//!
//! A list for each thread, since an invocation stays on its thread. Each
//! invocation knows how long the list was when it began, and drops what is
//! beyond that when it ends.

use crate::identity::Identity;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

thread_local! {
    /// Without a destructor, so that it can be used in the very end of a thread: whoever
    /// empties it gives its memory back.
    static LIST: RefCell<ManuallyDrop<Vec<Option<Item>>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
    /// Where the running invocation's items begin.
    static BEGIN: Cell<usize> = const { Cell::new(0) };
    static LENGTH: Cell<usize> = const { Cell::new(0) };
    static NEXT: Cell<u64> = const { Cell::new(1) };
}

struct Item {
    number: u64,
    owner: Owner,
    resource: Box<dyn Any>,
}

/// A resource that is held for an invocation: see [`Caller::hold`](crate::Caller::hold).
///
/// Its [`number`](Held::number) may be handed to the domain, which can give it
/// back ([`Held::from_number`]): a number that is none, or of something else,
/// releases nothing.
pub struct Held<T> {
    number: u64,
    kind: PhantomData<fn() -> T>,
}

impl<T> Held<T> {
    /// A number for it, unique on this thread.
    #[must_use]
    pub fn number(self) -> u64 {
        self.number
    }

    /// What a domain says is held.
    #[must_use]
    pub fn from_number(number: u64) -> Self {
        Self {
            number,
            kind: PhantomData,
        }
    }
}

impl<T> Clone for Held<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Held<T> {}

impl<T> fmt::Debug for Held<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Held({})", self.number)
    }
}

/// Whose call holds something: no domain gives back what another one's call holds,
/// whatever number it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(usize);

impl Owner {
    /// An identity stays where it is as long as a call of its domain runs.
    pub(crate) fn of(identity: &Identity) -> Self {
        Self(std::ptr::from_ref(identity).addr())
    }
}

pub(crate) fn hold<T: Any>(owner: Owner, resource: T) -> Held<T> {
    let number = NEXT.replace(NEXT.get() + 1);
    let item = Item {
        number,
        owner,
        resource: Box::new(resource),
    };
    LIST.with_borrow_mut(|list| {
        list.push(Some(item));
        LENGTH.set(list.len());
    });
    Held::from_number(number)
}

pub(crate) fn release<T: Any>(owner: Owner, held: Held<T>) -> Option<T> {
    let found = LIST.with_borrow_mut(|list| {
        let is_it = |item: &Item| {
            item.number == held.number && item.owner == owner && item.resource.is::<T>()
        };
        let place = list
            .iter_mut()
            .rev()
            .find(|place| place.as_ref().is_some_and(is_it))?;
        let found = place.take();
        // The places of outer invocations stay, so that their ends know theirs.
        while list.len() > BEGIN.get() && list.last().is_some_and(Option::is_none) {
            list.pop();
        }
        has_shrunk(list);
        found
    })?;
    found.resource.downcast().ok().map(|resource| *resource)
}

/// Runs one invocation; drops what it still holds at its end, the last first,
/// even when a panic passes through.
#[inline]
pub(crate) fn invocation<R>(run: impl FnOnce() -> R) -> R {
    let _end = End {
        outer: BEGIN.replace(LENGTH.get()),
    };
    run()
}

struct End {
    outer: usize,
}

impl Drop for End {
    #[inline]
    fn drop(&mut self) {
        let begin = BEGIN.replace(self.outer);
        if LENGTH.get() > begin {
            drop_from(begin);
        }
    }
}

#[cold]
fn drop_from(begin: usize) {
    loop {
        // Dropped outside of the borrow: a resource may itself come here.
        let last = LIST.with_borrow_mut(|list| {
            let last = (list.len() > begin).then(|| list.pop()).flatten();
            has_shrunk(list);
            last
        });
        match last {
            Some(item) => drop(item),
            None => return,
        }
    }
}

fn has_shrunk(list: &mut Vec<Option<Item>>) {
    LENGTH.set(list.len());
    if list.is_empty() {
        *list = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    const ONE: Owner = Owner(1);

    #[test]
    fn what_is_held_goes_with_its_invocation_and_not_before() {
        let outer = Rc::new(());
        let inner = Rc::new(());
        invocation(|| {
            hold(ONE, outer.clone());
            invocation(|| {
                hold(ONE, inner.clone());
                assert_eq!(Rc::strong_count(&inner), 2);
            });
            assert_eq!((Rc::strong_count(&outer), Rc::strong_count(&inner)), (2, 1));
        });
        assert_eq!(Rc::strong_count(&outer), 1);
    }

    #[test]
    fn an_inner_invocation_may_release_what_an_outer_one_holds() {
        let resource = Rc::new(());
        invocation(|| {
            let held = hold(ONE, resource.clone());
            invocation(|| {
                assert!(release(ONE, held).is_some());
                assert!(release(ONE, held).is_none(), "once");
                hold(ONE, resource.clone());
            });
            assert_eq!(Rc::strong_count(&resource), 1);
        });
    }

    #[test]
    fn a_number_of_something_else_releases_nothing() {
        invocation(|| {
            let held = hold(ONE, 5u32);
            assert!(release(ONE, Held::<u64>::from_number(held.number())).is_none());
            assert!(release(ONE, Held::<u32>::from_number(u64::MAX)).is_none());
            assert!(release(Owner(2), held).is_none(), "another domain's");
            assert_eq!(release(ONE, held), Some(5));
        });
    }

    #[test]
    fn a_panic_takes_them_too() {
        let resource = Rc::new(());
        let inside = resource.clone();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            invocation(|| {
                hold(ONE, inside);
                panic!("on purpose");
            })
        }));
        assert!(caught.is_err());
        assert_eq!(Rc::strong_count(&resource), 1);
    }

    #[test]
    fn releasing_in_a_loop_takes_no_memory() {
        invocation(|| {
            for number in 0..1000u32 {
                let held = hold(ONE, number);
                assert_eq!(release(ONE, held), Some(number));
            }
            assert_eq!(LENGTH.get(), BEGIN.get());
        });
    }
}
