//! Owns finding the repository from wherever the user stands, and what it is.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::head_file::{open_behind_link, refuse_linked};
use super::trees::Reader;
use super::version::Version;
use super::{Command, Error, Oid, Program, main_checkout, ownership, settings};
use crate::regular_file::{self, Links};

/// How many bytes of objects are kept in memory, unpacked. A landing reads the same commits of its base again and again.
const OBJECTS: usize = 4 * 1024 * 1024;

/// One repository: its shared git directory, its main checkout, and where the user stands.
pub(crate) struct Repo {
    pub(super) gix: gix::Repository,
    program: Program,
    version: OnceCell<Version>,
    reader: OnceCell<Reader>,
    /// What was found out of its history, which does not change.
    pub(super) lore: Lore,
    common_dir: PathBuf,
    main: Option<PathBuf>,
    here: Option<PathBuf>,
    reftable: bool,
    /// Git finds it only where it is named: it is bare, and `safe.bareRepository` is `explicit`.
    named: bool,
    carried: RefCell<Option<Rc<File>>>,
}

/// What was found out of a history.
#[derive(Debug, Default)]
pub(super) struct Lore {
    /// Whether git sees another one than the commits tell.
    pub(super) made_up: OnceCell<bool>,
    /// Merge bases.
    pub(super) bases: RefCell<HashMap<(Oid, Oid), Option<Oid>>>,
}

impl Repo {
    /// Finds the repository from `dir`, honouring `GIT_DIR` and its kin as git does.
    ///
    /// # Errors
    /// [`Error::NoRepository`] when there is none, [`Error::NoGit`] without a git program, [`Error::Untrusted`] where git
    /// does not trust who owns it: that is known before a setting of it is read. [`Error::Unusable`] where a setting hides the
    /// main checkout, puts it elsewhere, or is that of all worktrees.
    pub(crate) fn discover(dir: &Path) -> Result<Repo, Error> {
        let program = Program::find()?;
        let trust = ownership::judge(&program, dir)?;
        let found = gix::ThreadSafeRepository::discover_with_environment_overrides_opts(
            dir,
            gix::discover::upwards::Options::default(),
            ownership::options(trust),
        );
        let mut gix = match found {
            Ok(found) => found.to_thread_local(),
            Err(_) => open_behind_link(&program, dir)?.ok_or_else(|| no_repository(&program, dir))?,
        };
        settings::as_git_has_them(&mut gix);
        gix.object_cache_size_if_unset(OBJECTS);
        let common_dir = real(gix.common_dir());
        main_checkout::refuse_shared(&gix, &common_dir)?;
        let in_main = real(gix.git_dir()) == common_dir;
        let here = gix.workdir().map(real);
        let main = match (in_main, gix.main_repo()) {
            (true, _) => here.clone(),
            (false, Ok(main)) => main.workdir().map(real),
            (false, Err(_)) => {
                refuse_linked(&common_dir)?;
                return Err(no_repository(&program, dir));
            }
        };
        match &main {
            Some(main) => main_checkout::refuse_elsewhere(&gix, &common_dir, main)?,
            None => main_checkout::refuse_hidden(&gix, &common_dir, dir)?,
        }
        refuse_mixture(&program, here.as_deref().or(main.as_deref()), &common_dir)?;
        let reftable = gix
            .config_snapshot()
            .string("extensions.refStorage")
            .is_some_and(|v| v.eq_ignore_ascii_case(b"reftable"));
        Ok(Repo {
            program,
            version: OnceCell::new(),
            lore: Lore::default(),
            reader: OnceCell::new(),
            common_dir,
            named: main.is_none() && is_explicit(&gix),
            main,
            here,
            reftable,
            carried: RefCell::default(),
            gix,
        })
    }

    /// The git directory that all worktrees share.
    pub(crate) fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// The top of the main checkout; none in a bare repository.
    pub(crate) fn main_worktree(&self) -> Option<&Path> {
        self.main.as_deref()
    }

    /// The main checkout, or the refusal that names what is missing.
    pub(crate) fn require_main(&self) -> Result<&Path, Error> {
        self.main.as_deref().ok_or(Error::Bare)
    }

    /// The top of the worktree the user stands in; none in a bare repository or a git directory.
    pub(crate) fn here(&self) -> Option<&Path> {
        self.here.as_deref()
    }

    /// A folder in which git finds this repository: the main checkout, or the git directory itself.
    pub(crate) fn home(&self) -> &Path {
        self.main.as_deref().unwrap_or(&self.common_dir)
    }

    /// Whether refs are kept in reftable files, which the library cannot read.
    pub(super) fn is_reftable(&self) -> bool {
        self.reftable
    }

    /// The git program.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// Where its trees are read, each once.
    pub(super) fn reader(&self) -> &Reader {
        self.reader.get_or_init(|| Reader::of(self.gix.objects.clone()))
    }

    /// A call of the git program in the repository's home.
    pub(crate) fn git(&self) -> Command {
        let command = self.git_in(self.home());
        match self.named {
            true => command.env("GIT_DIR", &self.common_dir),
            false => command,
        }
    }

    /// A call of the git program in one worktree.
    pub(crate) fn git_in(&self, dir: &Path) -> Command {
        self.program.in_dir(dir).carry(self.carried.borrow().clone())
    }

    /// From now on every git program that changes something inherits this open file, and with it the lock on it; none
    /// ends that.
    pub(crate) fn carry(&self, file: Option<&File>) {
        // Without a second descriptor the lock only tells of this process.
        *self.carried.borrow_mut() = file.and_then(|f| f.try_clone().ok()).map(Rc::new);
    }

    /// Does something that may carry files of its own, and carries on with what was carried before.
    pub(crate) fn carrying_on<T>(&self, act: impl FnOnce() -> T) -> T {
        let carried = self.carried.borrow().clone();
        let done = act();
        *self.carried.borrow_mut() = carried;
        done
    }

    /// The version of the git program, asked at most once.
    pub(crate) fn version(&self) -> Result<Version, Error> {
        if let Some(version) = self.version.get() {
            return Ok(*version);
        }
        let version = Version::of(&self.program, self.home())?.require()?;
        Ok(*self.version.get_or_init(|| version))
    }

    /// Takes a version that an earlier command found for this very program.
    pub(crate) fn assume_version(&self, text: &str) -> Result<(), Error> {
        if let Some(version) = Version::parse(text) {
            let version = version.require()?;
            self.version.get_or_init(|| version);
        }
        Ok(())
    }

    /// The git directory of the worktree at `dir` (`.git`, or `.git/worktrees/<id>`).
    pub(crate) fn git_dir_of(&self, dir: &Path) -> Result<PathBuf, Error> {
        if Some(dir) == self.main.as_deref() {
            return Ok(self.common_dir.clone());
        }
        let link = dir.join(".git");
        let text = regular_file::read(&link, regular_file::SETTINGS, Links::Follow);
        let text = text.map_err(Error::io("read", &link))?;
        let text = text.strip_prefix(b"gitdir: ").unwrap_or(&text);
        let target = dir.join(super::RepoPath::new(text.trim_ascii_end()).under(Path::new("")));
        let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        // Where git puts them nothing has to be resolved.
        let all = self.common_dir.join("worktrees");
        let usual = target.parent() == Some(&all) && target.file_name().is_some();
        Ok(if usual && is_folder(&all) && is_folder(&target) { target } else { real(&target) })
    }
}

/// The path with links resolved, or as it is when it cannot be.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Whether git uses bare repositories only where they are named.
fn is_explicit(gix: &gix::Repository) -> bool {
    gix.config_snapshot().string("safe.bareRepository").is_some_and(|v| v.as_slice() == b"explicit")
}

/// `GIT_DIR` and `GIT_WORK_TREE` may bring a worktree and somebody else's repository together. Every call of git here
/// finds the repository by its folder, so that has to be the same one.
fn refuse_mixture(program: &Program, worktree: Option<&Path>, common_dir: &Path) -> Result<(), Error> {
    let set =
        ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"].iter().any(|name| std::env::var_os(name).is_some());
    let (true, Some(dir)) = (set, worktree) else { return Ok(()) };
    let found = program.in_dir(dir).args(["rev-parse", "--git-common-dir"]).run();
    let found = found.map(|mut out| {
        out.stdout.pop_if(|last| *last == b'\n');
        real(&super::RepoPath::new(out.stdout).under(dir))
    });
    let mixed = || Err(Error::Mixture { dir: dir.to_owned(), git_dir: common_dir.to_owned() });
    match found {
        Ok(found) if found == common_dir => Ok(()),
        Err(e) => match ownership::refusal(e, dir) {
            e @ Error::Untrusted { .. } => Err(e),
            _ => mixed(),
        },
        Ok(_) => mixed(),
    }
}

/// Prefers git's own words: it knows about ownership, formats and broken links.
fn no_repository(program: &Program, dir: &Path) -> Error {
    let by_git = program.in_dir(dir).args(["rev-parse", "--git-common-dir"]).run();
    match by_git {
        Err(e @ Error::Command { .. }) if !e.to_string().contains("not a git repository") => {
            ownership::refusal(e, dir)
        }
        _ => {
            let named = std::env::var_os("GIT_DIR").map(PathBuf::from);
            let by_variable = named.is_some();
            Error::NoRepository { dir: named.unwrap_or_else(|| dir.to_owned()), by_variable }
        }
    }
}
