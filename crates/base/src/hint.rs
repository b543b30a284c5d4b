//! Hints: what the user can do next, each made from a template that is in the source.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use serde::{Serialize, Serializer};

/// What the user can do next, in one line: its purpose, a colon and a command that can be pasted.
///
/// Only [`hint!`](crate::hint!) and the attribute `#[hint(…)]` of `derive(Explain)` make one. So the source has
/// the template of each hint that is printed, and `cargo xtask hints` finds those that no test has followed.
/// Serializes as its text.
#[derive(Clone)]
pub struct Hint {
    /// Format string of the text.
    template: &'static str,
    text: String,
}

impl Hint {
    /// Creates a hint for `hint!` and `derive(Explain)`; `text` is formatted by `template`.
    #[doc(hidden)]
    pub fn from_template(template: &'static str, text: fmt::Arguments<'_>) -> Hint {
        Hint { template, text: text.to_string() }
    }

    /// Returns the hint with its text changed.
    #[must_use]
    pub fn map_text(self, change: impl FnOnce(String) -> String) -> Hint {
        Hint { text: change(self.text), ..self }
    }

    /// Returns the format string in the source, which identifies the hint: `show it: git proq show {name}`.
    pub fn template(&self) -> &'static str {
        self.template
    }
}

/// Creates a [`Hint`] from a format string and its arguments.
#[macro_export]
macro_rules! hint {
    ($template:literal $($arguments:tt)*) => {
        $crate::hint::Hint::from_template($template, ::std::format_args!($template $($arguments)*))
    };
}

impl Deref for Hint {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl PartialEq for Hint {
    fn eq(&self, other: &Hint) -> bool {
        self.text == other.text
    }
}

impl Eq for Hint {}

impl PartialEq<&str> for Hint {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

impl Borrow<str> for Hint {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl Serialize for Hint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}
