//! Owns a worktree that belongs to nobody and to no branch: it is brought to whatever commit is asked for, and keeps what
//! git ignores in it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::path::nul_separated;
use super::pristine::{is_kept, is_real_folder, sweep, unblock};
use super::{Command, Error, Head, Oid, Repo, RepoPath, worktree};

/// Hooks of the repository are for people's checkouts.
const NO_HOOKS: [&str; 2] = ["-c", "core.hooksPath=/dev/null"];

/// Settings that leave files out of the worktree or out of sight, or split the index. Whatever is set, each file that was written to
/// since git wrote it is one that differs.
const WHOLE: [&str; 14] = [
    "-c",
    "core.sparseCheckout=false",
    "-c",
    "core.splitIndex=false",
    "-c",
    "core.untrackedCache=false",
    "-c",
    "core.ignoreStat=false",
    "-c",
    "core.trustctime=true",
    "-c",
    "core.checkStat=default",
    "-c",
    "index.sparse=false",
];

/// What git shows of a worktree.
struct Shown {
    /// Whether anything differs from HEAD, or is untracked. Submodules are not looked into.
    differs: bool,
    /// What it ignores: files, and folders as a whole.
    ignored: HashSet<RepoPath>,
}

impl Repo {
    /// Makes such a worktree, without files yet. Nothing may be in its place.
    pub(crate) fn add_warm(&self, path: &Path, commit: Oid) -> Result<(), Error> {
        worktree::add(self.git().args(NO_HOOKS), path, &Head::Detached(commit))?;
        // git hands the patterns of a sparse checkout on; checks are about the whole tree.
        let admin = self.git_dir_of(path)?;
        if admin.join("config.worktree").exists() {
            let unset = ["config", "--worktree", "--unset-all", "core.sparseCheckout"];
            self.git_in(path).args(unset).changes().accept(&[5]).run()?;
        }
        match std::fs::remove_file(admin.join("info/sparse-checkout")) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &admin)(e)),
            _ => Repo::note_settings(&admin),
        }
    }

    /// Whether the folder at `path` is a worktree of this repository, by what both sides say, and it is known how it was before
    /// commands ran in it.
    pub(crate) fn is_sound_worktree(&self, path: &Path) -> bool {
        self.kept_dir_of(path).is_ok_and(|admin| self.is_known(path, &admin))
    }

    /// Whether the folder at `path` is such a worktree, by what both sides say. Its `.git` may name any other one.
    pub(crate) fn is_kept_worktree(&self, path: &Path) -> bool {
        self.kept_dir_of(path).is_ok()
    }

    /// The git directory of such a worktree.
    ///
    /// # Errors
    /// When the folder at `dir` is none.
    fn kept_dir_of(&self, dir: &Path) -> Result<PathBuf, Error> {
        let admin = self.git_dir_of(dir)?;
        match self.is_in_place(dir) && is_kept(&admin) {
            true => Ok(admin),
            false => Err(Error::io("use the worktree", dir)(std::io::ErrorKind::InvalidData.into())),
        }
    }

    /// A call of git that works in this folder and with this git directory, wherever settings or the folder's `.git` lead by now.
    pub(super) fn git_bound(&self, dir: &Path, admin: &Path) -> Command {
        self.git_in(dir).env("GIT_DIR", admin).env("GIT_WORK_TREE", dir).args(NO_HOOKS)
    }

    /// Makes it the same as a new worktree of a commit, HEAD detached, except that what git ignores stays. Commands may have run in it
    /// and have changed whatever they like.
    ///
    /// # Errors
    /// When that could not be done: it is to be made anew then.
    pub(crate) fn bring_to(&self, dir: &Path, commit: Oid) -> Result<(), Error> {
        let admin = self.kept_dir_of(dir)?;
        let before = self.forget_state(&admin)?;
        let mut others = Vec::new();
        if before.is_some() {
            let named = self.named_in(&admin)?;
            named.empty_submodules(dir)?;
            others = named.clear_rules(dir, &|path| self.has_folder(commit, path))?;
        }
        self.detach(dir, commit)?;
        self.reset(dir, &admin)?;
        let named = self.named_in(&admin)?;
        let form = self.form(dir, &named)?;
        if before.is_some_and(|before| before != form) {
            self.write_anew(dir, &admin)?;
        }
        named.empty_submodules(dir)?;
        unblock(dir, &self.unignored(dir, &admin, others)?)?;
        self.git_bound(dir, &admin).args(WHOLE).args(["clean", "-ffdq"]).changes().run()?;
        named.make_submodules(dir)?;
        let mut shown = self.shown(dir, &admin)?;
        if shown.differs {
            // Its filters never give what they take.
            self.write_anew(dir, &admin)?;
            shown = self.shown(dir, &admin)?;
        }
        sweep(dir, &shown.ignored, &named)?;
        Repo::keep_state(&admin, &form)
    }

    /// Sets HEAD to a commit, whatever branch somebody has switched to.
    pub(crate) fn detach(&self, dir: &Path, commit: Oid) -> Result<(), Error> {
        let call = self.git_bound(dir, &self.kept_dir_of(dir)?).args(["update-ref", "--no-deref", "HEAD"]);
        call.arg(commit.to_string()).changes().run().map(drop)
    }

    /// The commit that HEAD of a worktree is at, if it names no branch.
    pub(crate) fn detached_head(&self, dir: &Path) -> Result<Option<Oid>, Error> {
        let git_dir = self.git_dir_of(dir)?;
        Ok(match self.head_in(dir, &git_dir)? {
            Some(Head::Detached(commit)) => Some(commit),
            Some(Head::Branch(_)) | None => None,
        })
    }

    /// The folders that are still there, and that git does not ignore.
    fn unignored(
        &self,
        dir: &Path,
        admin: &Path,
        mut folders: Vec<RepoPath>,
    ) -> Result<Vec<RepoPath>, Error> {
        folders.retain(|path| is_real_folder(&path.under(dir)));
        if folders.is_empty() {
            return Ok(folders);
        }
        let call = self.git_bound(dir, admin).args(WHOLE);
        // A name that begins with a colon is no pattern then.
        let from_here = |path: &RepoPath| RepoPath::new([b"./", path.as_bytes()].concat());
        let asked: Vec<RepoPath> = folders.iter().map(from_here).collect();
        let call = call.args(["check-ignore", "-z", "--stdin"]).input(nul_separated(&asked));
        let out = call.accept(&[1]).changes().run()?;
        let ignored: HashSet<RepoPath> = out.fields().map(RepoPath::new).collect();
        folders.retain(|path| !ignored.contains(&from_here(path)));
        Ok(folders)
    }

    fn reset(&self, dir: &Path, admin: &Path) -> Result<(), Error> {
        let call = self.git_bound(dir, admin).args(WHOLE).args(["reset", "--hard", "--quiet"]);
        call.changes().run().map(drop)
    }

    /// Writes all tracked files once more.
    fn write_anew(&self, dir: &Path, admin: &Path) -> Result<(), Error> {
        let index = admin.join("index");
        std::fs::remove_file(&index).map_err(Error::io("remove", &index))?;
        self.reset(dir, admin)
    }

    fn shown(&self, dir: &Path, admin: &Path) -> Result<Shown, Error> {
        let args = ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal"];
        let more = ["--ignored=matching", "--ignore-submodules=all"];
        let out = self.git_bound(dir, admin).args(WHOLE).args(args).args(more).changes().run()?;
        let ignored = out.fields().filter_map(|line| line.strip_prefix(b"!! "));
        let ignored: HashSet<_> =
            ignored.map(|path| RepoPath::new(path.strip_suffix(b"/").unwrap_or(path))).collect();
        Ok(Shown { differs: out.fields().any(|line| !line.starts_with(b"!! ")), ignored })
    }
}
