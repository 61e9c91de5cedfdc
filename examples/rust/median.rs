//! Column medians of a small matrix: `cargo run --example median --no-default-features`.
//!
//! Runs on the GPU where there is one and on the CPU elsewhere; WARPWRIGHT_DEVICE=cpu or cuda decides otherwise.

fn main() -> Result<(), warpwright::Error> {
    let gradients = [
        [1.0, 5.0, 3.0], //
        [2.0, 2.0, 8.0],
        [9.0, 1.0, 4.0],
    ];
    let (n, d) = (gradients.len(), gradients[0].len());
    let medians = warpwright::median(gradients.as_flattened(), n, d)?;
    println!("medians of {n} rows: {medians:?}");
    assert_eq!(medians, [2.0, 2.0, 4.0]);
    Ok(())
}
