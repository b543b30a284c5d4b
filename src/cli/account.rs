//! Owns how what an agent used looks to a person: tools, tokens, money, how full its mind is.

use std::path::Path;

use crate::agent;
use crate::store::Record;
use crate::store::records::{Account, Cost, RunRecord, Tokens};

/// What a run has said of itself: while it lasts, as far as it has got.
pub(super) fn of(dir: &Path, run: &RunRecord) -> Account {
    if run.ended.is_some() {
        return run.account.clone();
    }
    let live = agent::shown_live(&dir.join(format!("runs/{}.live.json", run.attempt)));
    Account { session: live.session.clone().or_else(|| run.account.session.clone()), ..live }
}

/// What all runs of a lane have used, and what the last one said of itself, by the folder of the lane's records.
pub(super) fn of_lane(dir: &Path, last: u32) -> Option<Account> {
    let found = |attempt| RunRecord::find(&dir.join(format!("runs/{attempt}.toml"))).ok().flatten();
    (1..=last).filter_map(found).map(|run| of(dir, &run)).reduce(|earlier, account| account.with(&earlier))
}

/// What several runs have used together; nothing to say where it was one.
pub(super) fn in_all(runs: &[RunRecord]) -> Vec<String> {
    let all = runs.iter().map(|run| run.account.clone()).reduce(|earlier, account| account.with(&earlier));
    let all = all.filter(|_| runs.len() > 1).unwrap_or_default();
    phrases(&Account { last_tool: None, context: None, ..all })
}

/// What there is to say, a phrase each.
pub(super) fn phrases(account: &Account) -> Vec<String> {
    let mut out = Vec::new();
    if account.tool_calls > 0 {
        let last = account.last_tool.as_ref().map(|tool| format!(", last {tool}")).unwrap_or_default();
        out.push(format!("{}{last}", tools(account)));
    }
    out.extend(account.tokens.map(tokens));
    out.extend(account.cost.map(money));
    out.extend(account.context.map(|percent| format!("context {percent} % full")));
    out
}

fn tools(account: &Account) -> String {
    match account.tool_calls {
        1 => "1 tool call".to_owned(),
        n => format!("{n} tool calls"),
    }
}

/// Tokens in and out.
pub(super) fn tokens(tokens: Tokens) -> String {
    let cached = match tokens.cached_input + tokens.cache_write {
        0 => String::new(),
        _ => format!(" ({} of them cached)", tokens.cached_input),
    };
    format!("{} tokens in{cached}, {} out", tokens.sent(), tokens.output)
}

/// Money, to the hundredth of a cent; where it was reckoned, with a `~`.
pub(super) fn money(cost: Cost) -> String {
    let about = if cost.estimated { "~" } else { "" };
    // To the nearest 1e-4 USD.
    let parts = cost.nanos.saturating_add(50_000) / 100_000;
    format!("{about}${}.{:04}", parts / 10_000, parts % 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_rounded_to_the_hundredth_of_a_cent() {
        let cost = |nanos, estimated| money(Cost { nanos, estimated });
        assert_eq!(cost(12_500_000, false), "$0.0125");
        assert_eq!(cost(49_999, false), "$0.0000");
        assert_eq!(cost(50_000, true), "~$0.0001");
        assert_eq!(cost(3_999_950_000, false), "$4.0000");
    }

    #[test]
    fn all_that_was_sent_counts() {
        let used = Tokens { input: 100, cached_input: 20, cache_write: 5, output: 50, reasoning: 7 };
        assert_eq!(tokens(used), "125 tokens in (20 of them cached), 50 out");
        assert_eq!(tokens(Tokens { input: 1, ..Tokens::default() }), "1 tokens in, 0 out");
    }
}
