//! Kills of a command at a fault point, and assertions that hold after every recovery.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Output, Sandbox, file_names};

/// Runs a command that is killed at a fault point.
#[track_caller]
pub fn kill_at(sandbox: &Sandbox, at: &str, args: &[&str]) {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.env("PROQ_TEST_DIE_AT", at);
    let out = sandbox.output(command);
    assert_eq!(out.code, 137, "it did not come to {at}: {}", out.to_text());
}

/// Runs the next command, which recovers the killed one, and returns what it printed to standard error.
/// Asserts that a second command has nothing to recover.
#[track_caller]
pub fn recover(sandbox: &Sandbox) -> String {
    assert_recovered(sandbox, &sandbox.proq(&["list"]))
}

/// Recovers as [`recover`] does, as if the machine had been rebooted since the kill.
#[track_caller]
pub fn recover_after_reboot(sandbox: &Sandbox) {
    let mut command = sandbox.proq_command(&sandbox.repo, &["list"]);
    command.env("PROQ_TEST_BOOT", "now");
    assert_recovered(sandbox, &sandbox.output(command));
}

#[track_caller]
fn assert_recovered(sandbox: &Sandbox, next: &Output) -> String {
    assert_eq!(next.code, 0, "{}", next.to_text());
    let second = sandbox.proq(&["list"]);
    assert!(!second.stderr.contains("cut short"), "{}", second.to_text());
    assert_tidy(sandbox);
    mask_process_ids(&next.stderr)
}

/// Asserts that no lock of git and no unfinished work is left, and that every object exists.
#[track_caller]
pub fn assert_tidy(sandbox: &Sandbox) {
    let git = sandbox.repo.join(".git");
    assert_eq!(file_names(&git.join("proq/work")), [""; 0], "what is in progress");
    let mut leftovers = Vec::new();
    find_locks(&git, &git, &mut leftovers);
    assert_eq!(leftovers, [""; 0], "locks and drafts");
    sandbox.git(&["fsck", "--connectivity-only", "--no-dangling", "--no-progress"]);
}

fn find_locks(root: &Path, dir: &Path, out: &mut Vec<String>) {
    // The store's own locks stay, and files in the trash or in snapshots may have any name.
    if ["proq/locks", "proq/trash", "proq/snaps"].iter().any(|own| dir == root.join(own)) {
        return;
    }
    for name in file_names(dir) {
        let path = dir.join(&name);
        let is_draft = dir.starts_with(root.join("proq")) && name.starts_with('.');
        if path.extension().is_some_and(|kind| kind == "lock") || is_draft {
            out.push(path.strip_prefix(root).unwrap().display().to_string());
        }
        if path.is_dir() && !path.is_symlink() {
            find_locks(root, &path, out);
        }
    }
}

/// Returns the text with the numbers of killed processes masked.
fn mask_process_ids(text: &str) -> String {
    let mut parts = text.split("(process ");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        out.push_str("(process [PID]");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

/// Returns a command that runs with a wrapper around git. When the arguments of a git call contain `call`,
/// the shell script `replacement_script` runs instead, in which `$REAL` is the real git.
pub fn with_git_wrapper(sandbox: &Sandbox, call: &str, replacement_script: &str, args: &[&str]) -> Command {
    let real = find_git(["PROQ_TEST_PATH", "PATH"].into_iter().filter_map(std::env::var_os));
    let script = format!(
        "REAL='{}'\ncase \"$*\" in *'{call}'*)\n{replacement_script}\nesac\nexec \"$REAL\" \"$@\"",
        real.display()
    );
    sandbox.program("other/git", &script);
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    force_git(&mut command, call);
    let known: Vec<_> =
        command.get_envs().filter(|(name, _)| *name == "PATH").filter_map(|(_, to)| to).collect();
    let mut path = sandbox.root().join("bin/other").into_os_string();
    path.push(":");
    path.push(known[0]);
    command.env("PATH", path);
    command
}

/// Makes a command start git for `call` where it could do without: a setting states how git is to write the
/// index, or the files of refs.
fn force_git(command: &mut Command, call: &str) {
    let (key, value) = match call {
        _ if call.starts_with("read-tree") => ("index.version", "2"),
        _ if call.starts_with("update-ref --stdin") => ("core.sharedRepository", "umask"),
        _ => return,
    };
    let setting = [("COUNT", "1"), ("KEY_0", key), ("VALUE_0", value)];
    command.envs(setting.map(|(name, value)| (format!("GIT_CONFIG_{name}"), value)));
}

/// Runs a command that is killed by its own git.
#[track_caller]
pub fn kill_in_git(sandbox: &Sandbox, call: &str, script: &str, args: &[&str]) {
    let out =
        sandbox.output(with_git_wrapper(sandbox, call, &format!("{script}\nkill -9 $PPID; exit 0"), args));
    assert_eq!(out.code, 137, "no call of git held {call}: {}", out.to_text());
}

/// Returns the first git in search paths, each a list of folders like `PATH`.
fn find_git(search_paths: impl IntoIterator<Item = OsString>) -> PathBuf {
    let folders = search_paths.into_iter().flat_map(|all| std::env::split_paths(&all).collect::<Vec<_>>());
    folders.map(|folder| folder.join("git")).find(|git| git.is_file()).unwrap()
}

/// Runs the program while `act`, a shell script, runs in the main checkout right before the first call of git
/// whose arguments contain `moment`.
pub fn run_with_race(sandbox: &Sandbox, moment: &str, act: &str, args: &[&str]) -> Output {
    let bin = sandbox.root().join("racing");
    std::fs::create_dir_all(&bin).unwrap();
    if moment.contains("refs/heads/") || moment == "update-ref" {
        // Only git knows what this setting means for new files, so git has to create branches.
        sandbox.git(&["config", "core.sharedRepository", "umask"]);
    }
    let path = std::env::var("PATH").unwrap();
    let real = find_git([path.clone().into()]);
    let done = bin.join("done");
    drop(std::fs::remove_file(&done));
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *'{moment}'*) if [ ! -e '{done}' ]; then : > '{done}'; (unset GIT_INDEX_FILE GIT_DIR GIT_WORK_TREE; cd '{repo}'; PATH='{path}'; {act}) >/dev/null 2>&1; fi;; esac\nexec '{real}' \"$@\"\n",
        real = real.display(),
        done = done.display(),
        repo = sandbox.repo.display(),
    );
    std::fs::write(bin.join("git"), script).unwrap();
    std::fs::set_permissions(bin.join("git"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command: Command = sandbox.proq_command(&sandbox.repo, args);
    command.env("PATH", format!("{}:{path}", bin.display()));
    force_git(&mut command, moment);
    let out = sandbox.output(command);
    assert!(done.exists(), "no call of git held '{moment}': {}", out.to_text());
    out
}
