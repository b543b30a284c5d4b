//! Creation of git-proq's own refs and deletion of refs without starting git, by git's own protocol of locks,
//! if no setting, hook or name requires more than that. Only for steps of operations: a kill leaves the locks
//! that a killed git would leave, and recovery of the step removes those.

use std::io::ErrorKind;
use std::path::Path;

use proq_base::fail_points;

use super::new_branch::{RefLock, is_plain_ref_component};
use crate::base::head::BRANCH_PREFIX;
use crate::repository::head_file::read_head;
use crate::{CommitId, Repo};

/// Prefix of the refs that only git-proq uses. git keeps no reflog of them.
const PRIVATE_REF_PREFIX: &str = "refs/proq/";

impl Repo {
    /// Creates a ref below `refs/proq/`, which must not exist, at an existing commit, durably. Returns
    /// `None`, without creating the ref, for cases that are left to git, which also has the error messages.
    pub fn create_private_ref(&self, name: &str, target: CommitId) -> Option<()> {
        let is_unlogged = self.setting_text("core.logAllRefUpdates").is_none_or(|set| set == "true");
        let is_private = name.starts_with(PRIVATE_REF_PREFIX) && self.is_plain_loose_name(name);
        let log = self.common_dir().join("logs").join(name);
        if !is_private || !is_unlogged || log.symlink_metadata().is_ok() || !self.has_object(target) {
            return None;
        }
        self.create_loose_ref(name, target.oid(), None)
    }

    /// Deletes a branch or a ref below `refs/proq/` that must be at `old`, with its reflog. Returns `None`,
    /// without deleting the ref, for cases that are left to git, which also has the error messages.
    pub fn delete_loose_ref(&self, name: &str, old: CommitId) -> Option<()> {
        let is_known_kind = [BRANCH_PREFIX, PRIVATE_REF_PREFIX].iter().any(|prefix| name.starts_with(prefix));
        let common = self.common_dir();
        if !is_known_kind
            || !self.is_plain_loose_name(name)
            || read_head(common).ok()? == format!("ref: {name}")
        {
            return None;
        }
        let (ref_path, log) = (common.join(name), common.join("logs").join(name));
        let lock = RefLock::acquire(common.join(format!("{name}.lock")))?;
        // git locks the target of a symlink.
        let packed_refs = common.join("packed-refs");
        if packed_refs.is_symlink() {
            return None;
        }
        // Keeps others from packing the ref while it is deleted.
        let packed_lock = RefLock::acquire(packed_refs.with_extension("lock"))?;
        if !is_loose_ref_at(&ref_path, old) || self.conflicts_with_packed_ref(name)? {
            return None;
        }
        fail_points::hit("ref.deletable");
        if std::fs::remove_file(&log).is_err_and(|e| e.kind() != ErrorKind::NotFound) {
            return None;
        }
        fail_points::hit("ref.unlogged");
        std::fs::remove_file(&ref_path).ok()?;
        drop((lock, packed_lock));
        for file in [log, ref_path] {
            remove_empty_parents(&file, name);
        }
        Some(())
    }

    /// Returns whether refs are plain files, and the parts of a name need no check by git.
    pub(super) fn is_plain_loose_name(&self, name: &str) -> bool {
        name.split('/').all(|part| is_plain_ref_component(part.as_bytes())) && self.has_plain_file_refs()
    }
}

/// Returns whether the file of a ref, which is no link, has the commit `id`.
pub(super) fn is_loose_ref_at(ref_path: &Path, id: CommitId) -> bool {
    ref_path.symlink_metadata().is_ok_and(|meta| meta.is_file())
        && std::fs::read(ref_path).is_ok_and(|text| text == format!("{id}\n").into_bytes())
}

/// Removes the empty folders above the file of the ref `name`, except the first two, as git does.
fn remove_empty_parents(file: &Path, name: &str) {
    let removable = name.split('/').count().saturating_sub(3);
    for folder in file.ancestors().skip(1).take(removable) {
        if std::fs::remove_dir(folder).is_err() {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::test_repo::TestRepo;

    /// Opens the repository as a new process would.
    fn open_repo(fixture: &TestRepo) -> Repo {
        Repo::discover(&fixture.parent_dir.join("repo")).unwrap()
    }

    fn create_fixture() -> (TestRepo, CommitId) {
        let fixture = TestRepo::new();
        fixture.run_script("repo", "git commit -q --allow-empty -m x; git branch -q proq/x");
        let tip = open_repo(&fixture).branch_tip("main").unwrap().unwrap();
        (fixture, tip)
    }

    /// Returns all refs, reflogs, folders and locks.
    fn list_ref_files(fixture: &TestRepo) -> String {
        let script = "cd .git; find refs logs *.lock packed-refs 2>/dev/null | sort
            git for-each-ref --format='%(refname)'";
        fixture.run_script("repo", script)
    }

    #[test]
    fn deletes_ref_as_git_does() {
        for (script, name) in [
            ("true", "refs/heads/proq/x"),
            ("git branch proq/y", "refs/heads/proq/x"),
            ("git update-ref refs/proq/saved/a/b HEAD", "refs/proq/saved/a/b"),
            ("git pack-refs --all; git branch -f proq/z; git branch a/b/c", "refs/heads/a/b/c"),
        ] {
            let lists = [true, false].map(|is_by_git| {
                let (fixture, tip) = create_fixture();
                fixture.run_script("repo", script);
                match is_by_git {
                    true => drop(fixture.run_script("repo", &format!("git update-ref -d {name} HEAD"))),
                    false => assert!(open_repo(&fixture).delete_loose_ref(name, tip).is_some(), "{script}"),
                }
                fixture.run_script("repo", "git fsck");
                list_ref_files(&fixture)
            });
            assert_eq!(lists[0], lists[1], "{script}");
        }
    }

    #[test]
    fn creates_private_ref_as_git_does() {
        let lists = [true, false].map(|is_by_git| {
            let (fixture, tip) = create_fixture();
            let name = "refs/proq/saved/x-1";
            match is_by_git {
                true => drop(fixture.run_script("repo", &format!("git update-ref -m kept {name} HEAD"))),
                false => assert!(open_repo(&fixture).create_private_ref(name, tip).is_some()),
            }
            list_ref_files(&fixture)
        });
        assert_eq!(lists[0], lists[1]);
    }

    #[test]
    fn leaves_other_refs_to_git() {
        for script in [
            "git pack-refs --all",
            "git branch -f proq/x $(git commit-tree -m y HEAD^{tree})",
            "git symbolic-ref refs/heads/proq/x refs/heads/main",
            "git checkout -q proq/x",
            "git branch -D -q proq/x",
            "touch .git/refs/heads/proq/x.lock",
            "touch .git/packed-refs.lock",
            "git pack-refs; mv .git/packed-refs packed; ln -s ../packed .git/packed-refs",
            "cd .git/hooks; printf '#!/bin/sh\n' >reference-transaction; chmod +x reference-transaction",
            "git config extensions.worktreeConfig true",
        ] {
            let (fixture, tip) = create_fixture();
            fixture.run_script("repo", script);
            let before = list_ref_files(&fixture);
            assert!(open_repo(&fixture).delete_loose_ref("refs/heads/proq/x", tip).is_none(), "{script}");
            assert_eq!(list_ref_files(&fixture), before, "{script}");
        }
        for (script, name) in [
            ("git update-ref refs/proq/a HEAD", "refs/proq/a"),
            ("git update-ref refs/proq/a HEAD; git pack-refs --all", "refs/proq/a"),
            ("git update-ref refs/proq/a HEAD; git pack-refs --all", "refs/proq/a/b"),
            ("git update-ref refs/proq HEAD; git pack-refs --all", "refs/proq/a"),
            ("git config core.logAllRefUpdates always", "refs/proq/a"),
            ("mkdir -p .git/logs/refs/proq; touch .git/logs/refs/proq/a", "refs/proq/a"),
            ("true", "refs/heads/a"),
            ("true", "refs/proq/a b"),
        ] {
            let (fixture, tip) = create_fixture();
            fixture.run_script("repo", script);
            assert!(open_repo(&fixture).create_private_ref(name, tip).is_none(), "{script}");
            assert!(!fixture.parent_dir.join("repo/.git").join(format!("{name}.lock")).exists(), "{script}");
        }
        let (fixture, tip) = create_fixture();
        assert!(open_repo(&fixture).create_private_ref("refs/proq/a", tip.null()).is_none());
    }
}
