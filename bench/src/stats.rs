//! Medians, spreads and means.

/// The middle of the values, or the mean of the two in the middle; `None` of nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let n = sorted.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(sorted[n / 2]),
        _ => Some((sorted[n / 2 - 1] + sorted[n / 2]) / 2.0),
    }
}

/// The middle of some values, and what half of them lie between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quartiles {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

impl Quartiles {
    /// The distance between the quartiles over the median.
    pub(crate) fn spread(&self) -> f64 {
        (self.high - self.low) / self.median
    }
}

/// `None` of nothing.
pub(crate) fn quartiles(values: &[f64]) -> Option<Quartiles> {
    let sorted = sorted(values);
    median(&sorted).map(|median| Quartiles {
        low: quantile(&sorted, 0.25),
        median,
        high: quantile(&sorted, 0.75),
    })
}

/// The distance between the quartiles over the median: half of all rounds lie in it.
pub(crate) fn spread(values: &[f64]) -> Option<f64> {
    quartiles(values).map(|quartiles| quartiles.spread())
}

/// What a column takes of native time, a number for each round.
///
/// Both are the times of each turn of each round. A turn runs its columns within moments, so what
/// slows the machine for longer slows both sides of a turn's ratio; what hits one side alone
/// makes that turn an outlier, which the median of its round leaves out.
pub(crate) fn paired_ratios(column: &[Vec<f64>], native: &[Vec<f64>]) -> Vec<f64> {
    let rounds = column.iter().zip(native);
    rounds
        .filter_map(|(column, native)| {
            let turns = column.iter().zip(native);
            let ratios: Vec<f64> = turns.map(|(column, native)| column / native).collect();
            median(&ratios)
        })
        .collect()
}

/// The geometric mean; `None` of nothing.
pub(crate) fn geometric_mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().map(|v| v.ln()).sum();
    (!values.is_empty()).then(|| (sum / values.len() as f64).exp())
}

/// The value at a part of the way through sorted values, between its neighbours in proportion.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = (sorted.len() - 1) as f64 * part;
    let (below, above) = (
        sorted[place.floor() as usize],
        sorted[place.ceil() as usize],
    );
    below + (above - below) * place.fract()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_no_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_single_outlier_does_not_widen_the_spread() {
        assert_eq!(
            spread(&[10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 90.0]),
            Some(0.0)
        );
        assert_eq!(spread(&[1.0, 3.0]), Some(0.5));
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn quartiles_hold_half_of_the_values() {
        let five = quartiles(&[5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
        let wanted = Quartiles {
            low: 2.0,
            median: 3.0,
            high: 4.0,
        };
        assert_eq!(five, wanted);
        assert_eq!(quartiles(&[7.0]).unwrap().spread(), 0.0);
        assert_eq!(quartiles(&[]), None);
    }

    #[test]
    fn a_machine_with_two_speeds_does_not_change_a_ratio() {
        // Slow and fast turns in another order in each round: 1.2 in all of them.
        let native = vec![
            vec![10.0, 20.0, 20.0],
            vec![20.0, 20.0, 20.0],
            vec![10.0; 3],
        ];
        let column: Vec<Vec<f64>> = native
            .iter()
            .map(|turns| turns.iter().map(|t| t * 1.2).collect())
            .collect();
        let ratios = paired_ratios(&column, &native);
        assert!(ratios.iter().all(|ratio| (ratio - 1.2).abs() < 1e-12));
        assert_eq!(ratios.len(), 3);
    }

    #[test]
    fn a_turn_with_one_side_hit_is_left_out_whichever_side_it_is() {
        let native = vec![vec![10.0, 10.0, 50.0, 10.0, 10.0]];
        let column = vec![vec![11.0, 90.0, 11.0, 11.0, 11.0]];
        assert_eq!(paired_ratios(&column, &native), [1.1]);
    }

    #[test]
    fn a_column_that_is_faster_is_told_as_plainly_as_one_that_is_slower() {
        let (fast, slow) = (vec![vec![8.0; 4]], vec![vec![10.0; 4]]);
        assert_eq!(paired_ratios(&fast, &slow), [0.8]);
        assert_eq!(paired_ratios(&slow, &fast), [1.25]);
        assert!(paired_ratios(&[], &slow).is_empty());
        assert!(paired_ratios(&[Vec::new()], &slow).is_empty());
    }

    #[test]
    fn the_geometric_mean_is_fair_to_reciprocals() {
        let mean = geometric_mean(&[2.0, 0.5]).unwrap();
        assert!((mean - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
    }
}
