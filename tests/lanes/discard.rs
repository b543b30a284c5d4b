//! Tests of `git proq discard`: work that keeps a lane, saving with `--force`, and restoring with the printed
//! commands.

use proq_test_kit::{Output, Sandbox, WorktreeState};

/// Returns the text after `head` of the line on standard error that begins with it.
fn text_after<'a>(out: &'a Output, head: &str) -> &'a str {
    out.stderr
        .lines()
        .find_map(|l| l.strip_prefix(head))
        .unwrap_or_else(|| panic!("no '{head}' in\n{}", out.stderr))
}

/// Runs a command line as a user would paste it.
fn run_shell_line(sandbox: &Sandbox, line: &str) {
    let mut command = sandbox.command("sh", &sandbox.repo);
    command.args(["-ec", line]);
    let _ = sandbox.output(command).ok();
}

#[test]
fn names_the_way_out_of_the_removed_folder() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    let out = sandbox.proq_in(&sandbox.lane_path("x"), &["discard", "--force", "x"]);
    assert!(
        out.stderr.ends_with("hint: this folder was removed; leave it: cd '[ROOT]/repo'\n"),
        "{}",
        out.stderr
    );
}

#[test]
fn discards_lane_without_work() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["discard", "--dry-run", "x"]).to_text(), @r"
    --- stderr
    would discard x
    --- code 0
    ");
    assert!(sandbox.lane_path("x").exists());
    insta::assert_snapshot!(sandbox.proq(&["discard", "x"]).to_text(), @r"
    discarded x
    --- stderr
    its folder, ignored files included, is kept for 7 days: [ROOT]/repo/.git/proq/trash/x-[ID]
    --- code 0
    ");
    assert!(!sandbox.lane_path("x").exists());
    let left = sandbox.lane_leftovers();
    assert!(left.iter().all(|t| t.starts_with("refs/proq/saved/x-")), "{left:?}");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    let _ = sandbox.proq(&["discard", "x"]).ok();
    assert_eq!(sandbox.row("x@2")["state"], "discarded");
}

/// Promise: removal/only-landed
#[test]
fn keeps_lane_with_any_kind_of_work() {
    let sandbox = Sandbox::new();
    for (name, script) in [
        ("commits", "for n in 1 2; do echo $n > $n; git add $n; git commit -qm $n; done"),
        ("dirty", "echo more >> a.txt; exit 1"),
        ("untracked", "echo new > new; exit 1"),
        ("staged", "echo new > new; git add new; exit 1"),
        ("many", "touch b c d; exit 1"),
        ("nested", "git init -q sub; touch sub/f; exit 1"),
        ("astray", "git switch -q --orphan own; git commit -q --allow-empty -m own"),
        (
            "detached",
            "git switch -q --orphan o; git commit -q --allow-empty -m o; git switch -q --detach; git branch -q -D o",
        ),
        (
            "merging",
            "git commit -q --allow-empty -m one; git switch -q -c t main; git commit -q --allow-empty -m two; git switch -q proq/merging; git merge -q --no-commit --no-ff t; exit 1",
        ),
    ] {
        drop(sandbox.proq(&["spawn", "--wait", "-n", name, "--", "sh", "-c", script]));
    }
    let mut all = String::new();
    for name in ["commits", "dirty", "untracked", "staged", "many", "nested", "astray", "detached", "merging"]
    {
        let before = sandbox.git_in(&sandbox.lane_path(name), &["status", "--short"]);
        let out = sandbox.proq(&["discard", name]);
        assert_eq!(out.code, 1);
        all.push_str(out.stderr.lines().next().unwrap());
        all.push('\n');
        assert_eq!(sandbox.git_in(&sandbox.lane_path(name), &["status", "--short"]), before);
    }
    insta::assert_snapshot!(all, @r"
    error: cannot remove lane 'commits': 2 commits that are not on main
    error: cannot remove lane 'dirty': 1 uncommitted file (a.txt)
    error: cannot remove lane 'untracked': 1 uncommitted file (new)
    error: cannot remove lane 'staged': 1 uncommitted file (new)
    error: cannot remove lane 'many': 3 uncommitted files (b, …)
    error: cannot remove lane 'nested': 1 uncommitted file (sub)
    error: cannot remove lane 'astray': commits on own
    error: cannot remove lane 'detached': commits on a detached HEAD (989a1d4f)
    error: cannot remove lane 'merging': a merge is in progress in it
    ");
}

#[test]
fn keeps_running_lane_and_force_stops_it() {
    let sandbox = Sandbox::new();
    sandbox.pipe("up");
    sandbox.start_lane("x", "echo 1 > one; echo $$ > \"$ROOT/up\"; exec sleep 600");
    let pid = sandbox.read_pipe("up");
    insta::assert_snapshot!(sandbox.proq(&["discard", "x"]).to_text(), @r"
    --- stderr
    error: cannot remove lane 'x': its agent is running; 1 uncommitted file (one)
    hint: stop the agent: git proq stop x
    hint: remove it anyway; everything is saved first: git proq discard --force x
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["discard", "--force", "--dry-run", "x"]).to_text(), @r"
    --- stderr
    would stop its agent and discard x, after saving: 1 uncommitted file (one)
    --- code 0
    ");
    assert!(sandbox.is_alive(pid.trim()));
    let out = sandbox.proq(&["discard", "--force", "x"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(!sandbox.is_alive(pid.trim()));
    run_shell_line(&sandbox, text_after(&out, "its uncommitted files are kept: "));
    assert_eq!(sandbox.read("one"), "1\n");
}

/// Promise: removal/locked-worktree
#[test]
fn force_keeps_locked_worktree() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.git(&["worktree", "lock", "--reason", "on a stick", ".proq-worktrees/x"]);
    insta::assert_snapshot!(sandbox.proq(&["discard", "--force", "x"]).to_text(), @r"
    --- stderr
    error: cannot remove lane 'x': its worktree is locked (on a stick)
    hint: unlock it: git worktree unlock '[ROOT]/repo/.proq-worktrees/x'
    --- code 1
    ");
    sandbox.git(&["worktree", "unlock", ".proq-worktrees/x"]);
    let _ = sandbox.proq(&["discard", "x"]).ok();
}

/// Promise: removal/unregistered-folder
#[test]
fn force_keeps_folder_that_is_not_the_worktree() {
    let sandbox = Sandbox::new();
    for name in ["x", "y", "z"] {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", name]).ok();
    }
    // The `.git` file of x names the registration of y.
    std::fs::copy(sandbox.lane_path("y").join(".git"), sandbox.lane_path("x").join(".git")).unwrap();
    insta::assert_snapshot!(sandbox.proq(&["discard", "--force", "x"]).to_text(), @r"
    --- stderr
    error: cannot remove lane 'x': [ROOT]/repo/.proq-worktrees/x and git's record of it name different places
    hint: repair it: git worktree repair '[ROOT]/repo/.proq-worktrees/x'
    --- code 1
    ");
    // A plain folder has replaced the worktree of z.
    sandbox.git(&["worktree", "remove", "--force", ".proq-worktrees/z"]);
    sandbox.write(".proq-worktrees/z/mine", "mine\n");
    insta::assert_snapshot!(sandbox.proq(&["discard", "--force", "z"]).to_text(), @r"
    --- stderr
    error: cannot remove lane 'z': git does not list [ROOT]/repo/.proq-worktrees/z as a worktree; move it away if it is yours
    hint: repair it: mv '[ROOT]/repo/.proq-worktrees/z' '[ROOT]/repo/.proq-worktrees/z.old' && git worktree add -f '[ROOT]/repo/.proq-worktrees/z' proq/z
    --- code 1
    ");
    assert_eq!(sandbox.read(".proq-worktrees/z/mine"), "mine\n");
    assert!(sandbox.lane_path("x").join("a.txt").exists());
}

/// Promise: removal/folder-and-registration
#[test]
fn printed_commands_restore_forced_discard() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "*.log\n");
    sandbox.commit_all("ignore");
    let script = "echo 1 > one; git add one; git commit -qm one; echo 2 >> one; echo staged > staged; git add staged; echo new > new; echo noise > build.log; exit 1";
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-c", script]).fails(4);
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    let out = sandbox.proq(&["discard", "--force", "x"]);
    assert_eq!((out.code, out.stdout.as_str()), (0, "discarded x\n"));
    sandbox.git(&["reflog", "expire", "--expire=now", "--all"]);
    sandbox.git(&["gc", "-q", "--prune=now"]);
    run_shell_line(&sandbox, text_after(&out, "its commits are kept: "));
    let restored = format!("restored-{}", &tip[..8]);
    assert_eq!(sandbox.git(&["rev-parse", &restored]), tip);
    sandbox.git(&["switch", "-q", &restored]);
    run_shell_line(&sandbox, text_after(&out, "its uncommitted files are kept: "));
    assert_eq!(
        (sandbox.read("one"), sandbox.read("staged"), sandbox.read("new")),
        ("1\n2\n".into(), "staged\n".into(), "new\n".into())
    );
    let trash = text_after(&out, "its folder, ignored files included, is kept for 7 days: ");
    let trash = sandbox.root().join(trash.strip_prefix("[ROOT]/").unwrap().replace("[ID]", ""));
    let entry = std::fs::read_dir(trash.parent().unwrap()).unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::read_to_string(entry.join("worktree/build.log")).unwrap(), "noise\n");
}

/// Promise: removal/detached-commits
#[test]
fn saves_commits_outside_the_lane_branch() {
    let sandbox = Sandbox::new();
    sandbox.git(&["switch", "-q", "--orphan", "root"]);
    sandbox.git(&["commit", "-q", "--allow-empty", "-m", "root"]);
    sandbox.git(&["switch", "-q", "main"]);
    let script = "git switch -q --detach root; git commit -q --allow-empty -m astray; git commit -q --allow-empty -m dropped; git rev-parse HEAD > \"$ROOT/dropped\"; git reset -q --hard HEAD~";
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-ec", script]).fails(4);
    let head = sandbox.git_in(&sandbox.lane_path("x"), &["rev-parse", "HEAD"]);
    let out = sandbox.proq(&["discard", "--force", "x"]);
    sandbox.git(&["reflog", "expire", "--expire=now", "--all"]);
    sandbox.git(&["gc", "-q", "--prune=now"]);
    let line = out.stderr.lines().find(|l| l.starts_with("its commits on a detached HEAD")).unwrap();
    run_shell_line(&sandbox, line.split_once("kept: ").unwrap().1);
    assert_eq!(sandbox.git(&["rev-parse", &format!("restored-{}", &head[..8])]), head);
    let dropped = std::fs::read_to_string(sandbox.root().join("dropped")).unwrap();
    sandbox.git(&["cat-file", "-e", dropped.trim()]);
}

#[test]
fn embedded_repository_moves_to_the_trash() {
    let sandbox = Sandbox::new();
    let script = "git init -q sub; cd sub; echo 1 > f; git add f; git commit -qm inner";
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-ec", script]).ok();
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    let entry =
        std::fs::read_dir(sandbox.repo.join(".git/proq/trash")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(sandbox.git_in(&entry.join("worktree/sub"), &["log", "--format=%s"]), "inner");
}

#[test]
fn kept_lane_does_not_block_the_others() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("work", "echo 1 > one");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "empty"]).ok();
    let out = sandbox.proq(&["discard", "--json", "work", "empty"]);
    assert_eq!(out.code, 1);
    let lanes = &out.json()["lanes"];
    assert_eq!((&lanes[0]["removed"], &lanes[1]["removed"]), (&false.into(), &true.into()));
    assert_eq!(
        lanes[0]["why"],
        serde_json::json!(["cannot remove lane 'work': 1 commit that is not on main"])
    );
    let _ = sandbox.proq(&["discard", "work", "nobody"]).fails(1);
    assert!(sandbox.lane_path("work").exists());
    assert_eq!(sandbox.proq(&["discard"]).code, 2);
}

#[test]
fn keeps_lane_that_a_process_is_in() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.pipe("up");
    sandbox.pipe("go");
    let mut shell = sandbox.command("sh", &sandbox.lane_path("x"));
    let mut shell = shell.args(["-c", "echo up > \"$ROOT/up\"; read line < \"$ROOT/go\""]).spawn().unwrap();
    let _ = sandbox.read_pipe("up");
    let out = sandbox.proq(&["discard", "x"]);
    assert!(
        out.stderr.contains(&format!("cannot remove lane 'x': sh (process {}) is in its folder", shell.id())),
        "{}",
        out.stderr
    );
    sandbox.write_pipe("go");
    shell.wait().unwrap();
    let _ = sandbox.proq_in(&sandbox.lane_path("x"), &["discard", "x"]).ok();
}

/// Promise: removal/unreferenced-objects
#[test]
fn saves_objects_of_reflog_rebase_and_index() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "seq 1 9 > f");
    let lane = sandbox.lane_path("x");
    let dropped = {
        sandbox.commit_in_lane("x", "echo dropped > dropped");
        let tip = sandbox.git_in(&lane, &["rev-parse", "HEAD"]);
        sandbox.git_in(&lane, &["reset", "-q", "--hard", "HEAD~1"]);
        tip
    };
    // Only the log of the branch has what others put there.
    let logged = sandbox.git(&["commit-tree", "-m", "logged", "-p", "proq/x", "proq/x^{tree}"]);
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    sandbox.sh(&format!("git update-ref refs/heads/proq/x {logged}; git update-ref refs/heads/proq/x {tip}"));
    // A stopped rebase whose autostash holds uncommitted changes.
    sandbox.sh_in(
        &lane,
        "git branch side; echo mine > f; git commit -qam mine; git switch -q side; echo theirs > f
         git commit -qam theirs; git switch -q proq/x; echo stashed > a.txt
         ! git -c rebase.autoStash=true rebase -q side 2>/dev/null",
    );
    let stash = sandbox.sh_in(&lane, "cat \"$(git rev-parse --git-path rebase-merge/autostash)\"");
    let staged = sandbox.sh_in(&lane, "echo staged > s; git add s; git rev-parse :s; echo later > s");
    let theirs = sandbox.sh_in(&lane, "git rev-parse :2:f");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    sandbox.sh("git branch -qD side; git reflog expire --expire=now --all; git gc -q --prune=now");
    for (kind, object) in [
        ("dropped", &dropped),
        ("logged", &logged),
        ("stash", &stash),
        ("staged", &staged),
        ("theirs", &theirs),
    ] {
        let found = sandbox.sh(&format!("git cat-file -t {object} 2>&1 || :"));
        assert!(["commit", "blob"].contains(&found.as_str()), "{kind}: {found}");
    }
}

/// Promise: removal/folder-and-registration
#[test]
#[ignore = "needs a second file system"]
fn undo_restores_lane_from_another_disk() {
    let sandbox = Sandbox::new();
    let other = sandbox.dir_on_other_filesystem();
    let git_dir = other.path().join("git");
    sandbox.sh(&format!("mv .git '{0}'; echo 'gitdir: {0}' > .git", git_dir.display()));
    sandbox.write(".gitignore", "*.log\n");
    sandbox.commit_all("ignore");
    sandbox.lane_with_commit("x", "echo x > x.txt");
    sandbox.sh_in(
        &sandbox.lane_path("x"),
        "echo log > x.log; echo new > new; echo more >> x.txt; git add x.txt",
    );
    let before = WorktreeState::capture(&sandbox, &sandbox.lane_path("x"));
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert!(!sandbox.lane_path("x").exists());
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(before, WorktreeState::capture(&sandbox, &sandbox.lane_path("x")));
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    let _ = sandbox.sh("git config proq.trash.keep 0");
    let _ = sandbox.proq(&["gc"]).ok();
    let left = std::fs::read_dir(sandbox.repo.join(".proq-worktrees")).unwrap();
    let left: Vec<_> = left.map(|e| e.unwrap().file_name()).filter(|n| n != ".gitignore").collect();
    assert_eq!(left, [""; 0]);
}

/// Ignore rules that other implementations of git apply wrongly: a relative file name, an empty name, and
/// conditional includes.
#[test]
fn file_not_ignored_by_git_keeps_its_lane() {
    for rules in [
        "printf '.my\nsecret\n' > .my; git config core.excludesFile .my",
        "mkdir -p ~/.config/git; echo secret > ~/.config/git/ignore; git config core.excludesFile ''",
        "echo secret > ../ign; git config core.excludesFile \"$ROOT/ign\"; git config -f ../inc core.excludesFile /dev/null
        git config 'includeIf.gitdir:**/worktrees/x.path' \"$ROOT/inc\"",
        "echo secret > ../ign; git config -f ../inc core.excludesFile \"$ROOT/ign\"
        git config \"includeIf.gitdir:$ROOT/repo/.git.path\" \"$ROOT/inc\"",
    ] {
        let sandbox = Sandbox::new();
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
        sandbox.sh(rules);
        std::fs::write(sandbox.lane_path("x").join("secret"), "precious").unwrap();
        assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["status", "--porcelain"]), "?? secret", "{rules}");
        assert_eq!(sandbox.row("x")["uncommitted"], 1, "{rules}");
        let output = sandbox.proq(&["discard", "x"]).fails(1);
        assert!(output.contains("uncommitted") && sandbox.lane_path("x").exists(), "{rules}: {output}");
    }
}

#[test]
fn git_entry_in_tracked_folder_is_not_a_change() {
    let sandbox = Sandbox::new();
    sandbox.write("d/b", "b");
    sandbox.commit_all("folder");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    for change in ["git init -q d", "rm -rf d/.git; echo hi > d/.git"] {
        let _ = sandbox.sh_in(&sandbox.lane_path("x"), change);
        assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["status", "--porcelain"]), "", "{change}");
        assert_eq!(sandbox.row("x")["uncommitted"], 0, "{change}");
    }
    let _ =
        sandbox.sh_in(&sandbox.lane_path("x"), "rm d/.git; git config core.ignoreCase true; cp a.txt A.txt");
    assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["status", "--porcelain"]), "");
    assert_eq!(sandbox.row("x")["uncommitted"], 0);
}

/// Returns whether a saved commit or snapshot contains a file with this text.
fn is_saved(sandbox: &Sandbox, text: &str) -> bool {
    let id = sandbox.sh(&format!("echo {text} | git hash-object --stdin"));
    let all = sandbox.git(&["rev-list", "--objects", "--glob=refs/proq/saved", "--glob=refs/proq/snap"]);
    all.lines().any(|line| line.starts_with(&id))
}

/// Promise: removal/unfinished-work-saved
#[test]
fn saves_files_of_an_open_merge() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo b >b");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo lane >a.txt");
    sandbox.sh("echo main >a.txt; git commit -qam main");
    let work =
        "git merge -q main >/dev/null 2>&1 || true; echo by-hand >a.txt; echo notes >notes; echo edited >b";
    sandbox.sh_in(&sandbox.lane_path("one"), work);
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    for text in ["by-hand", "notes", "edited", "lane"] {
        assert!(is_saved(&sandbox, text), "{text}");
    }
}

/// Promise: removal/unfinished-work-saved
#[test]
fn saves_edits_hidden_by_index_flags() {
    for flag in ["--skip-worktree", "--assume-unchanged"] {
        let sandbox = Sandbox::new();
        sandbox.lane_with_commit("one", "echo lane >new");
        sandbox
            .sh_in(&sandbox.lane_path("one"), &format!("git update-index {flag} a.txt; echo hidden >a.txt"));
        let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
        assert!(is_saved(&sandbox, "hidden"), "{flag}");
    }
}

#[test]
fn name_of_a_removed_lane_is_no_beginning_of_another() {
    let sandbox = Sandbox::new();
    for lane in ["pay", "pay-2"] {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", lane]).ok();
    }
    let _ = sandbox.proq(&["discard", "pay"]).ok();
    sandbox.write(".git/proq/history/pay@1/lane.toml", "no record");
    let out = sandbox.proq(&["discard", "--force", "pay"]).fails(1);
    assert!(out.contains("there is no lane 'pay'"), "{out}");
    assert!(sandbox.lane_path("pay-2").exists());
}
