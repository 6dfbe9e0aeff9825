//! Words that change places: what the latest of these has come to in the table.

use mullion_supervisor::{DomainId, HoldingNumber};

/// Words that had `on` have got `off`, and others the reverse. It comes to the same as long as no number changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shifted {
    pub(crate) off: HoldingNumber,
    pub(crate) on: HoldingNumber,
    /// It loses the first words, and gets the others. It is waited for. The two holdings differ in its grant alone, so they
    /// say which domain it is.
    pub(crate) domain: DomainId,
    /// What both get.
    pub(crate) numbers: (u16, u16),
    /// Of [`Numbers::changes`](crate::numbers::Numbers::changes).
    pub(crate) changes: u64,
}

impl Shifted {
    /// Whether words that change places between these two come to this.
    #[inline(always)]
    pub(crate) fn is(&self, changes: u64, off: HoldingNumber, on: HoldingNumber) -> bool {
        self.changes == changes && (self.off, self.on) == (off, on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_of_two_holdings_as_long_as_no_number_changes() {
        let of = |number, edition| HoldingNumber { number, edition };
        let shifted = Shifted {
            off: of(3, 1),
            on: of(4, 1),
            domain: DomainId::new(7),
            numbers: (0, 9),
            changes: 5,
        };
        assert!(shifted.is(5, of(3, 1), of(4, 1)));
        let others = [
            (6, of(3, 1), of(4, 1)),
            (5, of(3, 2), of(4, 1)),
            (5, of(5, 1), of(4, 1)),
            (5, of(3, 1), of(4, 2)),
            (5, of(3, 1), of(5, 1)),
        ];
        for (changes, off, on) in others {
            assert!(!shifted.is(changes, off, on), "{changes} {off:?} {on:?}");
        }
    }
}
