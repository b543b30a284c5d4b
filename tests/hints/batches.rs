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

const ABOUT_ENDED_BATCHES: &[Row] = &[
    [
        "plan; git proq swarm plan.toml",
        "git proq batch resume $(batch)",
        "show its tasks",
        "two   landed",
        "",
    ],
    [
        "plan; sed -i /^needs/d plan.toml; git config proq.verify.commands 'echo seen; test ! -f two.txt'; \
             git proq swarm plan.toml || true; git proq batch abort; git proq batch resume $(batch) || true",
        "git proq batch status",
        "fix what failed in the lane",
        "seen",
        "cd .proq-worktrees/two; git mv two.txt 2.txt; git commit -qm fix; cd ../..; \
             git proq batch resume $(batch); git proq merge --batch $(batch); test -f 2.txt",
    ],
    [
        "printf -- '- [ ] One\\n- [ ] Two\\n' > plan.md; git add plan.md; git commit -qm plan; program worker \
             'echo x > $PROQ_TASK.txt; git add -A; git commit -qm work'; git proq swarm plan.md --agent \
             worker; sed -i 's/^- \\[ \\] One/* [ ] One/' plan.md",
        "git proq merge --batch $(batch)",
        "show it as a patch",
        "+* [x] One",
        "git proq batch report | git apply; test \"$(cat plan.md)\" = '* [x] One\n- [x] Two'",
    ],
    [
        "mkfifo ../p; plan 'read x < $ROOT/p'; git proq swarm plan.toml --detach; \
             until git proq batch status | grep -q 'one *running'; do :; done; \
             kill -9 $(sed -n 's/^pid = //p' .git/proq/batches/*/scheduler.toml); \
             until git proq batch status | grep -q ^interrupted; do :; done",
        "git proq cleanup --batch $(batch)",
        "stop them",
        "its agents were asked to finish up",
        "echo > ../p; until git proq batch status | grep -q ^aborted; do :; done; \
             git proq cleanup --batch $(batch); test ! -e .proq-worktrees/one",
    ],
];

#[test]
fn hints_about_ended_and_cut_off_batches_work() {
    play(ABOUT_ENDED_BATCHES);
}
