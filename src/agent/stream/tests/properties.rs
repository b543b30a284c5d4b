//! Owns what holds for any bytes: nothing panics, pieces do not matter, and memory stays within its bound.

use proptest::prelude::*;

use super::{RECORDED, endings, exit, stream};
use crate::agent::stream::lines::LONGEST_LINE;
use crate::agent::stream::{Dialect, Event, Reader, SessionTotals, Summary};

const ALL: [Dialect; 10] = [
    Dialect::Claude,
    Dialect::Codex,
    Dialect::OpenCode,
    Dialect::Gemini,
    Dialect::Qwen,
    Dialect::Copilot,
    Dialect::Pi,
    Dialect::Aider,
    Dialect::Acp,
    Dialect::Text,
];

/// What a reader may hold besides one line: a few texts of the longest kind, and names.
const BESIDES: usize = 1024 * 1024;

fn pieces(dialect: Dialect, bytes: &[u8], cuts: &[usize]) -> (Vec<Event>, Summary) {
    let mut reader = Reader::new(dialect, &SessionTotals::default());
    let mut events = Vec::new();
    let mut rest = bytes;
    for cut in cuts.iter().cycle().take(bytes.len().min(400)) {
        let (piece, after) = rest.split_at((*cut).min(rest.len()));
        reader.feed(piece, &mut events);
        assert!(reader.weight() <= bytes.len() + BESIDES);
        rest = after;
    }
    reader.feed(rest, &mut events);
    let summary = reader.finish(exit(0), &mut events);
    (events, summary)
}

fn same_in_pieces(dialect: Dialect, bytes: &[u8], cuts: &[usize]) -> Result<(), TestCaseError> {
    prop_assert_eq!(pieces(dialect, bytes, &[bytes.len()]), pieces(dialect, bytes, cuts));
    Ok(())
}

fn dialects() -> impl Strategy<Value = Dialect> {
    prop::sample::select(ALL.to_vec())
}

/// Values with the words of the formats in places where they may or may not belong.
fn values() -> impl Strategy<Value = serde_json::Value> {
    let words: Vec<&str> = "type subtype message content text tool_use tool_result assistant user system init result \
        usage input_tokens item id part state tokens cache cost data update params method sessionUpdate session/update \
        tool_call tool_call_update status completed failed error success is_error modelUsage stats role delta session_id \
        item.completed turn.completed step_finish message_end agent_end stopReason status exitCode"
        .split_whitespace()
        .collect();
    let word = prop::sample::select(words);
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
        word.clone().prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::vec((word.clone(), inner), 0..6).prop_map(|fields| {
                fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<serde_json::Map<_, _>>().into()
            }),
        ]
    })
}

/// What happens to the lines of a recorded stream.
#[derive(Debug, Clone)]
enum Change {
    Flip(usize, usize, u8),
    Drop(usize),
    Twice(usize),
    Swap(usize, usize),
    Cut(usize, usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let n = any::<usize>;
    let one = prop_oneof![
        (n(), n(), any::<u8>()).prop_map(|(line, at, bit)| Change::Flip(line, at, bit)),
        n().prop_map(Change::Drop),
        n().prop_map(Change::Twice),
        (n(), n()).prop_map(|(a, b)| Change::Swap(a, b)),
        (n(), n()).prop_map(|(line, at)| Change::Cut(line, at)),
    ];
    prop::collection::vec(one, 1..8)
}

fn changed(stream: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = stream.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    for change in changes {
        let count = lines.len();
        if count == 0 {
            break;
        }
        match *change {
            Change::Flip(line, at, bit) => {
                let line = &mut lines[line % count];
                let length = line.len();
                if length > 0 {
                    line[at % length] ^= 1 << (bit % 8);
                }
            }
            Change::Drop(line) => drop(lines.remove(line % count)),
            Change::Twice(line) => lines.insert(line % count, lines[line % count].clone()),
            Change::Swap(a, b) => lines.swap(a % count, b % count),
            Change::Cut(line, at) => {
                let line = &mut lines[line % count];
                line.truncate(at % (line.len() + 1));
            }
        }
    }
    lines.join(&b'\n')
}

fn recorded() -> impl Strategy<Value = (Dialect, Vec<u8>)> {
    let all: Vec<(Dialect, Vec<u8>)> = RECORDED
        .iter()
        .flat_map(|(agent, dialect)| {
            endings(agent).into_iter().map(|(name, _)| (*dialect, stream(agent, &name)))
        })
        .collect();
    prop::sample::select(all)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_in_any_pieces(
        dialect in dialects(),
        bytes in prop::collection::vec(prop_oneof![3 => any::<u8>(), 1 => Just(b'\n'), 1 => Just(b'{')], 0..600),
        cuts in prop::collection::vec(1usize..50, 1..8),
    ) {
        same_in_pieces(dialect, &bytes, &cuts)?;
    }

    #[test]
    fn any_values_under_the_words_of_the_formats(
        dialect in dialects(),
        values in prop::collection::vec(values(), 1..6),
        cuts in prop::collection::vec(1usize..50, 1..8),
    ) {
        let lines: Vec<String> = values.iter().map(ToString::to_string).collect();
        same_in_pieces(dialect, lines.join("\n").as_bytes(), &cuts)?;
    }

    #[test]
    fn recorded_streams_that_something_happened_to(
        (dialect, stream) in recorded(),
        other in dialects(),
        changes in changes(),
        cuts in prop::collection::vec(1usize..5000, 1..8),
    ) {
        let bytes = changed(&stream, &changes);
        same_in_pieces(dialect, &bytes, &cuts)?;
        same_in_pieces(other, &bytes, &cuts)?;
    }
}

#[test]
fn a_line_of_a_gigabyte_takes_no_more_room_than_the_longest_one() {
    let chunk = vec![b'x'; 1024 * 1024];
    for dialect in ALL {
        let mut reader = Reader::new(dialect, &SessionTotals::default());
        let mut events = Vec::new();
        reader.feed(b"{\"type\":\"", &mut events);
        for _ in 0..1024 {
            reader.feed(&chunk, &mut events);
            assert!(reader.weight() <= LONGEST_LINE + BESIDES, "{}", reader.weight());
        }
        reader.feed(b"\"}\n{\"type\":\"next\"}\n", &mut events);
        assert!(reader.weight() <= BESIDES);
        assert_eq!(events.len(), 2);
        assert_eq!(events[0], Event::Unknown { kind: "too long".to_owned() });
    }
}

#[test]
fn a_line_is_read_up_to_the_bound_and_not_beyond_it() {
    for (length, kind) in [(LONGEST_LINE, "no event"), (LONGEST_LINE + 1, "too long")] {
        let mut line = vec![b'x'; length];
        line.push(b'\n');
        let wanted = [Event::Unknown { kind: kind.to_owned() }];
        for cut in [length + 1, length, length - 1, 1 << 20] {
            assert_eq!(pieces(Dialect::Claude, &line, &[cut]).0, wanted, "{length} in pieces of {cut}");
        }
    }
}

#[test]
fn hostile_lines_are_bounded_in_what_is_made_of_them() {
    let deep = "[".repeat(100_000);
    let deep_in_input = format!(
        "{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"tool_use\",\"input\":{}",
        "{\"a\":".repeat(100_000)
    );
    let many = format!("{{\"type\":\"assistant\",\"message\":{{\"content\":[{}0]}}}}", "{},".repeat(300_000));
    let text = "y".repeat(1_000_000);
    let long = format!(
        "{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}},\
         {{\"type\":\"tool_use\",\"id\":\"{text}\",\"name\":\"{text}\",\"input\":{{\"a\":\"{text}\",\"b\":[1]}}}}]}}}}"
    );
    for line in [deep.as_str(), &deep_in_input, &many, &long] {
        for dialect in ALL {
            let mut reader = Reader::new(dialect, &SessionTotals::default());
            let mut events = Vec::new();
            reader.feed(line.as_bytes(), &mut events);
            reader.feed(b"\n", &mut events);
            assert!(reader.weight() <= BESIDES, "{dialect:?}");
            assert!(events.len() <= 20_000, "{dialect:?}: {}", events.len());
            let shown: usize = events.iter().map(|e| serde_json::to_string(e).unwrap().len()).sum();
            assert!(shown <= 2_000_000, "{dialect:?}: {shown}");
        }
    }
}
