//! Hints about runs without a branch: answers, and runs in the main checkout.

use crate::scenes::{Row, play};

const ABOUT_ANSWERS: &[Row] = &[
    [
        "says 42; git proq spawn -q --wait --mode answer -n q claude why",
        "git proq merge q",
        "read it",
        "42",
        "",
    ],
    [
        "says 42; git proq spawn -q --wait --mode answer -n q claude why",
        "git proq",
        "read the answer of",
        "42",
        "",
    ],
    [
        "says 42; git proq spawn -q --wait --mode answer -n q claude why",
        "git proq redispatch q",
        "read it after that",
        "why",
        "git proq wait q",
    ],
    [
        "program robot true",
        "git proq spawn --mode answer robot x",
        "show the permissions of each agent",
        "claude",
        "",
    ],
];

#[test]
fn hints_about_answers_work() {
    play(ABOUT_ANSWERS);
}

const ABOUT_RESULTS_IN_THE_MAIN_CHECKOUT: &[Row] = &[
    [
        "says 42; git proq spawn -q --wait --in-place -n q claude why",
        "git proq merge q",
        "show its result",
        "why",
        "",
    ],
    [
        "says 42; git proq spawn -q --wait --in-place -n q claude why; git switch -qc z",
        "git proq run q claude more",
        "switch to it",
        "",
        "test $(git symbolic-ref --short HEAD) = main",
    ],
    [
        "says 42; git proq spawn -q --wait -n q claude why",
        "git proq send q",
        "send one",
        "q",
        "git proq wait q || true",
    ],
];

#[test]
fn hints_about_results_in_the_main_checkout_work() {
    play(ABOUT_RESULTS_IN_THE_MAIN_CHECKOUT);
}
