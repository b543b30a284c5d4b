//! Id of a batch.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Id of a batch, which names its folder: the time of its creation, such as `20261122-104500`, and a number
/// suffix where more than one batch starts in the same second. Any text can be an id: whether a batch has it
/// shows when the batch is read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BatchId(String);

impl BatchId {
    /// Creates the id with this text.
    pub fn new(text: impl Into<String>) -> BatchId {
        BatchId(text.into())
    }

    /// Returns the text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl AsRef<str> for BatchId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for BatchId {
    fn borrow(&self) -> &str {
        &self.0
    }
}
