//! Configuration layers: built-in, repository, user, git, environment. Later layers override earlier ones.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

pub use error::Error;

use super::conversion::SettingValue;
use super::key::Key;
use super::keys::KEYS;
use super::settings::Settings;
use super::toml_values::{flatten_table, hook_event, is_list_key, toml_value_text};
use super::value_format::ValueFormat;
use crate::regular_file;
use crate::regular_file::LinkPolicy;

mod error;

/// Layer that a value comes from, weakest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The built-in default.
    Default,
    /// `proq.toml` in the repository: its path in the main checkout, or `BRANCH:proq.toml` in a commit.
    Repository(PathBuf),
    /// The user's own configuration file.
    User(PathBuf),
    /// `git config proq.*`.
    Git,
    /// An environment variable, by name.
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

/// Settings file of a repository, `proq.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepositoryFile {
    /// There is none.
    Missing,
    /// The file on disk at the top of this checkout.
    OnDisk(PathBuf),
    /// Content of a file that is in a commit.
    Committed {
        /// Name for messages, as `git show` takes it: `BRANCH:proq.toml`.
        name: PathBuf,
        /// Content of the file.
        text: String,
    },
}

impl From<Option<&Path>> for RepositoryFile {
    fn from(checkout: Option<&Path>) -> RepositoryFile {
        checkout.map_or(RepositoryFile::Missing, |top| RepositoryFile::OnDisk(top.to_owned()))
    }
}

/// Tables of a settings file that are not settings: agent profiles and prices. Only the user's own file may
/// have them; the modules that use them parse them.
const USER_TABLES: &[&str] = &["agents", "prices"];

/// Merged configuration: every value that is set, its origin, and the keys that are unknown.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// Value and origin of each setting that is set, by key.
    values: BTreeMap<&'static str, (String, Origin)>,
    /// Values of the repository's `proq.toml`, by key, including those that a later layer overrides.
    repository_values: BTreeMap<&'static str, (String, Origin)>,
    /// Tables of the user's own file that are not settings, each with the path of that file.
    user_tables: BTreeMap<&'static str, (toml::Table, PathBuf)>,
    /// Command lines of hooks, by event.
    hooks: BTreeMap<String, (String, Origin)>,
    /// Content of the user's own `proq.toml`, if it exists.
    checkout_settings_text: Option<String>,
    /// Warning that no setting of the repository's file counts, because the file is invalid.
    ignored_repository: Option<String>,
    /// First unknown keys that are set, each described with its origin and a suggestion.
    listed_unknown_keys: Vec<String>,
    /// Number of unknown keys beyond those that are listed.
    unlisted_unknown_count: usize,
    /// Treatment of invalid values.
    invalid_values: InvalidValues,
    /// Descriptions of the invalid values that are left out.
    ignored_values: Vec<String>,
}

/// Treatment of invalid settings: a value that does not have the format of its setting, or a file that is not
/// TOML.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InvalidValues {
    /// The configuration cannot be loaded.
    #[default]
    Refuse,
    /// No setting of an invalid `proq.toml` of the repository counts, and [`Layers::ignored_repository`] is
    /// the warning. The user's own settings must be valid.
    IgnoreRepository,
    /// An invalid value of any layer is left out, and [`Layers::ignored_values`] describes it. No setting of a
    /// `proq.toml` counts that is not TOML.
    Ignore,
}

/// Maximum number of unknown keys that are listed by name.
const MAX_UNKNOWN_KEYS_LISTED: usize = 5;

impl Layers {
    /// Reads all layers. `git_settings` are the `proq.*` keys of git's configuration in git's order;
    /// `env_var` returns the value of an environment variable.
    pub fn read(
        main_checkout: Option<&Path>,
        user_config_dir: Option<&Path>,
        git_settings: &[(String, String)],
        env_var: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Layers, Error> {
        Layers::default().read_all(&main_checkout.into(), user_config_dir, git_settings, env_var)
    }

    /// Returns empty layers that treat invalid values by `invalid_values`.
    pub fn with_invalid_values(invalid_values: InvalidValues) -> Layers {
        Layers { invalid_values, ..Layers::default() }
    }

    /// Adds all layers, as [`Layers::read`] does.
    ///
    /// # Errors
    /// Fails if a file cannot be read or parsed, and for an invalid value unless those are ignored.
    pub fn read_all(
        self,
        repository: &RepositoryFile,
        user_config_dir: Option<&Path>,
        git_settings: &[(String, String)],
        env_var: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Layers, Error> {
        let mut layers = self;
        layers.add_repository(repository)?;
        if let Some(path) = user_config_dir.map(|u| u.join("git-proq/config.toml")) {
            layers.add_file(&path, &Origin::User(path.clone()))?;
        }
        for (key, value) in git_settings {
            layers.add_value(key, value.clone(), Origin::Git)?;
        }
        for key in KEYS.iter() {
            let name = key.env_var_name();
            if let Some(value) = env_var(&name) {
                layers.add_value(key.name, value, Origin::Environment(name))?;
            }
        }
        Ok(layers)
    }

    /// Adds the repository's own file. An invalid file is left out as a whole, unless that is refused.
    fn add_repository(&mut self, file: &RepositoryFile) -> Result<(), Error> {
        let invalid_values = match self.invalid_values {
            InvalidValues::IgnoreRepository => InvalidValues::Refuse,
            other => other,
        };
        let mut layer = Layers::with_invalid_values(invalid_values);
        let added = match file {
            RepositoryFile::Missing => Ok(()),
            RepositoryFile::OnDisk(top) => {
                let path = top.join("proq.toml");
                layer.add_file(&path, &Origin::Repository(path.clone()))
            }
            RepositoryFile::Committed { name, text } => {
                layer.checkout_settings_text = Some(text.clone());
                layer.add_text(text, name, &Origin::Repository(name.clone()))
            }
        };
        match added {
            Ok(()) => {
                let (invalid_values, ignored_repository) =
                    (self.invalid_values, self.ignored_repository.take());
                *self = Layers { ignored_repository, invalid_values, ..layer };
            }
            // A lane may have landed a folder, a submodule or a link of that name. It has no settings, and must not
            // stop the commands that remove it.
            Err(Error::UnreadableFile { path, source }) if is_link_or_folder(&path) => {
                self.ignore_repository(&format!("cannot read {}: {source}", path.display()));
            }
            Err(e) if self.invalid_values == InvalidValues::Refuse => return Err(e),
            Err(e) => self.ignore_repository(&e.summary()),
        }
        Ok(())
    }

    /// Records that no setting of the repository's file counts, because of an `error`.
    pub fn ignore_repository(&mut self, error: &str) {
        self.ignored_repository = Some(format!(
            "{error}; until that is corrected, the settings of the repository have their defaults"
        ));
    }

    /// Checks the content of a repository's settings file. `name` is its name in messages.
    ///
    /// # Errors
    /// Fails if the text is not valid TOML, has a bad value, or sets a key that a repository may not set.
    pub fn check_repository_text(name: &Path, text: &str) -> Result<(), Error> {
        Layers::default().add_text(text, name, &Origin::Repository(name.to_owned()))
    }

    /// Returns the content of the user's own `proq.toml`; none if there is no such file.
    pub fn checkout_settings_text(&self) -> Option<&str> {
        self.checkout_settings_text.as_deref()
    }

    /// Returns these layers with the `verify.*` settings of a commit's `proq.toml` instead of the main
    /// checkout's. `file` is the name and text of that file, if the commit has one.
    ///
    /// # Errors
    /// Fails if the text is not valid TOML, has a bad value, or sets a key that a repository may not set.
    pub fn with_commit_checks(&self, file: Option<(&Path, &str)>) -> Result<Layers, Error> {
        let mut commit_layers = Layers::default();
        if let Some((path, text)) = file {
            commit_layers.add_text(text, path, &Origin::Repository(path.to_owned()))?;
        }
        let mut layers = self.clone();
        for key in KEYS.iter().filter(|key| key.settable_by_repository && key.name.starts_with("verify.")) {
            if matches!(self.get(key).1, Origin::Default | Origin::Repository(_)) {
                layers.values.remove(key.name);
                layers.values.extend(commit_layers.values.remove_entry(key.name));
            }
        }
        Ok(layers)
    }

    /// Returns these layers with the `verify.*` settings that the user had set in `earlier`, and without
    /// those that the user has set since.
    pub fn with_user_checks_from(&self, earlier: &Layers) -> Layers {
        let mut layers = self.clone();
        for key in KEYS.iter().filter(|key| key.name.starts_with("verify.")) {
            let value = match earlier.get(key).1 {
                Origin::Default | Origin::Repository(_) => self.repository_values.get_key_value(key.name),
                Origin::User(_) | Origin::Git | Origin::Environment(_) => {
                    earlier.values.get_key_value(key.name)
                }
            };
            layers.values.remove(key.name);
            layers.values.extend(value.map(|(name, value)| (*name, value.clone())));
        }
        layers
    }

    /// Returns the value of a key and its origin.
    pub fn get(&self, key: &Key) -> (&str, &Origin) {
        match self.values.get(key.name) {
            Some((value, origin)) => (value, origin),
            None => (key.default, &Origin::Default),
        }
    }

    /// Returns a table of the user's own file (`agents` or `prices`) and the path of that file.
    pub fn user_table(&self, name: &str) -> Option<(&toml::Table, &Path)> {
        self.user_tables.get(name).map(|(table, path)| (table, path.as_path()))
    }

    /// Returns the command lines to run at an event, one per line, and their origin.
    pub fn hook_commands(&self, event: &str) -> Option<&(String, Origin)> {
        self.hooks.get(event)
    }

    /// Returns the names of the events that have command lines.
    pub fn hook_events(&self) -> impl Iterator<Item = &str> {
        self.hooks.keys().map(String::as_str)
    }

    /// Returns the settings from the user's own file and git's configuration, by key. Includes hooks and
    /// tables such as `agents`.
    pub fn user_settings(&self) -> impl Iterator<Item = (String, Cow<'_, str>)> {
        let values = self.values.iter().map(|(key, (text, origin))| ((*key).to_owned(), text, origin));
        let hooks = self.hooks.iter().map(|(event, (text, origin))| (format!("hook.{event}"), text, origin));
        // Only the user's own file may have tables.
        let tables =
            self.user_tables.iter().map(|(name, (table, _))| ((*name).to_owned(), table.to_string().into()));
        let is_set_by_user = |origin: &Origin| matches!(origin, Origin::User(_) | Origin::Git);
        values
            .chain(hooks)
            .filter(move |(.., origin)| is_set_by_user(origin))
            .map(|(key, text, _)| (key, Cow::Borrowed(text.as_str())))
            .chain(tables)
    }

    /// Returns the first unknown keys that are set, each described with its origin and a suggestion.
    pub fn listed_unknown_keys(&self) -> &[String] {
        &self.listed_unknown_keys
    }

    /// Returns the number of unknown keys beyond those that are listed.
    pub fn unlisted_unknown_count(&self) -> usize {
        self.unlisted_unknown_count
    }

    /// Returns descriptions of the invalid values that were left out, for warnings.
    pub fn ignored_values(&self) -> &[String] {
        &self.ignored_values
    }

    /// Returns the warning that no setting of the repository's file counts, because the file is invalid; none if it
    /// is valid.
    pub fn ignored_repository(&self) -> Option<&str> {
        self.ignored_repository.as_deref()
    }

    /// Fails for an invalid value, or leaves it out.
    fn handle_invalid(&mut self, error: Error) -> Result<(), Error> {
        if self.invalid_values != InvalidValues::Ignore {
            return Err(error);
        }
        self.ignored_values.push(format!("{error}; its default is used"));
        Ok(())
    }

    /// Adds the values of a settings file, if the file exists.
    fn add_file(&mut self, path: &Path, origin: &Origin) -> Result<(), Error> {
        let links = match (origin, path.parent()) {
            (Origin::Repository(_), Some(top)) => LinkPolicy::FollowBelow(top),
            _ => LinkPolicy::Follow,
        };
        let text = match regular_file::read_text(path, regular_file::MAX_SETTINGS_BYTES, links) {
            Ok(text) => text,
            Err(e)
                if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
            {
                return Ok(());
            }
            Err(source) => return Err(Error::UnreadableFile { path: path.to_owned(), source }),
        };
        self.add_text(&text, path, origin)?;
        if matches!(origin, Origin::Repository(_)) {
            self.checkout_settings_text = Some(text);
        }
        Ok(())
    }

    /// Adds the values in the text of a settings file. `path` is for errors.
    fn add_text(&mut self, text: &str, path: &Path, origin: &Origin) -> Result<(), Error> {
        let mut table: toml::Table = toml::from_str(text)
            .map_err(|e| Error::InvalidToml { path: path.to_owned(), source: Box::new(e) })?;
        self.take_user_tables(&mut table, path, origin)?;
        let mut flat_entries = Vec::new();
        flatten_table("", &table, &mut flat_entries);
        for (key, value) in flat_entries {
            match toml_value_text(&key, value) {
                Some(text) => self.add_value(&key, text, origin.clone())?,
                None => self.handle_invalid(invalid_value(&key, value.to_string(), origin))?,
            }
        }
        Ok(())
    }

    /// Moves the [`USER_TABLES`] from a parsed file into these layers. A repository's file may not have any:
    /// which programs exist and what they may do is the user's decision.
    fn take_user_tables(
        &mut self,
        table: &mut toml::Table,
        path: &Path,
        origin: &Origin,
    ) -> Result<(), Error> {
        for name in USER_TABLES {
            let Some(value) = table.remove(*name) else { continue };
            if let Origin::Repository(path) = origin {
                return Err(Error::NotForRepository { path: path.clone(), key: (*name).to_owned() });
            }
            let toml::Value::Table(value) = value else {
                return Err(Error::NotATable { path: path.to_owned(), key: (*name).to_owned() });
            };
            self.user_tables.insert(name, (value, path.to_owned()));
        }
        Ok(())
    }

    /// Adds the value of one key, or records the key as unknown. Fails for a value of a wrong format, and for
    /// a key that a repository may not set.
    fn add_value(&mut self, name: &str, value: String, origin: Origin) -> Result<(), Error> {
        let Some(key) = Key::find(name) else {
            if let Some(event) = hook_event(name) {
                return self.add_hook(event, name, value, origin);
            }
            if self.listed_unknown_keys.len() == MAX_UNKNOWN_KEYS_LISTED {
                self.unlisted_unknown_count += 1;
                return Ok(());
            }
            let suggestion = Key::closest_match(name).map(|key| match &origin {
                Origin::Git => key.git_name(),
                _ => key.name.to_owned(),
            });
            let suggestion = suggestion.map_or_else(String::new, |key| format!("; did you mean {key}?"));
            self.listed_unknown_keys.push(format!("{name} (from {origin}{suggestion})"));
            return Ok(());
        };
        if let (Origin::Repository(path), false) = (&origin, key.settable_by_repository) {
            return Err(Error::NotForRepository { path: path.clone(), key: key.name.to_owned() });
        }
        if !key.format.accepts(&value) {
            return self.handle_invalid(invalid_value(name, value, &origin));
        }
        let previous = self.values.get(key.name).filter(|_| is_list_key(key));
        let value = combine_with_previous(previous, value, &origin);
        if matches!(origin, Origin::Repository(_)) {
            self.repository_values.insert(key.name, (value.clone(), origin.clone()));
        }
        self.values.insert(key.name, (value, origin));
        Ok(())
    }

    /// Adds the command lines of the hook of an event. `name` is the full key, for errors.
    fn add_hook(&mut self, event: &str, name: &str, value: String, origin: Origin) -> Result<(), Error> {
        if !ValueFormat::Commands.accepts(&value) {
            return self.handle_invalid(invalid_value(name, value, &origin));
        }
        let value = combine_with_previous(self.hooks.get(event), value, &origin);
        self.hooks.insert(event.to_owned(), (value, origin));
        Ok(())
    }
}

impl Settings {
    /// Creates the typed settings from layers.
    pub fn from_layers(layers: &Layers) -> Settings {
        Settings::from_values(&|key| {
            let (text, origin) = layers.get(key);
            SettingValue { text, format: key.format, is_default: *origin == Origin::Default }
        })
    }
}

/// Combines a value with the previous one of the same key. git passes a list one value per entry; an empty
/// value restarts the list, as for git's own lists. In other layers the later value wins.
fn combine_with_previous(previous: Option<&(String, Origin)>, value: String, origin: &Origin) -> String {
    match previous {
        Some((previous, Origin::Git))
            if *origin == Origin::Git && !previous.is_empty() && !value.is_empty() =>
        {
            format!("{previous}\n{value}")
        }
        _ => value,
    }
}

/// Returns whether a path is that of a symbolic link or a folder.
fn is_link_or_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_symlink() || meta.is_dir())
}

/// Creates the error for a value that does not have the format of its key.
fn invalid_value(name: &str, value: String, origin: &Origin) -> Error {
    let key = Key::find(name);
    let format = key.map_or(ValueFormat::Commands, |k| k.format);
    Error::InvalidValue {
        key: key.map_or(name, |k| k.name).to_owned(),
        value: match format {
            ValueFormat::SecretUrl => "(hidden)".to_owned(),
            _ => value,
        },
        origin: Box::new(origin.clone()),
        format: format.describe(),
        default: key.map_or("", |k| k.default),
    }
}

#[cfg(test)]
mod tests;
