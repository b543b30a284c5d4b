//! Owns what is in a worktree and is to be in no commit: whether git ignores it, and taking it out again without touching the files.

use std::path::Path;

use super::path::nul_separated;
use super::{Error, Repo, RepoPath};

impl Repo {
    /// The files at or below a path of a worktree that its index has.
    pub(crate) fn tracked_below(&self, dir: &Path, path: &RepoPath) -> Result<Vec<RepoPath>, Error> {
        let call =
            self.git_in(dir).args(["ls-files", "-z", "--full-name", "--"]).arg(path.under(Path::new("")));
        let out = call.env("GIT_LITERAL_PATHSPECS", "1").run()?;
        Ok(out.fields().map(RepoPath::new).collect())
    }

    /// Those of these paths of a worktree that a rule keeps git from adding by itself, whether it has them already or not.
    pub(crate) fn ignores(&self, dir: &Path, paths: &[RepoPath]) -> Result<Vec<RepoPath>, Error> {
        let call = self
            .git_in(dir)
            .args(["check-ignore", "--no-index", "-z", "--stdin"])
            .input(nul_separated(paths));
        // With 1, none of them.
        let out = call.accept(&[1]).run()?;
        Ok(out.fields().map(RepoPath::new).collect())
    }

    /// Commits that these files of a worktree are not tracked any more. They stay where they are.
    pub(crate) fn untrack(&self, dir: &Path, paths: &[RepoPath], message: &str) -> Result<(), Error> {
        let call = self.git_in(dir).args(["rm", "--cached", "--quiet", "-r", "--ignore-unmatch", "-f"]);
        let call =
            call.args(["--pathspec-from-file=-", "--pathspec-file-nul"]).env("GIT_LITERAL_PATHSPECS", "1");
        call.input(nul_separated(paths)).changes().run()?;
        self.git_in(dir).args(["commit", "--quiet", "-F", "-"]).input(message).changes().run().map(drop)
    }
}
