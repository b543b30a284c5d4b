//! Owns keeping everything that differs from HEAD in a worktree: one commit in the shape of a stash, and the raw index.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::commit::NewCommit;
use super::conflicts::Conflicts;
use super::in_the_way::{ignored_in_place, ignored_in_the_way};
use super::index::{self, Version};
use super::index_facts::Facts;
use super::kept_files::tree_with;
use super::left_out::{put_back, staged_without_file};
use super::loose_folders::{empty_folders, loose_folders};
use super::modes::{PathMode, unusual_modes};
use super::path::nul_separated;
use super::quarantine::stands_no_folder;
use super::seen::{All, Seen};
use super::special::{self, LeftOut};
use super::status::{Dirt, Entry, Kind, ask, status};
use super::transition::Tree;
use super::{Error, IgnoredFile, Oid, Repo, RepoPath, flags};

/// What was kept of one worktree. Its commit has a stash's shape, so plain `git stash apply <commit>` reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// The stash-shaped commit.
    pub(crate) commit: Oid,
    /// The commit HEAD was at.
    pub(crate) base: Oid,
    /// The tree of what was staged.
    pub(crate) index_tree: Oid,
    /// The tree of the tracked files as they were.
    pub(crate) work_tree: Oid,
    /// The tree of the untracked files.
    pub(crate) untracked_tree: Option<Oid>,
    /// The sides of conflicts that were resolved, which an index names until the next commit: `1/path`, `2/path`, `3/path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stages: Option<Oid>,
    /// Files whose content was announced with `git add -N`.
    #[serde(default)]
    pub(crate) intent_to_add: Vec<RepoPath>,
    /// Empty folders, which git forgets.
    #[serde(default)]
    pub(crate) empty_dirs: Vec<RepoPath>,
    /// Ignored files that stand where HEAD has something else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignored: Vec<IgnoredFile>,
    /// How many files differed from HEAD.
    #[serde(default)]
    pub(crate) files: usize,
    /// What no snapshot can hold; it stays where it is.
    #[serde(default)]
    pub(crate) left: Vec<LeftOut>,
    /// Files of a sparse checkout that were there, though marked skip-worktree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) put_back: Vec<RepoPath>,
    /// Permission bits of these files and folders that are not what git gives a new one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) modes: Vec<PathMode>,
    /// Which index this was taken from; only known to the process that took it.
    #[serde(skip)]
    pub(super) index_version: Option<Version>,
}

/// Keeps what differs from HEAD, by what was `seen`. None when nothing does. The raw index is left as `raw-index` in the tree's
/// scratch. Untracked files at or below `spare` stay where they are.
///
/// # Errors
/// [`Error::Unmerged`] when a merge is unresolved, and whatever git says about files it cannot read.
pub(crate) fn take(
    tree: &Tree<'_>,
    base: Oid,
    message: &str,
    spare: &[RepoPath],
    seen: &Seen,
) -> Result<Option<Snapshot>, Error> {
    take_with(tree, (base, message), spare, seen, Conflicts::refuse)
}

/// As [`take`], of a worktree in which a merge may be unresolved, too: what is unmerged is kept as its files are, and as if the index had
/// our side of it.
///
/// # Errors
/// Whatever git says about files it cannot read.
pub(crate) fn take_unmerged(
    tree: &Tree<'_>,
    base: Oid,
    message: &str,
    seen: &Seen,
) -> Result<Option<Snapshot>, Error> {
    take_with(tree, (base, message), &[], seen, Conflicts::take)
}

fn take_with(
    tree: &Tree<'_>,
    (base, message): (Oid, &str),
    spare: &[RepoPath],
    seen: &Seen,
    conflicts: impl FnOnce(&Tree<'_>, &Path, &mut Dirt) -> Result<Conflicts, Error>,
) -> Result<Option<Snapshot>, Error> {
    let (git_index, index_version) = own_index(tree)?;
    let known = seen.at(index_version, base);
    let mut dirt = changed(tree, known, spare)?;
    let conflicts = conflicts(tree, &git_index, &mut dirt)?;
    let mut hidden = hidden(tree, known)?;
    let mut files = hidden.len() + dirt.entries.iter().filter(|e| !e.nested).count();
    hidden.extend(staged_without_file(tree, &git_index, &dirt)?);
    let loose = dirt.untracked().any(|e| !e.nested);
    if hidden.is_empty() && !loose && dirt.tracked().all(Entry::is_inside_submodule) {
        return Ok(None);
    }
    let raw = tree.scratch.join("raw-index");
    index::copy(&git_index, &raw)?;
    // Nothing is staged, if what was looked at is what was copied, beside that commit.
    let same = Version::of(&git_index)? == index_version && tree.repo.head_of(tree.dir)? == Some(base);
    let keeper = Keeper { tree, raw: &raw, known: known.filter(|_| same) };
    keeper.unsplit()?;
    conflicts.leave(tree, &raw)?;
    let index_tree = match same && dirt.staged().next().is_none() {
        true => tree.repo.tree_of(base)?,
        false => keeper.index_tree()?,
    };
    let work_tree = keeper.work_tree(&dirt, &hidden, Some(index_tree).filter(|_| keeper.known.is_some()))?;
    let (untracked_tree, unread) = keeper.untracked_tree(&dirt)?;
    files -= unread.len();
    if untracked_tree.is_none() && hidden.is_empty() && dirt.tracked().all(Entry::is_inside_submodule) {
        unread.into_iter().map(LeftOut::unreadable).for_each(|left| warn_of(tree, &left));
        return Ok(None);
    }
    let (empty_dirs, left) = keeper.rest(&dirt, &hidden, seen, unread)?;
    let mut snapshot = Snapshot {
        commit: base,
        base,
        index_tree,
        work_tree,
        untracked_tree,
        intent_to_add: keeper.announced()?,
        empty_dirs,
        ignored: ignored_in_the_way(tree, &dirt, &hidden, (base, work_tree), seen.brought())?,
        put_back: put_back(tree, &raw)?,
        files,
        left,
        modes: Vec::new(),
        index_version,
        stages: keeper.stages()?,
    };
    let of_git = dirt.entries.iter().filter(|e| !e.nested).map(|e| &e.path).chain(&hidden);
    snapshot.modes = snapshot.modes_in(tree, of_git);
    snapshot.commit = snapshot.stash_commit(tree.repo, message)?;
    Ok(Some(snapshot))
}

fn warn_of(tree: &Tree<'_>, LeftOut { path, what }: &LeftOut) {
    (tree.warn)(format!("{path} is {what}: it is in no snapshot"));
}

/// What git shows as changed, without untracked files at or below `spare`.
fn changed(tree: &Tree<'_>, known: Option<&All>, spare: &[RepoPath]) -> Result<Dirt, Error> {
    let mut dirt = match known {
        Some(all) => all.dirt(),
        None => ask(tree.repo.program(), tree.dir, true)?,
    };
    dirt.entries.retain(|e| e.kind != Kind::Untracked || !is_spared(&e.path, spare));
    Ok(dirt)
}

/// The index of a worktree, and which version of it is there.
fn own_index(tree: &Tree<'_>) -> Result<(std::path::PathBuf, Option<Version>), Error> {
    tree.repo.require_index(tree.dir)?;
    let index = tree.git_dir.join("index");
    let version = Version::of(&index)?;
    Ok((index, version))
}

/// Changes that git does not show, since it was told not to look. Where all is known there are none.
fn hidden(tree: &Tree<'_>, known: Option<&All>) -> Result<Vec<RepoPath>, Error> {
    match known {
        Some(_) => Ok(Vec::new()),
        None => flags::hidden_changes(tree.repo, tree.dir, &tree.git_dir, tree.scratch),
    }
}

/// Makes the snapshot of a worktree in which nothing differs from HEAD, which is at `base`: for files that are kept beside it,
/// for empty folders, and for what a sparse checkout shows. The raw index is left as by [`take`].
///
/// # Errors
/// When the index cannot be copied, or an object not be written.
pub(crate) fn take_unchanged(
    tree: &Tree<'_>,
    base: Oid,
    message: &str,
    seen: &Seen,
) -> Result<Snapshot, Error> {
    tree.repo.require_index(tree.dir)?;
    index::copy(&tree.git_dir.join("index"), &tree.scratch.join("raw-index"))?;
    let at_base = tree.repo.tree_of(base)?;
    let mut snapshot = Snapshot {
        commit: base,
        base,
        index_tree: at_base,
        work_tree: at_base,
        untracked_tree: None,
        stages: None,
        intent_to_add: Vec::new(),
        empty_dirs: empty_folders(tree, seen)?,
        ignored: ignored_in_place(tree, seen.brought())?,
        put_back: put_back(tree, &tree.scratch.join("raw-index"))?,
        files: 0,
        left: Vec::new(),
        modes: Vec::new(),
        index_version: None,
    };
    snapshot.modes = snapshot.modes_in(tree, std::iter::empty());
    snapshot.commit = snapshot.stash_commit(tree.repo, message)?;
    Ok(snapshot)
}

impl Snapshot {
    /// The permission bits of files that git shows, and of the others that the snapshot has.
    fn modes_in<'p>(&'p self, tree: &Tree<'_>, of_git: impl Iterator<Item = &'p RepoPath>) -> Vec<PathMode> {
        if !tree.repo.trusts_file_modes() {
            return Vec::new();
        }
        let ignored = self.ignored.iter().map(|file| &file.path);
        unusual_modes(tree.dir, of_git.chain(ignored).chain(&self.put_back).chain(&self.empty_dirs))
    }

    /// Writes the stash-shaped commit anew, after a tree has changed.
    pub(super) fn recommit(&mut self, repo: &Repo) -> Result<(), Error> {
        let message = repo.subject_of(self.commit)?;
        self.commit = self.stash_commit(repo, &message)?;
        Ok(())
    }

    /// The stash shape: the worktree's tree on top of HEAD, the index's commit, the untracked files' commit. What only
    /// has to be kept hangs on the index's commit, of which git reads nothing but the tree.
    fn stash_commit(&self, repo: &Repo, message: &str) -> Result<Oid, Error> {
        let write = |tree, parents: &[Oid], message: &str| {
            NewCommit { tree, parents, message }.write_as_keeper(repo, None)
        };
        let mut below = vec![self.base];
        if let Some(tree) = self.stages {
            below.push(write(tree, &[], &format!("sides of resolved conflicts on {message}"))?);
        }
        let staged = write(self.index_tree, &below, &format!("index on {message}"))?;
        let mut parents = vec![self.base, staged];
        if let Some(tree) = self.untracked_tree {
            parents.push(write(tree, &[], &format!("untracked files on {message}"))?);
        }
        write(self.work_tree, &parents, message)
    }
}

fn is_spared(path: &RepoPath, spare: &[RepoPath]) -> bool {
    !spare.is_empty() && (spare.contains(path) || path.parents().any(|up| spare.contains(&up)))
}

/// The tree of a worktree's tracked files as they are now, staged or not. What git was told not to look at is as it was staged.
pub(crate) fn tracked_tree(tree: &Tree<'_>) -> Result<Oid, Error> {
    let unmerged = status(tree.repo, tree.dir, false)?.unmerged();
    if !unmerged.is_empty() {
        return Err(Error::Unmerged { dir: tree.dir.to_owned(), paths: unmerged });
    }
    let raw = tree.scratch.join("raw-index");
    index::copy(&tree.git_dir.join("index"), &raw)?;
    let dirt = status(tree.repo, tree.dir, false)?;
    let (flagged, _) = flags::shown_and_hidden(tree.repo, tree.dir, tree.scratch, &dirt)?;
    Keeper { tree, raw: &raw, known: None }.work_tree(&dirt, &flagged, None)
}

/// A commit that keeps whatever a worktree's index names, at all stages: of an index with conflicts there is no snapshot.
/// None when it names nothing.
pub(crate) fn keep_index(tree: &Tree<'_>, message: &str) -> Result<Option<Oid>, Error> {
    let raw = tree.git_dir.join("index");
    let kept = Keeper { tree, raw: &raw, known: None }.by_stage(&["--stage", "--resolve-undo"])?;
    kept.map(|tree_id| NewCommit { tree: tree_id, parents: &[], message }.write_as_keeper(tree.repo, None))
        .transpose()
}

/// Writes trees from copies of one raw index.
struct Keeper<'a> {
    tree: &'a Tree<'a>,
    raw: &'a Path,
    /// What is certain of the worktree and of this very index.
    known: Option<&'a All>,
}

impl Keeper<'_> {
    fn repo(&self) -> &Repo {
        self.tree.repo
    }

    fn copy(&self, name: &str) -> Result<std::path::PathBuf, Error> {
        let to = self.tree.scratch.join(name);
        index::copy(self.raw, &to)?;
        Ok(to)
    }

    /// Whether the index is known to have what HEAD has, in a file that has nothing else in it.
    fn is_simple(&self) -> bool {
        self.known.is_some_and(|all| all.is_simple)
    }

    /// Files that are only announced.
    fn announced(&self) -> Result<Vec<RepoPath>, Error> {
        match self.known {
            Some(_) => Ok(Vec::new()),
            None => self.repo().announced(self.tree.dir, Some(self.raw)),
        }
    }

    /// Shared index files expire; the copy must stand alone.
    fn unsplit(&self) -> Result<(), Error> {
        if self.is_simple() || Facts::of(self.repo(), self.raw).is_some() || !self.mentions(*b"link")? {
            return Ok(());
        }
        let time = std::fs::metadata(self.raw).and_then(|m| m.modified());
        self.repo()
            .git_in(self.tree.dir)
            .args(["update-index", "--no-split-index"])
            .index(self.raw)
            .changes()
            .run()?;
        let set = std::fs::File::options().write(true).open(self.raw);
        set.and_then(|f| f.set_modified(time?)).map_err(Error::io("set the time of", self.raw))
    }

    /// Whether an index that the library does not know may have an extension: a path that holds its name costs only a call.
    fn mentions(&self, extension: [u8; 4]) -> Result<bool, Error> {
        let bytes = std::fs::read(self.raw).map_err(Error::io("read", self.raw))?;
        Ok(bytes.windows(4).any(|w| w == extension.as_slice()))
    }

    /// The blobs that the index's record of resolved conflicts names. Without them `git gc` fails once the raw index is
    /// back.
    fn stages(&self) -> Result<Option<Oid>, Error> {
        if self.is_simple()
            || Facts::of(self.repo(), self.raw).is_some_and(|facts| !facts.has_resolved())
            || !self.mentions(*b"REUC")?
        {
            return Ok(None);
        }
        self.by_stage(&["--resolve-undo"])
    }

    /// A tree with what the lists of `ls-files` name, each blob at `STAGE/PATH`. None when they name nothing.
    fn by_stage(&self, lists: &[&str]) -> Result<Option<Oid>, Error> {
        let call = || self.repo().git_in(self.tree.dir);
        let mut entries = Vec::new();
        for list in lists {
            let out = call().args(["ls-files", list, "-z"]).index(self.raw).run()?;
            // `<mode> <id> <stage>\t<path>`
            for field in out.fields() {
                let Some(tab) = field.iter().position(|b| *b == b'\t').filter(|tab| *tab > 0) else {
                    continue;
                };
                entries.extend_from_slice(&field[..tab - 1]);
                entries.extend_from_slice(b"0\t");
                entries.push(field[tab - 1]);
                entries.push(b'/');
                entries.extend_from_slice(&field[tab + 1..]);
                entries.push(0);
            }
        }
        if entries.is_empty() {
            return Ok(None);
        }
        let index = self.tree.scratch.join("stages");
        call().args(["update-index", "-z", "--index-info"]).index(&index).input(entries).changes().run()?;
        self.write_tree(&index).map(Some)
    }

    fn write_tree(&self, index: &Path) -> Result<Oid, Error> {
        self.repo().git_in(self.tree.dir).arg("write-tree").index(index).changes().durable().run_for_id()
    }

    fn update(&self, index: &Path, how: &[&str], paths: &[RepoPath]) -> Result<(), Error> {
        if paths.is_empty() {
            return Ok(());
        }
        self.repo()
            .git_in(self.tree.dir)
            // The files themselves stay as they are: nothing happens to line ends that could not be undone.
            .args(["-c", "core.safecrlf=false", "update-index"])
            .args(how)
            .args(["-z", "--stdin"])
            .index(index)
            .input(nul_separated(paths))
            .changes()
            .durable()
            .run()
            .map(drop)
    }

    fn index_tree(&self) -> Result<Oid, Error> {
        if let Some(tree) = Facts::of(self.repo(), self.raw).and_then(|facts| facts.tree(self.repo())) {
            return Ok(tree);
        }
        let index = self.copy("staged")?;
        self.write_tree(&index)
    }

    /// The tree of the tracked files. `staged` is that of the index, if nobody told git to look away from any of its files.
    fn work_tree(&self, dirt: &Dirt, hidden: &[RepoPath], staged: Option<Oid>) -> Result<Oid, Error> {
        let (mut changed, mut gone): (Vec<RepoPath>, Vec<RepoPath>) =
            // To git a folder in place of a file is as good as nothing.
            hidden.iter().cloned().partition(|p| stands_no_folder(self.tree.dir, p));
        for entry in dirt.tracked() {
            match entry.kind {
                Kind::Tracked { deleted: true, .. } => gone.push(entry.path.clone()),
                Kind::Tracked { unstaged: true, .. } => changed.push(entry.path.clone()),
                _ => {}
            }
        }
        self.refuse_unreadable(&gone)?;
        self.refuse_no_files(&changed)?;
        if staged.is_some()
            && let Some(made) = tree_with(self.tree, staged, &changed, &gone)?
        {
            return Ok(made);
        }
        let index = self.copy("worktree")?;
        if !hidden.is_empty() {
            flags::clear_flags(self.repo(), self.tree.dir, &index, hidden)?;
        }
        self.update(&index, &["--force-remove"], &gone)?;
        if let Err(e) = self.update(&index, &["--add", "--remove", "--replace"], &changed) {
            self.refuse_unreadable(&changed)?;
            return Err(e);
        }
        self.write_tree(&index)
    }

    /// Git knows no other kinds of things.
    fn refuse_no_files(&self, paths: &[RepoPath]) -> Result<(), Error> {
        let paths = special::no_files(self.tree.dir, paths);
        if paths.is_empty() { Ok(()) } else { Err(Error::NoFile { dir: self.tree.dir.to_owned(), paths }) }
    }

    /// What git could not read has content that nobody can keep.
    fn refuse_unreadable(&self, paths: &[RepoPath]) -> Result<(), Error> {
        let paths = special::unreadable(self.tree.dir, paths);
        if paths.is_empty() {
            return Ok(());
        }
        Err(Error::Unreadable { dir: self.tree.dir.to_owned(), paths })
    }

    /// The tree of the untracked files, and those of them that cannot be read.
    fn untracked_tree(&self, dirt: &Dirt) -> Result<(Option<Oid>, Vec<RepoPath>), Error> {
        let mut paths: Vec<RepoPath> =
            dirt.untracked().filter(|e| !e.nested).map(|e| e.path.clone()).collect();
        if self.known.is_some()
            && !paths.is_empty()
            && let Some(made) = tree_with(self.tree, None, &paths, &[])?
        {
            return Ok((Some(made), Vec::new()));
        }
        let index = self.tree.scratch.join("untracked");
        let mut unread = Vec::new();
        if let Err(e) = self.update(&index, &["--add", "--remove"], &paths) {
            unread = special::unreadable(self.tree.dir, &paths);
            if unread.is_empty() {
                return Err(e);
            }
            paths.retain(|p| !unread.contains(p));
            self.update(&index, &["--add", "--remove"], &paths)?;
        }
        if paths.is_empty() {
            return Ok((None, unread));
        }
        Ok((Some(self.write_tree(&index)?), unread))
    }

    /// The empty folders, and what stays where it is: named to the user, since a snapshot without it is not all.
    fn rest(
        &self,
        dirt: &Dirt,
        hidden: &[RepoPath],
        seen: &Seen,
        unread: Vec<RepoPath>,
    ) -> Result<(Vec<RepoPath>, Vec<LeftOut>), Error> {
        let loose = loose_folders(self.tree, dirt, hidden, seen, self.known.and_then(All::folders))?;
        let mut left = match self.known {
            // There is nothing that would have been in doubt.
            Some(_) => Vec::new(),
            None => special::beside_tracked(self.tree, self.raw)?,
        };
        left.extend(loose.left);
        left.extend(unread.into_iter().map(LeftOut::unreadable));
        let mut left = special::without_ignored(self.tree, left)?;
        left.extend(dirt.untracked().filter(|e| e.nested).map(|e| LeftOut::nested(e.path.clone())));
        for left in &left {
            warn_of(self.tree, left);
        }
        Ok((loose.empty, left))
    }
}
