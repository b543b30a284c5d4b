//! Tests of prices and costs: what is parsed, what is refused, and that no billionth of a dollar is lost.

use proptest::prelude::*;
use proq_base::money::NanoDollars;
use proq_base::usage::{Cost, SessionTotals, Tokens};

use super::{exit, parse_stream, recorded_stream};
use crate::base::event::StreamEvent;
use crate::base::price::{Price, Prices};
use crate::base::run_end::Exit;
use crate::reader::{Dialect, OutputReader};

fn price_table(entries: &[(&str, &str)]) -> Prices {
    entries.iter().map(|(model, price)| ((*model).to_owned(), price.parse::<Price>().unwrap())).collect()
}

#[test]
fn estimates_cost_from_token_prices() {
    let table = price_table(&[("gpt-5*", "input=1.25, cached=0.125, output=10")]);
    let tokens = Tokens { input: 6000, cached_input: 1000, cache_write: 0, output: 250, reasoning: 50 };
    // 6000 × 1.25 + 1000 × 0.125 + 250 × 10, in millionths of a dollar.
    let cost = Cost { amount: NanoDollars::new(10_125_000), estimated: true };
    assert_eq!(table.estimate_cost("gpt-5-codex", &tokens), Some(cost));
    assert_eq!(table.estimate_cost("openai/gpt-5-codex", &tokens), Some(cost));
    assert_eq!(table.estimate_cost("claude-opus", &tokens), None);
    assert_eq!(Prices::default().estimate_cost("gpt-5", &tokens), None);
}

#[test]
fn unpriced_cache_tokens_cost_as_input() {
    let price: Price = "{ input = 3, output = 15 }".parse().unwrap();
    assert_eq!(price.cost(&Tokens { cached_input: 1000, ..Tokens::default() }).nanos(), 3_000_000);
    assert_eq!(price.cost(&Tokens { cache_write: 1000, ..Tokens::default() }).nanos(), 3_000_000);
    let all: Price = "input=3, cached=0.3, cache_write=3.75, output=15".parse().unwrap();
    assert_eq!(all.cost(&Tokens { cache_write: 1000, ..Tokens::default() }).nanos(), 3_750_000);
    let max_tokens = Tokens {
        input: u64::MAX,
        cached_input: u64::MAX,
        cache_write: u64::MAX,
        output: u64::MAX,
        reasoning: 0,
    };
    assert_eq!(all.cost(&max_tokens).nanos(), u64::MAX);
}

#[test]
fn parses_price_from_config_table() {
    #[derive(serde::Deserialize)]
    struct File {
        prices: std::collections::BTreeMap<String, Price>,
    }
    let file: File =
        toml::from_str("[prices]\n\"gpt-5*\" = { input = 1.25, cached = 0.125, output = 10 }").unwrap();
    assert_eq!(file.prices["gpt-5*"], "input=1.25, cached=0.125, output=10".parse().unwrap());
}

#[test]
fn refuses_invalid_price_with_example() {
    for wrong in [
        "",
        "input=1",
        "input=1, output=-2",
        "input=1, output=nan",
        "input=1, output=inf",
        "input=1, output=two",
        "input=1, output=2, cahced=1",
        "input=1, output=2 }\nx = { y = 1",
        "input=1, output=1e300",
    ] {
        let message = wrong.parse::<Price>().unwrap_err();
        assert!(message.ends_with("as in input=1.25, cached=0.125, output=10"), "{wrong}: {message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn most_specific_price_entry_wins_in_any_order() {
    let (all, five, mini) = ("input=1, output=1", "input=5, output=5", "input=2, output=2");
    for table in [
        price_table(&[("*", all), ("gpt-5*", five), ("gpt-*-mini", mini)]),
        price_table(&[("gpt-*-mini", mini), ("gpt-5*", five), ("*", all)]),
    ] {
        let million_token_cost = |model: &str| {
            table.find_price(model).map(|p| p.cost(&Tokens { input: 1_000_000, ..Tokens::default() }).nanos())
        };
        assert_eq!(million_token_cost("gpt-5.1"), Some(5_000_000_000));
        assert_eq!(million_token_cost("gpt-5-mini"), Some(2_000_000_000));
        assert_eq!(million_token_cost("o9"), Some(1_000_000_000));
        assert_eq!(
            million_token_cost("vendor/gpt-5"),
            Some(1_000_000_000),
            "a name is looked up whole first"
        );
    }
}

#[test]
fn prices_only_agents_that_report_no_cost() {
    let table = price_table(&[("*", "input=1, cached=0, output=0")]);
    let run = |dialect, agent: &str, model: Option<&str>, exit_status: Exit| {
        let mut reader = OutputReader::new(dialect, &SessionTotals::default())
            .with_prices(table.clone(), model.map(str::to_owned));
        let mut events = Vec::new();
        reader.feed_stdout(&recorded_stream(agent, "ok"), &mut events);
        (reader.finish(exit_status, &mut events), events)
    };
    let (codex, events) = run(Dialect::Codex, "codex", Some("gpt-5"), exit(0));
    let cost = Cost { amount: NanoDollars::new(6_000_000), estimated: true };
    assert_eq!((codex.cost, codex.session_totals.cost), (Some(cost), None));
    assert!(events.contains(&StreamEvent::Cost(cost)));
    let (claude, events) = run(Dialect::Claude, "claude", None, exit(0));
    assert_eq!(claude.cost, Some(Cost { amount: NanoDollars::new(29_200_000), estimated: false }));
    // During the run only the tokens are known; the estimate lets a budget end the run early.
    assert!(
        events.contains(&StreamEvent::Cost(Cost { amount: NanoDollars::new(1_000_000), estimated: true }))
    );
    let (pi, _) = run(Dialect::Pi, "pi-0.87", None, exit(0));
    assert_eq!(pi.cost, Some(Cost { amount: NanoDollars::new(12_330_000), estimated: false }));
}

/// Returns the cost of a Claude run after each of its output lines, and whether that cost is an estimate.
fn costs_after_each_line(output_lines: &[String]) -> Vec<Option<(u64, bool)>> {
    let table = price_table(&[("big", "input=10, output=0"), ("small", "input=1, output=1")]);
    let mut reader = OutputReader::new(Dialect::Claude, &SessionTotals::default())
        .with_prices(table, Some("big".to_owned()));
    let cost_after = |line: &String| {
        reader.feed_stdout(format!("{line}\n").as_bytes(), &mut Vec::new());
        reader.progress().cost.map(|cost| (cost.amount.nanos(), cost.estimated))
    };
    output_lines.iter().map(cost_after).collect()
}

#[test]
fn prices_each_message_once_by_its_model() {
    let line = |id: &str, model: &str, input: u64, output: u64| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","model":"{model}","content":[],"usage":{{"input_tokens":{input},"output_tokens":{output}}}}}}}"#
        )
    };
    let result =
        r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s","total_cost_usd":0.5}"#;
    let output_lines = [
        line("a", "big", 1000, 1),
        // The same message again, and then a longer version of it.
        line("a", "big", 1000, 1),
        line("a", "small", 1000, 501),
        line("b", "small", 1000, 0),
        line("c", "unknown", 1000, 0),
        result.to_owned(),
        // Another turn in the same process: its cost is added to the reported total.
        line("d", "big", 1000, 0),
    ];
    let exact = Some((500_000_000, false));
    let estimated = |nanos| Some((nanos, true));
    assert_eq!(
        costs_after_each_line(&output_lines),
        [
            estimated(10_000_000),
            estimated(10_000_000),
            estimated(10_500_000),
            estimated(11_500_000),
            estimated(11_500_000),
            exact,
            estimated(510_000_000)
        ]
    );
}

#[test]
fn ignores_zero_cost_for_used_tokens() {
    let text = String::from_utf8(recorded_stream("opencode", "ok")).unwrap();
    let lines: Vec<String> = text
        .lines()
        .map(|l| {
            l.split_once("\"cost\": ")
                .map_or_else(|| l.to_owned(), |(head, _)| format!("{head}\"cost\": 0}}}}"))
        })
        .collect();
    let (_, summary) =
        parse_stream(Dialect::OpenCode, &SessionTotals::default(), lines.join("\n").as_bytes(), exit(0));
    assert_eq!((summary.tokens.input, summary.cost), (6000, None));
}

proptest! {
    /// An amount of up to nine decimals, below two million dollars, is parsed exactly.
    #[test]
    fn dollars_are_exact(whole in 0u64..2_000_000, part in 0u64..1_000_000_000) {
        let text = format!("{{\"cost\": {whole}.{part:09}}}");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let cost = NanoDollars::from_dollars(value["cost"].as_f64().unwrap());
        prop_assert_eq!(cost.nanos(), whole * 1_000_000_000 + part);
    }
}
