//! Normalization of checkout images before they are compared: leaves out what cannot be restored and what a
//! landing may change.

use crate::checkout::Image;

/// Ignored files that the user's own `git reset --hard` destroyed after a snapshot had restored them. Git has
/// no object of an ignored file that blocks a tracked one, and of a filtered file only its checked-out form.
pub(super) struct LostByReset {
    ignored: Vec<String>,
}

impl LostByReset {
    /// Returns what was there before the reset and is missing or different after it.
    pub(super) fn between(before: &Image, after: &Image) -> LostByReset {
        let untracked = |path: &str| !before.contains_key(&format!("index {path} 0"));
        let is_changed = |key: &str, value: &str| after.get(key).is_none_or(|now| now != value);
        let files = before.iter().filter(|(_, value)| *value != "folder");
        let changed = files.filter(|(key, value)| is_changed(key, value));
        let changed = changed.filter_map(|(key, _)| key.strip_prefix("file "));
        let ignored = changed.filter(|path| path.contains("-ignored") && untracked(path));
        LostByReset { ignored: ignored.map(str::to_owned).collect() }
    }

    /// Returns an image without these files.
    pub(super) fn without(&self, image: &Image) -> Image {
        let is_lost = |path: &str| {
            let below = |file: &String| file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
            self.ignored.iter().any(|file| file == path || below(file))
        };
        let remaining = image.iter().filter(|(key, _)| !key.strip_prefix("file ").is_some_and(is_lost));
        remaining
            .map(|(key, value)| {
                // Git marks an entry as skipped only where no file takes its place.
                let entry = key.strip_prefix("index ").and_then(|entry| entry.strip_suffix(" 0"));
                let value = if entry.is_some_and(is_lost) { without_flags(value) } else { value.clone() };
                as_checked_out(key.clone(), value)
            })
            .collect()
    }
}

/// Removes the flags from an index entry of an image.
fn without_flags(value: &str) -> String {
    value.split(' ').skip(1).take(3).collect::<Vec<_>>().join(" ")
}

/// Returns an entry of an image in which a filtered file has the content that git would check out.
pub(super) fn as_checked_out(key: String, value: String) -> (String, String) {
    let filtered = key.starts_with("file ") && key.contains("-filter");
    let value = if filtered { value.replace("+precious", "precious") } else { value };
    (key, value)
}

/// Returns an entry of an image if it is a file, index entry or HEAD and on no path that a landing changes.
/// In a sparse checkout a landing marks missing files skip-worktree, as `git merge` does, and removes their
/// empty folders; a flag that contradicts the sparse patterns is corrected.
pub(super) fn untouched_entry(changed: &[String], key: &str, value: &str) -> Option<(String, String)> {
    let (kind, path) = key.split_once(' ').unwrap_or((key, ""));
    let path = path.strip_suffix(" 0").unwrap_or(path);
    let below =
        |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let touched = changed.iter().any(|name| below(path, name) || below(name, path));
    if touched || !["file", "index", "HEAD"].contains(&kind) || value == "folder" {
        return None;
    }
    let value =
        if path.contains("-sparse") && kind == "index" { without_flags(value) } else { value.to_owned() };
    // A merged file gets the content that git checks out.
    Some(as_checked_out(key.to_owned(), value))
}
