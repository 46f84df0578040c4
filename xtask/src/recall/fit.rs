//! Fits the weights of the ranking: a logistic model of which facts will be written again.

use std::collections::BTreeMap;

use summarizer::embedded::{FEATURES, Weights};

use super::facts::Class;

const N: usize = FEATURES.len();
/// Steps of Newton's method; it has come to rest long before.
const STEPS: usize = 25;
/// Pulls all weights but the first towards zero, as strongly as this share of all evidence.
const PULL: f64 = 0.002;
/// Share of a fact's evidence that counts each class alike, however few facts it has.
const BY_CLASS: f64 = 0.5;

/// Facts of one point: their features, whether each is needed, and how much it counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    rows: Vec<([f64; N], bool, f64)>,
}

impl Evidence {
    /// The facts of a point; each point counts alike, and so does each session of `n_points`.
    pub(super) fn of(
        facts: Vec<(String, [f64; N])>,
        needed: &BTreeMap<String, Class>,
        n_points: usize,
    ) -> Evidence {
        let simple = needed.iter().filter(|(_, class)| class.is_simple());
        let mut by_class: BTreeMap<Class, usize> = BTreeMap::new();
        simple.for_each(|(_, class)| *by_class.entry(*class).or_default() += 1);
        let n_needed: usize = by_class.values().sum();
        let n_classes = by_class.len();
        let per_point = 1.0 / n_points.max(1) as f64;
        let mut rows: Vec<([f64; N], bool, f64)> = Vec::new();
        for (fact, features) in facts {
            let class = needed.get(&fact).filter(|class| class.is_simple());
            let evenly = 1.0 / n_needed as f64;
            let counts = class.map_or(evenly, |class| {
                (1.0 - BY_CLASS) * evenly + BY_CLASS / (n_classes * by_class[class]) as f64
            });
            rows.push((features, class.is_some(), counts * per_point));
        }
        // The order of a hash map must not show.
        rows.sort_by(|left, right| left.partial_cmp(right).unwrap_or(std::cmp::Ordering::Equal));
        Evidence { rows }
    }

    /// Both together.
    pub(super) fn with(mut self, other: Evidence) -> Evidence {
        self.rows.extend(other.rows);
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// The weights as a list, each with the name of its feature.
pub(super) fn listed(Weights(weights): &Weights) -> String {
    FEATURES.iter().zip(weights).map(|(feature, weight)| format!("{weight:6.2}  {feature}\n")).collect()
}

/// The weights under which the evidence is likeliest.
pub(super) fn fitted<'e>(evidence: impl Iterator<Item = &'e Evidence>) -> Weights {
    let rows: Vec<&([f64; N], bool, f64)> = evidence.flat_map(|evidence| &evidence.rows).collect();
    let total: f64 = rows.iter().map(|row| row.2).sum();
    let mut weights = [0.0; N];
    for _ in 0..STEPS {
        let (mut slope, mut bend) = ([0.0; N], [[0.0; N]; N]);
        for at in 0..N {
            let pull = if at == 0 { 1e-9 } else { PULL * total };
            slope[at] = -pull * weights[at];
            bend[at][at] = pull;
        }
        for (features, is_needed, counts) in &rows {
            let sum: f64 = features.iter().zip(weights).map(|(feature, weight)| feature * weight).sum();
            let chance = 1.0 / (1.0 + (-sum).exp());
            let (error, spread) = (f64::from(u8::from(*is_needed)) - chance, chance * (1.0 - chance));
            for row in 0..N {
                slope[row] += counts * error * features[row];
                for column in 0..N {
                    bend[row][column] += counts * spread * features[row] * features[column];
                }
            }
        }
        let step = solved(bend, slope);
        for (weight, step) in weights.iter_mut().zip(step) {
            *weight += step;
        }
    }
    Weights(weights)
}

/// Solves a system of linear equations that has a solution.
fn solved(mut matrix: [[f64; N]; N], mut right: [f64; N]) -> [f64; N] {
    for pivot in 0..N {
        let best = (pivot..N).max_by(|a, b| matrix[*a][pivot].abs().total_cmp(&matrix[*b][pivot].abs()));
        let best = best.unwrap_or(pivot);
        matrix.swap(pivot, best);
        right.swap(pivot, best);
        for row in pivot + 1..N {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            let above = matrix[pivot];
            for (value, above) in matrix[row].iter_mut().zip(above).skip(pivot) {
                *value -= factor * above;
            }
            right[row] -= factor * right[pivot];
        }
    }
    for pivot in (0..N).rev() {
        let known: f64 = (pivot + 1..N).map(|column| matrix[pivot][column] * right[column]).sum();
        right[pivot] = (right[pivot] - known) / matrix[pivot][pivot];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_solved() {
        let mut matrix = [[0.0; N]; N];
        let mut right = [0.0; N];
        for at in 0..N {
            matrix[at][N - 1 - at] = 2.0;
            matrix[at][at] += 1.0;
            right[at] = matrix[at].iter().sum::<f64>() * 3.0;
        }
        assert!(solved(matrix, right).iter().all(|value| (value - 3.0).abs() < 1e-9));
    }

    #[test]
    fn what_is_needed_more_often_gets_the_greater_weight() {
        let mut often = [0.0; N];
        (often[0], often[1]) = (1.0, 4.0);
        let mut seldom = [0.0; N];
        (seldom[0], seldom[1]) = (1.0, 1.0);
        let row = |features, is_needed| (features, is_needed, 1.0);
        let rows = vec![
            row(often, true),
            row(often, true),
            row(often, false),
            row(seldom, false),
            row(seldom, true),
            row(seldom, false),
        ];
        let Weights(weights) = fitted([Evidence { rows }].iter());
        assert!(weights[1] > 0.1, "{weights:?}");
    }
}
