//! Owns adding a worktree of a new branch without starting git: the few files that `git worktree add --no-checkout` writes, in
//! its order, wherever no setting or hook asks for more than them.

use std::fs::File;
use std::io::{ErrorKind, Result, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::plain::has_settings_of_its_own;
use super::{Error, Repo, WorktreeList};
use crate::fault;

/// What git is told in a worktree's folder for as long as it is being added: not to prune it.
const LOCKED: &[u8] = b"initializing\n";

impl Repo {
    /// Adds a worktree of `branch`, which was just made, in an empty folder; false where that is git's to do, and then nothing was
    /// done. Whoever is killed on the way leaves what a killed git would leave.
    ///
    /// # Errors
    /// When a file cannot be written. All that was written is gone again.
    pub(super) fn register(&self, path: &Path, branch: &str) -> std::result::Result<bool, Error> {
        let Some(name) = path.file_name().filter(|name| is_ordinary(name.as_bytes())) else {
            return Ok(false);
        };
        if !self.adds_as_is() || !is_empty(path) {
            return Ok(false);
        }
        let Ok(path) = path.canonicalize() else { return Ok(false) };
        let all = WorktreeList::read(self)?;
        if all.at(&path).is_some() || all.on_branch(branch).next().is_some() {
            return Ok(false);
        }
        let Ok(common) = self.common_dir().canonicalize() else { return Ok(false) };
        let admin = common.join("worktrees").join(name);
        let made = make_folder(&admin);
        match made {
            Ok(()) => {}
            // Git finds another name.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => return Ok(false),
            Err(e) => return Err(Error::io("create", &admin)(e)),
        }
        let log = std::fs::read(common.join("logs/refs/heads").join(branch)).unwrap_or_default();
        write(&admin, &path, branch, &log).map_err(|e| {
            drop(std::fs::remove_file(path.join(".git")));
            drop(std::fs::remove_dir_all(&admin));
            Error::io("write", &admin)(e)
        })?;
        Ok(true)
    }

    /// Whether git would write nothing but those files, as everybody's.
    fn adds_as_is(&self) -> bool {
        self.gix.config_snapshot().string("worktree.useRelativePaths").is_none() && self.keeps_plain_refs()
    }

    /// Whether refs are files that git writes as everybody's, and that no hook is told of.
    pub(super) fn keeps_plain_refs(&self) -> bool {
        let set = self.gix.config_snapshot();
        let mut sections = set.sections_by_name("extensions").into_iter().flatten();
        let extended = sections.any(|section| {
            let body = section.body();
            body.value_names().any(|name| name.to_lowercase() != "objectformat")
        });
        cfg!(target_os = "linux")
            && set.boolean("core.bare") != Some(true)
            && self.main_worktree().is_some()
            && set.string("core.sharedRepository").is_none()
            && !extended
            && !self.may_have_hook(self.home(), "reference-transaction")
            && !has_settings_of_its_own(self.program().path())
            && !fault::is_by_git()
    }
}

/// Whether a name can be a part of a ref's: git names its folder for a worktree like the worktree's own then.
pub(super) fn is_ordinary(name: &[u8]) -> bool {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_.".contains(b);
    !name.is_empty()
        && name.iter().all(plain)
        && !name.starts_with(b".")
        && !name.ends_with(b".")
        && !name.ends_with(b".lock")
        && !name.windows(2).any(|two| two == b"..")
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

fn make_folder(admin: &Path) -> Result<()> {
    match std::fs::create_dir(admin) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            std::fs::create_dir(admin.parent().unwrap_or(admin))?;
            std::fs::create_dir(admin)
        }
        done => done,
    }
}

/// Writes git's files of a worktree: `log` is that of its branch, whose last line says who made it, and when.
fn write(admin: &Path, path: &Path, branch: &str, log: &[u8]) -> Result<()> {
    let link = path.join(".git");
    let line = |start: &[u8], rest: &[u8]| [start, rest, b"\n"].concat();
    new_file(&admin.join("locked"), LOCKED)?;
    fault::point("worktree.nameless");
    new_file(&admin.join("gitdir"), &line(b"", link.as_os_str().as_bytes()))?;
    new_file(&link, &line(b"gitdir: ", admin.as_os_str().as_bytes()))?;
    new_file(&admin.join("commondir"), b"../..\n")?;
    std::fs::create_dir(admin.join("refs"))?;
    fault::point("worktree.headless");
    let last = log.trim_ascii_end().rsplit(|b| *b == b'\n').next().unwrap_or_default();
    let moved = last.split(|b| *b == b'\t').next().unwrap_or_default();
    if !moved.is_empty() {
        std::fs::create_dir(admin.join("logs"))?;
        new_file(&admin.join("logs/HEAD"), &line(b"", moved))?;
    }
    // Under the name of git's own lock, as for every HEAD: nobody sees the beginning of one.
    let lock = admin.join("HEAD.lock");
    new_file(&lock, &line(b"ref: refs/heads/", branch.as_bytes()))?;
    std::fs::rename(&lock, admin.join("HEAD"))?;
    std::fs::remove_file(admin.join("locked"))
}

fn new_file(path: &Path, bytes: &[u8]) -> Result<()> {
    File::create_new(path)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;
    use crate::git::place::Place;
    use crate::git::{Head, worktree};

    struct Scene(Place);

    impl Scene {
        fn new() -> Scene {
            let scene = Scene(Place::new());
            scene.git("commit -q --allow-empty -m x");
            scene
        }

        fn git(&self, words: &str) -> String {
            self.0.sh("repo", &format!("GIT_COMMITTER_DATE='1700000000 +0200' git {words}"))
        }

        fn repo(&self) -> Repo {
            Repo::discover(&self.0.top.join("repo")).unwrap()
        }

        /// A branch and an empty folder of its name.
        fn ready(&self, name: &str) -> PathBuf {
            self.git(&format!("update-ref --create-reflog refs/heads/b/{name} HEAD"));
            let path = self.0.top.join(name);
            std::fs::create_dir(&path).unwrap();
            path
        }

        /// Whether it is added, without git.
        fn registers(&self, name: &str) -> bool {
            let path = self.ready(name);
            let done = self.repo().register(&path, &format!("b/{name}")).unwrap();
            assert!(done || is_empty(&path), "{name}");
            done
        }

        /// All files and folders of a worktree and of git's folder for it, with one name in place of its own.
        fn files(&self, name: &str) -> BTreeMap<String, Option<String>> {
            let mut all = BTreeMap::new();
            let mut open = vec![self.0.top.join("repo/.git/worktrees").join(name), self.0.top.join(name)];
            while let Some(path) = open.pop() {
                let text =
                    std::fs::read(&path).map(|bytes| String::from_utf8(bytes).unwrap().replace(name, "NAME"));
                if text.is_err() {
                    open.extend(std::fs::read_dir(&path).unwrap().flatten().map(|e| e.path()));
                }
                all.insert(path.to_str().unwrap().replace(name, "NAME"), text.ok());
            }
            all
        }
    }

    #[test]
    fn a_worktree_is_what_git_would_have_made() {
        let scene = Scene::new();
        assert!(scene.registers("lane-one"));
        let path = scene.ready("lane-two");
        worktree::add(scene.repo().git(), &path, &Head::Branch("b/lane-two".into())).unwrap();
        let (ours, mut gits) = (scene.files("lane-one"), scene.files("lane-two"));
        let log =
            |all: &BTreeMap<String, Option<String>>| all.keys().find(|k| k.ends_with("logs/HEAD")).cloned();
        let our_log = log(&ours).unwrap();
        assert_eq!(
            ours[&our_log],
            Some(format!("{} {} a <a@b> 1700000000 +0200\n", "0".repeat(40), scene.git("rev-parse HEAD")))
        );
        // The call above has another date and perhaps another name; not every git makes a folder for refs.
        for (path, text) in
            ours.iter().filter(|(path, _)| path.ends_with("/logs/HEAD") || path.ends_with("/refs"))
        {
            gits.insert(path.clone(), text.clone());
        }
        assert_eq!(ours, gits);
        assert_eq!(scene.git("-C ../lane-one status --porcelain --branch"), "## b/lane-one");
        assert_eq!(scene.git("-C ../lane-one reflog --format=%gd"), "HEAD@{0}");
        scene.git("worktree prune --expire=now");
        scene.git("worktree remove ../lane-one");
        scene.git("fsck");
    }

    #[test]
    fn what_asks_for_more_is_left_to_git() {
        let scene = Scene::new();
        scene.ready("odd");
        for name in [".hidden", "a.lock", "a b", "\u{fc}", "a..b"] {
            let path = scene.0.top.join(name);
            std::fs::create_dir(&path).unwrap();
            assert!(!scene.repo().register(&path, "b/odd").unwrap(), "{name}");
        }
        for (at, setting) in [
            ("core.sharedRepository", "group"),
            ("worktree.useRelativePaths", "true"),
            ("extensions.worktreeConfig", "true"),
            ("hook.x.command", "true"),
        ]
        .iter()
        .enumerate()
        {
            scene.git(&format!("config {} {}", setting.0, setting.1));
            assert!(!scene.registers(&format!("set-{at}")), "{}", setting.0);
            scene.git(&format!("config --unset {}", setting.0));
        }
        let hook = scene.0.top.join("repo/.git/hooks/reference-transaction");
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        std::fs::write(&hook, "").unwrap();
        assert!(!scene.registers("hooked"));
        std::fs::remove_file(hook).unwrap();
        let repo = scene.repo();
        let path = scene.ready("full");
        std::fs::write(path.join("file"), "").unwrap();
        assert!(!repo.register(&path, "b/full").unwrap());
        let path = scene.ready("there");
        std::fs::create_dir_all(scene.0.top.join("repo/.git/worktrees/there")).unwrap();
        assert!(!repo.register(&path, "b/there").unwrap());
        let path = scene.ready("twice");
        assert!(!repo.register(&path, "main").unwrap());
        assert!(scene.registers("plain"));
    }
}
