//! Owns the layers of configuration: built-in, repository, user, git, environment. Later wins.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::form::Form;
use super::{KEYS, Key};
use crate::explain::{Exit, Explain, set_aside};
use crate::regular_file::{self, Links};

/// Where a value comes from, weakest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody set it.
    Default,
    /// `proq.toml` in the repository: its path in the main checkout, or `BRANCH:proq.toml` in a commit.
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
    /// What has to be a table is none.
    #[error("{key} in {} is no table", path.display())]
    NoTable {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
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
            Error::Read { path, .. } | Error::Toml { path, .. } if path.is_relative() => {
                format!("see the file, and correct it on its branch: git show '{}'", path.display()).into()
            }
            Error::Read { path, .. } | Error::Toml { path, .. } => {
                format!("correct it, or set it aside: {}", set_aside(path, "broken")).into()
            }
            Error::Value { default, .. } => match *default {
                "" => "correct it where it is set; without it there is none".into(),
                default => format!("correct it where it is set; without it '{default}' counts").into(),
            },
            Error::NoTable { key, .. } => format!("write it as [{key}.NAME] and lines below that").into(),
            Error::NotForRepository { key, .. } if TABLES.contains(&key.as_str()) => {
                "take it out of that file; yours is ~/.config/git-proq/config.toml".into()
            }
            Error::NotForRepository { key, .. } => format!(
                "take it out of that file; to set it for yourself: git config proq.{} VALUE",
                Key::find(key).map_or_else(|| key.clone(), Key::in_git)
            )
            .into(),
        }]
    }

    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// Tables that are no settings: only the user's own file may have them, and whoever uses them reads them.
const TABLES: &[&str] = &["agents", "prices"];

/// Every value that is set, with its origin, and what was set in vain.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layers {
    values: BTreeMap<&'static str, (String, Origin)>,
    /// The values of the repository's `proq.toml`, by key, those included that a later layer overrides.
    of_repository: BTreeMap<&'static str, (String, Origin)>,
    tables: BTreeMap<&'static str, (toml::Table, PathBuf)>,
    /// Command lines, by the event that they are to run at.
    hooks: BTreeMap<String, (String, Origin)>,
    /// What the main checkout's `proq.toml` has, if there is one.
    in_checkout: Option<String>,
    unknown: Vec<String>,
    /// How many keys nobody knows, apart from those.
    more_unknown: usize,
}

/// How many keys that nobody knows are named one by one.
const NAMED: usize = 5;

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

    /// What the main checkout's `proq.toml` has, if there is one.
    pub(crate) fn in_checkout(&self) -> Option<&str> {
        self.in_checkout.as_deref()
    }

    /// These layers with the checks of a commit's `proq.toml` in place of those of the main checkout's. `file` is its name and its
    /// text, if the commit has one.
    ///
    /// # Errors
    /// As for a file of the main checkout.
    pub(crate) fn with_checks_of(&self, file: Option<(&Path, &str)>) -> Result<Layers, Error> {
        let mut of_commit = Layers::default();
        if let Some((path, text)) = file {
            of_commit.add_text(text, path, &Origin::Repository(path.to_owned()))?;
        }
        let mut layers = self.clone();
        for key in KEYS.iter().filter(|key| key.by_repository && key.name.starts_with("verify.")) {
            if matches!(self.get(key).1, Origin::Default | Origin::Repository(_)) {
                layers.values.remove(key.name);
                layers.values.extend(of_commit.values.remove_entry(key.name));
            }
        }
        Ok(layers)
    }

    /// These layers with the checks that the user had set for themselves in `then`, and without those that they have set since.
    pub(crate) fn with_own_checks_of(&self, then: &Layers) -> Layers {
        let mut layers = self.clone();
        for key in KEYS.iter().filter(|key| key.name.starts_with("verify.")) {
            let value = match then.get(key).1 {
                Origin::Default | Origin::Repository(_) => self.of_repository.get_key_value(key.name),
                Origin::User(_) | Origin::Git | Origin::Environment(_) => then.values.get_key_value(key.name),
            };
            layers.values.remove(key.name);
            layers.values.extend(value.map(|(name, value)| (*name, value.clone())));
        }
        layers
    }

    /// The value of a key and where it comes from.
    pub(crate) fn get(&self, key: &Key) -> (&str, &Origin) {
        match self.values.get(key.name) {
            Some((value, origin)) => (value, origin),
            None => (key.default, &Origin::Default),
        }
    }

    /// A table of the user's own file, `agents` or `prices`, and that file.
    pub(crate) fn table(&self, name: &str) -> Option<(&toml::Table, &Path)> {
        self.tables.get(name).map(|(table, path)| (table, path.as_path()))
    }

    /// The command lines that are to run at an event, one on each line.
    pub(crate) fn hook(&self, event: &str) -> Option<&(String, Origin)> {
        self.hooks.get(event)
    }

    /// The events that command lines are set for, by name.
    pub(crate) fn hooks(&self) -> impl Iterator<Item = &str> {
        self.hooks.keys().map(String::as_str)
    }

    /// The settings of the user's own file and of git's configuration, hooks and whole tables such as `agents` among them, by key.
    pub(crate) fn own(&self) -> impl Iterator<Item = (String, Cow<'_, str>)> {
        let values = self.values.iter().map(|(key, (text, origin))| ((*key).to_owned(), text, origin));
        let hooks = self.hooks.iter().map(|(event, (text, origin))| (format!("hook.{event}"), text, origin));
        // No other file may have one.
        let tables =
            self.tables.iter().map(|(name, (table, _))| ((*name).to_owned(), table.to_string().into()));
        let is_own = |origin: &Origin| matches!(origin, Origin::User(_) | Origin::Git);
        values
            .chain(hooks)
            .filter(move |(.., origin)| is_own(origin))
            .map(|(key, text, _)| (key, Cow::Borrowed(text.as_str())))
            .chain(tables)
    }

    /// The first keys that were set and that nobody knows, with their origins.
    pub(crate) fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// How many more there are than [`Layers::unknown`] names.
    pub(crate) fn more_unknown(&self) -> usize {
        self.more_unknown
    }

    fn add_file(&mut self, path: &Path, origin: &Origin) -> Result<(), Error> {
        let links = match (origin, path.parent()) {
            (Origin::Repository(_), Some(top)) => Links::Below(top),
            _ => Links::Follow,
        };
        let text = match regular_file::read_text(path, regular_file::SETTINGS, links) {
            Ok(text) => text,
            Err(e)
                if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
            {
                return Ok(());
            }
            Err(source) => return Err(Error::Read { path: path.to_owned(), source }),
        };
        self.add_text(&text, path, origin)?;
        if matches!(origin, Origin::Repository(_)) {
            self.in_checkout = Some(text);
        }
        Ok(())
    }

    fn add_text(&mut self, text: &str, path: &Path, origin: &Origin) -> Result<(), Error> {
        let mut table: toml::Table =
            toml::from_str(text).map_err(|e| Error::Toml { path: path.to_owned(), source: Box::new(e) })?;
        self.take_tables(&mut table, path, origin)?;
        let mut flat = Vec::new();
        flatten("", &table, &mut flat);
        for (key, value) in flat {
            let text = as_text(&key, value).ok_or_else(|| bad_value(&key, value.to_string(), origin))?;
            self.add(&key, text, origin.clone())?;
        }
        Ok(())
    }

    /// Takes out what is no setting. Which programs there are and what they may do is not for a repository to say.
    fn take_tables(&mut self, table: &mut toml::Table, path: &Path, origin: &Origin) -> Result<(), Error> {
        for name in TABLES {
            let Some(value) = table.remove(*name) else { continue };
            if let Origin::Repository(path) = origin {
                return Err(Error::NotForRepository { path: path.clone(), key: (*name).to_owned() });
            }
            let toml::Value::Table(value) = value else {
                return Err(Error::NoTable { path: path.to_owned(), key: (*name).to_owned() });
            };
            self.tables.insert(name, (value, path.to_owned()));
        }
        Ok(())
    }

    fn add(&mut self, name: &str, value: String, origin: Origin) -> Result<(), Error> {
        let Some(key) = Key::find(name) else {
            if let Some(event) = event_of(name) {
                return self.add_hook(event, name, value, origin);
            }
            if self.unknown.len() == NAMED {
                self.more_unknown += 1;
                return Ok(());
            }
            let meant = Key::meant(name).map(|key| match &origin {
                Origin::Git => key.in_git(),
                _ => key.name.to_owned(),
            });
            let meant = meant.map_or_else(String::new, |key| format!("; did you mean {key}?"));
            self.unknown.push(format!("{name} (from {origin}{meant})"));
            return Ok(());
        };
        if let (Origin::Repository(path), false) = (&origin, key.by_repository) {
            return Err(Error::NotForRepository { path: path.clone(), key: key.name.to_owned() });
        }
        if !key.form.accepts(&value) {
            return Err(bad_value(name, value, &origin));
        }
        let before = self.values.get(key.name).filter(|_| is_list(key));
        let value = together(before, value, &origin);
        if matches!(origin, Origin::Repository(_)) {
            self.of_repository.insert(key.name, (value.clone(), origin.clone()));
        }
        self.values.insert(key.name, (value, origin));
        Ok(())
    }

    fn add_hook(&mut self, event: &str, name: &str, value: String, origin: Origin) -> Result<(), Error> {
        if !Form::Commands.accepts(&value) {
            return Err(bad_value(name, value, &origin));
        }
        let value = together(self.hooks.get(event), value, &origin);
        self.hooks.insert(event.to_owned(), (value, origin));
        Ok(())
    }
}

fn is_list(key: &Key) -> bool {
    matches!(key.form, Form::Commands | Form::Areas | Form::Patterns)
}

/// The event whose commands `hook.EVENT` sets; `hook.timeout` and the like are settings of their own.
fn event_of(name: &str) -> Option<&str> {
    name.strip_prefix("hook.").filter(|event| event.contains('.') || event.starts_with("pre-"))
}

/// git gives a list one value at a time; an empty one begins it anew, as for git's own lists. Elsewhere the later one counts.
fn together(before: Option<&(String, Origin)>, value: String, origin: &Origin) -> String {
    match before {
        Some((before, Origin::Git)) if *origin == Origin::Git && !before.is_empty() && !value.is_empty() => {
            format!("{before}\n{value}")
        }
        _ => value,
    }
}

/// The error for a value that does not have its key's form.
fn bad_value(name: &str, value: String, origin: &Origin) -> Error {
    let key = Key::find(name);
    let form = key.map_or(Form::Commands, |k| k.form);
    Error::Value {
        key: key.map_or(name, |k| k.name).to_owned(),
        value: match form {
            Form::Secret => "(hidden)".to_owned(),
            _ => value,
        },
        origin: origin.to_string(),
        form: form.describe(),
        default: key.map_or("", |k| k.default),
    }
}

/// A value of a file as the other layers would give it; none for a list of anything but single lines.
fn as_text(name: &str, value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Array(items) if Key::find(name).map_or(event_of(name).is_some(), is_list) => {
            let line =
                |item: &toml::Value| item.as_str().filter(|l| !l.contains('\n')).map(ToOwned::to_owned);
            items.iter().map(line).collect::<Option<Vec<_>>>().map(|lines| lines.join("\n"))
        }
        other => Some(other.to_string()),
    }
}

fn flatten<'t>(prefix: &str, table: &'t toml::Table, out: &mut Vec<(String, &'t toml::Value)>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(inner) => flatten(&key, inner, out),
            value => out.push((key, value)),
        }
    }
}

#[cfg(test)]
mod tests;
