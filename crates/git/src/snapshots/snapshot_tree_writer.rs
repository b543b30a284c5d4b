//! Writer of a snapshot's trees from the raw index and the files of a worktree.

use std::path::Path;

use super::worktree_tree::build_tree;
use crate::base::folders::is_file_in_real_folder;
use crate::base::path::nul_separated;
use crate::index::full_index::FullIndex;
use crate::index::{index_flags, scratch_index};
use crate::repository::worktree_context::WorktreeContext;
use crate::status::special_files;
use crate::status::special_files::UncapturedPath;
use crate::status::untracked_folders::scan_untracked_folders;
use crate::status::worktree_scan::{ScanFacts, WorktreeScan};
use crate::status::worktree_status::{StatusKind, WorktreeStatus};
use crate::{Error, Repo, RepoPath, TreeId};

/// Writer of trees from copies of one raw index.
pub(crate) struct TreeWriter<'a> {
    pub tree: &'a WorktreeContext<'a>,
    pub raw_index: &'a Path,
    /// Facts about the worktree from a scan, if they hold for exactly this index.
    pub facts: Option<&'a ScanFacts>,
}

impl TreeWriter<'_> {
    fn repo(&self) -> &Repo {
        self.tree.repo
    }

    /// Copies the raw index to `name` in the scratch folder, and returns the path of the copy.
    fn copy_index(&self, name: &str) -> Result<std::path::PathBuf, Error> {
        let target = self.tree.scratch.join(name);
        scratch_index::copy_with_mtime(self.raw_index, &target)?;
        Ok(target)
    }

    /// Returns whether a scan has shown two facts: the index matches HEAD, and its file can be rewritten.
    /// Such a file has only entries and cached trees, and no shared part.
    fn is_index_rewritable(&self) -> bool {
        self.facts.is_some_and(|all| all.is_index_rewritable)
    }

    /// Returns files with an intent-to-add entry.
    pub fn intent_to_add_paths(&self) -> Result<Vec<RepoPath>, Error> {
        match self.facts {
            Some(_) => Ok(Vec::new()),
            None => self.repo().intent_to_add_paths(self.tree.dir, Some(self.raw_index)),
        }
    }

    /// Makes the copied index stand alone, since shared index files expire.
    pub(crate) fn unsplit_index(&self) -> Result<(), Error> {
        if self.is_index_rewritable()
            || FullIndex::read(self.repo(), self.raw_index).is_some()
            || !self.may_have_extension(*b"link")?
        {
            return Ok(());
        }
        let modified_time = std::fs::metadata(self.raw_index).and_then(|m| m.modified());
        self.repo()
            .git_in(self.tree.dir)
            .args(["update-index", "--no-split-index"])
            .use_index(self.raw_index)
            .mutating()
            .run()?;
        let opened = std::fs::File::options().write(true).open(self.raw_index);
        opened
            .and_then(|f| f.set_modified(modified_time?))
            .map_err(Error::io("set the time of", self.raw_index))
    }

    /// Returns whether the index may have an extension with this name, which gitoxide does not know. A path
    /// that contains the name also counts, and costs only one more call of git.
    fn may_have_extension(&self, extension: [u8; 4]) -> Result<bool, Error> {
        let bytes = std::fs::read(self.raw_index).map_err(Error::io("read", self.raw_index))?;
        Ok(bytes.windows(4).any(|w| w == extension.as_slice()))
    }

    /// Writes a tree of the blobs that the index's record of resolved conflicts names. Without them `git gc`
    /// fails once the raw index is restored.
    pub(crate) fn write_resolved_stages(&self) -> Result<Option<TreeId>, Error> {
        if self.is_index_rewritable()
            || FullIndex::read(self.repo(), self.raw_index).is_some_and(|facts| !facts.has_resolve_undo())
            || !self.may_have_extension(*b"REUC")?
        {
            return Ok(None);
        }
        self.write_stage_tree(&["--resolve-undo"])
    }

    /// Writes a tree of the entries that `ls-files` lists with these options, each blob at `STAGE/PATH`.
    /// Returns none when there are no entries.
    pub(crate) fn write_stage_tree(&self, list_options: &[&str]) -> Result<Option<TreeId>, Error> {
        let git_command = || self.repo().git_in(self.tree.dir);
        let mut entries = Vec::new();
        for option in list_options {
            let out = git_command().args(["ls-files", option, "-z"]).use_index(self.raw_index).run()?;
            // `<mode> <id> <stage>\t<path>`
            for field in out.nul_separated_fields() {
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
            .use_index(&index)
            .input(entries)
            .mutating()
            .run()?;
        self.write_tree(&index).map(Some)
    }

    /// Writes the tree of the index file `index`.
    fn write_tree(&self, index: &Path) -> Result<TreeId, Error> {
        self.repo().git_in(self.tree.dir).use_index(index).mutating().durable().run_write_tree()
    }

    /// Runs `git update-index` with `options` on `paths` in the index file `index`; does nothing without
    /// paths.
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
            .use_index(index)
            .input(nul_separated(paths))
            .mutating()
            .durable()
            .run()
            .map(drop)
    }

    /// Writes the tree of the staged content.
    pub(crate) fn write_index_tree(&self) -> Result<TreeId, Error> {
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
    pub(crate) fn write_work_tree(
        &self,
        worktree_status: &WorktreeStatus,
        hidden: &[RepoPath],
        staged_tree: Option<TreeId>,
    ) -> Result<TreeId, Error> {
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

    /// Fails if one of `paths` is a special file, which git cannot store.
    fn refuse_special_files(&self, paths: &[RepoPath]) -> Result<(), Error> {
        let paths = special_files::describe_special_files(self.tree.dir, paths);
        if paths.is_empty() {
            Ok(())
        } else {
            Err(Error::NotAFile { dir: self.tree.dir.to_owned(), descriptions: paths })
        }
    }

    /// Fails if one of `paths` is an unreadable file, whose content cannot be saved.
    fn refuse_unreadable(&self, paths: &[RepoPath]) -> Result<(), Error> {
        let paths = special_files::unreadable_paths(self.tree.dir, paths);
        if paths.is_empty() {
            return Ok(());
        }
        Err(Error::Unreadable { dir: self.tree.dir.to_owned(), unreadable_paths: paths })
    }

    /// Writes the tree of the untracked files; none if no readable file is untracked. Also returns the
    /// untracked files that cannot be read.
    pub(crate) fn write_untracked_tree(
        &self,
        worktree_status: &WorktreeStatus,
    ) -> Result<(Option<TreeId>, Vec<RepoPath>), Error> {
        let mut paths: Vec<RepoPath> =
            worktree_status.untracked().filter(|e| !e.is_nested_repo).map(|e| e.path.clone()).collect();
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

    /// Returns the empty folders and the uncaptured paths of the worktree. Warns the user about each
    /// uncaptured path, since the snapshot is incomplete without it.
    pub(crate) fn collect_uncaptured(
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
        uncaptured.extend(folders.uncaptured_paths);
        uncaptured.extend(unreadable.into_iter().map(UncapturedPath::unreadable));
        let mut uncaptured = special_files::without_ignored_paths(self.tree, uncaptured)?;
        uncaptured.extend(
            worktree_status
                .untracked()
                .filter(|e| e.is_nested_repo)
                .map(|e| UncapturedPath::nested(e.path.clone())),
        );
        for item in &uncaptured {
            warn_uncaptured(self.tree, item);
        }
        Ok((folders.empty_folders, uncaptured))
    }
}

/// Warns that a path is in no snapshot.
pub(crate) fn warn_uncaptured(
    tree: &WorktreeContext<'_>,
    UncapturedPath { path, kind: what }: &UncapturedPath,
) {
    (tree.warn)(format!("{path} is {what}: it is in no snapshot"));
}
