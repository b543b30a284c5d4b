//! Discovery of the repository from the current folder, and the facts that git-proq needs about it.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use proq_base::regular_file;
use proq_base::regular_file::LinkPolicy;
use rustix::fs::{Access, access};

use super::head_file::{open_with_symlink_head, reject_symlink_head};
use super::tree_reader::TreeReader;
use super::{main_checkout, open_settings, ownership};
use crate::base::unusable::UnusableRepoError;
use crate::program::command::{Command, Program};
use crate::program::version::Version;
use crate::{CommitId, Error, RepoPath};

/// Folders of the git directory that nearly every change writes to; the empty name is the directory itself.
const WRITTEN_FOLDERS: [&str; 4] = ["", "objects", "refs", "refs/heads"];

/// Size in bytes of the cache of unpacked objects. A landing reads the same commits of its base repeatedly.
const OBJECT_CACHE_BYTES: usize = 4 * 1024 * 1024;

/// Default of [`Repo::set_lock_wait_limit`].
const DEFAULT_LOCK_WAIT_LIMIT: Duration = Duration::from_secs(30);

/// One repository: its shared git directory, its main checkout and the worktree of the current folder.
pub struct Repo {
    pub(crate) gix: gix::Repository,
    program: Program,
    version: OnceCell<Version>,
    tree_reader: OnceCell<TreeReader>,
    /// Facts about the history that are costly to find, cached because existing commits do not change.
    pub(crate) history_cache: HistoryCache,
    /// Git directory that all worktrees share.
    common_dir: PathBuf,
    /// Top of the main checkout; `None` in a bare repository.
    main_worktree: Option<PathBuf>,
    /// Top of the worktree that git-proq was started in; `None` in a bare repository or a git directory.
    current_worktree: Option<PathBuf>,
    uses_reftable: bool,
    /// Whether git finds the repository only through `GIT_DIR`: it is bare, and `safe.bareRepository` is
    /// `explicit`.
    needs_git_dir_env: bool,
    /// Open lock file that every mutating git command inherits, if one is set.
    inherited_lock_file: RefCell<Option<Rc<File>>>,
    /// Whether a git command of this process that changes something was killed since
    /// [`Repo::forget_killed_git`].
    killed_git: Rc<Cell<bool>>,
    /// Whether no lock in the repository can be stale, because nothing was killed.
    are_locks_live: Cell<bool>,
    lock_wait_limit: Cell<Duration>,
}

/// Cached facts about a history.
#[derive(Debug, Default)]
pub(crate) struct HistoryCache {
    /// Whether git sees another history than the commits record: shallow, grafted, or with replacements.
    pub(crate) has_altered_history: OnceCell<bool>,
    /// Merge bases by pair of commits.
    pub(crate) merge_bases: RefCell<HashMap<(CommitId, CommitId), Option<CommitId>>>,
}

impl Repo {
    /// Finds the repository from `dir`, honoring `GIT_DIR` and related variables as git does.
    ///
    /// # Errors
    /// - [`Error::NoRepository`] when there is no repository
    /// - [`Error::NoGit`] without a git program
    /// - [`Error::Untrusted`] when git does not trust the owner; this is checked before any setting of the
    ///   repository is read
    /// - [`Error::Unusable`] when a setting hides the main checkout, moves it, or applies to all worktrees
    pub fn discover(dir: &Path) -> Result<Repo, Error> {
        let program = Program::find()?;
        let trust = ownership::check_trust(&program, dir)?;
        let found = gix::ThreadSafeRepository::discover_with_environment_overrides_opts(
            dir,
            gix::discover::upwards::Options::default(),
            ownership::open_options(trust),
        );
        let mut gix = match found {
            Ok(found) => found.to_thread_local(),
            Err(_) => {
                open_with_symlink_head(&program, dir)?.ok_or_else(|| no_repository_error(&program, dir))?
            }
        };
        open_settings::apply_git_settings(&mut gix);
        gix.object_cache_size_if_unset(OBJECT_CACHE_BYTES);
        let common_dir = canonicalize_or_keep(gix.common_dir());
        main_checkout::refuse_shared_worktree(&gix, &common_dir)?;
        let in_main = canonicalize_or_keep(gix.git_dir()) == common_dir;
        let current_worktree = gix.workdir().map(canonicalize_or_keep);
        let main = match (in_main, gix.main_repo()) {
            (true, _) => current_worktree.clone(),
            (false, Ok(main)) => main.workdir().map(canonicalize_or_keep),
            (false, Err(_)) => {
                reject_symlink_head(&common_dir)?;
                return Err(no_repository_error(&program, dir));
            }
        };
        match &main {
            Some(main) => main_checkout::refuse_moved_checkout(&gix, &common_dir, main)?,
            None => main_checkout::refuse_bare_with_checkout(&gix, &common_dir, dir)?,
        }
        refuse_mixed_repositories(&program, current_worktree.as_deref().or(main.as_deref()), &common_dir)?;
        let reftable = gix
            .config_snapshot()
            .string("extensions.refStorage")
            .is_some_and(|v| v.eq_ignore_ascii_case(b"reftable"));
        Ok(Repo {
            program,
            version: OnceCell::new(),
            history_cache: HistoryCache::default(),
            tree_reader: OnceCell::new(),
            common_dir,
            needs_git_dir_env: main.is_none() && requires_explicit_bare(&gix),
            main_worktree: main,
            current_worktree,
            uses_reftable: reftable,
            inherited_lock_file: RefCell::default(),
            killed_git: Rc::default(),
            are_locks_live: Cell::default(),
            lock_wait_limit: Cell::new(DEFAULT_LOCK_WAIT_LIMIT),
            gix,
        })
    }

    /// Returns the git directory that all worktrees share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// Returns the top of the main checkout; none in a bare repository.
    pub fn main_worktree(&self) -> Option<&Path> {
        self.main_worktree.as_deref()
    }

    /// Returns the top of the main checkout.
    ///
    /// # Errors
    /// [`Error::Bare`] in a bare repository.
    pub fn require_main(&self) -> Result<&Path, Error> {
        self.main_worktree.as_deref().ok_or(Error::Bare)
    }

    /// Returns the top of the worktree that git-proq was started in; none in a bare repository or a git
    /// directory.
    pub fn current_worktree(&self) -> Option<&Path> {
        self.current_worktree.as_deref()
    }

    /// Returns a folder in which git finds this repository: the main checkout, or the git directory itself.
    pub fn command_dir(&self) -> &Path {
        self.main_worktree.as_deref().unwrap_or(&self.common_dir)
    }

    /// Returns whether refs are stored in reftable files, which gitoxide cannot read.
    pub(crate) fn is_reftable(&self) -> bool {
        self.uses_reftable
    }

    /// Returns the git program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the repository's shared tree reader, which caches the trees that it has read.
    pub(crate) fn tree_reader(&self) -> &TreeReader {
        self.tree_reader.get_or_init(|| TreeReader::new(self.gix.objects.clone()))
    }

    /// Creates a git command that runs in [`Repo::command_dir`].
    pub fn git(&self) -> Command {
        let command = self.git_in(self.command_dir());
        match self.needs_git_dir_env {
            true => command.env("GIT_DIR", &self.common_dir),
            false => command,
        }
    }

    /// Creates a git command that runs in the worktree at `dir`.
    pub fn git_in(&self, dir: &Path) -> Command {
        self.program
            .command_in(dir)
            .inherit_lock(self.inherited_lock_file.borrow().clone())
            .record_kill(self.killed_git())
    }

    /// Returns the flag that becomes true when a mutating git command of this process is killed.
    pub(crate) fn killed_git(&self) -> Rc<Cell<bool>> {
        self.killed_git.clone()
    }

    /// Forgets earlier killed git commands, at the start of work that [`Repo::clean_up_failure`] may follow.
    pub fn forget_killed_git(&self) {
        self.killed_git.set(false);
    }

    /// Runs `clean_up` after work of this process has failed. Unless one of its git commands was killed, each
    /// of them has released its locks, so that every lock file belongs to a running process and stays.
    pub fn clean_up_failure<T>(&self, clean_up: impl FnOnce() -> T) -> T {
        let before = self.are_locks_live.replace(!self.killed_git.get());
        let result = clean_up();
        self.are_locks_live.set(before);
        result
    }

    /// Sets how long to wait for a process that may hold a lock of a killed command.
    pub fn set_lock_wait_limit(&self, limit: Duration) {
        self.lock_wait_limit.set(limit);
    }

    /// Returns how long to wait for a process that may hold a lock of a killed command.
    pub(crate) fn lock_wait_limit(&self) -> Duration {
        self.lock_wait_limit.get()
    }

    /// Returns whether no lock in the repository can be stale.
    pub(crate) fn are_locks_live(&self) -> bool {
        self.are_locks_live.get()
    }

    /// Makes every later git command that changes something inherit this open file, and with it the lock on
    /// the file. `None` ends that.
    pub fn set_inherited_file(&self, file: Option<&File>) {
        // Without a second descriptor, the lock covers only this process.
        *self.inherited_lock_file.borrow_mut() = file.and_then(|f| f.try_clone().ok()).map(Rc::new);
    }

    /// Runs `action`, which may call `Repo::set_inherited_file`, and then restores the file that was
    /// inherited before.
    pub fn preserve_inherited_file<T>(&self, action: impl FnOnce() -> T) -> T {
        let saved = self.inherited_lock_file.borrow().clone();
        let result = action();
        *self.inherited_lock_file.borrow_mut() = saved;
        result
    }

    /// Returns the version of the git program, which is queried at most once.
    ///
    /// # Errors
    /// Fails if git cannot be run or its version is too old.
    pub fn version(&self) -> Result<Version, Error> {
        if let Some(version) = self.version.get() {
            return Ok(*version);
        }
        let version = Version::detect(&self.program, self.command_dir())?.require_supported()?;
        Ok(*self.version.get_or_init(|| version))
    }

    /// Sets git's version to one that an earlier command detected for the same git program, so that git is
    /// not queried. Does nothing if `version_text` is no version.
    pub fn assume_version(&self, version_text: &str) -> Result<(), Error> {
        if let Some(version) = Version::parse(version_text) {
            let version = version.require_supported()?;
            self.version.get_or_init(|| version);
        }
        Ok(())
    }

    /// Returns the git directory of the worktree at `dir` (`.git`, or `.git/worktrees/<id>`).
    pub fn worktree_git_dir(&self, dir: &Path) -> Result<PathBuf, Error> {
        if Some(dir) == self.main_worktree.as_deref() {
            return Ok(self.common_dir.clone());
        }
        let link = dir.join(".git");
        let text = regular_file::read(&link, regular_file::MAX_SETTINGS_BYTES, LinkPolicy::Follow);
        let text = text.map_err(Error::io("read", &link))?;
        let text = text.strip_prefix(b"gitdir: ").unwrap_or(&text);
        let target = dir.join(crate::RepoPath::new(text.trim_ascii_end()).to_fs_path(Path::new("")));
        let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        // A path where git puts these directories needs no resolving.
        let worktrees_dir = self.common_dir.join("worktrees");
        let is_standard = target.parent() == Some(&worktrees_dir) && target.file_name().is_some();
        Ok(if is_standard && is_folder(&worktrees_dir) && is_folder(&target) {
            target
        } else {
            canonicalize_or_keep(&target)
        })
    }

    /// Fails if a folder of the git directory is not writable, since started changes could not be undone.
    ///
    /// # Errors
    /// [`UnusableRepoError::NotWritable`].
    pub fn require_writable(&self) -> Result<(), Error> {
        let mut folders =
            WRITTEN_FOLDERS.iter().map(|name| self.common_dir().join(name).components().collect());
        let is_unwritable = |dir: &PathBuf| {
            let required = Access::WRITE_OK | Access::EXEC_OK;
            dir.is_dir() && access(dir, required) == Err(rustix::io::Errno::ACCESS)
        };
        match folders.find(is_unwritable) {
            Some(dir) => Err(Error::Unusable(UnusableRepoError::NotWritable { dir })),
            None => Ok(()),
        }
    }

    /// Refuses to continue if a command has changed the main checkout's folder in git's settings: git would
    /// change files there.
    ///
    /// # Errors
    /// Returns [`UnusableRepoError::CheckoutElsewhere`] or [`UnusableRepoError::SharedWorktree`].
    pub fn require_unmoved_checkout(&self) -> Result<(), Error> {
        let Some(current) = open_settings::open(self.gix.git_dir()) else { return Ok(()) };
        main_checkout::refuse_shared_worktree(&current, self.common_dir())?;
        let worktree_setting =
            |gix: &gix::Repository| gix.config_snapshot().string("core.worktree").map(|value| value.to_vec());
        match worktree_setting(&current) {
            Some(setting) if worktree_setting(&self.gix).as_ref() != Some(&setting) => {
                Err(Error::Unusable(UnusableRepoError::CheckoutElsewhere {
                    git_dir: self.common_dir().to_owned(),
                    dir: RepoPath::new(setting).to_fs_path(self.common_dir()),
                    config: main_checkout::deciding_config_file(&current, "worktree", self.common_dir()),
                }))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the path with links resolved, or unchanged when it cannot be resolved.
fn canonicalize_or_keep(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns the path that a git in `dir` has printed, with links resolved.
fn printed_path(mut stdout: Vec<u8>, dir: &Path) -> PathBuf {
    stdout.pop_if(|last| *last == b'\n');
    canonicalize_or_keep(&RepoPath::new(stdout).to_fs_path(dir))
}

/// Returns whether git uses bare repositories only when they are named explicitly.
fn requires_explicit_bare(gix: &gix::Repository) -> bool {
    gix.config_snapshot().string("safe.bareRepository").is_some_and(|v| v.as_slice() == b"explicit")
}

/// Fails if `GIT_DIR` and related variables combine a worktree with another repository. Every git command of
/// git-proq finds the repository by its folder, so both have to belong together.
fn refuse_mixed_repositories(
    program: &Program,
    worktree: Option<&Path>,
    common_dir: &Path,
) -> Result<(), Error> {
    let is_env_set =
        ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"].iter().any(|name| std::env::var_os(name).is_some());
    let (true, Some(dir)) = (is_env_set, worktree) else { return Ok(()) };
    let found = program.command_in(dir).args(["rev-parse", "--git-common-dir"]).run();
    let found = found.map(|out| printed_path(out.stdout, dir));
    let mixed_error = || Err(Error::MismatchedGitDir { dir: dir.to_owned(), git_dir: common_dir.to_owned() });
    match found {
        Ok(found) if found == common_dir => Ok(()),
        Err(e) => match ownership::classify_trust_error(e, dir) {
            e @ Error::Untrusted { .. } => Err(e),
            _ => mixed_error(),
        },
        Ok(_) => mixed_error(),
    }
}

/// Returns the error for a missing repository. Git's own message is preferred: git knows about ownership,
/// formats and broken links.
fn no_repository_error(program: &Program, dir: &Path) -> Error {
    let git_result = program.command_in(dir).args(["rev-parse", "--git-common-dir"]).run();
    match git_result.map(|out| printed_path(out.stdout, dir)) {
        Err(e @ Error::Command { .. }) if !e.to_string().contains("not a git repository") => {
            ownership::classify_trust_error(e, dir)
        }
        Ok(git_dir) if open_settings::has_relative_worktrees_in_format_0(&git_dir) => {
            Error::Unusable(UnusableRepoError::RelativeWorktreesInFormat0 { git_dir })
        }
        _ => {
            let env_dir = std::env::var_os("GIT_DIR").map(PathBuf::from);
            let by_variable = env_dir.is_some();
            Error::NoRepository {
                dir: env_dir.unwrap_or_else(|| dir.to_owned()),
                named_by_git_dir_variable: by_variable,
            }
        }
    }
}
