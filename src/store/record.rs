//! Owns reading and writing records: TOML with a `format`, never read as defaults when it is broken.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Error, atomic};
use crate::regular_file::{self, Links};

/// Something kept in a TOML file of its own.
pub(crate) trait Record: Serialize + DeserializeOwned {
    /// The newest format this program writes and understands.
    const FORMAT: u32;

    /// Reads a record.
    fn load(path: &Path) -> Result<Self, Error> {
        Self::find(path)?.ok_or_else(|| Error::io("read", path)(std::io::ErrorKind::NotFound.into()))
    }

    /// Reads a record that may not exist.
    fn find(path: &Path) -> Result<Option<Self>, Error> {
        let text = match regular_file::read_text(path, regular_file::TOML, Links::Refuse) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io("read", path)(e)),
        };
        let broken =
            |source: toml::de::Error| Error::Broken { path: path.to_owned(), source: Box::new(source) };
        let format = match first_line(&text) {
            Some(format) => format,
            None => toml::from_str::<Header>(&text).map_err(broken)?.format,
        };
        if format > Self::FORMAT {
            return Err(Error::Newer { path: path.to_owned(), found: format, known: Self::FORMAT });
        }
        toml::from_str(&text).map(Some).map_err(broken)
    }

    /// What its file at `path` will say.
    fn text(&self, path: &Path) -> Result<String, Error> {
        let body = toml::to_string(self)
            .map_err(|e| Error::Broken { path: path.to_owned(), source: Box::new(e) })?;
        Ok(format!("format = {}\n{body}", Self::FORMAT))
    }

    /// The same for one that nothing depends on: a power cut may take it.
    fn note(&self, path: &Path) -> Result<(), Error> {
        atomic::write_cache(path, self.text(path)?.as_bytes())
    }

    /// Replaces a record.
    fn save(&self, path: &Path) -> Result<(), Error> {
        atomic::write(path, self.text(path)?.as_bytes())
    }
}

/// The format, where it stands as it is written here: there may be very many records to read.
fn first_line(text: &str) -> Option<u32> {
    text.split('\n').next()?.strip_prefix("format = ")?.parse().ok()
}

/// What every record begins with.
#[derive(Deserialize)]
struct Header {
    format: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Serialize, Deserialize, PartialEq)]
    struct Thing {
        name: String,
    }

    impl Record for Thing {
        const FORMAT: u32 = 2;
    }

    #[test]
    fn a_record_reads_back_and_an_absent_one_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/thing.toml");
        assert_eq!(Thing::find(&path).unwrap(), None);
        Thing { name: "x".into() }.save(&path).unwrap();
        assert_eq!(Thing::load(&path).unwrap(), Thing { name: "x".into() });
    }

    #[test]
    fn newer_and_broken_records_are_named_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("thing.toml");
        std::fs::write(&path, "format = 3\nname = 'x'\nmore = 1\n").unwrap();
        assert!(matches!(Thing::load(&path), Err(Error::Newer { found: 3, known: 2, .. })));
        for text in ["", "format = 2\n", "name = 'x'", "format = 2\nname = "] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(Thing::load(&path), Err(Error::Broken { .. })), "{text:?}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
