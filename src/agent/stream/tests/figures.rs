//! Owns the figures of the recorded streams, worked out by hand: the model that was recorded counts 1000 tokens sent and 100
//! more at each step, 200 of a cache on top, and 50 generated of which 10 are thought.

use super::{RECORDED, endings, replay};
use crate::agent::stream::{Class, Tokens};

const fn tokens(input: u64, cached_input: u64, output: u64, reasoning: u64) -> Tokens {
    Tokens { input, cached_input, cache_write: 0, output, reasoning }
}

/// Agent, scenario, class, tokens, cost in billionths of a dollar, model turns, tool calls, refusals.
type Row = (&'static str, &'static str, Class, Tokens, Option<u64>, Option<u64>, u64, usize);

const NONE: Tokens = tokens(0, 0, 0, 0);
/// 1000 + 1100 + 1200 + 1300 + 1400 in five steps.
const FIVE: Tokens = tokens(6000, 1000, 250, 0);
const TWO: Tokens = tokens(2100, 400, 100, 0);
/// Two steps after one that begins anew.
const THREE: Tokens = tokens(3100, 600, 150, 0);

const FIRST: &[Row] = &[
    ("claude", "ok", Class::Done, FIVE, Some(29_200_000), Some(5), 4, 0),
    ("claude", "resume", Class::Done, TWO, Some(10_480_000), Some(2), 1, 0),
    ("claude", "denied", Class::Done, TWO, Some(10_480_000), Some(2), 1, 1),
    ("claude", "error-401", Class::Auth, NONE, Some(0), Some(1), 0, 0),
    ("claude", "max-turns", Class::MaxTurns, tokens(1000, 200, 50, 0), Some(5_040_000), Some(2), 1, 0),
    ("claude", "stop-gate", Class::Done, THREE, Some(15_520_000), Some(3), 1, 0),
    ("claude", "bad-session", Class::Failed, NONE, Some(0), Some(0), 0, 0),
    ("claude", "max-budget", Class::Budget, tokens(2100, 400, 100, 0), Some(10_480_000), Some(2), 2, 0),
    ("claude", "error-503", Class::Unavailable, NONE, Some(0), Some(1), 0, 0),
    ("claude", "error-529", Class::RateLimited, NONE, Some(0), Some(1), 0, 0),
    ("claude", "refused", Class::Unavailable, NONE, Some(0), Some(1), 0, 0),
    ("codex", "ok", Class::Done, tokens(6000, 1000, 250, 50), None, None, 4, 0),
    ("codex", "resume", Class::Done, tokens(2100, 400, 100, 20), None, None, 1, 0),
    ("codex", "git-commit-blocked", Class::Done, tokens(3300, 600, 150, 30), None, None, 1, 0),
    ("codex", "mcp-needs-approval", Class::Done, tokens(2100, 400, 100, 20), None, None, 1, 1),
    ("codex", "error-401", Class::Auth, NONE, None, None, 0, 0),
    ("codex", "stream-cut", Class::Unavailable, NONE, None, None, 0, 0),
    ("codex", "stop-gate", Class::Done, tokens(3100, 600, 150, 30), None, None, 1, 0),
    ("opencode", "ok", Class::Done, tokens(6000, 1000, 250, 50), Some(22_050_000), Some(5), 4, 0),
    ("opencode", "resume", Class::Done, tokens(2100, 400, 100, 20), Some(7_920_000), Some(2), 1, 0),
    ("opencode", "denied", Class::Refused, tokens(1000, 200, 50, 10), Some(3_810_000), Some(1), 1, 1),
    ("opencode", "blocked", Class::Done, tokens(2100, 400, 100, 20), Some(7_920_000), Some(2), 1, 0),
    ("opencode", "error-401", Class::Auth, NONE, None, None, 0, 0),
    ("opencode", "stream-cut-loops", Class::Unavailable, NONE, None, Some(2), 0, 0),
];

const OTHERS: &[Row] = &[
    ("gemini", "ok", Class::Done, FIVE, None, None, 4, 0),
    ("gemini", "resume", Class::Done, TWO, None, None, 1, 0),
    ("gemini", "auto-edit", Class::Done, TWO, None, None, 1, 0),
    ("gemini", "error-401", Class::Auth, NONE, None, None, 0, 0),
    ("gemini", "stream-cut", Class::Unavailable, NONE, None, None, 0, 0),
    ("gemini", "bad-session", Class::Failed, NONE, None, None, 0, 0),
    ("qwen", "ok", Class::Done, tokens(3300, 600, 150, 0), None, Some(3), 2, 0),
    // The session's counter says two requests more than before, of which the stream shows one.
    ("qwen", "resume", Class::Done, tokens(2000, 400, 100, 0), None, Some(1), 0, 0),
    ("qwen", "error-401", Class::Auth, NONE, None, Some(1), 0, 0),
    // Some lines of this one are cut out.
    ("copilot", "ok", Class::Done, NONE, None, Some(2), 2, 0),
    ("copilot", "mcp", Class::Done, NONE, None, Some(2), 1, 0),
    ("copilot", "resume", Class::Done, NONE, None, Some(1), 0, 0),
    ("copilot", "denied", Class::Done, NONE, None, Some(2), 1, 1),
    ("copilot", "error-401", Class::Auth, NONE, None, Some(1), 0, 0),
    ("pi-0.73", "ok", Class::Done, tokens(3300, 600, 150, 0), Some(12_330_000), Some(3), 2, 0),
    ("pi-0.73", "resume", Class::Done, tokens(1000, 200, 50, 0), Some(3_810_000), Some(1), 0, 0),
    ("pi-0.73", "error-401", Class::Auth, NONE, None, Some(1), 0, 0),
    ("pi-0.87", "ok", Class::Done, tokens(3300, 600, 150, 30), Some(12_330_000), Some(3), 2, 0),
    ("pi-0.87", "resume", Class::Done, tokens(1000, 200, 50, 10), Some(3_810_000), Some(1), 0, 0),
    ("pi-0.87", "blocked", Class::Done, tokens(2100, 400, 100, 20), Some(7_920_000), Some(2), 1, 0),
    ("pi-0.87", "error-401", Class::Auth, NONE, None, Some(1), 0, 0),
    // It rounds, and counts what was cached as sent.
    ("aider", "ok", Class::Done, tokens(1200, 0, 50, 0), None, Some(1), 0, 0),
    ("aider", "error-401", Class::Auth, NONE, None, None, 0, 0),
    ("acp", "claude", Class::Done, tokens(3300, 600, 150, 0), Some(21_360_000), None, 2, 0),
    ("acp", "codex", Class::Done, tokens(3300, 600, 150, 30), None, None, 2, 0),
    ("acp", "copilot", Class::Done, tokens(3300, 600, 150, 30), None, None, 2, 0),
    ("acp", "qwen", Class::Done, tokens(3300, 600, 150, 30), None, None, 2, 0),
    // It does not say what was cached.
    ("acp", "gemini", Class::Done, tokens(3900, 0, 150, 0), None, None, 2, 0),
    // It counts the last of three steps only.
    ("acp", "opencode", Class::Done, tokens(1200, 200, 50, 10), Some(12_330_000), None, 2, 0),
];

fn rows() -> impl Iterator<Item = &'static Row> {
    FIRST.iter().chain(OTHERS)
}

#[test]
fn no_recorded_run_is_without_its_figures() {
    let mut told: Vec<_> = rows().map(|row| (row.0.to_owned(), row.1.to_owned())).collect();
    let mut there: Vec<_> = RECORDED
        .iter()
        .flat_map(|(agent, _)| {
            endings(agent).into_iter().map(|(scenario, _)| ((*agent).to_owned(), scenario))
        })
        .collect();
    told.sort();
    there.sort();
    assert_eq!(told, there);
}

#[test]
fn every_figure_is_the_one_that_was_worked_out() {
    for (agent, scenario, class, tokens, cost, turns, tools, refused) in rows() {
        let (_, summary) = replay(agent, scenario);
        let found = (
            summary.class,
            summary.tokens,
            summary.cost.map(|c| c.nanos),
            summary.turns,
            summary.tool_calls,
            summary.refused.len(),
        );
        assert_eq!(found, (*class, *tokens, *cost, *turns, *tools, *refused), "{agent} {scenario}");
        assert!(summary.cost.is_none_or(|c| !c.estimated), "{agent} {scenario}");
    }
}

#[test]
fn a_resumed_session_is_counted_once() {
    let agents = [
        ("claude", 8100),
        ("codex", 8100),
        ("opencode", 8100),
        ("gemini", 8100),
        ("qwen", 5300),
        ("pi-0.87", 4300),
    ];
    for (agent, tokens) in agents {
        let (first, second) = (replay(agent, "ok").1, replay(agent, "resume").1);
        assert_eq!(first.session, second.session, "{agent}");
        assert_eq!(second.totals.tokens.input, tokens, "{agent}");
        assert_eq!(first.tokens.plus(second.tokens), second.totals.tokens, "{agent}");
        let dollars = |s: &crate::agent::stream::Summary| s.cost.map(|c| c.nanos);
        assert_eq!(
            dollars(&first).zip(dollars(&second)).map(|(a, b)| a + b),
            second.totals.cost_nanos,
            "{agent}"
        );
    }
}
