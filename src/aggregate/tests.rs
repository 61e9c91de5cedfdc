use super::decide;
use super::engine::{Cut, Square};
use super::weights::{Weiszfeld, centered_clipping};
use super::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Squared distances of points on a line.
fn line(points: &[f64]) -> Square {
    let values = points.iter().flat_map(|a| points.iter().map(move |b| (a - b) * (a - b))).collect();
    Square { n: points.len(), values, scale: 1.0 }
}

/// Products of points on a line about a centre.
fn products(points: &[f64], centre: f64) -> Square {
    let values =
        points.iter().flat_map(|a| points.iter().map(move |b| (a - centre) * (b - centre))).collect();
    Square { n: points.len(), values, scale: 1.0 }
}

fn call(rule: &str, f: f64) -> Vec<(String, Raw)> {
    vec![("rule".into(), Raw::Text(rule.into())), ("f".into(), Raw::Number(f))]
}

#[test]
fn krum_and_bulyan_choose_by_hand() {
    let distances = line(&[0.0, 1.0, 1.5, 4.0, 100.0]);
    assert_eq!(decide::krum_scores(&distances, 2), [3.25, 1.25, 2.5, 15.25, 18918.25]);
    let bad = [false; 5];
    assert_eq!(decide::order(&decide::krum_scores(&distances, 2), &bad), [1, 2, 0, 3, 4]);
    // The bad row is last even where its score is the least, and equal scores go by row.
    assert_eq!(decide::order(&[1.0, 0.0, 1.0], &[false, true, false]), [0, 2, 1]);
    // With 3 neighbours each row 2 has 0.25 + 2.25 + 6.25; of what is left, with 2, row 1 has 1 + 9.
    assert_eq!(decide::bulyan(&distances, &bad, 0, 2), [2, 1]);
}

#[test]
fn subsets_of_least_diameter() {
    let distances = line(&[0.0, 10.0, 1.0, 2.0, 11.0, 12.0]);
    assert_eq!(decide::least_diameter(&distances, &[false; 6], 3), [0, 2, 3], "of equal ones the first");
    assert_eq!(decide::least_diameter(&distances, &[true, false, false, false, false, false], 3), [1, 4, 5]);
    assert_eq!(decide::least_diameter(&distances, &[true, false, true, true, true, true], 3), [0, 1, 2]);
}

#[test]
fn neighbours_buckets_and_lengths() {
    let distances = line(&[0.0, 3.0, 1.0, 9.0]);
    assert_eq!(decide::nearest_rows(&distances, 2), [[0, 2], [1, 2], [0, 2], [1, 3]]);
    let buckets = decide::buckets(10, 4, 7);
    assert_eq!(buckets.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 2]);
    let mut rows: Vec<usize> = buckets.concat();
    rows.sort_unstable();
    assert_eq!(rows, (0..10).collect::<Vec<_>>());
    assert_eq!(decide::buckets(10, 4, 7), buckets);
    assert_ne!(decide::buckets(10, 4, 8), buckets);
    assert_eq!(decide::arc_length(&[5.0, 1.0, 4.0, 3.0, 2.0], 1), Some(4.0));
    assert_eq!(decide::arc_length(&[5.0, 1.0], 0), None);
    assert_eq!(decide::clip_factors(&[2.0, 0.5, f64::INFINITY], &[false, false, true], 1.0), [0.5, 1.0, 1.0]);
}

#[test]
fn shares_are_rounded_down_but_for_the_last_digit() {
    assert_eq!((Cut::Share(0.499_999_999_9).of(2), Cut::Share(0.4).of(0), Cut::Count(3).of(9)), (0, 0, 3));
    assert_eq!((Cut::Share(0.29).of(100), Cut::Share(0.2).of(9), Cut::Share(0.0).of(9)), (29, 1, 0));
}

#[test]
fn points_in_the_space_of_weights() {
    // On a line the geometric median of an odd number of points is the middle one; the far point costs no digits.
    let search = Weiszfeld { nu: 0.0, iterations: 1000, tolerance: 1e-12 };
    let points = [1.0, 2.0, 1e30, 0.0, 3.0, 2.0];
    let found = search.median(&products(&points, 2.0), &[false; 5]);
    let point: f64 =
        points[..5].iter().zip(&found.weights).filter(|pair| pair.0 < &1e29).map(|(x, w)| x * w).sum();
    assert!((point - 2.0).abs() < 1e-6, "{point}");
    // From 10: rows 1, 2 and 3 pull by one each.
    let found = centered_clipping(&products(&[1.0, 2.0, 3.0, 10.0], 2.0), &[false; 3], 1.0, 1);
    let point: f64 = [1.0, 2.0, 3.0, 10.0].iter().zip(&found.weights).map(|(x, w)| x * w).sum();
    assert!((point - 9.0).abs() < 1e-12, "{point}");
}

#[test]
fn a_call_given_up_ends_with_aborted() {
    let rows = Tensor::from_slice(DType::F32, [5, 3000], &vec![1.0f32; 15_000]).unwrap();
    let cancelled = Arc::new(AtomicBool::new(true));
    for rule in ["mean", "median", "trimmedMean", "krum", "geometricMedian", "cge", "mda"] {
        let call = Aggregation::new(&[rows.meta().clone()], false, None, &call(rule, 1.0)).unwrap();
        let outcome = call.run_cpu(std::slice::from_ref(&rows), None, &Watch::over(cancelled.clone()));
        assert_eq!(outcome.err().unwrap().code(), "ABORTED", "{rule}");
    }
}

#[test]
fn progress_ends_at_one() {
    let rows = Tensor::from_slice(DType::F64, [7, 5000], &vec![1.0f64; 35_000]).unwrap();
    for rule in ["mean", "median", "phocas", "krum", "multiKrum", "mda", "bulyan", "cge", "geometricMedian"] {
        let call = Aggregation::new(&[rows.meta().clone()], false, None, &call(rule, 1.0)).unwrap();
        let watch = Watch::default();
        call.run_cpu(std::slice::from_ref(&rows), None, &watch).unwrap();
        assert!(watch.progress() > 0.99, "{rule}: {}", watch.progress());
    }
}
