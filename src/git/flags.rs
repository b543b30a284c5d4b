//! Owns index entries that git was told not to look at: assume-unchanged and skip-worktree.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use gix::index::File;
use gix::index::decode::Options;
use gix::index::entry::{Flags, Mode, Stage, Stat};

use super::path::nul_separated;
use super::status::{Dirt, Entry, Kind};
use super::transition::Tree;
use super::{Error, Repo, RepoPath, index};

/// Has git leave the flag of an entry as it is whose file is there though marked skip-worktree: in a sparse checkout it drops the
/// flag each time that it reads the index. Nor does it put folders in place of their files when it writes one.
pub(super) const AS_MARKED: [&str; 4] =
    ["-c", "sparse.expectFilesOutsideOfPatterns=true", "-c", "index.sparse=false"];

/// Paths with local edits that `git status` does not show because of a flag on their entry.
pub(crate) fn hidden_edits(
    repo: &Repo,
    dir: &Path,
    git_dir: &Path,
    scratch: &Path,
) -> Result<Vec<RepoPath>, Error> {
    let mut all = flagged(repo, dir, git_dir)?;
    all.retain(|f| !f.skipped || f.path.under(dir).symlink_metadata().is_ok());
    differing(repo, dir, git_dir, scratch, all)
}

/// The edited files whose index entry is marked assume-unchanged or skip-worktree, in two lists by what `dirt` has as changed: those that
/// git shows all the same, as files of a sparse checkout that are there against its patterns, and those that it does not show.
///
/// # Errors
/// When the index cannot be read, or git cannot compare the files.
pub(crate) fn shown_and_hidden(
    repo: &Repo,
    dir: &Path,
    scratch: &Path,
    dirt: &Dirt,
) -> Result<(Vec<RepoPath>, Vec<RepoPath>), Error> {
    let edits = hidden_edits(repo, dir, &repo.git_dir_of(dir)?, scratch)?;
    let is_shown = |entry: &&Entry| matches!(entry.kind, Kind::Tracked { unstaged: true, .. });
    let shown: HashSet<&RepoPath> = dirt.tracked().filter(is_shown).map(|entry| &entry.path).collect();
    Ok(edits.into_iter().partition(|path| shown.contains(path)))
}

/// Edits that are hidden, and files that were removed after git was told to skip them. In a sparse checkout that is their place.
pub(crate) fn hidden_changes(
    repo: &Repo,
    dir: &Path,
    git_dir: &Path,
    scratch: &Path,
) -> Result<Vec<RepoPath>, Error> {
    let mut all = flagged(repo, dir, git_dir)?;
    if !all.is_empty() && is_sparse_now(repo, dir, git_dir)? {
        all.retain(|f| !f.skipped || f.path.under(dir).symlink_metadata().is_ok());
    }
    differing(repo, dir, git_dir, scratch, all)
}

/// Whether a worktree has patterns of what to skip. They stay when a sparse checkout is given up, but then git flags nothing by
/// them.
pub(super) fn is_sparse(git_dir: &Path) -> bool {
    git_dir.join("info/sparse-checkout").exists()
}

impl Repo {
    /// Whether the worktree at `dir` has patterns of a sparse checkout, so that `git add` may refuse what is outside of them.
    pub(crate) fn has_sparse_patterns(&self, dir: &Path) -> bool {
        self.git_dir_of(dir).is_ok_and(|git_dir| is_sparse(&git_dir))
    }
}

/// Whether such patterns are in force.
pub(super) fn is_sparse_now(repo: &Repo, dir: &Path, git_dir: &Path) -> Result<bool, Error> {
    if !is_sparse(git_dir) {
        return Ok(false);
    }
    let call = repo.git_in(dir).args(["config", "--type=bool", "core.sparseCheckout"]);
    Ok(call.accept(&[1]).run()?.line() == "true")
}

fn differing(
    repo: &Repo,
    dir: &Path,
    git_dir: &Path,
    scratch: &Path,
    flagged: Vec<Flagged>,
) -> Result<Vec<RepoPath>, Error> {
    let flagged: Vec<RepoPath> = flagged.into_iter().map(|f| f.path).collect();
    if flagged.is_empty() {
        return Ok(Vec::new());
    }
    let copy = scratch.join("unflagged");
    index::copy(&git_dir.join("index"), &copy)?;
    clear_flags(repo, dir, &copy, &flagged)?;
    let out = repo
        .git_in(dir)
        .args(["diff-files", "-z", "--name-only", "--no-renames", "--ignore-submodules=all"])
        .index(&copy)
        .run()?;
    let flagged: HashSet<&RepoPath> = flagged.iter().collect();
    Ok(out.fields().map(RepoPath::new).filter(|p| flagged.contains(p)).collect())
}

/// Whether entries of a worktree's index have flags that somebody set by hand: assume-unchanged or, outside of a sparse checkout,
/// skip-worktree.
pub(crate) fn is_flagged(tree: &Tree<'_>) -> Result<bool, Error> {
    let index = tree.git_dir.join("index");
    Ok(!set_by_hand(tree.repo, tree.dir, &tree.git_dir, &index)?.is_empty())
}

impl Repo {
    /// Whether git was told not to look at some file of a worktree.
    pub(crate) fn has_flags(&self, dir: &Path, git_dir: &Path) -> Result<bool, Error> {
        Ok(!flagged(self, dir, git_dir)?.is_empty())
    }
}

/// Takes both flags off `paths` in one index file, and compares them with the worktree.
pub(super) fn clear_flags(repo: &Repo, dir: &Path, index: &Path, paths: &[RepoPath]) -> Result<(), Error> {
    if paths.is_empty() {
        return Ok(());
    }
    for flag in ["--no-assume-unchanged", "--no-skip-worktree"] {
        mark(repo, dir, index, flag, nul_separated(paths))?;
    }
    refresh(repo, dir, index)
}

/// Sets or clears one flag of entries of one index file, which `list` names.
fn mark(repo: &Repo, dir: &Path, index: &Path, flag: &str, list: Vec<u8>) -> Result<(), Error> {
    if list.is_empty() {
        return Ok(());
    }
    let call = repo.git_in(dir).args(AS_MARKED).args(["update-index", "-q", flag, "-z", "--stdin"]);
    call.index(index).input(list).changes().run().map(drop)
}

/// The entries of an index file of the worktree at `dir` that have flags which somebody set by hand: in a sparse checkout git decides
/// by itself which entries are skip-worktree.
pub(super) fn set_by_hand(
    repo: &Repo,
    dir: &Path,
    git_dir: &Path,
    index: &Path,
) -> Result<Vec<Flagged>, Error> {
    let mut all = flagged_in(repo, dir, index)?;
    if all.iter().any(|entry| entry.skipped) && is_sparse_now(repo, dir, git_dir)? {
        for entry in &mut all {
            entry.skipped = false;
        }
        all.retain(|entry| entry.assumed);
    }
    Ok(all)
}

/// Whether an entry has a flag.
type Has = fn(&Flagged) -> bool;

/// Clears those flags of an index file that somebody set by hand, and that are not among `wanted`.
pub(super) fn keep_only(tree: &Tree<'_>, index: &Path, wanted: &[Flagged]) -> Result<(), Error> {
    let there = set_by_hand(tree.repo, tree.dir, &tree.git_dir, index)?;
    let named = |has: Has| -> HashSet<&RepoPath> {
        wanted.iter().filter(|entry| has(entry)).map(|entry| &entry.path).collect()
    };
    let both: [(&str, Has); 2] =
        [("--no-assume-unchanged", |entry| entry.assumed), ("--no-skip-worktree", |entry| entry.skipped)];
    let mut is_changed = false;
    for (flag, has) in both {
        let wanted = named(has);
        let other = there.iter().filter(|entry| has(entry) && !wanted.contains(&entry.path));
        let list = nul_separated(other.map(|entry| &entry.path));
        is_changed |= !list.is_empty();
        mark(tree.repo, tree.dir, index, flag, list)?;
    }
    if is_changed { refresh(tree.repo, tree.dir, index) } else { Ok(()) }
}

/// Which paths an index file has an entry of their own for; all, where the library cannot read it.
pub(super) fn has_entry(repo: &Repo, index: &Path) -> impl Fn(&RepoPath) -> bool + use<> {
    let read = File::at(index, repo.gix.object_hash(), true, Options::default()).ok();
    move |path| read.as_ref().is_none_or(|read| read.entry_by_path(path.as_bytes().into()).is_some())
}

/// Sets the flags of entries again in one index file, of those that it has.
pub(super) fn flag_again(repo: &Repo, dir: &Path, index: &Path, flagged: &[Flagged]) -> Result<(), Error> {
    if flagged.is_empty() {
        return Ok(());
    }
    let has = has_entry(repo, index);
    let flagged: Vec<&Flagged> = flagged.iter().filter(|f| has(&f.path)).collect();
    let assumed = nul_separated(flagged.iter().filter(|f| f.assumed).map(|f| &f.path));
    let skipped = nul_separated(flagged.iter().filter(|f| f.skipped).map(|f| &f.path));
    for (flag, list) in [("--assume-unchanged", assumed), ("--skip-worktree", skipped)] {
        mark(repo, dir, index, flag, list)?;
    }
    Ok(())
}

/// Adds entries to one index file as `git add --intent-to-add` had made them in `like`, also of files that are not there: git itself
/// announces none of those. A path at which the index has something by now, or above or below which, stays out, and so do all of
/// an index that the library cannot read: what is only announced has no content.
pub(super) fn announce(repo: &Repo, index: &Path, like: &Path, paths: &[RepoPath]) -> Result<(), Error> {
    let read = |file: &Path| File::at(file, repo.gix.object_hash(), true, Options::default());
    let Ok(mut next) = read(index) else { return Ok(()) };
    let is_taken = |path: &&RepoPath| {
        let has = |path: &RepoPath| next.entry_by_path(path.as_bytes().into()).is_some();
        let is_below = |up: RepoPath| has(&up) || has(&RepoPath::new([up.as_bytes(), b"/"].concat()));
        has(path) || next.path_is_directory(path.as_bytes().into()) || path.parents().any(is_below)
    };
    let free: Vec<&RepoPath> = paths.iter().filter(|path| !is_taken(path)).collect();
    if free.is_empty() {
        return Ok(());
    }
    let like = read(like).ok();
    for path in free {
        let path = path.as_bytes().into();
        let then = like.as_ref().and_then(|like| like.entry_by_path_and_stage(path, Stage::Unconflicted));
        let (stat, mode) = then.map_or((Stat::default(), Mode::FILE), |then| (then.stat, then.mode));
        let id = gix::ObjectId::empty_blob(repo.gix.object_hash());
        next.dangerously_push_entry(stat, id, Flags::INTENT_TO_ADD | Flags::EXTENDED, mode, path);
    }
    next.sort_entries();
    // It has no such files, and would pass for one of all that is here.
    drop(next.remove_tree());
    let mut bytes = Vec::new();
    let written = next.write_to(&mut bytes, gix::index::write::Options::default());
    written
        .map_err(std::io::Error::other)
        .and_then(|_| std::fs::write(index, bytes))
        .map_err(Error::io("write", index))
}

/// Compares every entry whose times differ with its file, and notes the ones that are the same.
pub(super) fn refresh(repo: &Repo, dir: &Path, index: &Path) -> Result<(), Error> {
    repo.git_in(dir)
        .args(AS_MARKED)
        .args(["update-index", "-q", "--refresh"])
        .index(index)
        .changes()
        .accept(&[1])
        .run()
        .map(drop)
}

/// Whether two index files have the same entries flagged. A folder that a sparse index has in place of its files leaves those out.
pub(crate) fn has_same_flags(repo: &Repo, dir: &Path, one: &Path, other: &Path) -> Result<bool, Error> {
    let (mut flagged, mut others) = (flagged_in(repo, dir, one)?, flagged_in(repo, dir, other)?);
    if flagged == others {
        return Ok(true);
    }
    let folded = |index: &Path| -> HashSet<RepoPath> {
        let read = File::at(index, repo.gix.object_hash(), true, Options::default()).ok();
        let read = read.as_ref().filter(|read| read.is_sparse());
        let folders = read.into_iter().flat_map(|read| {
            read.entries().iter().filter(|e| e.mode.is_sparse()).map(|e| e.path(read).to_vec())
        });
        folders.map(|path| RepoPath::new(path.strip_suffix(b"/").unwrap_or(&path))).collect()
    };
    let (in_one, in_other) = (folded(one), folded(other));
    let is_folded = |f: &Flagged, folded: &HashSet<RepoPath>| {
        f.skipped && !f.assumed && f.path.parents().any(|up| folded.contains(&up))
    };
    flagged.retain(|f| !is_folded(f, &in_other));
    others.retain(|f| !is_folded(f, &in_one));
    Ok(flagged == others)
}

/// Whether two index files of a tree have the same flags, as far as somebody set them by hand.
pub(crate) fn has_same_flags_set(tree: &Tree<'_>, one: &Path, other: &Path) -> Result<bool, Error> {
    let set = |index: &Path| set_by_hand(tree.repo, tree.dir, &tree.git_dir, index);
    Ok(set(one)? == set(other)?)
}

/// As [`has_same_flags_set`], but for what `other` flags and `one` has no entry for: a base that has moved took it along.
pub(crate) fn has_same_flags_left(tree: &Tree<'_>, one: &Path, other: &Path) -> Result<bool, Error> {
    let set = |index: &Path| set_by_hand(tree.repo, tree.dir, &tree.git_dir, index);
    let (has, mut wanted) = (has_entry(tree.repo, one), set(other)?);
    wanted.retain(|entry| has(&entry.path));
    Ok(set(one)? == wanted)
}

/// Whether each entry of an index file that is flagged is flagged so in one of the others.
pub(crate) fn has_flags_of_any(
    repo: &Repo,
    dir: &Path,
    one: &Path,
    others: &[PathBuf],
) -> Result<bool, Error> {
    let known = others.iter().map(|index| flagged_in(repo, dir, index)).collect::<Result<Vec<_>, _>>()?;
    let own = flagged_in(repo, dir, one)?;
    Ok(own.iter().all(|flagged| known.iter().any(|known| known.contains(flagged))))
}

/// An entry with a flag.
#[derive(PartialEq, Eq)]
pub(super) struct Flagged {
    pub(super) path: RepoPath,
    /// Assume-unchanged.
    pub(super) assumed: bool,
    /// Skip-worktree.
    pub(super) skipped: bool,
}

/// Every entry with a flag. The library reads the file; what it cannot read, git lists.
pub(super) fn flagged(repo: &Repo, dir: &Path, git_dir: &Path) -> Result<Vec<Flagged>, Error> {
    flagged_in(repo, dir, &git_dir.join("index"))
}

/// The same for any index file of the worktree at `dir`.
pub(super) fn flagged_in(repo: &Repo, dir: &Path, file: &Path) -> Result<Vec<Flagged>, Error> {
    if !file.exists() {
        return Ok(Vec::new());
    }
    let read = File::at(file, repo.gix.object_hash(), true, Options::default());
    let Ok(read) = read else {
        return flagged_by_git(repo, dir, file);
    };
    let both = Flags::ASSUME_VALID | Flags::SKIP_WORKTREE;
    Ok(read
        .entries()
        .iter()
        .filter(|e| e.flags.intersects(both) && !e.mode.is_sparse())
        .map(|e| Flagged {
            path: RepoPath::new(e.path(&read).to_vec()),
            assumed: e.flags.contains(Flags::ASSUME_VALID),
            skipped: e.flags.contains(Flags::SKIP_WORKTREE),
        })
        .collect())
}

/// Parts of the messages by which git refuses an index file as broken: cut short, or with other bytes in it than git writes.
const BROKEN: [&str; 5] = [
    "index file smaller than expected",
    "bad signature",
    "bad index version",
    "index file corrupt",
    "unordered stage entries in index",
];

impl Repo {
    /// Whether an index file of the worktree at `dir` is cut short or has other bytes in it, by what git says of it: a git that was ended
    /// or had no memory, and a file that could not be opened for once, say nothing about that.
    pub(crate) fn is_broken_index(&self, dir: &Path, file: &Path) -> bool {
        match flagged_in(self, dir, file) {
            Err(Error::Command { stderr, .. }) => BROKEN.iter().any(|words| stderr.contains(words)),
            _ => false,
        }
    }
}

fn flagged_by_git(repo: &Repo, dir: &Path, file: &Path) -> Result<Vec<Flagged>, Error> {
    let out = repo.git_in(dir).args(["ls-files", "-v", "-z"]).index(file).run()?;
    Ok(out
        .fields()
        .filter_map(|f| {
            let assumed = f.first()?.is_ascii_lowercase();
            let skipped = f[0].eq_ignore_ascii_case(&b'S');
            (assumed || skipped).then(|| Flagged { path: RepoPath::new(&f[2..]), assumed, skipped })
        })
        .collect())
}
