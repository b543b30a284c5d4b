//! Owns remembering forecasts by the trees they were made of. What cannot be read is forgotten; nothing depends on it.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::git::{Clash, Oid};
use crate::store::{Layout, write_cache};

/// How many forecasts are kept. Those that were used or made last stay.
const KEPT: usize = 10_000;
/// The first word of the file. It changes when forecasts come out in another way.
const FORMAT: &str = "git-proq-forecasts-1";
/// What ends the file, so that one that was cut short is known.
const END: &str = "end";

/// Forecasts of before, and of now.
#[derive(Debug, Default)]
pub(super) struct Cache {
    head: String,
    known: HashMap<Oid, Kept>,
    /// How many were added.
    added: usize,
}

#[derive(Debug, Clone)]
struct Kept {
    /// The line without its key.
    text: String,
    /// When it was needed last: the place in the file, or before all of those.
    age: usize,
}

impl Cache {
    /// Reads what is known under these circumstances.
    pub(super) fn read(layout: &Layout, circumstances: Oid) -> Cache {
        let head = format!("{FORMAT} {circumstances}");
        let text = crate::regular_file::record_text(layout.forecasts()).unwrap_or_default();
        Cache { known: parse(&text, &head).unwrap_or_default(), head, added: 0 }
    }

    /// What is known of a merge.
    pub(super) fn find(&mut self, key: Oid) -> Option<Vec<Clash>> {
        let text = self.find_line(key)?;
        if text.is_empty() { Some(Vec::new()) } else { serde_json::from_str(text).ok() }
    }

    /// Remembers what came of a merge.
    pub(super) fn add(&mut self, key: Oid, clashes: &[Clash]) {
        let text = if clashes.is_empty() { Ok(String::new()) } else { serde_json::to_string(clashes) };
        if let Ok(text) = text {
            self.add_line(key, text);
        }
    }

    /// What was remembered under a key.
    pub(super) fn find_line(&mut self, key: Oid) -> Option<&str> {
        let kept = self.known.get_mut(&key)?;
        kept.age = 0;
        Some(&kept.text)
    }

    /// Remembers one line.
    pub(super) fn add_line(&mut self, key: Oid, text: String) {
        self.known.insert(key, Kept { text, age: 0 });
        self.added += 1;
    }

    /// Writes it down if at least so many were added. A store that cannot be written to works without.
    pub(super) fn save(&self, layout: &Layout, at_least: usize) {
        if self.added < at_least.max(1) || !layout.root().exists() {
            return;
        }
        let mut all: Vec<(&Oid, &Kept)> = self.known.iter().collect();
        all.sort_by_key(|(key, kept)| (kept.age, **key));
        all.truncate(KEPT);
        let mut out = format!("{}\n", self.head);
        for (key, kept) in all {
            let _ = writeln!(out, "{key} {}", kept.text);
        }
        out.push_str(END);
        drop(write_cache(&layout.forecasts(), out.as_bytes()));
    }
}

fn parse(text: &str, head: &str) -> Option<HashMap<Oid, Kept>> {
    let lines = text.strip_prefix(head)?.strip_prefix('\n')?.strip_suffix(END)?;
    let mut known = HashMap::new();
    for (at, line) in lines.lines().enumerate() {
        let (key, text) = line.split_once(' ')?;
        known.insert(Oid::from_hex(key.as_bytes())?, Kept { text: text.to_owned(), age: at + 1 });
    }
    Some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(start: &str) -> Oid {
        Oid::from_hex(format!("{start:0<40}").as_bytes()).unwrap()
    }

    fn layout(root: &std::path::Path) -> Layout {
        std::fs::create_dir_all(root.join("proq")).unwrap();
        crate::store::Store::at(root, crate::note::Listener::silent()).layout().clone()
    }

    #[test]
    fn what_is_kept_comes_back_and_a_cut_file_is_forgotten() {
        let root = tempfile::tempdir().unwrap();
        let layout = layout(root.path());
        let clash = Clash { path: crate::git::RepoPath::new("a\nb"), kind: "contents".into(), hunks: vec![] };
        let mut cache = Cache::read(&layout, id("c"));
        cache.add(id("1"), &[]);
        cache.add(id("2"), std::slice::from_ref(&clash));
        cache.save(&layout, 3);
        assert!(!layout.forecasts().exists(), "too little to be worth it");
        cache.save(&layout, 2);
        let mut again = Cache::read(&layout, id("c"));
        assert_eq!(again.find(id("1")), Some(vec![]));
        assert_eq!(again.find(id("2")), Some(vec![clash]));
        assert_eq!(again.find(id("3")), None);
        assert_eq!(Cache::read(&layout, id("d")).find(id("1")), None, "other circumstances");
        let whole = std::fs::read_to_string(layout.forecasts()).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(layout.forecasts(), &whole[..cut]).unwrap();
            assert!(Cache::read(&layout, id("c")).known.is_empty(), "{cut}");
        }
    }

    #[test]
    fn it_does_not_grow_without_end() {
        let root = tempfile::tempdir().unwrap();
        let layout = layout(root.path());
        let numbered = |n: usize| Oid::from_hex(format!("{n:040x}").as_bytes()).unwrap();
        let mut cache = Cache::read(&layout, id("c"));
        (1..=KEPT).for_each(|n| cache.add(numbered(n), &[]));
        cache.save(&layout, 1);
        let mut cache = Cache::read(&layout, id("c"));
        assert!(cache.find(numbered(KEPT)).is_some(), "the oldest, needed again");
        cache.add(id("f"), &[]);
        cache.save(&layout, 1);
        let cache = Cache::read(&layout, id("c"));
        assert_eq!(cache.known.len(), KEPT);
        assert!(cache.known.contains_key(&id("f")) && cache.known.contains_key(&numbered(KEPT)));
    }
}
