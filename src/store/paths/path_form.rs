//! Text form of paths in records and answers: verbatim, or escaped after a prefix where the path is not
//! UTF-8.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serializer};

use crate::git::RepoPath;

/// Prefix of an escaped path. No absolute path starts with it.
const ESCAPE_PREFIX: &str = "bytes:";

/// Formats a path as text that [`from_text`] parses.
pub(crate) fn to_text(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => format!("{ESCAPE_PREFIX}{}", RepoPath::new(path.as_os_str().as_bytes())),
    }
}

fn from_text<E: serde::de::Error>(text: String) -> Result<PathBuf, E> {
    let Some(escaped) = text.strip_prefix(ESCAPE_PREFIX) else { return Ok(PathBuf::from(text)) };
    let path: RepoPath =
        serde::Deserialize::deserialize(serde::de::value::StrDeserializer::<E>::new(escaped))?;
    Ok(path.to_fs_path(Path::new("")))
}

pub(crate) fn serialize<S: Serializer>(path: &Path, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&to_text(path))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<PathBuf, D::Error> {
    from_text(String::deserialize(d)?)
}

/// Serde functions for an optional path.
pub(crate) mod option {
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde hands the field over like this")]
    pub(crate) fn serialize<S: Serializer>(path: &Option<PathBuf>, s: S) -> Result<S::Ok, S::Error> {
        match path {
            Some(path) => s.serialize_some(&super::to_text(path)),
            None => s.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<PathBuf>, D::Error> {
        Option::<String>::deserialize(d)?.map(super::from_text).transpose()
    }
}
