//! Hints about plans, drafts and batches.

use crate::scenes::{NO_COMMAND, Row, play};

const ABOUT_BATCHES_THAT_ENDED: &[Row] = &[
    ["plan", "git proq swarm plan.toml", "merge it into main", "", "test -f one.txt && test -f two.txt"],
    ["plan; git proq swarm plan.toml", "git proq batch status", "merge it into main", "", "test -f two.txt"],
    [
        "plan; git proq swarm plan.toml; git proq merge --batch $(batch)",
        "git proq batch status $(batch)",
        "clean up",
        "",
        "! git rev-parse -q --verify proq/batch-$(batch)",
    ],
    [
        "plan 'exit 1'; git proq swarm plan.toml || true",
        "git proq batch status $(batch)",
        "retry it",
        "worker",
        "",
    ],
    ["plan 'exit 1'", "git proq swarm plan.toml", "show the result of each task", "failed", ""],
    ["plan; git proq swarm plan.toml", "git proq swarm plan.toml", "merge it", "", "test -f two.txt"],
    ["plan; git proq swarm plan.toml", "git proq swarm plan.toml", "or show its tasks", "two", ""],
    [
        "plan; git proq swarm plan.toml",
        "git proq cleanup --batch $(batch)",
        "land them",
        "",
        "test -f two.txt",
    ],
    [
        "plan; git proq swarm plan.toml",
        "git proq cleanup --batch $(batch)",
        "or drop them, saved under",
        "",
        "! test -f two.txt && git for-each-ref refs/proq/saved | grep -q .",
    ],
    [
        "plan; git proq swarm plan.toml; git branch -qD proq/batch-$(batch)",
        "git proq merge --batch $(batch)",
        "create it again",
        "",
        "git proq merge --batch $(batch) && test -f two.txt",
    ],
    [
        "plan; git proq swarm plan.toml; git proq cleanup --force --batch $(batch)",
        "git proq batch resume $(batch)",
        "list removed lanes",
        "two",
        "",
    ],
    [
        "plan; git proq swarm plan.toml; git proq cleanup --force --batch $(batch)",
        "git proq batch status $(batch)",
        "it was cleaned up",
        NO_COMMAND,
        "",
    ],
    ["plan; git proq swarm plan.toml", "git proq batch status zzz", "list batches", "complete", ""],
    ["plan; git proq swarm plan.toml", "git proq batch pause", "list ended batches", "complete", ""],
    [
        "plan 'exit 1'; git proq swarm plan.toml || true",
        "git proq batch resume --retry zzz $(batch)",
        "list its tasks",
        "one",
        "",
    ],
    ["", "git proq batch report", "create a plan to run", "", "test -f plan.toml"],
    ["plan; git proq swarm plan.toml", "git proq", "land it on main", "", "test -f two.txt"],
    ["", "git proq batch status", "start one", "plan.toml", ""],
    [
        "plan 'exit 1'; git proq swarm plan.toml || true",
        "git proq merge --batch $(batch)",
        "show the progress",
        "",
        "",
    ],
];

#[test]
fn hints_about_batches_that_ended_work() {
    play(ABOUT_BATCHES_THAT_ENDED);
}

const ABOUT_BATCHES_THAT_START_OR_RUN: &[Row] = &[
    ["plan", "git proq swarm plan.toml --detach", "show its progress", "two", ""],
    ["plan", "git proq swarm plan.toml --detach", "follow it", "2 of 2", ""],
    [
        "plan 'sleep 60'; git proq swarm plan.toml --detach",
        "git proq batch abort --hard",
        "show its progress",
        "one",
        "",
    ],
    [
        "plan 'sleep 60'; git proq swarm plan.toml --detach",
        "git proq batch pause; git proq batch abort --hard > /dev/null 2>&1",
        "show its progress",
        "one",
        "",
    ],
    [
        "plan; git config core.editor 'sed -i 1iWork'; echo y >> a.txt",
        "git proq swarm plan.toml",
        "commit them",
        "",
        "git diff --quiet HEAD && git proq swarm plan.toml",
    ],
    ["plan; echo y >> a.txt", "git proq swarm plan.toml", "or add --ignore-dirty", NO_COMMAND, ""],
    ["plan; sed -i /^agent/d plan.toml", "git proq swarm plan.toml", "add --agent claude", "claude", ""],
    ["plan; git checkout -q --detach", "git proq swarm plan.toml", "name the branch with --base", "main", ""],
];

#[test]
fn hints_about_batches_that_start_or_run_work() {
    play(ABOUT_BATCHES_THAT_START_OR_RUN);
}

const ABOUT_FAULTS_OF_PLANS: &[Row] = &[
    ["", "git proq plan plan.toml", "create one", "", "git proq plan plan.toml"],
    ["plan", "git proq plan --init", "write another file", "", "test -f plan-2.toml"],
    ["plan; sed -i s/two/one/ plan.toml", "git proq plan plan.toml", "give one of the tasks", NO_COMMAND, ""],
    [
        "plan; sed -i 's/\\[\"one\"\\]/[\"zzz\"]/' plan.toml",
        "git proq plan plan.toml",
        "add a task",
        NO_COMMAND,
        "",
    ],
    [
        "plan; sed -i 's/\\[\"one\"\\]/[\"onee\"]/' plan.toml",
        "git proq plan plan.toml",
        "did you mean",
        NO_COMMAND,
        "",
    ],
    [
        "plan; sed -i 's/\\[\"one\"\\]/[\"two\"]/' plan.toml",
        "git proq plan plan.toml",
        "remove it",
        NO_COMMAND,
        "",
    ],
    ["printf '\\377' > plan.toml", "git proq plan plan.toml", "save it as UTF-8", NO_COMMAND, ""],
    ["plan; mv plan.toml p.xyz", "git proq plan p.xyz", "name the format", "two", ""],
    ["plan; cp plan.toml p.toml", "git proq plan p.toml plan.toml", "name one file", NO_COMMAND, ""],
    ["plan", "git proq plan plan.toml --milestone x", "leave --milestone out", NO_COMMAND, ""],
    [
        "printf 'format = 1\\nsummary = \"x\"\\n' > plan.toml",
        "git proq plan plan.toml",
        "show an example",
        "[[task]]",
        "",
    ],
    [
        "printf '# Roadmap\\n\\n## M1 first\\n\\n- [ ] One\\n\\n## M1 second\\n\\n- [ ] Two\\n' > ROADMAP.md",
        "git proq plan ROADMAP.md --milestone zzz",
        "milestones",
        NO_COMMAND,
        "",
    ],
    [
        "printf '# Roadmap\\n\\n## M1 first\\n\\n- [ ] One\\n\\n## M1 second\\n\\n- [ ] Two\\n' > ROADMAP.md",
        "git proq plan ROADMAP.md --milestone M1",
        "type more of the title",
        NO_COMMAND,
        "",
    ],
    [
        "printf '# Roadmap\\n\\n## M1\\n\\n- [x] One\\n' > ROADMAP.md",
        "git proq plan ROADMAP.md",
        "show a milestone",
        "One",
        "",
    ],
    ["", "git proq plan --drafts", "generate one", "install one of", ""],
];

#[test]
fn hints_about_faults_of_plans_work() {
    play(ABOUT_FAULTS_OF_PLANS);
}

const ABOUT_DRAFTS: &[Row] = &[
    ["", "git proq plan --ai x", "list the agents", "claude", ""],
    ["", "git proq plan --feedback x zzz", "list drafts", "no drafts", ""],
    ["says no", "git proq plan --feedback x", "create one", "draft 'plan-payments-by-card'", ""],
    ["says no", "git proq plan --ai x", "give it feedback", "claude changes draft 'plan-x'", ""],
    [
        "says no; git proq plan --ai x || true",
        "git proq plan --approve",
        "give it feedback",
        "claude changes draft 'plan-x'",
        "",
    ],
];

#[test]
fn hints_about_drafts_work() {
    play(ABOUT_DRAFTS);
}

const ABOUT_TASKS: &[Row] = &[
    ["plan", "git proq swarm plan.toml --retry zzz", "list its tasks", "two", ""],
    [
        "printf 'format = 1\\n[[phase]]\\norder = \"serial\"\\n[[phase.group]]\\n' > plan.toml; \
         for task in one two; do printf '[[phase.group.task]]\\nid = \"%s\"\\ntitle = \"T\"\\n' $task; done \
         >> plan.toml; sed -i '/\"one\"/aneeds = [\"two\"]' plan.toml",
        "git proq plan plan.toml",
        "move 'two' before 'one'",
        NO_COMMAND,
        "",
    ],
    [
        "mkdir -p tasks/pay/PAY-1-x tasks/pay/PAY-2-y; \
         printf '# PAY-1: X\\n' > tasks/pay/PAY-1-x/PROMPT.md; \
         printf '# PAY-2: Y\\n\\n## Dependencies\\n\\n- **PAY-1**\\n' > tasks/pay/PAY-2-y/PROMPT.md",
        "git proq plan tasks/pay/PAY-2-y",
        "include it",
        "pay/PAY-1",
        "",
    ],
    [
        "mkdir -p ../t/PAY-1-x tasks; printf '# PAY-1: X\\n' > ../t/PAY-1-x/PROMPT.md",
        "git proq plan ../t/PAY-1-x",
        "move it into the repository",
        NO_COMMAND,
        "",
    ],
    ["printf -- '- [x] One\\n' > ROADMAP.md", "git proq plan ROADMAP.md", "add an item", NO_COMMAND, ""],
];

#[test]
fn hints_about_tasks_work() {
    play(ABOUT_TASKS);
}

const ABOUT_LANES_OF_BATCHES: &[Row] = &[
    [
        "plan; sed -i '2icriteria = [\"It works\"]' plan.toml; git proq swarm --strict plan.toml || true",
        "git proq merge --batch $(batch)",
        "list the criteria",
        "It works",
        "",
    ],
    [
        "plan; sed -i '2icriteria = [\"It works\"]' plan.toml; git proq swarm plan.toml; \
         rm .git/proq/batches/*/criteria.json",
        "git proq batch status $(batch)",
        "check its criteria",
        "0 of 1 criterion met",
        "test -f .git/proq/batches/$(batch)/criteria.json",
    ],
    [
        "plan; sed -i 's/^title = \"One\"/&\\nchecks = [\"false\"]/' plan.toml; \
         git proq approve -y --plan plan.toml; git proq swarm plan.toml || true; \
         git proq discard --force one",
        "git proq batch abort $(batch)",
        "delete its lanes",
        "cleaned up",
        "git proq batch status $(batch) 2>&1 | grep 'it was cleaned up'",
    ],
    [
        "plan 'exit 1'; git proq swarm plan.toml || true",
        "git proq rename one x",
        "change its title instead",
        "--title",
        "",
    ],
    [
        "plan 'test $PROQ_TASK = one || exit 1; echo x > one.txt; git add -A; git commit -qm work'; \
         git branch BRANCH; git proq swarm plan.toml || true",
        "git proq edit two --base main",
        "land the batch elsewhere",
        "landed",
        "git show BRANCH:one.txt",
    ],
    [
        "mkfifo ../p; plan 'read x < $ROOT/p'; git proq swarm plan.toml --detach",
        "git proq cleanup --batch $(batch) --force",
        "let its running tasks end",
        "will pause",
        "git proq batch abort --hard",
    ],
    [
        "mkfifo ../p; plan 'read x < $ROOT/p'; git proq swarm plan.toml --detach; \
         sed 's/one/uno/;s/two/due/' plan.toml > p.toml; git proq swarm p.toml --detach",
        "git proq batch pause",
        "name one",
        "will pause",
        "for id in $(batch); do git proq batch abort --hard $id; done",
    ],
];

#[test]
fn hints_about_lanes_of_batches_work() {
    play(ABOUT_LANES_OF_BATCHES);
}
