//! Owns what all worktrees of a repository share and an agent may change: the repository's own settings and its hooks.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;

use super::Project;

/// How many names are in a sentence.
const NAMED: usize = 5;

/// The settings in the repository's own `config`, and its hooks, by what a sentence calls them, each with a text that changes with
/// it. What git itself writes there for branches is left out, and so are the samples of hooks.
pub(crate) fn shared_settings(project: &Project) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = project
        .repo
        .own_settings()
        .into_iter()
        .filter(|(key, _)| !key.starts_with("branch."))
        .map(|(key, value)| (format!("setting {key}"), value))
        .collect();
    let hooks = project.repo.common_dir().join("hooks");
    for entry in std::fs::read_dir(hooks).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let (false, Ok(meta)) = (name.ends_with(".sample"), entry.metadata()) {
            let is = format!("{} {}.{} {:o}", meta.size(), meta.mtime(), meta.mtime_nsec(), meta.mode());
            all.insert(format!("hook {name}"), is);
        }
    }
    all
}

/// The names of what differs between two answers of [`shared_settings`], as a list in a sentence; none when nothing does.
pub(crate) fn changed_settings(
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Option<String> {
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let changed = names.into_iter().filter(|name| before.get(*name) != now.get(*name));
    let changed: Vec<String> = changed.map(|name| crate::harmless::line(name)).collect();
    (!changed.is_empty()).then(|| listed(&changed))
}

/// The first of these names, and how many more there are.
pub(crate) fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
