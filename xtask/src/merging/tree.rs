//! Tree in memory: its files by path.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::paths::{is_below, parent};

/// Kind of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Regular file.
    Regular,
    /// Executable file.
    Executable,
    /// Symbolic link.
    Symlink,
    /// Commit of another repository.
    Submodule,
}

impl Kind {
    /// Returns the mode as git writes it.
    pub(super) fn mode(self) -> &'static str {
        match self {
            Kind::Regular => "100644",
            Kind::Executable => "100755",
            Kind::Symlink => "120000",
            Kind::Submodule => "160000",
        }
    }
}

/// File of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    /// Kind of the file.
    pub(super) kind: Kind,
    /// Content; for a submodule, the byte that its commit id is made of.
    pub(super) content: Rc<[u8]>,
}

impl File {
    /// Returns a regular file.
    pub(super) fn regular(content: Vec<u8>) -> File {
        File { kind: Kind::Regular, content: content.into() }
    }
}

/// Files of a tree. No path is a file and a folder at the same time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Files(BTreeMap<Vec<u8>, File>);

impl Files {
    /// Inserts a file at a path, and removes what blocks it.
    pub(super) fn insert(&mut self, path: &[u8], file: File) {
        self.remove(path);
        let mut above = parent(path);
        while !above.is_empty() {
            self.0.remove(above);
            above = parent(above);
        }
        self.0.insert(path.to_vec(), file);
    }

    /// Removes a file, or a folder with everything below it.
    pub(super) fn remove(&mut self, path: &[u8]) {
        self.0.retain(|p, _| p != path && !is_below(p, path));
    }

    /// Returns the file at a path.
    pub(super) fn get(&self, path: &[u8]) -> Option<&File> {
        self.0.get(path)
    }

    /// Returns all files, by path.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Vec<u8>, &File)> {
        self.0.iter()
    }

    /// Returns the paths of all files.
    pub(super) fn paths(&self) -> Vec<Vec<u8>> {
        self.0.keys().cloned().collect()
    }

    /// Returns the files below a folder.
    pub(super) fn below(&self, folder: &[u8]) -> Vec<(Vec<u8>, File)> {
        self.0.iter().filter(|(p, _)| is_below(p, folder)).map(|(p, f)| (p.clone(), f.clone())).collect()
    }

    /// Returns the folders, except the top.
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
    fn file_replaces_folder_and_folder_replaces_file() {
        let mut files = Files::default();
        for path in [&b"a/b/c"[..], b"a/d", b"a.b"] {
            files.insert(path, File::regular(Vec::new()));
        }
        assert_eq!(files.folders(), [b"a".to_vec(), b"a/b".to_vec()]);
        files.insert(b"a/b", File::regular(Vec::new()));
        assert_eq!(files.paths(), [b"a.b".to_vec(), b"a/b".to_vec(), b"a/d".to_vec()]);
        files.insert(b"a/b/c", File::regular(Vec::new()));
        assert_eq!(files.paths(), [b"a.b".to_vec(), b"a/b/c".to_vec(), b"a/d".to_vec()]);
        files.remove(b"a");
        assert_eq!(files.paths(), [b"a.b".to_vec()]);
    }
}
