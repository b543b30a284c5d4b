//! Hints about attempts, runs in the main checkout, read-only runs, and opening a lane.

use crate::scenes::{Row, play};

#[test]
fn hints_about_attempts_work() {
    const ATTEMPTS: &str =
        "git proq spawn -n g --count 2 -- sh -c 'echo x > new; git add -A; git commit -qm x'";
    const ENDED: &str = "git proq spawn -q --wait -n g --count 2 --check true -- sh -c 'echo x > new; git add -A; git commit -qm x'";
    play(&[
        ["", ATTEMPTS, "wait for them", "g", ""],
        ["", ATTEMPTS, "compare them", "g", ""],
        [ENDED, "git proq", "compare the attempts at 'g'", "merges", ""],
        [ENDED, "git proq compare g", "run the checks now", "", ""],
        [ENDED, "git proq compare g", "land one", "", "test -f new"],
        [ENDED, "git proq pick g-1", "restore the others", "", "git rev-parse -q --verify proq/g-2"],
    ]);
}

const RUN: &str = "git proq spawn --in-place -n i -- true";
const ABOUT_RUNS_IN_THE_MAIN_CHECKOUT: &[Row] = &[
    ["git checkout -q --detach", "git proq spawn --in-place -n i -- true", "list branches", "main", ""],
    [
        "git config core.editor 'sed -i 1iWork'; echo y > y; git add y",
        RUN,
        "commit them",
        "",
        "git proq spawn --in-place -n i -- true",
    ],
    ["echo y > y; git add y", RUN, "or unstage them", "", "git proq spawn --in-place -n i -- true"],
    ["lane a; git proq preview -q a", RUN, "leave the preview", "", "git proq spawn --in-place -n i -- true"],
    ["conflict c; git merge -q proq/c || true", RUN, "see how to", "merg", ""],
];

#[test]
fn hints_about_runs_in_the_main_checkout_work() {
    play(ABOUT_RUNS_IN_THE_MAIN_CHECKOUT);
}

const ABOUT_READ_ONLY_RUNS: &[Row] = &[
    [
        "program claude true",
        "git proq spawn --mode answer claude 'why'",
        "read the result after that",
        "why",
        "",
    ],
    ["program claude true", "git proq spawn --mode answer claude 'why'", "wait for it", "why", ""],
    ["program claude true", "git proq spawn --in-place claude 'why'", "find its operation", "operations", ""],
    ["program claude true", "git proq spawn --mode answer -n x -- true", "for example", "lane", ""],
    ["", "git proq supervise", "give the tools to an agent yourself", "MCP", ""],
    [
        "echo > p; git add p; git commit -qm p; program claude 'sed -i s/a/b/ a.txt; cat $ROOT/done'; \
             echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"session_id\":\"s\"}' > ../done",
        "git proq spawn --in-place -F p -- cat",
        "for example",
        "lane 'fix-typos' works in the main checkout",
        "git proq wait fix-typos; test \"$(git show HEAD:a.txt)\" = b; git diff --exit-code HEAD",
    ],
];

#[test]
fn hints_about_read_only_runs_work() {
    play(ABOUT_READ_ONLY_RUNS);
}

const ABOUT_OPENING_AND_REPAIRING_LANES: &[Row] = &[
    ["lane a; rm -rf .proq-worktrees/a", "git proq open a --path", "see how to repair it", "a", ""],
    [
        "lane a",
        "EDITOR= VISUAL= git proq open a --editor",
        "set one",
        "",
        "test \"$(git config proq.open.editor)\" = vi",
    ],
    [
        "lane a; git config proq.open.editor nosuchprogram",
        "git proq open a --editor",
        "set another one",
        "",
        "test \"$(git config --global proq.open.editor)\" = vi",
    ],
    ["", "git proq setup", "let man find the pages", "", ""],
    ["", "PROQ_MERGE_STRATEGY=fast git proq spawn --empty -n a", "use the default", "", ""],
];

#[test]
fn hints_about_opening_and_repairing_lanes_work() {
    play(ABOUT_OPENING_AND_REPAIRING_LANES);
}

#[test]
fn hints_about_past_attempts_and_answers_work() {
    play(&[
        [
            "git proq spawn -q --wait -n g --count 2 -- true; git proq discard g-1",
            "git proq spawn -n g --count 2 -- true",
            "compare its attempts",
            "g-2",
            "",
        ],
        [
            "says ok; git proq spawn -q --mode answer -n why --wait claude 'why'",
            "git proq show why",
            "delete it once you have read it",
            "discarded",
            "! git proq show why && git proq show why@1 | grep -q ok",
        ],
    ]);
}
