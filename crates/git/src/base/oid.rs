//! Object id newtype, so that nothing outside `git` names the type of the library.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Full object id, SHA-1 or SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Oid(pub(crate) gix::ObjectId);

impl Oid {
    /// Returns the abbreviated id for display: the first eight hex digits, or more if those are all decimal
    /// digits, because git commands such as `stash apply` read a number as something else.
    #[must_use]
    pub fn short(self) -> String {
        let hex = self.0.to_string();
        let first_letter = hex.find(|c: char| !c.is_ascii_digit()).unwrap_or(hex.len() - 1);
        hex[..=first_letter.max(7)].to_owned()
    }

    /// Returns the all-zero id of the same hash kind, which git reads as "does not exist".
    pub fn null(self) -> Oid {
        Oid(self.0.kind().null())
    }

    /// Returns whether this is the all-zero id.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Returns the raw bytes of the id.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// Parses an id from the hex bytes of git's output.
    pub fn from_hex(hex: &[u8]) -> Option<Oid> {
        gix::ObjectId::from_hex(hex).ok().map(Oid)
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Oid({})", self.0)
    }
}

impl FromStr for Oid {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Oid::from_hex(s.trim().as_bytes()).ok_or_else(|| format!("'{s}' is not an object id"))
    }
}

impl Serialize for Oid {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Oid {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_id_is_never_all_digits() {
        let id = |start: &str| Oid::from_hex(format!("{start:0<40}").as_bytes()).unwrap();
        assert_eq!(id("12a4567890").short(), "12a45678");
        assert_eq!(id("1234567890f").short(), "1234567890f");
        assert_eq!(id("12345678").short().len(), 40);
    }
}
