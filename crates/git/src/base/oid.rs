//! Object id newtypes, one for each kind of object, so that nothing outside `git` names the library's type.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Full id of an object of any kind, SHA-1 or SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Oid(pub(crate) gix::ObjectId);

impl Oid {
    /// Returns the abbreviated id for display: the first eight hex digits.
    #[must_use]
    pub fn short(self) -> String {
        self.0.to_hex_with_len(8).to_string()
    }

    /// Returns the abbreviated id for a command line: that of [`Oid::short`], or more digits if those are all
    /// decimal, because git commands such as `stash apply` read a number as something else.
    #[must_use]
    pub fn short_in_command(self) -> String {
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

/// Defines the id of one kind of object. It is written and read as the text of an [`Oid`].
macro_rules! id_of_kind {
    ($name:ident, $kind:literal) => {
        #[doc = concat!("Full id of a ", $kind, ", SHA-1 or SHA-256.")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(crate) gix::ObjectId);

        impl $name {
            #[doc = concat!("Creates the id of an object that is known to be a ", $kind, ".")]
            pub const fn from_oid(id: Oid) -> $name {
                $name(id.0)
            }

            #[doc = concat!("Parses the id of a ", $kind, " from the hex bytes of git's output.")]
            pub fn from_hex(hex: &[u8]) -> Option<$name> {
                Oid::from_hex(hex).map($name::from_oid)
            }

            /// Returns the id without its kind.
            pub const fn oid(self) -> Oid {
                Oid(self.0)
            }

            /// Returns the abbreviated id for display, as [`Oid::short`] does.
            #[must_use]
            pub fn short(self) -> String {
                self.oid().short()
            }

            /// Returns the abbreviated id for a command line, as [`Oid::short_in_command`] does.
            #[must_use]
            pub fn short_in_command(self) -> String {
                self.oid().short_in_command()
            }

            /// Returns the all-zero id of the same hash kind, which git reads as "does not exist".
            pub fn null(self) -> $name {
                $name::from_oid(self.oid().null())
            }

            /// Returns whether this is the all-zero id.
            pub fn is_null(self) -> bool {
                self.0.is_null()
            }

            /// Returns the raw bytes of the id.
            pub fn as_bytes(&self) -> &[u8] {
                self.0.as_slice()
            }
        }

        impl From<$name> for Oid {
            fn from(id: $name) -> Oid {
                id.oid()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(s: &str) -> Result<Self, Self::Err> {
                s.parse().map($name::from_oid)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                self.oid().serialize(s)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                Oid::deserialize(d).map($name::from_oid)
            }
        }
    };
}

id_of_kind!(CommitId, "commit");
id_of_kind!(TreeId, "tree");
id_of_kind!(BlobId, "blob");

/// Commit with its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommitWithTree {
    /// Id of the commit.
    pub commit: CommitId,
    /// Id of the commit's tree.
    pub tree: TreeId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_id_in_command_is_never_all_digits() {
        let id = |start: &str| Oid::from_hex(format!("{start:0<40}").as_bytes()).unwrap();
        let both = |start: &str| (id(start).short(), id(start).short_in_command());
        assert_eq!(both("12a4567890"), ("12a45678".to_owned(), "12a45678".to_owned()));
        assert_eq!(both("1234567890f"), ("12345678".to_owned(), "1234567890f".to_owned()));
        assert_eq!(id("12345678").short_in_command().len(), 40);
    }

    #[test]
    fn id_of_a_kind_has_the_text_of_its_oid() {
        let oid: Oid = "12a4567890".repeat(4).parse().unwrap();
        let commit = CommitId::from_oid(oid);
        let text = serde_json::to_string(&commit).unwrap();
        assert_eq!(text, serde_json::to_string(&oid).unwrap());
        assert_eq!(serde_json::from_str::<CommitId>(&text).unwrap(), commit);
        assert_eq!((commit.to_string(), commit.short()), (oid.to_string(), oid.short()));
        assert_eq!("no id".parse::<CommitId>().unwrap_err(), "no id".parse::<Oid>().unwrap_err());
    }
}
