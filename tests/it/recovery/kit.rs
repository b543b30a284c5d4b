//! Owns killing a command at a point, and what must hold after any recovery.

use std::path::Path;
use std::process::Command;

use crate::support::{Output, Sandbox, names};

/// Runs a command that dies at a point.
#[track_caller]
pub fn dies(sandbox: &Sandbox, at: &str, args: &[&str]) {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.env("PROQ_TEST_DIE_AT", at);
    let out = sandbox.output(command);
    assert_eq!(out.code, 137, "it did not come to {at}: {}", out.shown());
}

/// Runs the command that comes next, which puts things right, and returns what the user sees of that. A second one finds
/// nothing to do.
#[track_caller]
pub fn recovers(sandbox: &Sandbox) -> String {
    is_recovered(sandbox, &sandbox.proq(&["list"]))
}

/// The same, where the machine was started again meanwhile.
#[track_caller]
pub fn recovers_after_a_start(sandbox: &Sandbox) {
    let mut command = sandbox.proq_command(&sandbox.repo, &["list"]);
    command.env("PROQ_TEST_BOOT", "now");
    is_recovered(sandbox, &sandbox.output(command));
}

#[track_caller]
fn is_recovered(sandbox: &Sandbox, next: &Output) -> String {
    assert_eq!(next.code, 0, "{}", next.shown());
    let again = sandbox.proq(&["list"]);
    assert!(!again.stderr.contains("cut short"), "{}", again.shown());
    is_tidy(sandbox);
    without_process(&next.stderr)
}

/// No lock of git's and nothing of what was under way is left, and every object is there.
#[track_caller]
pub fn is_tidy(sandbox: &Sandbox) {
    let git = sandbox.repo.join(".git");
    assert_eq!(names(&git.join("proq/work")), [""; 0], "what is under way");
    let mut strange = Vec::new();
    look_for_locks(&git, &git, &mut strange);
    assert_eq!(strange, [""; 0], "locks and drafts");
    sandbox.git(&["fsck", "--connectivity-only", "--no-dangling", "--no-progress"]);
}

fn look_for_locks(root: &Path, dir: &Path, out: &mut Vec<String>) {
    // The store's own locks stay, and what users have in the trash or set aside is called as they like.
    if ["proq/locks", "proq/trash", "proq/snaps"].iter().any(|own| dir == root.join(own)) {
        return;
    }
    for name in names(dir) {
        let path = dir.join(&name);
        let is_draft = dir.starts_with(root.join("proq")) && name.starts_with('.');
        if path.extension().is_some_and(|kind| kind == "lock") || is_draft {
            out.push(path.strip_prefix(root).unwrap().display().to_string());
        }
        if path.is_dir() && !path.is_symlink() {
            look_for_locks(root, &path, out);
        }
    }
}

/// What was said, without the number of the process that died.
fn without_process(text: &str) -> String {
    let mut parts = text.split("(process ");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        out.push_str("(process [PID]");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

/// A command that meets another git: where a call's arguments hold `moment`, `act` runs in its place, a shell script
/// for which `$REAL` is the real one.
pub fn with_git(sandbox: &Sandbox, moment: &str, act: &str, args: &[&str]) -> Command {
    let path = std::env::var_os("PROQ_TEST_PATH").into_iter().chain(std::env::var_os("PATH"));
    let real = path
        .flat_map(|all| std::env::split_paths(&all).collect::<Vec<_>>())
        .map(|dir| dir.join("git"))
        .find(|git| git.is_file())
        .unwrap();
    let script = format!(
        "REAL='{}'\ncase \"$*\" in *'{moment}'*)\n{act}\nesac\nexec \"$REAL\" \"$@\"",
        real.display()
    );
    sandbox.program("other/git", &script);
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    if moment.starts_with("read-tree") {
        brings_by_git(&mut command);
    }
    let known: Vec<_> =
        command.get_envs().filter(|(name, _)| *name == "PATH").filter_map(|(_, to)| to).collect();
    let mut path = sandbox.root().join("bin/other").into_os_string();
    path.push(":");
    path.push(known[0]);
    command.env("PATH", path);
    command
}

/// Has a command leave files and index to git where it could do without: a setting says how git is to write the index.
pub fn brings_by_git(command: &mut Command) {
    let setting = [("COUNT", "1"), ("KEY_0", "index.version"), ("VALUE_0", "2")];
    command.envs(setting.map(|(name, value)| (format!("GIT_CONFIG_{name}"), value)));
}

/// Runs a command whose git ends it.
#[track_caller]
pub fn dies_in_git(sandbox: &Sandbox, moment: &str, act: &str, args: &[&str]) {
    let out = sandbox.output(with_git(sandbox, moment, &format!("{act}\nkill -9 $PPID; exit 0"), args));
    assert_eq!(out.code, 137, "no call of git held {moment}: {}", out.shown());
}
