//! Index entries with the flag assume-unchanged or skip-worktree, whose files git does not check.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use gix::index::File;
use gix::index::decode::Options;
use gix::index::entry::{Flags, Mode, Stage, Stat};

use super::scratch_index;
use crate::base::path::nul_separated;
use crate::repository::worktree_context::WorktreeContext;
use crate::{Error, Repo, RepoPath};

/// Options that keep git from changing flags. In a sparse checkout git clears skip-worktree of an existing
/// file each time that it reads the index. They also keep git from writing sparse directory entries.
pub(crate) const KEEP_FLAGS_CONFIG: [&str; 4] =
    ["-c", "sparse.expectFilesOutsideOfPatterns=true", "-c", "index.sparse=false"];

/// Returns the paths with local edits that `git status` does not show because of a flag on their entry.
pub fn hidden_edits(repo: &Repo, dir: &Path, git_dir: &Path, scratch: &Path) -> Result<Vec<RepoPath>, Error> {
    let mut all = flagged_entries(repo, dir, git_dir)?;
    all.retain(|f| !f.skip_worktree || f.path.to_fs_path(dir).symlink_metadata().is_ok());
    edited_flagged_paths(repo, dir, git_dir, scratch, all)
}

/// Returns hidden edits and files that were removed after they were marked skip-worktree. In a sparse
/// checkout such files are expected to be absent and do not count.
pub fn hidden_changes(
    repo: &Repo,
    dir: &Path,
    git_dir: &Path,
    scratch: &Path,
) -> Result<Vec<RepoPath>, Error> {
    let mut all = flagged_entries(repo, dir, git_dir)?;
    if !all.is_empty() && is_sparse_active(repo, dir, git_dir)? {
        all.retain(|f| !f.skip_worktree || f.path.to_fs_path(dir).symlink_metadata().is_ok());
    }
    edited_flagged_paths(repo, dir, git_dir, scratch, all)
}

/// Returns whether a worktree has a file of sparse patterns. The file stays after `git sparse-checkout
/// disable`, but then git does not apply it.
pub(crate) fn has_sparse_patterns_file(git_dir: &Path) -> bool {
    git_dir.join("info/sparse-checkout").exists()
}

impl Repo {
    /// Returns whether the worktree at `dir` has sparse patterns, so that `git add` may refuse paths outside
    /// of them.
    pub fn has_sparse_patterns(&self, dir: &Path) -> bool {
        self.worktree_git_dir(dir).is_ok_and(|git_dir| has_sparse_patterns_file(&git_dir))
    }
}

/// Returns whether a worktree is a sparse checkout: it has a file of sparse patterns, and
/// `core.sparseCheckout` is set.
pub(crate) fn is_sparse_active(repo: &Repo, dir: &Path, git_dir: &Path) -> Result<bool, Error> {
    if !has_sparse_patterns_file(git_dir) {
        return Ok(false);
    }
    let call = repo.git_in(dir).args(["config", "--type=bool", "core.sparseCheckout"]);
    Ok(call.accept_exit_codes(&[1]).run()?.trimmed_stdout() == "true")
}

/// Returns the paths of `flagged` entries whose file differs from the entry. Works on a copy of the index in
/// `scratch` in which the flags are cleared.
fn edited_flagged_paths(
    repo: &Repo,
    dir: &Path,
    git_dir: &Path,
    scratch: &Path,
    flagged: Vec<FlaggedEntry>,
) -> Result<Vec<RepoPath>, Error> {
    let flagged: Vec<RepoPath> = flagged.into_iter().map(|f| f.path).collect();
    if flagged.is_empty() {
        return Ok(Vec::new());
    }
    let copy = scratch.join("unflagged");
    scratch_index::copy_with_mtime(&git_dir.join("index"), &copy)?;
    clear_flags(repo, dir, &copy, &flagged)?;
    let out = repo
        .git_in(dir)
        .args(["diff-files", "-z", "--name-only", "--no-renames", "--ignore-submodules=all"])
        .use_index(&copy)
        .run()?;
    let flagged: HashSet<&RepoPath> = flagged.iter().collect();
    Ok(out.nul_separated_fields().map(RepoPath::new).filter(|p| flagged.contains(p)).collect())
}

/// Returns whether a worktree's index has flags that were set manually: assume-unchanged or, outside of a
/// sparse checkout, skip-worktree.
pub fn has_manual_flags(tree: &WorktreeContext<'_>) -> Result<bool, Error> {
    let index = tree.git_dir.join("index");
    Ok(!manual_flags(tree.repo, tree.dir, &tree.git_dir, &index)?.is_empty())
}

impl Repo {
    /// Returns whether any index entry of a worktree is marked assume-unchanged or skip-worktree.
    pub fn has_flagged_entries(&self, dir: &Path, git_dir: &Path) -> Result<bool, Error> {
        Ok(!flagged_entries(self, dir, git_dir)?.is_empty())
    }
}

/// Clears both flags of `paths` in an index file, and refreshes its stat data from the worktree.
pub(crate) fn clear_flags(repo: &Repo, dir: &Path, index: &Path, paths: &[RepoPath]) -> Result<(), Error> {
    if paths.is_empty() {
        return Ok(());
    }
    for flag in ["--no-assume-unchanged", "--no-skip-worktree"] {
        set_flag(repo, dir, index, flag, nul_separated(paths))?;
    }
    refresh_stat_data(repo, dir, index)
}

/// Sets or clears one flag of the entries named in `nul_paths` in an index file.
fn set_flag(repo: &Repo, dir: &Path, index: &Path, flag: &str, nul_paths: Vec<u8>) -> Result<(), Error> {
    if nul_paths.is_empty() {
        return Ok(());
    }
    let call = repo.git_in(dir).args(KEEP_FLAGS_CONFIG).args(["update-index", "-q", flag, "-z", "--stdin"]);
    call.use_index(index).input(nul_paths).mutating().run().map(drop)
}

/// Returns the entries of an index file of the worktree at `dir` whose flags were set manually. In a sparse
/// checkout git sets skip-worktree itself, so that flag does not count there.
pub(crate) fn manual_flags(
    repo: &Repo,
    dir: &Path,
    git_dir: &Path,
    index: &Path,
) -> Result<Vec<FlaggedEntry>, Error> {
    let mut all = flagged_entries_in(repo, dir, index)?;
    if all.iter().any(|entry| entry.skip_worktree) && is_sparse_active(repo, dir, git_dir)? {
        for entry in &mut all {
            entry.skip_worktree = false;
        }
        all.retain(|entry| entry.assume_unchanged);
    }
    Ok(all)
}

/// Predicate that tests an entry for one flag.
type FlagTest = fn(&FlaggedEntry) -> bool;

/// Clears the manually set flags of an index file that are not among `wanted_flags`.
pub(crate) fn clear_other_flags(
    tree: &WorktreeContext<'_>,
    index: &Path,
    wanted_flags: &[FlaggedEntry],
) -> Result<(), Error> {
    let present = manual_flags(tree.repo, tree.dir, &tree.git_dir, index)?;
    let paths_with = |has_flag: FlagTest| -> HashSet<&RepoPath> {
        wanted_flags.iter().filter(|entry| has_flag(entry)).map(|entry| &entry.path).collect()
    };
    let flag_tests: [(&str, FlagTest); 2] = [
        ("--no-assume-unchanged", |entry| entry.assume_unchanged),
        ("--no-skip-worktree", |entry| entry.skip_worktree),
    ];
    let mut is_changed = false;
    for (flag, has_flag) in flag_tests {
        let wanted = paths_with(has_flag);
        let other = present.iter().filter(|entry| has_flag(entry) && !wanted.contains(&entry.path));
        let list = nul_separated(other.map(|entry| &entry.path));
        is_changed |= !list.is_empty();
        set_flag(tree.repo, tree.dir, index, flag, list)?;
    }
    if is_changed { refresh_stat_data(tree.repo, tree.dir, index) } else { Ok(()) }
}

/// Returns a predicate for paths that have an entry in an index file. It is always true where gitoxide cannot
/// read the file.
pub(crate) fn index_entry_predicate(repo: &Repo, index: &Path) -> impl Fn(&RepoPath) -> bool + use<> {
    let index_file = File::at(index, repo.gix.object_hash(), true, Options::default()).ok();
    move |path| index_file.as_ref().is_none_or(|file| file.entry_by_path(path.as_bytes().into()).is_some())
}

/// Sets the flags of `flags_to_restore` again in an index file, for the paths that have an entry there.
pub(crate) fn restore_flags(
    repo: &Repo,
    dir: &Path,
    index: &Path,
    flags_to_restore: &[FlaggedEntry],
) -> Result<(), Error> {
    if flags_to_restore.is_empty() {
        return Ok(());
    }
    let is_listed = index_entry_predicate(repo, index);
    let flagged: Vec<&FlaggedEntry> = flags_to_restore.iter().filter(|f| is_listed(&f.path)).collect();
    let assumed = nul_separated(flagged.iter().filter(|f| f.assume_unchanged).map(|f| &f.path));
    let skipped = nul_separated(flagged.iter().filter(|f| f.skip_worktree).map(|f| &f.path));
    for (flag, list) in [("--assume-unchanged", assumed), ("--skip-worktree", skipped)] {
        set_flag(repo, dir, index, flag, list)?;
    }
    Ok(())
}

/// Adds intent-to-add entries to an index file as they are in `template`, also for files that do not exist,
/// which git itself refuses. A path is left out if the index has an entry at, above or below it. Nothing is
/// added to an index that gitoxide cannot read: an intent-to-add entry has no content to lose.
pub(crate) fn add_intent_to_add_entries(
    repo: &Repo,
    index: &Path,
    template: &Path,
    paths: &[RepoPath],
) -> Result<(), Error> {
    let read = |file: &Path| File::at(file, repo.gix.object_hash(), true, Options::default());
    let Ok(mut target) = read(index) else { return Ok(()) };
    let is_taken = |path: &&RepoPath| {
        let is_listed = |path: &RepoPath| target.entry_by_path(path.as_bytes().into()).is_some();
        let is_below = |parent: RepoPath| {
            is_listed(&parent) || is_listed(&RepoPath::new([parent.as_bytes(), b"/"].concat()))
        };
        is_listed(path) || target.path_is_directory(path.as_bytes().into()) || path.parents().any(is_below)
    };
    let free: Vec<&RepoPath> = paths.iter().filter(|path| !is_taken(path)).collect();
    if free.is_empty() {
        return Ok(());
    }
    let template_index = read(template).ok();
    for path in free {
        let path = path.as_bytes().into();
        let old_entry =
            template_index.as_ref().and_then(|like| like.entry_by_path_and_stage(path, Stage::Unconflicted));
        let (stat, mode) = old_entry.map_or((Stat::default(), Mode::FILE), |old| (old.stat, old.mode));
        let id = gix::ObjectId::empty_blob(repo.gix.object_hash());
        target.dangerously_push_entry(stat, id, Flags::INTENT_TO_ADD | Flags::EXTENDED, mode, path);
    }
    target.sort_entries();
    // The cached tree does not cover the new entries, and would be taken for the tree of the index.
    drop(target.remove_tree());
    let mut bytes = Vec::new();
    let written = target.write_to(&mut bytes, gix::index::write::Options::default());
    written
        .map_err(std::io::Error::other)
        .and_then(|_| std::fs::write(index, bytes))
        .map_err(Error::io("write", index))
}

/// Compares each entry whose stat data differs with its file, and updates the stat data of unchanged ones.
pub(crate) fn refresh_stat_data(repo: &Repo, dir: &Path, index: &Path) -> Result<(), Error> {
    repo.git_in(dir)
        .args(KEEP_FLAGS_CONFIG)
        .args(["update-index", "-q", "--refresh"])
        .use_index(index)
        .mutating()
        .accept_exit_codes(&[1])
        .run()
        .map(drop)
}

/// Returns whether two index files have the same flagged entries. A sparse directory entry in one of them
/// covers all flagged files below it.
pub fn has_same_flags(repo: &Repo, dir: &Path, first: &Path, second: &Path) -> Result<bool, Error> {
    let (mut first_flags, mut second_flags) =
        (flagged_entries_in(repo, dir, first)?, flagged_entries_in(repo, dir, second)?);
    if first_flags == second_flags {
        return Ok(true);
    }
    let sparse_folders = |index: &Path| -> HashSet<RepoPath> {
        let index_file = File::at(index, repo.gix.object_hash(), true, Options::default()).ok();
        let read = index_file.as_ref().filter(|read| read.is_sparse());
        let folders = read.into_iter().flat_map(|read| {
            read.entries().iter().filter(|e| e.mode.is_sparse()).map(|e| e.path(read).to_vec())
        });
        folders.map(|path| RepoPath::new(path.strip_suffix(b"/").unwrap_or(&path))).collect()
    };
    let (first_folders, second_folders) = (sparse_folders(first), sparse_folders(second));
    let is_in_sparse_folder = |f: &FlaggedEntry, folders: &HashSet<RepoPath>| {
        f.skip_worktree && !f.assume_unchanged && f.path.parents().any(|parent| folders.contains(&parent))
    };
    first_flags.retain(|f| !is_in_sparse_folder(f, &second_folders));
    second_flags.retain(|f| !is_in_sparse_folder(f, &first_folders));
    Ok(first_flags == second_flags)
}

/// Returns whether two index files of a worktree have the same manually set flags.
pub fn has_same_manual_flags(tree: &WorktreeContext<'_>, first: &Path, second: &Path) -> Result<bool, Error> {
    let read_flags = |index: &Path| manual_flags(tree.repo, tree.dir, &tree.git_dir, index);
    Ok(read_flags(first)? == read_flags(second)?)
}

/// Returns whether `index` has the manually set flags of `old_index`. Paths without an entry in `index` do
/// not count: a moved base removed them.
pub fn keeps_manual_flags(tree: &WorktreeContext<'_>, index: &Path, old_index: &Path) -> Result<bool, Error> {
    let read_flags = |index_path: &Path| manual_flags(tree.repo, tree.dir, &tree.git_dir, index_path);
    let (is_listed, mut wanted) = (index_entry_predicate(tree.repo, index), read_flags(old_index)?);
    wanted.retain(|entry| is_listed(&entry.path));
    Ok(read_flags(index)? == wanted)
}

/// Returns whether each flagged entry of an index file is flagged in the same way in one of the others.
pub fn has_only_flags_of(
    repo: &Repo,
    dir: &Path,
    index: &Path,
    other_indexes: &[PathBuf],
) -> Result<bool, Error> {
    let known = other_indexes
        .iter()
        .map(|other| flagged_entries_in(repo, dir, other))
        .collect::<Result<Vec<_>, _>>()?;
    let flags = flagged_entries_in(repo, dir, index)?;
    Ok(flags.iter().all(|flagged| known.iter().any(|known| known.contains(flagged))))
}

/// Path of an index entry with its flags.
#[derive(PartialEq, Eq)]
pub(crate) struct FlaggedEntry {
    pub path: RepoPath,
    /// Whether the entry is marked assume-unchanged.
    pub assume_unchanged: bool,
    /// Whether the entry is marked skip-worktree.
    pub skip_worktree: bool,
}

/// Returns all flagged entries of a worktree's index. Git lists them where gitoxide cannot read the index.
pub(crate) fn flagged_entries(repo: &Repo, dir: &Path, git_dir: &Path) -> Result<Vec<FlaggedEntry>, Error> {
    flagged_entries_in(repo, dir, &git_dir.join("index"))
}

/// Returns all flagged entries of any index file for the worktree at `dir`; none if the file does not exist.
pub(crate) fn flagged_entries_in(repo: &Repo, dir: &Path, file: &Path) -> Result<Vec<FlaggedEntry>, Error> {
    if !file.exists() {
        return Ok(Vec::new());
    }
    let decoded = File::at(file, repo.gix.object_hash(), true, Options::default());
    let Ok(index_file) = decoded else {
        return flagged_entries_by_git(repo, dir, file);
    };
    let flag_mask = Flags::ASSUME_VALID | Flags::SKIP_WORKTREE;
    Ok(index_file
        .entries()
        .iter()
        .filter(|e| e.flags.intersects(flag_mask) && !e.mode.is_sparse())
        .map(|e| FlaggedEntry {
            path: RepoPath::new(e.path(&index_file).to_vec()),
            assume_unchanged: e.flags.contains(Flags::ASSUME_VALID),
            skip_worktree: e.flags.contains(Flags::SKIP_WORKTREE),
        })
        .collect())
}

/// Fragments of the messages by which git rejects an index file as truncated or corrupt.
const BROKEN_INDEX_MESSAGES: [&str; 5] = [
    "index file smaller than expected",
    "bad signature",
    "bad index version",
    "index file corrupt",
    "unordered stage entries in index",
];

impl Repo {
    /// Returns whether an index file of the worktree at `dir` is truncated or corrupt, according to git's
    /// message. A git that was killed or ran out of memory, or a file that could not be opened, proves
    /// nothing.
    pub fn is_broken_index(&self, dir: &Path, file: &Path) -> bool {
        match flagged_entries_in(self, dir, file) {
            Err(Error::Command { stderr, .. }) => {
                BROKEN_INDEX_MESSAGES.iter().any(|message| stderr.contains(message))
            }
            _ => false,
        }
    }
}

fn flagged_entries_by_git(repo: &Repo, dir: &Path, file: &Path) -> Result<Vec<FlaggedEntry>, Error> {
    let out = repo.git_in(dir).args(["ls-files", "-v", "-z"]).use_index(file).run()?;
    Ok(out
        .nul_separated_fields()
        .filter_map(|f| {
            let assumed = f.first()?.is_ascii_lowercase();
            let skipped = f[0].eq_ignore_ascii_case(&b'S');
            (assumed || skipped).then(|| FlaggedEntry {
                path: RepoPath::new(&f[2..]),
                assume_unchanged: assumed,
                skip_worktree: skipped,
            })
        })
        .collect())
}
