//! Long repeats are shown once.

use crate::chart::Row;

/// What the picture shows from top to bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// The row with this index.
    Row(usize),
    /// The `period` rows just shown come `times` more, up to the row with index `end`.
    Repeat {
        period: usize,
        times: usize,
        end: usize,
    },
}

/// The longest pattern that is looked for, in rows.
const LONGEST: usize = 12;
/// A fold hides at least so many rows.
const LEAST: usize = 6;

/// Folds what repeats, from the top, preferring what hides most.
pub(crate) fn fold(rows: &[Row]) -> Vec<Item> {
    let mut items = Vec::new();
    let mut at = 0;
    while at < rows.len() {
        let best = (1..=LONGEST)
            .map(|period| (period, repeats(rows, at, period)))
            .max_by_key(|(period, times)| (period * times, std::cmp::Reverse(*period)));
        match best {
            Some((period, times)) if period * times >= LEAST && times >= 2 => {
                items.extend((at..at + period).map(Item::Row));
                at += period * (times + 1);
                items.push(Item::Repeat {
                    period,
                    times,
                    end: at,
                });
            }
            _ => {
                items.push(Item::Row(at));
                at += 1;
            }
        }
    }
    items
}

/// How often the `period` rows from `at` come again behind themselves.
fn repeats(rows: &[Row], at: usize, period: usize) -> usize {
    let mut same = 0;
    while at + period + same < rows.len() && rows[at + same].is_like(&rows[at + period + same]) {
        same += 1;
    }
    same / period
}

/// The first items, with no more than so many rows, and how many rows of the chart they are.
pub(crate) fn cut(mut items: Vec<Item>, most: usize) -> (Vec<Item>, usize) {
    let (mut written, mut covered) = (0, 0);
    let fits = |item: &Item| match *item {
        Item::Row(row) => {
            written += 1;
            covered = row + 1;
            written <= most
        }
        Item::Repeat { end, .. } => {
            covered = end;
            true
        }
    };
    let first = items.iter().map(fits).position(|fits| !fits);
    match first {
        None => (items, covered),
        Some(first) => {
            items.truncate(first);
            (items, covered - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(sizes: &str) -> Vec<Row> {
        let row = |(index, size): (usize, u8)| {
            let start = index as u128 * 1000;
            Row {
                start,
                end: start + u128::from(size),
                ..Row::default()
            }
        };
        sizes.bytes().enumerate().map(row).collect()
    }

    #[test]
    fn every_row_is_shown_or_folded_once() {
        for (pattern, folds) in [
            ("abcdef", 0),
            ("abababababx", 1),
            ("xabcabcabcabcyzyzyzyzyzyz", 2),
            ("", 0),
        ] {
            let rows = rows(pattern);
            let items = fold(&rows);
            assert_eq!(cut(items.clone(), usize::MAX), (items.clone(), rows.len()));
            let covered: usize = items
                .iter()
                .map(|item| match item {
                    Item::Row(_) => 1,
                    Item::Repeat { period, times, .. } => period * times,
                })
                .sum();
            assert_eq!(covered, rows.len(), "{pattern}");
            let found = items
                .iter()
                .filter(|item| matches!(item, Item::Repeat { .. }))
                .count();
            assert_eq!(found, folds, "{pattern}: {items:?}");
        }
    }

    #[test]
    fn a_cut_leaves_whole_items_and_says_where_it_is() {
        // Rows 0, 1 and 2, the last two of which come three times more, and row 9.
        let items = fold(&rows("xababababy"));
        let rows = |most| cut(items.clone(), most).1;
        assert_eq!([0, 1, 2, 3, 4].map(rows), [0, 1, 2, 9, 10]);
    }
}
