//! Owns the tests of lanes of which only some folders are checked out.

use std::path::Path;

use super::plain_refusals::hints;
use super::support::{Image, Sandbox, names};
use super::swarm::worker;

/// A sandbox with files in several folders, two of them deep.
fn scene() -> Sandbox {
    let sandbox = Sandbox::new();
    for path in ["src/pay/card/a.rs", "src/pay/b.rs", "src/tax/c.rs", "src/d.rs", "doc/e.md", "doc/deep/f.md"]
    {
        sandbox.write(path, &format!("{path}\n"));
    }
    sandbox.commit_all("files");
    sandbox
}

/// The files of a checkout, without git's.
fn files(sandbox: &Sandbox, dir: &Path) -> String {
    sandbox.sh_in(dir, "find . -path ./.git -prune -o -path ./.proq-worktrees -prune -o -type f -print | sort | tr '\\n' ' '")
}

fn clean(sandbox: &Sandbox, dir: &Path) {
    sandbox.sh_in(dir, "find . -name .git -prune -o -type f -exec touch -d 2001-01-01 {} +");
    assert_eq!(sandbox.git_in(dir, &["status", "--porcelain"]), "");
}

#[test]
fn a_lane_is_cut_as_the_main_checkout_is() {
    for cut in [
        "git sparse-checkout set --cone src/pay",
        "git sparse-checkout set --no-cone '/*' '!/doc/' '!/src/tax/'",
        "git sparse-checkout set --cone --sparse-index src/pay",
    ] {
        let sandbox = scene();
        sandbox.sh(cut);
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
        let lane = sandbox.lane("x");
        assert_eq!(files(&sandbox, &lane), files(&sandbox, &sandbox.repo), "{cut}");
        assert!(!lane.join("doc").exists(), "{cut}");
        clean(&sandbox, &lane);
        assert_eq!(
            sandbox.git_in(&lane, &["sparse-checkout", "list"]),
            sandbox.git(&["sparse-checkout", "list"])
        );
        sandbox.assert_healthy();
    }
}

#[test]
fn a_lane_of_all_files_is_made_beside_one_that_is_cut() {
    let sandbox = scene();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "cut", "--sparse", "--scope", "doc/"]).ok();
    sandbox.git(&["checkout", "-q", "--detach", "HEAD~1"]);
    // The only checkout that is at this commit is the one that lacks files.
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "all", "--base", "main"]).ok();
    let lane = sandbox.lane("all");
    assert_eq!(files(&sandbox, &lane).split_whitespace().count(), 7);
    clean(&sandbox, &lane);
}

#[test]
fn a_lane_is_cut_to_the_folders_of_its_scope() {
    let sandbox = scene();
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
        assert!(
            out.stderr.contains("by git: the checkout is sparse, and the one to copy from is not"),
            "{}",
            out.shown()
        );
        let lane = sandbox.lane("x");
        assert_eq!(files(&sandbox, &lane), expected, "{scope:?}");
        clean(&sandbox, &lane);
        assert!(sandbox.git(&["ls-files", "-t"]).lines().all(|line| line.starts_with("H ")));
        let said = sandbox.proq(&["show", "x"]).ok();
        assert!(said.contains("checkout   a part: "), "{said}");
        let _ = sandbox.proq(&["discard", "x"]).ok();
    }
    assert_eq!(files(&sandbox, &sandbox.repo).split_whitespace().count(), 7);
    sandbox.assert_healthy();
}

#[test]
fn without_a_scope_there_is_nothing_to_cut_by() {
    let sandbox = scene();
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "--sparse", "-n", "x"]).shown(), @r#"
    --- stderr
    error: --sparse checks out what the scope names, and there is no scope; nothing was made
    hint: for example: git proq spawn claude "implement payments" --sparse --scope src/pay/
    --- code 2
    "#);
    assert_eq!(sandbox.traces(), [""; 0]);
}

#[test]
fn work_in_a_lane_that_is_cut_is_shown_landed_and_taken_back_whole() {
    let sandbox = scene();
    let _ = sandbox.proq(&["spawn", "--empty", "--sparse", "-n", "x", "--scope", "src/pay/"]).ok();
    let lane = sandbox.lane("x");
    sandbox.sh_in(&lane, "echo more >> src/pay/b.rs; git commit -qam more");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    assert_eq!(sandbox.read("src/pay/b.rs"), "src/pay/b.rs\nmore\n");
    assert_eq!(sandbox.read("doc/e.md"), "doc/e.md\n");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    // What lies outside of the folders is uncommitted work like any other.
    sandbox.write_in(&lane, "doc/new.md", "new\n");
    sandbox.write_in(&lane, "src/pay/new.rs", "new\n");
    sandbox.sh_in(&lane, "git mv src/d.rs src/g.rs");
    let before = Image::of(&sandbox, &lane);
    let _ = sandbox.proq(&["discard", "x"]).fails(1);
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(before, Image::of(&sandbox, &lane));
    assert_eq!(sandbox.git_in(&lane, &["sparse-checkout", "list"]), "src/pay");
    let _ = sandbox.proq(&["merge", "x"]).fails(1);
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(
        (sandbox.read("doc/new.md"), sandbox.read("src/pay/new.rs")),
        ("new\n".into(), "new\n".into())
    );
    assert_eq!(files(&sandbox, &sandbox.repo).split_whitespace().count(), 9);
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git_in(&lane, &["sparse-checkout", "list"]), "src/pay");
    assert!(!lane.join("doc/e.md").exists());
    sandbox.assert_healthy();
}

#[test]
fn a_new_file_outside_of_a_lane_that_is_cut_is_committed_by_the_hint_of_a_refused_landing() {
    let sandbox = scene();
    let _ = sandbox.proq(&["spawn", "--empty", "--sparse", "-n", "x", "--scope", "src/pay/"]).ok();
    sandbox.write_in(&sandbox.lane("x"), "doc/new.md", "new\n");
    let text = sandbox.proq(&["merge", "x"]).fails(1);
    sandbox.sh(&format!("{} -qm more", hints(&sandbox, &text)[0]));
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(sandbox.read("doc/new.md"), "new\n");
}

#[test]
fn an_agent_is_told_what_is_there_and_its_lane_is_cut_again_when_made_anew() {
    let sandbox = scene();
    sandbox.program("robot", "cat > \"$ROOT/told\"; printf '%s\\n' \"$@\" >> \"$ROOT/told\"; echo new > src/pay/new.rs; mkdir -p doc; echo out > doc/out.md");
    let _ =
        sandbox.proq(&["spawn", "--wait", "--sparse", "-n", "x", "--scope", "src/pay/", "robot", "pay"]).ok();
    sandbox.program("codex", "true");
    let _ = sandbox.proq(&["spawn", "--wait", "--sparse", "-n", "y", "--scope", "src/pay/", "codex", "pay"]);
    let said = sandbox.proq(&["show", "--prompt", "y"]).ok();
    assert!(said.contains("git sparse-checkout add") && said.contains("`src/pay`"), "{said}");
    assert_eq!(sandbox.git(&["diff", "--name-only", "main", "proq/x"]), "doc/out.md\nsrc/pay/new.rs");
    let _ = sandbox.proq(&["redispatch", "x"]).ok();
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(names(&sandbox.lane("x").join("src")), ["d.rs", "pay"]);
    assert_eq!(sandbox.git_in(&sandbox.lane("x"), &["sparse-checkout", "list"]), "src/pay");
}

#[test]
fn attempts_are_cut_alike() {
    let sandbox = scene();
    let _ = sandbox
        .proq(&["spawn", "--empty", "--sparse", "-n", "x", "--scope", "doc/deep/", "--count", "2"])
        .ok();
    for name in ["x-1", "x-2"] {
        assert_eq!(files(&sandbox, &sandbox.lane(name)), "./a.txt ./doc/deep/f.md ./doc/e.md");
        clean(&sandbox, &sandbox.lane(name));
    }
}

/// Two tasks about the same files, so that one lane does both, of which the second is about more.
const PLAN: &str = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"one\"\ntitle = \"1\"\nscope = [\"src/pay/\"]\n\
                    [[task]]\nid = \"two\"\ntitle = \"2\"\nscope = [\"src/pay/\", \"doc/deep/\"]\nneeds = [\"one\"]\n";

#[test]
fn lanes_with_a_scope_are_cut_where_that_is_set_those_of_a_plan_too() {
    let sandbox = scene();
    sandbox.git(&["config", "proq.lane.sparse", "true"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "cut", "--scope", "doc/deep/"]).ok();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "all"]).ok();
    assert_eq!(files(&sandbox, &sandbox.lane("cut")), "./a.txt ./doc/deep/f.md ./doc/e.md");
    assert_eq!(files(&sandbox, &sandbox.lane("all")).split_whitespace().count(), 7);
    sandbox.write("plan.toml", PLAN);
    sandbox.commit_all("plan");
    worker(
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

/// A sparse checkout in which a file is edited that the patterns leave out, and a lane `one` that edits another line of it.
fn put_back_and_edited(before: &str, after: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir -p d/e; seq 20 >f; seq 20 >d/e/x; seq 9 >d/y");
    sandbox.commit_all("base");
    sandbox.lane_of("one", "sed -i s/^20$/lane/ d/e/x");
    sandbox.sh(before);
    sandbox.sh("git show main:d/e/x >.git/x; mkdir -p d/e; sed s/^1$/mine/ .git/x >d/e/x; echo more >>f");
    sandbox.sh(after);
    sandbox
}

#[test]
fn the_hints_of_a_refused_landing_get_edits_outside_of_a_sparse_checkout_out_of_the_way() {
    let no_cone = "git sparse-checkout set --no-cone '/f*'";
    for (before, after) in [
        (no_cone, ""),
        ("git sparse-checkout set --cone", ""),
        (no_cone, "git update-index --no-skip-worktree d/e/x"),
        (no_cone, "git config sparse.expectFilesOutsideOfPatterns true"),
        (no_cone, "git update-index --assume-unchanged d/e/x"),
    ] {
        for way in 0..2 {
            let sandbox = put_back_and_edited(before, after);
            let mut text = sandbox.proq(&["merge", "one"]).fails(1);
            assert!(text.contains("stand in the way: d/e/x; nothing was changed"), "{text}");
            if text.contains("have it look again") {
                sandbox.sh(&hints(&sandbox, &text)[0]);
                text = sandbox.proq(&["merge", "one"]).fails(1);
            }
            let hints = hints(&sandbox, &text);
            assert_eq!(hints.len(), 2, "{before}; {after}: {text}");
            sandbox.sh(&hints[way]);
            let _ = sandbox.proq(&["merge", "one"]).ok();
            let first = sandbox.sh("git show main:d/e/x | sed -n '1p;20p'");
            assert_eq!(first, if way == 0 { "mine\nlane" } else { "1\nlane" });
            if way == 1 {
                assert_eq!(sandbox.sh("git show stash:d/e/x | sed -n 1p"), "mine");
            }
        }
    }
}

#[test]
fn what_is_staged_without_a_file_in_a_sparse_checkout_is_committed_by_the_hint_of_a_refused_landing() {
    let sandbox = put_back_and_edited("git sparse-checkout set --no-cone '/f*'", "git add --sparse d/e/x");
    sandbox.sh("git update-index --skip-worktree d/e/x; rm -r d");
    let text = sandbox.proq(&["merge", "one"]).fails(1);
    sandbox.sh(&hints(&sandbox, &text)[0]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.sh("git show main:d/e/x | sed -n '1p;20p'"), "mine\nlane");
}
