//! Human-readable text for the usage of runs: tool calls, tokens, cost and context fill.

use proq_base::usage::{Cost, Tokens};
use proq_lib::types::{RunRecord, RunSummary};

use super::ui;
use super::ui::short_count;
/// Returns phrases for the total usage of a lane's runs; empty if there are fewer than two.
pub(crate) fn total_usage_phrases(runs: &[RunRecord]) -> Vec<String> {
    let total =
        runs.iter().map(|run| run.summary.clone()).reduce(|earlier, account| account.plus_usage_of(&earlier));
    let total = total.filter(|_| runs.len() > 1).unwrap_or_default();
    usage_phrases(&RunSummary {
        last_tool: None,
        last_command: None,
        context_percent: None,
        denied_commands: Vec::new(),
        ..total
    })
}

/// Returns one phrase for each known usage figure.
pub(crate) fn usage_phrases(summary: &RunSummary) -> Vec<String> {
    let mut out = Vec::new();
    if summary.tool_calls > 0 {
        let last = match (&summary.last_command, &summary.last_tool) {
            (Some(command), _) => format!(", last `{command}`"),
            (None, Some(tool)) => format!(", last {tool}"),
            (None, None) => String::new(),
        };
        out.push(format!("{}{last}", tool_calls_text(summary)));
    }
    out.extend((summary.denied > 0).then(|| denied_text(summary)));
    out.extend(summary.tokens.map(tokens_text));
    out.extend(summary.cost.map(cost_text));
    out.extend(summary.context_percent.map(|percent| format!("context {percent} % full")));
    out
}

fn tool_calls_text(summary: &RunSummary) -> String {
    match summary.tool_calls {
        1 => "1 tool call".to_owned(),
        n => format!("{n} tool calls"),
    }
}

/// Formats how many tool calls were denied, with the first commands of them.
fn denied_text(summary: &RunSummary) -> String {
    let calls = ui::pluralize(summary.denied, "denied call");
    match summary.denied_commands.as_slice() {
        [] => calls,
        commands => format!("{calls}: {}", commands.join(", ")),
    }
}

/// Formats the tokens in and out.
pub(crate) fn tokens_text(tokens: Tokens) -> String {
    let cached = match tokens.cached_input + tokens.cache_write {
        0 => String::new(),
        _ => format!(" ({} cached)", short_count(tokens.cached_input)),
    };
    format!("{} tokens in{cached}, {} out", short_count(tokens.total_input()), short_count(tokens.output))
}

/// Formats a cost in US dollars: to the cent, or less than a cent to its hundredth. An estimated cost gets a
/// leading `~`.
pub(crate) fn cost_text(cost: Cost) -> String {
    let prefix = if cost.estimated { "~" } else { "" };
    let nanos = cost.amount.nanos();
    let rounded = |unit: u64| nanos.saturating_add(unit / 2) / unit;
    match rounded(10_000_000) {
        cents if nanos >= 10_000_000 => format!("{prefix}${}.{:02}", cents / 100, cents % 100),
        _ if nanos == 0 => format!("{prefix}$0.00"),
        _ => format!("{prefix}$0.{:04}", rounded(100_000)),
    }
}

#[cfg(test)]
mod tests {
    use proq_base::money::NanoDollars;

    use super::*;

    #[test]
    fn rounds_cost_to_cents() {
        let cost = |nanos, estimated| cost_text(Cost { amount: NanoDollars::new(nanos), estimated });
        assert_eq!(cost(12_500_000, false), "$0.01");
        assert_eq!(cost(49_999, false), "$0.0000");
        assert_eq!(cost(50_000, true), "~$0.0001");
        assert_eq!(cost(0, false), "$0.00");
        assert_eq!(cost(425_000_000, false), "$0.43");
        assert_eq!(cost(3_999_950_000, false), "$4.00");
    }

    #[test]
    fn counts_cached_tokens_as_input() {
        let used = Tokens { input: 100, cached_input: 20, cache_write: 5, output: 50, reasoning: 7 };
        assert_eq!(tokens_text(used), "125 tokens in (20 cached), 50 out");
        assert_eq!(tokens_text(Tokens { input: 1, ..Tokens::default() }), "1 tokens in, 0 out");
        assert_eq!(tokens_text(Tokens { input: 97_120, ..used }), "97k tokens in (20 cached), 50 out");
    }
}
