//! Sparse lanes, in which only some folders are checked out.

use std::path::Path;

use proq_test_kit::conflict::hint_commands;
use proq_test_kit::plans::install_worker;
use proq_test_kit::{Sandbox, WorktreeState, file_names};

/// Returns a sandbox with files in multiple folders, two of them deep.
fn sandbox_with_folders() -> Sandbox {
    let sandbox = Sandbox::new();
    for path in ["src/pay/card/a.rs", "src/pay/b.rs", "src/tax/c.rs", "src/d.rs", "doc/e.md", "doc/deep/f.md"]
    {
        sandbox.write(path, &format!("{path}\n"));
    }
    sandbox.commit_all("files");
    sandbox
}

/// Returns the files of a checkout, without those of git.
fn checked_out_files(sandbox: &Sandbox, dir: &Path) -> String {
    sandbox.sh_in(dir, "find . -path ./.git -prune -o -path ./.proq-worktrees -prune -o -type f -print | sort | tr '\\n' ' '")
}

fn assert_clean(sandbox: &Sandbox, dir: &Path) {
    sandbox.sh_in(dir, "find . -name .git -prune -o -type f -exec touch -d 2001-01-01 {} +");
    assert_eq!(sandbox.git_in(dir, &["status", "--porcelain"]), "");
}

#[test]
fn lane_is_as_sparse_as_main_checkout() {
    for sparse_command in [
        "git sparse-checkout set --cone src/pay",
        "git sparse-checkout set --no-cone '/*' '!/doc/' '!/src/tax/'",
        "git sparse-checkout set --cone --sparse-index src/pay",
    ] {
        let sandbox = sandbox_with_folders();
        sandbox.sh(sparse_command);
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
        let lane = sandbox.lane_path("x");
        assert_eq!(
            checked_out_files(&sandbox, &lane),
            checked_out_files(&sandbox, &sandbox.repo),
            "{sparse_command}"
        );
        assert!(!lane.join("doc").exists(), "{sparse_command}");
        assert_clean(&sandbox, &lane);
        assert_eq!(
            sandbox.git_in(&lane, &["sparse-checkout", "list"]),
            sandbox.git(&["sparse-checkout", "list"])
        );
        sandbox.assert_healthy();
    }
}

#[test]
fn full_lane_is_created_beside_sparse_lane() {
    let sandbox = sandbox_with_folders();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "cut", "--sparse", "--scope", "doc/"]).ok();
    sandbox.git(&["checkout", "-q", "--detach", "HEAD~1"]);
    // The only checkout at this commit is the sparse one.
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "all", "--base", "main"]).ok();
    let lane = sandbox.lane_path("all");
    assert_eq!(checked_out_files(&sandbox, &lane).split_whitespace().count(), 7);
    assert_clean(&sandbox, &lane);
}

/// Promise: new-lane/sparse-lane
#[test]
fn sparse_lane_has_folders_of_its_scope() {
    let sandbox = sandbox_with_folders();
    for (scope, expected) in [
        (&["src/pay/"][..], "./a.txt ./src/d.rs ./src/pay/b.rs ./src/pay/card/a.rs"),
        (&["src/pay/card/a.rs"], "./a.txt ./src/d.rs ./src/pay/b.rs ./src/pay/card/a.rs"),
        (&["doc/deep", "src/tax/c.rs"], "./a.txt ./doc/deep/f.md ./doc/e.md ./src/d.rs ./src/tax/c.rs"),
        (&["new/there/x.rs"], "./a.txt"),
        (&["*.md"], "./a.txt ./doc/deep/f.md ./doc/e.md"),
        (&["a.txt"], "./a.txt"),
    ] {
        let mut args = vec!["spawn", "--empty", "--sparse", "-n", "x"];
        args.extend(scope.iter().flat_map(|glob| ["--scope", glob]));
        let out = sandbox.proq(&[&args[..], &["-v"]].concat());
        assert!(out.stderr.contains("by git: the sparse checkouts differ"), "{}", out.to_text());
        let lane = sandbox.lane_path("x");
        assert_eq!(checked_out_files(&sandbox, &lane), expected, "{scope:?}");
        assert_clean(&sandbox, &lane);
        assert!(sandbox.git(&["ls-files", "-t"]).lines().all(|line| line.starts_with("H ")));
        let stdout = sandbox.proq(&["show", "x"]).ok();
        assert!(stdout.contains("checkout   sparse: "), "{stdout}");
        let _ = sandbox.proq(&["discard", "x"]).ok();
    }
    assert_eq!(checked_out_files(&sandbox, &sandbox.repo).split_whitespace().count(), 7);
    sandbox.assert_healthy();
}

#[test]
fn refuses_sparse_lane_without_scope() {
    let sandbox = sandbox_with_folders();
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "--sparse", "-n", "x"]).to_text(), @r#"
    --- stderr
    error: cannot use --sparse: there is no --scope
    hint: for example: git proq spawn claude "implement payments" --sparse --scope src/pay/
    --- code 2
    "#);
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
}

/// Promise: new-lane/sparse-lane
#[test]
fn sparse_lane_is_previewed_landed_and_restored() {
    let sandbox = sandbox_with_folders();
    let _ = sandbox.proq(&["spawn", "--empty", "--sparse", "-n", "x", "--scope", "src/pay/"]).ok();
    let lane = sandbox.lane_path("x");
    sandbox.sh_in(&lane, "echo more >> src/pay/b.rs; git commit -qam more");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    assert_eq!(sandbox.read("src/pay/b.rs"), "src/pay/b.rs\nmore\n");
    assert_eq!(sandbox.read("doc/e.md"), "doc/e.md\n");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    // Files outside of the folders are uncommitted work like any other.
    sandbox.write_in(&lane, "doc/new.md", "new\n");
    sandbox.write_in(&lane, "src/pay/new.rs", "new\n");
    sandbox.sh_in(&lane, "git mv src/d.rs src/g.rs");
    let before = WorktreeState::capture(&sandbox, &lane);
    let _ = sandbox.proq(&["discard", "x"]).fails(1);
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(before, WorktreeState::capture(&sandbox, &lane));
    assert_eq!(sandbox.git_in(&lane, &["sparse-checkout", "list"]), "src/pay");
    let _ = sandbox.proq(&["merge", "x"]).fails(1);
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(
        (sandbox.read("doc/new.md"), sandbox.read("src/pay/new.rs")),
        ("new\n".into(), "new\n".into())
    );
    assert_eq!(checked_out_files(&sandbox, &sandbox.repo).split_whitespace().count(), 9);
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git_in(&lane, &["sparse-checkout", "list"]), "src/pay");
    assert!(!lane.join("doc/e.md").exists());
    sandbox.assert_healthy();
}

#[test]
fn refused_landing_hint_commits_file_outside_cone() {
    let sandbox = sandbox_with_folders();
    let _ = sandbox.proq(&["spawn", "--empty", "--sparse", "-n", "x", "--scope", "src/pay/"]).ok();
    sandbox.write_in(&sandbox.lane_path("x"), "doc/new.md", "new\n");
    let text = sandbox.proq(&["merge", "x"]).fails(1);
    sandbox.sh(&format!("{} -qm more", hint_commands(&sandbox, &text)[0]));
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(sandbox.read("doc/new.md"), "new\n");
}

#[test]
fn agent_is_prompted_about_cone_and_redispatch_keeps_it() {
    let sandbox = sandbox_with_folders();
    sandbox.program("robot", "cat > \"$ROOT/told\"; printf '%s\\n' \"$@\" >> \"$ROOT/told\"; echo new > src/pay/new.rs; mkdir -p doc; echo out > doc/out.md");
    let _ =
        sandbox.proq(&["spawn", "--wait", "--sparse", "-n", "x", "--scope", "src/pay/", "robot", "pay"]).ok();
    sandbox.program("codex", "true");
    let _ = sandbox.proq(&["spawn", "--wait", "--sparse", "-n", "y", "--scope", "src/pay/", "codex", "pay"]);
    let prompt = sandbox.proq(&["show", "--prompt", "y"]).ok();
    assert!(prompt.contains("git sparse-checkout add") && prompt.contains("`src/pay`"), "{prompt}");
    assert_eq!(sandbox.git(&["diff", "--name-only", "main", "proq/x"]), "doc/out.md\nsrc/pay/new.rs");
    let _ = sandbox.proq(&["redispatch", "x"]).ok();
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(file_names(&sandbox.lane_path("x").join("src")), ["d.rs", "pay"]);
    assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["sparse-checkout", "list"]), "src/pay");
}

#[test]
fn attempts_are_equally_sparse() {
    let sandbox = sandbox_with_folders();
    let _ = sandbox
        .proq(&["spawn", "--empty", "--sparse", "-n", "x", "--scope", "doc/deep/", "--count", "2"])
        .ok();
    for name in ["x-1", "x-2"] {
        assert_eq!(
            checked_out_files(&sandbox, &sandbox.lane_path(name)),
            "./a.txt ./doc/deep/f.md ./doc/e.md"
        );
        assert_clean(&sandbox, &sandbox.lane_path(name));
    }
}

/// Plan of two tasks about the same files, so that one lane does both; the scope of the second is larger.
const PLAN: &str = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"one\"\ntitle = \"1\"\nscope = [\"src/pay/\"]\n\
                    [[task]]\nid = \"two\"\ntitle = \"2\"\nscope = [\"src/pay/\", \"doc/deep/\"]\nneeds = [\"one\"]\n";

#[test]
fn sparse_setting_applies_to_scoped_and_plan_lanes() {
    let sandbox = sandbox_with_folders();
    sandbox.git(&["config", "proq.lane.sparse", "true"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "cut", "--scope", "doc/deep/"]).ok();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "all"]).ok();
    assert_eq!(checked_out_files(&sandbox, &sandbox.lane_path("cut")), "./a.txt ./doc/deep/f.md ./doc/e.md");
    assert_eq!(checked_out_files(&sandbox, &sandbox.lane_path("all")).split_whitespace().count(), 7);
    sandbox.write("plan.toml", PLAN);
    sandbox.commit_all("plan");
    install_worker(
        &sandbox,
        "ls -d doc src/pay src/tax 2>/dev/null | tr '\\n' ' ' > \"$ROOT/saw-$name\"; pwd >> \"$ROOT/lanes\"",
    );
    let _ = sandbox.proq(&["swarm", "plan.toml", "--yes", "-q"]).ok();
    assert_eq!(
        sandbox.sh("cat ../saw-one; echo; cat ../saw-two; sort -u ../lanes | wc -l"),
        "src/pay \ndoc src/pay 1"
    );
    sandbox.assert_healthy();
}

/// Returns a sparse checkout with an edited file outside of its patterns, and a lane `one` that edits another
/// line of that file.
fn sandbox_with_edit_outside_patterns(before: &str, after: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir -p d/e; seq 20 >f; seq 20 >d/e/x; seq 9 >d/y");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "sed -i s/^20$/lane/ d/e/x");
    sandbox.sh(before);
    sandbox.sh("git show main:d/e/x >.git/x; mkdir -p d/e; sed s/^1$/mine/ .git/x >d/e/x; echo more >>f");
    sandbox.sh(after);
    sandbox
}

#[test]
fn refused_landing_hints_resolve_edits_outside_cone() {
    let no_cone = "git sparse-checkout set --no-cone '/f*'";
    for (before, after) in [
        (no_cone, ""),
        ("git sparse-checkout set --cone", ""),
        (no_cone, "git update-index --no-skip-worktree d/e/x"),
        (no_cone, "git config sparse.expectFilesOutsideOfPatterns true"),
        (no_cone, "git update-index --assume-unchanged d/e/x"),
    ] {
        for hint_index in 0..2 {
            let sandbox = sandbox_with_edit_outside_patterns(before, after);
            let mut text = sandbox.proq(&["merge", "one"]).fails(1);
            assert!(text.contains("are in the way: d/e/x; nothing was changed"), "{text}");
            if text.contains("make git check ") {
                sandbox.sh(&hint_commands(&sandbox, &text)[0]);
                text = sandbox.proq(&["merge", "one"]).fails(1);
            }
            let hints = hint_commands(&sandbox, &text);
            assert_eq!(hints.len(), 2, "{before}; {after}: {text}");
            sandbox.sh(&hints[hint_index]);
            let _ = sandbox.proq(&["merge", "one"]).ok();
            let first = sandbox.sh("git show main:d/e/x | sed -n '1p;20p'");
            assert_eq!(first, if hint_index == 0 { "mine\nlane" } else { "1\nlane" });
            if hint_index == 1 {
                assert_eq!(sandbox.sh("git show stash:d/e/x | sed -n 1p"), "mine");
            }
        }
    }
}

#[test]
fn refused_landing_hint_commits_staged_file_outside_cone() {
    let sandbox = sandbox_with_edit_outside_patterns(
        "git sparse-checkout set --no-cone '/f*'",
        "git add --sparse d/e/x",
    );
    sandbox.sh("git update-index --skip-worktree d/e/x; rm -r d");
    let text = sandbox.proq(&["merge", "one"]).fails(1);
    sandbox.sh(&hint_commands(&sandbox, &text)[0]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.sh("git show main:d/e/x | sed -n '1p;20p'"), "mine\nlane");
}
