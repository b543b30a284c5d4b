//! Owns index entries that git was told not to look at: assume-unchanged and skip-worktree.

use std::collections::HashSet;
use std::path::Path;

use gix::index::entry::Flags;

use super::path::nul_separated;
use super::quarantine::stands_no_folder;
use super::transition::Tree;
use super::{Error, Repo, RepoPath, index};

/// Has git leave the flag of an entry as it is whose file is there though marked skip-worktree: in a sparse checkout it drops the
/// flag each time that it reads the index.
pub(super) const AS_MARKED: [&str; 2] = ["-c", "sparse.expectFilesOutsideOfPatterns=true"];

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

/// Edits that are hidden, and files that were removed after git was told to skip them. In a sparse checkout that is their place.
pub(super) fn hidden_changes(
    repo: &Repo,
    dir: &Path,
    git_dir: &Path,
    scratch: &Path,
) -> Result<Vec<RepoPath>, Error> {
    if is_sparse(git_dir) {
        return hidden_edits(repo, dir, git_dir, scratch);
    }
    differing(repo, dir, git_dir, scratch, flagged(repo, dir, git_dir)?)
}

/// Whether a worktree has patterns of what to skip. They stay when a sparse checkout is given up, but then nothing is
/// flagged.
pub(super) fn is_sparse(git_dir: &Path) -> bool {
    git_dir.join("info/sparse-checkout").exists()
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
        repo.git_in(dir)
            .args(AS_MARKED)
            .args(["update-index", flag, "-z", "--stdin"])
            .index(index)
            .input(nul_separated(paths))
            .changes()
            .run()?;
    }
    refresh(repo, dir, index)
}

/// Sets the flags of entries again in one index file.
pub(super) fn flag_again(repo: &Repo, dir: &Path, index: &Path, flagged: &[Flagged]) -> Result<(), Error> {
    let assumed = nul_separated(flagged.iter().filter(|f| f.assumed).map(|f| &f.path));
    let skipped = nul_separated(flagged.iter().filter(|f| f.skipped).map(|f| &f.path));
    for (flag, list) in [("--assume-unchanged", assumed), ("--skip-worktree", skipped)] {
        if list.is_empty() {
            continue;
        }
        repo.git_in(dir)
            .args(AS_MARKED)
            .args(["update-index", "-q", flag, "-z", "--stdin"])
            .index(index)
            .input(list)
            .changes()
            .run()?;
    }
    Ok(())
}

/// Adds entries to one index file as `git add --intent-to-add` does, also of files that are not there.
pub(super) fn announce(tree: &Tree<'_>, index: &Path, paths: &[RepoPath]) -> Result<(), Error> {
    let (there, gone): (Vec<_>, Vec<_>) = paths.iter().partition(|path| stands_no_folder(tree.dir, path));
    // Git announces no file that is not there: these are, in a folder that it takes for the worktree.
    let stand_in = tree.scratch.join("announced");
    for path in &gone {
        let file = path.under(&stand_in);
        let made = file.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&file, "")).map_err(Error::io("write", &file))?;
    }
    for (dir, paths) in [(tree.dir, there), (&stand_in, gone)] {
        if paths.is_empty() {
            continue;
        }
        tree.repo
            .git_in(dir)
            .args(["add", "--force", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul"])
            .env("GIT_DIR", &tree.git_dir)
            .env("GIT_WORK_TREE", dir)
            .env("GIT_LITERAL_PATHSPECS", "1")
            .index(index)
            .input(nul_separated(paths))
            .changes()
            .run()?;
    }
    Ok(())
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

/// Whether two index files have the same entries flagged.
pub(crate) fn has_same_flags(repo: &Repo, dir: &Path, one: &Path, other: &Path) -> Result<bool, Error> {
    Ok(flagged_in(repo, dir, one)? == flagged_in(repo, dir, other)?)
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
    let read =
        gix::index::File::at(file, repo.gix.object_hash(), true, gix::index::decode::Options::default());
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
