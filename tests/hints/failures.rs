//! Hints about what fails midway: full disks, limits, another git, locks, and programs that interfere.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use proq_test_kit::Sandbox;

use crate::scenes::{NO_COMMAND, play, play_as_ordinary_user};

#[test]
fn hints_about_git_and_the_disk_work() {
    play(&[
        [
            "program git 'echo no version at all'",
            "git-proq list",
            "check which git is used",
            "no version at all\n[ROOT]/bin/git",
            "rm $ROOT/bin/git; git proq list",
        ],
        [
            "echo '* ident' > .gitattributes; git add .; git commit -qm a; \
             program git \"case \\\"\\$*\\\" in *read-tree*) echo 'fatal: No space left on device' >&2; \
             exit 128 ;; esac; exec $(command -v git) \\\"\\$@\\\"\"",
            "git-proq spawn --empty -n x",
            "free some disk space",
            "Filesystem",
            "rm $ROOT/bin/git; git proq spawn --empty -n x && test -f .proq-worktrees/x/a.txt",
        ],
    ]);
}

#[test]
fn hint_about_a_limit_shows_the_limit() {
    let sandbox = Sandbox::new();
    // git itself writes files with this attribute, and its message has no reason.
    sandbox.write(".gitattributes", "* ident\n");
    sandbox.commit_all("attributes");
    sandbox.lane_with_commit("x", "seq 100000 > long");
    let limited = |script: &str| {
        let mut command = sandbox.command("sh", &sandbox.repo);
        command.args(["-c", &format!("trap '' XFSZ; ulimit -f 131; {script}")]);
        sandbox.output(command)
    };
    let refused = limited("git proq merge x").fails(1);
    assert!(refused.contains("hint: check disk space and limits: "), "{refused}");
    let shown = limited(&sandbox.hint_commands(&refused)[0]).ok();
    assert!(shown.starts_with("Filesystem"), "{shown}");
    assert!(shown.lines().any(|line| line.starts_with("file") && line.ends_with(" 131")), "{shown}");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert!(sandbox.repo.join("long").exists());
}

#[test]
#[ignore = "needs git 2.46"]
fn hint_about_an_older_git_names_the_version() {
    play(&[[
        "rm -rf .git; git init -q -b main --ref-format=reftable; git add .; git commit -qm first; lane x; \
         program git \"case \\\"\\$*\\\" in --version) echo git version 2.45.1; exit ;; esac; \
         exec $(command -v git) \\\"\\$@\\\"\"",
        "git-proq preview x; test \"$(git symbolic-ref HEAD)\" = refs/heads/main && rm $ROOT/bin/git; \
         git-proq preview x",
        "upgrade git to 2.46 or newer",
        NO_COMMAND,
        "",
    ]]);
}

#[test]
fn hint_about_locks_lets_the_next_command_wait() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo 1 > one");
    let lock = std::fs::File::open(sandbox.lane_lock("x", "run.lock")).unwrap();
    lock.lock().unwrap();
    let mut command = sandbox.proq_command(&sandbox.repo, &["discard", "--force", "x"]);
    command.env("PROQ_LOCK_TIMEOUT", "0");
    let refused = sandbox.output(command).fails(5);
    let _ = sandbox.follow_hint(&refused, "wait longer for locks").ok();
    assert_eq!(sandbox.git(&["config", "proq.lock.timeout"]), "300");
    let mut command = sandbox.proq_command(&sandbox.repo, &["discard", "--force", "x"]);
    let mut waiting = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(waiting.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("waiting for lane 'x'")));
    lock.unlock().unwrap();
    lines.for_each(drop);
    assert_eq!(waiting.wait().unwrap().code(), Some(0));
    assert!(!sandbox.lane_path("x").exists());
}

#[test]
fn hints_about_programs_that_interfere_work() {
    play(&[
        [
            "lane x",
            "while_stopped_at transition.locked 'rm .git/index.lock' git-proq preview x",
            "check the worktree",
            "nothing to commit, working tree clean",
            "git proq preview x && test -f new-x.txt",
        ],
        [
            "lane x; echo mine > a.txt; git proq preview -q x",
            "while_stopped_at step.before:2 'echo other > a.txt; git commit -qam other' git-proq undo",
            "apply the saved changes",
            "CONFLICT (content)",
            "grep -q mine a.txt && grep -q other a.txt && git show HEAD:a.txt | grep -q other",
        ],
        [
            "lane x; program git \"case \\\"\\$*\\\" in *'clean -ffdq'*) \
             $(command -v git) update-ref --no-deref HEAD HEAD~ ;; esac; \
             exec $(command -v git) \\\"\\$@\\\"\"",
            "git-proq merge x --verify 'test -f new-x.txt'; rm $ROOT/bin/git; \
             ls -d $ROOT/home/.cache/git-proq/verify/*/slot-0",
            "if no other program uses the folder, delete it",
            "",
            "! ls -d $ROOT/home/.cache/git-proq/verify/*/slot-0 && \
             git proq merge x --verify 'test -f new-x.txt' && test -f new-x.txt",
        ],
        [
            "lane one; git branch other; git proq spawn -q --empty -n two --base other; \
             (cd .proq-worktrees/two; echo 2 > stop.txt; git add .; git commit -qm two)",
            "sh -c 'echo $$ > $ROOT/pid; exec git-proq merge one two --verify \"$0\"' \
             'test ! -e stop.txt || { kill -TERM $(cat $ROOT/pid); sleep 600; }'",
            "show what is kept",
            "merge",
            "test -f new-one.txt && test -d .proq-worktrees/two",
        ],
    ]);
}

const CHANGED_FOLDER: &str = "mkdir d; echo 1 > d/f; echo 2 > d/g; git add d; git commit -qm d; \
    git proq spawn -q --empty -n x; (cd .proq-worktrees/x; git rm -q d/g; echo new > d/f; git commit -qam d)";
const FOLDER_IS_RESTORED: &str = "grep -q 1 d/f && grep -q 2 d/g && test -z \"$(git status --porcelain)\"";

/// The index lock goes, so that a preview fails, and a folder cannot be written, so that it cannot be undone.
#[test]
fn hints_about_what_could_not_be_undone_work() {
    play_as_ordinary_user(&[
        [
            CHANGED_FOLDER,
            "while_stopped_at transition.brought 'rm .git/index.lock; chmod 555 d' git-proq preview x; \
             chmod 755 d",
            "nothing is lost; try again",
            "everything is as it was before",
            FOLDER_IS_RESTORED,
        ],
        [
            CHANGED_FOLDER,
            "while_stopped_at transition.brought 'rm .git/index.lock; chmod 555 d; kill -TERM $pid' \
             git-proq preview x; chmod 755 d",
            "repair it, or see why that fails",
            "everything is as it was before",
            FOLDER_IS_RESTORED,
        ],
        [
            "lane x; echo mine > a.txt",
            "PROQ_TEST_DIE_AT=clear.filled git-proq preview x; chmod 0 .git/proq/snaps/*/files; \
             git proq merge x; chmod 700 .git/proq/snaps/*/files",
            "nothing is lost; try again",
            "everything is as it was before",
            "grep -q mine a.txt && git proq merge x && test -f new-x.txt",
        ],
    ]);
}
