//! Hints about landings and conflicts.

use crate::scenes::{Row, play};

const ABOUT_CONFLICTS: &[Row] = &[
    ["conflict c", "git proq merge c", "resolve the conflict", "", ""],
    ["lane a", "git proq resolve a", "see what would land", "a", "! test -f new-a.txt"],
    ["conflict c", "git proq merge c; git proq resolve c --continue", "start one", "opened the conflict", ""],
];

#[test]
fn hints_about_conflicts_work() {
    play(ABOUT_CONFLICTS);
}

const ABOUT_REFUSED_LANDINGS: &[Row] = &[
    [
        "git proq spawn --empty -n a; echo y > .proq-worktrees/a/y",
        "git proq merge a",
        "or let merge do it",
        "a",
        "test -f y",
    ],
    [
        "lane a; echo 1 > one; git add one; git commit -qm one",
        "git proq merge a --check false",
        "land without that check",
        "a",
        "test -f new-a.txt",
    ],
    ["lane a", "git proq merge a --check false", "read its output", "false", ""],
    ["lane a", "git proq merge a --check nosuchprogram", "merge without checks", "a", "test -f new-a.txt"],
    [
        "lane a",
        "git proq merge a --check 'test ! -f new-a.txt'",
        "show its full output",
        "test ! -f new-a.txt",
        "",
    ],
    [
        "mkdir -p .git/hooks; printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/pre-merge-commit; \
             chmod +x .git/hooks/pre-merge-commit; lane a",
        "git proq merge a",
        "skip that hook",
        "a",
        "test -f new-a.txt",
    ],
    [
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do echo $i > f$i; done; \
             git add -A; git commit -qm more; git proq spawn --empty -n a; cd .proq-worktrees/a; \
             git rm -q 'f*'; git commit -qm gone",
        "git proq merge a",
        "if that is intended",
        "a",
        "! test -f f1",
    ],
    ["program claude true", "git proq merge --conflict-retries 2 --all", "for example", "", ""],
    [
        "git config proq.verify.commands 'test ! -e $ROOT/bad'; git config proq.merge.uncommitted commit; \
             : > ../bad; git proq spawn -q --wait -n x --auto-merge -- sh -c 'echo x > x; git add x; git \
             commit -qm x' || true; echo more >> .proq-worktrees/x/x; rm ../bad; lane y; git proq merge y; \
             until git proq show x | grep -q 'may not be'; do :; done",
        "git proq logs x --merge",
        "commit it and merge the lane",
        "landed x on main",
        "test \"$(git show HEAD:x)\" = 'x\nmore'",
    ],
    [
        "git worktree add -q -b other ../wt; git worktree lock ../wt; git proq spawn -q --empty -n one --base \
             other; cd .proq-worktrees/one; echo x > x; git add x; git commit -qm x; cd ../..; mv ../wt ../gone",
        "git proq merge one",
        "list worktrees: git",
        "[other] locked",
        "mv ../gone ../wt; git proq merge one; test -f ../wt/x",
    ],
];

#[test]
fn hints_about_refused_landings_work() {
    play(ABOUT_REFUSED_LANDINGS);
}

#[test]
fn hints_about_ways_to_land_work() {
    const MERGED: &str =
        "lane a; echo m > m; git add m; git commit -qm m; git -C .proq-worktrees/a merge -q main -m mm";
    const APPROVAL: &str = "printf '[verify]\\ncommands = [\"true\"]\\n' > proq.toml; git add .; \
        git commit -qm checks; lane a";
    play(&[
        [MERGED, "git proq merge a --strategy rebase", "merge it as one commit", "a", "test -f new-a.txt"],
        [MERGED, "git proq merge a --strategy rebase", "or with a merge commit", "a", "test -f new-a.txt"],
        ["git config core.editor false; lane a", "git proq merge a --edit", "choose another editor", "", ""],
        ["lane a; lane b", "git proq merge a b -m x", "set a template", "", "git proq merge a b"],
        ["lane a", "git proq merge a --rebase -m x", "land it as one commit", "a", "test -f new-a.txt"],
        [APPROVAL, "git proq merge a", "read and approve them", "true", ""],
        [APPROVAL, "git proq approve --onto main", "approve them without asking", "", "git proq merge a"],
    ]);
}

#[test]
fn hints_about_resolving_a_conflict_work() {
    const OPEN: &str = "conflict c; git proq merge c || true; git proq resolve c --shell || true";
    const RESOLVED: &str = "conflict c; git proq merge c || true; git proq resolve c --shell || true; \
        (cd .proq-worktrees/.resolve/c; echo both > a.txt; git add a.txt)";
    play(&[
        [OPEN, "git proq resolve c --continue", "fix it in", "a.txt", ""],
        [
            "conflict c; git proq merge c || true; git proq resolve c --shell || true; \
             git -C .proq-worktrees/.resolve/c add a.txt",
            "git proq resolve c --continue",
            "or accept it as it is",
            "",
            "git proq merge --force c",
        ],
        [RESOLVED, "git proq resolve c --continue", "show it", "both", ""],
        [RESOLVED, "git proq resolve c --continue", "merge it", "c", "grep -q both a.txt"],
        [
            "conflict c; git proq merge c || true; git proq resolve c --shell || true; program claude true; \
             (cd .proq-worktrees/.resolve/c; echo both > a.txt; git add a.txt)",
            "git proq resolve c --agent claude",
            "finish that",
            "",
            "git proq merge c && grep -q both a.txt",
        ],
        [
            "conflict c; git proq merge c || true; git proq resolve c --shell || true; program claude true",
            "git proq resolve c --agent claude",
            "or abort; your work is saved",
            "",
            "! test -d .proq-worktrees/.resolve/c",
        ],
    ]);
}

const ABOUT_WHAT_STOPS_A_LANDING: &[Row] = &[
    ["lane a; git config proq.merge.message '{zzz}'", "git proq merge a", "see where it is set", "{zzz}", ""],
    [
        "git config branch.main.mergeOptions '-s ours'; lane a",
        "git proq merge a",
        "show where it is set",
        "-s ours",
        "",
    ],
    [
        "lane a; echo '[merge' > .proq-worktrees/a/proq.toml; git -C .proq-worktrees/a add \
             .; git -C .proq-worktrees/a commit -qm s",
        "git proq merge a",
        "see the file",
        "[merge",
        "",
    ],
    [
        "git switch -qc dev; echo '[merge' > proq.toml; git add .; git commit -qm s; git \
             switch -q main; lane a",
        "git proq merge a --onto dev",
        "see the file, and correct it",
        "[merge",
        "",
    ],
    [
        "git switch -q --orphan o; git commit -q --allow-empty -m o; git switch -q main; \
             git proq spawn --empty -n a --base o; cd .proq-worktrees/a; echo y > y; git add \
             y; git commit -qm y",
        "git proq merge a --onto main",
        "rebase its commits onto main",
        "",
        "git proq merge a --onto main && test -f y",
    ],
    [
        "lane a; git config user.useConfigOnly true",
        "env -u GIT_AUTHOR_NAME -u GIT_AUTHOR_EMAIL -u GIT_COMMITTER_NAME -u \
             GIT_COMMITTER_EMAIL git-proq merge a -m x",
        "set both",
        "",
        "env -u GIT_AUTHOR_NAME -u GIT_AUTHOR_EMAIL -u GIT_COMMITTER_NAME -u \
             GIT_COMMITTER_EMAIL git-proq merge a -m x && test -f new-a.txt",
    ],
    [
        "lane a; git proq merge -q a; echo mine >> new-a.txt",
        "git proq undo",
        "stash them",
        "",
        "git proq undo && git stash show -p | grep -q +mine",
    ],
    [
        "lane a; git proq merge -q a; git rm -q --cached new-a.txt; echo mine > new-a.txt; \
             git add -N new-a.txt",
        "git proq undo",
        "stash them",
        "",
        "git proq undo && git stash show -p | grep -q +mine",
    ],
    [
        "conflict c; git merge proq/c > merged || true; rm .git/MERGE_HEAD",
        "git proq spawn --in-place -n i -- true",
        "see how to resolve them",
        "a.txt",
        "",
    ],
    [
        "conflict c; git merge proq/c > merged || true; rm .git/MERGE_HEAD; lane b",
        "git proq merge b",
        "see how to finish the merge",
        "a.txt",
        "",
    ],
    [
        "lane a; echo z > new-a.txt; git add -N new-a.txt",
        "git proq merge a",
        "or stash them",
        "",
        "git proq merge a && grep -q x new-a.txt",
    ],
    [
        "git proq spawn --empty -n c; (cd .proq-worktrees/c; echo l > a.txt; git commit \
             -qam l); echo mine > a.txt",
        "git proq merge c",
        "or stash them",
        "",
        "git proq merge c && grep -q l a.txt && git stash show -p | grep -q +mine",
    ],
    [
        "lane a; lane b; for i in c d; do git proq spawn -q --wait -n $i -- sh -c \"echo \
             $i > a.txt; git commit -qam $i\"; done",
        "git proq",
        "2 lanes are done; see what would land",
        "c",
        "grep -q a a.txt",
    ],
    [
        "lane a",
        "git proq merge a --check \"git -C $PWD proq rename a z > $ROOT/out 2>&1; true\"; \
             cat ../out",
        "show the merge queue",
        "",
        "",
    ],
    [
        "lane a; lane b",
        "git proq merge a --check \"git -C $PWD proq merge b > $ROOT/out 2>&1; true\"; cat \
             ../out",
        "show the merge queue",
        "",
        "",
    ],
];

#[test]
fn hints_about_what_stops_a_landing_work() {
    play(ABOUT_WHAT_STOPS_A_LANDING);
}

#[test]
fn hints_about_remotes_and_requests_work() {
    const REMOTE: &str = "git init -q --bare -b main ../up.git; git remote add origin ../up.git; \
        git push -qu origin main; lane a";
    play(&[
        [
            REMOTE,
            "git proq merge --pr a",
            "on GitHub",
            "",
            "test \"$(git config proq.merge.prCommand)\" = gh",
        ],
        [
            REMOTE,
            "git proq merge --pr a",
            "on GitLab",
            "",
            "test \"$(git config proq.merge.prCommand)\" = glab",
        ],
        [
            "program gh 'echo \"$@\"'; lane a",
            "git proq merge --pr a",
            "create one on GitHub",
            "repo create --source . --push",
            "",
        ],
        [
            "git remote add one ../one; git remote add two ../two; lane a",
            "git proq merge --pr a",
            "choose one",
            "",
            "! git proq merge --pr a 2>&1 | grep 'which remote'",
        ],
        [
            "git remote add origin https://github.com/o/r.git; program gh \
             'test $1 != auth || exec echo \"$@\"; echo Please run gh auth login >&2; exit 4'",
            "git proq spawn --issue 3 claude",
            "log in",
            "auth login --hostname github.com",
            "",
        ],
        [
            "git init -q --bare -b main ../up.git; git remote add origin ../up.git; \
             git push -qu origin main; program hook 'test -f refused || { touch refused; exit 1; }'; \
             mv ../bin/hook ../up.git/hooks/pre-receive; lane a",
            "git proq merge a --push",
            "once that is fixed",
            "",
            "test \"$(git -C ../up.git rev-parse main)\" = \"$(git rev-parse main)\"",
        ],
    ]);
}

#[test]
fn hints_about_lanes_that_cannot_land_yet_work() {
    const CONFLICTING: &str = "lane a; (cd .proq-worktrees/a; echo s > a.txt; git commit -qam s); \
        lane b; (cd .proq-worktrees/b; echo t > a.txt; git commit -qam t)";
    play(&[
        [
            "git proq spawn --empty -n a; echo y > .proq-worktrees/a/y; \
             git config core.editor 'sed -i 1iWork'",
            "git proq merge a",
            "commit it there",
            "",
            "git proq merge a && test -f y",
        ],
        [CONFLICTING, "git proq merge a b --atomic", "merge a without it", "a", "grep -q s a.txt"],
        [
            "lane a; lane b; git config proq.verify.location $ROOT/v; git proq merge -q a --check true; \
             rm $ROOT/v/*/CACHEDIR.TAG",
            "git proq merge b --check true",
            "list its files",
            "git-proq-checks-1",
            "",
        ],
    ]);
}

#[test]
fn hints_about_a_conflict_that_is_open_work() {
    const OPEN: &str = "conflict c; git proq merge c || true; git proq resolve c --shell || true";
    play(&[
        [OPEN, "git proq rename c d", "finish the resolution", "a.txt", ""],
        [
            "says ok; git proq spawn -q --wait -n c claude x; \
             (cd .proq-worktrees/c && echo lane > a.txt && git commit -qam 'Change a'); \
             echo base > a.txt; git commit -qam base; git proq merge c || true; \
             git proq resolve c --shell || true",
            "git proq send c hi",
            "abort that; its work is saved",
            "",
            "! test -d .proq-worktrees/.resolve/c && git proq send c hi && git proq wait c",
        ],
        [
            "program claude 'env -u PROQ_LANE -u PROQ_ATTEMPT git -C $ROOT/repo proq stop c; read x'; \
             conflict c; git proq merge c || true",
            "git proq resolve c --agent claude",
            "finish it by hand",
            "opened the conflict",
            "",
        ],
    ]);
}
