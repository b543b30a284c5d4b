//! Tests of `git proq merge`: which lanes land, which are refused, and the output.

use proq_test_kit::{Sandbox, WorktreeState};

/// Creates a sandbox with lanes `one` and `two` that add a file each.
fn two_lanes() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox.lane_with_commit("two", "echo two > two.txt");
    sandbox
}

/// Returns the state that a landing could change: refs, object ids, git-proq's files, and the checkout.
#[track_caller]
fn repository_state(sandbox: &Sandbox) -> (String, String, String, WorktreeState) {
    let refs = sandbox.git(&["for-each-ref"]);
    let objects = sandbox.git(&["cat-file", "--batch-all-objects", "--batch-check", "--unordered"]);
    let mut objects: Vec<&str> = objects.lines().collect();
    objects.sort_unstable();
    let files = sandbox.sh("find .git/proq -type f ! -name '*.holder' ! -path '*/locks/*' -exec cksum {} + | sort; if test -d .git/proq/work; then find .git/proq/work -mindepth 1; fi");
    (refs, objects.join("\n"), files, WorktreeState::capture(sandbox, &sandbox.repo))
}

#[test]
fn lands_lane_as_merge_commit_with_trailers() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("pay", "echo pay > pay.txt; git add .; git commit -qm pay");
    let (base, tip) = (sandbox.git(&["rev-parse", "main"]), sandbox.git(&["rev-parse", "proq/pay"]));
    let out = sandbox.proq(&["merge", "pay"]);
    let landed = sandbox.git(&["rev-parse", "--short=8", "main"]);
    insta::assert_snapshot!(out.to_text().replace(&landed, "[COMMIT]"), @r"
    landed pay on main ([COMMIT])
    --- stderr
    hint: undo it: git proq undo
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.git(&["log", "-1", "--format=%an <%ae>%n%cn%n%B"]), @r"
    Ann Author <ann@example.org>
    Cal Committer
    Merge lane pay

    Proq-Lane: pay
    Proq-Agent: command
    ");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%P"]), format!("{base} {tip}"));
    assert_eq!(sandbox.read("pay.txt"), "pay\n");
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert!(!sandbox.lane_path("pay").exists());
    assert_eq!(sandbox.git(&["for-each-ref", "refs/heads/proq"]), "");
}

#[test]
fn lands_lanes_in_the_given_order() {
    let sandbox = two_lanes();
    let _ = sandbox.proq(&["merge", "two", "one"]).ok();
    assert_eq!(
        sandbox.git(&["log", "--first-parent", "--format=%s"]),
        "Merge lane one\nMerge lane two\nfirst"
    );
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt\none.txt\ntwo.txt");
}

#[test]
fn merges_to_the_same_tree_as_git_merge() {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 1 30 > long.txt; mkdir d; echo x > d/x; chmod +x a.txt");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "sed -i s/^3$/three/ long.txt; git mv d e; ln -s a.txt link");
    sandbox.sh("sed -i s/^28$/late/ long.txt; echo y > d/x");
    sandbox.commit_all("main goes on");
    sandbox.sh("git switch -q --detach; git merge -q --no-ff -m m proq/one; git rev-parse HEAD^{tree} > ../tree; git switch -q main");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let tree = std::fs::read_to_string(sandbox.root().join("tree")).unwrap();
    assert_eq!(sandbox.git(&["rev-parse", "main^{tree}"]), tree.trim());
    assert_eq!(sandbox.git(&["status", "--short"]), "");
}

#[test]
fn all_lands_finished_lanes_and_lists_left_out_ones() {
    let sandbox = two_lanes();
    let gate = sandbox.root().join("gate");
    sandbox.sh("mkfifo ../gate");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "bare"]).ok();
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "nothing", "--", "true"]);
    let _ = sandbox.proq(&[
        "spawn",
        "--wait",
        "-n",
        "bad",
        "--",
        "sh",
        "-c",
        "echo b > b; git add b; git commit -qm b; exit 9",
    ]);
    sandbox.pipe("up");
    let script = format!(
        "echo r > r; git add r; git commit -qm r; echo up > \"$ROOT/up\"; read line < '{}'",
        gate.display()
    );
    let _ = sandbox.proq(&["spawn", "-n", "busy", "--", "sh", "-c", &script]).ok();
    let _ = sandbox.read_pipe("up");
    let out = sandbox.proq(&["merge", "--all"]);
    let commits = sandbox.git(&["log", "-3", "--first-parent", "--abbrev=8", "--format=%h"]);
    let text = commits.lines().fold(out.to_text(), |text, id| text.replace(id, "[COMMIT]"));
    insta::assert_snapshot!(text, @r"
    landed one on main ([COMMIT])
    landed two on main ([COMMIT])
    --- stderr
    skipped bad: it failed: exit code 9; to merge it anyway: git proq merge --force bad
    skipped bare: it has no commits yet
    skipped busy: its agent is running
    skipped nothing: it changed nothing
    hint: undo it: git proq undo
    --- code 0
    ");
    let _ = sandbox.proq(&["spawn", "-n", "void", "--wait", "--", "true"]).ok();
    let skipped = sandbox.proq(&["merge", "--all", "--dry-run"]);
    assert!(skipped.stderr.contains("skipped 2 lanes (nothing, void): each changed nothing"), "{skipped:?}");
    let compared = sandbox.proq(&["matrix"]);
    assert!(compared.stderr.contains("(each has changed nothing)"), "{compared:?}");
    let named = sandbox.proq(&["merge", "busy", "bad", "nothing", "bare"]);
    insta::assert_snapshot!(named.to_text(), @r"
    refused busy: its agent is running
    refused bad: it failed: exit code 9; to merge it anyway: git proq merge --force bad
    refused nothing: it changed nothing
    refused bare: it has no commits
    --- stderr
    hint: stop it and merge its commits: git proq merge --stop busy
    --- code 1
    ");
    let _ = sandbox.proq(&["merge", "--force", "busy"]).fails(1);
    let _ = sandbox.proq(&["merge", "--force", "bad"]).ok();
    assert_eq!(sandbox.read("b"), "b\n");
    std::fs::write(&gate, "go\n").unwrap();
    let _ = sandbox.proq(&["wait", "busy"]);
    let _ = sandbox.proq(&["merge", "busy"]).ok();
    assert_eq!(sandbox.read("r"), "r\n");
}

#[test]
fn json_lists_the_result_of_each_lane() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("good", "echo good > good.txt");
    sandbox.lane_with_commit("clash", "echo lane > a.txt");
    sandbox.lane_with_commit("dirty", "echo d > d.txt");
    sandbox.write_in(&sandbox.lane_path("dirty"), "left.txt", "left\n");
    sandbox.sh("echo main > a.txt; git commit -qam main");
    let out = sandbox.proq(&["--json", "merge", "good", "clash", "dirty"]);
    assert_eq!(out.code, 1, "a refusal outranks a conflict");
    assert_eq!(out.json()["lanes"].as_array().unwrap().len(), 3);
    let landed = sandbox.git(&["rev-parse", "main"]);
    insta::assert_snapshot!(out.stdout.replace(&landed, "[COMMIT]"), @r#"
    {
      "dry_run": false,
      "lanes": [
        {
          "cleaned_up": false,
          "files": [
            "left.txt"
          ],
          "hints": [
            "commit it there: git -C '[ROOT]/repo/.proq-worktrees/dirty' add -A && git -C '[ROOT]/repo/.proq-worktrees/dirty' commit",
            "or let merge do it: git -c proq.merge.uncommitted=commit proq merge dirty"
          ],
          "lane": "dirty",
          "message": "it has uncommitted work: left.txt",
          "onto": "main",
          "result": "refused"
        },
        {
          "cleaned_up": true,
          "commit": "[COMMIT]",
          "lane": "good",
          "method": "merge",
          "onto": "main",
          "result": "landed"
        },
        {
          "cleaned_up": false,
          "files": [
            "a.txt"
          ],
          "lane": "clash",
          "message": "CONFLICT (content): Merge conflict in a.txt",
          "onto": "main",
          "result": "conflict"
        }
      ],
      "left_out": [],
      "schema": 1
    }
    "#);
}

/// Promise: snapshots/no-writes
#[test]
fn dry_run_writes_nothing() {
    let sandbox = two_lanes();
    sandbox.lane_with_commit("clash", "echo lane > a.txt");
    sandbox.sh("echo main > a.txt; git commit -qam main; echo mine > mine.txt");
    let before = repository_state(&sandbox);
    let out = sandbox.proq(&["merge", "--dry-run", "one", "two", "clash"]);
    insta::assert_snapshot!(out.to_text(), @r"
    would land one on main
    would land two on main
    clash would conflict with main in 1 file
        a.txt
    2 of 3 lanes would land: 2 files changed, 2 insertions(+)
    --- stderr
    hint: resolve the conflict: git proq resolve clash
    --- code 3
    ");
    let after = repository_state(&sandbox);
    assert_eq!(before.0, after.0, "refs");
    assert_eq!(before.1, after.1, "objects");
    assert_eq!(before.2, after.2, "files of git-proq");
    assert_eq!(before.3, after.3, "the checkout");
}

#[test]
fn uncommitted_setting_refuses_commits_or_snapshots() {
    let lane = || {
        let sandbox = two_lanes();
        sandbox.sh_in(&sandbox.lane_path("one"), "echo edit > one.txt; echo n > new.txt");
        sandbox
    };
    let sandbox = lane();
    let tip = sandbox.git(&["rev-parse", "main"]);
    insta::assert_snapshot!(sandbox.proq(&["merge", "one"]).to_text(), @r"
    refused one: it has uncommitted work: one.txt, new.txt
    --- stderr
    hint: commit it there: git -C '[ROOT]/repo/.proq-worktrees/one' add -A && git -C '[ROOT]/repo/.proq-worktrees/one' commit
    hint: or let merge do it: git -c proq.merge.uncommitted=commit proq merge one
    --- code 1
    ");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);

    // Both hints work when pasted, also for untracked files.
    for hint_index in 0..2 {
        let sandbox = two_lanes();
        sandbox.sh_in(&sandbox.lane_path("one"), "echo n > new.txt");
        let json = sandbox.proq(&["merge", "one", "--json"]).json();
        let hint = json["lanes"][0]["hints"][hint_index].as_str().unwrap();
        sandbox.sh(&format!(
            "export GIT_EDITOR='echo by hand >'; {}",
            hint.split_once(": ").unwrap().1.replace("[ROOT]", sandbox.root().to_str().unwrap())
        ));
        let _ = sandbox.proq(&["merge", "--all"]).ok();
        assert_eq!(sandbox.read("new.txt"), "n\n");
    }

    let sandbox = lane();
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!((sandbox.read("one.txt"), sandbox.read("new.txt")), ("edit\n".into(), "n\n".into()));
    assert!(!sandbox.lane_path("one").exists());

    let sandbox = lane();
    sandbox.git(&["config", "proq.merge.uncommitted", "snapshot"]);
    let out = sandbox.proq(&["merge", "one"]);
    let id =
        out.stderr.split("git stash apply ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let _ = out.ok();
    assert_eq!(sandbox.read("one.txt"), "one\n");
    assert!(!sandbox.repo.join("new.txt").exists());
    assert_eq!(sandbox.git(&["show", &format!("{id}:one.txt")]), "edit");
    assert_eq!(sandbox.git(&["show", &format!("{id}^3:new.txt")]), "n");
    assert!(sandbox.lane_path("one").join("new.txt").exists(), "what is left keeps the lane");
}

#[test]
fn reports_and_removes_lanes_landed_already() {
    let sandbox = two_lanes();
    sandbox.sh("git merge -q --ff-only proq/one; git cherry-pick --no-commit proq/two; git commit -qm 'two, squashed'");
    let tip = sandbox.git(&["rev-parse", "main"]);
    insta::assert_snapshot!(sandbox.proq(&["merge", "one", "two"]).to_text(), @r"
    nothing to do one: everything in it is on main already
    nothing to do two: everything in it is on main already; in other commits, by patch id
    --- code 0
    ");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);
    assert!(!sandbox.lane_path("one").exists() && !sandbox.lane_path("two").exists());
}

#[test]
fn keeps_landed_lane_by_option_or_locked_worktree() {
    let sandbox = two_lanes();
    let _ = sandbox.proq(&["merge", "--no-cleanup", "one"]).ok();
    assert!(sandbox.lane_path("one").exists());
    assert_eq!(
        sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/heads/proq/one"]),
        "refs/heads/proq/one"
    );
    sandbox.git(&["worktree", "lock", "--reason", "mine", ".proq-worktrees/two"]);
    let text = sandbox.proq(&["merge", "two"]).ok();
    assert!(text.contains("its worktree is locked (mine)"), "{text}");
    assert_eq!(sandbox.read("two.txt"), "two\n");
    assert!(sandbox.lane_path("two").exists());
}

#[test]
fn lands_lanes_of_two_bases_in_one_call() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox.sh("git switch -qc dev; echo dev > dev.txt");
    sandbox.commit_all("dev");
    sandbox.lane_with_commit("two", "echo two > two.txt");
    sandbox.git(&["switch", "-q", "--detach"]);
    let _ = sandbox.proq(&["merge", "one", "two"]).ok();
    assert_eq!(sandbox.git(&["ls-tree", "--name-only", "main"]), "a.txt\none.txt");
    assert_eq!(sandbox.git(&["ls-tree", "--name-only", "dev"]), "a.txt\ndev.txt\ntwo.txt");
    assert_eq!(sandbox.git(&["status", "--short"]), "");
}

#[test]
fn onto_lands_a_lane_whose_base_was_deleted() {
    let sandbox = Sandbox::new();
    sandbox.sh("git switch -qc dev");
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox.sh("git switch -q main; git branch -qD dev");
    let text = sandbox.proq(&["merge", "one"]).fails(1);
    assert!(text.contains("its base 'dev' is missing; --onto names another branch"), "{text}");
    let _ = sandbox.proq(&["merge", "one", "--onto", "nowhere"]).fails(1);
    let _ = sandbox.proq(&["merge", "one", "--onto", "main"]).ok();
    assert_eq!(sandbox.read("one.txt"), "one\n");
}

#[test]
fn captures_the_conflict_and_lands_the_other_lanes() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("clash", "echo lane > a.txt; echo lane > both.txt");
    sandbox.lane_with_commit("good", "echo good > good.txt");
    sandbox.sh("echo main > a.txt; echo main > both.txt");
    sandbox.commit_all("main");
    let (base, tip) = (sandbox.git(&["rev-parse", "main"]), sandbox.git(&["rev-parse", "proq/clash"]));
    let out = sandbox.proq(&["merge", "clash", "good", "--order", "given"]);
    let landed = sandbox.git(&["rev-parse", "--short=8", "main"]);
    insta::assert_snapshot!(out.to_text().replace(&landed, "[COMMIT]"), @r"
    landed good on main ([COMMIT])
    clash conflicts with main in 2 files
        a.txt
        both.txt
    --- stderr
    hint: resolve the conflict: git proq resolve clash
    --- code 3
    ");
    let conflict_parents = sandbox.git(&["log", "-1", "--format=%P", "refs/proq/conflict/clash"]);
    assert_eq!(conflict_parents, format!("{base} {tip}"));
    let marked = sandbox.git(&["show", "refs/proq/conflict/clash:a.txt"]);
    assert!(marked.contains("<<<<<<<") && marked.contains("main") && marked.contains("lane"), "{marked}");
    let list = sandbox.proq(&["--json", "list"]).json();
    assert_eq!(list["lanes"][0]["state"], "conflict");
    assert_eq!(
        sandbox.git(&["log", "--first-parent", "--format=%s", "main"]),
        "Merge lane good\nmain\nfirst"
    );
    assert_eq!(sandbox.git(&["status", "--short"]), "");
}

#[test]
fn conflict_record_lists_every_stage() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("clash", "echo lane > a.txt; echo lane > both.txt");
    sandbox.sh("echo main > a.txt; echo main > both.txt");
    sandbox.commit_all("main");
    let (base, tip) = (sandbox.git(&["rev-parse", "main"]), sandbox.git(&["rev-parse", "proq/clash"]));
    let _ = sandbox.proq(&["merge", "clash"]).fails(3);
    let record = std::fs::read_to_string(sandbox.repo.join(".git/proq/lanes/clash/conflict.toml")).unwrap();
    let tree = record.lines().find_map(|l| l.strip_prefix("tree = ")).unwrap();
    let shown = record.replace(&base, "[BASE]").replace(&tip, "[TIP]").replace(tree, "[TREE]");
    insta::assert_snapshot!(shown, @r#"
    format = 1
    lane = "clash"
    onto = "main"
    ours = "[BASE]"
    base_tip = "[BASE]"
    theirs = "[TIP]"
    tree = [TREE]
    at = "2026-01-02T03:04:05Z"
    attempts = 1
    paths = ["a.txt", "both.txt"]
    messages = ["CONFLICT (content): Merge conflict in a.txt", "CONFLICT (add/add): Merge conflict in both.txt"]

    [[stages]]
    path = "a.txt"
    stage = 1
    mode = "100644"
    oid = "78981922613b2afb6025042ff6bd878ac1994e85"

    [[stages]]
    path = "a.txt"
    stage = 2
    mode = "100644"
    oid = "ba2906d0666cf726c7eaadd2cd3db615dedfdf3a"

    [[stages]]
    path = "a.txt"
    stage = 3
    mode = "100644"
    oid = "06694fcf71ec9569e412d98748f4e9a53e0faf28"

    [[stages]]
    path = "both.txt"
    stage = 2
    mode = "100644"
    oid = "ba2906d0666cf726c7eaadd2cd3db615dedfdf3a"

    [[stages]]
    path = "both.txt"
    stage = 3
    mode = "100644"
    oid = "06694fcf71ec9569e412d98748f4e9a53e0faf28"
    "#);
}

#[test]
fn retries_conflict_by_name_or_after_a_tip_moved() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("clash", "echo lane > a.txt");
    sandbox.sh("echo main > a.txt; git commit -qam main");
    let attempts = |s: &Sandbox| {
        let record = std::fs::read_to_string(s.repo.join(".git/proq/lanes/clash/conflict.toml")).unwrap();
        record.lines().find_map(|l| l.strip_prefix("attempts = ")).unwrap().to_owned()
    };
    let _ = sandbox.proq(&["merge", "--all"]).fails(3);
    let text = sandbox.proq(&["merge", "--all"]);
    assert!(text.stderr.contains("neither the lane nor its base has moved since"), "{}", text.stderr);
    let _ = text.ok();
    assert_eq!(attempts(&sandbox), "1");
    let _ = sandbox.proq(&["merge", "clash"]).fails(3);
    assert_eq!(attempts(&sandbox), "2");
    sandbox.sh("echo more > more.txt; git add .; git commit -qm more");
    let _ = sandbox.proq(&["merge", "--all"]).fails(3);
    assert_eq!(attempts(&sandbox), "3");
    sandbox.sh_in(
        &sandbox.lane_path("clash"),
        "git merge -q main 2>&1 >/dev/null || true; echo both > a.txt; git commit -qam both",
    );
    let _ = sandbox.proq(&["merge", "--all"]).ok();
    assert_eq!(sandbox.read("a.txt"), "both\n");
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/conflict"]), "");
}

#[test]
fn merge_run_inside_a_lane_lands_on_its_base() {
    let sandbox = two_lanes();
    let _ = sandbox.proq_in(&sandbox.lane_path("two"), &["merge", "one"]).ok();
    assert_eq!(sandbox.read("one.txt"), "one\n");
    assert!(!sandbox.lane_path("two").join("one.txt").exists());
}

#[test]
fn lands_lane_of_bare_repository() {
    let sandbox = Sandbox::new();
    sandbox.sh("git clone -q --bare . ../bare.git");
    let bare = sandbox.root().join("bare.git");
    let _ = sandbox.proq_in(&bare, &["spawn", "--empty", "-n", "one"]).ok();
    let list = sandbox.git_in(&bare, &["worktree", "list", "--porcelain"]);
    let lane = list.lines().filter_map(|l| l.strip_prefix("worktree ")).nth(1).unwrap();
    let lane = std::path::PathBuf::from(lane.replace("[ROOT]", &sandbox.root().display().to_string()));
    sandbox.write_in(&lane, "one.txt", "one\n");
    sandbox.commit_all_in(&lane, "one");
    let _ = sandbox.proq_in(&bare, &["merge", "one"]).ok();
    assert_eq!(sandbox.git_in(&bare, &["show", "main:one.txt"]), "one");
}

#[test]
fn commits_deletions_and_renames_before_landing() {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "echo b > b; echo c > c; git add b c; git commit -qm more; git config proq.merge.uncommitted commit",
    );
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.sh_in(&sandbox.lane_path("x"), "git rm -q b; git mv c d; rm a.txt");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(sandbox.git(&["ls-files"]), "d");
}
