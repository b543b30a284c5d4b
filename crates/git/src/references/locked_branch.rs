//! Move of the branch that a worktree has checked out without starting git, by git's own protocol of locks,
//! logs and rename, if no setting, hook or name requires more than that. Only for steps of operations: a kill
//! leaves the locks that a killed git would leave, and recovery of the step removes those.

use std::path::PathBuf;

use proq_base::fail_points;

use super::loose_ref::is_loose_ref_at;
use super::new_branch::{RefLock, run_with_reflog_line};
use crate::base::head::BRANCH_PREFIX;
use crate::repository::head_file::read_head;
use crate::repository::open_settings;
use crate::repository::worktree_context::WorktreeContext;
use crate::{CommitId, Error, Repo};

/// Names of files in a step's scratch folder. `HEAD.lock` and the lock of a branch are hard links to them, which
/// shows that the locks belong to the step.
pub(crate) const HEAD_LOCK_LINK_FILE: &str = "mark-head";
pub(super) const BRANCH_LOCK_LINK_FILE: &str = "mark-branch";

/// Branch of a worktree that is about to move: its lock, which holds the new commit, and the lock of HEAD.
/// Dropping it releases the locks and changes nothing.
pub(crate) struct LockedBranch {
    /// Name without `refs/heads/`.
    branch: String,
    target: CommitId,
    /// Ref that keeps the target until the branch has moved.
    keeper_ref: String,
    branch_lock: RefLock,
    head_lock: RefLock,
    ref_path: PathBuf,
    branch_log: PathBuf,
    head_log: PathBuf,
    log_line: Vec<u8>,
}

impl LockedBranch {
    /// Locks `branch`, which must be at `from` and which HEAD of the worktree must name, and HEAD, in git's
    /// order, and creates the ref `keeper_ref` at `to` before. Returns `None`, without a lock, for cases that
    /// are left to git, which also waits for locks of others and has the error messages.
    pub fn acquire(
        tree: &WorktreeContext<'_>,
        branch: &str,
        (from, to): (CommitId, CommitId),
        keeper_ref: String,
        message: &str,
    ) -> Option<LockedBranch> {
        let (repo, common) = (tree.repo, tree.repo.common_dir());
        let name = format!("{BRANCH_PREFIX}{branch}");
        let (ref_path, head) = (common.join(&name), tree.git_dir.join("HEAD"));
        let is_current = || {
            !head.is_symlink() && read_head(&tree.git_dir).is_ok_and(|text| text == format!("ref: {name}"))
        };
        // The settings are read again, because a landing may have waited for a long time.
        let settings = open_settings::open(tree.dir)?;
        let is_logged =
            settings.config_snapshot().string("core.logAllRefUpdates").is_none_or(|set| set == "true");
        let is_commit = repo.gix.find_header(to.oid().0).ok()?.kind() == gix::object::Kind::Commit;
        if from == to
            || !is_commit
            || !is_logged
            || !repo.is_plain_loose_name(&name)
            || !repo.has_plain_file_refs_by(&settings, tree.dir)
            || !is_current()
            || !is_loose_ref_at(&ref_path, from)
        {
            return None;
        }
        let log_line = repo.reflog_line(&settings, from.oid(), to.oid(), message)?;
        let (branch_log, head_log) = (common.join("logs").join(&name), tree.git_dir.join("logs/HEAD"));
        if branch_log.is_dir() || head_log.is_dir() {
            return None;
        }
        repo.create_private_ref(&keeper_ref, to)?;
        let branch_mark = tree.scratch.join(BRANCH_LOCK_LINK_FILE);
        let mut branch_lock = RefLock::acquire_linked(common.join(format!("{name}.lock")), &branch_mark)?;
        fail_points::hit("branch_move.locked");
        if !is_loose_ref_at(&ref_path, from) {
            return None;
        }
        branch_lock.write(to.oid()).ok()?;
        let head_mark = tree.scratch.join(HEAD_LOCK_LINK_FILE);
        let head_lock = RefLock::acquire_linked(tree.git_dir.join("HEAD.lock"), &head_mark)?;
        is_current().then(|| LockedBranch {
            branch: branch.to_owned(),
            target: to,
            keeper_ref,
            branch_lock,
            head_lock,
            ref_path,
            branch_log,
            head_log,
            log_line,
        })
    }

    /// Moves the branch, with a line in its reflog and in that of HEAD.
    ///
    /// # Errors
    /// Fails if a file cannot be written. The branch has moved if only HEAD's reflog could not be written.
    pub fn commit(self, repo: &Repo) -> Result<(), Error> {
        let LockedBranch { branch, branch_lock, ref_path, .. } = self;
        let publish = || {
            fail_points::hit("branch_move.logged");
            branch_lock.rename_to_ref(&ref_path)
        };
        run_with_reflog_line(&self.branch_log, &self.log_line, publish)
            .and_then(|()| {
                fail_points::hit("branch_move.moved");
                run_with_reflog_line(&self.head_log, &self.log_line, || Ok(()))
            })
            .map_err(|e| Error::RefNotMoved { ref_name: branch, reason: e.to_string() })?;
        drop(self.head_lock);
        // If another process's lock prevents the deletion, the keeper ref is deleted with those of operations
        // that left the log.
        if repo.delete_loose_ref(&self.keeper_ref, self.target).is_none() {
            drop(repo.delete_ref(&self.keeper_ref, self.target, "git-proq: its step has ended"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::test_repo::TestRepo;

    /// Creates a repository with the branch `next` one commit ahead of `main`, and a linked worktree.
    fn create_fixture(script: &str) -> TestRepo {
        let fixture = TestRepo::new();
        let history = "git config user.name a; git config user.email a@b; git commit -q --allow-empty -m x
            git branch next $(git commit-tree -p HEAD -m y HEAD^{tree}); git worktree add -q -b tree ../tree";
        fixture.run_script("repo", history);
        fixture.run_script("repo", script);
        fixture
    }

    /// Moves a branch in the worktree at `dir` to `next`, after `while_locked` has run in the main checkout.
    /// Returns whether that was possible without git.
    fn moves_branch(fixture: &TestRepo, dir: &str, branch: &str, while_locked: &str) -> bool {
        let dir = fixture.parent_dir.join(dir);
        let repo = Repo::discover(&fixture.parent_dir.join("repo")).unwrap();
        let target = repo.branch_tip("next").unwrap().unwrap();
        let tree = WorktreeContext {
            repo: &repo,
            dir: &dir,
            git_dir: repo.worktree_git_dir(&dir).unwrap(),
            scratch: &fixture.parent_dir,
            off_limits: None,
            warn: &|_| {},
        };
        let ids = (
            CommitId::from_hex(fixture.run_script("repo", "git rev-parse next^").as_bytes()).unwrap(),
            target,
        );
        let keeper_ref = "refs/proq/op/step-a-0".to_owned();
        let locked = LockedBranch::acquire(&tree, branch, ids, keeper_ref, "git-proq: x");
        fixture.run_script("repo", while_locked);
        locked.is_some_and(|locked| locked.commit(&repo).is_ok())
    }

    /// Returns all refs, reflogs, folders and locks.
    fn list_ref_files(fixture: &TestRepo) -> String {
        let script = "cd .git; find refs logs worktrees *.lock 2>/dev/null | sort
            for ref in main tree HEAD worktrees/tree/HEAD; do
            git log -g --format='%gd %gs %gn %ge %T %s' $ref -- || true; done
            git for-each-ref --format='%(refname) %(subject)'; git fsck";
        fixture.run_script("repo", script)
    }

    #[test]
    fn moves_branch_as_git_does() {
        for (dir, branch, script) in [
            ("repo", "main", "true"),
            ("repo", "main", "rm -r .git/logs"),
            ("repo", "main", "git config core.logAllRefUpdates true; git update-ref refs/proq/op/other HEAD"),
            ("tree", "tree", "true"),
            (
                "tree",
                "tree",
                "git config 'includeIf.gitdir:**/worktrees/**.path' own; git config -f .git/own user.name b",
            ),
        ] {
            let lists = [true, false].map(|is_by_git| {
                let fixture = create_fixture(script);
                if is_by_git {
                    fixture.run_script("repo", "mkdir -p .git/refs/proq");
                    fixture.run_script(
                        dir,
                        &format!(
                            "unset GIT_COMMITTER_NAME; git update-ref -m 'git-proq: x' refs/heads/{branch} next"
                        ),
                    );
                } else {
                    assert!(moves_branch(&fixture, dir, branch, "true"), "{script}");
                }
                list_ref_files(&fixture)
            });
            assert_eq!(lists[0], lists[1], "{script}");
        }
    }

    #[test]
    fn keeps_commits_of_others_out_until_moved() {
        let refused = "if git commit -q --allow-empty -m never 2>/dev/null; then exit 1; fi
            if git update-ref refs/heads/main next 2>/dev/null; then exit 1; fi
            git rev-parse --verify -q refs/proq/op/step-a-0";
        let fixture = create_fixture("true");
        assert!(moves_branch(&fixture, "repo", "main", refused));
        assert_eq!(fixture.run_script("repo", "git log --format=%s"), "y\nx");
    }

    #[test]
    fn leaves_other_moves_to_git() {
        for script in [
            "git pack-refs --all",
            "git commit -q --allow-empty -m other",
            "git switch -q --detach",
            "git switch -q next",
            "git branch -m other; git symbolic-ref refs/heads/main refs/heads/other
             git symbolic-ref HEAD refs/heads/main",
            "ln -sf refs/heads/main .git/HEAD",
            "git config core.logAllRefUpdates false",
            "git config core.sharedRepository group",
            "git config extensions.worktreeConfig true",
            "touch .git/refs/heads/main.lock",
            "touch .git/HEAD.lock",
            "cd .git/hooks; printf '#!/bin/sh\n' >reference-transaction; chmod +x reference-transaction",
            "git config user.name .",
            "git update-ref refs/proq/op/step-a-0 HEAD",
            "printf '[core]\\n\\tsharedRepository\\n' >> .git/config",
            "rm .git/logs/refs/heads/main; mkdir .git/logs/refs/heads/main",
        ] {
            let fixture = create_fixture(script);
            let list = || {
                fixture.run_script("repo", "cd .git; find . -name '*.lock'; git show-ref --heads; git log -g")
            };
            let before = list();
            assert!(!moves_branch(&fixture, "repo", "main", "true"), "{script}");
            assert_eq!(list(), before, "{script}");
        }
    }
}
