//! Pools that modules have made, and calls that work with them. While a call works with something that lives in a pool, no thread
//! of a module ends that pool or one above it.
//!
//! ```text
//!   a pool of the core's
//!     └── made by a module ◄────────┐ both are held
//!           └── made by a module ◄──┴── a call works with something of it
//! ```

use crate::quick::Map;

/// A pool that a module has made.
struct Made {
    /// The module, as a number.
    of: usize,
    /// The pool that it is below, which lives longer.
    parent: u64,
    /// No two pools have the same, not even one behind the other at the same address.
    number: u64,
    /// Whether it goes with a request or a connection, on which one thread works.
    is_bound: bool,
    /// Calls that work with it, or with one below it.
    holds: u32,
    /// The thread that ends it.
    ends: Option<u64>,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Homes {
    made: Map<Made>,
    numbers: u64,
}

/// A call works with a pool. It is given back by [`Homes::release`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hold {
    pool: u64,
    number: u64,
}

/// What a made pool comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// The first pool above it that no module has made.
    pub(crate) pool: u64,
    pub(crate) is_bound: bool,
}

impl Homes {
    /// A module has made a pool.
    pub(crate) fn add(&mut self, pool: u64, of: usize, parent: u64, is_bound: bool) {
        self.numbers += 1;
        let made = Made {
            of,
            parent,
            number: self.numbers,
            is_bound,
            holds: 0,
            ends: None,
        };
        self.made.insert(pool, made);
    }

    /// Whether a made pool goes with a request or a connection; none if no module has made it.
    pub(crate) fn is_bound(&self, pool: u64) -> Option<bool> {
        self.made.get(&pool).map(|made| made.is_bound)
    }

    /// Holds a pool and those above it that modules have made. None: no module has made it.
    ///
    /// # Errors
    /// Another thread ends one of them.
    pub(crate) fn hold(&mut self, pool: u64, here: u64) -> Result<Option<(Hold, Root)>, ()> {
        let Some(first) = self.made.get(&pool) else {
            return Ok(None);
        };
        let (number, is_bound) = (first.number, first.is_bound);
        let mut at = pool;
        while let Some(made) = self.made.get(&at) {
            if made.ends.is_some_and(|thread| thread != here) {
                return Err(());
            }
            at = made.parent;
        }
        let root = at;
        self.count(pool, |holds| holds + 1);
        let root = Root {
            pool: root,
            is_bound,
        };
        Ok(Some((Hold { pool, number }, root)))
    }

    fn count(&mut self, pool: u64, change: impl Fn(u32) -> u32) {
        let mut at = pool;
        while let Some(made) = self.made.get_mut(&at) {
            made.holds = change(made.holds);
            at = made.parent;
        }
    }

    /// A call ends. The core may have ended the pool meanwhile, with all that hold it.
    pub(crate) fn release(&mut self, hold: Hold) {
        let found = self.made.get(&hold.pool);
        // Those above one that lives live, too, and have been held with it.
        if found.is_some_and(|made| made.number == hold.number) {
            self.count(hold.pool, |holds| holds - 1);
        }
    }

    /// The module that has made a pool, if that is this one, or if the pool is below one of this one's.
    pub(crate) fn maker_below(&self, pool: u64, of: usize) -> Option<usize> {
        let maker = self.made.get(&pool)?.of;
        let up = |made: &&Made| self.made.get(&made.parent);
        let mut all = std::iter::successors(self.made.get(&pool), up);
        all.any(|made| made.of == of).then_some(maker)
    }

    /// A module's thread begins to end its pool. Nobody else ends it from then on, and no other thread works with it.
    ///
    /// # Errors
    /// It is no such pool, or a call works with it.
    pub(crate) fn begin_end(
        &mut self,
        pool: u64,
        of: usize,
        here: u64,
    ) -> Result<(), &'static str> {
        match self.made.get_mut(&pool) {
            Some(made) if made.of == of && made.ends.is_none() => match made.holds {
                0 => {
                    made.ends = Some(here);
                    Ok(())
                }
                _ => Err("is a pool that a call works with"),
            },
            _ => Err("is no pool that the module has made"),
        }
    }

    /// A pool is about to go, with one above it or by the core. The answer is the module that has made it, if it has not ended it.
    pub(crate) fn goes(&mut self, pool: u64, here: u64) -> Option<usize> {
        let made = self.made.get_mut(&pool)?;
        let is_new = made.ends.replace(here).is_none();
        is_new.then_some(made.of)
    }

    /// Its memory goes.
    pub(crate) fn gone(&mut self, pool: u64) {
        self.made.remove(&pool);
    }
}

#[cfg(test)]
mod tests {
    use super::{Hold, Homes};

    const CORE: u64 = 1;
    const UPPER: u64 = 2;
    const LOWER: u64 = 3;
    const LOWEST: u64 = 4;
    const OWN: usize = 7;

    fn homes() -> Homes {
        let mut homes = Homes::default();
        homes.add(UPPER, OWN, CORE, false);
        homes.add(LOWER, OWN, UPPER, false);
        homes
    }

    fn held(homes: &mut Homes, pool: u64, here: u64) -> Hold {
        homes
            .hold(pool, here)
            .expect("it lives")
            .expect("it was made")
            .0
    }

    #[test]
    fn a_pool_that_a_call_works_with_is_not_ended_nor_one_above_it() {
        let mut homes = homes();
        let hold = held(&mut homes, LOWER, 1);
        for here in [1, 2] {
            assert!(homes.begin_end(LOWER, OWN, here).is_err());
            assert!(homes.begin_end(UPPER, OWN, here).is_err());
        }
        homes.release(hold);
        assert_eq!(homes.begin_end(UPPER, OWN, 2), Ok(()));
    }

    #[test]
    fn a_call_above_does_not_keep_a_pool_below() {
        let mut homes = homes();
        let _hold = held(&mut homes, UPPER, 1);
        assert_eq!(homes.begin_end(LOWER, OWN, 2), Ok(()));
    }

    #[test]
    fn a_pool_that_is_ended_is_nothing_to_other_threads_and_is_ended_once() {
        let mut homes = homes();
        assert_eq!(homes.begin_end(UPPER, OWN, 1), Ok(()));
        assert!(homes.begin_end(UPPER, OWN, 1).is_err());
        assert!(homes.hold(LOWER, 2).is_err());
        assert!(homes.hold(LOWER, 1).is_ok());
    }

    #[test]
    fn a_pool_of_another_module_is_not_ended() {
        assert!(homes().begin_end(LOWER, OWN + 1, 1).is_err());
    }

    #[test]
    fn a_pool_of_another_module_is_ended_by_the_module_that_has_one_above_it() {
        let mut homes = homes();
        homes.add(LOWEST, OWN + 1, LOWER, false);
        assert_eq!(homes.maker_below(LOWEST, OWN), Some(OWN + 1));
        assert_eq!(homes.maker_below(LOWEST, OWN + 1), Some(OWN + 1));
        assert_eq!(homes.maker_below(LOWEST, OWN + 2), None);
        assert_eq!(homes.maker_below(LOWER, OWN + 1), None);
        assert_eq!(homes.maker_below(CORE, OWN), None);
    }

    #[test]
    fn an_old_hold_does_not_free_the_next_pool_at_its_address() {
        let mut homes = homes();
        let old = held(&mut homes, LOWER, 1);
        assert_eq!(homes.goes(LOWER, 2), Some(OWN));
        homes.gone(LOWER);
        homes.add(LOWER, OWN, CORE, false);
        let new = held(&mut homes, LOWER, 1);
        homes.release(old);
        assert!(homes.begin_end(LOWER, OWN, 1).is_err());
        homes.release(new);
        assert_eq!(homes.begin_end(LOWER, OWN, 1), Ok(()));
    }

    #[test]
    fn what_no_module_has_made_is_not_held() {
        assert_eq!(homes().hold(CORE, 1), Ok(None));
        assert_eq!(homes().is_bound(CORE), None);
    }
}
