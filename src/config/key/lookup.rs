//! Owns finding a setting, and how it is called and shown.

use super::super::{Form, masked};
use super::{KEYS, Key};
use crate::explain::nearest_from;

/// How much a name that is none has in common with one that is offered for it: many settings are called alike.
const ALIKE: f64 = 0.85;

impl Key {
    /// Finds a setting; `-`, `_` and case make no difference, since git's own keys know no `_`.
    pub(crate) fn find(name: &str) -> Option<&'static Key> {
        // The program itself asks by the very name, some hundred times before any command begins.
        KEYS.iter().find(|k| k.name == name).or_else(|| {
            let plain = |text: &str| text.replace(['-', '_'], "").to_lowercase();
            let asked = plain(name);
            KEYS.iter().find(|k| plain(k.name) == asked)
        })
    }

    /// The setting that was probably meant by a name that is none.
    pub(crate) fn meant(name: &str) -> Option<&'static Key> {
        let (group, rest) = name.split_once('.')?;
        let beside = || KEYS.iter().filter_map(|k| k.name.strip_prefix(group)?.strip_prefix('.'));
        match beside().next() {
            Some(_) => Key::find(&format!("{group}.{}", nearest_from(ALIKE, rest, beside())?)),
            None => Key::find(nearest_from(ALIKE, name, KEYS.iter().map(|k| k.name))?),
        }
    }

    /// Its name as `git config` takes it, behind `proq.`: git knows no `_`.
    pub(crate) fn in_git(&self) -> String {
        let mut words = self.name.split('_');
        let mut out = words.next().unwrap_or_default().to_owned();
        for word in words {
            let (first, rest) = word.split_at(word.len().min(1));
            out.push_str(&first.to_uppercase());
            out.push_str(rest);
        }
        out
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
