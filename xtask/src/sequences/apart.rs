//! Owns what counts for nothing where images of a checkout are compared: what nobody can bring back, and what a landing may change.

use crate::checkout::Image;

/// What `git reset --hard` by hand destroys for good, after the snapshot has given it back: git has no object of an ignored file
/// that stands in the way of a tracked one, and of a filtered file only the form that it checks out.
pub(super) struct Gone {
    ignored: Vec<String>,
}

impl Gone {
    /// What was there before such a reset and is not as it was after it.
    pub(super) fn between(before: &Image, after: &Image) -> Gone {
        let untracked = |path: &str| !before.contains_key(&format!("index {path} 0"));
        let is_gone = |key: &str, value: &str| after.get(key).is_none_or(|now| now != value);
        let files = before.iter().filter(|(_, value)| *value != "folder");
        let gone = files.filter(|(key, value)| is_gone(key, value));
        let gone = gone.filter_map(|(key, _)| key.strip_prefix("file "));
        let ignored = gone.filter(|path| path.contains("-ignored") && untracked(path));
        Gone { ignored: ignored.map(str::to_owned).collect() }
    }

    /// An image without it.
    pub(super) fn without(&self, image: &Image) -> Image {
        let is_gone = |path: &str| {
            let below = |file: &String| file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
            self.ignored.iter().any(|file| file == path || below(file))
        };
        let kept = image.iter().filter(|(key, _)| !key.strip_prefix("file ").is_some_and(is_gone));
        kept.map(|(key, value)| {
            // Git shows an entry as skipped only where nothing is in its place.
            let entry = key.strip_prefix("index ").and_then(|entry| entry.strip_suffix(" 0"));
            let value = if entry.is_some_and(is_gone) { unflagged(value) } else { value.clone() };
            as_filtered(key.clone(), value)
        })
        .collect()
    }
}

/// What an image says of an entry of the index, without its flags.
fn unflagged(value: &str) -> String {
    value.split(' ').skip(1).take(3).collect::<Vec<_>>().join(" ")
}

/// One part of an image, where a filtered file is as git would check it out.
pub(super) fn as_filtered(key: String, value: String) -> (String, String) {
    let filtered = key.starts_with("file ") && key.contains("-filter");
    let value = if filtered { value.replace("+precious", "precious") } else { value };
    (key, value)
}

/// One part of an image, when it is of the checkout and of no path that a landing changes. Where a checkout is sparse, a landing
/// marks what is missing skip-worktree, as `git merge` does, and does not keep empty folders of it; what is marked so although
/// the patterns include it is as they say from then on.
pub(super) fn apart_from(changed: &[String], key: &str, value: &str) -> Option<(String, String)> {
    let (kind, path) = key.split_once(' ').unwrap_or((key, ""));
    let path = path.strip_suffix(" 0").unwrap_or(path);
    let below =
        |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let touched = changed.iter().any(|name| below(path, name) || below(name, path));
    if touched || !["file", "index", "HEAD"].contains(&kind) || value == "folder" {
        return None;
    }
    let value = if path.contains("-sparse") && kind == "index" { unflagged(value) } else { value.to_owned() };
    // What is merged gets the form that git checks out.
    Some(as_filtered(key.to_owned(), value))
}
