//! Modules, functions and the linker.

use super::super::link;
use super::super::modules::{self as inner, Image, Refusal};
use super::super::status::*;
use super::bound;
use super::types::*;
use std::ffi::{c_int, c_uint};

const WALL_TIME: c_int = 2;
const INFO_LOG: (c_int, c_int) = (3, 4);
const ERROR_LOG: (c_int, c_int) = (5, 6);
/// Number of `CUjit_option` values.
const OPTIONS: c_int = 34;

/// The options of a compilation: keys, and values that are numbers or addresses.
struct Options {
    keys: Vec<c_int>,
    values: Vec<usize>,
    places: Array<usize>,
}

impl Options {
    fn read(count: c_uint, keys: Array<c_int>, places: Array<usize>) -> Outcome<Options> {
        let keys = keys.list(count as usize)?;
        let values = places.list(count as usize)?;
        if keys.iter().any(|key| !(0..OPTIONS).contains(key)) {
            return Err(INVALID_VALUE);
        }
        Ok(Options { keys, values, places })
    }

    fn index(&self, key: c_int) -> Option<usize> {
        self.keys.iter().position(|one| *one == key)
    }

    /// Fills a log's buffer and puts the number of bytes filled in place of its size.
    fn log(&self, (buffer, size): (c_int, c_int), text: &str) {
        let (Some(buffer), Some(size)) = (self.index(buffer), self.index(size)) else { return };
        let room = self.values[size] & 0xffff_ffff;
        if room == 0 || self.values[buffer] == 0 {
            return;
        }
        let filled = text.len().min(room - 1);
        let bytes = [&text.as_bytes()[..filled], &[0]].concat();
        super::pages::copy_in(self.values[buffer], &bytes);
        self.places.set(size, if filled == 0 { 0 } else { filled + 1 });
    }

    /// Tells the caller how a compilation went.
    fn answer<T>(&self, result: Result<T, Refusal>) -> Outcome<T> {
        if let Some(index) = self.index(WALL_TIME) {
            self.places.set(index, 0);
        }
        self.log(INFO_LOG, "");
        self.log(ERROR_LOG, result.as_ref().err().map_or("", |refusal| &refusal.log));
        result.map_err(|refusal| refusal.status)
    }
}

/// What an image is, by its first bytes.
fn image(bytes: Bytes) -> Outcome<Image> {
    if bytes.list(1)? != [0x7f] {
        return Ok(bytes.text().map_or(Image::Unknown, Image::Ptx));
    }
    // A cubin of another maker is no shorter than its own header.
    let Some((capability, length)) = link::header(&bytes.list(link::HEADER)?) else {
        return Ok(Image::Unknown);
    };
    let text = bytes.list(link::HEADER + length)?.split_off(link::HEADER);
    Ok(String::from_utf8(text).map_or(Image::Unknown, |text| Image::Cubin(capability, text)))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleLoadDataEx(
    module: Slot<Handle>,
    data: Bytes,
    count: c_uint,
    keys: Array<c_int>,
    values: Array<usize>,
) -> Status {
    bound("cuModuleLoadDataEx", |ordinal| {
        if module.is_null() {
            return Err(INVALID_VALUE);
        }
        let options = Options::read(count, keys, values)?;
        module.put(options.answer(inner::load(ordinal, image(data)?))?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleUnload(module: Handle) -> Status {
    bound("cuModuleUnload", |ordinal| inner::unload(ordinal, module))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleGetFunction(function: Slot<Handle>, module: Handle, name: Text) -> Status {
    bound("cuModuleGetFunction", |ordinal| function.put(inner::function(ordinal, module, &name.get()?)?))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuFuncGetAttribute(value: Slot<c_int>, attribute: c_int, function: Handle) -> Status {
    bound("cuFuncGetAttribute", |ordinal| value.put(inner::attribute(ordinal, function, attribute)?))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuFuncSetAttribute(function: Handle, attribute: c_int, value: c_int) -> Status {
    bound("cuFuncSetAttribute", |ordinal| inner::set_attribute(ordinal, function, attribute, value))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLinkCreate_v2(
    count: c_uint,
    keys: Array<c_int>,
    values: Array<usize>,
    state: Slot<Handle>,
) -> Status {
    bound("cuLinkCreate_v2", |ordinal| {
        if state.is_null() {
            return Err(INVALID_VALUE);
        }
        let options = Options::read(count, keys, values)?;
        options.answer(Ok(()))?;
        state.put(link::create(ordinal))
    })
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "the driver's prototype")]
pub extern "C" fn cuLinkAddData_v2(
    state: Handle,
    kind: c_int,
    data: Bytes,
    size: usize,
    _name: Text,
    count: c_uint,
    keys: Array<c_int>,
    values: Array<usize>,
) -> Status {
    bound("cuLinkAddData_v2", |ordinal| {
        let options = Options::read(count, keys, values)?;
        options.answer(link::add(ordinal, state, kind, &data.list(size)?))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLinkComplete(state: Handle, image: Slot<Handle>, size: Slot<usize>) -> Status {
    bound("cuLinkComplete", |ordinal| {
        let (address, length) = link::complete(ordinal, state)?;
        image.put(address)?;
        if size.is_null() { Ok(()) } else { size.put(length) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLinkDestroy(state: Handle) -> Status {
    bound("cuLinkDestroy", |ordinal| link::destroy(ordinal, state))
}
