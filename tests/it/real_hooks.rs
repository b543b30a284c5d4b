//! Owns the tests with real managers of hooks: husky, lefthook and Git LFS in the lanes of a repository that is set up for them. They are
//! ignored by default; with `--ignored` they need `PROQ_REAL_HOOKS`, a folder with all three, and fail without it. Nothing is installed
//! or downloaded here.

use std::path::PathBuf;

use super::support::Sandbox;

/// What lefthook is to run.
const LEFTHOOK: &str = r#"pre-commit:
  commands:
    lint:
      run: echo "linted in $(pwd)" >> "$ROOT/ran"; test ! -e refuse
commit-msg:
  commands:
    trailer:
      run: echo trailer >> {1}
"#;

/// What an agent does, `$1` being what lays the hooks out, as `npm install` does; the second commit is refused once.
const AGENT: &str = r#"
    commit() { echo "$1" > "$1"; git add "$1"; git commit -qm "$1"; }
    sh -ec "$1"; commit one
    touch refuse; if commit two; then echo not refused; fi; rm refuse
    sh -ec "$1"; commit two
    if git branch -f main HEAD; then echo not fenced; fi"#;

/// A sandbox that finds these programs. Panics where the environment does not name them.
fn with(programs: &[&str]) -> Sandbox {
    let folder = std::env::var_os("PROQ_REAL_HOOKS")
        .map_or_else(|| panic!("this test needs PROQ_REAL_HOOKS"), PathBuf::from);
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.root().join("bin")).unwrap();
    for program in programs {
        let place = folder.join(program);
        assert!(place.exists(), "there is no {program} in PROQ_REAL_HOOKS");
        std::os::unix::fs::symlink(place, sandbox.root().join("bin").join(program)).unwrap();
    }
    sandbox
}

/// Has an agent commit, with hooks that `lays_out` lays out, and insists that they ran as they do anywhere.
fn commits_are_checked(sandbox: &Sandbox, lays_out: &str) {
    let hooks = || {
        sandbox.sh("{ git config --get core.hooksPath || true; find .git/hooks .husky -type f -exec cksum {} + || true; } > \"$ROOT/state\" 2>/dev/null");
        std::fs::read_to_string(sandbox.root().join("state")).unwrap()
    };
    sandbox.sh(lays_out);
    let before = hooks();
    let out = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-ec", AGENT, "agent", lays_out]);
    let said = sandbox.proq(&["logs", "x"]).ok();
    assert_eq!(out.code, 0, "{}{said}", out.shown());
    assert!(!said.contains("not refused") && !said.contains("not fenced"), "{said}");
    assert_eq!(sandbox.git(&["log", "--format=%B", "main..proq/x"]), "two\ntrailer\n\none\ntrailer");
    let ran = sandbox.plain(&std::fs::read(sandbox.root().join("ran")).unwrap());
    assert_eq!(ran, "linted in [ROOT]/repo/.proq-worktrees/x\n".repeat(3), "once for each commit");
    assert_eq!(hooks(), before, "the repository's own are as they were");
    assert!(std::fs::read_dir(sandbox.repo.join(".git/proq/fences")).unwrap().next().is_none());
    // A commit of the user's own is checked as before.
    sandbox.sh("echo mine > mine; git add mine; git commit -qm mine");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%B"]), "mine\ntrailer");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    sandbox.assert_healthy();
}

#[test]
#[ignore = "needs the real managers of hooks: PROQ_REAL_HOOKS"]
fn real_lefthook_checks_the_commits_of_a_lane() {
    let sandbox = with(&["lefthook"]);
    sandbox.write("lefthook.yml", LEFTHOOK);
    sandbox.commit_all("lefthook");
    commits_are_checked(&sandbox, "lefthook install > /dev/null");
}

#[test]
#[ignore = "needs the real managers of hooks: PROQ_REAL_HOOKS"]
fn real_husky_checks_the_commits_of_a_lane() {
    let sandbox = with(&["husky"]);
    sandbox.write(".husky/pre-commit", "echo \"linted in $(pwd)\" >> \"$ROOT/ran\"; test ! -e refuse\n");
    sandbox.write(".husky/commit-msg", "echo trailer >> \"$1\"\n");
    sandbox.commit_all("husky");
    commits_are_checked(&sandbox, "husky");
}

#[test]
#[ignore = "needs the real managers of hooks: PROQ_REAL_HOOKS"]
fn real_lfs_keeps_large_files_of_a_lane() {
    let sandbox = with(&["git-lfs"]);
    sandbox.sh("git lfs install --local > /dev/null; git lfs track '*.bin' > /dev/null; git add .gitattributes; git commit -qm lfs");
    sandbox.lane_with(
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
fn real_lfs_leaves_pointers_in_a_lane_that_wants_them() {
    let sandbox = with(&["git-lfs"]);
    sandbox.sh(
        "git lfs install --local > /dev/null; git lfs track '*.bin' > /dev/null; printf large > a.bin; git add .; git commit -qm lfs
        git config proq.lane.lfs pointer",
    );
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    let lane = sandbox.lane("x");
    let pointer = std::fs::read_to_string(lane.join("a.bin")).unwrap();
    assert!(pointer.starts_with("version https://git-lfs.github.com/spec/v1"), "{pointer}");
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    sandbox.commit_in_lane("x", "printf more > b.bin");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!((sandbox.read("a.bin"), sandbox.read("b.bin")), ("large".into(), "more".into()));
    sandbox.assert_healthy();
}
