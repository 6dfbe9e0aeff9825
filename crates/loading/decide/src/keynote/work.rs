//! The work of a request: one budget over everything in it.
//!
//! Whatever a text of a stranger can make long takes a `&mut Work`, and pays before it does a thing. So
//! nothing can be done that was not paid for, and no second budget can be had. A unit is about a
//! nanosecond of a release build; docs/trust.md has what was measured.

/// What is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// A byte that is parsed, or a token that is looked at again.
    Parsed,
    /// A byte that is copied or compared.
    Copied,
    /// A step of the evaluation of conditions.
    Step,
    /// A state of a regular expression that is compiled, its repetitions written out.
    State,
    /// A state of a regular expression at one place of a text.
    Match,
    /// An edge of the delegation graph: a principal as licensee or authorizer of an assertion.
    Edge,
    /// An Ed25519 signature.
    Signature,
    /// A signature of RFC 2792.
    Rsa,
}

impl Cost {
    const ALL: usize = 8;

    /// Units of one of these.
    #[must_use]
    pub const fn price(self) -> u64 {
        match self {
            Cost::Parsed => 20,
            Cost::Copied => 1,
            Cost::Step => 20,
            Cost::State => 60,
            Cost::Match => 8,
            Cost::Edge => 250,
            Cost::Signature => 60_000,
            Cost::Rsa => 600_000,
        }
    }
}

/// There was not enough left to pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it causes more work than one request may")]
pub struct Exhausted;

/// What is left of a request's budget, and what was paid for.
#[derive(Clone, Debug)]
pub struct Work {
    left: u64,
    paid: [u64; Cost::ALL],
}

impl Work {
    /// Units of a request by a key that nobody has given anything so far: about 20 ms.
    pub const STRANGER: u64 = 20_000_000;
    /// Units of the first attempt at such a request: about 0.4 ms. A chain of five credentials takes less.
    pub const FIRST: u64 = 400_000;
    /// Units of a request by a key that policy or credentials name: about a second.
    pub const KNOWN: u64 = 1_000_000_000;

    /// A budget of so many units.
    #[must_use]
    pub fn of(units: u64) -> Self {
        Work {
            left: units,
            paid: [0; Cost::ALL],
        }
    }

    /// For what people do with files of their own, who can end it themselves.
    #[must_use]
    pub fn unbounded() -> Self {
        Work::of(u64::MAX)
    }

    /// Pays for `amount` things that are about to be done. After an error nothing is left.
    ///
    /// # Errors
    /// It does not suffice.
    pub fn pay(&mut self, cost: Cost, amount: usize) -> Result<(), Exhausted> {
        let amount = amount as u64;
        match self.left.checked_sub(amount.saturating_mul(cost.price())) {
            Some(left) => self.left = left,
            None => {
                self.left = 0;
                return Err(Exhausted);
            }
        }
        self.paid[cost as usize] = self.paid[cost as usize].saturating_add(amount);
        Ok(())
    }

    /// Has `part` done with at most so many units of what is left: what one assertion uses up is
    /// not all that the others have.
    pub(crate) fn within<T>(&mut self, units: u64, part: impl FnOnce(&mut Work) -> T) -> T {
        let kept = self.left.saturating_sub(units);
        self.left -= kept;
        let result = part(self);
        self.left += kept;
        result
    }

    /// Units that are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// How many of these were paid for.
    #[must_use]
    pub fn paid(&self, cost: Cost) -> u64 {
        self.paid[cost as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_paid_for_leaves_nothing() {
        let mut work = Work::of(100);
        assert_eq!(work.pay(Cost::Parsed, 4), Ok(()));
        assert_eq!((work.left(), work.paid(Cost::Parsed)), (20, 4));
        assert_eq!(work.pay(Cost::Parsed, 2), Err(Exhausted));
        assert_eq!((work.left(), work.paid(Cost::Parsed)), (0, 4));
        assert_eq!(Work::of(9).pay(Cost::Signature, usize::MAX), Err(Exhausted));
    }

    #[test]
    fn a_part_that_is_over_its_share_leaves_the_rest() {
        let mut work = Work::of(100);
        let over = work.within(30, |work| work.pay(Cost::Parsed, 2));
        assert_eq!((over, work.left()), (Err(Exhausted), 70));
        let under = work.within(30, |work| work.pay(Cost::Parsed, 1));
        assert_eq!((under, work.left()), (Ok(()), 50));
    }
}
