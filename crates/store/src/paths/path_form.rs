//! Text form of paths in records and answers: verbatim, or escaped after a prefix where the path is not
//! UTF-8.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use proq_git::RepoPath;
use serde::{Deserialize, Deserializer, Serializer};

/// Prefix of an escaped path. No absolute path starts with it.
const ESCAPE_PREFIX: &str = "bytes:";

/// Formats a path as text that `from_text` parses.
pub fn to_text(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => format!("{ESCAPE_PREFIX}{}", RepoPath::new(path.as_os_str().as_bytes())),
    }
}

/// Parses a path from the text that [`to_text`] returns; fails if an escaped path is malformed.
fn from_text<E: serde::de::Error>(text: String) -> Result<PathBuf, E> {
    let Some(escaped) = text.strip_prefix(ESCAPE_PREFIX) else { return Ok(PathBuf::from(text)) };
    let path: RepoPath =
        serde::Deserialize::deserialize(serde::de::value::StrDeserializer::<E>::new(escaped))?;
    Ok(path.to_fs_path(Path::new("")))
}

/// Serializes a path as text, in the form that [`to_text`] returns.
pub fn serialize<S: Serializer>(path: &Path, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&to_text(path))
}

/// Deserializes a path from its text form; fails if an escaped path is malformed.
pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<PathBuf, D::Error> {
    from_text(String::deserialize(d)?)
}

/// Serde functions for an optional path.
pub mod option {
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serializer};

    /// Serializes an optional path in its text form; none becomes null.
    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, s: S) -> Result<S::Ok, S::Error> {
        match path {
            Some(path) => s.serialize_some(&super::to_text(path)),
            None => s.serialize_none(),
        }
    }

    /// Deserializes an optional path from its text form; null becomes none.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<PathBuf>, D::Error> {
        Option::<String>::deserialize(d)?.map(super::from_text).transpose()
    }
}
