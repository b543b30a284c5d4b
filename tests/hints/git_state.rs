//! Hints about the state in which git is.

use proq_test_kit::Sandbox;

use crate::scenes::{Row, play};

const ABOUT_THE_REPOSITORY: &[Row] = &[
    ["", "cd ../home && git proq list", "run it inside a repository", "", ""],
    ["", "GIT_DIR=/nowhere git-proq list", "GIT_DIR is not a repository", "", ""],
    ["git config core.bare true", "git proq list", "restore the checkout", "", "git proq list"],
    ["", "git proq spawn --empty -n a --base nope", "list branches and tags", "main", ""],
    ["git proq spawn --empty -n a", "git proq merge a --onto nope", "list branches", "main", ""],
    ["lane a", "git proq merge a --push", "list the remotes to push to", "", ""],
    [
        "git init -q --bare -b main ../up.git; git remote add origin ../up.git; git push -qu origin main; git clone -q ../up.git ../other; \
             (cd ../other; echo z > z; git add z; git commit -qm z; git push -q); \
             lane a",
        "git proq merge a --push",
        "merge them, then push",
        "",
        "test -f new-a.txt && test -f z",
    ],
];

#[test]
fn hints_about_the_repository_work() {
    play(ABOUT_THE_REPOSITORY);
}

const ABOUT_PREVIEWS: &[Row] = &[
    [
        "lane a; git proq preview a; git switch -q -c other",
        "git proq preview --back",
        "switch back and leave it",
        "",
        "test \"$(git symbolic-ref --short HEAD)\" = main",
    ],
    [
        "lane a; git proq preview a; cd .proq-worktrees/a; echo z > z; git add z; git commit -qm z",
        "git proq preview a",
        "update it",
        "",
        "test -f z && git proq preview --back",
    ],
    ["lane a; git proq preview a", "git proq preview a", "update it", "", "git proq preview --back"],
    [
        "lane a; git proq preview -q a; git worktree add -q ../w main",
        "git proq preview --back",
        "free the branch",
        "",
        "git proq preview --back",
    ],
    [
        "git switch -q --orphan empty",
        "git proq spawn --empty -n a",
        "create a first commit",
        "",
        "git proq spawn --empty -n a",
    ],
];

#[test]
fn hints_about_previews_work() {
    play(ABOUT_PREVIEWS);
}

const ABOUT_WHERE_THE_REPOSITORY_IS: &[Row] = &[
    ["", "GIT_DIR=$PWD/.git GIT_WORK_TREE=/ git-proq list", "unset the variables", "", "git proq list"],
    [
        "git init -q --bare ../bare.git; git push -q ../bare.git main",
        "cd ../bare.git; git proq spawn --in-place -n a -- true",
        "work in a clone of it",
        "clone",
        "",
    ],
    [
        "git config core.worktree ../../nope",
        "git proq list",
        "use the checkout beside it again",
        "",
        "git proq list",
    ],
    [
        "program git-lfs 'case \"$1 $2\" in clean*|\"smudge --skip\") cat ;; *) echo no \
             such object >&2; exit 1 ;; esac'; git config filter.lfs.smudge 'git-lfs smudge -- \
             %f'; git config filter.lfs.clean 'git-lfs clean -- %f'; git config \
             filter.lfs.required true; echo '*.bin filter=lfs' > .gitattributes; echo 1 > \
             x.bin; git add .; git commit -qm l",
        "git proq spawn --empty -n a",
        "or use pointers in lanes",
        "",
        "git proq spawn --empty -n a && test -f .proq-worktrees/a/x.bin",
    ],
    ["mkdir ../t; ln -s ../../t .git/proq", "git proq spawn --empty -n a", "show its target", "../../t", ""],
    [
        "git proq spawn --empty -n z; rm -f .git/info/exclude",
        "git proq doctor",
        "repair one of them",
        "",
        "! git proq doctor | grep -q repair",
    ],
    [
        "lane a; git proq preview -q a; git switch -q --orphan e",
        "git proq preview --back",
        "switch back and leave it",
        "",
        "git proq preview --back",
    ],
    [
        "lane a; git checkout -q --detach; git proq preview -q a; git switch -qc other",
        "git proq preview --back",
        "switch back and leave it: git switch --detach",
        "",
        "! test -f new-a.txt",
    ],
];

#[test]
fn hints_about_where_the_repository_is_work() {
    play(ABOUT_WHERE_THE_REPOSITORY_IS);
}

#[test]
fn hints_about_settings_of_git_work() {
    const OF_ALL_WORKTREES: &str =
        "git config extensions.worktreeConfig true; git config --file .git/config core.worktree ..";
    const OF_BOTH: &str = "git config extensions.worktreeConfig true; \
        git config --file .git/config core.worktree ..; \
        git config --file .git/config.worktree core.worktree ..";
    play(&[
        [
            OF_ALL_WORKTREES,
            "git proq list",
            "apply it only to the main checkout",
            "",
            "git proq spawn --empty -n a",
        ],
        [OF_BOTH, "git proq list", "apply it only to the main checkout", "", "git proq spawn --empty -n a"],
        [
            "git config core.worktree $ROOT/home",
            "git proq list",
            "let git find it",
            "",
            "git proq list && git -C ../home rev-parse --show-toplevel | grep home",
        ],
        [
            "git clone -q --bare . ../bare.git; git config --global safe.bareRepository explicit",
            "git -C ../bare.git proq list",
            "if you trust it, name it",
            "No lanes yet",
            "",
        ],
        [
            "lane a",
            "GIT_COMMITTER_DATE=x git proq merge a",
            "let git use the current time",
            "",
            "git proq merge a",
        ],
    ]);
}

#[test]
fn hints_about_missing_objects_and_filters_work() {
    play(&[
        [
            "git clone -q --bare . ../up.git; git remote add origin ../up.git; \
             git -C ../up.git config uploadpack.allowFilter true; \
             git clone -q --filter=blob:none --no-checkout file://$ROOT/up.git ../c; mv ../up.git ../moved",
            "cd ../c; git proq spawn --empty -n x; mv ../moved ../up.git",
            "check whether git can reach it",
            "",
            "git -C ../c proq spawn --empty -n x && test -f ../c/.proq-worktrees/x/a.txt",
        ],
        [
            "echo '*.txt filter=x' > .gitattributes; git add .; git commit -qm a; \
             git config filter.x.smudge false; git config filter.x.required true",
            "git proq spawn --empty -n a",
            "list the filters",
            "filter.x.smudge false",
            "",
        ],
        [
            "echo '*.bin filter=lfs' > .gitattributes; echo x > x.bin; git add .; git commit -qm a; \
             git config filter.lfs.smudge 'echo Error downloading object >&2; false'; \
             git config filter.lfs.required true; program git-lfs 'echo lfs \"$@\"'",
            "git proq spawn --empty -n a",
            "fetch the missing files",
            "lfs fetch",
            "",
        ],
    ]);
}

#[test]
fn hints_about_a_first_commit_and_leftovers_work() {
    play(&[
        ["git switch -q --orphan e", "git proq", "make a commit", "", "git proq spawn --empty -n a"],
        ["git switch -q --orphan e", "git proq list", "make a commit", "", "git proq spawn --empty -n a"],
        ["git switch -q --orphan e", "git proq status", "make a commit", "", "git proq spawn --empty -n a"],
        [
            "lane a; git proq merge -q a",
            "PROQ_OP_KEEP=0 git proq gc",
            "free their objects in git too",
            "",
            "git count-objects -v | grep -q 'packs: 1'",
        ],
        [
            "git proq spawn -q --empty -n a; echo '[' > .git/proq/lanes/a/lane.toml",
            "git proq merge a",
            "if it is lost, move it away",
            "",
            "test -f .git/proq/lanes/a/lane.toml.broken && git proq list",
        ],
        [
            "echo a > b; git add b; git commit -qm b; lane a; git proq merge -q a; \
             git update-index --assume-unchanged b; echo y > new-a.txt",
            "git proq undo",
            "make git check all files again",
            "",
            "git ls-files -v b | grep -q H && git proq undo 2>&1 | grep -q 'stash them'",
        ],
        [
            "lane a; touch .git/refs/heads/main.lock",
            "git proq merge a",
            "check for a leftover lock file",
            "On branch main",
            "rm .git/refs/heads/main.lock && git proq merge a",
        ],
    ]);
}

#[test]
fn hint_outside_of_all_worktrees_lists_them() {
    let sandbox = Sandbox::new();
    let bare = sandbox.root().join("bare.git");
    let shell = |script: &str| {
        let mut command = sandbox.command("sh", &sandbox.repo);
        command.args(["-ec", script]);
        sandbox.output(command)
    };
    let _ = shell(
        "git clone -q --bare . ../bare.git; cd ../bare.git; git proq spawn --empty -n a; \
         cd \"$(git proq open a --path)\"; echo n > n; git add n; git commit -qm n; echo y > y",
    )
    .ok();
    let refused = shell(
        "cd ../bare.git; git -c proq.merge.uncommitted=snapshot proq merge a > $ROOT/out 2>&1 || true; \
         git proq snap restore $(git proq snap list | awk 'NR == 2 { print $1 }')",
    );
    let listed = sandbox.follow_hint_in(&bare, &refused.stderr, "list worktrees, then run it");
    assert!(listed.stdout.contains("[proq/a]"), "{}", listed.stdout);
}
