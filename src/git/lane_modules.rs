//! Owns giving a new worktree the submodules that the main checkout has: copies of its repositories, without any network, and
//! what of theirs is in no other place.

use std::path::{Path, PathBuf};

use super::head_file::has_head;
use super::{Error, Oid, Repo, RepoPath};

/// The ref in a copy that names the commit which the worktree was made with: it is nobody's work.
const START: &str = "refs/proq/start";

/// A submodule whose folder is left as git leaves it, empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftEmpty {
    /// Its folder, from the top of the worktree.
    pub(crate) path: String,
    /// Why.
    pub(crate) why: String,
}

/// A checkout whose submodules are to be had, and where those of the main checkout are.
struct Level {
    /// Its top.
    dir: PathBuf,
    /// Its own git directory.
    git_dir: PathBuf,
    /// The git directory of what it was copied from.
    origin: PathBuf,
    /// What its paths begin with, seen from the top of the worktree.
    prefix: String,
}

/// A submodule of a commit.
struct Module {
    name: String,
    path: RepoPath,
    commit: Oid,
}

impl Repo {
    /// Gives the worktree at `dir`, which is new, its submodules; with `recursive`, theirs too: which it got, and which stay empty,
    /// since the main checkout has not got them.
    ///
    /// # Errors
    /// When what is in the worktree cannot be found out.
    pub(crate) fn copy_submodules(
        &self,
        dir: &Path,
        recursive: bool,
    ) -> Result<(Vec<String>, Vec<LeftEmpty>), Error> {
        let (mut given, mut left) = (Vec::new(), Vec::new());
        let top = Level {
            dir: dir.to_owned(),
            git_dir: self.git_dir_of(dir)?,
            origin: self.common_dir().to_owned(),
            prefix: String::new(),
        };
        let mut levels = vec![top];
        while let Some(level) = levels.pop() {
            for module in self.modules_of(&level, &mut left)? {
                let path = level.shown(&module.path);
                match self.copy_module(&level, &module) {
                    Ok(below) => {
                        given.push(path);
                        levels.extend(recursive.then_some(below));
                    }
                    Err(why) => left.push(LeftEmpty { path, why }),
                }
            }
        }
        Ok((given, left))
    }

    /// The submodules of a checkout whose folders are there, by what its index and the `.gitmodules` in it say.
    fn modules_of(&self, level: &Level, left: &mut Vec<LeftEmpty>) -> Result<Vec<Module>, Error> {
        let staged = self.git_in(&level.dir).args(["ls-files", "--stage", "-z"]).run()?;
        let mut links = Vec::new();
        let mut listed = false;
        for field in staged.fields() {
            let Some(at) = field.iter().position(|b| *b == b'\t') else { continue };
            let path = RepoPath::new(&field[at + 1..]);
            let mut words = field[..at].split(|b| *b == b' ');
            let (mode, id) = (words.next().unwrap_or_default(), words.next().and_then(Oid::from_hex));
            listed |= path.as_bytes() == b".gitmodules" && mode.starts_with(b"100");
            if let (b"160000", Some(commit)) = (mode, id)
                && is_empty_folder(&level.dir, &path)
            {
                links.push((path, commit));
            }
        }
        if links.is_empty() {
            return Ok(Vec::new());
        }
        let names = if listed { self.names_of(level) } else { Vec::new() };
        let mut modules = Vec::new();
        for (path, commit) in links {
            match names.iter().find(|(_, at)| *at == path) {
                Some((name, _)) => modules.push(Module { name: name.clone(), path, commit }),
                None => left.push(LeftEmpty {
                    path: level.shown(&path),
                    why: "its commit has no entry for it in .gitmodules".to_owned(),
                }),
            }
        }
        Ok(modules)
    }

    /// Names and paths in the `.gitmodules` that is staged; none where git cannot read it.
    fn names_of(&self, level: &Level) -> Vec<(String, RepoPath)> {
        let list = ["config", "--blob", ":.gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$"];
        let Ok(listed) = self.git_in(&level.dir).args(list).run() else { return Vec::new() };
        let entry = |field: &[u8]| {
            let at = field.iter().position(|b| *b == b'\n')?;
            let key = std::str::from_utf8(&field[..at]).ok()?;
            let name = key.strip_prefix("submodule.")?.strip_suffix(".path")?;
            Some((name.to_owned(), RepoPath::new(&field[at + 1..])))
        };
        listed.fields().filter_map(entry).collect()
    }

    /// Copies one, and checks its commit out. Nothing is left of it where that fails.
    fn copy_module(&self, level: &Level, module: &Module) -> Result<Level, String> {
        if !is_safe_name(&module.name) {
            return Err("its name in .gitmodules is none that git takes".to_owned());
        }
        let origin = module_dir(&level.origin, &module.name);
        let git_dir = module_dir(&level.git_dir, &module.name);
        let nested = |dir: &Path| dir.join("HEAD").symlink_metadata().is_ok();
        let modules = level.git_dir.join("modules");
        if git_dir.ancestors().take_while(|dir| *dir != modules).any(nested)
            || git_dir.symlink_metadata().is_ok()
        {
            return Err("its repository would lie in that of another one".to_owned());
        }
        let Some(origin) = real_repository(&level.origin, &origin) else {
            return Err(
                "the main checkout has not got it; there: git submodule update --init --recursive".to_owned()
            );
        };
        let commit = module.commit.to_string();
        let there = self.in_module(&origin).args(["cat-file", "-e", &format!("{commit}^{{commit}}")]).run();
        if there.is_err() {
            return Err(format!("its commit {} is not in the main checkout's", module.commit.short()));
        }
        if self.setting_of(&origin, "extensions.partialClone").is_some() {
            return Err("the main checkout's is a partial clone".to_owned());
        }
        let dir = module.path.under(&level.dir);
        let below = Level { prefix: format!("{}/", level.shown(&module.path)), dir, git_dir, origin };
        self.clone_module(&below, &commit).inspect_err(|_| below.empty()).map_err(|e| e.to_string())?;
        Ok(below)
    }

    fn clone_module(&self, below: &Level, commit: &str) -> Result<(), Error> {
        let Level { dir, git_dir, origin, .. } = below;
        if let Some(above) = git_dir.parent() {
            std::fs::create_dir_all(above).map_err(Error::io("create", above))?;
        }
        let clone =
            self.git_in(dir).args(["clone", "--quiet", "--local", "--no-checkout", "--separate-git-dir"]);
        clone.arg(git_dir).arg("--").arg(origin).arg(dir).changes().run()?;
        // What remotes have is what the main checkout's knows of them, not what its own branches are at.
        let quiet =
            ["-c", "gc.auto=0", "-c", "maintenance.auto=false", "fetch", "--quiet", "--no-tags", "--prune"];
        let fetch =
            self.git_in(dir).args(quiet).args(["--no-recurse-submodules", "--no-write-fetch-head", "--"]);
        fetch.arg(origin).args(["+refs/remotes/*:refs/remotes/*", "^refs/remotes/*/HEAD"]).changes().run()?;
        let branch =
            self.git_in(dir).args(["symbolic-ref", "--quiet", "--short", "HEAD"]).accept(&[1]).run()?;
        // What git-lfs has of it is not copied, and would come from the network.
        let checkout = self.git_in(dir).env("GIT_LFS_SKIP_SMUDGE", "1");
        checkout.args(["checkout", "--quiet", "--force", "--detach", commit]).changes().run()?;
        let branch = branch.line();
        if !branch.is_empty() {
            self.git_in(dir)
                .args(["branch", "--quiet", "-D", "--"])
                .arg(branch)
                .accept(&[1])
                .changes()
                .run()?;
        }
        self.git_in(dir).args(["update-ref", START, commit]).changes().run()?;
        self.take_over(below)
    }

    /// Gives a copy the settings by which its origin reaches its remote and its own submodules.
    fn take_over(&self, below: &Level) -> Result<(), Error> {
        let remote = self.setting_of(&below.origin, "remote.origin.url").filter(|url| is_safe_url(url));
        let set = |key: &str, value: &str| {
            self.git_in(&below.dir).args(["config", "--local", key, value]).changes().run().map(drop)
        };
        match remote {
            Some(url) => set("remote.origin.url", &url)?,
            None => drop(self.git_in(&below.dir).args(["remote", "remove", "origin"]).changes().run()?),
        }
        let known = self
            .in_module(&below.origin)
            .args(["config", "-z", "--local", "--get-regexp", r"^submodule\..*\.(url|active)$"])
            .accept(&[1])
            .run()?;
        for field in known.fields() {
            let text = String::from_utf8_lossy(field);
            if let Some((key, value)) = text.split_once('\n').filter(|(_, value)| is_safe_url(value)) {
                set(key, value)?;
            }
        }
        Ok(())
    }

    fn setting_of(&self, git_dir: &Path, key: &str) -> Option<String> {
        let asked = self.in_module(git_dir).args(["config", "--local", "--get", key]).run();
        asked.ok().map(|out| out.line()).filter(|value| !value.is_empty())
    }

    /// A call in a submodule's repository, wherever its folder is.
    fn in_module(&self, git_dir: &Path) -> super::Command {
        self.git_in(git_dir).env("GIT_DIR", git_dir)
    }

    /// Submodules that were set up in a worktree and have commits that neither a remote of theirs nor the main checkout's has, by
    /// name. They live in its git directory and go with it.
    pub(crate) fn own_submodule_commits(&self, git_dir: &Path) -> Vec<String> {
        let modules = git_dir.join("modules");
        let mut found = Vec::new();
        let mut folders = vec![modules.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let dir = entry.path();
                if !has_head(&dir) || !dir.join("objects").is_dir() {
                    if dir.is_dir() {
                        folders.push(dir);
                    }
                    continue;
                }
                folders.push(dir.join("modules"));
                let name = dir.strip_prefix(&modules).unwrap_or(&dir);
                let origin = self.common_dir().join("modules").join(name);
                // One that cannot be asked may have some.
                if self.has_own_commits(&dir, &origin).unwrap_or(true) {
                    found.push(name.display().to_string());
                }
            }
        }
        found
    }

    fn has_own_commits(&self, git_dir: &Path, origin: &Path) -> Result<bool, Error> {
        let mut known = Vec::new();
        if has_head(origin) {
            let mut tips =
                self.in_module(origin).args(["for-each-ref", "--format=%(objectname)"]).run()?.stdout;
            let head = self
                .in_module(origin)
                .args(["rev-parse", "--verify", "--quiet", "HEAD"])
                .accept(&[1])
                .run()?;
            tips.extend(head.stdout);
            let look = ["cat-file", "--batch-check=%(objecttype) %(objectname)"];
            let looked = self.in_module(git_dir).args(look).input(tips).run()?;
            for line in looked.stdout.split(|b| *b == b'\n') {
                if let Some(id) = line.strip_prefix(b"commit ") {
                    known.extend([b"^", id, b"\n"].concat());
                }
            }
        }
        let own = ["rev-list", "--max-count=1", "--stdin", "--all", "HEAD", "--not", "--remotes"];
        let own = self.in_module(git_dir).args(own).arg(format!("--glob={START}*")).input(known).run()?;
        Ok(!own.stdout.is_empty())
    }
}

impl Level {
    fn shown(&self, path: &RepoPath) -> String {
        format!("{}{path}", self.prefix)
    }

    /// Takes away what was begun.
    fn empty(&self) {
        drop(std::fs::remove_dir_all(&self.git_dir));
        for entry in std::fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let path = entry.path();
            drop(match entry.file_type() {
                Ok(kind) if kind.is_dir() => std::fs::remove_dir_all(&path),
                _ => std::fs::remove_file(&path),
            });
        }
    }
}

fn module_dir(git_dir: &Path, name: &str) -> PathBuf {
    git_dir.join("modules").join(name)
}

/// Whether a name stays below `modules/`, by git's own rule and a bit more.
fn is_safe_name(name: &str) -> bool {
    let fits = |part: &str| !part.is_empty() && part != "." && part != "..";
    !name.starts_with('-') && !name.contains(['\\', '\0', '\n']) && name.split('/').all(fits)
}

fn is_safe_url(url: &str) -> bool {
    !url.starts_with('-') && !url.contains(['\n', '\0'])
}

/// The repository at a place below another one's git directory, if there is one and no link leads to it.
fn real_repository(above: &Path, dir: &Path) -> Option<PathBuf> {
    let found = dir.canonicalize().ok()?;
    let expected = above.canonicalize().ok()?.join(dir.strip_prefix(above).ok()?);
    (found == expected && has_head(&found) && found.join("objects").is_dir()).then_some(found)
}

/// Whether a path leads to a folder in which nothing is, and no link is on the way.
fn is_empty_folder(top: &Path, path: &RepoPath) -> bool {
    let dir = path.under(top);
    let real = |dir: &Path| dir.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    dir.ancestors().take_while(|dir| *dir != top).all(real)
        && std::fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_that_lead_elsewhere_are_not_taken() {
        for good in ["lib", "a/b", "with space", "..x", "x.."] {
            assert!(is_safe_name(good), "{good}");
        }
        for bad in ["", "..", "../x", "a/../b", "a//b", "/a", "a/", "-x", "a\\..\\b", "."] {
            assert!(!is_safe_name(bad), "{bad}");
        }
        assert!(is_safe_url("https://example.org/x") && !is_safe_url("-u./x") && !is_safe_url("a\nb"));
    }
}
