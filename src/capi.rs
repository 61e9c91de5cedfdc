//! The C ABI: `include/warpwright.h` in Rust. The device follows WARPWRIGHT_DEVICE, else a GPU where there is one.

#![allow(unsafe_code)]

use crate::cpu::Float;
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

/// Checks the arguments, computes, writes the result last.
fn aggregate<T: Float>(dtype: DType, grads: *const T, n: i32, d: i32, result: *mut T) -> Result<()> {
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
    if d == 0 {
        return Ok(());
    }
    if !grads.is_aligned() || !result.is_aligned() {
        return invalid!("grads and result must be aligned to {} bytes", align_of::<T>());
    }
    // SAFETY: not null and aligned as checked above; the header asks for n * d readable numbers at `grads`.
    let rows = unsafe { std::slice::from_raw_parts(grads, n * d) };
    let median = median(dtype, rows, n, d)?;
    // SAFETY: not null and aligned as checked above; the header asks for d writable numbers at `result`, apart from
    // `grads`, which is not read any more.
    let target = unsafe { std::slice::from_raw_parts_mut(result, d) };
    target.copy_from_slice(median.host_view()?.as_slice());
    Ok(())
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
    report(|| aggregate(DType::F64, grads, n, d, result))
}

/// Column medians of float32 rows. See the header.
///
/// # Safety
/// As for [`median_aggregate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn median_aggregate_f32(grads: *const f32, n: i32, d: i32, result: *mut f32) -> i32 {
    report(|| aggregate(DType::F32, grads, n, d, result))
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
