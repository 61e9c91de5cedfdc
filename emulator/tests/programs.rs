//! Whole kernels, which use many instructions and checkers at once, against plain loops.

mod kernels;
mod rig;

use kernels::{PRODUCT, SCALE, SOFTMAX, product, scale, softmax};
use rig::{Rig, close, floats};
use warpwright_emulator::FaultKind;

#[test]
fn vectors_and_what_is_left_of_them() {
    let rig = Rig::text(SCALE, 75);
    for count in [1, 3, 4, 511, 513, 1000, 4099] {
        for (skew_x, skew_y) in [(0, 0), (4, 0), (0, 8), (12, 12)] {
            let x = floats(count, 3);
            let (a, y) = (rig.put_at(&x, skew_x), rig.put_at(&vec![0f32; count], skew_y));
            scale(a, y, count, [3.0, 0.1]).run(&rig).unwrap_or_else(|fault| panic!("{fault}"));
            let want: Vec<f32> = x.iter().map(|x| x.mul_add(3.0, 0.1)).collect();
            assert_eq!(rig.get::<f32>(y, count), want, "{count} elements at {skew_x} and {skew_y}");
        }
    }
}

#[test]
fn a_vector_that_passes_the_end() {
    let rig = Rig::text(SCALE, 75);
    let (x, y) = (rig.put(&floats(1000, 1)), rig.empty(999 * 4));
    let fault = scale(x, y, 1000, [1.0, 0.0]).run(&rig).unwrap_err();
    assert_eq!((fault.kind, fault.thread), (FaultKind::OutOfBounds, [121, 0, 0]));
    assert!(fault.detail.starts_with("16 bytes at offset 3984"), "{fault}");
    let more = Rig::text(SCALE, 75);
    let (x, y) = (more.put(&floats(999, 1)), more.empty(1000 * 4));
    assert_eq!(scale(x, y, 1000, [1.0, 0.0]).run(&more).unwrap_err().kind, FaultKind::OutOfBounds);
    let none = more.empty(1000 * 4);
    assert_eq!(scale(none, y, 1000, [1.0, 0.0]).run(&more).unwrap_err().kind, FaultKind::Uninitialized);
}

/// The product of such matrices by a kernel of that text.
fn multiply(text: &str, sizes: [usize; 3], shared: u32) -> Result<(), FaultKind> {
    let [m, n, k] = sizes;
    let rig = Rig::text(text, 75);
    let (a, b) = (floats(m * k, 1), floats(k * n, 2));
    let (pa, pb, c) = (rig.put(&a), rig.put(&b), rig.empty(m * n * 4));
    let mut launch = product([pa, pb, c], sizes);
    launch.shared = shared;
    launch.run(&rig).map_err(|fault| fault.kind)?;
    let term = |i: usize, t: usize| f64::from(a[i / n * k + t]) * f64::from(b[t * n + i % n]);
    let want: Vec<f64> = (0..m * n).map(|i| (0..k).map(|t| term(i, t)).sum()).collect();
    close(&rig.get(c, m * n), &want, 1e-5);
    Ok(())
}

#[test]
fn products_by_tiles() {
    for sizes in [[1, 1, 1], [16, 16, 16], [33, 47, 65], [70, 5, 100], [3, 130, 17], [4, 4, 0]] {
        assert_eq!(multiply(PRODUCT, sizes, kernels::TILES), Ok(()), "{sizes:?}");
    }
}

#[test]
fn products_with_a_fault_planted() {
    let sizes = [33, 47, 65];
    let early = |found| matches!(found, Err(FaultKind::Uninitialized | FaultKind::Race));
    for what in ["filled", "read"] {
        let barrier = format!("bar.sync 0; // The tiles are {what}.");
        assert!(PRODUCT.contains(&barrier));
        assert!(early(multiply(&PRODUCT.replace(&barrier, ""), sizes, kernels::TILES)), "{what}");
    }
    let guard = "setp.lt.and.u32 %in, %r12, %r2, %row;";
    assert!(PRODUCT.contains(guard));
    let unguarded = PRODUCT.replace(guard, "setp.lt.u32 %in, %r12, %r2;");
    assert_eq!(multiply(&unguarded, sizes, kernels::TILES), Err(FaultKind::OutOfBounds));
    assert_eq!(multiply(PRODUCT, sizes, kernels::TILES - 4), Err(FaultKind::OutOfBounds));
    let leave = PRODUCT.replace("\tmov.u32 %r7, tiles;", "\t@!%row ret;\n\tmov.u32 %r7, tiles;");
    assert_ne!(leave, PRODUCT);
    assert_eq!(
        multiply(&leave, sizes, kernels::TILES),
        Err(FaultKind::Uninitialized),
        "threads that left filled nothing"
    );
}

#[test]
fn rows_of_lengths_of_their_own() {
    let rig = Rig::text(SOFTMAX, 75);
    let (lengths, pitch) = ([1u32, 31, 0, 32, 33, 257, 2, 100, 64, 5, 300], 300usize);
    let rows = lengths.len();
    let x: Vec<f32> = floats(rows * pitch, 7).into_iter().map(|x| x * 20.0).collect();
    let y = rig.put(&vec![-1f32; rows * pitch]);
    let places = [rig.put(&x), rig.put(&lengths), y];
    softmax(places, rows, pitch).run(&rig).unwrap_or_else(|fault| panic!("{fault}"));
    let want: Vec<f64> = x
        .chunks(pitch)
        .zip(lengths)
        .flat_map(|(row, length)| {
            let row = &row[..length as usize];
            let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let e: Vec<f64> = row.iter().map(|x| (f64::from(*x) - f64::from(most)).exp()).collect();
            let sum: f64 = e.iter().sum();
            let share = |at: usize| e.get(at).map_or(-1.0, |e| e / sum);
            (0..pitch).map(share).collect::<Vec<f64>>()
        })
        .collect();
    close(&rig.get(y, x.len()), &want, 1e-6);
}
