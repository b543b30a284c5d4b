//! Submodules of a new worktree: copies of the main checkout's submodule repositories, without network
//! access, and detection of commits that exist only there.

use std::path::{Path, PathBuf};

use crate::repository::head_file::has_head;
use crate::{CommitId, Error, Repo, RepoPath};

/// Ref in a copied submodule to the commit that the worktree was created with. A commit that this ref reaches
/// is not unsaved work.
const START_REF: &str = "refs/proq/start";

/// Submodule whose folder stays empty, as git leaves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmptySubmodule {
    /// Folder of the submodule, relative to the top of the worktree.
    pub path: String,
    /// Reason why the submodule was not copied.
    pub reason: String,
}

/// Checkout whose submodules are to be copied, with the location of the main checkout's repositories.
struct SubmoduleLevel {
    /// Top of the checkout.
    dir: PathBuf,
    /// Git directory of the checkout.
    git_dir: PathBuf,
    /// Git directory from which the checkout's repository was copied.
    origin_git_dir: PathBuf,
    /// Prefix of the checkout's paths, relative to the top of the worktree.
    path_prefix: String,
}

/// Submodule of a commit: name, path and commit id.
struct Submodule {
    name: String,
    path: RepoPath,
    commit: CommitId,
}

impl Repo {
    /// Copies submodules into the new worktree at `dir`; with `recursive`, also nested ones. Returns the
    /// paths of the copied submodules, and those that stay empty because the main checkout does not have
    /// them.
    ///
    /// # Errors
    /// Fails if git cannot list what is in the worktree.
    pub fn copy_submodules(
        &self,
        dir: &Path,
        recursive: bool,
    ) -> Result<(Vec<String>, Vec<EmptySubmodule>), Error> {
        let (mut copied, mut left_empty) = (Vec::new(), Vec::new());
        let top = SubmoduleLevel {
            dir: dir.to_owned(),
            git_dir: self.worktree_git_dir(dir)?,
            origin_git_dir: self.common_dir().to_owned(),
            path_prefix: String::new(),
        };
        let mut levels = vec![top];
        while let Some(level) = levels.pop() {
            for submodule in self.list_submodules(&level, &mut left_empty)? {
                let path = level.display_path(&submodule.path);
                match self.copy_submodule(&level, &submodule) {
                    Ok(sublevel) => {
                        copied.push(path);
                        levels.extend(recursive.then_some(sublevel));
                    }
                    Err(reason) => left_empty.push(EmptySubmodule { path, reason }),
                }
            }
        }
        Ok((copied, left_empty))
    }

    /// Returns the submodules in a checkout's index whose folders exist and are empty, with the names from
    /// `.gitmodules`. Those without a name are added to `left_empty`.
    fn list_submodules(
        &self,
        level: &SubmoduleLevel,
        left_empty: &mut Vec<EmptySubmodule>,
    ) -> Result<Vec<Submodule>, Error> {
        let staged = self.git_in(&level.dir).args(["ls-files", "--stage", "-z"]).run()?;
        let mut gitlinks = Vec::new();
        let mut has_gitmodules = false;
        for field in staged.nul_separated_fields() {
            let Some(tab) = field.iter().position(|b| *b == b'\t') else { continue };
            let path = RepoPath::new(&field[tab + 1..]);
            let mut words = field[..tab].split(|b| *b == b' ');
            let (mode, id) = (words.next().unwrap_or_default(), words.next().and_then(CommitId::from_hex));
            has_gitmodules |= path.as_bytes() == b".gitmodules" && mode.starts_with(b"100");
            if let (b"160000", Some(commit)) = (mode, id)
                && is_empty_folder(&level.dir, &path)
            {
                gitlinks.push((path, commit));
            }
        }
        if gitlinks.is_empty() {
            return Ok(Vec::new());
        }
        let names = if has_gitmodules { self.read_gitmodules(level) } else { Vec::new() };
        let mut submodules = Vec::new();
        for (path, commit) in gitlinks {
            match names.iter().find(|(_, module_path)| *module_path == path) {
                Some((name, _)) => submodules.push(Submodule { name: name.clone(), path, commit }),
                None => left_empty.push(EmptySubmodule {
                    path: level.display_path(&path),
                    reason: "its commit has no entry for it in .gitmodules".to_owned(),
                }),
            }
        }
        Ok(submodules)
    }

    /// Returns names and paths from the staged `.gitmodules`; empty if git cannot read it.
    fn read_gitmodules(&self, level: &SubmoduleLevel) -> Vec<(String, RepoPath)> {
        let config_args =
            ["config", "--blob", ":.gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$"];
        let Ok(output) = self.git_in(&level.dir).args(config_args).run() else { return Vec::new() };
        let entry = |field: &[u8]| {
            let key_end = field.iter().position(|b| *b == b'\n')?;
            let key = std::str::from_utf8(&field[..key_end]).ok()?;
            let name = key.strip_prefix("submodule.")?.strip_suffix(".path")?;
            Some((name.to_owned(), RepoPath::new(&field[key_end + 1..])))
        };
        output.nul_separated_fields().filter_map(entry).collect()
    }

    /// Copies a submodule's repository from the main checkout and checks out its commit. The error is the
    /// reason why that failed; nothing is left behind then.
    fn copy_submodule(
        &self,
        level: &SubmoduleLevel,
        submodule: &Submodule,
    ) -> Result<SubmoduleLevel, String> {
        if !is_safe_name(&submodule.name) {
            return Err("git does not accept its name in .gitmodules".to_owned());
        }
        let origin = submodule_git_dir(&level.origin_git_dir, &submodule.name);
        let git_dir = submodule_git_dir(&level.git_dir, &submodule.name);
        let is_repository = |dir: &Path| dir.join("HEAD").symlink_metadata().is_ok();
        let modules_dir = level.git_dir.join("modules");
        if git_dir.ancestors().take_while(|dir| *dir != modules_dir).any(is_repository)
            || git_dir.symlink_metadata().is_ok()
        {
            return Err("its repository would be inside that of another one".to_owned());
        }
        let Some(origin) = find_real_repository(&level.origin_git_dir, &origin) else {
            return Err(
                "the main checkout lacks it; run there: git submodule update --init --recursive".to_owned()
            );
        };
        let commit = submodule.commit.to_string();
        let commit_check =
            self.git_in_submodule(&origin).args(["cat-file", "-e", &format!("{commit}^{{commit}}")]).run();
        if commit_check.is_err() {
            return Err(format!("the main checkout lacks its commit {}", submodule.commit.short()));
        }
        if self.local_setting(&origin, "extensions.partialClone").is_some() {
            return Err("the main checkout's is a partial clone".to_owned());
        }
        let dir = submodule.path.to_fs_path(&level.dir);
        let sublevel = SubmoduleLevel {
            path_prefix: format!("{}/", level.display_path(&submodule.path)),
            dir,
            git_dir,
            origin_git_dir: origin,
        };
        self.clone_submodule(&sublevel, &commit)
            .inspect_err(|_| sublevel.remove_partial_copy())
            .map_err(|e| e.to_string())?;
        Ok(sublevel)
    }

    fn clone_submodule(&self, sublevel: &SubmoduleLevel, commit: &str) -> Result<(), Error> {
        let SubmoduleLevel { dir, git_dir, origin_git_dir: origin, .. } = sublevel;
        if let Some(parent_dir) = git_dir.parent() {
            std::fs::create_dir_all(parent_dir).map_err(Error::io("create", parent_dir))?;
        }
        let clone =
            self.git_in(dir).args(["clone", "--quiet", "--local", "--no-checkout", "--separate-git-dir"]);
        clone.arg(git_dir).arg("--").arg(origin).arg(dir).mutating().run()?;
        // The remote-tracking refs are those of the main checkout's submodule, not its own branches.
        let fetch_args =
            ["-c", "gc.auto=0", "-c", "maintenance.auto=false", "fetch", "--quiet", "--no-tags", "--prune"];
        let fetch = self.git_in(dir).args(fetch_args).args([
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            "--",
        ]);
        fetch
            .arg(origin)
            .args(["+refs/remotes/*:refs/remotes/*", "^refs/remotes/*/HEAD"])
            .mutating()
            .run()?;
        let branch = self
            .git_in(dir)
            .args(["symbolic-ref", "--quiet", "--short", "HEAD"])
            .accept_exit_codes(&[1])
            .run()?;
        // Files of git-lfs are not copied, and would be fetched from the network.
        let checkout = self.git_in(dir).env("GIT_LFS_SKIP_SMUDGE", "1");
        checkout.args(["checkout", "--quiet", "--force", "--detach", commit]).mutating().run()?;
        let branch = branch.trimmed_stdout();
        if !branch.is_empty() {
            self.git_in(dir)
                .args(["branch", "--quiet", "-D", "--"])
                .arg(branch)
                .accept_exit_codes(&[1])
                .mutating()
                .run()?;
        }
        self.git_in(dir).args(["update-ref", START_REF, commit]).mutating().run()?;
        self.copy_remote_settings(sublevel)
    }

    /// Copies the settings by which the origin reaches its remote and its own submodules.
    fn copy_remote_settings(&self, sublevel: &SubmoduleLevel) -> Result<(), Error> {
        let remote =
            self.local_setting(&sublevel.origin_git_dir, "remote.origin.url").filter(|url| is_safe_url(url));
        let write_setting = |key: &str, value: &str| {
            self.git_in(&sublevel.dir).args(["config", "--local", key, value]).mutating().run().map(drop)
        };
        match remote {
            Some(url) => write_setting("remote.origin.url", &url)?,
            None => drop(self.git_in(&sublevel.dir).args(["remote", "remove", "origin"]).mutating().run()?),
        }
        let origin_settings = self
            .git_in_submodule(&sublevel.origin_git_dir)
            .args(["config", "-z", "--local", "--get-regexp", r"^submodule\..*\.(url|active)$"])
            .accept_exit_codes(&[1])
            .run()?;
        for field in origin_settings.nul_separated_fields() {
            let text = String::from_utf8_lossy(field);
            if let Some((key, value)) = text.split_once('\n').filter(|(_, value)| is_safe_url(value)) {
                write_setting(key, value)?;
            }
        }
        Ok(())
    }

    fn local_setting(&self, git_dir: &Path, key: &str) -> Option<String> {
        let output = self.git_in_submodule(git_dir).args(["config", "--local", "--get", key]).run();
        output.ok().map(|out| out.trimmed_stdout()).filter(|value| !value.is_empty())
    }

    /// Creates a git command that runs in a submodule's repository, wherever its files are.
    fn git_in_submodule(&self, git_dir: &Path) -> crate::program::command::Command {
        self.git_in(git_dir).env("GIT_DIR", git_dir)
    }

    /// Returns the names of a worktree's submodules with commits that neither their remotes nor the main
    /// checkout have. These commits are in the worktree's git directory and are deleted with it.
    pub fn submodules_with_own_commits(&self, git_dir: &Path) -> Vec<String> {
        let modules_dir = git_dir.join("modules");
        let mut found = Vec::new();
        let mut folders = vec![modules_dir.clone()];
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
                let name = dir.strip_prefix(&modules_dir).unwrap_or(&dir);
                let origin = self.common_dir().join("modules").join(name);
                // A repository that cannot be read may have such commits.
                if self.has_own_commits(&dir, &origin).unwrap_or(true) {
                    found.push(name.display().to_string());
                }
            }
        }
        found
    }

    fn has_own_commits(&self, git_dir: &Path, origin: &Path) -> Result<bool, Error> {
        let mut known_commits = Vec::new();
        if has_head(origin) {
            let mut tips =
                self.git_in_submodule(origin).args(["for-each-ref", "--format=%(objectname)"]).run()?.stdout;
            let head = self
                .git_in_submodule(origin)
                .args(["rev-parse", "--verify", "--quiet", "HEAD"])
                .accept_exit_codes(&[1])
                .run()?;
            tips.extend(head.stdout);
            let check_args = ["cat-file", "--batch-check=%(objecttype) %(objectname)"];
            let checked = self.git_in_submodule(git_dir).args(check_args).input(tips).run()?;
            for line in checked.stdout.split(|b| *b == b'\n') {
                if let Some(id) = line.strip_prefix(b"commit ") {
                    known_commits.extend([b"^", id, b"\n"].concat());
                }
            }
        }
        let list_args = ["rev-list", "--max-count=1", "--stdin", "--all", "HEAD", "--not", "--remotes"];
        let own_commits = self
            .git_in_submodule(git_dir)
            .args(list_args)
            .arg(format!("--glob={START_REF}*"))
            .input(known_commits)
            .run()?;
        Ok(!own_commits.stdout.is_empty())
    }
}

impl SubmoduleLevel {
    /// Returns a path in this checkout as text relative to the top of the worktree.
    fn display_path(&self, path: &RepoPath) -> String {
        format!("{}{path}", self.path_prefix)
    }

    /// Removes the repository and the files of a copy that failed.
    fn remove_partial_copy(&self) {
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

fn submodule_git_dir(git_dir: &Path, name: &str) -> PathBuf {
    git_dir.join("modules").join(name)
}

/// Returns whether a submodule name stays below `modules/`; slightly stricter than git's own rule.
fn is_safe_name(name: &str) -> bool {
    let is_safe_component = |component: &str| !component.is_empty() && component != "." && component != "..";
    !name.starts_with('-') && !name.contains(['\\', '\0', '\n']) && name.split('/').all(is_safe_component)
}

fn is_safe_url(url: &str) -> bool {
    !url.starts_with('-') && !url.contains(['\n', '\0'])
}

/// Returns the repository at a path below another git directory, if it exists and no link leads to it.
fn find_real_repository(parent_git_dir: &Path, dir: &Path) -> Option<PathBuf> {
    let found = dir.canonicalize().ok()?;
    let expected = parent_git_dir.canonicalize().ok()?.join(dir.strip_prefix(parent_git_dir).ok()?);
    (found == expected && has_head(&found) && found.join("objects").is_dir()).then_some(found)
}

/// Returns whether a path is an empty folder that no link leads to.
fn is_empty_folder(top: &Path, path: &RepoPath) -> bool {
    let dir = path.to_fs_path(top);
    let is_real_folder = |dir: &Path| dir.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    dir.ancestors().take_while(|dir| *dir != top).all(is_real_folder)
        && std::fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_unsafe_names_and_urls() {
        for good in ["lib", "a/b", "with space", "..x", "x.."] {
            assert!(is_safe_name(good), "{good}");
        }
        for bad in ["", "..", "../x", "a/../b", "a//b", "/a", "a/", "-x", "a\\..\\b", "."] {
            assert!(!is_safe_name(bad), "{bad}");
        }
        assert!(is_safe_url("https://example.org/x") && !is_safe_url("-u./x") && !is_safe_url("a\nb"));
    }
}
