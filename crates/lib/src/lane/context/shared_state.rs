//! State that all worktrees of a repository share and an agent may change: the repository's own settings and
//! its hooks.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;

use proq_git::Repo;

/// Maximum number of names listed in a sentence.
const MAX_NAMES_LISTED: usize = 5;

/// Returns the settings in the repository's own `config` and its hooks, by their display name, each with a
/// text that changes whenever it changes. Settings that git itself writes for branches and sample hooks are
/// left out.
pub(crate) fn shared_settings(repo: &Repo) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = repo
        .local_setting_hashes()
        .into_iter()
        .filter(|(key, _)| !key.starts_with("branch."))
        .map(|(key, value)| (format!("setting {key}"), value))
        .collect();
    let hooks = repo.common_dir().join("hooks");
    for entry in std::fs::read_dir(hooks).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let (false, Ok(meta)) = (name.ends_with(".sample"), entry.metadata()) {
            let fingerprint =
                format!("{} {}.{} {:o}", meta.size(), meta.mtime(), meta.mtime_nsec(), meta.mode());
            all.insert(format!("hook {name}"), fingerprint);
        }
    }
    all
}

/// Returns the names of the settings and hooks that differ between two results of [`shared_settings`], as a
/// list for a sentence; `None` if they are equal.
pub(crate) fn list_changed_settings(
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Option<String> {
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let changed = names.into_iter().filter(|name| before.get(*name) != now.get(*name));
    let changed: Vec<String> = changed.map(|name| proq_base::terminal_text::escape_line(name)).collect();
    (!changed.is_empty()).then(|| list_names(&changed))
}

/// Lists the first [`MAX_NAMES_LISTED`] names and the number of the others.
pub(crate) fn list_names(names: &[String]) -> String {
    let shown = names.iter().take(MAX_NAMES_LISTED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMES_LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
