//! Real hook managers: husky, lefthook and Git LFS in the lanes of a repository that is set up for them. The
//! tests are ignored by default; with `--ignored` they need `PROQ_REAL_HOOKS`, a folder with all three, and
//! fail without it. Nothing is installed or downloaded here.

use std::path::PathBuf;

use proq_test_kit::Sandbox;

/// Configuration of lefthook.
const LEFTHOOK_CONFIG: &str = r#"pre-commit:
  commands:
    lint:
      run: echo "linted in $(pwd)" >> "$ROOT/ran"; test ! -e refuse
commit-msg:
  commands:
    trailer:
      run: echo trailer >> {1}
"#;

/// Script of the agent; `$1` installs the hooks, as `npm install` does. The first try of the second commit is
/// refused.
const AGENT_SCRIPT: &str = r#"
    commit() { echo "$1" > "$1"; git add "$1"; git commit -qm "$1"; }
    sh -ec "$1"; commit one
    touch refuse; if commit two; then echo not refused; fi; rm refuse
    sh -ec "$1"; commit two
    if git branch -f main HEAD; then echo not fenced; fi"#;

/// Returns a sandbox with these programs on its path. Panics where the environment does not name them.
fn sandbox_with_programs(programs: &[&str]) -> Sandbox {
    let folder = std::env::var_os("PROQ_REAL_HOOKS")
        .map_or_else(|| panic!("this test needs PROQ_REAL_HOOKS"), PathBuf::from);
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.root().join("bin")).unwrap();
    for program in programs {
        let program_path = folder.join(program);
        assert!(program_path.exists(), "there is no {program} in PROQ_REAL_HOOKS");
        std::os::unix::fs::symlink(program_path, sandbox.root().join("bin").join(program)).unwrap();
    }
    sandbox
}

/// Lets an agent commit after `install_command` has installed the hooks, and asserts that they ran as in any
/// checkout.
fn assert_hooks_check_commits(sandbox: &Sandbox, install_command: &str) {
    let hooks = || {
        sandbox.sh("{ git config --get core.hooksPath || true; find .git/hooks .husky -type f -exec cksum {} + || true; } > \"$ROOT/state\" 2>/dev/null");
        std::fs::read_to_string(sandbox.root().join("state")).unwrap()
    };
    sandbox.sh(install_command);
    let before = hooks();
    let out = sandbox.proq(&[
        "spawn",
        "--wait",
        "-n",
        "x",
        "--",
        "sh",
        "-ec",
        AGENT_SCRIPT,
        "agent",
        install_command,
    ]);
    let log = sandbox.proq(&["logs", "x"]).ok();
    assert_eq!(out.code, 0, "{}{log}", out.to_text());
    assert!(!log.contains("not refused") && !log.contains("not fenced"), "{log}");
    assert_eq!(sandbox.git(&["log", "--format=%B", "main..proq/x"]), "two\ntrailer\n\none\ntrailer");
    let ran = sandbox.normalize(&std::fs::read(sandbox.root().join("ran")).unwrap());
    assert_eq!(ran, "linted in [ROOT]/repo/.proq-worktrees/x\n".repeat(3), "once for each commit");
    assert_eq!(hooks(), before, "the repository's own are as they were");
    assert!(std::fs::read_dir(sandbox.repo.join(".git/proq/fences")).unwrap().next().is_none());
    // A commit by the user is checked as before.
    sandbox.sh("echo mine > mine; git add mine; git commit -qm mine");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%B"]), "mine\ntrailer");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    sandbox.assert_healthy();
}

#[test]
#[ignore = "needs the real managers of hooks: PROQ_REAL_HOOKS"]
fn lefthook_checks_lane_commits() {
    let sandbox = sandbox_with_programs(&["lefthook"]);
    sandbox.write("lefthook.yml", LEFTHOOK_CONFIG);
    sandbox.commit_all("lefthook");
    assert_hooks_check_commits(&sandbox, "lefthook install > /dev/null");
}

#[test]
#[ignore = "needs the real managers of hooks: PROQ_REAL_HOOKS"]
fn husky_checks_lane_commits() {
    let sandbox = sandbox_with_programs(&["husky"]);
    sandbox.write(".husky/pre-commit", "echo \"linted in $(pwd)\" >> \"$ROOT/ran\"; test ! -e refuse\n");
    sandbox.write(".husky/commit-msg", "echo trailer >> \"$1\"\n");
    sandbox.commit_all("husky");
    assert_hooks_check_commits(&sandbox, "husky");
}

#[test]
#[ignore = "needs the real managers of hooks: PROQ_REAL_HOOKS"]
fn lfs_stores_large_files_of_lane() {
    let sandbox = sandbox_with_programs(&["git-lfs"]);
    sandbox.sh("git lfs install --local > /dev/null; git lfs track '*.bin' > /dev/null; git add .gitattributes; git commit -qm lfs");
    sandbox.run_lane(
        "x",
        "printf large > a.bin; git add a.bin; git commit -qm large; git lfs ls-files --name-only",
    );
    assert_eq!(sandbox.proq(&["logs", "x"]).ok(), "a.bin\n");
    assert!(sandbox.git(&["show", "proq/x:a.bin"]).starts_with("version https://git-lfs.github.com/spec/v1"));
    let _ = sandbox.proq(&["preview", "x"]).ok();
    assert_eq!(sandbox.read("a.bin"), "large");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(sandbox.read("a.bin"), "large");
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    sandbox.assert_healthy();
}

#[test]
#[ignore = "needs the real managers of hooks: PROQ_REAL_HOOKS"]
fn lfs_leaves_pointers_in_lane_on_request() {
    let sandbox = sandbox_with_programs(&["git-lfs"]);
    sandbox.sh(
        "git lfs install --local > /dev/null; git lfs track '*.bin' > /dev/null; printf large > a.bin; git add .; git commit -qm lfs
        git config proq.lane.lfs pointer",
    );
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    let lane = sandbox.lane_path("x");
    let pointer = std::fs::read_to_string(lane.join("a.bin")).unwrap();
    assert!(pointer.starts_with("version https://git-lfs.github.com/spec/v1"), "{pointer}");
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    sandbox.commit_in_lane("x", "printf more > b.bin");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!((sandbox.read("a.bin"), sandbox.read("b.bin")), ("large".into(), "more".into()));
    sandbox.assert_healthy();
}
