//! Hints about drafts: plans that an agent makes.

use crate::scenes::{Row, play};

const ABOUT_DRAFTS: &[Row] = &[
    [
        "says '{\\\"summary\\\": \\\"s\\\", \\\"task\\\": [{\\\"id\\\": \\\"a\\\", \
             \\\"title\\\": \\\"t\\\", \\\"prompt\\\": \\\"p\\\"}]}'; ",
        "git proq plan --ai 'pay by card'",
        "revise it",
        "t",
        "git proq plan --drafts",
    ],
    [
        "says '{\\\"summary\\\": \\\"s\\\", \\\"task\\\": [{\\\"id\\\": \\\"a\\\", \
             \\\"title\\\": \\\"t\\\", \\\"prompt\\\": \\\"p\\\"}]}'; ",
        "git proq plan --ai 'pay by card'",
        "save it",
        "",
        "git proq plan plan.toml",
    ],
    [
        "says '{\\\"summary\\\": \\\"s\\\", \\\"task\\\": [{\\\"id\\\": \\\"a\\\", \
             \\\"title\\\": \\\"t\\\", \\\"prompt\\\": \\\"p\\\"}]}'; git proq plan --ai pay; \
             git proq plan --ai fly",
        "git proq plan --approve",
        "the latest one",
        "plan-fly",
        "",
    ],
    ["says hello", "git proq plan --ai pay", "read its answer", "hello", ""],
    ["says hello; git proq plan --ai pay || true", "git proq plan --approve", "show the answer", "hello", ""],
    ["says hello; plan", "git proq deps --agent claude plan.toml", "read its log", "hello", ""],
];

#[test]
fn hints_about_drafts_work() {
    play(ABOUT_DRAFTS);
}
