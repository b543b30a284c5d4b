//! Creation of a ref that existed before, so that a `git pack-refs` that is running does not remove it.
//!
//! `git pack-refs` first writes the refs to `packed-refs`, releases its lock, and then removes the file of each
//! ref that is still at the value that it packed. It compares nothing but that value. Another process may delete
//! such a ref in between, with its entry in `packed-refs`, and create it again at the same commit. git then
//! removes the new file, and the ref is gone. An entry in `packed-refs` that is as new as the file keeps the ref.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use proq_base::{fail_points, interrupt};

use super::new_branch::RefLock;
use crate::{CommitId, Error, Repo};

/// Time between two attempts to lock `packed-refs`.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

impl Repo {
    /// Creates a ref that may have existed before: runs `create`, which creates the ref `name` at `target`, and
    /// adds the ref to `packed-refs`. Nobody can delete or pack the ref while this runs.
    ///
    /// # Errors
    /// [`Error::RefLocked`] if `packed-refs` stays locked up to the limit of [`Repo::set_lock_wait_limit`]; the
    /// ref was not created then. Fails also with the error of `create`, or if `packed-refs` cannot be written.
    pub fn recreate_ref(
        &self,
        name: &str,
        target: CommitId,
        create: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let packed_refs = self.common_dir().join("packed-refs");
        // Without a file of packed refs, nothing was packed. git itself writes through a symbolic link.
        let is_file = packed_refs.symlink_metadata().is_ok_and(|meta| meta.is_file());
        if self.is_reftable() || !is_file {
            return create();
        }
        let lock = self.lock_packed_refs(name, packed_refs.with_extension("lock"))?;
        create()?;
        fail_points::hit("ref.recreated");
        let text = std::fs::read(&packed_refs).map_err(Error::io("read", &packed_refs))?;
        if let Some(text) = with_entry(&text, name, target) {
            lock.replace(&packed_refs, &text, self.sharing()).map_err(Error::io("write", &packed_refs))?;
        }
        Ok(())
    }

    /// Locks `packed-refs` by the file `lock`, for the ref `name`.
    fn lock_packed_refs(&self, name: &str, lock: PathBuf) -> Result<RefLock, Error> {
        let start = Instant::now();
        loop {
            match RefLock::create(lock.clone()) {
                Ok(acquired) => return Ok(acquired),
                Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(Error::io("create", &lock)(e)),
                Err(_) if start.elapsed() >= self.lock_wait_limit() || !interrupt::has_no_signal() => {
                    return Err(Error::RefLocked { ref_name: name.to_owned(), lock });
                }
                Err(_) => std::thread::sleep(RETRY_INTERVAL),
            }
        }
    }
}

/// Returns the text of `packed-refs` with an entry for the ref `name`, in the order of the names; none if it has
/// one already.
fn with_entry(text: &[u8], name: &str, target: CommitId) -> Option<Vec<u8>> {
    let mut at = text.len();
    let mut line_start = 0;
    for line in text.split_inclusive(|b| *b == b'\n') {
        // Lines of other kinds: the header, and the commit that the tag of the line before leads to.
        if !line.starts_with(b"#") && !line.starts_with(b"^") {
            let entry_name = line.trim_ascii_end().splitn(2, |b| *b == b' ').nth(1).unwrap_or_default();
            match entry_name.cmp(name.as_bytes()) {
                std::cmp::Ordering::Equal => return None,
                std::cmp::Ordering::Greater => at = at.min(line_start),
                std::cmp::Ordering::Less => {}
            }
        }
        line_start += line.len();
    }
    let mut new_text = text[..at].to_vec();
    if !new_text.is_empty() && !new_text.ends_with(b"\n") {
        new_text.push(b'\n');
    }
    new_text.extend_from_slice(format!("{target} {name}\n").as_bytes());
    new_text.extend_from_slice(&text[at..]);
    Some(new_text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::test_repo::TestRepo;

    /// Creates a repository in which a git has packed the branches, and has yet to remove their files.
    fn half_packed_repo() -> (TestRepo, CommitId) {
        let fixture = TestRepo::new();
        let script =
            "git commit -q --allow-empty -m x; git tag -a -m v v; git branch a; git branch m/x; git branch z
            git pack-refs --all --no-prune";
        fixture.run_script("repo", script);
        let tip = open_repo(&fixture).branch_tip("main").unwrap().unwrap();
        (fixture, tip)
    }

    fn open_repo(fixture: &TestRepo) -> Repo {
        Repo::discover(&fixture.parent_dir.join("repo")).unwrap()
    }

    /// Creates a branch as an operation does.
    fn recreate(repo: &Repo, name: &str, tip: CommitId) -> Result<(), Error> {
        repo.recreate_ref(name, tip, || repo.create_ref(name, tip, "again"))
    }

    #[test]
    fn recreated_ref_outlives_the_removal_of_its_file() {
        for branch in ["a", "m/x", "z"] {
            for new_branch in [branch, "0", "m/a", "zz"] {
                let (fixture, tip) = half_packed_repo();
                let repo = open_repo(&fixture);
                let name = format!("refs/heads/{new_branch}");
                fixture.run_script("repo", &format!("git update-ref -d refs/heads/{branch}"));
                recreate(&repo, &name, tip).unwrap();
                fixture
                    .run_script("repo", &format!("git reflog exists {name} && rm .git/{name} && git fsck"));
                assert_eq!(open_repo(&fixture).ref_tip(&name).unwrap(), Some(tip));
                let refs =
                    fixture.run_script("repo", "git for-each-ref --format='%(refname) %(*objectname)'");
                let packed = fixture.run_script(
                    "repo",
                    "git pack-refs --all; git for-each-ref --format='%(refname) %(*objectname)'",
                );
                assert_eq!(refs, packed);
                assert_eq!(refs.lines().count(), 5);
            }
        }
    }

    #[test]
    fn other_forms_of_packed_refs_are_kept() {
        let tip = half_packed_repo().1;
        for (text, expected) in [
            ("", Some("ID refs/heads/b\n")),
            ("# header\n", Some("# header\nID refs/heads/b\n")),
            ("# header\n1 refs/heads/b\n", None),
            (
                "1 refs/heads/a\n2 refs/tags/v\n^3\n",
                Some("1 refs/heads/a\nID refs/heads/b\n2 refs/tags/v\n^3\n"),
            ),
            (
                "2 refs/heads/a/v\n^3\n1 refs/heads/a/c",
                Some("2 refs/heads/a/v\n^3\n1 refs/heads/a/c\nID refs/heads/b\n"),
            ),
        ] {
            let expected = expected.map(|text| text.replace("ID", &tip.to_string()));
            let found = with_entry(text.as_bytes(), "refs/heads/b", tip);
            assert_eq!(found.map(|text| String::from_utf8(text).unwrap()), expected);
        }
    }

    #[test]
    fn locked_packed_refs_refuse_the_ref() {
        let (fixture, tip) = half_packed_repo();
        fixture.run_script("repo", "git update-ref -d refs/heads/a; touch .git/packed-refs.lock");
        let repo = open_repo(&fixture);
        repo.set_lock_wait_limit(Duration::ZERO);
        let error = recreate(&repo, "refs/heads/a", tip).unwrap_err();
        assert!(matches!(error, Error::RefLocked { .. }), "{error}");
        assert_eq!(repo.branch_tip("a").unwrap(), None);
        assert!(fixture.parent_dir.join("repo/.git/packed-refs.lock").exists());
    }
}
