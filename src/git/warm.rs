//! Owns a worktree that belongs to nobody and to no branch: it is brought to whatever commit is asked for, and keeps what
//! git ignores in it.

use std::path::Path;

use super::{Error, Head, Oid, Repo, open_operation, worktree};

/// Hooks of the repository are for people's checkouts.
const NO_HOOKS: [&str; 2] = ["-c", "core.hooksPath=/dev/null"];

impl Repo {
    /// Makes such a worktree, without files yet. Nothing may be in its place.
    pub(crate) fn add_warm(&self, path: &Path, commit: Oid) -> Result<(), Error> {
        worktree::add(self.git().args(NO_HOOKS), path, &Head::Detached(commit))?;
        // git hands the patterns of a sparse checkout on; checks are about the whole tree.
        let admin = self.git_dir_of(path)?;
        if admin.join("config.worktree").exists() {
            let unset = ["config", "--worktree", "--unset-all", "core.sparseCheckout"];
            self.git_in(path).args(unset).changes().accept(&[5]).run()?;
        }
        match std::fs::remove_file(admin.join("info/sparse-checkout")) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &admin)(e)),
            _ => Ok(()),
        }
    }

    /// Whether the folder at `path` is a worktree of this repository, by what both sides say, with nothing under way in it.
    pub(crate) fn is_sound_worktree(&self, path: &Path) -> bool {
        let real = |path: std::path::PathBuf| path.canonicalize().ok();
        let ours = self.admin_dir_of(path).and_then(real);
        let theirs = self.git_dir_of(path).ok().and_then(real);
        ours.is_some()
            && ours == theirs
            && self.is_own_worktree(path)
            && ours.is_none_or(|admin| open_operation(&admin).is_none())
    }

    /// Brings HEAD, detached, index and tracked files to a commit and removes what is untracked. What git ignores stays.
    pub(crate) fn bring_to(&self, dir: &Path, commit: Oid) -> Result<(), Error> {
        self.detach(dir, commit)?;
        self.reset(dir)?;
        self.git_in(dir).args(NO_HOOKS).args(["clean", "-ffdq"]).changes().run()?;
        if self.is_untouched(dir)? {
            return Ok(());
        }
        // What git thinks to know of the files is wrong, or its filters never give what they take: all of them anew.
        let index = self.git_dir_of(dir)?.join("index");
        std::fs::remove_file(&index).map_err(Error::io("remove", &index))?;
        self.reset(dir)
    }

    /// Sets HEAD to a commit, whatever branch somebody has switched to.
    pub(crate) fn detach(&self, dir: &Path, commit: Oid) -> Result<(), Error> {
        let call = self.git_in(dir).args(NO_HOOKS).args(["update-ref", "--no-deref", "HEAD"]);
        call.arg(commit.to_string()).changes().run().map(drop)
    }

    /// The commit that HEAD of a worktree is at, if it names no branch.
    pub(crate) fn detached_head(&self, dir: &Path) -> Result<Option<Oid>, Error> {
        let git_dir = self.git_dir_of(dir)?;
        Ok(match self.head_in(dir, &git_dir)? {
            Some(Head::Detached(commit)) => Some(commit),
            Some(Head::Branch(_)) | None => None,
        })
    }

    fn reset(&self, dir: &Path) -> Result<(), Error> {
        self.git_in(dir).args(NO_HOOKS).args(["reset", "--hard", "--quiet"]).changes().run().map(drop)
    }

    /// Whether the index is HEAD's tree and every tracked file what the index says. Submodules are not looked into.
    fn is_untouched(&self, dir: &Path) -> Result<bool, Error> {
        let args = ["status", "--porcelain=v1", "-z", "--untracked-files=no", "--ignore-submodules=all"];
        Ok(self.git_in(dir).args(NO_HOOKS).args(args).changes().run()?.stdout.is_empty())
    }
}
