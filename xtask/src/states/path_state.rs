//! States of one path, and the reasons why some combinations cannot exist.

use std::fmt;

/// Content of HEAD's commit at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Head {
    /// No entry.
    Nothing,
    /// Regular file.
    File,
    /// Symbolic link.
    Link,
    /// Folder with two files.
    Folder,
}

/// Index entry of a path, compared with HEAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Index {
    /// Same as HEAD.
    Same,
    /// Other content, staged.
    Other,
    /// Entry made with `git add -N`.
    Intent,
    /// No entry, after `git rm --cached`.
    Removed,
    /// HEAD's entry, marked skip-worktree.
    Skip,
    /// HEAD's entry, marked assume-unchanged.
    Assume,
}

/// Content on disk at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Disk {
    /// Nothing.
    Absent,
    /// Same as the index; same as HEAD where the index has no content.
    Same,
    /// File with other content, or folder with other files.
    Other,
    /// Same content with another mode.
    Mode,
    /// Dangling link.
    Link,
    /// Link to a folder.
    FolderLink,
    /// Folder with files in place of a file or a link.
    Folder,
    /// Folder without files.
    EmptyFolder,
    /// File in place of a folder.
    File,
    /// Named pipe.
    Fifo,
    /// Empty file.
    Empty,
}

/// Attributes and sparse checkout rules of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Attr {
    /// None.
    Plain,
    /// `text eol=crlf`.
    Crlf,
    /// Filter with a clean and a smudge program.
    Filter,
    /// Path outside the sparse checkout.
    Sparse,
}

/// State of one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PathState {
    /// Content in HEAD.
    pub(crate) head: Head,
    /// Entry in the index.
    pub(crate) index: Index,
    /// Content on disk.
    pub(crate) disk: Disk,
    /// Whether an ignore rule matches the path.
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

impl PathState {
    /// Returns a state without ignore rule and attributes.
    pub(crate) const fn plain(head: Head, index: Index, disk: Disk) -> PathState {
        PathState { head, index, disk, ignored: false, attr: Attr::Plain }
    }

    /// Returns the state with an ignore rule.
    pub(crate) const fn ignored(self) -> PathState {
        PathState { ignored: true, ..self }
    }

    /// Returns the state with this attribute.
    pub(crate) const fn with_attr(self, attr: Attr) -> PathState {
        PathState { attr, ..self }
    }

    /// Returns every combination, including the impossible ones.
    pub(crate) fn every_combination() -> Vec<PathState> {
        let mut out = Vec::new();
        for head in HEADS {
            for index in INDEXES {
                for disk in DISKS {
                    for attr in ATTRS {
                        let combo = PathState { head, index, disk, ignored: false, attr };
                        out.extend([combo, combo.ignored()]);
                    }
                }
            }
        }
        out
    }

    /// Returns every combination that git can create.
    pub(crate) fn possible() -> Vec<PathState> {
        PathState::every_combination()
            .into_iter()
            .filter(|combo| combo.impossible_reason().is_none())
            .collect()
    }

    /// Returns the reason why this combination cannot be created or equals another one; none if it can.
    pub(crate) fn impossible_reason(self) -> Option<&'static str> {
        let PathState { head, index, disk, attr, ignored } = self;
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
        rules.into_iter().find(|(holds, _)| *holds).map(|(_, reason)| reason)
    }
}

impl fmt::Display for PathState {
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
