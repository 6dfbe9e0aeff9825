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

/// The distance between the quartiles over the median: half of all rounds lie in it.
pub(crate) fn spread(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    median(&sorted).map(|m| (quantile(&sorted, 0.75) - quantile(&sorted, 0.25)) / m)
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
    fn the_geometric_mean_is_fair_to_reciprocals() {
        let mean = geometric_mean(&[2.0, 0.5]).unwrap();
        assert!((mean - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
    }
}
