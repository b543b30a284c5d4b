//! Records: TOML files with a `format` number. A broken record is an error and never read as defaults.

use std::path::Path;

use proq_base::regular_file;
use proq_base::regular_file::LinkPolicy;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::atomic;
use crate::Error;

/// Data that is stored in its own TOML file.
pub trait Record: Serialize + DeserializeOwned {
    /// Newest format that this program writes and reads.
    const FORMAT: u32;

    /// Reads a record that must exist.
    fn load(path: &Path) -> Result<Self, Error> {
        Self::load_if_exists(path)?
            .ok_or_else(|| Error::io("read", path)(std::io::ErrorKind::NotFound.into()))
    }

    /// Reads a record that may not exist.
    fn load_if_exists(path: &Path) -> Result<Option<Self>, Error> {
        let text =
            match regular_file::read_text(path, regular_file::MAX_TOML_RECORD_BYTES, LinkPolicy::Refuse) {
                Ok(text) => text,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(e) => return Err(Error::io("read", path)(e)),
            };
        Self::from_toml(&text, path).map(Some)
    }

    /// Parses the text of a record. `path` is for error messages.
    fn from_toml(text: &str, path: &Path) -> Result<Self, Error> {
        let broken =
            |source: toml::de::Error| Error::Broken { path: path.to_owned(), source: Box::new(source) };
        let format = match parse_format_line(text) {
            Some(format) => format,
            None => toml::from_str::<FormatHeader>(text).map_err(broken)?.format,
        };
        if format > Self::FORMAT {
            return Err(Error::NewerFormat { path: path.to_owned(), found: format, known: Self::FORMAT });
        }
        toml::from_str(text).map_err(broken)
    }

    /// Returns the contents of the record's file. `path` is for error messages.
    fn to_toml(&self, path: &Path) -> Result<String, Error> {
        let body = toml::to_string(self)
            .map_err(|e| Error::Broken { path: path.to_owned(), source: Box::new(e) })?;
        Ok(format!("format = {}\n{body}", Self::FORMAT))
    }

    /// Replaces a record without syncing it, for records that may be lost in a power cut.
    fn save_unsynced(&self, path: &Path) -> Result<(), Error> {
        atomic::write_unsynced(path, self.to_toml(path)?.as_bytes())
    }

    /// Replaces a record atomically and durably.
    fn save(&self, path: &Path) -> Result<(), Error> {
        atomic::write(path, self.to_toml(path)?.as_bytes())
    }
}

/// Parses the format number from the first line, as git-proq writes it. This is a fast path, because there
/// can be many records.
fn parse_format_line(text: &str) -> Option<u32> {
    text.split('\n').next()?.strip_prefix("format = ")?.parse().ok()
}

/// Format number of a record, parsed without the record's other fields.
#[derive(Deserialize)]
struct FormatHeader {
    format: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Serialize, Deserialize, PartialEq)]
    struct SampleRecord {
        name: String,
    }

    impl Record for SampleRecord {
        const FORMAT: u32 = 2;
    }

    #[test]
    fn record_round_trips_and_missing_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/thing.toml");
        assert_eq!(SampleRecord::load_if_exists(&path).unwrap(), None);
        SampleRecord { name: "x".into() }.save(&path).unwrap();
        assert_eq!(SampleRecord::load(&path).unwrap(), SampleRecord { name: "x".into() });
    }

    #[test]
    fn newer_and_broken_records_stay_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("thing.toml");
        std::fs::write(&path, "format = 3\nname = 'x'\nmore = 1\n").unwrap();
        assert!(matches!(SampleRecord::load(&path), Err(Error::NewerFormat { found: 3, known: 2, .. })));
        for text in ["", "format = 2\n", "name = 'x'", "format = 2\nname = "] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(SampleRecord::load(&path), Err(Error::Broken { .. })), "{text:?}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
