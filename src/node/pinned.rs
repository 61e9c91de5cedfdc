//! `allocPinned`: array buffers over page-locked memory.

#![allow(unsafe_code)]

use super::Result;
use crate::runtime::allocate_pinned;
use napi::bindgen_prelude::*;
use napi_derive::napi;

/// A zeroed buffer over page-locked memory where there is a GPU, over plain memory elsewhere.
#[napi]
pub fn alloc_pinned(bytes: f64) -> Result<Uint8Array> {
    if !(bytes >= 0.0 && bytes.fract() == 0.0 && bytes <= 9_007_199_254_740_991.0) {
        return Err(crate::Error::InvalidArgument(format!(
            "allocPinned: length must be a whole number, got {bytes}"
        ))
        .into());
    }
    let mut block = allocate_pinned((bytes as usize).max(1))?;
    let (start, _) = block.parts();
    // SAFETY: the block's memory is heap or page-locked memory that does not move with the block; the finaliser owns
    // the block, and calls in flight hold their own reference, so the memory outlives every reader.
    Ok(unsafe { Uint8Array::with_external_data(start, bytes as usize, move |_, _| drop(block)) })
}
