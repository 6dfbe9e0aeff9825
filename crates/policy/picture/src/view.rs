//! What of a state is shown: which domains, which addresses, and how much at most.

use crate::state::Space;

/// The choice of a reader. By default everything is shown, up to a size that programs can still draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// These domains alone, by number; all of them if the list is empty.
    pub domains: Vec<u32>,
    /// These addresses alone.
    pub range: Option<Space>,
    /// No more columns for domains. Domains that were chosen are shown all the same.
    pub most_domains: usize,
    /// No more rows.
    pub most_rows: usize,
}

impl Default for Excerpt {
    fn default() -> Excerpt {
        Excerpt {
            domains: Vec::new(),
            range: None,
            most_domains: 48,
            most_rows: 200,
        }
    }
}

impl Excerpt {
    /// Everything, whatever the picture's size.
    pub fn whole() -> Excerpt {
        Excerpt {
            most_domains: usize::MAX,
            most_rows: usize::MAX,
            ..Excerpt::default()
        }
    }

    /// The part of `start..end` that is shown.
    pub(crate) fn overlap(&self, start: u128, end: u128) -> Option<(u128, u128)> {
        let (first, last) = self
            .range
            .map_or((0, u128::MAX), |range| (range.start.0, range.end.0));
        let (start, end) = (start.max(first), end.min(last));
        (start < end).then_some((start, end))
    }
}

/// What is not shown, for the reader to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Domains in the state, and those of them that have a column or share one.
    pub(crate) domains: (usize, usize),
    /// Domains without a column since they have nothing at these addresses.
    pub(crate) idle: usize,
    /// Groups in the state that have a place in it, and those of them that are shown.
    pub(crate) groups: (usize, usize),
    /// Regions of the state at the chosen addresses.
    pub(crate) regions: usize,
    /// Rows that there are, and those of them that are shown or folded.
    pub(crate) rows: (usize, usize),
    /// Where the rows end that are shown, and all of them.
    pub(crate) rows_end: (u128, u128),
    /// Whether the reader has chosen domains.
    pub(crate) chosen: bool,
}

impl LeftOut {
    /// A line for each kind of thing that is not shown, and how to see it.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let (all, shown) = self.domains;
        let hidden = all - shown - self.idle;
        match (hidden, self.chosen) {
            (0, _) => {}
            (_, true) => lines.push(format!("Shown: {shown} chosen of {all} domains.")),
            (_, false) => lines.push(format!(
                "Left out: {hidden} of {all} domains. See them with --domain NAME, or more with --most-domains N."
            )),
        }
        if self.idle > 0 {
            lines.push(format!(
                "Left out: {} of {all} domains, which have nothing at these addresses. See them with --domain NAME.",
                self.idle
            ));
        }
        let (all, shown) = self.groups;
        if shown < all {
            lines.push(format!("Left out: {} of {all} groups.", all - shown));
        }
        let (all, shown) = self.rows;
        if shown < all {
            lines.push(format!(
                "Left out: {} of {all} rows, from {:#x} on. See them with --range START..END, or more with --most-rows N.",
                all - shown,
                self.rows_end.0
            ));
        }
        lines
    }
}
