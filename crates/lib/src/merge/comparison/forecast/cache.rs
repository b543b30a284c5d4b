//! Cache of forecasts, keyed by the trees that they were computed from. Unreadable entries are dropped;
//! nothing depends on the cache.

use std::collections::HashMap;
use std::fmt::Write as _;

use proq_git::Oid;
use proq_git::merge::forecast::PathConflict;
use proq_store::base::atomic::write_unsynced;
use proq_store::paths::layout::Layout;

/// Maximum number of forecasts in the file; the most recently used ones are retained.
const MAX_CACHED_FORECASTS: usize = 10_000;
/// First word of the file. It changes when the results of forecasts change.
const FORMAT_NAME: &str = "git-proq-forecasts-1";
/// Last word of the file; a file without it is truncated and is ignored.
const END_MARK: &str = "end";

/// Cached results of forecasts, computed in earlier calls and in this one, by key.
#[derive(Debug, Default)]
pub(crate) struct ForecastCache {
    /// First line of the file: its format and the environment.
    header: String,
    /// Cached lines by key.
    entries: HashMap<Oid, CachedLine>,
    /// Number of entries added since the file was read.
    added_count: usize,
}

#[derive(Debug, Clone)]
struct CachedLine {
    /// Line of the file without its key.
    text: String,
    /// Rank by last use: the line's position in the file counted from one, or zero if it was used in this
    /// call.
    last_use_rank: usize,
}

impl ForecastCache {
    /// Reads the entries that were computed in the same environment (git version and settings).
    pub fn read(layout: &Layout, environment: Oid) -> ForecastCache {
        let header = format!("{FORMAT_NAME} {environment}");
        let text = proq_base::regular_file::read_store_text(layout.forecast_cache()).unwrap_or_default();
        ForecastCache { entries: parse_entries(&text, &header).unwrap_or_default(), header, added_count: 0 }
    }

    /// Returns the cached conflicts of a merge, empty for a clean one; none if the merge is not cached.
    pub fn find_conflicts(&mut self, key: Oid) -> Option<Vec<PathConflict>> {
        let text = self.find_line(key)?;
        if text.is_empty() { Some(Vec::new()) } else { serde_json::from_str(text).ok() }
    }

    /// Adds the conflicts of a merge.
    pub fn add_conflicts(&mut self, key: Oid, conflicts: &[PathConflict]) {
        let text = if conflicts.is_empty() { Ok(String::new()) } else { serde_json::to_string(conflicts) };
        if let Ok(text) = text {
            self.add_line(key, text);
        }
    }

    /// Returns the cached text of a key, and records that it was used in this call.
    pub(crate) fn find_line(&mut self, key: Oid) -> Option<&str> {
        let line = self.entries.get_mut(&key)?;
        line.last_use_rank = 0;
        Some(&line.text)
    }

    /// Adds the text of a key as one line of the cache.
    pub(crate) fn add_line(&mut self, key: Oid, text: String) {
        self.entries.insert(key, CachedLine { text, last_use_rank: 0 });
        self.added_count += 1;
    }

    /// Writes the file if at least `min_added` entries were added. A store that cannot be written works
    /// without the cache.
    pub fn save(&self, layout: &Layout, min_added: usize) {
        if self.added_count < min_added.max(1) || !layout.root().exists() {
            return;
        }
        let mut lines: Vec<(&Oid, &CachedLine)> = self.entries.iter().collect();
        lines.sort_by_key(|(key, line)| (line.last_use_rank, **key));
        lines.truncate(MAX_CACHED_FORECASTS);
        let mut out = format!("{}\n", self.header);
        for (key, line) in lines {
            let _ = writeln!(out, "{key} {}", line.text);
        }
        out.push_str(END_MARK);
        drop(write_unsynced(&layout.forecast_cache(), out.as_bytes()));
    }
}

/// Parses the lines of a cache file; none if it has another header, is truncated or has a broken line.
fn parse_entries(text: &str, header: &str) -> Option<HashMap<Oid, CachedLine>> {
    let lines = text.strip_prefix(header)?.strip_prefix('\n')?.strip_suffix(END_MARK)?;
    let mut entries = HashMap::new();
    for (index, line) in lines.lines().enumerate() {
        let (key, text) = line.split_once(' ')?;
        entries.insert(
            Oid::from_hex(key.as_bytes())?,
            CachedLine { text: text.to_owned(), last_use_rank: index + 1 },
        );
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(hex_prefix: &str) -> Oid {
        Oid::from_hex(format!("{hex_prefix:0<40}").as_bytes()).unwrap()
    }

    fn layout(root: &std::path::Path) -> Layout {
        std::fs::create_dir_all(root.join("proq")).unwrap();
        proq_store::Store::open(root, proq_base::diagnostics::Listener::silent()).layout().clone()
    }

    #[test]
    fn reads_saved_entries_and_ignores_truncated_file() {
        let root = tempfile::tempdir().unwrap();
        let layout = layout(root.path());
        let conflict =
            PathConflict { path: proq_git::RepoPath::new("a\nb"), kind: "contents".into(), hunks: vec![] };
        let mut cache = ForecastCache::read(&layout, id("c"));
        cache.add_conflicts(id("1"), &[]);
        cache.add_conflicts(id("2"), std::slice::from_ref(&conflict));
        cache.save(&layout, 3);
        assert!(!layout.forecast_cache().exists(), "too little to be worth it");
        cache.save(&layout, 2);
        let mut reloaded = ForecastCache::read(&layout, id("c"));
        assert_eq!(reloaded.find_conflicts(id("1")), Some(vec![]));
        assert_eq!(reloaded.find_conflicts(id("2")), Some(vec![conflict]));
        assert_eq!(reloaded.find_conflicts(id("3")), None);
        assert_eq!(
            ForecastCache::read(&layout, id("d")).find_conflicts(id("1")),
            None,
            "other circumstances"
        );
        let full_text = std::fs::read_to_string(layout.forecast_cache()).unwrap();
        for length in 0..full_text.len() {
            std::fs::write(layout.forecast_cache(), &full_text[..length]).unwrap();
            assert!(ForecastCache::read(&layout, id("c")).entries.is_empty(), "{length}");
        }
    }

    #[test]
    fn drops_least_recently_used_entries() {
        let root = tempfile::tempdir().unwrap();
        let layout = layout(root.path());
        let numbered = |n: usize| Oid::from_hex(format!("{n:040x}").as_bytes()).unwrap();
        let mut cache = ForecastCache::read(&layout, id("c"));
        (1..=MAX_CACHED_FORECASTS).for_each(|n| cache.add_conflicts(numbered(n), &[]));
        cache.save(&layout, 1);
        let mut cache = ForecastCache::read(&layout, id("c"));
        assert!(cache.find_conflicts(numbered(MAX_CACHED_FORECASTS)).is_some(), "the oldest, needed again");
        cache.add_conflicts(id("f"), &[]);
        cache.save(&layout, 1);
        let cache = ForecastCache::read(&layout, id("c"));
        assert_eq!(cache.entries.len(), MAX_CACHED_FORECASTS);
        assert!(
            cache.entries.contains_key(&id("f"))
                && cache.entries.contains_key(&numbered(MAX_CACHED_FORECASTS))
        );
    }
}
