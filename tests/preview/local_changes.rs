//! Local changes that block a landing: each hint is a command that moves them out of the way.

use proq_test_kit::Sandbox;
use proq_test_kit::conflict::hint_commands;

/// Lands lane `one` of a state, follows the hint of index `first` when that is refused, and repeats with the
/// first hint until no local change blocks the landing. Returns the sandbox and the commands that it ran.
#[track_caller]
fn follow_hints(state: impl Fn() -> Sandbox, first: usize) -> (Sandbox, Vec<String>) {
    let sandbox = state();
    let mut followed = Vec::new();
    loop {
        let out = sandbox.proq(&["merge", "one"]);
        if !format!("{}{}", out.stdout, out.stderr).contains("are in the way") {
            return (sandbox, followed);
        }
        let text = out.fails(1);
        let all = hint_commands(&sandbox, &text);
        assert!(followed.len() < 3 && !followed.contains(&all[0]), "{text}");
        let at = if followed.is_empty() { first } else { 0 };
        sandbox.sh(&all[at]);
        followed.push(all[at].clone());
    }
}

/// Returns how many hints the refusal to land lane `one` has.
fn hint_count(state: impl Fn() -> Sandbox) -> usize {
    let sandbox = state();
    let text = sandbox.proq(&["merge", "one"]).fails(1);
    assert!(text.contains("local changes in"), "{text}");
    hint_commands(&sandbox, &text).len()
}

#[test]
fn hints_about_other_worktree_name_it() {
    let state = || {
        let sandbox = Sandbox::new();
        sandbox.lane_with_commit("one", "echo lane > a.txt");
        sandbox.sh("git checkout -q --detach; git worktree add -q \"../it's main\" main; echo edit >> \"../it's main/a.txt\"");
        sandbox
    };
    assert_eq!(hint_count(state), 2);
    let (sandbox, followed) = follow_hints(state, 0);
    assert_eq!(followed.len(), 1);
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "main"]), "WIP");
    let (sandbox, _) = follow_hints(state, 1);
    assert_eq!(sandbox.git(&["show", "main:a.txt"]), "lane");
    assert_eq!(sandbox.git(&["show", "stash@{0}:a.txt"]), "a\nedit");
}

#[test]
fn hint_about_submodule_edits_acts_in_it() {
    let state = || {
        let sandbox = Sandbox::new();
        sandbox.sh(
            "git init -q ../sub; git -C ../sub commit -q --allow-empty -m first; echo s > ../sub/s; git -C ../sub add s
            git -C ../sub commit -qm s; git -c protocol.file.allow=always submodule --quiet add ../sub sub; git commit -qm sub",
        );
        sandbox.lane_with_commit("one", "git rm -qf sub; echo lane > lane");
        sandbox.sh("echo edit > sub/s; echo new > sub/new");
        sandbox
    };
    assert_eq!(hint_count(state), 1);
    let (sandbox, followed) = follow_hints(state, 0);
    assert_eq!(followed.len(), 1);
    assert_eq!(sandbox.git(&["show", "main:lane"]), "lane");
    assert_eq!(sandbox.sh("git -C sub show stash@{0}:s; git -C sub show stash@{0}^3:new"), "edit\nnew");
}

#[test]
fn hints_about_intent_to_add_files_work() {
    let present = || {
        let sandbox = Sandbox::new();
        sandbox.lane_with_commit("one", "echo lane > n");
        sandbox.sh("echo mine > n; git add -N n");
        sandbox
    };
    assert_eq!(hint_count(present), 2);
    let (sandbox, _) = follow_hints(present, 0);
    assert_eq!(sandbox.git(&["show", "main:n"]), "mine");
    let (sandbox, _) = follow_hints(present, 1);
    assert_eq!(
        (sandbox.read("n").as_str(), sandbox.git(&["show", "stash@{0}:n"]).as_str()),
        ("lane\n", "mine")
    );
    let missing = || {
        let sandbox = present();
        sandbox.sh("rm n");
        sandbox
    };
    assert_eq!(hint_count(missing), 1);
    let (sandbox, _) = follow_hints(missing, 0);
    assert_eq!(sandbox.read("n"), "lane\n");
}

#[test]
fn hint_about_hidden_edits_clears_both_flags() {
    let state = || {
        let sandbox = Sandbox::new();
        sandbox.sh("echo b > b; echo c > c");
        sandbox.commit_all("base");
        sandbox.lane_with_commit("one", "echo lane > a.txt; echo lane > b; echo lane > c");
        sandbox.sh("git update-index --assume-unchanged a.txt c; git update-index --skip-worktree b c
            echo edit > a.txt; echo edit > b; echo edit > c");
        sandbox
    };
    assert_eq!(hint_count(state), 1);
    let (sandbox, followed) = follow_hints(state, 0);
    assert_eq!(followed.len(), 2, "{followed:?}");
    assert_eq!(sandbox.git(&["ls-files", "-v"]), "H a.txt\nH b\nH c");
    assert_eq!(sandbox.git(&["show", "main^{/WIP}:b"]), "edit");
}

#[test]
fn refused_undo_hints_at_stash() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > n");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.sh("git rm -q --cached n; git add -N n; echo mine > n");
    let text = sandbox.proq(&["undo"]).fails(1);
    let hints = hint_commands(&sandbox, &text);
    assert_eq!(hints.len(), 1, "{text}");
    sandbox.sh(&hints[0]);
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["show", "stash@{0}:n"]), "mine");
}

/// A file with an index flag that hides its edit, and a file whose edit is visible. `git stash` would reset
/// the former and keep nothing of it.
/// Promise: worktree/hints-lose-nothing
#[test]
fn hint_does_not_lose_edits_hidden_by_flags() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        for (hidden, lane) in [("a.txt", "echo lane >a.txt; echo lane >c"), ("other", "echo lane >c")] {
            for first in [0, 1] {
                let state = || {
                    let sandbox = Sandbox::new();
                    sandbox.sh("echo c >c; echo other >other");
                    sandbox.commit_all("base");
                    sandbox.lane_with_commit("one", lane);
                    sandbox.sh(&format!(
                        "git update-index {flag} {hidden}; echo precious >{hidden}; echo edit >>c"
                    ));
                    sandbox
                };
                let (sandbox, followed) = follow_hints(state, first.min(hint_count(state) - 1));
                let id = sandbox.sh("echo precious | git hash-object --stdin");
                let is_there = sandbox.read(hidden) == "precious\n"
                    || sandbox.sh(&format!("git cat-file -t {id} 2>/dev/null || true")) == "blob";
                assert!(is_there, "{flag} {hidden}: {followed:?}");
            }
        }
    }
}

/// The hint of a refused undo makes no commit; it does not lose a hidden edit either.
/// Promise: worktree/hints-lose-nothing
#[test]
fn undo_hint_does_not_lose_hidden_edits() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo c >c");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo lane >a.txt; echo lane >c");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.sh("git update-index --assume-unchanged a.txt; echo precious >a.txt; echo edit >>c");
    for _ in 0..2 {
        let text = sandbox.proq(&["undo"]).fails(1);
        sandbox.sh(&hint_commands(&sandbox, &text)[0]);
    }
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["show", "stash@{0}:a.txt"]), "precious");
}

/// Nor does the undo of a preview, which carries no edits.
#[test]
fn preview_undo_hint_does_not_lose_hidden_edits() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo c >c");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo lane >one");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("git update-index --assume-unchanged a.txt; echo precious >a.txt; echo edit >>c");
    for _ in 0..2 {
        let text = sandbox.proq(&["undo"]).fails(1);
        sandbox.sh(&hint_commands(&sandbox, &text)[0]);
    }
    assert_eq!(sandbox.git(&["show", "stash@{0}:a.txt"]), "precious");
    let _ = sandbox.proq(&["undo"]).ok();
}

#[test]
fn hint_works_for_file_named_like_an_option() {
    let state = || {
        let sandbox = Sandbox::new();
        sandbox.sh("echo x >./-x");
        sandbox.commit_all("base");
        sandbox.lane_with_commit("one", "echo lane >./-x");
        sandbox.sh("git update-index --assume-unchanged -- -x; echo own >./-x");
        sandbox
    };
    let (_, followed) = follow_hints(state, 0);
    assert_eq!(followed.len(), 2, "{followed:?}");
}

/// `git stash` removes untracked files that stand in the place of a tracked folder or file.
/// Promise: worktree/hints-lose-nothing
#[test]
fn hint_does_not_lose_files_in_place_of_tracked_ones() {
    for put in [
        "rm -r k; echo precious >k",
        "rm -r k; echo precious >k; echo k >>.git/info/exclude",
        "rm t; mkdir t; echo precious >t/x",
        "rm t; mkdir t; echo precious >t/x; echo x >>.git/info/exclude",
        "rm -r k; echo precious >k; git rm -rq --cached k; git add k",
        "echo edit >>t; rm -r other; echo precious >other",
    ] {
        let state = || {
            let sandbox = Sandbox::new();
            sandbox.sh("mkdir k other; echo m >k/m; echo o >other/o; echo t >t");
            sandbox.commit_all("base");
            sandbox.lane_with_commit("one", "echo lane >>k/m; echo lane >>t");
            sandbox
        };
        let dirty = || {
            let sandbox = state();
            sandbox.sh(put);
            sandbox
        };
        let assert_content_exists = |sandbox: &Sandbox| {
            let found = "grep -rl precious . --exclude-dir=.git || \
                for c in $(git log --all --format=%H; git stash list --format=%H); do git grep -l precious $c; done || true";
            assert_ne!(sandbox.sh(found), "", "{put}");
        };
        for first in 0..hint_count(dirty) {
            assert_content_exists(&follow_hints(dirty, first).0);
        }
        // An undo of the landing has one hint.
        let sandbox = state();
        let _ = sandbox.proq(&["merge", "one"]).ok();
        sandbox.sh(put);
        for _ in 0..4 {
            let out = sandbox.proq(&["undo"]);
            if out.code == 0 {
                break;
            }
            sandbox.sh(&hint_commands(&sandbox, &out.fails(1))[0]);
        }
        assert_content_exists(&sandbox);
    }
}
