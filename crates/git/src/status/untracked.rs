//! Files of a worktree that should be in no commit: which of them git ignores, and how they are untracked
//! without touching them.

use std::path::Path;

use crate::base::path::nul_separated;
use crate::{Error, Repo, RepoPath};

impl Repo {
    /// Returns the files in the worktree's index that are at or below a path.
    pub fn tracked_paths_below(&self, dir: &Path, path: &RepoPath) -> Result<Vec<RepoPath>, Error> {
        let command = self
            .git_in(dir)
            .args(["ls-files", "-z", "--full-name", "--"])
            .arg(path.to_fs_path(Path::new("")));
        let out = command.env("GIT_LITERAL_PATHSPECS", "1").run()?;
        Ok(out.nul_separated_fields().map(RepoPath::new).collect())
    }

    /// Returns those of these paths that ignore rules match, tracked or not.
    pub fn ignored_among(&self, dir: &Path, paths: &[RepoPath]) -> Result<Vec<RepoPath>, Error> {
        let command = self
            .git_in(dir)
            .args(["check-ignore", "--no-index", "-z", "--stdin"])
            .input(nul_separated(paths));
        // Exit code 1 means that no path matches.
        let out = command.accept_exit_codes(&[1]).run()?;
        Ok(out.nul_separated_fields().map(RepoPath::new).collect())
    }

    /// Removes `paths` from the index of a worktree and commits that with `message`. The files on disk are
    /// not touched.
    pub fn commit_untracking(&self, dir: &Path, paths: &[RepoPath], message: &str) -> Result<(), Error> {
        let command = self.git_in(dir).args(["rm", "--cached", "--quiet", "-r", "--ignore-unmatch", "-f"]);
        let command =
            command.args(["--pathspec-from-file=-", "--pathspec-file-nul"]).env("GIT_LITERAL_PATHSPECS", "1");
        command.input(nul_separated(paths)).mutating().run()?;
        self.git_in(dir).args(["commit", "--quiet", "-F", "-"]).input(message).mutating().run().map(drop)
    }
}
