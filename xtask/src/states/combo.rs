//! Owns the states that one path can be in, and the reasons why some combinations cannot exist.

use std::fmt;

/// What the commit of HEAD has at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Head {
    /// Nothing.
    Nothing,
    /// A file.
    File,
    /// A symbolic link.
    Link,
    /// A folder with two files.
    Folder,
}

/// What the index has at a path, compared with HEAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Index {
    /// The same as HEAD.
    Same,
    /// Another content, staged.
    Other,
    /// An entry made with `git add -N`.
    Intent,
    /// No entry, made so with `git rm --cached`.
    Removed,
    /// The entry of HEAD, marked skip-worktree.
    Skip,
    /// The entry of HEAD, marked assume-unchanged.
    Assume,
}

/// What is on disk at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Disk {
    /// Nothing.
    Absent,
    /// What the index has; what HEAD has where the index has no content.
    Same,
    /// A file with another content, or a folder with other files.
    Other,
    /// The same content with another mode.
    Mode,
    /// A link that leads nowhere.
    Link,
    /// A link to a folder.
    FolderLink,
    /// A folder with files in place of a file or a link.
    Folder,
    /// A folder without files.
    EmptyFolder,
    /// A file in place of a folder.
    File,
    /// A named pipe.
    Fifo,
    /// An empty file.
    Empty,
}

/// What `.gitattributes` and the sparse checkout say about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Attr {
    /// Nothing.
    Plain,
    /// `text eol=crlf`.
    Crlf,
    /// A filter with a clean and a smudge program.
    Filter,
    /// A sparse checkout leaves the path out.
    Sparse,
}

/// One state of one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Combo {
    /// In HEAD.
    pub(crate) head: Head,
    /// In the index.
    pub(crate) index: Index,
    /// On disk.
    pub(crate) disk: Disk,
    /// Whether an ignore file names the path.
    pub(crate) ignored: bool,
    /// Attributes.
    pub(crate) attr: Attr,
}

const HEADS: [Head; 4] = [Head::Nothing, Head::File, Head::Link, Head::Folder];
const INDEXES: [Index; 6] =
    [Index::Same, Index::Other, Index::Intent, Index::Removed, Index::Skip, Index::Assume];
const DISKS: [Disk; 11] = [
    Disk::Absent,
    Disk::Same,
    Disk::Other,
    Disk::Mode,
    Disk::Link,
    Disk::FolderLink,
    Disk::Folder,
    Disk::EmptyFolder,
    Disk::File,
    Disk::Fifo,
    Disk::Empty,
];
const ATTRS: [Attr; 4] = [Attr::Plain, Attr::Crlf, Attr::Filter, Attr::Sparse];

impl Combo {
    /// A state that no ignore file and no attribute names.
    pub(crate) const fn plain(head: Head, index: Index, disk: Disk) -> Combo {
        Combo { head, index, disk, ignored: false, attr: Attr::Plain }
    }

    /// The same state, ignored.
    pub(crate) const fn ignored(self) -> Combo {
        Combo { ignored: true, ..self }
    }

    /// The same state with this attribute.
    pub(crate) const fn with(self, attr: Attr) -> Combo {
        Combo { attr, ..self }
    }

    /// Every combination, the impossible ones included.
    pub(crate) fn every() -> Vec<Combo> {
        let mut out = Vec::new();
        for head in HEADS {
            for index in INDEXES {
                for disk in DISKS {
                    for attr in ATTRS {
                        let combo = Combo { head, index, disk, ignored: false, attr };
                        out.extend([combo, combo.ignored()]);
                    }
                }
            }
        }
        out
    }

    /// Every combination that git can make.
    pub(crate) fn all() -> Vec<Combo> {
        Combo::every().into_iter().filter(|combo| combo.impossible().is_none()).collect()
    }

    /// Why this combination cannot be made, or is another one; None when it can.
    pub(crate) fn impossible(self) -> Option<&'static str> {
        let Combo { head, index, disk, attr, ignored } = self;
        let no_entry = head == Head::Nothing && index == Index::Same;
        let converts = matches!(attr, Attr::Crlf | Attr::Filter);
        let rules = [
            (
                head == Head::Nothing && index == Index::Removed,
                "nothing is in the index that could be removed from it",
            ),
            (no_entry && disk == Disk::Absent, "the path is nowhere"),
            (no_entry && disk == Disk::Same, "an untracked file has nothing to be the same as"),
            (no_entry && disk == Disk::Mode, "an untracked file has no mode to differ from"),
            (
                head == Head::Nothing && index == Index::Intent && disk == Disk::Same,
                "an entry of `git add -N` has no content to be the same as",
            ),
            (head != Head::Folder && disk == Disk::File, "a file in place of a file is `Other`"),
            (head == Head::Folder && disk == Disk::Folder, "a folder in place of a folder is `Other`"),
            (
                head != Head::Nothing && index == Index::Skip && attr == Attr::Sparse,
                "a sparse checkout marks what it leaves out skip-worktree: that is `Same`",
            ),
            (head == Head::Link && disk == Disk::Mode, "a link has no mode"),
            (head == Head::Link && converts, "git converts no link"),
            (
                no_entry
                    && converts
                    && matches!(disk, Disk::Link | Disk::FolderLink | Disk::EmptyFolder | Disk::Fifo),
                "there is no content that git could convert",
            ),
            (
                head == Head::Folder && ignored && converts,
                "below an ignored folder each converted file is as it is without the ignore rule",
            ),
        ];
        rules.into_iter().find(|(holds, _)| *holds).map(|(_, why)| why)
    }
}

impl fmt::Display for Combo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ignored = if self.ignored { ", ignored" } else { "" };
        let attr = match self.attr {
            Attr::Plain => "",
            Attr::Crlf => ", eol=crlf",
            Attr::Filter => ", filter",
            Attr::Sparse => ", outside the sparse checkout",
        };
        write!(f, "HEAD {:?}, index {:?}, disk {:?}{ignored}{attr}", self.head, self.index, self.disk)
    }
}
