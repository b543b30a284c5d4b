//! Creation of a branch without starting git, by git's own protocol of lock, log and rename, if no setting,
//! hook or name requires more than that.

use std::fs::File;
use std::io::{Error, Result, Seek, Write};
use std::path::{Path, PathBuf};

use proq_base::fail_points;

use crate::base::head::BRANCH_PREFIX;
use crate::base::lock_file::{FileId, create_linked_lock_file};
use crate::repository::head_file::read_head;
use crate::repository::settings::has_build_specific_config;
use crate::repository::shared_repository::Sharing;
use crate::{Oid, Repo};

/// Lock file of a ref, removed on drop unless it was renamed to the ref or replaced by another process: users
/// and agents delete lock files.
pub(crate) struct RefLock {
    file: File,
    lock_path: PathBuf,
}

impl RefLock {
    pub(super) fn acquire(path: PathBuf) -> Option<RefLock> {
        RefLock::create(path).ok()
    }

    /// Creates the lock file at `lock_path`, which must not exist.
    pub(super) fn create(lock_path: PathBuf) -> Result<RefLock> {
        Ok(RefLock { file: File::create_new(&lock_path)?, lock_path })
    }

    /// Acquires the lock as a hard link to the file `mark`, by which recovery knows whose lock it is.
    pub(crate) fn acquire_linked(path: PathBuf, mark: &Path) -> Option<RefLock> {
        let file = create_linked_lock_file(&path, mark).ok()?;
        let mut lock = RefLock { file, lock_path: path };
        lock.file.set_len(0).and_then(|()| lock.file.rewind()).ok()?;
        Some(lock)
    }

    /// Returns whether the lock file is still the one that was created.
    fn is_held(&self) -> bool {
        FileId::of(&self.file).is_some_and(|id| FileId::read(&self.lock_path) == Some(id))
    }

    /// Writes the object id that the ref gets, durably.
    pub(super) fn write(&mut self, id: Oid) -> Result<()> {
        self.file.write_all(format!("{id}\n").as_bytes())?;
        self.file.sync_all()
    }

    /// Makes the symbolic ref in the file `ref_path`, whose lock this is, name a branch, durably.
    ///
    /// # Errors
    /// Fails without a change to the ref.
    pub(crate) fn write_symbolic(mut self, branch: &str, ref_path: &Path) -> Result<()> {
        self.file.write_all(format!("ref: {BRANCH_PREFIX}{branch}\n").as_bytes())?;
        self.file.sync_all()?;
        self.rename_to_ref(ref_path)
    }

    /// Replaces the file `path`, whose lock this is, by `text`, durably.
    ///
    /// # Errors
    /// Fails without a change to the file.
    pub(super) fn replace(mut self, path: &Path, text: &[u8], sharing: Sharing) -> Result<()> {
        sharing.adjust_open_file(&self.file)?;
        self.file.write_all(text)?;
        self.file.sync_all()?;
        self.rename_to_ref(path)
    }

    /// Renames the lock file to the ref.
    ///
    /// # Errors
    /// Fails without a change if another process has removed or replaced the lock.
    pub(super) fn rename_to_ref(self, ref_path: &Path) -> Result<()> {
        if !self.is_held() {
            return Err(Error::other(format!("{} was removed", self.lock_path.display())));
        }
        std::fs::rename(&self.lock_path, ref_path)
    }
}

impl Drop for RefLock {
    fn drop(&mut self) {
        // Nobody else may remove a lock that a passing error leaves, so this is tried twice.
        if self.is_held() && std::fs::remove_file(&self.lock_path).is_err() {
            drop(std::fs::remove_file(&self.lock_path));
        }
    }
}

/// Appends a line to a reflog and runs `action`. If `action` fails, the log is restored: a ref that was not
/// created has no log, and no partial line is left that git's next line would be joined to.
pub(super) fn run_with_reflog_line(
    log: &Path,
    line: &[u8],
    action: impl FnOnce() -> Result<()>,
) -> Result<()> {
    std::fs::create_dir_all(log.parent().unwrap_or(log))?;
    let mut file = File::options().append(true).create(true).open(log)?;
    let old_len = file.metadata()?.len();
    let own_len = old_len + line.len() as u64;
    file.write_all(line).and_then(|()| action()).or_else(|e| {
        // Every writer of the log holds the ref's lock. If that was taken away, others may have added lines.
        if file.metadata()?.len() > own_len {
            return Err(e);
        }
        // An empty log would block branches below this name.
        if old_len == 0 { std::fs::remove_file(log) } else { file.set_len(old_len) }.and(Err(e))
    })
}

impl Repo {
    /// Creates the branch with the full ref name `name`, which must not exist, at a commit, durably and with
    /// `message` in its reflog. Returns `None`, without creating the branch, for cases that are left to git,
    /// which also has the error messages.
    pub(crate) fn create_branch_in_process(
        &self,
        name: &str,
        target: impl Into<Oid>,
        message: &str,
    ) -> Option<()> {
        let new = target.into();
        let short = name.strip_prefix(BRANCH_PREFIX)?;
        let has_ordinary_parts = short.split('/').all(|part| is_plain_ref_component(part.as_bytes()));
        let is_logged = self.setting_text("core.logAllRefUpdates").is_none_or(|set| set == "true");
        if !has_ordinary_parts || !is_logged || !self.has_plain_file_refs() {
            return None;
        }
        let kind = self.gix.find_header(new.0).ok()?.kind();
        let common = self.common_dir();
        // HEAD keeps a reflog too for an unborn branch that it names.
        let head = read_head(common).ok()?;
        if kind != gix::object::Kind::Commit || head == format!("ref: {name}") {
            return None;
        }
        self.create_loose_ref(name, new, Some(&self.reflog_line(&self.gix, new.null(), new, message)?))
    }

    /// Returns the line that git would now add to the reflog of a ref that moves from `old` to `new`, by the
    /// settings of `local`. Returns `None` if git would change the message, or only git can determine the
    /// committer.
    pub(super) fn reflog_line(
        &self,
        local: &gix::Repository,
        old: Oid,
        new: Oid,
        message: &str,
    ) -> Option<Vec<u8>> {
        let is_printable = |b: u8| matches!(b, b' '..=b'~');
        if !message.bytes().all(is_printable) || message.split(' ').any(str::is_empty) {
            return None;
        }
        let mut line = format!("{old} {new} ").into_bytes();
        self.committer(local)?.to_ref(&mut gix::date::parse::TimeBuf::default()).write_to(&mut line).ok()?;
        line.extend_from_slice(format!("\t{message}\n").as_bytes());
        Some(line)
    }

    /// Creates the file of a ref that does not exist, durably, and adds `log_line` to its reflog. Returns
    /// `None`, without creating the ref, if its name or lock is taken.
    pub(super) fn create_loose_ref(&self, name: &str, new: Oid, log_line: Option<&[u8]>) -> Option<()> {
        let common = self.common_dir();
        let (ref_path, log) = (common.join(name), common.join("logs").join(name));
        // A file where a folder is needed is a branch that conflicts with this one.
        std::fs::create_dir_all(ref_path.parent()?).ok()?;
        let mut lock = RefLock::acquire(common.join(format!("{name}.lock")))?;
        // A folder contains branches below this one, or is about to be removed.
        if ref_path.symlink_metadata().is_ok() || log.is_dir() || self.conflicts_with_packed_ref(name)? {
            return None;
        }
        lock.write(new).ok()?;
        fail_points::hit("branch.locked");
        let publish = || {
            fail_points::hit("branch.logged");
            lock.rename_to_ref(&ref_path)
        };
        match log_line {
            Some(line) => run_with_reflog_line(&log, line, publish).ok(),
            None => publish().ok(),
        }
    }

    /// Returns whether refs are files that git writes with ordinary permissions, and no hook is notified of
    /// them.
    pub(crate) fn has_plain_file_refs(&self) -> bool {
        self.has_plain_file_refs_by(&self.gix, self.command_dir())
    }

    /// Does what [`Repo::has_plain_file_refs`] does, for git in the worktree at `dir` and by the settings with
    /// which that was opened as `local`.
    pub(super) fn has_plain_file_refs_by(&self, local: &gix::Repository, dir: &Path) -> bool {
        let config = local.config_snapshot();
        let mut sections = config.sections_by_name("extensions").into_iter().flatten();
        let has_extensions = sections.any(|section| {
            let body = section.body();
            body.value_names().any(|name| name.to_lowercase() != "objectformat")
        });
        cfg!(target_os = "linux")
            && config.boolean("core.bare") != Some(true)
            && self.main_worktree().is_some()
            && config.string("core.sharedRepository").is_none()
            && config.boolean("core.sharedRepository").is_none()
            && !has_extensions
            && !self.may_have_hook_by(local, dir, "reference-transaction")
            && !has_build_specific_config(self.program().path())
            && !fail_points::is_git_forced()
    }

    /// Returns whether a packed ref has this name or one that conflicts with it; `None` if the packed refs
    /// cannot be read.
    pub(super) fn conflicts_with_packed_ref(&self, name: &str) -> Option<bool> {
        // A cached buffer counts as valid as long as the file's time is unchanged, even within one clock
        // tick, so the file is read again.
        let Some(packed_refs) = self.gix.refs.open_packed_buffer().ok()? else { return Some(false) };
        let parent_names =
            name.match_indices('/').map(|(at, _)| &name[..at]).filter(|parent| parent.contains('/'));
        for parent in parent_names {
            if packed_refs.try_find(parent).ok()?.is_some() {
                return Some(true);
            }
        }
        for found in packed_refs.iter_prefixed(name.into()).ok()? {
            let found = found.ok()?;
            let rest = &found.name.as_bstr()[name.len()..];
            if rest.is_empty() || rest.starts_with(b"/") {
                return Some(true);
            }
        }
        Some(false)
    }
}

/// Returns whether a name is a safe component of a ref name: git then gives the worktree's admin folder the
/// same name.
pub(crate) fn is_plain_ref_component(name: &[u8]) -> bool {
    let is_allowed = |b: &u8| b.is_ascii_alphanumeric() || b"-_.".contains(b);
    !name.is_empty()
        && name.iter().all(is_allowed)
        && !name.starts_with(b".")
        && !name.ends_with(b".")
        && !name.ends_with(b".lock")
        && !name.windows(2).any(|pair| pair == b"..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommitId;
    use crate::base::test_repo::TestRepo;

    #[test]
    fn failed_move_removes_only_its_own_log_line() {
        let dir = tempfile::tempdir().unwrap();
        for (others, expected) in [("", "old\n"), ("theirs\n", "old\nown\ntheirs\n")] {
            let log = dir.path().join("log");
            std::fs::write(&log, "old\n").unwrap();
            let result = run_with_reflog_line(&log, b"own\n", || {
                File::options().append(true).open(&log)?.write_all(others.as_bytes())?;
                Err(Error::other("the lock is gone"))
            });
            assert!(result.is_err());
            assert_eq!(std::fs::read_to_string(&log).unwrap(), expected);
        }
    }

    struct BranchFixture(TestRepo);

    impl BranchFixture {
        fn new() -> BranchFixture {
            let fixture = BranchFixture(TestRepo::new());
            fixture.git("config user.name a");
            fixture.git("config user.email a@b");
            fixture.git("commit -q --allow-empty -m x");
            fixture
        }

        fn git(&self, args: &str) -> String {
            self.0.run_script("repo", &format!("git {args}"))
        }

        /// Opens the repository as a new process would.
        fn reopen_repo(&self) -> Repo {
            Repo::discover(&self.0.parent_dir.join("repo")).unwrap()
        }

        fn tip(&self) -> CommitId {
            self.reopen_repo().ref_tip("refs/heads/main").unwrap().unwrap()
        }

        fn path_in_git_dir(&self, path: &str) -> PathBuf {
            self.0.parent_dir.join("repo/.git").join(path)
        }

        fn creates_branch(&self, branch: &str) -> bool {
            let name = format!("{BRANCH_PREFIX}{branch}");
            let created =
                self.reopen_repo().create_branch_in_process(&name, self.tip(), "git-proq: spawn").is_some();
            assert!(!self.path_in_git_dir(&format!("{name}.lock")).exists(), "{branch}");
            created
        }
    }

    /// Promise: new-lane/native-creation
    #[test]
    fn creates_same_branch_as_git() {
        let fixture = BranchFixture::new();
        assert!(fixture.creates_branch("lanes/one"));
        fixture.git(&format!("update-ref -m 'git-proq: spawn' refs/heads/lanes/two HEAD {}", "0".repeat(40)));
        let read = |path: &str| std::fs::read_to_string(fixture.path_in_git_dir(path)).unwrap();
        assert_eq!(read("refs/heads/lanes/one"), read("refs/heads/lanes/two"));
        let log = |name: &str| {
            let text = read(&format!("logs/refs/heads/lanes/{name}"));
            let (ids_and_identity, rest) = text.split_once("> ").unwrap();
            let (time, rest) = rest.split_once(' ').unwrap();
            assert!(time.parse::<u64>().unwrap() > 1_700_000_000);
            format!("{ids_and_identity}> {rest}")
        };
        assert_eq!(log("one"), log("two"));
        assert_eq!(fixture.git("reflog lanes/one --format=%gs"), "git-proq: spawn");
        fixture.git("fsck");
        fixture.git("branch -d lanes/one");
    }

    /// Promise: new-lane/native-creation
    #[test]
    fn leaves_taken_name_to_git() {
        let fixture = BranchFixture::new();
        assert!(!fixture.creates_branch("main"));
        fixture.git("branch packed");
        fixture.git("branch deep/er/packed");
        fixture.git("pack-refs --all");
        for taken in
            ["packed", "packed/x", "packed/x/y", "deep", "deep/er", "deep/er/packed", "deep/er/packed/x"]
        {
            assert!(!fixture.creates_branch(taken), "{taken}");
        }
        fixture.git("branch loose");
        fixture.git("branch fold/er");
        for taken in ["loose", "loose/x", "fold"] {
            assert!(!fixture.creates_branch(taken), "{taken}");
        }
        let lock = fixture.path_in_git_dir("refs/heads/held.lock");
        std::fs::write(&lock, "").unwrap();
        let created = fixture.reopen_repo().create_branch_in_process("refs/heads/held", fixture.tip(), "x");
        assert!(created.is_none() && lock.exists());
        std::fs::remove_file(lock).unwrap();
        for free in ["pack", "packed-too", "deep/e", "deep/er/packe", "held"] {
            assert!(fixture.creates_branch(free), "{free}");
        }
        fixture.git("fsck");
    }

    #[test]
    fn notices_ref_packed_since_last_read() {
        let fixture = BranchFixture::new();
        fixture.git("branch first");
        fixture.git("pack-refs --all");
        let (repo, packed) = (fixture.reopen_repo(), fixture.path_in_git_dir("packed-refs"));
        assert_eq!(repo.ref_tip("refs/heads/first").unwrap(), Some(fixture.tip()));
        let time = packed.metadata().unwrap().modified().unwrap();
        fixture.git("branch second");
        fixture.git("pack-refs --all");
        // Simulates two writes in one tick of the clock.
        File::options().write(true).open(&packed).unwrap().set_modified(time).unwrap();
        assert!(repo.create_branch_in_process("refs/heads/second", fixture.tip(), "x").is_none());
    }

    #[test]
    fn failed_creation_leaves_no_log() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("deep/log");
        let fails = || Err(std::io::ErrorKind::StorageFull.into());
        assert!(run_with_reflog_line(&log, b"never\n", fails).is_err());
        assert!(!log.exists());
        run_with_reflog_line(&log, b"one\n", || Ok(())).unwrap();
        assert!(run_with_reflog_line(&log, b"never\n", fails).is_err());
        run_with_reflog_line(&log, b"two\n", || Ok(())).unwrap();
        assert_eq!(std::fs::read(&log).unwrap(), b"one\ntwo\n");
    }

    /// Promise: new-lane/native-creation
    #[test]
    fn leaves_unsupported_cases_to_git() {
        let fixture = BranchFixture::new();
        let tip = fixture.tip();
        for name in
            ["refs/heads/a b", "refs/heads/.x", "refs/heads/x.lock", "refs/heads/\u{fc}", "refs/proq/x"]
        {
            assert!(fixture.reopen_repo().create_branch_in_process(name, tip, "x").is_none(), "{name}");
        }
        let tree = fixture.reopen_repo().tree_of(tip).unwrap();
        assert!(fixture.reopen_repo().create_branch_in_process("refs/heads/x", tree, "x").is_none());
        assert!(fixture.reopen_repo().create_branch_in_process("refs/heads/x", tip.null(), "x").is_none());
        assert!(fixture.reopen_repo().create_branch_in_process("refs/heads/x", tip, "two\nlines").is_none());
        for (key, value) in [
            ("core.logAllRefUpdates", "false"),
            ("core.sharedRepository", "group"),
            ("extensions.worktreeConfig", "true"),
            ("user.name", "."),
        ] {
            fixture.git(&format!("config {key} {value}"));
            assert!(!fixture.creates_branch("x"), "{key}");
            fixture.git(&format!("config --unset {key}"));
        }
        fixture.git("config user.name a");
        fixture.git("symbolic-ref HEAD refs/heads/unborn");
        assert!(!fixture.creates_branch("unborn"));
        assert!(fixture.creates_branch("x"));
    }
}
