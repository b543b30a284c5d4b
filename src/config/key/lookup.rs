//! Owns finding a setting, and how it is called and shown.

use super::super::{Form, masked};
use super::{KEYS, Key};

impl Key {
    /// Finds a setting; `-`, `_` and case make no difference, since git's own keys know no `_`.
    pub(crate) fn find(name: &str) -> Option<&'static Key> {
        let plain = |text: &str| text.replace(['-', '_'], "").to_lowercase();
        KEYS.iter().find(|k| plain(k.name) == plain(name))
    }

    /// A value as it may be shown to anybody.
    pub(crate) fn shown(&self, value: &str) -> String {
        if self.form == Form::Secret { masked(value) } else { value.to_owned() }
    }

    /// The environment variable that sets it.
    pub(crate) fn variable(&self) -> String {
        format!("PROQ_{}", self.name.replace('.', "_").to_uppercase())
    }
}
