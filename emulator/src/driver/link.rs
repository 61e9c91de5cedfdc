//! The linker: PTX in, an image out that loads like a cubin.

use super::modules::Refusal;
use super::state::{Id, state};
use super::status::*;
use crate::Module;

/// A linker's state.
pub struct Link {
    pub ordinal: usize,
    text: Option<String>,
    /// The image, kept until the linker is destroyed.
    image: Option<Vec<u8>>,
}

/// What images begin with: a cubin's first bytes, then a mark of our own.
const MAGIC: &[u8] = b"\x7fELF\x02\x01\x01\x33\x07\0\0\0\0\0\0\0warpwright-emulator\0";
/// The mark, the compute capability and the length of the text.
pub const HEADER: usize = MAGIC.len() + 4 + 8;

const INPUT_CUBIN: i32 = 0;
const INPUT_PTX: i32 = 1;

/// An image that holds the text for cards of that compute capability.
fn image(capability: u32, text: &str) -> Vec<u8> {
    let mut image = MAGIC.to_vec();
    image.extend(capability.to_le_bytes());
    image.extend((text.len() as u64).to_le_bytes());
    image.extend(text.as_bytes());
    image
}

/// Compute capability and length of the text, of the first bytes of an image.
pub fn header(bytes: &[u8]) -> Option<(u32, usize)> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let capability = u32::from_le_bytes(*rest.first_chunk()?);
    let length = u64::from_le_bytes(*rest.get(4..)?.first_chunk()?);
    Some((capability, usize::try_from(length).ok()?))
}

/// Whether a cubin made for one compute capability runs on another: the same generation, no older.
pub fn runs_on(made_for: u32, capability: u32) -> bool {
    made_for / 10 == capability / 10 && made_for <= capability
}

pub fn create(ordinal: usize) -> Id {
    let mut driver = state();
    let id = driver.fresh();
    driver.links.insert(id, Link { ordinal, text: None, image: None });
    id
}

/// Adds an input; PTX is compiled at once, so that a refusal shows here.
pub fn add(ordinal: usize, id: Id, kind: i32, data: &[u8]) -> Result<(), Refusal> {
    let target = {
        let driver = state();
        if driver.links.get(&id).is_none_or(|link| link.ordinal != ordinal) {
            return Err(driver.stale::<()>("a linker").err().unwrap_or(INVALID_HANDLE).into());
        }
        driver.target()
    };
    let text = match kind {
        INPUT_PTX => {
            let data = data.split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8(data.to_vec()).map_err(|_| Refusal::from(INVALID_PTX))?
        }
        INPUT_CUBIN => {
            let (_, length) = header(data).ok_or(INVALID_IMAGE)?;
            let text = data.get(HEADER..).and_then(|rest| rest.get(..length)).ok_or(INVALID_IMAGE)?;
            String::from_utf8_lossy(text).into_owned()
        }
        _ => return Err(NOT_SUPPORTED.into()),
    };
    Module::load(&text, &target)?;
    let mut driver = state();
    let link = driver.links.get_mut(&id).ok_or(INVALID_HANDLE)?;
    if link.text.is_some() || link.image.is_some() {
        return Err(NOT_SUPPORTED.into());
    }
    link.text = Some(text);
    Ok(())
}

/// Address and size of the image, which stay until the linker is destroyed.
pub fn complete(ordinal: usize, id: Id) -> Outcome<(usize, usize)> {
    let mut driver = state();
    let capability = driver.config.compute_capability;
    let Some(link) = driver.links.get_mut(&id).filter(|link| link.ordinal == ordinal) else {
        return driver.stale("a linker");
    };
    let text = link.text.take().ok_or(INVALID_VALUE)?;
    let image = link.image.insert(image(capability, &text));
    Ok((image.as_ptr() as usize, image.len()))
}

pub fn destroy(ordinal: usize, id: Id) -> Outcome {
    let mut driver = state();
    match driver.links.get(&id) {
        Some(link) if link.ordinal == ordinal => {
            driver.links.remove(&id);
            Ok(())
        }
        _ => driver.stale("a linker"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_tell_what_they_are_for() {
        let image = image(80, ".version 7.0\n");
        assert_eq!(header(&image), Some((80, 13)));
        assert_eq!(&image[HEADER..], b".version 7.0\n");
        assert_eq!(header(b".version 7.0\n"), None);
        assert!(runs_on(80, 86) && !runs_on(86, 80) && !runs_on(75, 80));
    }
}
