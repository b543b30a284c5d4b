//! Owns the layers of configuration: built-in, repository, user, git, environment. Later wins.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::{KEYS, Key};
use crate::explain::{Exit, Explain};

/// Where a value comes from, weakest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody set it.
    Default,
    /// `proq.toml` in the repository.
    Repository(PathBuf),
    /// The user's own file.
    User(PathBuf),
    /// `git config proq.*`.
    Git,
    /// An environment variable.
    Environment(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("built in"),
            Origin::Repository(path) | Origin::User(path) => write!(f, "{}", path.display()),
            Origin::Git => f.write_str("git config"),
            Origin::Environment(name) => write!(f, "${name}"),
        }
    }
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A settings file cannot be read.
    #[error("could not read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A settings file is not TOML.
    #[error("{} is not valid TOML", path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// A value does not have its key's form.
    #[error("{key} = '{value}' (from {origin}) cannot be used; it takes {form}")]
    Value {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// Where it was set.
        origin: String,
        /// What it could be.
        form: String,
        /// What it is when nobody sets it.
        default: &'static str,
    },
    /// A repository's file sets what only the user may set.
    #[error("{} may not set {key}: only you may, for yourself", path.display())]
    NotForRepository {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
    },
}

impl Explain for Error {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        vec![match self {
            Error::Read { path, .. } | Error::Toml { path, .. } => {
                format!("correct it, or set it aside: mv '{0}' '{0}.broken'", path.display()).into()
            }
            Error::Value { default, .. } => {
                format!("correct it where it is set; without it '{default}' counts").into()
            }
            Error::NotForRepository { key, .. } => format!(
                "take it out of that file; to set it for yourself: git config proq.{} VALUE",
                key.replace('_', "")
            )
            .into(),
        }]
    }

    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// Every value that is set, with its origin, and what was set in vain.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    values: BTreeMap<&'static str, (String, Origin)>,
    unknown: Vec<String>,
}

impl Layers {
    /// Reads all layers. `top` is the main checkout, `user` the user's configuration folder, `git` the `proq.*` keys of
    /// git's configuration in git's order, `env` how to ask for an environment variable.
    pub(crate) fn read(
        top: Option<&Path>,
        user: Option<&Path>,
        git: &[(String, String)],
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Layers, Error> {
        let mut layers = Layers::default();
        if let Some(path) = top.map(|t| t.join("proq.toml")) {
            layers.add_file(&path, &Origin::Repository(path.clone()))?;
        }
        if let Some(path) = user.map(|u| u.join("git-proq/config.toml")) {
            layers.add_file(&path, &Origin::User(path.clone()))?;
        }
        for (key, value) in git {
            layers.add(key, value.clone(), Origin::Git)?;
        }
        for key in KEYS {
            let name = key.variable();
            if let Some(value) = env(&name) {
                layers.add(key.name, value, Origin::Environment(name))?;
            }
        }
        Ok(layers)
    }

    /// The value of a key and where it comes from.
    pub(crate) fn get(&self, key: &Key) -> (&str, &Origin) {
        match self.values.get(key.name) {
            Some((value, origin)) => (value, origin),
            None => (key.default, &Origin::Default),
        }
    }

    /// Keys that were set and that nobody knows, with their origins.
    pub(crate) fn unknown(&self) -> &[String] {
        &self.unknown
    }

    fn add_file(&mut self, path: &Path, origin: &Origin) -> Result<(), Error> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e)
                if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
            {
                return Ok(());
            }
            Err(source) => return Err(Error::Read { path: path.to_owned(), source }),
        };
        let table: toml::Table =
            toml::from_str(&text).map_err(|e| Error::Toml { path: path.to_owned(), source: Box::new(e) })?;
        let mut flat = Vec::new();
        flatten("", &table, &mut flat);
        for (key, value) in flat {
            self.add(&key, value, origin.clone())?;
        }
        Ok(())
    }

    fn add(&mut self, name: &str, value: String, origin: Origin) -> Result<(), Error> {
        let Some(key) = Key::find(name) else {
            self.unknown.push(format!("{name} (from {origin})"));
            return Ok(());
        };
        if let (Origin::Repository(path), false) = (&origin, key.by_repository) {
            return Err(Error::NotForRepository { path: path.clone(), key: key.name.to_owned() });
        }
        if !key.form.accepts(&value) {
            return Err(Error::Value {
                key: key.name.to_owned(),
                value,
                origin: origin.to_string(),
                form: key.form.describe(),
                default: key.default,
            });
        }
        self.values.insert(key.name, (value, origin));
        Ok(())
    }
}

fn flatten(prefix: &str, table: &toml::Table, out: &mut Vec<(String, String)>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(inner) => flatten(&key, inner, out),
            toml::Value::String(text) => out.push((key, text.clone())),
            other => out.push((key, other.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> &'static Key {
        Key::find(name).unwrap()
    }

    #[test]
    fn later_layers_win_and_say_where_they_are() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(
            dir.path().join("proq.toml"),
            "[merge]\nuncommitted = 'commit'\n[agent]\nstop_grace = 3\n",
        )
        .unwrap();
        let git = [("merge.uncommitted".to_owned(), "snapshot".to_owned())];
        let env = |name: &str| (name == "PROQ_LOCK_TIMEOUT").then(|| "5".to_owned());
        let layers = Layers::read(Some(dir.path()), None, &git, &env).unwrap();
        assert_eq!(layers.get(key("merge.uncommitted")), ("snapshot", &Origin::Git));
        assert_eq!(layers.get(key("agent.stop_grace")).0, "3");
        assert_eq!(layers.get(key("lock.timeout")).1.to_string(), "$PROQ_LOCK_TIMEOUT");
        assert_eq!(layers.get(key("trash.keep")), ("7", &Origin::Default));
    }

    #[test]
    fn bad_values_forbidden_keys_and_broken_files_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("proq.toml");
        let read = || Layers::read(Some(dir.path()), None, &[], &|_| None);
        std::fs::write(&file, "[merge]\nuncommitted = 'maybe'\n").unwrap();
        assert!(read().unwrap_err().to_string().contains("'maybe'"));
        std::fs::write(&file, "[trash]\nkeep = 0\n").unwrap();
        assert!(matches!(read(), Err(Error::NotForRepository { .. })));
        std::fs::write(&file, "[merge").unwrap();
        assert!(matches!(read(), Err(Error::Toml { .. })));
        std::fs::write(&file, "[merge]\nnew_thing = 1\n").unwrap();
        assert_eq!(read().unwrap().unknown().len(), 1);
    }
}
