//! The pointers that callers pass, as types whose use is checked as far as C lets it be.

use super::super::status::{INVALID_VALUE, Outcome};
use std::ffi::{CStr, c_char, c_void};

/// A handle, or the address of host memory that only copies touch.
pub type Handle = usize;

/// Where the caller wants a result; may be null.
#[repr(transparent)]
pub struct Slot<T>(*mut T);

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Slot<T> {
        *self
    }
}

impl<T> Copy for Slot<T> {}

impl<T> From<&mut T> for Slot<T> {
    fn from(place: &mut T) -> Slot<T> {
        Slot(place)
    }
}

impl<T> Slot<T> {
    /// No place for the result.
    pub const NULL: Slot<T> = Slot(std::ptr::null_mut());

    /// Writes the result.
    pub fn put(self, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: by its prototype the caller passes null or a place that a `T` may be written to during the call.
        unsafe { self.0.write(value) };
        Ok(())
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl<T: Copy> Slot<T> {
    /// What the caller has put there.
    pub fn get(self) -> Option<T> {
        // SAFETY: by its prototype the caller passes null or a place that holds a `T`.
        (!self.0.is_null()).then(|| unsafe { self.0.read() })
    }
}

/// The first of some values, which the caller counts; may be null.
#[repr(transparent)]
pub struct Array<T>(*mut T);

impl<T> Clone for Array<T> {
    fn clone(&self) -> Array<T> {
        *self
    }
}

impl<T> Copy for Array<T> {}

impl<T: Copy> From<&mut [T]> for Array<T> {
    fn from(values: &mut [T]) -> Array<T> {
        Array(values.as_mut_ptr())
    }
}

impl<T: Copy> Array<T> {
    /// No values.
    pub const NULL: Array<T> = Array(std::ptr::null_mut());

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub fn address(self) -> usize {
        self.0.expose_provenance()
    }

    /// The values, of which there are that many.
    pub fn list(self, count: usize) -> Outcome<Vec<T>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: by its prototype the caller passes null or as many values as it counts, live during the call.
        Ok(unsafe { std::slice::from_raw_parts(self.0, count) }.to_vec())
    }

    /// Changes one of the values, of which the caller counts more than `index`.
    pub fn set(self, index: usize, value: T) {
        // SAFETY: not null, as each use has asked; by its prototype the caller passes as many places as it counts.
        unsafe { self.0.wrapping_add(index).write(value) };
    }
}

/// A struct that the caller passes by address; may be null.
pub type Struct<T> = Array<T>;

/// A zero-terminated text; may be null.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text(*const c_char);

impl From<&CStr> for Text {
    fn from(text: &CStr) -> Text {
        Text(text.as_ptr())
    }
}

impl Text {
    pub fn get(self) -> Outcome<String> {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: by its prototype the caller passes null or a zero-terminated text, live during the call.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map(str::to_string).map_err(|_| INVALID_VALUE)
    }
}

/// Bytes that the caller passes without saying how many; may be null.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Bytes(*const c_void);

impl From<&CStr> for Bytes {
    fn from(text: &CStr) -> Bytes {
        Bytes(text.as_ptr().cast())
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Bytes {
        Bytes(bytes.as_ptr().cast())
    }
}

impl Bytes {
    pub fn from_address(address: usize) -> Bytes {
        Bytes(std::ptr::with_exposed_provenance(address))
    }

    /// The first of them.
    pub fn list(self, count: usize) -> Outcome<Vec<u8>> {
        Array(self.0.cast_mut().cast()).list(count)
    }

    /// All up to the first zero.
    pub fn text(self) -> Outcome<String> {
        Text(self.0.cast()).get()
    }
}
