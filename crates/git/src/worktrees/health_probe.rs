//! Health probes of git's own data: worktree registrations, broken refs, missing objects, leftover lock
//! files.

use std::path::{Path, PathBuf};

use crate::base::head::Head;
use crate::program::command::Program;
use crate::program::version::Version;
use crate::references::refs::is_broken_ref_file;
use crate::repository::head_file::read_head;
use crate::{Error, Oid, Repo, RepoPath};

/// Names of the git hooks that run in lanes and at landings.
const LANE_HOOKS: &[&str] = &[
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "post-checkout",
    "post-merge",
    "pre-auto-gc",
    "reference-transaction",
];

/// Maximum depth to which folders with refs are searched for lock files and broken refs.
const MAX_REF_FOLDER_DEPTH: usize = 12;

/// git's record of one linked worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeRegistration {
    /// Name of the admin folder.
    pub id: String,
    /// Path of the admin folder.
    pub admin_dir: PathBuf,
    /// Top of the worktree, as the admin folder names it.
    pub path: PathBuf,
    /// Branch that HEAD names, without `refs/heads/`; none when detached or unknown.
    pub branch: Option<String>,
    /// Whether `git worktree lock` locked the worktree.
    pub locked: bool,
}

/// Returns the version of the git program on `PATH`, and descriptions of the features that only a newer git
/// has.
///
/// # Errors
/// Fails if git is missing or too old.
pub fn installed_git(dir: &Path) -> Result<(String, Vec<&'static str>), Error> {
    let version = Version::detect(&Program::find()?, dir)?.require_supported()?;
    let mut missing_features = Vec::new();
    if !version.has_symref_verbs() {
        missing_features.push("previews in reftable repositories (2.46)");
    }
    if !version.has_attr_source() {
        missing_features.push("attributes of the base in a landing without its checkout (2.41)");
    }
    Ok((version.to_string(), missing_features))
}

impl Repo {
    /// Returns every linked worktree that git has on record, readable or not.
    pub fn worktree_registrations(&self) -> Vec<WorktreeRegistration> {
        let Ok(entries) = std::fs::read_dir(self.common_dir().join("worktrees")) else { return Vec::new() };
        let mut out: Vec<WorktreeRegistration> = entries
            .flatten()
            .filter(|e| e.path().is_dir())
            .map(|entry| {
                let admin_dir = entry.path();
                let text = std::fs::read(admin_dir.join("gitdir")).unwrap_or_default();
                let link = RepoPath::new(text.trim_ascii_end()).to_fs_path(&admin_dir);
                let path = link
                    .parent()
                    .map_or_else(PathBuf::new, |top| top.canonicalize().unwrap_or_else(|_| top.to_owned()));
                let head = read_head(&admin_dir).unwrap_or_default();
                let branch = head.strip_prefix("ref: refs/heads/").map(ToOwned::to_owned);
                WorktreeRegistration {
                    id: entry.file_name().to_string_lossy().into_owned(),
                    locked: admin_dir.join("locked").exists(),
                    branch: branch.filter(|b| b != ".invalid"),
                    admin_dir,
                    path,
                }
            })
            .collect();
        out.sort_by(|a, b| a.id.cmp(&b.id));
        out
    }

    /// Returns the HEAD of the main checkout; none when it refers to no existing commit.
    pub fn main_head(&self) -> Option<Head> {
        let main_dir = self.main_worktree()?;
        if let Some(branch) = self.head_branch(main_dir, self.common_dir()).ok()? {
            return Some(Head::Branch(branch));
        }
        self.head_commit(main_dir).ok()?.map(Head::Detached)
    }

    /// Returns the names of loose refs below `prefixes` whose file holds no id. A power failure leaves an
    /// empty file.
    pub fn broken_refs(&self, prefixes: &[String]) -> Vec<String> {
        let mut out = Vec::new();
        if self.is_reftable() {
            return out;
        }
        for prefix in prefixes {
            visit_files(&self.common_dir().join(prefix), MAX_REF_FOLDER_DEPTH, &mut |path| {
                let name = path.strip_prefix(self.common_dir()).unwrap_or(path).to_string_lossy();
                if is_broken_ref_file(path) && !is_lock(path) {
                    out.push(name.into_owned());
                }
            });
        }
        out.sort();
        out
    }

    /// Returns the names of the remotes to which a push sends every ref, including git-proq's private refs.
    pub fn mirror_remotes(&self) -> Vec<String> {
        let config = self.gix.config_snapshot();
        let mut out = Vec::new();
        for section in config.sections_by_name("remote").into_iter().flatten() {
            let Some(name) = section.header().subsection_name().map(ToString::to_string) else { continue };
            let specs = section.body().values("push");
            let pushes_all_refs =
                specs.iter().any(|spec| spec.strip_prefix(b"+").unwrap_or(spec).starts_with(b"refs/*"));
            let is_mirror = config.boolean(format!("remote.{name}.mirror").as_str()) == Some(true);
            if (is_mirror || pushes_all_refs) && !out.contains(&name) {
                out.push(name);
            }
        }
        out
    }

    /// Returns the names of the repository's executable hooks that git runs in lanes and at landings.
    pub fn lane_hooks(&self) -> Vec<&'static str> {
        use std::os::unix::fs::PermissionsExt;
        let folder = match self.gix.config_snapshot().trusted_path("core.hooksPath") {
            Ok(Some(path)) => self.command_dir().join(path),
            _ => self.common_dir().join("hooks"),
        };
        let is_runnable = |name: &&&str| {
            let meta = std::fs::metadata(folder.join(name));
            meta.is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
        };
        LANE_HOOKS.iter().filter(is_runnable).copied().collect()
    }

    /// Returns whether the repository is a partial clone, in which objects may be missing because a remote
    /// has them.
    pub fn is_partial_clone(&self) -> bool {
        self.setting_text("extensions.partialClone").is_some()
    }

    /// Returns missing objects that are reachable from `tips` and not from `known`, in one call of git.
    pub fn missing_objects(&self, tips: &[Oid], known: &[Oid]) -> Result<Vec<String>, Error> {
        if tips.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = tips.iter().map(ToString::to_string);
        let excluded = known.iter().map(|id| format!("^{id}"));
        let lines: Vec<String> = wanted.chain(excluded).collect();
        let out = self
            .git()
            .args(["rev-list", "--objects", "--quiet", "--missing=print", "--stdin"])
            .env("GIT_NO_LAZY_FETCH", "1")
            .input(format!("{}\n", lines.join("\n")))
            .run()?;
        let text = String::from_utf8_lossy(&out.stdout);
        Ok(text.lines().filter_map(|l| l.strip_prefix('?')).map(ToOwned::to_owned).collect())
    }

    /// Returns git's lock files below the git directory. git-proq's own locks are kernel locks in other
    /// files.
    pub fn lock_files(&self) -> Vec<PathBuf> {
        let common = self.common_dir();
        let mut out = Vec::new();
        let mut add_lock = |path: &Path| {
            if is_lock(path) {
                out.push(path.to_owned());
            }
        };
        // Folders with only objects, logs and submodules are not searched.
        visit_files(common, 0, &mut add_lock);
        visit_files(&common.join("worktrees"), 1, &mut add_lock);
        for folder in ["refs", "reftable"] {
            visit_files(&common.join(folder), MAX_REF_FOLDER_DEPTH, &mut add_lock);
        }
        out.sort();
        out
    }
}

/// Returns the process id in a lock file that git-proq wrote; none in other lock files.
pub fn lock_owner_pid(path: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(path).ok()?;
    text.strip_prefix("git-proq ")?.lines().next()?.trim().parse().ok()
}

fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "lock")
}

/// Visits every file below a folder, down to `depth` folders. Links are not followed.
fn visit_files(dir: &Path, depth: usize, visit: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => visit_files(&entry.path(), depth - 1, visit),
            Ok(kind) if kind.is_file() => visit(&entry.path()),
            _ => {}
        }
    }
}

/// Returns whether git finds a repository of any kind from this folder.
pub fn is_in_repository(dir: &Path) -> bool {
    let found = Program::find().and_then(|git| {
        git.command_in(dir).env("GIT_CEILING_DIRECTORIES", "").args(["rev-parse", "--git-dir"]).run()
    });
    found.is_ok()
}
