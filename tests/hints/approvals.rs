//! Hints about approvals, hooks and folders of checks.

use crate::scenes::{Row, play};

const ABOUT_APPROVALS: &[Row] = &[
    [
        "printf '[lane]\\nsetup = [\"echo up\"]\\n' > proq.toml; git add .; git commit -qm \
             s",
        "git proq spawn --empty -n a",
        "read and approve them",
        "echo up",
        "",
    ],
    [
        "printf '[verify]\\ncommands = [\"true\"]\\n' > proq.toml; git add .; git commit \
             -qm checks; lane a",
        "git proq merge a --dry-run",
        "read and approve the checks",
        "true",
        "",
    ],
    [
        "git switch -qc dev; printf '[verify]\\ncommands = [\"true\"]\\n' > proq.toml; git \
             add .; git commit -qm checks; git switch -q main; lane a",
        "git proq merge a --onto dev",
        "read and approve them",
        "dev",
        "",
    ],
    [
        "printf '[hook]\\npre-merge = [\"echo ok\"]\\n[hooks]\\npre-merge = [\"echo \
             ok\"]\\n' > proq.toml; git add .; git commit -qm s; lane a",
        "git proq merge a",
        "read and approve it",
        "echo ok",
        "",
    ],
    [
        "plan; printf 'checks = [\"true\"]\\n' >> plan.toml; git add .; git commit -qm plan",
        "git proq swarm plan.toml",
        "read and approve them",
        "true",
        "",
    ],
];

#[test]
fn hints_about_approvals_work() {
    play(ABOUT_APPROVALS);
}

const ABOUT_HOOKS_AND_FOLDERS_OF_CHECKS: &[Row] = &[
    [
        "git config proq.hook.pre-merge 'echo never; false'; lane a",
        "git proq merge a",
        "read its output",
        "never",
        "",
    ],
    [
        "lane a; lane b; git config proq.verify.location \"$ROOT/v\"; git proq merge a \
             --check true; for d in ../v/*; do echo other > $d/CACHEDIR.TAG; done",
        "git proq merge b --check true",
        "or set another folder",
        "",
        "git proq merge b --check true && test -f new-b.txt",
    ],
    [
        "lane a; git config proq.verify.location \"$PWD/v\"",
        "git proq merge a --check true",
        "set a folder outside of it",
        "",
        "git proq merge a --check true && test -f new-a.txt",
    ],
];

#[test]
fn hints_about_hooks_and_folders_of_checks_work() {
    play(ABOUT_HOOKS_AND_FOLDERS_OF_CHECKS);
}
