//! Hints about batches that pause, are aborted, or run while something else is done.

use crate::scenes::{Row, play};

const ABOUT_ABORTED_BATCHES: &[Row] = &[
    [
        "plan 'test -e $ROOT/go || exec sleep 60; echo x > $PROQ_TASK.txt; git add -A; git \
             commit -qm work'; git proq swarm plan.toml --detach; git proq batch abort --hard; \
             touch ../go; while git proq batch status $(batch) | grep -q '^stopping'; do :; \
             done",
        "git proq batch status",
        "resume it",
        "2 of 2",
        "git proq merge --batch $(batch) && test -f two.txt",
    ],
    [
        "plan 'test -e $ROOT/go || exec sleep 60; echo x > $PROQ_TASK.txt; git add -A; git \
             commit -qm work'; git proq swarm plan.toml --detach; git proq batch abort --hard; \
             touch ../go; while git proq batch status $(batch) | grep -q '^stopping'; do :; \
             done",
        "git proq swarm plan.toml",
        "resume it",
        "2 of 2",
        "git proq merge --batch $(batch) && test -f two.txt",
    ],
    [
        "plan 'if ! test -e $ROOT/go; then touch $ROOT/go; cd $ROOT/repo; env -u PROQ_LANE \
             -u PROQ_ATTEMPT git proq batch abort --hard; exec sleep 60; fi; echo x > \
             $PROQ_TASK.txt; git add -A; git commit -qm work'",
        "git proq swarm plan.toml",
        "resume it anyway",
        "2 of 2",
        "git proq merge --batch $(batch) && test -f two.txt",
    ],
    [
        "plan 'exec sleep 60'; git proq swarm plan.toml --detach",
        "git proq cleanup --batch $(batch)",
        "or stop them",
        "",
        "git proq batch abort --hard || true",
    ],
    [
        "plan 'test $PROQ_TASK = one || exec sleep 60; echo x > one.txt; git add -A; git \
             commit -qm one'; git proq swarm plan.toml --detach --auto-merge; until test -f \
             one.txt; do git proq list > /dev/null; done",
        "git proq op restore 1",
        "stop the batch",
        "",
        "git proq batch abort --hard || true",
    ],
];

#[test]
fn hints_about_aborted_batches_work() {
    play(ABOUT_ABORTED_BATCHES);
}

const ABOUT_PAUSED_BATCHES: &[Row] = &[
    [
        "plan 'echo $PROQ_TASK >> a.txt; git commit -qam $PROQ_TASK'; sed -i /^needs/d \
             plan.toml",
        "git proq swarm plan.toml",
        "resolve its conflict",
        "a.txt",
        "",
    ],
    [
        "program claude 'echo x > $PROQ_TASK.txt; git add -A; git commit -qm work; echo \
             \"{\\\"type\\\": \\\"result\\\", \\\"subtype\\\": \\\"success\\\", \
             \\\"is_error\\\": false, \\\"session_id\\\": \\\"s\\\", \\\"total_cost_usd\\\": \
             2, \\\"result\\\": \\\"r\\\"}\"'; plan; sed -i s/worker/claude/ plan.toml",
        "git proq swarm plan.toml --budget 1",
        "raise its budget",
        "2 of 2",
        "git proq merge --batch $(batch) && test -f two.txt",
    ],
    [
        "plan 'echo $PROQ_TASK >> a.txt; git commit -qam $PROQ_TASK'; sed -i /^needs/d \
             plan.toml; git proq swarm plan.toml || true; git proq batch resume $(batch) || \
             true",
        "git proq batch status",
        "resolve its conflict, then",
        "a.txt",
        "",
    ],
    [
        "plan; git proq swarm plan.toml; sed -i '0,/\"needs\": \\[\\]/s//\"needs\": [1]/' \
             .git/proq/batches/*/tasks.json",
        "git proq batch resume $(batch)",
        "see them",
        "\"needs\"",
        "",
    ],
    [
        "plan 'echo $PROQ_TASK >> a.txt; git commit -qam $PROQ_TASK'; sed -i /^needs/d \
             plan.toml",
        "git proq swarm plan.toml",
        "once that is done, resume it",
        "1 of 2",
        "",
    ],
    [
        "plan; git config proq.verify.commands 'echo seen; test ! -f two.txt'",
        "git proq swarm plan.toml",
        "show what failed",
        "seen",
        "",
    ],
    [
        "plan; git config proq.verify.commands 'test ! -f two.txt'",
        "git proq swarm plan.toml",
        "show it",
        "check failed",
        "",
    ],
    [
        "plan; git config proq.verify.commands 'test ! -f two.txt'; git proq swarm \
             plan.toml || true; git config proq.verify.commands true",
        "git proq batch status",
        "once you have fixed it in the lane",
        "2 of 2",
        "",
    ],
];

#[test]
fn hints_about_paused_batches_work() {
    play(ABOUT_PAUSED_BATCHES);
}
