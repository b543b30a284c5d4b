//! Owns how a path is written in records and answers: as it is, or, where it is no UTF-8, escaped behind a mark.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serializer};

use crate::git::RepoPath;

/// No absolute path begins like this.
const MARK: &str = "bytes:";

/// The path as text that `read` turns back.
pub(crate) fn text(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => format!("{MARK}{}", RepoPath::new(path.as_os_str().as_bytes())),
    }
}

fn read<E: serde::de::Error>(text: String) -> Result<PathBuf, E> {
    let Some(escaped) = text.strip_prefix(MARK) else { return Ok(PathBuf::from(text)) };
    let path: RepoPath =
        serde::Deserialize::deserialize(serde::de::value::StrDeserializer::<E>::new(escaped))?;
    Ok(path.under(Path::new("")))
}

pub(crate) fn serialize<S: Serializer>(path: &Path, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&text(path))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<PathBuf, D::Error> {
    read(String::deserialize(d)?)
}

/// The same for a path that may be absent.
pub(crate) mod option {
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde hands the field over like this")]
    pub(crate) fn serialize<S: Serializer>(path: &Option<PathBuf>, s: S) -> Result<S::Ok, S::Error> {
        match path {
            Some(path) => s.serialize_some(&super::text(path)),
            None => s.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<PathBuf>, D::Error> {
        Option::<String>::deserialize(d)?.map(super::read).transpose()
    }
}
