//! Processes that may hold a lock file of git: those that have it open, and living gits of the repository. git
//! closes some of its locks before it releases them, so open files alone do not show all holders.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use proq_base::process::identity::{is_process_running, process_ids, start_time_of};

use crate::base::lock_file::FileId;

/// Commands of git that change no ref and may run for long: behind a pager, as a server, or as the parent of
/// this process.
const COMMANDS_WITHOUT_REF_LOCKS: [&str; 14] = [
    "blame",
    "cat-file",
    "credential-cache--daemon",
    "daemon",
    "diff",
    "fsmonitor--daemon",
    "grep",
    "help",
    "log",
    "ls-remote",
    "proq",
    "shortlog",
    "show",
    "upload-pack",
];
/// Options of git before the name of its command that have their value in the next argument.
const OPTIONS_WITH_VALUE: [&str; 7] =
    ["-C", "-c", "--attr-source", "--config-env", "--git-dir", "--namespace", "--work-tree"];
/// Files that git lets an editor or a hook change before it locks any ref: messages, and the list of commits of
/// `git rebase -i`.
const EDITED_FILES: [&str; 5] =
    ["COMMIT_EDITMSG", "MERGE_MSG", "NOTES_EDITMSG", "TAG_EDITMSG", "git-rebase-todo"];
/// Maximum number of gits that wait for each other, as `git rebase` does for `git commit`.
const MAX_WAITING_GITS: usize = 4;
/// Maximum number of folders above the working folder of a process in which its repository is searched.
const MAX_PARENT_DIRS: usize = 256;

/// Process that may hold a lock file.
#[derive(Debug)]
pub(crate) struct LockHolder {
    process_id: u32,
    start_time: String,
    /// Name of its program.
    name: String,
    /// Whether the process has one of the lock files open.
    has_open: bool,
}

impl LockHolder {
    /// Returns whether the process may still hold a lock file that has not changed since the list was made: it
    /// is running or stopped, and no git that waits for an editor.
    pub fn may_hold(&self) -> bool {
        is_process_running(self.process_id, Some(&self.start_time))
            && (self.has_open || !Process(self.process_id).waits_for_editor(MAX_WAITING_GITS))
    }

    /// Returns its name and id for a message.
    pub fn description(&self) -> String {
        format!("{} (process {})", self.name, self.process_id)
    }
}

/// Lists the living processes, besides this one, that may hold a lock file in the repository with this common
/// git directory. `None` on systems that do not list processes in `/proc`.
pub(crate) fn possible_lock_holders(common_dir: &Path, locks: &[FileId]) -> Option<Vec<LockHolder>> {
    let others = process_ids()?.into_iter().filter(|id| *id != std::process::id());
    let holders = others.filter_map(|process_id| {
        let start_time = start_time_of(process_id)?;
        let comm = std::fs::read_to_string(Process(process_id).path("comm")).ok()?;
        let name = comm.trim_end().to_owned();
        let process = Process(process_id);
        let has_open = process.has_open(locks);
        let is_candidate =
            has_open || (process.is_git(&name) && process.may_lock_refs() && process.may_use(common_dir));
        let holder = LockHolder { process_id, start_time, name, has_open };
        (is_candidate && holder.may_hold()).then_some(holder)
    });
    Some(holders.collect())
}

/// Process by its id. What cannot be read about it, as about a process of another user, makes it a possible
/// holder.
#[derive(Clone, Copy)]
struct Process(u32);

impl Process {
    fn path(self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.0))
    }

    /// Returns whether the process has one of these files open; false if its open files cannot be listed.
    fn has_open(self, files: &[FileId]) -> bool {
        let open_files = std::fs::read_dir(self.path("fd")).into_iter().flatten().flatten();
        open_files.filter_map(|fd| dir_or_file_id(&fd.path())).any(|id| files.contains(&id))
    }

    /// Returns whether the program is git, also as a wrapper of that name, or another one that locks refs as git
    /// does.
    fn is_git(self, comm: &str) -> bool {
        let executable = std::fs::read_link(self.path("exe")).unwrap_or_default();
        let file_name = executable.file_name().unwrap_or_default().to_string_lossy();
        [comm, &file_name].into_iter().any(is_git_name)
    }

    /// Returns whether the command that this git runs may lock refs.
    fn may_lock_refs(self) -> bool {
        let Ok(command_line) = std::fs::read(self.path("cmdline")) else { return true };
        let arguments: Vec<_> = command_line.split(|b| *b == 0).map(String::from_utf8_lossy).collect();
        let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
        git_command(&arguments).is_none_or(|command| !COMMANDS_WITHOUT_REF_LOCKS.contains(&command))
    }

    /// Returns whether this git waits for an editor or a hook with one of [`EDITED_FILES`], directly or by up to
    /// `depth` other gits that do. git holds no lock on a ref then: the only program that it starts while it
    /// holds one is the hook `reference-transaction`, and it waits for programs with these files. False where
    /// the system does not list the children of a process.
    fn waits_for_editor(self, depth: usize) -> bool {
        let file = self.path(&format!("task/{}/children", self.0));
        let children = std::fs::read_to_string(file).unwrap_or_default();
        children.split_whitespace().filter_map(|id| id.parse().ok()).map(Process).any(|child| {
            let command_line = std::fs::read(child.path("cmdline")).unwrap_or_default();
            let names =
                command_line.split(|b| *b == 0).filter_map(|argument| argument.rsplit(|b| *b == b'/').next());
            let edits = names.skip(1).any(|name| EDITED_FILES.iter().any(|file| file.as_bytes() == name));
            let comm = std::fs::read_to_string(child.path("comm")).unwrap_or_default();
            edits || (depth > 0 && child.is_git(comm.trim_end()) && child.waits_for_editor(depth - 1))
        })
    }

    /// Returns whether this git may work in the repository with this common git directory.
    fn may_use(self, common_dir: &Path) -> bool {
        let (Ok(command_line), Ok(variables)) =
            (std::fs::read(self.path("cmdline")), std::fs::read(self.path("environ")))
        else {
            return true;
        };
        let Some(common_id) = dir_or_file_id(common_dir) else { return true };
        let is_option = |argument: &[u8]| argument.starts_with(b"--git-dir");
        let variable = |name: &[u8]| {
            variables.split(|b| *b == 0).find_map(|var| var.strip_prefix(name)?.strip_prefix(b"="))
        };
        if command_line.split(|b| *b == 0).any(is_option) || variable(b"GIT_COMMON_DIR").is_some() {
            return true;
        }
        let cwd = self.path("cwd");
        match variable(b"GIT_DIR") {
            Some(dir) => is_git_dir_of(&cwd.join(std::ffi::OsStr::from_bytes(dir)), common_id),
            None => is_below_worktree_of(cwd.join("."), common_id),
        }
    }
}

/// Returns whether a program of this name is git, or locks refs as git does.
fn is_git_name(name: &str) -> bool {
    // Some systems start git by a wrapper and rename the program itself, such as to `.git-wrapped`.
    let name = name.trim_start_matches('.');
    let is_git = name == "git" || name.starts_with("git-") || name.starts_with("git.");
    // Locks of git-proq itself stay open for as long as it holds them.
    (is_git && name != "git-proq" && name != "git-lfs") || name == "jj"
}

/// Returns the command of a git with these arguments, such as `log`; `None` if there is none.
fn git_command<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    let (program, mut arguments) = arguments.split_first()?;
    if let Some(command) = program.rsplit('/').next()?.strip_prefix("git-") {
        return Some(command);
    }
    while let Some((argument, others)) = arguments.split_first() {
        if !argument.starts_with('-') {
            return Some(argument).filter(|name| !name.is_empty()).copied();
        }
        let skipped = usize::from(OPTIONS_WITH_VALUE.contains(argument));
        arguments = others.get(skipped..)?;
    }
    None
}

/// Returns whether git, in the folder `dir`, finds the repository with this common git directory. True when that
/// cannot be determined.
fn is_below_worktree_of(mut dir: PathBuf, common_id: FileId) -> bool {
    for _ in 0..MAX_PARENT_DIRS {
        let Some(id) = dir_or_file_id(&dir) else { return true };
        if id == common_id {
            return true;
        }
        let git = dir.join(".git");
        match git.metadata() {
            Ok(meta) if meta.is_dir() => {
                if dir_or_file_id(&git) == Some(common_id) {
                    return true;
                }
                // git ignores a folder of that name that is no repository.
                if git.join("HEAD").symlink_metadata().is_ok() {
                    return false;
                }
            }
            Ok(_) => {
                let text = std::fs::read(&git).unwrap_or_default();
                let named_dir = text.strip_prefix(b"gitdir: ").map(<[u8]>::trim_ascii_end);
                return named_dir
                    .is_none_or(|to| is_git_dir_of(&dir.join(std::ffi::OsStr::from_bytes(to)), common_id));
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => return true,
        }
        dir.push("..");
        if dir_or_file_id(&dir) == Some(id) {
            return false;
        }
    }
    true
}

/// Returns whether a git directory belongs to the repository with this common git directory. True when that
/// cannot be determined.
fn is_git_dir_of(git_dir: &Path, common_id: FileId) -> bool {
    let Some(id) = dir_or_file_id(git_dir) else { return true };
    if id == common_id {
        return true;
    }
    match std::fs::read(git_dir.join("commondir")) {
        Ok(text) => {
            let common_dir = git_dir.join(std::ffi::OsStr::from_bytes(text.trim_ascii_end()));
            dir_or_file_id(&common_dir).is_none_or(|id| id == common_id)
        }
        Err(e) => e.kind() != std::io::ErrorKind::NotFound,
    }
}

/// Returns the id of a file or folder, following symbolic links; `None` if it cannot be determined. A path below
/// `/proc/PID/cwd` leads to the folder itself, even in a container that mounts it elsewhere.
fn dir_or_file_id(path: &Path) -> Option<FileId> {
    path.metadata().ok().map(|meta| FileId::new(meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::test_repo::TestRepo;

    #[test]
    fn command_is_found_behind_options() {
        let command = |line: &str| git_command(&line.split(' ').collect::<Vec<_>>()).map(str::to_owned);
        assert_eq!(command("git -C log -c a=b --no-pager pack-refs --all").as_deref(), Some("pack-refs"));
        assert_eq!(command("/usr/bin/git --git-dir /log show").as_deref(), Some("show"));
        assert_eq!(command("/usr/libexec/git-core/git-receive-pack x").as_deref(), Some("receive-pack"));
        assert_eq!(command("git -C"), None);
        assert_eq!(command("git"), None);
    }

    #[test]
    fn names_of_git_are_recognized() {
        for name in ["git", "git-receive-pack", ".git-wrapped", "git.real", "jj"] {
            assert!(is_git_name(name), "{name}");
        }
        for name in ["git-proq", "git-lfs", "gitui", "sh", ""] {
            assert!(!is_git_name(name), "{name}");
        }
    }

    #[test]
    fn git_of_another_repository_is_no_holder() {
        let fixture = TestRepo::new();
        fixture
            .run_script("repo", "git commit -q --allow-empty -m a; git worktree add -q ../tree; mkdir sub");
        fixture.run_script("repo", "git init -q other; mkdir other/sub plain; mkdir plain/.git ../outside");
        let common_id = dir_or_file_id(&fixture.parent_dir.join("repo/.git")).unwrap();
        let is_below = |dir: &str| is_below_worktree_of(fixture.parent_dir.join(dir), common_id);
        for dir in ["repo", "repo/sub", "tree", "repo/.git", "repo/.git/worktrees/tree", "repo/plain", "gone"]
        {
            assert!(is_below(dir), "{dir}");
        }
        for dir in ["repo/other", "repo/other/sub", "repo/other/.git/refs", "outside"] {
            assert!(!is_below(dir), "{dir}");
        }
        let is_git_dir = |dir: &str| is_git_dir_of(&fixture.parent_dir.join(dir), common_id);
        assert!(is_git_dir("repo/.git") && is_git_dir("repo/.git/worktrees/tree") && is_git_dir("gone"));
        assert!(!is_git_dir("repo/other/.git"));
    }
}
