//! Owns prices and money: what is read, what is refused, and that no billionth gets lost.

use proptest::prelude::*;

use super::{exit, read, stream};
use crate::agent::stream::event::nanos;
use crate::agent::stream::{Cost, Dialect, Event, Exit, Price, Prices, Reader, SessionTotals, Tokens};

fn prices(entries: &[(&str, &str)]) -> Prices {
    entries.iter().map(|(model, price)| ((*model).to_owned(), price.parse::<Price>().unwrap())).collect()
}

#[test]
fn tokens_are_multiplied_by_their_prices() {
    let table = prices(&[("gpt-5*", "input=1.25, cached=0.125, output=10")]);
    let tokens = Tokens { input: 6000, cached_input: 1000, cache_write: 0, output: 250, reasoning: 50 };
    // 6000 × 1.25 + 1000 × 0.125 + 250 × 10, in millionths of a dollar.
    let cost = Cost { nanos: 10_125_000, estimated: true };
    assert_eq!(table.estimate("gpt-5-codex", &tokens), Some(cost));
    assert_eq!(table.estimate("openai/gpt-5-codex", &tokens), Some(cost));
    assert_eq!(table.estimate("claude-opus", &tokens), None);
    assert_eq!(Prices::default().estimate("gpt-5", &tokens), None);
}

#[test]
fn what_is_not_priced_of_its_own_costs_as_what_is_sent() {
    let price: Price = "{ input = 3, output = 15 }".parse().unwrap();
    assert_eq!(price.of(&Tokens { cached_input: 1000, ..Tokens::default() }), 3_000_000);
    assert_eq!(price.of(&Tokens { cache_write: 1000, ..Tokens::default() }), 3_000_000);
    let all: Price = "input=3, cached=0.3, cache_write=3.75, output=15".parse().unwrap();
    assert_eq!(all.of(&Tokens { cache_write: 1000, ..Tokens::default() }), 3_750_000);
    let most = Tokens {
        input: u64::MAX,
        cached_input: u64::MAX,
        cache_write: u64::MAX,
        output: u64::MAX,
        reasoning: 0,
    };
    assert_eq!(all.of(&most), u64::MAX);
}

#[test]
fn a_price_is_also_a_table_of_the_configuration() {
    #[derive(serde::Deserialize)]
    struct File {
        prices: std::collections::BTreeMap<String, Price>,
    }
    let file: File =
        toml::from_str("[prices]\n\"gpt-5*\" = { input = 1.25, cached = 0.125, output = 10 }").unwrap();
    assert_eq!(file.prices["gpt-5*"], "input=1.25, cached=0.125, output=10".parse().unwrap());
}

#[test]
fn what_is_no_price_is_refused_with_the_form_that_is_wanted() {
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
        let said = wrong.parse::<Price>().unwrap_err();
        assert!(said.ends_with("as in input=1.25, cached=0.125, output=10"), "{wrong}: {said}");
        assert!(!said.contains('\n'), "{said}");
    }
}

#[test]
fn the_entry_with_most_letters_wins_wherever_it_stands() {
    let (all, five, mini) = ("input=1, output=1", "input=5, output=5", "input=2, output=2");
    for table in [
        prices(&[("*", all), ("gpt-5*", five), ("gpt-*-mini", mini)]),
        prices(&[("gpt-*-mini", mini), ("gpt-5*", five), ("*", all)]),
    ] {
        let of =
            |model: &str| table.of(model).map(|p| p.of(&Tokens { input: 1_000_000, ..Tokens::default() }));
        assert_eq!(of("gpt-5.1"), Some(5_000_000_000));
        assert_eq!(of("gpt-5-mini"), Some(2_000_000_000));
        assert_eq!(of("o9"), Some(1_000_000_000));
        assert_eq!(of("vendor/gpt-5"), Some(1_000_000_000), "a name is looked up whole first");
    }
}

#[test]
fn an_agent_that_gives_only_tokens_is_priced_and_one_that_says_its_cost_is_not() {
    let table = prices(&[("*", "input=1, cached=0, output=0")]);
    let run = |dialect, agent: &str, model: Option<&str>, how: Exit| {
        let mut reader = Reader::new(dialect, &SessionTotals::default())
            .expecting(table.clone(), model.map(str::to_owned));
        let mut events = Vec::new();
        reader.feed(&stream(agent, "ok"), &mut events);
        (reader.finish(how, &mut events), events)
    };
    let (codex, events) = run(Dialect::Codex, "codex", Some("gpt-5"), exit(0));
    let cost = Cost { nanos: 6_000_000, estimated: true };
    assert_eq!((codex.cost, codex.totals.cost_nanos), (Some(cost), None));
    assert!(events.contains(&Event::Cost(cost)));
    let (claude, events) = run(Dialect::Claude, "claude", None, exit(0));
    assert_eq!(claude.cost, Some(Cost { nanos: 29_200_000, estimated: false }));
    // While it works only its tokens are known, so that a limit can act before the end.
    assert!(events.contains(&Event::Cost(Cost { nanos: 1_000_000, estimated: true })));
    let (pi, _) = run(Dialect::Pi, "pi-0.87", None, exit(0));
    assert_eq!(pi.cost, Some(Cost { nanos: 12_330_000, estimated: false }));
}

/// What a run of claude that says these lines has cost, and whether that is an estimate, after each of them.
fn costs(said: &[String]) -> Vec<Option<(u64, bool)>> {
    let table = prices(&[("big", "input=10, output=0"), ("small", "input=1, output=1")]);
    let mut reader =
        Reader::new(Dialect::Claude, &SessionTotals::default()).expecting(table, Some("big".to_owned()));
    let after = |line: &String| {
        reader.feed(format!("{line}\n").as_bytes(), &mut Vec::new());
        reader.progress().cost.map(|cost| (cost.nanos, cost.estimated))
    };
    said.iter().map(after).collect()
}

#[test]
fn each_message_is_priced_once_and_by_the_model_that_said_it() {
    let line = |id: &str, model: &str, input: u64, output: u64| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","model":"{model}","content":[],"usage":{{"input_tokens":{input},"output_tokens":{output}}}}}}}"#
        )
    };
    let result =
        r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s","total_cost_usd":0.5}"#;
    let said = [
        line("a", "big", 1000, 1),
        // The same message again, and then more of it.
        line("a", "big", 1000, 1),
        line("a", "small", 1000, 501),
        line("b", "small", 1000, 0),
        line("c", "unknown", 1000, 0),
        result.to_owned(),
        // Another turn in the same process: what it takes comes on top of what was said.
        line("d", "big", 1000, 0),
    ];
    let exact = Some((500_000_000, false));
    let about = |nanos| Some((nanos, true));
    assert_eq!(
        costs(&said),
        [
            about(10_000_000),
            about(10_000_000),
            about(10_500_000),
            about(11_500_000),
            about(11_500_000),
            exact,
            about(510_000_000)
        ]
    );
}

#[test]
fn a_cost_of_nothing_for_something_is_no_cost() {
    let text = String::from_utf8(stream("opencode", "ok")).unwrap();
    let lines: Vec<String> = text
        .lines()
        .map(|l| {
            l.split_once("\"cost\": ")
                .map_or_else(|| l.to_owned(), |(head, _)| format!("{head}\"cost\": 0}}}}"))
        })
        .collect();
    let (_, summary) =
        read(Dialect::OpenCode, &SessionTotals::default(), lines.join("\n").as_bytes(), exit(0));
    assert_eq!((summary.tokens.input, summary.cost), (6000, None));
}

proptest! {
    /// Any amount of up to nine decimals, below two million dollars, as its text is read.
    #[test]
    fn dollars_are_exact(whole in 0u64..2_000_000, part in 0u64..1_000_000_000) {
        let text = format!("{{\"cost\": {whole}.{part:09}}}");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(nanos(value["cost"].as_f64().unwrap()), whole * 1_000_000_000 + part);
    }
}
