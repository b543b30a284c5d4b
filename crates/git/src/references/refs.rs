//! Refs: reads them, and moves single ones by compare-and-swap.

use std::path::Path;

use gix::refs::TargetRef;

use crate::base::failed_program::FailedProgram;
use crate::base::head::{BRANCH_PREFIX, Head};
use crate::base::unusable::UnusableRepoError;
use crate::repository::head_file::{read_head, read_symbolic_ref};
use crate::{CommitId, Error, Oid, Repo};

/// Maximum length of a chain of symbolic refs that git follows.
const MAX_SYMREF_DEPTH: usize = 5;

/// Converts git's output for a failed ref update to an error: a hook failed, a lock is held and may soon be
/// free, or the ref is not where it was expected. `fallback` is the reason if git wrote nothing.
pub(crate) fn classify_ref_failure(name: String, stderr: &str, fallback: &str) -> Error {
    if let Some(hook_failure) = FailedProgram::from_ref_hook(&name, stderr) {
        return Error::UserProgram(hook_failure);
    }
    if let Some(unusable) = UnusableRepoError::from_stderr(stderr) {
        return Error::Unusable(unusable);
    }
    let line = stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or(fallback);
    let reason = line.trim_start_matches("error: ").trim_start_matches("fatal: ");
    let lock =
        reason.split_once("Unable to create '").and_then(|(_, rest)| rest.split_once("': File exists"));
    match lock {
        Some((lock, _)) => Error::RefLocked { ref_name: name, lock: lock.into() },
        None => Error::RefNotMoved { ref_name: name, reason: reason.to_owned() },
    }
}

/// Returns whether a ref's file contains neither an object id nor the name of another ref. A file that cannot
/// be read counts as valid, except a symbolic link that leads to itself.
pub(crate) fn is_broken_ref_file(file: &Path) -> bool {
    match std::fs::read(file) {
        Ok(text) => !text.starts_with(b"ref:") && Oid::from_hex(text.trim_ascii()).is_none(),
        // A symbolic link that leads to itself.
        Err(e) => e.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()),
    }
}

impl Repo {
    /// Returns the object that a fully named ref points to, which may be a tag object; `None` if the ref does
    /// not exist.
    pub fn ref_object(&self, name: &str) -> Result<Option<Oid>, Error> {
        if self.is_reftable() {
            let found = self.git().args(["rev-parse", "--verify", "--quiet", "--end-of-options", name]);
            return Ok(Oid::from_hex(found.accept_exit_codes(&[1]).run()?.trimmed_stdout().as_bytes()));
        }
        let found = self.gix.try_find_reference(name).map_err(Error::object(format!("ref {name}")))?;
        match found.as_ref().map(gix::Reference::target) {
            Some(TargetRef::Object(id)) => Ok(Some(Oid(id.to_owned()))),
            Some(TargetRef::Symbolic(_)) => Ok(self.ref_tip(name)?.map(CommitId::oid)),
            None => Ok(None),
        }
    }

    /// Returns the commit that a fully named ref points to; `None` if the ref does not exist or is a broken
    /// branch.
    pub fn ref_tip(&self, name: &str) -> Result<Option<CommitId>, Error> {
        if self.is_reftable() {
            let out = self
                .git()
                .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
                .arg(format!("{name}^{{commit}}"))
                .accept_exit_codes(&[1])
                .run()?;
            return Ok(CommitId::from_hex(out.trimmed_stdout().as_bytes()));
        }
        let is_ignored_by_git =
            || name.strip_prefix(BRANCH_PREFIX).is_some_and(|branch| self.is_broken_branch(branch));
        let found = match self.gix.try_find_reference(name) {
            Err(_) if is_ignored_by_git() => None,
            found => found.map_err(Error::object(format!("ref {name}")))?,
        };
        let Some(mut found) = found else { return Ok(None) };
        if let (TargetRef::Object(id), true) = (found.target(), name.starts_with(BRANCH_PREFIX)) {
            // A branch always points to a commit. A check of the object's kind would have to open it.
            return Ok(Some(CommitId(id.to_owned())));
        }
        match found.peel_to_id() {
            Err(_) if is_ignored_by_git() => Ok(None),
            peeled => Ok(Some(CommitId(peeled.map_err(Error::object(format!("ref {name}")))?.detach()))),
        }
    }

    /// Returns whether a branch is broken. Its file, or that of a ref that it leads to, then contains neither
    /// an id nor a name, as after a power cut, or the symbolic refs form a cycle. git skips such a branch
    /// when it lists refs, and neither moves nor creates it until the file is removed.
    pub fn is_broken_branch(&self, branch: &str) -> bool {
        if self.is_reftable() {
            return false;
        }
        let mut name = format!("{BRANCH_PREFIX}{branch}");
        for _ in 0..=MAX_SYMREF_DEPTH {
            let file = self.common_dir().join(&name);
            match read_symbolic_ref(&file) {
                Some(next) => name = next,
                None => return is_broken_ref_file(&file),
            }
        }
        true
    }

    /// Returns the tip of a local branch; `None` if the branch does not exist.
    pub fn branch_tip(&self, branch: &str) -> Result<Option<CommitId>, Error> {
        self.ref_tip(&format!("{BRANCH_PREFIX}{branch}"))
    }

    /// Returns the branch that moves when a lane lands on `branch`: the branch itself, or the target if it is
    /// a symbolic ref, as the old name of a renamed branch may be.
    pub fn resolve_symbolic_branch(&self, branch: &str) -> String {
        if !Repo::is_valid_branch_name(branch) {
            return branch.to_owned();
        }
        let mut name = format!("{BRANCH_PREFIX}{branch}");
        if self.is_reftable() {
            let found = self.git().args(["symbolic-ref", "--quiet", &name]).accept_exit_codes(&[1]).run();
            name = found.map(|out| out.trimmed_stdout()).unwrap_or_default();
        } else {
            // A symbolic ref is never packed.
            for _ in 0..MAX_SYMREF_DEPTH {
                let Some(next) = read_symbolic_ref(&self.common_dir().join(&name)) else { break };
                name = next;
            }
        }
        match name.strip_prefix(BRANCH_PREFIX) {
            Some(target) if Repo::is_valid_branch_name(target) => target.to_owned(),
            _ => branch.to_owned(),
        }
    }

    /// Returns the full name of the ref that a branch is a symbolic ref to; `None` if the branch is an
    /// ordinary ref or does not exist.
    pub fn symbolic_target(&self, branch: &str) -> Result<Option<String>, Error> {
        let name = format!("{BRANCH_PREFIX}{branch}");
        if self.is_reftable() {
            let out = self.git().args(["symbolic-ref", "--quiet", &name]).accept_exit_codes(&[1]).run()?;
            return Ok(Some(out.trimmed_stdout()).filter(|to| !to.is_empty()));
        }
        Ok(read_symbolic_ref(&self.common_dir().join(name)))
    }

    /// Returns all refs below `prefix` (which ends in `/`) with their tips, sorted by name.
    pub fn refs_with_prefix(&self, prefix: &str) -> Result<Vec<(String, Oid)>, Error> {
        self.refs_with_prefixes(&[prefix])
    }

    /// Returns all refs below any of `prefixes` (which end in `/`) with their tips, sorted by name.
    pub fn refs_with_prefixes(&self, prefixes: &[&str]) -> Result<Vec<(String, Oid)>, Error> {
        let out = self
            .git()
            .args(["for-each-ref", "--format=%(objectname) %(refname)"])
            .arg("--")
            .args(prefixes)
            .run()?;
        let text = String::from_utf8_lossy(&out.stdout);
        Ok(text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(id, name)| Some((name.to_owned(), Oid::from_hex(id.as_bytes())?)))
            .collect())
    }

    /// Returns the commit that a revision names.
    ///
    /// # Errors
    /// Fails with [`Error::NoRev`] if the revision names nothing or no commit.
    pub fn require_commit(&self, rev: &str) -> Result<CommitId, Error> {
        let no_rev = || Error::NoRev { rev: rev.to_owned() };
        if rev.is_empty() || rev.contains('\0') {
            return Err(no_rev());
        }
        let out = self
            .git()
            .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
            .arg(format!("{rev}^{{commit}}"))
            .run()
            .map_err(|_| no_rev())?;
        CommitId::from_hex(out.trimmed_stdout().as_bytes()).ok_or_else(no_rev)
    }

    /// Returns the commits of the stash entries, from the stash's reflog.
    pub fn stash_entries(&self) -> Vec<CommitId> {
        if self.is_reftable() {
            let entries = self.reflog(self.command_dir(), "refs/stash").unwrap_or_default();
            return entries.into_iter().map(|entry| entry.new_id).collect();
        }
        let text = std::fs::read(self.common_dir().join("logs/refs/stash")).unwrap_or_default();
        let lines = text.split(|b| *b == b'\n');
        lines.filter_map(|line| CommitId::from_hex(line.split(|b| *b == b' ').nth(1)?)).collect()
    }

    /// Moves one ref from `old` to `new` (either may be null for "does not exist"), durably, with a reflog
    /// message. No other ref moves with it.
    pub fn swap_ref(
        &self,
        name: &str,
        new: impl Into<Oid>,
        old: impl Into<Oid>,
        message: &str,
    ) -> Result<(), Error> {
        let (new, old) = (new.into(), old.into());
        if old.is_null() && self.create_branch_in_process(name, new, message).is_some() {
            return Ok(());
        }
        if !old.is_null() && !new.is_null() {
            self.sync_new_objects(new, old)?;
        }
        let call = self.git().args(["update-ref", "--no-deref", "-m", message]);
        let call = if new.is_null() {
            call.args(["-d", name, &old.to_string()])
        } else {
            call.args([name, &new.to_string(), &old.to_string()])
        };
        match call.mutating().durable().run() {
            Ok(_) => {
                self.sync_reftables(self.common_dir());
                Ok(())
            }
            Err(Error::Command { stderr, status, .. }) => {
                Err(classify_ref_failure(name.to_owned(), &stderr, &status))
            }
            Err(e) => Err(e),
        }
    }

    /// Creates a ref that must not exist yet.
    pub fn create_ref(&self, name: &str, new: impl Into<Oid>, message: &str) -> Result<(), Error> {
        let new = new.into();
        self.swap_ref(name, new, new.null(), message)
    }

    /// Deletes a ref that must still be at `old`.
    pub fn delete_ref(&self, name: &str, old: impl Into<Oid>, message: &str) -> Result<(), Error> {
        let old = old.into();
        self.swap_ref(name, old.null(), old, message)
    }

    /// Returns whether git accepts a name as a branch name.
    pub fn is_valid_branch_name(branch: &str) -> bool {
        let full_name = format!("{BRANCH_PREFIX}{branch}");
        !branch.starts_with('-')
            && branch != "HEAD"
            && gix::validate::reference::name(full_name.as_str().into()).is_ok()
    }

    /// Returns the branch that HEAD of a worktree names, without `refs/heads/`; a symbolic ref is not
    /// followed. Returns `None` if HEAD is detached.
    pub fn head_branch(&self, dir: &Path, git_dir: &Path) -> Result<Option<String>, Error> {
        if self.is_reftable() {
            let args = ["symbolic-ref", "--no-recurse", "--quiet", "HEAD"];
            let out = self.git_in(dir).args(args).accept_exit_codes(&[1]).run()?;
            return Ok(out.trimmed_stdout().strip_prefix("refs/heads/").map(ToOwned::to_owned));
        }
        let text = read_head(git_dir).map_err(Error::io("read", &git_dir.join("HEAD")))?;
        Ok(text.strip_prefix("ref: refs/heads/").map(ToOwned::to_owned))
    }

    /// Returns the branch name in a worktree's HEAD if it is `branch` or a symbolic ref to `branch`;
    /// otherwise `None`.
    pub(crate) fn branch_name_in_head(
        &self,
        dir: &Path,
        git_dir: &Path,
        branch: &str,
    ) -> Result<Option<String>, Error> {
        let head = self.head_branch(dir, git_dir)?;
        Ok(head.filter(|head| head == branch || self.resolve_symbolic_branch(head) == branch))
    }

    /// Returns the branch of the main checkout; `None` if HEAD is detached or there is no main checkout.
    pub fn main_checkout_branch(&self) -> Result<Option<String>, Error> {
        let Some(main) = self.main_worktree() else { return Ok(None) };
        Ok(self.head_branch(main, self.common_dir())?.map(|branch| self.resolve_symbolic_branch(&branch)))
    }

    /// Returns the branch or commit that HEAD of the worktree at `dir` names; a symbolic ref is not followed.
    /// Returns `None` if `dir` is no worktree, or HEAD names neither a branch nor a commit.
    pub fn worktree_head(&self, dir: &Path) -> Result<Option<Head>, Error> {
        match self.worktree_git_dir(dir) {
            Ok(git_dir) if git_dir.exists() => self.read_worktree_head(dir, &git_dir),
            _ => Ok(None),
        }
    }

    /// Returns the branch or commit that HEAD of the worktree with this git directory names; `None` if HEAD
    /// names neither.
    pub(crate) fn read_worktree_head(&self, dir: &Path, git_dir: &Path) -> Result<Option<Head>, Error> {
        if let Some(branch) = self.head_branch(dir, git_dir)? {
            return Ok(Some(Head::Branch(branch)));
        }
        let out = self
            .git_in(dir)
            .args(["rev-parse", "--verify", "--quiet", "HEAD"])
            .accept_exit_codes(&[1])
            .run()?;
        Ok(CommitId::from_hex(out.trimmed_stdout().as_bytes()).map(Head::Detached))
    }

    /// Returns the ref name in HEAD of the worktree that git-proq was started in; a branch without
    /// `refs/heads/`. `None` if HEAD is detached.
    pub fn current_head_name(&self) -> Result<Option<String>, Error> {
        if self.is_reftable() {
            let dir = self.current_worktree().unwrap_or(self.command_dir()).to_owned();
            let out =
                self.git_in(&dir).args(["symbolic-ref", "--quiet", "HEAD"]).accept_exit_codes(&[1]).run()?;
            return Ok(Some(out.trimmed_stdout())
                .filter(|l| !l.is_empty())
                .map(|l| l.trim_start_matches("refs/heads/").to_owned()));
        }
        let git_dir = self.gix.git_dir();
        let text = read_head(git_dir).map_err(Error::io("read", &git_dir.join("HEAD")))?;
        Ok(text.strip_prefix("ref: ").map(|name| name.strip_prefix(BRANCH_PREFIX).unwrap_or(name).to_owned()))
    }
}
