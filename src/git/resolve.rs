//! Owns a merge that is laid out in a worktree of its own to be resolved there: begun by git itself, so that rerere and
//! merge drivers act, and read back path by path.

use std::path::Path;

use super::path::nul_separated;
use super::status::Kind;
use super::tree_merge::{Stage, parse_stage};
use super::{Error, Oid, Repo, RepoPath, Tree, index, status};

/// What a worktree holds now, staged or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Laid {
    /// Its tree. Unmerged paths are in it as their files are.
    pub(crate) tree: Oid,
    /// Paths that are unmerged in the index.
    pub(crate) unmerged: Vec<RepoPath>,
    /// What no tree can hold: repositories inside of it.
    pub(crate) nested: Vec<RepoPath>,
}

/// Writes what a worktree holds to a tree, through a copy of its index: the index itself stays as it is. The paths are
/// named one by one; ignored files are not among them.
pub(crate) fn laid_out(tree: &Tree<'_>) -> Result<Laid, Error> {
    let copy = tree.scratch.join("index");
    index::copy(&tree.git_dir.join("index"), &copy)?;
    let dirt = status(tree.repo, tree.dir, true)?;
    let (mut paths, mut nested) = (Vec::new(), Vec::new());
    for entry in &dirt.entries {
        // What is staged only is in the copy already.
        let to_add = match entry.kind {
            Kind::Unmerged => true,
            Kind::Untracked => !entry.nested,
            Kind::Tracked { unstaged, .. } => unstaged && !entry.is_inside_submodule(),
        };
        if entry.nested {
            nested.push(entry.path.clone());
        }
        if to_add {
            paths.push(entry.path.clone());
        }
    }
    let here = || tree.repo.git_in(tree.dir).index(&copy);
    if !paths.is_empty() {
        here()
            .args(["add", "--all", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"])
            .env("GIT_LITERAL_PATHSPECS", "1")
            .input(nul_separated(&paths))
            .changes()
            .durable()
            .run()?;
    }
    let id = here().arg("write-tree").changes().durable().run_for_id()?;
    Ok(Laid { tree: id, unmerged: dirt.unmerged(), nested })
}

impl Repo {
    /// Merges `other`, the tip of `branch`, into what a clean worktree is at, and leaves the result there uncommitted. Returns
    /// what git says of each conflict.
    pub(crate) fn begin_merge(&self, dir: &Path, branch: &str, other: Oid) -> Result<Vec<String>, Error> {
        // By its name, since that is what markers are labelled with; a tag may have the same.
        let named = self.require_commit(branch).is_ok_and(|id| id == other) && !branch.starts_with('-');
        if named {
            let conflicts = self.merge_uncommitted(dir, branch)?;
            if self.merge_head(dir)? == Some(other) {
                return Ok(conflicts);
            }
            // Somebody moved the branch between the two looks at it.
            self.git_in(dir).args(["reset", "-q", "--merge"]).changes().run()?;
        }
        let conflicts = self.merge_uncommitted(dir, &other.to_string())?;
        match self.merge_head(dir)? == Some(other) {
            true => Ok(conflicts),
            false => Err(Error::Answer {
                args: format!("merge {other}"),
                what: "it merged something else, or nothing".into(),
            }),
        }
    }

    /// Has git merge a commit, by whatever names it, and returns what it says of each conflict.
    fn merge_uncommitted(&self, dir: &Path, commit: &str) -> Result<Vec<String>, Error> {
        let out = self
            .git_in(dir)
            .args(["merge", "--no-ff", "--no-commit", "--no-edit", "--no-stat", "--no-verify-signatures"])
            .args(["--no-autostash", "--no-squash", "--", commit])
            .accept(&[1])
            .changes()
            .durable()
            .run()?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        Ok(text.lines().filter(|l| l.starts_with("CONFLICT")).map(ToOwned::to_owned).collect())
    }

    /// The commit that is being merged into what a worktree is at.
    pub(crate) fn merge_head(&self, dir: &Path) -> Result<Option<Oid>, Error> {
        self.pseudo_ref(dir, "MERGE_HEAD")
    }

    /// The tree that git's automatic merge made in a worktree, with markers; its index where nothing conflicted.
    pub(crate) fn automatic_tree(&self, dir: &Path) -> Result<Oid, Error> {
        if let Some(tree) = self.pseudo_ref(dir, "AUTO_MERGE")? {
            return Ok(tree);
        }
        self.git_in(dir).arg("write-tree").changes().durable().run_for_id()
    }

    fn pseudo_ref(&self, dir: &Path, name: &str) -> Result<Option<Oid>, Error> {
        let out = self.git_in(dir).args(["rev-parse", "--verify", "--quiet", name]).accept(&[1]).run()?;
        Ok(Oid::from_hex(out.line().as_bytes()))
    }

    /// Every side of every unmerged path of a worktree's index.
    pub(crate) fn unmerged(&self, dir: &Path) -> Result<Vec<Stage>, Error> {
        let out = self.git_in(dir).args(["ls-files", "--unmerged", "--full-name", "-z"]).run()?;
        Ok(out.fields().filter_map(parse_stage).collect())
    }

    /// Lets rerere note how the conflicts of a worktree were resolved, where it is in use.
    pub(crate) fn note_resolution(&self, dir: &Path) -> Result<(), Error> {
        self.git_in(dir).arg("rerere").changes().run().map(drop)
    }

    /// Runs the user's merge tool on the terminal. It leaves no backups: they would count as new files.
    pub(crate) fn merge_tool(&self, dir: &Path, tool: Option<&str>) -> Result<(), Error> {
        let call = self.git_in(dir).args(["-c", "mergetool.keepBackup=false", "mergetool"]);
        match tool.filter(|tool| !tool.is_empty()) {
            Some(tool) => call.arg(format!("--tool={tool}")),
            None => call,
        }
        .run_on_terminal()
    }

    /// Commits of `tip` that `other` lacks and that touch one of these paths, newest first, as `(id, subject, body)`.
    pub(crate) fn commits_on(
        &self,
        tip: Oid,
        other: Oid,
        paths: &[RepoPath],
        most: usize,
    ) -> Result<Vec<(String, String, String)>, Error> {
        use std::os::unix::ffi::OsStrExt;
        let names = paths.iter().map(|p| std::ffi::OsStr::from_bytes(p.as_bytes()).to_owned());
        let out = self
            .git()
            .args(["log", "--no-merges", "-z", "--format=%h%n%s%n%b", &format!("--max-count={most}")])
            .args([tip.to_string(), format!("^{other}")])
            .arg("--")
            .args(names)
            .env("GIT_LITERAL_PATHSPECS", "1")
            .run()?;
        let commit = |field: &[u8]| {
            let text = String::from_utf8_lossy(field).into_owned();
            let mut parts = text.splitn(3, '\n').map(|part| part.trim().to_owned());
            Some((parts.next()?, parts.next()?, parts.next().unwrap_or_default()))
        };
        Ok(out.fields().filter_map(commit).collect())
    }
}
