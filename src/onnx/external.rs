//! Tensors kept outside the model file. One place opens files, and by one rule: a plain name, in the model's folder, of a
//! regular file that is neither a symbolic nor a second hard link.

use super::{Limits, invalid_model, proto, quoted};
use crate::{Error, Result};
use bytes::Bytes;
use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Where external data may come from. The default is nowhere, so that a model from bytes opens no file.
#[derive(Debug, Clone, Default)]
pub struct External {
    folder: Option<PathBuf>,
    entries: HashMap<String, Bytes>,
    links: bool,
}

impl External {
    /// The files of one folder.
    pub fn folder(folder: &Path) -> External {
        External { folder: Some(folder.to_path_buf()), ..External::default() }
    }

    /// Gives the content of an external file, under the name that the model calls it by.
    pub fn with_entry(mut self, name: &str, content: Bytes) -> External {
        self.entries.insert(name.to_string(), content);
        self
    }

    /// Also takes files that have several hard links, as caches that share equal files make them.
    pub fn with_links(mut self) -> External {
        self.links = true;
        self
    }

    /// The bytes that a tensor's entries point at, `size` of them.
    pub fn read(&self, entries: &[proto::Entry], size: usize) -> Result<Bytes> {
        let place = Place::parse(entries, size)?;
        if let Some(content) = self.entries.get(place.location) {
            place.check(content.len() as u64)?;
            let start = place.offset as usize;
            return Ok(content.slice(start..start + size));
        }
        let name = quoted(place.location);
        let Some(folder) = &self.folder else {
            return invalid_model(format!("external data {name} was not given in externalData"));
        };
        if !is_plain(place.location) {
            return invalid_model(format!(
                "external data {name} must be a plain file name in the model's folder"
            ));
        }
        let (mut file, metadata) = open(&folder.join(place.location), &name, self.links)?;
        place.check(metadata.len())?;
        let failed = |error| unreadable(&name, error);
        file.seek(SeekFrom::Start(place.offset)).map_err(failed)?;
        Ok(Bytes::from(read_exactly(&mut file, size).map_err(failed)?))
    }
}

/// A range within an external file.
struct Place<'a> {
    location: &'a str,
    offset: u64,
    end: u64,
}

impl<'a> Place<'a> {
    /// Reads the entries; a length that is given must be that of the tensor.
    fn parse(entries: &'a [proto::Entry], size: usize) -> Result<Place<'a>> {
        let (mut location, mut offset) = (None, 0);
        for entry in entries {
            let number = || match entry.value.parse::<u64>() {
                Ok(number) => Ok(number),
                Err(_) => invalid_model(format!(
                    "external data: {} must be a whole number, got {}",
                    entry.key,
                    quoted(&entry.value)
                )),
            };
            match entry.key.as_str() {
                "location" => location = Some(entry.value.as_str()),
                "offset" => offset = number()?,
                "length" if number()? == size as u64 => {}
                "length" => {
                    return invalid_model(format!(
                        "external data: the tensor takes {size} bytes, its length says {}",
                        quoted(&entry.value)
                    ));
                }
                "checksum" => {}
                key => return invalid_model(format!("external data: unknown key {}", quoted(key))),
            }
        }
        let Some(location) = location else { return invalid_model("external data without a location") };
        match u64::checked_add(offset, size as u64) {
            Some(end) => Ok(Place { location, offset, end }),
            None => invalid_model(format!("external data: offset {offset} is too large")),
        }
    }

    /// An error unless a file of that many bytes holds the range.
    fn check(&self, bytes: u64) -> Result<()> {
        if self.end <= bytes {
            return Ok(());
        }
        let (name, start, end) = (quoted(self.location), self.offset, self.end);
        invalid_model(format!("external data {name} has {bytes} bytes, bytes {start} to {end} are wanted"))
    }
}

/// Whether a location names a file and nothing but a file.
fn is_plain(location: &str) -> bool {
    let plain = !location.contains(['/', '\\', ':', '\0']);
    plain && !matches!(location, "" | "." | "..")
}

fn unreadable(name: &str, error: impl std::fmt::Display) -> Error {
    Error::InvalidModel(format!("model: {name} cannot be read: {error}"))
}

/// Opens a regular file without following a link or waiting for a writer, and says what was opened.
fn open(path: &Path, name: &str, links: bool) -> Result<(File, Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
    }
    #[cfg(not(target_os = "linux"))]
    if std::fs::symlink_metadata(path).map_err(|error| unreadable(name, error))?.is_symlink() {
        return invalid_model(format!("{name} is a symbolic link"));
    }
    let file = options.open(path).map_err(|error| unreadable(name, error))?;
    let metadata = file.metadata().map_err(|error| unreadable(name, error))?;
    if !metadata.is_file() {
        return invalid_model(format!("{name} is not a regular file"));
    }
    #[cfg(unix)]
    if !links && std::os::unix::fs::MetadataExt::nlink(&metadata) > 1 {
        return invalid_model(format!("{name} has several hard links; allowLinks takes such files"));
    }
    Ok((file, metadata))
}

/// The next `size` bytes. Memory is asked for as the file gives them, so a file that shrank costs no more than it has.
fn read_exactly(file: &mut File, size: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size)?;
    file.take(size as u64).read_to_end(&mut bytes)?;
    match bytes.len() == size {
        true => Ok(bytes),
        false => Err(std::io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The content of a model file.
pub fn read_model(path: &Path, limits: &Limits) -> Result<Bytes> {
    let name = quoted(&path.to_string_lossy());
    let failed = |error| unreadable(&name, error);
    let mut file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return invalid_model(format!("{name} is not a regular file"));
    }
    if metadata.len() > limits.model_bytes {
        let (got, most) = (metadata.len(), limits.model_bytes);
        return invalid_model(format!("{name} has {got} bytes, which pass maxModelBytes, which is {most}"));
    }
    Ok(Bytes::from(read_exactly(&mut file, metadata.len() as usize).map_err(failed)?))
}
