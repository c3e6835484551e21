//! Medians, their intervals and the verdict on a bar.

/// The median; NaN for no values. Values that are NaN (a failed measurement) are left out.
pub fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// An interval that holds the true median with about 95 % probability, whatever the distribution:
/// the k-th smallest and k-th largest value, k as large as the binomial distribution allows (of
/// nine values the 2nd and the 8th). With fewer than six values it is their whole range.
pub fn interval(values: &[f64]) -> (f64, f64) {
    let sorted = sorted(values);
    if sorted.is_empty() {
        return (f64::NAN, f64::NAN);
    }
    let cut = cut(sorted.len());
    (sorted[cut], sorted[sorted.len() - 1 - cut])
}

/// How many values are cut off at each end: k − 1 for the largest k with 2·P(Binomial(n, ½) < k) ≤ 5 %.
fn cut(n: usize) -> usize {
    let mut term = 0.5f64.powi(n as i32);
    let mut tail = term;
    let mut k = 0;
    while k < n && 2.0 * tail <= 0.05 {
        k += 1;
        term *= (n - k + 1) as f64 / k as f64;
        tail += term;
    }
    k.saturating_sub(1)
}

pub fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// What a figure must be.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    Pass,
    Fail,
    WithinNoise,
}

impl Limit {
    /// Passed or failed only if the whole interval is on one side.
    pub fn judge(self, (low, high): (f64, f64)) -> Judgement {
        let (all_good, all_bad) = match self {
            Limit::AtLeast(bar) => (low >= bar, high < bar),
            Limit::AtMost(bar) => (high <= bar, low > bar),
        };
        match (all_good, all_bad) {
            (true, _) => Judgement::Pass,
            (_, true) => Judgement::Fail,
            _ => Judgement::WithinNoise,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_ignores_failed_rounds() {
        assert_eq!(median(&[3.0, f64::NAN, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
        assert!(median(&[f64::NAN]).is_nan());
    }

    #[test]
    fn nine_values_give_the_second_and_the_eighth() {
        let values: Vec<f64> = (1..=9).map(f64::from).collect();
        assert_eq!(interval(&values), (2.0, 8.0));
    }

    #[test]
    fn cuts_match_the_published_table() {
        // Order statistics for a 95 % interval of the median, e.g. Conover, table A3.
        let table = [(1, 0), (5, 0), (6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (25, 8)];
        for (n, k) in table {
            let expected = if n < 6 { 0 } else { k - 1 };
            let values: Vec<f64> = (0..n).map(f64::from).collect();
            let (low, high) = interval(&values);
            assert_eq!(low, f64::from(expected), "{n} values");
            assert_eq!(high, f64::from(n - 1 - expected), "{n} values");
        }
    }

    #[test]
    fn a_bar_fails_only_when_the_whole_interval_does() {
        assert_eq!(Limit::AtLeast(1.1).judge((1.1, 1.3)), Judgement::Pass);
        assert_eq!(Limit::AtLeast(1.1).judge((1.0, 1.2)), Judgement::WithinNoise);
        assert_eq!(Limit::AtLeast(1.1).judge((0.9, 1.09)), Judgement::Fail);
        assert_eq!(Limit::AtMost(0.8).judge((0.81, 0.9)), Judgement::Fail);
        assert_eq!(Limit::AtMost(0.8).judge((0.7, 0.8)), Judgement::Pass);
        assert_eq!(Limit::AtMost(0.8).judge((0.7, 0.9)), Judgement::WithinNoise);
    }
}
