//! `git proq hooks`: a hook for commits by hand, put in front of an existing hook and removed without a
//! trace.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use proq_test_kit::Sandbox;

/// Returns a repository that has a post-commit hook and a lane.
fn with_hook(text: &str, mode: u32) -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::new();
    let hook = sandbox.repo.join(".git/hooks/post-commit");
    sandbox.write(".git/hooks/post-commit", text);
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(mode)).unwrap();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    (sandbox, hook)
}

/// Returns the names, permissions, link targets and contents of a folder's files.
fn image(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut out: Vec<String> = entries
        .map(|entry| {
            let (path, meta) = (entry.path(), entry.metadata().unwrap());
            let text = std::fs::read(&path).unwrap_or_default();
            let link = std::fs::read_link(&path).ok();
            format!("{} {:o} {link:?} {text:?}", path.display(), meta.permissions().mode())
        })
        .collect();
    out.sort();
    out
}

#[test]
fn installed_hook_counts_commits_and_runs_existing_hook() {
    let (sandbox, hook) = with_hook("#!/bin/sh\necho \"$PWD\" >> \"$ROOT/ran\"\nexit 3\n", 0o755);
    insta::assert_snapshot!(sandbox.proq(&["hooks", "install"]).to_text(), @r"
    wrote [ROOT]/repo/.git/hooks/post-commit, in front of the one that is there
    --- code 0
    ");
    sandbox.commit_in_lane("x", "echo 1 > one");
    sandbox.commit_all("not in a lane");
    assert_eq!(sandbox.events("lane.committed").len(), 1);
    let ran = std::fs::read_to_string(sandbox.root().join("ran")).unwrap();
    assert_eq!(ran, format!("{}\n{}\n", sandbox.lane_path("x").display(), sandbox.repo.display()));
    // An agent's commit is still reported once.
    sandbox.run_lane("y", "git commit -q --allow-empty -m by-agent");
    assert_eq!(sandbox.events("lane.committed").len(), 2);
    assert!(sandbox.proq(&["hooks", "install"]).ok().ends_with("post-commit is there already\n"));
    assert_eq!(sandbox.proq(&["hooks", "status", "--json"]).json()["state"], "installed");
    assert!(hook.with_file_name("post-commit.before-git-proq").exists());
}

#[test]
fn status_names_how_to_install_a_missing_hook() {
    let sandbox = Sandbox::new();
    let shown = sandbox.proq(&["hooks"]);
    insta::assert_snapshot!(shown.to_text(), @r"
    [ROOT]/repo/.git/hooks/post-commit is not installed
    --- stderr
    hint: install it: git proq hooks install
    --- code 0
    ");
    let _ = sandbox.follow_hint(&shown.stderr, "install it").ok();
    let shown = sandbox.proq(&["hooks"]);
    assert!(shown.stdout.ends_with("post-commit is git-proq's\n") && shown.stderr.is_empty(), "{shown:?}");
    // Where git-proq installs nothing, it names no command for that.
    sandbox.git(&["config", "core.hooksPath", "hooks-of-project"]);
    let shown = sandbox.proq(&["hooks"]);
    assert!(shown.stdout.ends_with("is not installed\n") && shown.stderr.is_empty(), "{shown:?}");
}

/// Promise: agent-git/hooks-install
#[test]
fn uninstall_restores_existing_hook() {
    for (text, mode) in [("#!/bin/sh\n\0\r\n", 0o754), ("not run", 0o600)] {
        let (sandbox, hook) = with_hook(text, mode);
        let before = image(hook.parent().unwrap());
        let _ = sandbox.proq(&["hooks", "install", "--dry-run"]).ok();
        assert_eq!(image(hook.parent().unwrap()), before);
        let _ = sandbox.proq(&["hooks", "install"]).ok();
        sandbox.commit_in_lane("x", "echo 1 > one");
        let _ = sandbox.proq(&["hooks", "uninstall", "--dry-run"]).ok();
        assert_ne!(image(hook.parent().unwrap()), before);
        let _ = sandbox.proq(&["hooks", "uninstall"]).ok();
        assert_eq!(image(hook.parent().unwrap()), before);
        insta::allow_duplicates! {
            insta::assert_snapshot!(sandbox.proq(&["hooks", "uninstall"]).to_text(), @r"
            [ROOT]/repo/.git/hooks/post-commit is not git-proq's; nothing was changed
            --- code 0
            ");
        }
    }
}

/// Promise: agent-git/hooks-install
#[test]
fn uninstall_restores_link_and_empty_folder() {
    let sandbox = Sandbox::new();
    let folder = sandbox.repo.join(".git/hooks");
    sandbox.sh("rm -rf .git/hooks");
    let _ = sandbox.proq(&["hooks", "install"]).ok();
    let _ = sandbox.proq(&["hooks", "uninstall"]).ok();
    assert_eq!(image(&folder), [""; 0]);
    symlink("../nowhere", folder.join("post-commit")).unwrap();
    let before = image(&folder);
    let _ = sandbox.proq(&["hooks", "install"]).ok();
    // Git ignores a hook that fails after a commit.
    assert_eq!(
        sandbox.output(sandbox.command(folder.join("post-commit"), &sandbox.repo)).to_text(),
        "--- code 0\n"
    );
    let _ = sandbox.proq(&["hooks", "uninstall"]).ok();
    assert_eq!(image(&folder), before);
}

/// Promise: agent-git/hooks-install
#[test]
fn interrupted_install_can_be_completed_or_undone() {
    for link in [false, true] {
        let (sandbox, hook) = with_hook("#!/bin/sh\necho ran >> \"$ROOT/ran\"\n", 0o755);
        if link {
            std::fs::rename(&hook, sandbox.root().join("mine")).unwrap();
            symlink(sandbox.root().join("mine"), &hook).unwrap();
        }
        let folder = hook.parent().unwrap();
        let before = image(folder);
        let interrupt_install =
            || std::fs::hard_link(&hook, hook.with_file_name("post-commit.before-git-proq")).unwrap();
        interrupt_install();
        let halfway = image(folder);
        let output = sandbox.proq(&["hooks", "uninstall", "--dry-run"]).ok();
        let leftover = "[ROOT]/repo/.git/hooks/post-commit.before-git-proq away, which an install that was cut off had left\n";
        assert_eq!(output, format!("would take {leftover}"));
        assert_eq!(image(folder), halfway);
        assert_eq!(sandbox.proq(&["hooks", "uninstall"]).ok(), format!("took {leftover}"));
        assert_eq!(image(folder), before);
        interrupt_install();
        let _ = sandbox.proq(&["hooks", "install"]).ok();
        sandbox.commit_in_lane("x", "echo 1 > one");
        assert_eq!(sandbox.events("lane.committed").len(), 1);
        assert_eq!(std::fs::read_to_string(sandbox.root().join("ran")).unwrap(), "ran\n");
        let _ = sandbox.proq(&["hooks", "uninstall"]).ok();
        assert_eq!(image(folder), before);
    }
}

/// Promise: agent-git/hooks-install
#[test]
fn refuses_to_overwrite_changed_hooks() {
    let (sandbox, hook) = with_hook("#!/bin/sh\n", 0o755);
    let _ = sandbox.proq(&["hooks", "install"]).ok();
    let ours = std::fs::read(&hook).unwrap();
    for (file, reason) in [
        ("post-commit", "it was changed after it was installed"),
        ("post-commit.before-git-proq", "the hook that it calls was changed after it was installed"),
    ] {
        let path = hook.with_file_name(file);
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, [text.as_slice(), b"# more\n"].concat()).unwrap();
        let before = image(hook.parent().unwrap());
        let output = sandbox.proq(&["hooks", "uninstall"]).fails(1);
        assert!(output.contains(reason), "{output}");
        assert_eq!(image(hook.parent().unwrap()), before);
        std::fs::write(&path, text).unwrap();
    }
    std::fs::write(&hook, "#!/bin/sh\n# of a tool that writes its own\n").unwrap();
    assert!(sandbox.proq(&["hooks", "uninstall"]).fails(1).contains("it is no longer the hook of git-proq"));
    assert!(
        sandbox
            .proq(&["hooks", "install"])
            .fails(1)
            .contains("exists already, where the present hook would be saved")
    );
    std::fs::write(&hook, ours).unwrap();
    let _ = sandbox.proq(&["hooks", "uninstall"]).ok();
}

/// Promise: agent-git/hooks-install
#[test]
fn refuses_hooks_folder_in_worktree() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "core.hooksPath", ".husky/_"]);
    insta::assert_snapshot!(sandbox.proq(&["hooks", "install"]).to_text(), @r"
    --- stderr
    error: hooks are in [ROOT]/repo/.husky/_, among the project's files; nothing was written
    hint: call this from a post-commit hook of yours ([ROOT]/repo/.husky/post-commit with husky): git proq hooks run
    --- code 1
    ");
    assert!(!sandbox.repo.join(".husky").exists());
    // Git's own hooks folder belongs to the repository, also under another spelling of its path.
    sandbox.git(&["config", "core.hooksPath", ".git/../.git/hooks"]);
    let _ = sandbox.proq(&["hooks", "install"]).ok();
    assert!(sandbox.repo.join(".git/hooks/post-commit").exists());
}

/// Promise: agent-git/hooks-install
#[test]
fn refuses_shared_hooks_folder() {
    let sandbox = Sandbox::new();
    let shared = sandbox.root().join("it's shared");
    std::fs::create_dir(&shared).unwrap();
    sandbox.git(&["config", "--global", "core.hooksPath", shared.to_str().unwrap()]);
    for args in [&["hooks", "install"][..], &["hooks", "install", "--dry-run"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(sandbox.proq(args).to_text(), @r"
            --- stderr
            error: hooks are in [ROOT]/it's shared, outside of this repository, where other repositories may use it too; nothing was written
            hint: call this from a hook of yours ([ROOT]/it's shared/post-commit); it does nothing outside of lanes: git proq hooks run
            --- code 1
            ");
        }
    }
    assert_eq!(image(&shared), [""; 0]);
    // The command that the hint names works there, and prints nothing elsewhere.
    sandbox.program("hook", "exec git proq hooks run");
    sandbox.sh("mv \"$ROOT/bin/hook\" \"$ROOT/it's shared/post-commit\"");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.commit_in_lane("x", "echo 1 > one");
    assert_eq!(sandbox.events("lane.committed").len(), 1);
    sandbox.git(&["init", "-q", "../other"]);
    assert_eq!(sandbox.proq_in(&sandbox.root().join("other"), &["hooks", "run"]).to_text(), "--- code 0\n");
    // A link out of the repository is refused as well.
    sandbox.git(&["config", "--global", "--unset", "core.hooksPath"]);
    sandbox.sh("rm -rf .git/hooks; ln -s \"$ROOT/it's shared\" .git/hooks; rm .git/hooks/post-commit");
    let output = sandbox.proq(&["hooks", "install"]).fails(1);
    assert!(output.contains("outside of this repository"), "{output}");
    assert_eq!(image(&shared), [""; 0]);
}
