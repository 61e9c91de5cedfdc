//! The C ABI: `include/warpwright.h` in Rust. The device follows WARPWRIGHT_DEVICE, else a GPU where there is one.

#![allow(unsafe_code)]

use crate::aggregate::{Aggregation, Report, Watch};
use crate::cpu::Float;
use crate::ops::{Meta, Raw};
use crate::{CODES, DType, Error, Result, Tensor, invalid};
use std::cell::RefCell;
use std::ffi::{CString, c_char};

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

fn median<T: Float>(dtype: DType, rows: &[T], n: usize, d: usize) -> Result<Tensor> {
    let rows = Tensor::from_slice(dtype, [n, d], rows)?;
    let results = crate::runtime::run("median", &[Some(rows)], &[], "auto")?;
    match results.into_iter().next() {
        Some(result) => result.to_host(),
        None => Err(Error::Internal("median gave no result".into())),
    }
}

/// Column medians of `n` rows of `d` numbers: element n/2 of each sorted column, NaN last.
pub fn column_median(rows: &[f64], n: usize, d: usize) -> Result<Vec<f64>> {
    Ok(median(DType::F64, rows, n, d)?.host_view()?.as_slice::<f64>().to_vec())
}

/// Checks the arguments, computes, writes the result last. `compute` gets the numbers, n and d.
fn aggregate<T: Float>(
    (grads, n, d): (*const T, i64, i64),
    result: *mut T,
    compute: impl FnOnce(&[T], usize, usize) -> Result<Tensor>,
) -> Result<()> {
    if n <= 0 {
        return invalid!("n must be at least 1, got {n}");
    }
    if d < 0 {
        return invalid!("d must not be negative, got {d}");
    }
    if grads.is_null() {
        return invalid!("grads must not be NULL");
    }
    if result.is_null() {
        return invalid!("result must not be NULL");
    }
    let (n, d) = (n as usize, d as usize);
    let count = crate::shape::element_count("grads", &[n, d])?;
    if !grads.is_aligned() || !result.is_aligned() {
        return invalid!("grads and result must be aligned to {} bytes", align_of::<T>());
    }
    // SAFETY: not null and aligned as checked above; the header asks for n * d readable numbers at `grads`.
    let rows = unsafe { std::slice::from_raw_parts(grads, count) };
    let vector = compute(rows, n, d)?;
    // SAFETY: not null and aligned as checked above; the header asks for d writable numbers at `result`, apart from
    // `grads`, which is not read any more.
    let target = unsafe { std::slice::from_raw_parts_mut(result, d) };
    target.copy_from_slice(vector.host_view()?.as_slice());
    Ok(())
}

/// Medians of n rows of d numbers.
fn median_of<T: Float>(dtype: DType, rows: (*const T, i64, i64), result: *mut T) -> Result<()> {
    aggregate(rows, result, |rows, n, d| match d {
        0 => Tensor::from_slice(dtype, [0], rows),
        _ => median(dtype, rows, n, d),
    })
}

/// A rule of `aggregate` on the CPU with those options; the rows are read in place.
fn rule<T: Float>(
    dtype: DType,
    name: &str,
    options: &[(&str, f64)],
    (rows, n, d): (&[T], usize, usize),
) -> Result<(Tensor, Report)> {
    crate::runtime::choose("auto", None)?;
    let mut raw = vec![("rule".to_string(), Raw::Text(name.into()))];
    raw.extend(options.iter().map(|(name, value)| (name.to_string(), Raw::Number(*value))));
    let call = Aggregation::new(&[Meta::new(dtype, [n, d])], false, None, &raw)?;
    let rows: Vec<&[T]> = (0..n).map(|row| &rows[row * d..(row + 1) * d]).collect();
    call.run_slices(&rows, None, &Watch::default())
}

/// The mean of each column without its f smallest and f largest values.
fn trimmed_mean<T: Float>(dtype: DType, rows: (*const T, i64, i64), f: i64, result: *mut T) -> Result<()> {
    aggregate(rows, result, |rows, n, d| Ok(rule(dtype, "trimmedMean", &[("f", f as f64)], (rows, n, d))?.0))
}

/// The mean of the m rows with the least scores, and their numbers.
fn krum<T: Float>(
    dtype: DType,
    rows: (*const T, i64, i64),
    (f, m): (i64, i64),
    result: *mut T,
    chosen: *mut i64,
) -> Result<()> {
    if !chosen.is_aligned() {
        return invalid!("chosen must be aligned to {} bytes", align_of::<i64>());
    }
    aggregate(rows, result, |rows, n, d| {
        let options = [("f", f as f64), ("m", m as f64)];
        let (vector, report) = rule(dtype, "multiKrum", &options, (rows, n, d))?;
        if !chosen.is_null() {
            let picked = report.chosen.unwrap_or_default();
            // SAFETY: not null and aligned as checked above; the header asks for m writable numbers at `chosen`, and the rule
            // picked m rows.
            let target = unsafe { std::slice::from_raw_parts_mut(chosen, picked.len()) };
            target.iter_mut().zip(picked).for_each(|(slot, row)| *slot = row as i64);
        }
        Ok(vector)
    })
}

/// The point with the least sum of distances to the rows.
fn geometric_median<T: Float>(
    dtype: DType,
    rows: (*const T, i64, i64),
    nu: f64,
    result: *mut T,
) -> Result<()> {
    aggregate(rows, result, |rows, n, d| Ok(rule(dtype, "geometricMedian", &[("nu", nu)], (rows, n, d))?.0))
}

/// Runs `work`, keeps the text of its error for `warpwright_last_error` and gives the code's number.
fn report(work: impl FnOnce() -> Result<()>) -> i32 {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Error::Internal("a panic was caught".into())));
    let Err(error) = outcome else { return 0 };
    let text = format!("{}: {error}", error.code()).replace('\0', " ");
    LAST_ERROR.with(|slot| *slot.borrow_mut() = CString::new(text).unwrap_or_default());
    error.row().number
}

/// Column medians of float64 rows. See the header.
///
/// # Safety
/// `grads` points to n * d readable and `result` to d writable numbers that do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn median_aggregate(grads: *const f64, n: i32, d: i32, result: *mut f64) -> i32 {
    report(|| median_of(DType::F64, (grads, n.into(), d.into()), result))
}

/// Column medians of float32 rows. See the header.
///
/// # Safety
/// As for [`median_aggregate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn median_aggregate_f32(grads: *const f32, n: i32, d: i32, result: *mut f32) -> i32 {
    report(|| median_of(DType::F32, (grads, n.into(), d.into()), result))
}

/// [`median_aggregate`] with sizes of 64 bits. See the header.
///
/// # Safety
/// As for [`median_aggregate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn median_aggregate_64(grads: *const f64, n: i64, d: i64, result: *mut f64) -> i32 {
    report(|| median_of(DType::F64, (grads, n, d), result))
}

/// Trimmed means of float64 rows. See the header.
///
/// # Safety
/// As for [`median_aggregate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimmed_mean_aggregate(
    grads: *const f64,
    n: i64,
    d: i64,
    f: i64,
    result: *mut f64,
) -> i32 {
    report(|| trimmed_mean(DType::F64, (grads, n, d), f, result))
}

/// Krum and multi-Krum of float64 rows. See the header.
///
/// # Safety
/// As for [`median_aggregate`]; `chosen` is NULL or points to m writable numbers apart from the others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn krum_aggregate(
    grads: *const f64,
    n: i64,
    d: i64,
    f: i64,
    m: i64,
    result: *mut f64,
    chosen: *mut i64,
) -> i32 {
    report(|| krum(DType::F64, (grads, n, d), (f, m), result, chosen))
}

/// The geometric median of float64 rows. See the header.
///
/// # Safety
/// As for [`median_aggregate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn geometric_median_aggregate(
    grads: *const f64,
    n: i64,
    d: i64,
    nu: f64,
    result: *mut f64,
) -> i32 {
    report(|| geometric_median(DType::F64, (grads, n, d), nu, result))
}

/// [`median_aggregate_f32`] with sizes of 64 bits. See the header.
///
/// # Safety
/// As for [`median_aggregate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn median_aggregate_64_f32(grads: *const f32, n: i64, d: i64, result: *mut f32) -> i32 {
    report(|| median_of(DType::F32, (grads, n, d), result))
}

/// Trimmed means of float32 rows. See the header.
///
/// # Safety
/// As for [`median_aggregate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimmed_mean_aggregate_f32(
    grads: *const f32,
    n: i64,
    d: i64,
    f: i64,
    result: *mut f32,
) -> i32 {
    report(|| trimmed_mean(DType::F32, (grads, n, d), f, result))
}

/// Krum and multi-Krum of float32 rows. See the header.
///
/// # Safety
/// As for [`median_aggregate`]; `chosen` is NULL or points to m writable numbers apart from the others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn krum_aggregate_f32(
    grads: *const f32,
    n: i64,
    d: i64,
    f: i64,
    m: i64,
    result: *mut f32,
    chosen: *mut i64,
) -> i32 {
    report(|| krum(DType::F32, (grads, n, d), (f, m), result, chosen))
}

/// The geometric median of float32 rows. See the header.
///
/// # Safety
/// As for [`median_aggregate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn geometric_median_aggregate_f32(
    grads: *const f32,
    n: i64,
    d: i64,
    nu: f64,
    result: *mut f32,
) -> i32 {
    report(|| geometric_median(DType::F32, (grads, n, d), nu, result))
}

/// Text of the calling thread's last error, valid until its next failing call; empty when there was none.
#[unsafe(no_mangle)]
pub extern "C" fn warpwright_last_error() -> *const c_char {
    LAST_ERROR.with(|slot| slot.borrow().as_ptr())
}

/// What a code means: "" for 0, NULL for a number that is no code. The text lives as long as the process.
#[unsafe(no_mangle)]
pub extern "C" fn warpwright_error_text(code: i32) -> *const c_char {
    static TEXTS: std::sync::OnceLock<Vec<CString>> = std::sync::OnceLock::new();
    let texts = TEXTS.get_or_init(|| {
        let meanings = CODES
            .iter()
            .map(|row| CString::new(format!("{}: {}", row.code, row.meaning)).unwrap_or_default());
        std::iter::once(CString::default()).chain(meanings).collect()
    });
    let text = usize::try_from(code).ok().and_then(|index| texts.get(index));
    text.map_or(std::ptr::null(), |text| text.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn call(grads: &[f64], n: i32, d: i32, result: &mut [f64]) -> i32 {
        // SAFETY: the slices are as long as the tests' n and d say, or the call fails before it reads them.
        unsafe { median_aggregate(grads.as_ptr(), n, d, result.as_mut_ptr()) }
    }

    #[test]
    fn medians_of_odd_and_even_n() {
        let mut result = [0.0; 3];
        assert_eq!(call(&[1.0, 5.0, 3.0, 2.0, 2.0, 8.0, 9.0, 1.0, 4.0], 3, 3, &mut result), 0);
        assert_eq!(result, [2.0, 2.0, 4.0]);
        assert_eq!(call(&[4.0, 1.0, 3.0, 2.0], 4, 1, &mut result), 0);
        assert_eq!(result[0], 3.0);
        assert_eq!(column_median(&[4.0, 1.0, 3.0, 2.0], 4, 1).unwrap(), [3.0]);
    }

    #[test]
    fn bad_arguments_give_codes_and_leave_the_result() {
        let mut result = [7.0; 3];
        assert_eq!(call(&[1.0], 0, 1, &mut result), 6);
        assert_eq!(call(&[1.0], 1, -1, &mut result), 6);
        // SAFETY: null pointers are refused before they are read.
        assert_eq!(unsafe { median_aggregate(std::ptr::null(), 1, 1, result.as_mut_ptr()) }, 6);
        // SAFETY: as above.
        assert_eq!(unsafe { median_aggregate([1.0].as_ptr(), 1, 1, std::ptr::null_mut()) }, 6);
        assert_eq!(result, [7.0; 3]);
        // SAFETY: the text is this thread's and no call fails in between.
        let text = unsafe { CStr::from_ptr(warpwright_last_error()) };
        assert_eq!(text.to_str().unwrap(), "INVALID_ARGUMENT: result must not be NULL");
        assert_eq!(call(&[1.0], 1, 0, &mut result), 0);
    }

    #[test]
    fn rules_give_results_and_rows_chosen() {
        let rows = [0.0, 0.0, 1.0, 1.0, 0.5, 0.5, 90.0, f64::NAN, 0.4, 0.6];
        let (mut result, mut chosen) = ([7.0; 2], [-1i64; 2]);
        let out = result.as_mut_ptr();
        // SAFETY: rows of n = 5, d = 2 and a result of 2 numbers, here and below; m = 2 numbers for `chosen`.
        assert_eq!(unsafe { krum_aggregate(rows.as_ptr(), 5, 2, 1, 2, out, chosen.as_mut_ptr()) }, 0);
        assert_eq!(chosen, [2, 4]);
        // SAFETY: as above.
        assert_eq!(unsafe { krum_aggregate(rows.as_ptr(), 5, 2, 1, 1, out, std::ptr::null_mut()) }, 0);
        assert_eq!(result, [0.5, 0.5]);
        // SAFETY: as above.
        assert_eq!(unsafe { trimmed_mean_aggregate(rows.as_ptr(), 5, 2, 2, out) }, 0);
        assert_eq!(result, [0.5, 0.6]);
        // SAFETY: as above.
        assert_eq!(unsafe { median_aggregate_64(rows.as_ptr(), 5, 2, out) }, 0);
        assert_eq!(result, [0.5, 0.6]);
        // SAFETY: as above.
        assert_eq!(unsafe { geometric_median_aggregate(rows.as_ptr(), 5, 2, 0.0, out) }, 0);
        assert!(result.iter().all(|value| (0.3..0.7).contains(value)), "{result:?}");
        // SAFETY: as above.
        assert_eq!(unsafe { trimmed_mean_aggregate(rows.as_ptr(), 5, 2, 3, out) }, 6);
    }

    #[test]
    fn codes_have_texts() {
        // SAFETY: static texts.
        let text =
            |code| unsafe { CStr::from_ptr(warpwright_error_text(code)) }.to_str().unwrap().to_string();
        assert_eq!(text(0), "");
        assert!(text(7).starts_with("SHAPE_MISMATCH: "));
        assert!(warpwright_error_text(-1).is_null());
        assert!(warpwright_error_text(1000).is_null());
    }
}
