//! Creation of a worktree on a new branch without starting git: the few files that `git worktree add
//! --no-checkout` writes, in the same order, if no setting or hook requires more.

use std::fs::File;
use std::io::{ErrorKind, Result, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use proq_base::fail_points;

use super::worktree::WorktreeList;
use crate::references::new_branch::is_plain_ref_component;
use crate::{Error, Repo};

/// Contents of the `locked` file while a worktree is being added, which prevents git from pruning it.
const LOCK_REASON: &[u8] = b"initializing\n";

impl Repo {
    /// Adds a worktree of `branch`, which was just created, in an empty folder. Returns `false`, without
    /// changing anything, for cases that are left to git. If the process is killed, the same files remain as
    /// after a killed git.
    ///
    /// # Errors
    /// Fails if a file cannot be written; all files written before are removed.
    pub(crate) fn add_worktree_in_process(
        &self,
        path: &Path,
        branch: &str,
    ) -> std::result::Result<bool, Error> {
        let Some(name) = path.file_name().filter(|name| is_plain_ref_component(name.as_bytes())) else {
            return Ok(false);
        };
        if !self.can_add_in_process() || !is_empty_folder(path) {
            return Ok(false);
        }
        let Ok(path) = path.canonicalize() else { return Ok(false) };
        let worktrees = WorktreeList::read(self)?;
        if worktrees.with_top_folder(&path).is_some() || worktrees.on_branch(branch).next().is_some() {
            return Ok(false);
        }
        let Ok(common) = self.common_dir().canonicalize() else { return Ok(false) };
        let admin = common.join("worktrees").join(name);
        let created = create_admin_dir(&admin);
        match created {
            Ok(()) => {}
            // git chooses another name.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => return Ok(false),
            Err(e) => return Err(Error::io("create", &admin)(e)),
        }
        let log = std::fs::read(common.join("logs/refs/heads").join(branch)).unwrap_or_default();
        write_admin_files(&admin, &path, branch, &log).map_err(|e| {
            drop(std::fs::remove_file(path.join(".git")));
            drop(std::fs::remove_dir_all(&admin));
            Error::io("write", &admin)(e)
        })?;
        Ok(true)
    }

    /// Returns whether `git worktree add` would write only the files that git-proq writes here, with ordinary
    /// permissions.
    fn can_add_in_process(&self) -> bool {
        self.gix.config_snapshot().string("worktree.useRelativePaths").is_none() && self.has_plain_file_refs()
    }
}

fn is_empty_folder(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

fn create_admin_dir(admin: &Path) -> Result<()> {
    match std::fs::create_dir(admin) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            std::fs::create_dir(admin.parent().unwrap_or(admin))?;
            std::fs::create_dir(admin)
        }
        created => created,
    }
}

/// Writes git's files of a worktree. `log` is the reflog of its branch, whose last line contains the creator
/// and the time.
fn write_admin_files(admin: &Path, path: &Path, branch: &str, log: &[u8]) -> Result<()> {
    let git_file = path.join(".git");
    let join_line = |prefix: &[u8], rest: &[u8]| [prefix, rest, b"\n"].concat();
    write_new_file(&admin.join("locked"), LOCK_REASON)?;
    fail_points::hit("worktree.nameless");
    write_new_file(&admin.join("gitdir"), &join_line(b"", git_file.as_os_str().as_bytes()))?;
    write_new_file(&git_file, &join_line(b"gitdir: ", admin.as_os_str().as_bytes()))?;
    write_new_file(&admin.join("commondir"), b"../..\n")?;
    std::fs::create_dir(admin.join("refs"))?;
    fail_points::hit("worktree.headless");
    let last_line = log.trim_ascii_end().rsplit(|b| *b == b'\n').next().unwrap_or_default();
    let log_fields = last_line.split(|b| *b == b'\t').next().unwrap_or_default();
    if !log_fields.is_empty() {
        std::fs::create_dir(admin.join("logs"))?;
        write_new_file(&admin.join("logs/HEAD"), &join_line(b"", log_fields))?;
    }
    // HEAD is written under the name of git's lock, as always, so that no process reads an incomplete one.
    let lock = admin.join("HEAD.lock");
    write_new_file(&lock, &join_line(b"ref: refs/heads/", branch.as_bytes()))?;
    std::fs::rename(&lock, admin.join("HEAD"))?;
    std::fs::remove_file(admin.join("locked"))
}

fn write_new_file(path: &Path, bytes: &[u8]) -> Result<()> {
    File::create_new(path)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;
    use crate::base::head::Head;
    use crate::base::test_repo::TestRepo;
    use crate::worktrees::worktree;

    struct WorktreeFixture(TestRepo);

    impl WorktreeFixture {
        fn new() -> WorktreeFixture {
            let fixture = WorktreeFixture(TestRepo::new());
            fixture.git("commit -q --allow-empty -m x");
            fixture
        }

        fn git(&self, args: &str) -> String {
            self.0.run_script("repo", &format!("GIT_COMMITTER_DATE='1700000000 +0200' git {args}"))
        }

        fn repo(&self) -> Repo {
            Repo::discover(&self.0.parent_dir.join("repo")).unwrap()
        }

        /// Creates a branch and an empty folder of the same name.
        fn create_branch_and_folder(&self, name: &str) -> PathBuf {
            self.git(&format!("update-ref --create-reflog refs/heads/b/{name} HEAD"));
            let path = self.0.parent_dir.join(name);
            std::fs::create_dir(&path).unwrap();
            path
        }

        /// Returns whether the worktree was added without git.
        fn adds_worktree(&self, name: &str) -> bool {
            let path = self.create_branch_and_folder(name);
            let added = self.repo().add_worktree_in_process(&path, &format!("b/{name}")).unwrap();
            assert!(added || is_empty_folder(&path), "{name}");
            added
        }

        /// Returns all files and folders of a worktree and of its admin folder, with the worktree's name
        /// replaced by `NAME`.
        fn worktree_files(&self, name: &str) -> BTreeMap<String, Option<String>> {
            let mut files = BTreeMap::new();
            let mut pending =
                vec![self.0.parent_dir.join("repo/.git/worktrees").join(name), self.0.parent_dir.join(name)];
            while let Some(path) = pending.pop() {
                let text =
                    std::fs::read(&path).map(|bytes| String::from_utf8(bytes).unwrap().replace(name, "NAME"));
                if text.is_err() {
                    pending.extend(std::fs::read_dir(&path).unwrap().flatten().map(|e| e.path()));
                }
                files.insert(path.to_str().unwrap().replace(name, "NAME"), text.ok());
            }
            files
        }
    }

    /// Promise: new-lane/native-creation
    #[test]
    fn adds_same_worktree_as_git() {
        let fixture = WorktreeFixture::new();
        assert!(fixture.adds_worktree("lane-one"));
        let path = fixture.create_branch_and_folder("lane-two");
        worktree::add_without_checkout(fixture.repo().git(), &path, &Head::Branch("b/lane-two".into()))
            .unwrap();
        let (ours, mut gits) = (fixture.worktree_files("lane-one"), fixture.worktree_files("lane-two"));
        let log = |files: &BTreeMap<String, Option<String>>| {
            files.keys().find(|k| k.ends_with("logs/HEAD")).cloned()
        };
        let our_log = log(&ours).unwrap();
        assert_eq!(
            ours[&our_log],
            Some(format!("{} {} a <a@b> 1700000000 +0200\n", "0".repeat(40), fixture.git("rev-parse HEAD")))
        );
        // The git call has another date and may have another name; not every version of git creates a folder
        // for refs.
        for (path, text) in
            ours.iter().filter(|(path, _)| path.ends_with("/logs/HEAD") || path.ends_with("/refs"))
        {
            gits.insert(path.clone(), text.clone());
        }
        assert_eq!(ours, gits);
        assert_eq!(fixture.git("-C ../lane-one status --porcelain --branch"), "## b/lane-one");
        assert_eq!(fixture.git("-C ../lane-one reflog --format=%gd"), "HEAD@{0}");
        fixture.git("worktree prune --expire=now");
        fixture.git("worktree remove ../lane-one");
        fixture.git("fsck");
    }

    /// Promise: new-lane/native-creation
    #[test]
    fn leaves_unsupported_cases_to_git() {
        let fixture = WorktreeFixture::new();
        fixture.create_branch_and_folder("odd");
        for name in [".hidden", "a.lock", "a b", "\u{fc}", "a..b"] {
            let path = fixture.0.parent_dir.join(name);
            std::fs::create_dir(&path).unwrap();
            assert!(!fixture.repo().add_worktree_in_process(&path, "b/odd").unwrap(), "{name}");
        }
        for (index, setting) in [
            ("core.sharedRepository", "group"),
            ("worktree.useRelativePaths", "true"),
            ("extensions.worktreeConfig", "true"),
            ("hook.x.command", "true"),
        ]
        .iter()
        .enumerate()
        {
            fixture.git(&format!("config {} {}", setting.0, setting.1));
            assert!(!fixture.adds_worktree(&format!("set-{index}")), "{}", setting.0);
            fixture.git(&format!("config --unset {}", setting.0));
        }
        let hook = fixture.0.parent_dir.join("repo/.git/hooks/reference-transaction");
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        std::fs::write(&hook, "").unwrap();
        assert!(!fixture.adds_worktree("hooked"));
        std::fs::remove_file(hook).unwrap();
        let repo = fixture.repo();
        let path = fixture.create_branch_and_folder("full");
        std::fs::write(path.join("file"), "").unwrap();
        assert!(!repo.add_worktree_in_process(&path, "b/full").unwrap());
        let path = fixture.create_branch_and_folder("there");
        std::fs::create_dir_all(fixture.0.parent_dir.join("repo/.git/worktrees/there")).unwrap();
        assert!(!repo.add_worktree_in_process(&path, "b/there").unwrap());
        let path = fixture.create_branch_and_folder("twice");
        assert!(!repo.add_worktree_in_process(&path, "main").unwrap());
        assert!(fixture.adds_worktree("plain"));
    }
}
