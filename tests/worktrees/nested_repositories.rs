//! Tests of repositories inside a lane's folder: their unpushed work is never deleted with the lane.

use proq_test_kit::Sandbox;

/// Creates a lane with one commit and runs `script` in its folder.
fn landable_lane_with(script: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    // git's background maintenance after a commit or push would run in the lane's folder and keep that folder
    // in use.
    sandbox.git(&["config", "--global", "maintenance.auto", "false"]);
    sandbox.git(&["config", "--global", "receive.autogc", "false"]);
    sandbox.sh("echo '*.ign' >.gitignore");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo one >one");
    sandbox.sh_in(&sandbox.lane_path("one"), script);
    sandbox
}

/// Returns the output of `git proq gc` with a retention time of zero for the trash.
fn gc_output(sandbox: &Sandbox) -> String {
    let mut command = sandbox.proq_command(&sandbox.repo, &["gc"]);
    command.env("PROQ_TRASH_KEEP", "0").env("PROQ_TEST_NOW", "2026-01-02T03:09:05Z");
    sandbox.output(command).fails(0)
}

/// Promise: worktree/nested-repository-trash
#[test]
fn gc_keeps_trash_that_holds_unpushed_work() {
    let clone = "git clone -q ../.. c.ign; cd c.ign; git config user.name a; git config user.email a@b.c;";
    for work in [
        "git init -q r.ign; cd r.ign; echo q >q; git add q; git commit -qm own",
        "git init -q r.ign; echo q >r.ign/q",
        "git init -q r.ign; cd r.ign; echo q >q; git add q",
        "mkdir -p deep/r.ign; git init -q --bare x; git push -q ./x HEAD:refs/heads/own; mv x deep/r.ign/x.git",
        &format!("{clone} echo more >more; git add more; git commit -qm own"),
        &format!("{clone} echo more >more; git add more; git commit -qm own; git reset -q --hard HEAD~"),
        &format!("{clone} echo more >>a.txt; git stash -q"),
        &format!("{clone} echo more >>a.txt"),
        &format!("{clone} echo more >>a.txt; git add a.txt"),
        &format!("{clone} echo more >more"),
        &format!(
            "{clone} git worktree add -q --detach ../w.ign; cd ../w.ign; echo more >more; git add more; git commit -qm own"
        ),
    ] {
        let sandbox = landable_lane_with(work);
        let merge = sandbox.proq(&["merge", "one"]);
        assert!(merge.code == 0 && !sandbox.lane_path("one").exists(), "{work}: {}", merge.to_text());
        let out = gc_output(&sandbox);
        let entries = sandbox.sh("ls .git/proq/trash");
        assert_eq!(entries.lines().count(), 1, "{work}: {out}");
        assert!(out.contains("work that is nowhere else"), "{work}: {out}");
        // The second run reads the result of the first one from a note.
        let out = gc_output(&sandbox);
        assert!(out.contains("work that is nowhere else"), "{work}: {out}");
        // The hint is to move the entry out of the trash.
        let trash = sandbox.repo.join(".git/proq/trash");
        let entry = trash.read_dir().unwrap().next().unwrap().unwrap();
        let (entry_path, name) = (entry.path(), entry.file_name());
        std::fs::rename(entry_path, sandbox.root().join(&name)).unwrap();
        assert!(out.contains(" '[ROOT]'"), "{out}");
        assert!(sandbox.root().join(&name).join("worktree").exists());
        assert!(!gc_output(&sandbox).contains("nowhere else"), "{work}");
    }
}

#[test]
fn gc_deletes_repository_that_its_remote_has() {
    for work in [
        "git clone -q ../.. c.ign",
        "git clone -q ../.. c.ign; echo '*.o' >>c.ign/.git/info/exclude; echo o >c.ign/x.o",
        "git clone -q --bare ../.. c.ign; git -C c.ign remote add o \"$(cd ../..; pwd)\"; git -C c.ign fetch -q o '+refs/heads/*:refs/remotes/o/*'",
        "git init -q e.ign",
        "git -C ../.. tag -f v1 main; git clone -q --depth 1 --branch v1 \"file://$(cd ../..; pwd)\" s.ign",
        "git clone -q --mirror ../.. m.ign",
    ] {
        let sandbox = landable_lane_with(work);
        let _ = sandbox.proq(&["merge", "one"]).ok();
        let out = gc_output(&sandbox);
        assert_eq!(sandbox.sh("ls .git/proq/trash"), "", "{work}: {out}");
    }
}

/// Promise: worktree/nested-repository-trash
#[test]
fn runs_no_command_of_a_nested_repository() {
    let sandbox = landable_lane_with(
        "git clone -q ../.. c.ign; cd c.ign; git -c core.fsmonitor=/bin/true update-index --fsmonitor;
        printf '#!/bin/sh\\ntouch \"$ROOT/ran\"\\n' >.git/watch; chmod +x .git/watch; git config core.fsmonitor \"$PWD/.git/watch\";
        git config filter.x.clean 'touch ../../../ran; cat'; echo '* filter=x' >.git/info/attributes;
        git config core.sshCommand 'touch ../../../ran; false'; git config diff.external 'touch ../../../ran';
        echo more >>a.txt",
    );
    let _ = sandbox.proq(&["merge", "one"]).ok();
    std::fs::remove_file(sandbox.root().join("ran")).ok();
    assert!(gc_output(&sandbox).contains("nowhere else"));
    assert!(!sandbox.repo.join("ran").exists() && !sandbox.root().join("ran").exists());
}

/// Promise: worktree/nested-repository-trash
#[test]
fn worktree_inside_a_lane_keeps_the_lane() {
    let sandbox = landable_lane_with("git worktree add -q --detach w.ign; echo own >w.ign/own");
    let out = sandbox.proq(&["merge", "one"]).ok();
    assert!(out.contains("w.ign is inside its folder"), "{out}");
    assert!(sandbox.lane_path("one").join("w.ign/own").exists());
    for command in [&["discard", "one"][..], &["discard", "--force", "one"], &["cleanup", "one"]] {
        let refused = sandbox.proq(command).fails(1);
        assert!(refused.contains("w.ign is inside its folder"), "{refused}");
        let mut dry = command.to_vec();
        dry.push("--dry-run");
        let refused = sandbox.proq(&dry).fails(1);
        assert!(refused.contains("w.ign is inside its folder"), "{refused}");
    }
    sandbox.sh("git worktree move .proq-worktrees/one/w.ign ../w");
    let _ = sandbox.proq(&["cleanup", "one"]).ok();
    assert!(sandbox.root().join("w/own").exists());
}

/// Promise: worktree/nested-repository-trash
#[test]
fn gc_keeps_submodule_commits_of_discarded_lane() {
    let sandbox = Sandbox::new();
    sandbox.sh("git init -q ../lib; cd ../lib; echo l >l; git add l; git commit -qm lib; cd ../repo;
        git -c protocol.file.allow=always submodule --quiet add ../lib lib");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo one >one");
    let lane = sandbox.lane_path("one");
    sandbox.sh_in(
        &lane,
        "git -c protocol.file.allow=always submodule --quiet update --init; cd lib; git config user.name a;
        git config user.email a@b.c; echo own >own; git add own; git commit -qm own",
    );
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    let out = gc_output(&sandbox);
    assert!(out.contains("/lib is a repository with work that is nowhere else, its commits in "), "{out}");
    assert_eq!(
        sandbox
            .sh("git --git-dir=$(echo .git/proq/trash/*/admin/modules/lib) --work-tree=. log --format=%s -1"),
        "own"
    );
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.sh_in(&lane.join("lib"), "git log --format=%s -1"), "own");
}

/// Promise: worktree/nested-repository-trash
#[test]
fn reused_folder_keeps_nested_repository_in_trash() {
    let sandbox = landable_lane_with("git init -q r.ign; cd r.ign; echo q >q; git add q; git commit -qm own");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "two"]).ok();
    assert!(!sandbox.lane_path("two").join("r.ign").exists());
    assert_eq!(sandbox.sh("ls .git/proq/trash/*/aside"), "r.ign");
    let out = gc_output(&sandbox);
    assert!(out.contains("/r.ign is a repository with work that is nowhere else"), "{out}");
}

#[test]
fn gc_deletes_nested_repository_once_pushed() {
    let sandbox = landable_lane_with(
        "git clone -q ../.. c.ign; cd c.ign; git config user.name a; git config user.email a@b.c;
        echo more >more; git add more; git commit -qm own",
    );
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert!(gc_output(&sandbox).contains("work that is nowhere else"));
    assert!(!sandbox.proq(&["doctor"]).ok().contains("is deleted by the next cleanup"));
    sandbox.sh("git -C .git/proq/trash/*/worktree/c.ign push -q \"$PWD\" HEAD:refs/heads/own");
    sandbox.sh(
        "git -C .git/proq/trash/*/worktree/c.ign fetch -q \"$PWD\" '+refs/heads/*:refs/remotes/origin/*'",
    );
    let out = gc_output(&sandbox);
    assert!(!out.contains("nowhere else"), "{out}");
    assert_eq!(sandbox.sh("ls .git/proq/trash"), "");
}

#[test]
fn hint_about_nested_repository_lets_the_lane_land() {
    for (setup, files) in [
        // Commits and changes in the nested repository, before and after git tracks it as a submodule.
        ("git init -q sub; cd sub; echo s >s; git add s; git commit -qm s; echo more >>s", "one"),
        ("mkdir 'deep in'; git init -q 'deep in/sub'; echo s >'deep in/sub/s'", "one"),
        (
            "git init -q sub; cd sub; echo s >s; git add s; git commit -qm s; cd ..
          git -c advice.addEmbeddedRepo=false add sub; git commit -qm sub; echo more >>sub/s",
            "one\nsub",
        ),
    ] {
        let sandbox = landable_lane_with(setup);
        sandbox.git(&["config", "core.editor", "sh -c 'echo text >\"$1\"' --"]);
        let text = sandbox.proq(&["merge", "one"]).fails(1);
        let hints = proq_test_kit::conflict::hint_commands(&sandbox, &text);
        assert_eq!(hints.len(), 1, "{text}");
        sandbox.sh(&hints[0].replace("commit &&", "-c user.name=a -c user.email=a@b.c commit -m inside &&"));
        let _ = sandbox.proq(&["merge", "one"]).ok();
        assert_eq!(sandbox.git(&["diff", "--name-only", "HEAD~", "HEAD"]), files);
        // A repository that was moved out keeps its files.
        if setup.starts_with("mkdir") {
            assert_eq!(sandbox.read("../one-sub/s"), "s\n");
        }
    }
}
