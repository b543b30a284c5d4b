//! Snapshot of everything that differs from HEAD in a worktree: one commit in the shape of a stash, and the
//! raw index.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::commit::NewCommit;
use super::file_modes::{PathMode, unusual_modes};
use super::full_index::FullIndex;
use super::ignored_obstructions::{find_ignored_obstructions, ignored_in_clean_worktree};
use super::index::{self, FileVersion};
use super::path::nul_separated;
use super::quarantine::is_file_in_real_folder;
use super::sparse_entries::{find_present_skipped, staged_absent_paths};
use super::special_files::{self, UncapturedPath};
use super::status::{StatusEntry, StatusKind, WorktreeStatus, query_git_status, status};
use super::transition::WorktreeContext;
use super::unmerged_paths::UnmergedPaths;
use super::untracked_folders::{empty_folders, scan_untracked_folders};
use super::worktree_scan::{ScanFacts, WorktreeScan};
use super::worktree_tree::build_tree;
use super::{Error, IgnoredFile, Oid, Repo, RepoPath, index_flags};

/// Saved changes of one worktree. The commit has a stash's shape, so plain `git stash apply <commit>` reads
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// Stash-shaped commit.
    pub(crate) commit: Oid,
    /// Commit of HEAD when the snapshot was taken.
    pub(crate) base: Oid,
    /// Tree of the staged content.
    pub(crate) index_tree: Oid,
    /// Tree of the tracked files as they were on disk.
    pub(crate) work_tree: Oid,
    /// Tree of the untracked files.
    pub(crate) untracked_tree: Option<Oid>,
    /// Tree of the sides of resolved conflicts, which an index names until the next commit: `1/path`,
    /// `2/path`, `3/path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stages: Option<Oid>,
    /// Files with an intent-to-add entry (`git add -N`).
    #[serde(default)]
    pub(crate) intent_to_add: Vec<RepoPath>,
    /// Empty folders, which git does not track.
    #[serde(default)]
    pub(crate) empty_dirs: Vec<RepoPath>,
    /// Ignored files at paths where HEAD has another file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignored: Vec<IgnoredFile>,
    /// Number of files that differed from HEAD.
    #[serde(default)]
    pub(crate) files: usize,
    /// Paths that no snapshot can hold; they stay in place.
    #[serde(default)]
    #[serde(rename = "left")]
    pub(crate) uncaptured: Vec<UncapturedPath>,
    /// Files of a sparse checkout that existed although they are marked skip-worktree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "put_back")]
    pub(crate) present_skipped: Vec<RepoPath>,
    /// Permission bits of these files and folders that differ from those that git gives a new one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) modes: Vec<PathMode>,
    /// Version of the index that the snapshot was taken from; known only to the process that took it.
    #[serde(skip)]
    pub(super) index_version: Option<FileVersion>,
}

/// Saves what differs from HEAD, according to `scan`. Returns none when nothing differs. The raw index is
/// left as `raw-index` in the tree's scratch folder. Untracked files at or below `spared` stay in place.
///
/// # Errors
/// [`Error::Unmerged`] when a merge is unresolved, and git's errors for files that it cannot read.
pub(crate) fn capture(
    tree: &WorktreeContext<'_>,
    base: Oid,
    message: &str,
    spared: &[RepoPath],
    scan: &WorktreeScan,
) -> Result<Option<Snapshot>, Error> {
    capture_with(tree, (base, message), spared, scan, UnmergedPaths::refuse)
}

/// Captures a worktree like [`capture`], but accepts an unresolved merge. Unmerged paths are saved as their
/// files are, and as if the index had our side.
///
/// # Errors
/// git's errors for files that it cannot read.
pub(crate) fn capture_unmerged(
    tree: &WorktreeContext<'_>,
    base: Oid,
    message: &str,
    scan: &WorktreeScan,
) -> Result<Option<Snapshot>, Error> {
    capture_with(tree, (base, message), &[], scan, UnmergedPaths::count_as_ours)
}

fn capture_with(
    tree: &WorktreeContext<'_>,
    (base, message): (Oid, &str),
    spared: &[RepoPath],
    scan: &WorktreeScan,
    handle_conflicts: impl FnOnce(
        &WorktreeContext<'_>,
        &Path,
        &mut WorktreeStatus,
    ) -> Result<UnmergedPaths, Error>,
) -> Result<Option<Snapshot>, Error> {
    let (git_index, index_version) = index_with_version(tree)?;
    let facts = scan.facts_if_current(index_version, base);
    let mut worktree_status = collect_changes(tree, facts, spared)?;
    let conflicts = handle_conflicts(tree, &git_index, &mut worktree_status)?;
    let mut hidden = hidden_paths(tree, facts)?;
    let mut files = hidden.len() + worktree_status.entries.iter().filter(|e| !e.nested).count();
    hidden.extend(staged_absent_paths(tree, &git_index, &worktree_status)?);
    let has_untracked = worktree_status.untracked().any(|e| !e.nested);
    if hidden.is_empty() && !has_untracked && worktree_status.tracked().all(StatusEntry::is_inside_submodule)
    {
        return Ok(None);
    }
    let raw_index = tree.scratch.join("raw-index");
    index::copy(&git_index, &raw_index)?;
    // Nothing is staged, if the scanned index is the copied one and HEAD is still at `base`.
    let is_unchanged =
        FileVersion::read(&git_index)? == index_version && tree.repo.head_commit(tree.dir)? == Some(base);
    let writer = TreeWriter { tree, raw_index: &raw_index, facts: facts.filter(|_| is_unchanged) };
    writer.unsplit_index()?;
    conflicts.write_to_index(tree, &raw_index)?;
    let index_tree = match is_unchanged && worktree_status.staged().next().is_none() {
        true => tree.repo.tree_of(base)?,
        false => writer.write_index_tree()?,
    };
    let work_tree = writer.write_work_tree(
        &worktree_status,
        &hidden,
        Some(index_tree).filter(|_| writer.facts.is_some()),
    )?;
    let (untracked_tree, unreadable) = writer.write_untracked_tree(&worktree_status)?;
    files -= unreadable.len();
    if untracked_tree.is_none()
        && hidden.is_empty()
        && worktree_status.tracked().all(StatusEntry::is_inside_submodule)
    {
        unreadable.into_iter().map(UncapturedPath::unreadable).for_each(|item| warn_uncaptured(tree, &item));
        return Ok(None);
    }
    let (empty_dirs, uncaptured) = writer.collect_uncaptured(&worktree_status, &hidden, scan, unreadable)?;
    let mut snapshot = Snapshot {
        commit: base,
        base,
        index_tree,
        work_tree,
        untracked_tree,
        intent_to_add: writer.intent_to_add_paths()?,
        empty_dirs,
        ignored: find_ignored_obstructions(
            tree,
            &worktree_status,
            &hidden,
            (base, work_tree),
            scan.restored_ignored(),
        )?,
        present_skipped: find_present_skipped(tree, &raw_index)?,
        files,
        uncaptured,
        modes: Vec::new(),
        index_version,
        stages: writer.write_resolved_stages()?,
    };
    let shown_by_git = worktree_status.entries.iter().filter(|e| !e.nested).map(|e| &e.path).chain(&hidden);
    snapshot.modes = snapshot.collect_modes(tree, shown_by_git);
    snapshot.commit = snapshot.stash_commit(tree.repo, message)?;
    Ok(Some(snapshot))
}

fn warn_uncaptured(tree: &WorktreeContext<'_>, UncapturedPath { path, kind: what }: &UncapturedPath) {
    (tree.warn)(format!("{path} is {what}: it is in no snapshot"));
}

/// Returns the changes that git shows, without untracked files at or below `spared`.
fn collect_changes(
    tree: &WorktreeContext<'_>,
    facts: Option<&ScanFacts>,
    spared: &[RepoPath],
) -> Result<WorktreeStatus, Error> {
    let mut worktree_status = match facts {
        Some(all) => all.worktree_status(),
        None => query_git_status(tree.repo.program(), tree.dir, true)?,
    };
    worktree_status.entries.retain(|e| e.kind != StatusKind::Untracked || !is_spared(&e.path, spared));
    Ok(worktree_status)
}

/// Returns the path of a worktree's index and its current version.
fn index_with_version(
    tree: &WorktreeContext<'_>,
) -> Result<(std::path::PathBuf, Option<FileVersion>), Error> {
    tree.repo.require_index(tree.dir)?;
    let index = tree.git_dir.join("index");
    let version = FileVersion::read(&index)?;
    Ok((index, version))
}

/// Returns changes that git does not show because of index flags. If the scan yielded facts, there are none.
fn hidden_paths(tree: &WorktreeContext<'_>, facts: Option<&ScanFacts>) -> Result<Vec<RepoPath>, Error> {
    match facts {
        Some(_) => Ok(Vec::new()),
        None => index_flags::hidden_changes(tree.repo, tree.dir, &tree.git_dir, tree.scratch),
    }
}

/// Creates the snapshot of a worktree in which nothing differs from HEAD, which is at `base`. It covers
/// ignored files, empty folders, and files that a sparse checkout shows. The raw index is left as by
/// [`capture`].
///
/// # Errors
/// Fails if the index cannot be copied, or an object cannot be written.
pub(crate) fn capture_unchanged(
    tree: &WorktreeContext<'_>,
    base: Oid,
    message: &str,
    scan: &WorktreeScan,
) -> Result<Snapshot, Error> {
    tree.repo.require_index(tree.dir)?;
    index::copy(&tree.git_dir.join("index"), &tree.scratch.join("raw-index"))?;
    let base_tree = tree.repo.tree_of(base)?;
    let mut snapshot = Snapshot {
        commit: base,
        base,
        index_tree: base_tree,
        work_tree: base_tree,
        untracked_tree: None,
        stages: None,
        intent_to_add: Vec::new(),
        empty_dirs: empty_folders(tree, scan)?,
        ignored: ignored_in_clean_worktree(tree, scan.restored_ignored())?,
        present_skipped: find_present_skipped(tree, &tree.scratch.join("raw-index"))?,
        files: 0,
        uncaptured: Vec::new(),
        modes: Vec::new(),
        index_version: None,
    };
    snapshot.modes = snapshot.collect_modes(tree, std::iter::empty());
    snapshot.commit = snapshot.stash_commit(tree.repo, message)?;
    Ok(snapshot)
}

impl Snapshot {
    /// Returns the unusual permission bits of files that git shows, and of the other files in the snapshot.
    fn collect_modes<'p>(
        &'p self,
        tree: &WorktreeContext<'_>,
        shown_by_git: impl Iterator<Item = &'p RepoPath>,
    ) -> Vec<PathMode> {
        if !tree.repo.trusts_file_modes() {
            return Vec::new();
        }
        let ignored = self.ignored.iter().map(|file| &file.path);
        unusual_modes(
            tree.dir,
            shown_by_git.chain(ignored).chain(&self.present_skipped).chain(&self.empty_dirs),
        )
    }

    /// Writes the stash-shaped commit again, after a tree has changed.
    pub(super) fn rewrite_commit(&mut self, repo: &Repo) -> Result<(), Error> {
        let message = repo.commit_subject(self.commit)?;
        self.commit = self.stash_commit(repo, &message)?;
        Ok(())
    }

    /// Writes the commits of the stash shape: the worktree's tree on top of HEAD, the index's commit, the
    /// untracked files' commit. Objects that only have to be retained are parents of the index's commit, of
    /// which git reads only the tree.
    fn stash_commit(&self, repo: &Repo, message: &str) -> Result<Oid, Error> {
        let write = |tree, parents: &[Oid], message: &str| {
            NewCommit { tree, parents, message }.write_as_proq(repo, None)
        };
        let mut index_parents = vec![self.base];
        if let Some(tree) = self.stages {
            index_parents.push(write(tree, &[], &format!("sides of resolved conflicts on {message}"))?);
        }
        let index_commit = write(self.index_tree, &index_parents, &format!("index on {message}"))?;
        let mut parents = vec![self.base, index_commit];
        if let Some(tree) = self.untracked_tree {
            parents.push(write(tree, &[], &format!("untracked files on {message}"))?);
        }
        write(self.work_tree, &parents, message)
    }
}

fn is_spared(path: &RepoPath, spared: &[RepoPath]) -> bool {
    !spared.is_empty() && (spared.contains(path) || path.parents().any(|up| spared.contains(&up)))
}

/// Writes the tree of a worktree's tracked files as they are now, staged or not. Files that index flags hide
/// from git are written as they were staged.
pub(crate) fn write_tracked_tree(tree: &WorktreeContext<'_>) -> Result<Oid, Error> {
    let unmerged = status(tree.repo, tree.dir, false)?.unmerged();
    if !unmerged.is_empty() {
        return Err(Error::Unmerged { dir: tree.dir.to_owned(), paths: unmerged });
    }
    let raw_index = tree.scratch.join("raw-index");
    index::copy(&tree.git_dir.join("index"), &raw_index)?;
    let worktree_status = status(tree.repo, tree.dir, false)?;
    let (flagged, _) = index_flags::split_flagged_edits(tree.repo, tree.dir, tree.scratch, &worktree_status)?;
    TreeWriter { tree, raw_index: &raw_index, facts: None }.write_work_tree(&worktree_status, &flagged, None)
}

/// Writes a commit that retains everything that a worktree's index names, in every stage, since an index with
/// conflicts allows no snapshot. Returns none when the index names nothing.
pub(crate) fn save_index_commit(tree: &WorktreeContext<'_>, message: &str) -> Result<Option<Oid>, Error> {
    let index_file = tree.git_dir.join("index");
    let saved_tree = TreeWriter { tree, raw_index: &index_file, facts: None }
        .write_stage_tree(&["--stage", "--resolve-undo"])?;
    saved_tree
        .map(|tree_id| NewCommit { tree: tree_id, parents: &[], message }.write_as_proq(tree.repo, None))
        .transpose()
}

/// Writer of trees from copies of one raw index.
struct TreeWriter<'a> {
    tree: &'a WorktreeContext<'a>,
    raw_index: &'a Path,
    /// Certain facts about the worktree and this very index.
    facts: Option<&'a ScanFacts>,
}

impl TreeWriter<'_> {
    fn repo(&self) -> &Repo {
        self.tree.repo
    }

    fn copy_index(&self, name: &str) -> Result<std::path::PathBuf, Error> {
        let target = self.tree.scratch.join(name);
        index::copy(self.raw_index, &target)?;
        Ok(target)
    }

    /// Returns whether a scan has shown that the index matches HEAD, and its file has only entries and cached
    /// trees, and no shared part.
    fn is_simple(&self) -> bool {
        self.facts.is_some_and(|all| all.is_simple)
    }

    /// Returns files with an intent-to-add entry.
    fn intent_to_add_paths(&self) -> Result<Vec<RepoPath>, Error> {
        match self.facts {
            Some(_) => Ok(Vec::new()),
            None => self.repo().intent_to_add_paths(self.tree.dir, Some(self.raw_index)),
        }
    }

    /// Makes the copied index stand alone, since shared index files expire.
    fn unsplit_index(&self) -> Result<(), Error> {
        if self.is_simple()
            || FullIndex::read(self.repo(), self.raw_index).is_some()
            || !self.may_have_extension(*b"link")?
        {
            return Ok(());
        }
        let modified_time = std::fs::metadata(self.raw_index).and_then(|m| m.modified());
        self.repo()
            .git_in(self.tree.dir)
            .args(["update-index", "--no-split-index"])
            .index(self.raw_index)
            .mutating()
            .run()?;
        let opened = std::fs::File::options().write(true).open(self.raw_index);
        opened
            .and_then(|f| f.set_modified(modified_time?))
            .map_err(Error::io("set the time of", self.raw_index))
    }

    /// Returns whether the index may have an extension that the library does not know. A path that contains
    /// its name costs only one more call of git.
    fn may_have_extension(&self, extension: [u8; 4]) -> Result<bool, Error> {
        let bytes = std::fs::read(self.raw_index).map_err(Error::io("read", self.raw_index))?;
        Ok(bytes.windows(4).any(|w| w == extension.as_slice()))
    }

    /// Writes a tree of the blobs that the index's record of resolved conflicts names. Without them `git gc`
    /// fails once the raw index is restored.
    fn write_resolved_stages(&self) -> Result<Option<Oid>, Error> {
        if self.is_simple()
            || FullIndex::read(self.repo(), self.raw_index).is_some_and(|facts| !facts.has_resolve_undo())
            || !self.may_have_extension(*b"REUC")?
        {
            return Ok(None);
        }
        self.write_stage_tree(&["--resolve-undo"])
    }

    /// Writes a tree of the entries that `ls-files` lists with these options, each blob at `STAGE/PATH`.
    /// Returns none when there are no entries.
    fn write_stage_tree(&self, list_options: &[&str]) -> Result<Option<Oid>, Error> {
        let git_command = || self.repo().git_in(self.tree.dir);
        let mut entries = Vec::new();
        for option in list_options {
            let out = git_command().args(["ls-files", option, "-z"]).index(self.raw_index).run()?;
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
        git_command()
            .args(["update-index", "-z", "--index-info"])
            .index(&index)
            .input(entries)
            .mutating()
            .run()?;
        self.write_tree(&index).map(Some)
    }

    fn write_tree(&self, index: &Path) -> Result<Oid, Error> {
        self.repo().git_in(self.tree.dir).arg("write-tree").index(index).mutating().durable().run_for_id()
    }

    fn update_index(&self, index: &Path, options: &[&str], paths: &[RepoPath]) -> Result<(), Error> {
        if paths.is_empty() {
            return Ok(());
        }
        self.repo()
            .git_in(self.tree.dir)
            // The files themselves stay unchanged, so a conversion of line ends loses nothing.
            .args(["-c", "core.safecrlf=false", "update-index"])
            .args(options)
            .args(["-z", "--stdin"])
            .index(index)
            .input(nul_separated(paths))
            .mutating()
            .durable()
            .run()
            .map(drop)
    }

    fn write_index_tree(&self) -> Result<Oid, Error> {
        if let Some(tree) =
            FullIndex::read(self.repo(), self.raw_index).and_then(|facts| facts.cached_tree(self.repo()))
        {
            return Ok(tree);
        }
        let index = self.copy_index("staged")?;
        self.write_tree(&index)
    }

    /// Writes the tree of the tracked files. `staged_tree` is the tree of the index, if no index flag hides a
    /// file from git.
    fn write_work_tree(
        &self,
        worktree_status: &WorktreeStatus,
        hidden: &[RepoPath],
        staged_tree: Option<Oid>,
    ) -> Result<Oid, Error> {
        let (mut changed, mut removed): (Vec<RepoPath>, Vec<RepoPath>) =
            // git treats a folder in place of a file as a missing file.
            hidden.iter().cloned().partition(|p| is_file_in_real_folder(self.tree.dir, p));
        for entry in worktree_status.tracked() {
            match entry.kind {
                StatusKind::Tracked { deleted: true, .. } => removed.push(entry.path.clone()),
                StatusKind::Tracked { unstaged: true, .. } => changed.push(entry.path.clone()),
                _ => {}
            }
        }
        self.refuse_unreadable(&removed)?;
        self.refuse_special_files(&changed)?;
        if staged_tree.is_some()
            && let Some(tree_id) = build_tree(self.tree, staged_tree, &changed, &removed)?
        {
            return Ok(tree_id);
        }
        let index = self.copy_index("worktree")?;
        if !hidden.is_empty() {
            index_flags::clear_flags(self.repo(), self.tree.dir, &index, hidden)?;
        }
        self.update_index(&index, &["--force-remove"], &removed)?;
        if let Err(e) = self.update_index(&index, &["--add", "--remove", "--replace"], &changed) {
            self.refuse_unreadable(&changed)?;
            return Err(e);
        }
        self.write_tree(&index)
    }

    /// Refuses paths that are special files, which git cannot store.
    fn refuse_special_files(&self, paths: &[RepoPath]) -> Result<(), Error> {
        let paths = special_files::describe_special_files(self.tree.dir, paths);
        if paths.is_empty() { Ok(()) } else { Err(Error::NotAFile { dir: self.tree.dir.to_owned(), paths }) }
    }

    /// Refuses unreadable files, whose content cannot be saved.
    fn refuse_unreadable(&self, paths: &[RepoPath]) -> Result<(), Error> {
        let paths = special_files::unreadable_paths(self.tree.dir, paths);
        if paths.is_empty() {
            return Ok(());
        }
        Err(Error::Unreadable { dir: self.tree.dir.to_owned(), paths })
    }

    /// Writes the tree of the untracked files. Also returns those that cannot be read.
    fn write_untracked_tree(
        &self,
        worktree_status: &WorktreeStatus,
    ) -> Result<(Option<Oid>, Vec<RepoPath>), Error> {
        let mut paths: Vec<RepoPath> =
            worktree_status.untracked().filter(|e| !e.nested).map(|e| e.path.clone()).collect();
        if self.facts.is_some()
            && !paths.is_empty()
            && let Some(tree_id) = build_tree(self.tree, None, &paths, &[])?
        {
            return Ok((Some(tree_id), Vec::new()));
        }
        let index = self.tree.scratch.join("untracked");
        let mut unreadable = Vec::new();
        if let Err(e) = self.update_index(&index, &["--add", "--remove"], &paths) {
            unreadable = special_files::unreadable_paths(self.tree.dir, &paths);
            if unreadable.is_empty() {
                return Err(e);
            }
            paths.retain(|p| !unreadable.contains(p));
            self.update_index(&index, &["--add", "--remove"], &paths)?;
        }
        if paths.is_empty() {
            return Ok((None, unreadable));
        }
        Ok((Some(self.write_tree(&index)?), unreadable))
    }

    /// Collects the empty folders and the uncaptured paths. The user is warned about uncaptured paths, since
    /// the snapshot is incomplete without them.
    fn collect_uncaptured(
        &self,
        worktree_status: &WorktreeStatus,
        hidden: &[RepoPath],
        scan: &WorktreeScan,
        unreadable: Vec<RepoPath>,
    ) -> Result<(Vec<RepoPath>, Vec<UncapturedPath>), Error> {
        let folders = scan_untracked_folders(
            self.tree,
            worktree_status,
            hidden,
            scan,
            self.facts.and_then(ScanFacts::untracked_folders),
        )?;
        let mut uncaptured = match self.facts {
            // The facts exclude uncaptured paths.
            Some(_) => Vec::new(),
            None => special_files::special_files_beside_tracked(self.tree, self.raw_index)?,
        };
        uncaptured.extend(folders.non_files);
        uncaptured.extend(unreadable.into_iter().map(UncapturedPath::unreadable));
        let mut uncaptured = special_files::without_ignored(self.tree, uncaptured)?;
        uncaptured.extend(
            worktree_status.untracked().filter(|e| e.nested).map(|e| UncapturedPath::nested(e.path.clone())),
        );
        for item in &uncaptured {
            warn_uncaptured(self.tree, item);
        }
        Ok((folders.empty, uncaptured))
    }
}
