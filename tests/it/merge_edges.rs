//! Owns the tests of a landing whose base is checked out, dirty, busy or moving.

use std::path::{Path, PathBuf};

use super::support::{Image, Output, Sandbox};

fn sandbox_with(lane: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 1 20 > long.txt; echo k > keep.txt; echo '*.log' > .gitignore");
    sandbox.commit_all("base");
    sandbox.lane_of("one", lane);
    sandbox
}

/// Another worktree of the repository.
fn worktree(sandbox: &Sandbox, name: &str, how: &str) -> PathBuf {
    sandbox.sh(&format!("git worktree add -q {how}").replace("PATH", &format!("../{name}")));
    sandbox.root().join(name)
}

/// A landing is refused, and no ref and no file has moved.
#[track_caller]
fn refused(sandbox: &Sandbox, code: i32) -> String {
    let before = (sandbox.git(&["for-each-ref"]), Image::of(sandbox, &sandbox.repo));
    let text = sandbox.proq(&["merge", "one"]).fails(code);
    assert_eq!(before, (sandbox.git(&["for-each-ref"]), Image::of(sandbox, &sandbox.repo)));
    assert!(sandbox.lane("one").exists());
    text
}

#[test]
fn changes_beside_the_landing_stay_exactly_as_they_are() {
    let sandbox = sandbox_with("echo lane > a.txt; echo lane > lane.txt; mkdir d; echo lane > d/f");
    sandbox.sh("echo s > keep.txt; git add keep.txt; echo u > keep.txt; sed -i s/^9$/nine/ long.txt; echo u > untracked; mkdir -p d; echo u > d/own; git add -N untracked; echo i > x.log; echo n > new; git add new; git rm -q --cached .gitignore");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let mut after = Image::of(&sandbox, &sandbox.repo);
    assert_eq!(before.status, after.status);
    for (path, text) in [("a.txt", "644 lane\\n"), ("lane.txt", "644 lane\\n"), ("d/f", "644 lane\\n")] {
        assert_eq!(after.files.remove(path).as_deref(), Some(text));
    }
    let mut files = before.files;
    files.remove("a.txt");
    assert_eq!(files, after.files);
    assert_eq!(sandbox.git(&["show", ":keep.txt"]), "s");
}

#[test]
fn overlapping_changes_refuse_it_by_name() {
    for (dirty, name) in [
        ("echo mine > a.txt", "a.txt"),
        ("echo mine > a.txt; git add a.txt", "a.txt"),
        ("rm a.txt", "a.txt"),
        ("chmod +x a.txt", "a.txt"),
        ("git update-index --assume-unchanged a.txt; echo mine > a.txt", "a.txt"),
        ("git update-index --skip-worktree a.txt; echo mine > a.txt", "a.txt"),
        ("echo mine > lane.txt", "lane.txt"),
        ("echo mine > lane.txt; git add lane.txt", "lane.txt"),
        ("echo mine > x.log", "x.log"),
        ("echo file > d", "d"),
        ("mkdir lane.txt; echo mine > lane.txt/in", "lane.txt/in"),
        ("mkdir d; ln -s ../a.txt d/f", "d/f"),
    ] {
        let lane = "echo lane > a.txt; echo lane > lane.txt; mkdir d; echo lane > d/f; echo l > x.log; git add -f x.log";
        let sandbox = sandbox_with(lane);
        sandbox.sh(dirty);
        let text = refused(&sandbox, 1);
        assert!(text.contains(&format!("in the way: {name}; nothing was changed")), "{dirty}: {text}");
    }
}

#[test]
fn a_flagged_file_without_edits_is_no_hindrance_and_stays_flagged() {
    let sandbox = sandbox_with("echo lane > a.txt; echo lane > keep.txt");
    sandbox.sh("git update-index --skip-worktree a.txt; git update-index --assume-unchanged keep.txt; touch -d 2001-01-01 a.txt keep.txt");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!((sandbox.read("a.txt"), sandbox.read("keep.txt")), ("lane\n".into(), "lane\n".into()));
    let flags = sandbox.git(&["ls-files", "-v", "a.txt", "keep.txt"]);
    assert_eq!(flags, "S a.txt\nh keep.txt");
}

#[test]
fn a_base_that_is_not_checked_out_moves_alone() {
    let sandbox = sandbox_with("echo lane > a.txt");
    sandbox.sh("git switch -qc topic; echo mine > a.txt; echo u > untracked");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(before, Image::of(&sandbox, &sandbox.repo));
    assert_eq!(sandbox.git(&["show", "main:a.txt"]), "lane");
}

#[test]
fn a_base_in_a_linked_worktree_is_brought_over_there() {
    let sandbox = sandbox_with("echo lane > a.txt");
    sandbox.sh("git switch -qc topic");
    let linked = worktree(&sandbox, "linked", "PATH main");
    sandbox.write_in(&linked, "keep.txt", "mine\n");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(std::fs::read_to_string(linked.join("a.txt")).unwrap(), "lane\n");
    assert_eq!(sandbox.git_in(&linked, &["status", "--short"]), " M keep.txt");
    assert_eq!(sandbox.read("a.txt"), "a\n");
}

#[test]
fn two_worktrees_on_the_base_are_both_brought_over() {
    let sandbox = sandbox_with("echo lane > a.txt; echo lane > lane.txt");
    let second = worktree(&sandbox, "second", "-f PATH main");
    sandbox.sh_in(
        &second,
        "echo s > keep.txt; git add keep.txt; sed -i s/^9$/nine/ long.txt; echo u > untracked",
    );
    let out = sandbox.proq(&["merge", "one"]);
    assert_eq!((out.code, out.stderr.as_str()), (0, ""), "{}", out.shown());
    for dir in [&sandbox.repo, &second] {
        assert_eq!(std::fs::read_to_string(dir.join("a.txt")).unwrap(), "lane\n");
        assert!(dir.join("lane.txt").exists());
    }
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert_eq!(sandbox.git_in(&second, &["status", "--short"]), "M  keep.txt\n M long.txt\n?? untracked");
    // The next commit there has the landing in it.
    sandbox.git_in(&second, &["commit", "-qm", "next"]);
    assert_eq!(sandbox.git(&["show", "main:a.txt"]), "lane");
}

#[test]
fn a_second_worktree_on_the_base_that_could_not_follow_refuses_it() {
    for (dirty, why) in [
        ("echo mine > a.txt", "in the way: a.txt"),
        ("echo mine > lane.txt", "in the way: lane.txt"),
        ("git merge -q --no-commit --no-ff side", "a merge is under way"),
    ] {
        let sandbox = sandbox_with("echo lane > a.txt; echo lane > lane.txt");
        sandbox.sh(
            "git switch -qc side; echo side > side.txt; git add .; git commit -qm side; git switch -q main",
        );
        let second = worktree(&sandbox, "second", "-f PATH main");
        sandbox.sh_in(&second, dirty);
        let before = Image::of(&sandbox, &second);
        let text = refused(&sandbox, 1);
        assert!(text.contains(why) && text.contains("second"), "{text}");
        assert_eq!(before, Image::of(&sandbox, &second));
    }
}

/// Something that happens to a second worktree on the base when the base has just moved: what is said of it, the command that helps,
/// run, and the worktree.
#[track_caller]
fn left_behind(happening: &str) -> (Sandbox, PathBuf, String) {
    let sandbox = sandbox_with("sed -i s/^1$/one/ long.txt; echo lane > lane.txt");
    let second = worktree(&sandbox, "second", "-f PATH main");
    sandbox.sh_in(&second, "echo s > keep.txt; git add keep.txt");
    let hook = sandbox.repo.join(".git/hooks/reference-transaction");
    let script = format!("#!/bin/sh\n[ $1 = committed ] && grep -q refs/heads/main || exit 0\n{happening}\n");
    std::fs::write(&hook, script).unwrap();
    sandbox.sh("chmod +x .git/hooks/reference-transaction");
    let out = sandbox.proq(&["merge", "one"]);
    std::fs::remove_file(hook).unwrap();
    assert_eq!((out.code, out.stderr.lines().count()), (0, 1), "{}", out.shown());
    let warning = out.stderr.trim_end().to_owned();
    let (said, command) = warning.split_once("; before you commit there: ").unwrap();
    assert!(said.contains("second is on 'main' too and could not follow: "), "{said}");
    sandbox.sh(&command.replace("[ROOT]", sandbox.root().to_str().unwrap()));
    assert_eq!(sandbox.git_in(&second, &["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(std::fs::read_to_string(second.join("lane.txt")).unwrap(), "lane\n");
    assert_eq!(std::fs::read_to_string(second.join("keep.txt")).unwrap(), "s\n");
    (sandbox, second, said.to_owned())
}

#[test]
fn a_second_worktree_whose_index_was_locked_meanwhile_is_told_how_to_follow() {
    let (sandbox, second, said) = left_behind(": > $ROOT/repo/.git/worktrees/second/index.lock");
    assert!(said.contains("another git command is running in [ROOT]/second"), "{said}");
    assert_eq!(sandbox.git_in(&second, &["status", "--short"]), "M  keep.txt");
}

#[test]
fn a_second_worktree_that_was_edited_meanwhile_is_told_how_to_follow() {
    let (sandbox, second, said) = left_behind("echo mine >> $ROOT/second/long.txt");
    assert!(said.contains("stand in the way: long.txt"), "{said}");
    let long = std::fs::read_to_string(second.join("long.txt")).unwrap();
    assert!(long.starts_with("one\n2\n") && long.ends_with("20\nmine\n"), "{long}");
    assert_eq!(sandbox.git_in(&second, &["diff", "--name-only", "HEAD"]), "keep.txt\nlong.txt");
}

#[test]
fn a_base_in_mid_rebase_or_bisect_elsewhere_refuses_it() {
    for (begin, what) in [("git rebase -q side", "rebase"), ("git bisect start main main~2", "bisect")] {
        let sandbox = sandbox_with("echo lane > lane.txt");
        sandbox.sh("git switch -qc side; echo side > a.txt; git commit -qam side; git switch -q main; echo main > a.txt; git commit -qam main; git switch -qc topic");
        let linked = worktree(&sandbox, "linked", "PATH main");
        sandbox.sh_in(&linked, &format!("{begin} > /dev/null 2>&1 || true"));
        assert_eq!(sandbox.git_in(&linked, &["rev-parse", "--abbrev-ref", "HEAD"]), "HEAD");
        let text = refused(&sandbox, 1);
        assert!(text.contains(&format!("a {what} of 'main' is under way in [ROOT]/linked")), "{text}");
    }
}

#[test]
fn open_operations_and_held_locks_on_the_base_refuse_it() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.sh("git switch -qc side; echo side > side; git add .; git commit -qm side; git switch -q main; git merge -q --no-commit --no-ff side");
    let text = refused(&sandbox, 1);
    assert!(text.contains("a merge is under way in [ROOT]/repo"), "{text}");
    sandbox.sh("git merge --abort; : > .git/index.lock");
    let text = refused(&sandbox, 5);
    assert!(text.contains("another git command is running"), "{text}");
    for lock in ["HEAD.lock", "refs/heads/main.lock"] {
        sandbox.sh(&format!("rm -f .git/*.lock; : > .git/{lock}"));
        let text = refused(&sandbox, 1);
        let together = sandbox.proq(&["merge", "one", "--atomic"]).fails(1);
        for said in ["could not be moved", lock, "nothing was moved"] {
            assert!(text.contains(said) && together.contains(said), "{lock}: {text}{together}");
        }
        sandbox.sh(&format!("rm .git/{lock}"));
    }
    let _ = sandbox.proq(&["merge", "one"]).ok();
}

#[test]
fn histories_without_a_common_commit_do_not_hold_the_others_up() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.lane_of("alien", "git checkout -q --orphan x; git commit -qm alien; git branch -qM x proq/alien");
    let out = sandbox.proq(&["merge", "alien", "one"]);
    assert!(out.stdout.contains("refused alien"), "{}", out.stdout);
    assert!(out.stdout.contains("no commit in common with that of main"), "{}", out.stdout);
    let _ = out.fails(1);
    assert!(sandbox.repo.join("lane.txt").exists());
}

#[test]
fn merge_commits_are_signed_when_git_is_told_to() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    let program = sandbox.root().join("gpg");
    sandbox.sh(r#"printf '#!/bin/sh\ncat > /dev/null\necho "[GNUPG:] SIG_CREATED " >&2\necho "-----BEGIN PGP SIGNATURE-----"\necho fake\necho "-----END PGP SIGNATURE-----"\n' > ../gpg; chmod +x ../gpg; git config commit.gpgSign true"#);
    sandbox.git(&["config", "gpg.program", program.to_str().unwrap()]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let commit = sandbox.git(&["cat-file", "commit", "main"]);
    assert!(commit.contains("gpgsig -----BEGIN PGP SIGNATURE-----\n fake\n"), "{commit}");
    // A program that cannot sign refuses the landing.
    sandbox.sh("printf '#!/bin/sh\\nexit 1\\n' > ../gpg");
    sandbox.git(&["config", "commit.gpgSign", "false"]);
    sandbox.lane_of("two", "echo two > two.txt");
    sandbox.git(&["config", "commit.gpgSign", "true"]);
    let tip = sandbox.git(&["rev-parse", "main"]);
    let text = sandbox.proq(&["merge", "two"]).fails(1);
    assert!(text.contains("gpg failed to sign the data"), "{text}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);
}

#[test]
fn attributes_come_from_the_base_and_not_from_a_dirty_checkout() {
    let both = |union: &str, dirty: &str| -> (Sandbox, Output) {
        let sandbox = Sandbox::new();
        sandbox.sh(&format!("mkdir sub; echo top > sub/log.txt; {union}"));
        sandbox.commit_all("base");
        sandbox.lane_of("one", "echo lane >> sub/log.txt");
        sandbox.sh("echo main >> sub/log.txt; git commit -qam main");
        sandbox.sh(dirty);
        let out = sandbox.proq(&["merge", "one"]);
        (sandbox, out)
    };
    let rule = "echo 'log.txt merge=union' > sub/.gitattributes";
    let (sandbox, out) = both(rule, "");
    let _ = out.ok();
    assert_eq!(sandbox.read("sub/log.txt"), "top\nmain\nlane\n");
    let (_, out) = both("true", rule);
    let _ = out.fails(3);
    let (sandbox, out) = both(rule, "echo '# none' > sub/.gitattributes");
    let _ = out.ok();
    assert_eq!(sandbox.git(&["show", "main:sub/log.txt"]), "top\nmain\nlane");
}

#[test]
fn the_post_merge_hook_runs_where_the_base_is_checked_out() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.sh("mkdir -p .git/hooks; printf '#!/bin/sh\\necho \"$1 $(git rev-parse HEAD) $(test -e .git/index.lock; echo $?)\" >> ../hooked\\n' > .git/hooks/post-merge; chmod +x .git/hooks/post-merge");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let said = std::fs::read_to_string(sandbox.root().join("hooked")).unwrap();
    assert_eq!(said, format!("0 {} 1\n", sandbox.git(&["rev-parse", "main"])));
}

#[test]
fn landed_files_are_written_as_the_checkouts_filters_say() {
    let sandbox = Sandbox::new();
    sandbox.sh("git config filter.big.clean 'sed s/^.*$/pointer/'; git config filter.big.smudge 'sed s/^.*$/content/'; git config filter.big.required true");
    sandbox.sh("echo '*.big filter=big' > .gitattributes; echo '*.txt text' >> .gitattributes; printf 'x\\n' > f.txt; echo content > f.big");
    sandbox.commit_all("base");
    sandbox.lane_of("one", "printf 'x\\ny\\n' > f.txt; printf 'content\\ncontent\\n' > f.big");
    sandbox.sh("git config core.autocrlf true; rm f.txt; git checkout -q f.txt; echo content > own.big; git add own.big");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.read("f.txt"), "x\r\ny\r\n");
    assert_eq!(sandbox.read("f.big"), "content\ncontent\n");
    assert_eq!(sandbox.git(&["show", "main:f.big"]), "pointer\npointer");
    assert_eq!(sandbox.git(&["status", "--short"]), "A  own.big");
}

#[test]
fn two_landings_at_once_both_land() {
    let sandbox = sandbox_with("echo one > one.txt");
    let names: Vec<String> = (0..4).map(|n| format!("lane{n}")).collect();
    for name in &names {
        sandbox.lane_of(name, &format!("echo {name} > {name}.txt"));
    }
    std::thread::scope(|scope| {
        for name in &names {
            scope.spawn(|| sandbox.proq(&["merge", name]).ok());
        }
    });
    for name in &names {
        assert_eq!(sandbox.read(&format!("{name}.txt")), format!("{name}\n"));
    }
    assert_eq!(sandbox.git(&["rev-list", "--count", "--merges", "main"]), "4");
    assert_eq!(sandbox.git(&["status", "--short"]), "");
}

/// A commit that sits in its pre-commit hook until a file is opened.
fn commit_in_its_hook(sandbox: &Sandbox, args: &[&str]) -> std::process::Child {
    sandbox.sh("mkfifo ../begun ../go; mkdir -p .git/hooks; printf '#!/bin/sh\\necho > ../begun\\nread x < ../go\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit");
    let child = sandbox.command("git", &sandbox.repo).args(args).spawn().unwrap();
    assert_eq!(std::fs::read_to_string(sandbox.root().join("begun")).unwrap(), "\n");
    child
}

fn let_go(dir: &Path) {
    std::fs::write(dir.join("go"), "go\n").unwrap();
}

#[test]
fn a_commit_that_waits_in_its_hook_during_a_landing_reverts_nothing() {
    let sandbox = sandbox_with("echo lane > a.txt");
    sandbox.sh("echo mine > keep.txt; git add keep.txt");
    let mut child = commit_in_its_hook(&sandbox, &["commit", "-qm", "racing"]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let_go(&sandbox.root());
    assert!(!child.wait().unwrap().success(), "git must see that the branch has moved");
    assert_eq!(sandbox.git(&["show", "main:a.txt"]), "lane");
    assert_eq!(sandbox.git(&["status", "--short"]), "M  keep.txt");
    assert_eq!(sandbox.read("a.txt"), "lane\n");
}

#[test]
fn a_commit_that_holds_the_index_in_its_hook_refuses_the_landing_and_is_kept() {
    let sandbox = sandbox_with("echo lane > a.txt");
    sandbox.sh("echo mine > keep.txt");
    let mut child = commit_in_its_hook(&sandbox, &["commit", "-qam", "racing"]);
    let text = sandbox.proq(&["merge", "one"]).fails(5);
    assert!(text.contains("another git command is running"), "{text}");
    let_go(&sandbox.root());
    assert!(child.wait().unwrap().success());
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s"]), "racing");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!((sandbox.read("a.txt"), sandbox.read("keep.txt")), ("lane\n".into(), "mine\n".into()));
}

/// What a lane brings is on the base for good, so all of it has to be there: also what only its history holds.
#[test]
fn a_lane_whose_history_lacks_an_object_does_not_land() {
    for lost in ["HEAD~1:d/passing", "HEAD~1:d", "HEAD:stays", "HEAD~1"] {
        let sandbox = sandbox_with("mkdir d; echo once > d/passing");
        sandbox.sh_in(
            &sandbox.lane("one"),
            "git rm -q d/passing; echo 1 > stays; git add -A; git commit -qm two",
        );
        let id = sandbox.git_in(&sandbox.lane("one"), &["rev-parse", lost]);
        let object = sandbox.repo.join(".git/objects").join(&id[..2]).join(&id[2..]);
        std::fs::rename(&object, sandbox.root().join("away")).unwrap();
        let _ = refused(&sandbox, 1);
        std::fs::rename(sandbox.root().join("away"), &object).unwrap();
        let _ = sandbox.proq(&["merge", "one"]).ok();
    }
}

/// Git takes such a file for changed until it has read it again.
#[test]
fn a_file_that_was_only_touched_is_in_nobodys_way() {
    let sandbox = sandbox_with("echo lane >> a.txt; git rm -q keep.txt");
    sandbox.sh("touch -d 2001-01-01 a.txt keep.txt");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    assert!(sandbox.read("a.txt").ends_with("lane\n"));
}

#[test]
fn a_lane_that_landed_and_could_not_be_removed_is_not_said_to_have_changed_nothing() {
    let sandbox = Sandbox::new();
    for lane in ["one", "two", "three"] {
        sandbox.lane_of(lane, &format!("echo {lane} > {lane}"));
    }
    sandbox.sh(r#"cat > .git/hooks/reference-transaction <<'END'
#!/bin/sh
[ "$1" = prepared ] || exit 0
while read -r old new ref; do
    case "$ref $new" in "refs/heads/proq/three 000"*) echo 'three stays' >&2; exit 1;; esac
done
END
chmod +x .git/hooks/reference-transaction"#);
    let text = sandbox.proq(&["merge", "--all"]).ok();
    let line = text.lines().find(|line| line.starts_with("landed three")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("three stays") && !line.contains("nothing was"), "{line}");
    assert!(line.contains("; the lane was kept: "), "{line}");
    assert_eq!(sandbox.git(&["show", "main:three"]), "three");
}

/// What a landing commits first is in a dry run too, and nothing is committed.
#[test]
fn a_dry_run_lands_what_would_be_committed_first() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    let lane = sandbox.lane("b");
    sandbox.write_in(&lane, "left.txt", "left\n");
    let state = || (sandbox.git(&["for-each-ref"]), sandbox.git_in(&lane, &["status", "--short"]));
    let before = state();
    let first = "what is uncommitted in it would be committed first: left.txt\n";
    for (strategy, how) in [("merge", ""), ("squash", " (squash)"), ("rebase", " (rebase)")] {
        let out = sandbox.proq(&["merge", "b", "--dry-run", "--strategy", strategy]);
        assert_eq!(out.shown(), format!("would land b on main{how}; {first}--- code 0\n"));
    }
    assert_eq!(state(), before);
    // A dry run foretells a refusal and a conflict.
    sandbox.write_in(&lane, "a.txt", "<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n");
    let said = sandbox.proq(&["merge", "b", "--dry-run"]).fails(1);
    assert!(said.contains("a.txt holds conflict markers"), "{said}");
    assert_eq!(sandbox.proq(&["merge", "b"]).fails(1), said);
    sandbox.git_in(&lane, &["checkout", "-q", "a.txt"]);
    sandbox.write("left.txt", "mine\n");
    sandbox.commit_all("mine");
    let said = sandbox.proq(&["merge", "b", "--dry-run"]).fails(3);
    assert!(said.starts_with("would conflict b with main") || said.contains("left.txt"), "{said}");
    assert_eq!(sandbox.git_in(&lane, &["status", "--short"]), "?? left.txt");
    // One that has commits too.
    sandbox.git(&["reset", "-q", "--hard", "HEAD~1"]);
    sandbox.commit_in_lane("b", "echo more > more.txt; rm left.txt");
    sandbox.write_in(&lane, "left.txt", "left\n");
    let said = sandbox.proq(&["merge", "b", "--dry-run"]).ok();
    assert_eq!(said, format!("would land b on main; {first}"));
    let _ = sandbox.proq(&["merge", "b"]).ok();
    assert_eq!((sandbox.read("left.txt"), sandbox.read("more.txt")), ("left\n".into(), "more\n".into()));
    sandbox.assert_healthy();
}

#[test]
fn a_commit_that_a_hook_refuses_leaves_the_index_of_the_lane_as_it_was() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    sandbox.sh("echo 1 >b; echo 1 >c");
    sandbox.commit_all("base");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "s"]).ok();
    let lane = sandbox.lane("s");
    sandbox.sh_in(&lane, "echo 2 >b; git add b; echo 3 >b; git rm -q --cached c; echo i >it; git add -N it");
    sandbox.sh(
        "printf '#!/bin/sh\\necho no >&2; exit 1\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    );
    // By the time of the file git tells which entries it has to look at again.
    let time = || sandbox.repo.join(".git/worktrees/s/index").metadata().unwrap().modified().unwrap();
    let index = || (sandbox.git_in(&lane, &["ls-files", "--stage", "--debug"]), time());
    let status = sandbox.git_in(&lane, &["status", "--short"]);
    let before = index();
    let refused = sandbox.proq(&["merge", "s"]).fails(1);
    assert!(refused.contains("no"), "{refused}");
    assert_eq!(index(), before);
    assert_eq!(sandbox.git_in(&lane, &["status", "--short"]), status);
    let dry = sandbox.proq(&["merge", "s", "--dry-run"]).ok();
    assert_eq!(dry, "would land s on main; what is uncommitted in it would be committed first: b, c, it\n");
}

/// A commit that was made, though its command failed after that, keeps the index that belongs to it.
#[test]
fn a_commit_that_was_ended_in_its_last_hook_is_not_reversed_in_the_index() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "s"]).ok();
    let lane = sandbox.lane("s");
    sandbox.sh_in(&lane, "echo n >n");
    sandbox.sh(
        "printf '#!/bin/sh\\nkill -TERM $PPID\\n' >.git/hooks/post-commit; chmod +x .git/hooks/post-commit",
    );
    let _ = sandbox.proq(&["merge", "s"]);
    let status = sandbox.sh(&format!("git -C '{}' status --short 2>/dev/null || true", lane.display()));
    assert_eq!(status, "");
}

/// A file that was staged and edited back leaves nothing to commit: the lane lands.
#[test]
fn what_is_staged_and_edited_back_keeps_no_lane_from_landing() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    sandbox.lane_of("s", "echo s >s");
    sandbox.sh_in(&sandbox.lane("s"), "echo x >>a.txt; git add a.txt; git show HEAD:a.txt >a.txt");
    let _ = sandbox.proq(&["merge", "s"]).ok();
    assert_eq!(sandbox.git(&["show", "main:s"]), "s");
}
