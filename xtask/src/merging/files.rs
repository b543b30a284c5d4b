//! Owns a tree in memory: its files, by path.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::names::{is_below, parent};

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A plain file.
    Plain,
    /// A file that can be run.
    Program,
    /// A symbolic link.
    Link,
    /// A commit of another repository.
    Submodule,
}

impl Kind {
    /// The mode as git writes it.
    pub(super) fn mode(self) -> &'static str {
        match self {
            Kind::Plain => "100644",
            Kind::Program => "100755",
            Kind::Link => "120000",
            Kind::Submodule => "160000",
        }
    }
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    /// What it is.
    pub(super) kind: Kind,
    /// What is in it; for a submodule, what its commit's id is made of.
    pub(super) content: Rc<[u8]>,
}

impl File {
    /// A plain file.
    pub(super) fn plain(content: Vec<u8>) -> File {
        File { kind: Kind::Plain, content: content.into() }
    }
}

/// All files of a tree. No path is a file and a folder at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Files(BTreeMap<Vec<u8>, File>);

impl Files {
    /// Puts a file at a path; what stands in its way goes.
    pub(super) fn put(&mut self, path: &[u8], file: File) {
        self.remove(path);
        let mut above = parent(path);
        while !above.is_empty() {
            self.0.remove(above);
            above = parent(above);
        }
        self.0.insert(path.to_vec(), file);
    }

    /// Removes a file, or a folder with all below it.
    pub(super) fn remove(&mut self, path: &[u8]) {
        self.0.retain(|p, _| p != path && !is_below(p, path));
    }

    /// The file at a path.
    pub(super) fn get(&self, path: &[u8]) -> Option<&File> {
        self.0.get(path)
    }

    /// All of them, by path.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Vec<u8>, &File)> {
        self.0.iter()
    }

    /// The paths of all files.
    pub(super) fn paths(&self) -> Vec<Vec<u8>> {
        self.0.keys().cloned().collect()
    }

    /// The files below a folder.
    pub(super) fn below(&self, folder: &[u8]) -> Vec<(Vec<u8>, File)> {
        self.0.iter().filter(|(p, _)| is_below(p, folder)).map(|(p, f)| (p.clone(), f.clone())).collect()
    }

    /// The folders, without the top.
    pub(super) fn folders(&self) -> Vec<Vec<u8>> {
        let mut out = BTreeSet::new();
        for path in self.0.keys() {
            let mut above = parent(path);
            while !above.is_empty() {
                out.insert(above.to_vec());
                above = parent(above);
            }
        }
        out.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_takes_the_place_of_a_folder_and_the_other_way_round() {
        let mut files = Files::default();
        for path in [&b"a/b/c"[..], b"a/d", b"a.b"] {
            files.put(path, File::plain(Vec::new()));
        }
        assert_eq!(files.folders(), [b"a".to_vec(), b"a/b".to_vec()]);
        files.put(b"a/b", File::plain(Vec::new()));
        assert_eq!(files.paths(), [b"a.b".to_vec(), b"a/b".to_vec(), b"a/d".to_vec()]);
        files.put(b"a/b/c", File::plain(Vec::new()));
        assert_eq!(files.paths(), [b"a.b".to_vec(), b"a/b/c".to_vec(), b"a/d".to_vec()]);
        files.remove(b"a");
        assert_eq!(files.paths(), [b"a.b".to_vec()]);
    }
}
