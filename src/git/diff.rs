//! Owns the difference between two trees, path by path.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::Serialize;

use super::command::Print;
use super::path::nul_separated;
use super::status::status;
use super::trees::{Item, Items, Reader};
use super::{Error, Oid, Repo, RepoPath, ThrowAway, index, special};

/// A path on one side of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Side {
    /// Git's mode: `100644`, `100755`, `120000` or `160000` (octal).
    pub(crate) mode: u32,
    /// The blob, or the commit of a submodule.
    pub(crate) oid: Oid,
}

impl Side {
    /// Whether this is a regular file.
    pub(crate) fn is_file(self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }

    /// Whether this is a submodule's commit and not a file.
    pub(crate) fn is_gitlink(self) -> bool {
        self.mode == 0o160_000
    }
}

/// One path that differs between two trees. Renames are a removal and an addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// The path.
    pub(crate) path: RepoPath,
    /// What it was, if it was there.
    pub(crate) old: Option<Side>,
    /// What it becomes, if it stays.
    pub(crate) new: Option<Side>,
}

impl Change {
    /// The letter that `git status` shows for it.
    pub(crate) fn letter(&self) -> char {
        let kind = |side: Side| side.mode & 0o170_000;
        match (self.old, self.new) {
            (None, _) => 'A',
            (_, None) => 'D',
            (Some(old), Some(new)) if kind(old) != kind(new) => 'T',
            _ => 'M',
        }
    }
}

/// Compares two trees or commits. In the order of paths.
pub(crate) fn tree_changes(repo: &Repo, from: Oid, to: Oid) -> Result<Vec<Change>, Error> {
    if from == to {
        return Ok(Vec::new());
    }
    match compare(repo, from, to) {
        Ok(all) => Ok(all),
        // What cannot be read is git's to explain.
        Err(_) => changes_by_git(repo, from, to, None),
    }
}

/// The same in process only.
///
/// # Errors
/// When one of the trees that differ cannot be read.
pub(super) fn compare(repo: &Repo, from: Oid, to: Oid) -> Result<Vec<Change>, Error> {
    let mut out = changed_below(repo.reader(), Oid(top(repo, from)?), Oid(top(repo, to)?))?;
    out.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(out)
}

/// The tree that an object is or leads to.
fn top(repo: &Repo, id: Oid) -> Result<gix::ObjectId, Error> {
    let what = || format!("object {}", id.short());
    let found = repo.gix.find_object(id.0).map_err(Error::object(what()))?;
    found.peel_to_tree().map(|tree| tree.id).map_err(Error::object(what()))
}

/// An entry that is no folder, as one side of a difference.
fn side(item: Item) -> Side {
    Side { mode: u32::from(item.mode.value()), oid: Oid(item.id) }
}

/// What differs between two trees, in no particular order.
///
/// # Errors
/// When one of the trees that differ cannot be read.
pub(super) fn changed_below(reader: &Reader, from: Oid, to: Oid) -> Result<Vec<Change>, Error> {
    let mut walk = Walk { reader, out: Vec::new() };
    if from != to {
        walk.trees(b"", Some(from.0), Some(to.0))?;
    }
    Ok(walk.out)
}

/// A comparison of two trees as far as it has come.
struct Walk<'r> {
    reader: &'r Reader,
    out: Vec<Change>,
}

impl Walk<'_> {
    fn trees(
        &mut self,
        below: &[u8],
        from: Option<gix::ObjectId>,
        to: Option<gix::ObjectId>,
    ) -> Result<(), Error> {
        let items = |id: Option<gix::ObjectId>| {
            id.map_or_else(|| Ok(Rc::new(Items::default())), |id| self.reader.tree(id))
        };
        let (before, after) = (items(from)?, items(to)?);
        for (name, old) in before.iter() {
            self.entry(below, name, Some(old), after.get(name))?;
        }
        for (name, new) in after.iter().filter(|(name, _)| before.get(name).is_none()) {
            self.entry(below, name, None, Some(new))?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        below: &[u8],
        name: &[u8],
        old: Option<Item>,
        new: Option<Item>,
    ) -> Result<(), Error> {
        if old == new {
            return Ok(());
        }
        let mut path = below.to_vec();
        path.extend_from_slice(name);
        let file = |item: Option<Item>| item.filter(|i| !i.is_tree());
        let (old_file, new_file) = (file(old).map(side), file(new).map(side));
        if old_file.is_some() || new_file.is_some() {
            self.out.push(Change { path: RepoPath::new(path.clone()), old: old_file, new: new_file });
        }
        let tree = |item: Option<Item>| item.filter(|i| i.is_tree()).map(|i| i.id);
        let (old, new) = (tree(old), tree(new));
        if old.is_none() && new.is_none() {
            return Ok(());
        }
        path.push(b'/');
        self.trees(&path, old, new)
    }
}

/// The same as git tells it. What is compared may lie in `into` only.
pub(super) fn changes_by_git(
    repo: &Repo,
    from: Oid,
    to: Oid,
    into: Option<&ThrowAway>,
) -> Result<Vec<Change>, Error> {
    let call = ThrowAway::apply(into, repo.git())
        .args(["diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", "--no-abbrev"])
        .args([from.to_string(), to.to_string()]);
    let shown = call.shown();
    let out = call.run()?;
    parse(&out.stdout).ok_or_else(|| Error::Answer { args: shown, what: "a line of another form".into() })
}

/// How many paths one call may name before the whole tree is listed instead.
const NAMED_AT_ONCE: usize = 2000;

/// Every file of a tree; with `only`, those of the named paths that exist. In the order of paths.
pub(crate) fn tree_files(
    repo: &Repo,
    tree: Oid,
    only: &BTreeSet<RepoPath>,
) -> Result<Vec<(RepoPath, Side)>, Error> {
    match files_below(repo, tree, only) {
        Ok(all) => Ok(all),
        // What cannot be read is git's to explain.
        Err(_) => tree_files_by_git(repo, tree, only),
    }
}

/// The same in process only.
fn files_below(repo: &Repo, id: Oid, only: &BTreeSet<RepoPath>) -> Result<Vec<(RepoPath, Side)>, Error> {
    let top = top(repo, id)?;
    if !only.is_empty() {
        let side = |path: &RepoPath| Ok(repo.item_in(top, path)?.filter(|item| !item.is_tree()).map(side));
        let found = only.iter().map(|path| Ok(side(path)?.map(|side| (path.clone(), side))));
        return found.filter_map(Result::transpose).collect();
    }
    let mut walk = Walk { reader: repo.reader(), out: Vec::new() };
    walk.trees(b"", None, Some(top))?;
    walk.out.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(walk.out.into_iter().filter_map(|change| Some((change.path, change.new?))).collect())
}

fn tree_files_by_git(
    repo: &Repo,
    tree: Oid,
    only: &BTreeSet<RepoPath>,
) -> Result<Vec<(RepoPath, Side)>, Error> {
    let call = repo
        .git()
        .args(["ls-tree", "-r", "-z", "--full-tree"])
        .arg(tree.to_string())
        .env("GIT_LITERAL_PATHSPECS", "1");
    let call = match only.len() {
        1..=NAMED_AT_ONCE => {
            call.arg("--").args(only.iter().map(|p| OsStr::from_bytes(p.as_bytes()).to_owned()))
        }
        _ => call,
    };
    let mut all: Vec<(RepoPath, Side)> = call.run()?.fields().filter_map(parse_file).collect();
    if !only.is_empty() {
        all.retain(|(path, _)| only.contains(path));
    }
    Ok(all)
}

/// The paths of every file of a tree.
pub(crate) fn files_of(repo: &Repo, tree: Oid) -> Result<Vec<RepoPath>, Error> {
    Ok(tree_files(repo, tree, &BTreeSet::new())?.into_iter().map(|(path, _)| path).collect())
}

/// `<mode> <type> <id>\t<path>`
pub(super) fn parse_file(field: &[u8]) -> Option<(RepoPath, Side)> {
    let tab = field.iter().position(|b| *b == b'\t')?;
    let mut words = field[..tab].split(|b| *b == b' ');
    let mode = mode(words.next()?)?;
    let oid = Oid::from_hex(words.nth(1)?)?;
    Some((RepoPath::new(&field[tab + 1..]), Side { mode, oid }))
}

/// `:<mode> <mode> <id> <id> <letter>\0<path>\0` again and again.
fn parse(bytes: &[u8]) -> Option<Vec<Change>> {
    let mut fields = bytes.split(|b| *b == 0);
    let mut out = Vec::new();
    while let Some(head) = fields.next().filter(|h| !h.is_empty()) {
        let mut words = head.strip_prefix(b":")?.split(|b| *b == b' ');
        let (old_mode, new_mode) = (mode(words.next()?)?, mode(words.next()?)?);
        let (old, new) = (Oid::from_hex(words.next()?)?, Oid::from_hex(words.next()?)?);
        let side = |mode: u32, oid| (mode != 0).then_some(Side { mode, oid });
        out.push(Change {
            path: RepoPath::new(fields.next()?),
            old: side(old_mode, old),
            new: side(new_mode, new),
        });
    }
    Some(out)
}

fn mode(octal: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(octal).ok()?, 8).ok()
}

/// A worktree that commits are compared with.
#[derive(Debug)]
pub(crate) struct There {
    dir: PathBuf,
    /// A copy of its index that also has the untracked files.
    index: Option<PathBuf>,
}

impl There {
    /// The worktree at `dir`, with its tracked files.
    pub(crate) fn tracked(dir: &Path) -> There {
        There { dir: dir.to_owned(), index: None }
    }

    /// The untracked files of the worktree at `dir`, without those of repositories of their own: those that can be read, and the
    /// others.
    pub(crate) fn untracked(repo: &Repo, dir: &Path) -> Result<(Vec<RepoPath>, Vec<RepoPath>), Error> {
        let dirt = status(repo, dir, true)?;
        let all: Vec<RepoPath> =
            dirt.untracked().filter(|entry| !entry.nested).map(|entry| entry.path.clone()).collect();
        let unread = special::unreadable(dir, &all);
        let read = all.into_iter().filter(|path| !unread.contains(path)).collect();
        Ok((read, unread))
    }

    /// The worktree at `dir`, with `untracked` files as `git add -N` announces them, in a copy of its index in `scratch`.
    pub(crate) fn with(
        repo: &Repo,
        dir: &Path,
        untracked: &[RepoPath],
        scratch: &Path,
    ) -> Result<There, Error> {
        let copy = scratch.join("index");
        index::copy(&repo.git_dir_of(dir)?.join("index"), &copy)?;
        // A shared index would be written beside the real one.
        repo.git_in(dir)
            .args(["-c", "core.splitIndex=false", "-c", "core.fsmonitor=false"])
            .args(["add", "--intent-to-add", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"])
            .env("GIT_LITERAL_PATHSPECS", "1")
            .index(&copy)
            .input(nul_separated(untracked))
            .run()?;
        Ok(There { dir: dir.to_owned(), index: Some(copy) })
    }

    fn apply(&self, call: super::Command) -> super::Command {
        match &self.index {
            Some(index) => call.index(index),
            None => call,
        }
    }
}

/// Exit code of `git config --type=bool` for a value that is no boolean.
const NO_BOOL: i32 = 128;

impl Repo {
    /// Shows a difference on the terminal as `git diff` does, with the user's pager and colours: from a commit to
    /// another, or to the worktree of `there` as it is. Where git would start no pager for a terminal, which keeps what a terminal
    /// obeys from it, the difference goes through `print` instead, a part at a time; none where there is no terminal.
    ///
    /// # Errors
    /// [`Error::Unreadable`] where a file that changes there may not be read: git shows the others and gives up half-way.
    pub(crate) fn show_diff(
        &self,
        there: &There,
        from: Oid,
        to: Option<Oid>,
        stat: bool,
        print: Option<Print<'_>>,
    ) -> Result<(), Error> {
        if to.is_none() {
            let paths = special::unreadable(&there.dir, &self.changed_files(there, from, to)?);
            if !paths.is_empty() {
                return Err(Error::Unreadable { dir: there.dir.clone(), paths });
            }
        }
        let call = there.apply(self.git_in(&there.dir)).arg("diff").args(stat.then_some("--stat"));
        // Names alone are quoted by git.
        let print = match print {
            Some(print) if !stat && !self.pages_diffs(&there.dir)? => print,
            _ => return call.args(ends(from, to)).arg("--").run_on_terminal(),
        };
        let asked = ["config", "--get-colorbool", "color.diff", "true"];
        let colours = self.git_in(&there.dir).args(asked).run()?.line() == "true";
        let call = call.arg(if colours { "--color=always" } else { "--color=never" });
        call.args(ends(from, to)).arg("--").run_printing(print)
    }

    /// Whether git starts a pager for a difference on a terminal; `cat` is none.
    fn pages_diffs(&self, dir: &Path) -> Result<bool, Error> {
        let get = |kind: &[&str]| {
            let call =
                self.git_in(dir).arg("config").args(kind.iter().copied()).args(["--get", "pager.diff"]);
            call.accept(&[1, NO_BOOL]).run()
        };
        let wanted = get(&["--type=bool"])?;
        let pager = match (wanted.code, std::env::var("GIT_PAGER")) {
            (0, _) if wanted.line() == "false" => return Ok(false),
            (NO_BOOL, Err(_)) => get(&[])?.line(),
            _ => self.git_in(dir).args(["var", "GIT_PAGER"]).run()?.line(),
        };
        Ok(!matches!(pager.trim(), "" | "cat"))
    }

    /// The paths that such a difference would show.
    pub(crate) fn changed_files(
        &self,
        there: &There,
        from: Oid,
        to: Option<Oid>,
    ) -> Result<Vec<RepoPath>, Error> {
        let call = there.apply(self.git_in(&there.dir));
        let call = call.args(["diff", "--name-only", "-z", "--no-ext-diff", "--no-renames"]);
        let out = call.args(ends(from, to)).arg("--").run()?;
        Ok(out.fields().map(RepoPath::new).collect())
    }
}

/// How much of a file changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct FileLines {
    /// The file.
    pub(crate) path: RepoPath,
    /// Lines that are new; none for what has no lines.
    pub(crate) added: Option<usize>,
    /// Lines that are gone.
    pub(crate) removed: Option<usize>,
}

impl Repo {
    /// The files that change from a commit to another, with their lines counted as git counts them.
    pub(crate) fn line_counts(&self, from: Oid, to: Oid) -> Result<Vec<FileLines>, Error> {
        let call = self.git().args(["diff", "--numstat", "-z", "--no-ext-diff", "--no-renames"]);
        let out = call.args(ends(from, Some(to))).arg("--").run()?;
        Ok(out.fields().filter_map(counted).collect())
    }
}

/// `<added>\t<removed>\t<path>`, with `-` for what has no lines.
fn counted(field: &[u8]) -> Option<FileLines> {
    let mut parts = field.splitn(3, |b| *b == b'\t');
    let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse().ok();
    let (added, removed) = (number(), number());
    Some(FileLines { path: RepoPath::new(parts.next()?), added, removed })
}

fn ends(from: Oid, to: Option<Oid>) -> Vec<String> {
    std::iter::once(from).chain(to).map(|id| id.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_lines_are_read_with_both_sides() {
        let (a, z) = ("a".repeat(40), "0".repeat(40));
        let text = format!(":000000 100755 {z} {a} A\0n ew\0:100644 000000 {a} {z} D\0gone\0");
        let all = parse(text.as_bytes()).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].old, None);
        assert_eq!(all[0].new.unwrap().mode, 0o100_755);
        assert_eq!(all[1].path, RepoPath::new("gone"));
        assert_eq!(all[1].new, None);
    }
}
