//! Owns looking over what git keeps, for whoever checks it: registrations, broken refs, missing objects, left lock files.

use std::path::{Path, PathBuf};

use super::head_file::read_head;
use super::refs::holds_nothing;
use super::{Error, Head, Oid, Program, Repo, RepoPath, version::Version};

/// Hooks that run for what happens in lanes and for landings.
const HOOKS: &[&str] = &[
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "post-checkout",
    "post-merge",
    "pre-auto-gc",
    "reference-transaction",
];

/// How deep below the git directory lock files are looked for.
const DEPTH: usize = 12;

/// How git has one linked worktree on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Registration {
    /// The name of its admin folder.
    pub(crate) id: String,
    /// The admin folder.
    pub(crate) admin: PathBuf,
    /// The top of the worktree, as the admin folder names it.
    pub(crate) path: PathBuf,
    /// The branch its HEAD names, without `refs/heads/`; none when detached or not known.
    pub(crate) branch: Option<String>,
    /// Whether `git worktree lock` holds it.
    pub(crate) locked: bool,
}

/// What the git program on `PATH` is: `(version, what only a newer one can)`.
pub(crate) fn installed(dir: &Path) -> Result<(String, Vec<&'static str>), Error> {
    let version = Version::of(&Program::find()?, dir)?.require()?;
    let mut lacks = Vec::new();
    if !version.has_symref_verbs() {
        lacks.push("previews in reftable repositories (2.46)");
    }
    if !version.has_attr_source() {
        lacks.push("attributes of the base in a landing without its checkout (2.41)");
    }
    Ok((version.to_string(), lacks))
}

impl Repo {
    /// Every linked worktree that git has on record, readable or not.
    pub(crate) fn registrations(&self) -> Vec<Registration> {
        let Ok(entries) = std::fs::read_dir(self.common_dir().join("worktrees")) else { return Vec::new() };
        let mut out: Vec<Registration> = entries
            .flatten()
            .filter(|e| e.path().is_dir())
            .map(|entry| {
                let admin = entry.path();
                let text = std::fs::read(admin.join("gitdir")).unwrap_or_default();
                let link = RepoPath::new(text.trim_ascii_end()).under(&admin);
                let path = link
                    .parent()
                    .map_or_else(PathBuf::new, |top| top.canonicalize().unwrap_or_else(|_| top.to_owned()));
                let head = read_head(&admin).unwrap_or_default();
                let branch = head.strip_prefix("ref: refs/heads/").map(ToOwned::to_owned);
                Registration {
                    id: entry.file_name().to_string_lossy().into_owned(),
                    locked: admin.join("locked").exists(),
                    branch: branch.filter(|b| b != ".invalid"),
                    admin,
                    path,
                }
            })
            .collect();
        out.sort_by(|a, b| a.id.cmp(&b.id));
        out
    }

    /// What HEAD of the main checkout names; none when it names no commit that is there.
    pub(crate) fn main_head(&self) -> Option<Head> {
        let main = self.main_worktree()?;
        if let Some(branch) = self.head_branch(main, self.common_dir()).ok()? {
            return Some(Head::Branch(branch));
        }
        self.head_of(main).ok()?.map(Head::Detached)
    }

    /// Refs below these prefixes whose file holds no id. An empty one is what a power cut leaves.
    pub(crate) fn broken_refs(&self, prefixes: &[String]) -> Vec<String> {
        let mut out = Vec::new();
        if self.is_reftable() {
            return out;
        }
        for prefix in prefixes {
            walk(&self.common_dir().join(prefix), DEPTH, &mut |path| {
                let name = path.strip_prefix(self.common_dir()).unwrap_or(path).to_string_lossy();
                if holds_nothing(path) && !is_lock(path) {
                    out.push(name.into_owned());
                }
            });
        }
        out.sort();
        out
    }

    /// A git setting as text; none when unset.
    pub(crate) fn setting_text(&self, key: &str) -> Option<String> {
        self.gix.config_snapshot().string(key).map(|value| value.to_string())
    }

    /// All values of a git setting that may have several.
    pub(super) fn setting_texts(&self, key: &str) -> Vec<String> {
        let values = self.gix.config_snapshot().strings(key).unwrap_or_default();
        values.iter().map(ToString::to_string).collect()
    }

    /// Remotes that a push sends every ref to, those of git-proq included.
    pub(crate) fn mirrors(&self) -> Vec<String> {
        let config = self.gix.config_snapshot();
        let mut out = Vec::new();
        for section in config.sections_by_name("remote").into_iter().flatten() {
            let Some(name) = section.header().subsection_name().map(ToString::to_string) else { continue };
            let specs = section.body().values("push");
            let pushes =
                specs.iter().any(|spec| spec.strip_prefix(b"+").unwrap_or(spec).starts_with(b"refs/*"));
            let mirror = config.boolean(format!("remote.{name}.mirror").as_str()) == Some(true);
            if (mirror || pushes) && !out.contains(&name) {
                out.push(name);
            }
        }
        out
    }

    /// The repository's hooks that run for what happens in lanes.
    pub(crate) fn hooks(&self) -> Vec<&'static str> {
        use std::os::unix::fs::PermissionsExt;
        let folder = match self.gix.config_snapshot().trusted_path("core.hooksPath") {
            Ok(Some(path)) => self.home().join(path),
            _ => self.common_dir().join("hooks"),
        };
        let runs = |name: &&&str| {
            let meta = std::fs::metadata(folder.join(name));
            meta.is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
        };
        HOOKS.iter().filter(runs).copied().collect()
    }

    /// Whether an object is there.
    pub(crate) fn has_object(&self, id: Oid) -> bool {
        gix::objs::Exists::exists(&self.gix.objects, &id.0)
    }

    /// Whether objects may be missing on purpose, because a remote keeps them.
    pub(crate) fn is_partial(&self) -> bool {
        self.setting_text("extensions.partialClone").is_some()
    }

    /// Objects that `tips` lead to, that `known` do not, and that are not there. One call for all of them.
    pub(crate) fn missing_objects(&self, tips: &[Oid], known: &[Oid]) -> Result<Vec<String>, Error> {
        if tips.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = tips.iter().map(ToString::to_string);
        let hidden = known.iter().map(|id| format!("^{id}"));
        let lines: Vec<String> = wanted.chain(hidden).collect();
        let out = self
            .git()
            .args(["rev-list", "--objects", "--quiet", "--missing=print", "--stdin"])
            .env("GIT_NO_LAZY_FETCH", "1")
            .input(format!("{}\n", lines.join("\n")))
            .run()?;
        let text = String::from_utf8_lossy(&out.stdout);
        Ok(text.lines().filter_map(|l| l.strip_prefix('?')).map(ToOwned::to_owned).collect())
    }

    /// Lock files of git's own below the git directory. Those of git-proq are kernel locks and lie elsewhere.
    pub(crate) fn lock_files(&self) -> Vec<PathBuf> {
        let common = self.common_dir();
        let mut out = Vec::new();
        let mut add = |path: &Path| {
            if is_lock(path) {
                out.push(path.to_owned());
            }
        };
        // Not deeper where nothing but objects, logs and submodules lie.
        walk(common, 0, &mut add);
        walk(&common.join("worktrees"), 1, &mut add);
        for folder in ["refs", "reftable"] {
            walk(&common.join(folder), DEPTH, &mut add);
        }
        out.sort();
        out
    }
}

/// What a program of this name has written into a lock file: the process id that git-proq marks its own with.
pub(crate) fn lock_owner(path: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(path).ok()?;
    text.strip_prefix("git-proq ")?.lines().next()?.trim().parse().ok()
}

fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "lock")
}

/// Every file below a folder, so many folders deep. Links are not followed.
fn walk(dir: &Path, depth: usize, each: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => walk(&entry.path(), depth - 1, each),
            Ok(kind) if kind.is_file() => each(&entry.path()),
            _ => {}
        }
    }
}

/// Whether git finds a repository from here, of whatever kind.
pub(crate) fn knows_repository(dir: &Path) -> bool {
    let found = Program::find().and_then(|git| {
        git.in_dir(dir).env("GIT_CEILING_DIRECTORIES", "").args(["rev-parse", "--git-dir"]).run()
    });
    found.is_ok()
}
