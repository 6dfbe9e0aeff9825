//! Numbers of domains, and of their lives.

use crate::life;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of a domain. It is not used again, and stays over restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainNumber(pub u64);

/// Numbers of lives are never used again, so that nothing of a domain that has gone is
/// taken for another one's. 0 is nobody's. (There are 2^60: at a million restarts in a
/// second they last for 36,000 years.)
pub(crate) fn next_life() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(life::NUMBER);
    NEXT.fetch_add(life::NUMBER, Ordering::Relaxed)
}

/// That of the domain whose first life has this number.
pub(crate) fn of_domain(first_life: u64) -> DomainNumber {
    DomainNumber(first_life / life::NUMBER)
}
