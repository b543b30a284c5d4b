//! Expected figures of the recorded streams, calculated by hand. The recorded model counts 1000 sent tokens
//! for the first request and 100 more for each further one. It also counts 200 cached tokens and 50 generated
//! tokens per request, 10 of them reasoning.

use proq_base::usage::Tokens;

use super::{RECORDED_AGENTS, recorded_exit_codes, replay};
use crate::base::run_end::ExitClass;

const fn tokens(input: u64, cached_input: u64, output: u64, reasoning: u64) -> Tokens {
    Tokens { input, cached_input, cache_write: 0, output, reasoning }
}

/// Expected summary of one recorded run: agent, scenario, class, tokens, cost in billionths of a dollar,
/// model requests, tool calls and refusals.
type ExpectedSummary = (&'static str, &'static str, ExitClass, Tokens, Option<u64>, Option<u64>, u64, usize);

const NO_TOKENS: Tokens = tokens(0, 0, 0, 0);
/// Tokens of five model requests: 1000 + 1100 + 1200 + 1300 + 1400 sent.
const FIVE_REQUESTS: Tokens = tokens(6000, 1000, 250, 0);
const TWO_REQUESTS: Tokens = tokens(2100, 400, 100, 0);
/// Tokens of one model request, and of two further ones whose counts start at 1000 again.
const THREE_REQUESTS: Tokens = tokens(3100, 600, 150, 0);

const MAIN_AGENTS: &[ExpectedSummary] = &[
    ("claude", "ok", ExitClass::Done, FIVE_REQUESTS, Some(29_200_000), Some(5), 4, 0),
    ("claude", "resume", ExitClass::Done, TWO_REQUESTS, Some(10_480_000), Some(2), 1, 0),
    ("claude", "denied", ExitClass::Done, TWO_REQUESTS, Some(10_480_000), Some(2), 1, 1),
    ("claude", "error-401", ExitClass::Auth, NO_TOKENS, Some(0), Some(1), 0, 0),
    ("claude", "max-turns", ExitClass::MaxTurns, tokens(1000, 200, 50, 0), Some(5_040_000), Some(2), 1, 0),
    ("claude", "stop-gate", ExitClass::Done, THREE_REQUESTS, Some(15_520_000), Some(3), 1, 0),
    ("claude", "bad-session", ExitClass::Failed, NO_TOKENS, Some(0), Some(0), 0, 0),
    ("claude", "max-budget", ExitClass::Budget, tokens(2100, 400, 100, 0), Some(10_480_000), Some(2), 2, 0),
    ("claude", "error-503", ExitClass::Unavailable, NO_TOKENS, Some(0), Some(1), 0, 0),
    ("claude", "error-529", ExitClass::RateLimited, NO_TOKENS, Some(0), Some(1), 0, 0),
    ("claude", "refused", ExitClass::Unavailable, NO_TOKENS, Some(0), Some(1), 0, 0),
    ("codex", "ok", ExitClass::Done, tokens(6000, 1000, 250, 50), None, None, 4, 0),
    ("codex", "resume", ExitClass::Done, tokens(2100, 400, 100, 20), None, None, 1, 0),
    ("codex", "git-commit-blocked", ExitClass::Done, tokens(3300, 600, 150, 30), None, None, 1, 0),
    ("codex", "mcp-needs-approval", ExitClass::Done, tokens(2100, 400, 100, 20), None, None, 1, 1),
    ("codex", "error-401", ExitClass::Auth, NO_TOKENS, None, None, 0, 0),
    ("codex", "stream-cut", ExitClass::Unavailable, NO_TOKENS, None, None, 0, 0),
    ("codex", "stop-gate", ExitClass::Done, tokens(3100, 600, 150, 30), None, None, 1, 0),
    ("opencode", "ok", ExitClass::Done, tokens(6000, 1000, 250, 50), Some(22_050_000), Some(5), 4, 0),
    ("opencode", "resume", ExitClass::Done, tokens(2100, 400, 100, 20), Some(7_920_000), Some(2), 1, 0),
    ("opencode", "denied", ExitClass::Refused, tokens(1000, 200, 50, 10), Some(3_810_000), Some(1), 1, 1),
    ("opencode", "blocked", ExitClass::Done, tokens(2100, 400, 100, 20), Some(7_920_000), Some(2), 1, 0),
    ("opencode", "error-401", ExitClass::Auth, NO_TOKENS, None, None, 0, 0),
    ("opencode", "stream-cut-loops", ExitClass::Unavailable, NO_TOKENS, None, Some(2), 0, 0),
];

const OTHER_AGENTS: &[ExpectedSummary] = &[
    ("gemini", "ok", ExitClass::Done, FIVE_REQUESTS, None, None, 4, 0),
    ("gemini", "resume", ExitClass::Done, TWO_REQUESTS, None, None, 1, 0),
    ("gemini", "auto-edit", ExitClass::Done, TWO_REQUESTS, None, None, 1, 0),
    ("gemini", "error-401", ExitClass::Auth, NO_TOKENS, None, None, 0, 0),
    ("gemini", "stream-cut", ExitClass::Unavailable, NO_TOKENS, None, None, 0, 0),
    ("gemini", "bad-session", ExitClass::Failed, NO_TOKENS, None, None, 0, 0),
    ("qwen", "ok", ExitClass::Done, tokens(3300, 600, 150, 0), None, Some(3), 2, 0),
    // The session counter has risen by two requests, of which the stream shows one.
    ("qwen", "resume", ExitClass::Done, tokens(2000, 400, 100, 0), None, Some(1), 0, 0),
    ("qwen", "error-401", ExitClass::Auth, NO_TOKENS, None, Some(1), 0, 0),
    // Some lines of this recording were removed.
    ("copilot", "ok", ExitClass::Done, NO_TOKENS, None, Some(2), 2, 0),
    ("copilot", "mcp", ExitClass::Done, NO_TOKENS, None, Some(2), 1, 0),
    ("copilot", "resume", ExitClass::Done, NO_TOKENS, None, Some(1), 0, 0),
    ("copilot", "denied", ExitClass::Done, NO_TOKENS, None, Some(2), 1, 1),
    ("copilot", "error-401", ExitClass::Auth, NO_TOKENS, None, Some(1), 0, 0),
    ("pi-0.73", "ok", ExitClass::Done, tokens(3300, 600, 150, 0), Some(12_330_000), Some(3), 2, 0),
    ("pi-0.73", "resume", ExitClass::Done, tokens(1000, 200, 50, 0), Some(3_810_000), Some(1), 0, 0),
    ("pi-0.73", "error-401", ExitClass::Auth, NO_TOKENS, None, Some(1), 0, 0),
    ("pi-0.87", "ok", ExitClass::Done, tokens(3300, 600, 150, 30), Some(12_330_000), Some(3), 2, 0),
    ("pi-0.87", "resume", ExitClass::Done, tokens(1000, 200, 50, 10), Some(3_810_000), Some(1), 0, 0),
    ("pi-0.87", "blocked", ExitClass::Done, tokens(2100, 400, 100, 20), Some(7_920_000), Some(2), 1, 0),
    ("pi-0.87", "error-401", ExitClass::Auth, NO_TOKENS, None, Some(1), 0, 0),
    // Aider rounds its figures and counts cached tokens as sent.
    ("aider", "ok", ExitClass::Done, tokens(1200, 0, 50, 0), None, Some(1), 0, 0),
    ("aider", "error-401", ExitClass::Auth, NO_TOKENS, None, None, 0, 0),
    ("acp", "claude", ExitClass::Done, tokens(3300, 600, 150, 0), Some(21_360_000), None, 2, 0),
    ("acp", "codex", ExitClass::Done, tokens(3300, 600, 150, 30), None, None, 2, 0),
    ("acp", "copilot", ExitClass::Done, tokens(3300, 600, 150, 30), None, None, 2, 0),
    ("acp", "qwen", ExitClass::Done, tokens(3300, 600, 150, 30), None, None, 2, 0),
    // Gemini does not report cached tokens over the protocol.
    ("acp", "gemini", ExitClass::Done, tokens(3900, 0, 150, 0), None, None, 2, 0),
    // opencode counts only the last of three steps.
    ("acp", "opencode", ExitClass::Done, tokens(1200, 200, 50, 10), Some(12_330_000), None, 2, 0),
];

fn expected_summaries() -> impl Iterator<Item = &'static ExpectedSummary> {
    MAIN_AGENTS.iter().chain(OTHER_AGENTS)
}

#[test]
fn every_recorded_run_has_expected_figures() {
    let mut expected: Vec<_> = expected_summaries().map(|row| (row.0.to_owned(), row.1.to_owned())).collect();
    let mut recorded: Vec<_> = RECORDED_AGENTS
        .iter()
        .flat_map(|(agent, _)| {
            recorded_exit_codes(agent).into_iter().map(|(scenario, _)| ((*agent).to_owned(), scenario))
        })
        .collect();
    expected.sort();
    recorded.sort();
    assert_eq!(expected, recorded);
}

#[test]
fn recorded_runs_have_expected_figures() {
    for (agent, scenario, class, tokens, cost, turns, tools, refused) in expected_summaries() {
        let (_, summary) = replay(agent, scenario);
        let actual = (
            summary.class,
            summary.tokens,
            summary.cost.map(|c| c.amount.nanos()),
            summary.turns,
            summary.tool_calls,
            summary.refusals.len(),
        );
        assert_eq!(actual, (*class, *tokens, *cost, *turns, *tools, *refused), "{agent} {scenario}");
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
        assert_eq!(second.session_totals.tokens.input, tokens, "{agent}");
        assert_eq!(first.tokens.plus(second.tokens), second.session_totals.tokens, "{agent}");
        let run_cost = |s: &crate::summary::Summary| s.cost.map(|c| c.amount);
        assert_eq!(
            run_cost(&first).zip(run_cost(&second)).map(|(a, b)| a.saturating_add(b)),
            second.session_totals.cost,
            "{agent}"
        );
    }
}
