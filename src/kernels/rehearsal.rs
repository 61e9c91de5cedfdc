//! What a rehearsal finds: kernels that are about to be launched and are not loaded.

use super::launcher::Generated;

/// A kernel to load.
pub struct Missing {
    /// Its name, or the key that it is kept under.
    pub key: String,
    /// Where its text is.
    pub text: Text,
}

/// Where a kernel's text is.
pub enum Text {
    /// Among the embedded ones.
    Embedded,
    /// Made for this launch.
    Generated(Generated),
}
