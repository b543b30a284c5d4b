//! Owns the figures of the recorded streams, worked out by hand: the model that was recorded counts 1000 tokens sent and 100
//! more at each step, 200 of a cache on top, and 50 generated of which 10 are thought.

use super::replay;
use crate::agent::stream::{Class, Tokens};

fn tokens(input: u64, cached_input: u64, output: u64, reasoning: u64) -> Tokens {
    Tokens { input, cached_input, cache_write: 0, output, reasoning }
}

/// Agent, scenario, class, tokens, cost in billionths of a dollar, model turns, tool calls, refusals.
type Row = (&'static str, &'static str, Class, Tokens, Option<u64>, Option<u64>, u64, usize);

fn rows() -> Vec<Row> {
    let none = Tokens::default();
    // 1000 + 1100 + 1200 + 1300 + 1400 in five steps; then a run of its own with two.
    let five = tokens(6000, 1000, 250, 0);
    let two = tokens(2100, 400, 100, 0);
    let three = tokens(3100, 600, 150, 0);
    vec![
        ("claude", "ok", Class::Done, five, Some(29_200_000), Some(5), 4, 0),
        ("claude", "resume", Class::Done, two, Some(10_480_000), Some(2), 1, 0),
        ("claude", "denied", Class::Done, two, Some(10_480_000), Some(2), 1, 1),
        ("claude", "error-401", Class::Auth, none, Some(0), Some(1), 0, 0),
        ("claude", "max-turns", Class::MaxTurns, tokens(1000, 200, 50, 0), Some(5_040_000), Some(2), 1, 0),
        ("claude", "stop-gate", Class::Done, three, Some(15_520_000), Some(3), 1, 0),
        ("claude", "bad-session", Class::Failed, none, Some(0), Some(0), 0, 0),
        ("codex", "ok", Class::Done, tokens(6000, 1000, 250, 50), None, None, 4, 0),
        ("codex", "resume", Class::Done, tokens(2100, 400, 100, 20), None, None, 1, 0),
        ("codex", "git-commit-blocked", Class::Done, tokens(3300, 600, 150, 30), None, None, 1, 0),
        ("codex", "mcp-needs-approval", Class::Done, tokens(2100, 400, 100, 20), None, None, 1, 1),
        ("codex", "error-401", Class::Auth, none, None, None, 0, 0),
        ("codex", "stream-cut", Class::Failed, none, None, None, 0, 0),
        ("codex", "stop-gate", Class::Done, tokens(3100, 600, 150, 30), None, None, 1, 0),
        ("opencode", "ok", Class::Done, tokens(6000, 1000, 250, 50), Some(22_050_000), Some(5), 4, 0),
        ("opencode", "resume", Class::Done, tokens(2100, 400, 100, 20), Some(7_920_000), Some(2), 1, 0),
        ("opencode", "denied", Class::Refused, tokens(1000, 200, 50, 10), Some(3_810_000), Some(1), 1, 1),
        ("opencode", "blocked", Class::Done, tokens(2100, 400, 100, 20), Some(7_920_000), Some(2), 1, 0),
        ("opencode", "error-401", Class::Auth, none, None, None, 0, 0),
        ("opencode", "stream-cut-loops", Class::Failed, none, None, Some(2), 0, 0),
    ]
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
        assert_eq!(found, (class, tokens, cost, turns, tools, refused), "{agent} {scenario}");
        assert!(summary.cost.is_none_or(|c| !c.estimated), "{agent} {scenario}");
    }
}

#[test]
fn a_resumed_session_is_counted_once() {
    for (agent, tokens) in [("claude", 8100), ("codex", 8100), ("opencode", 8100)] {
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
