//! Property tests of the stream reader for arbitrary bytes: it never panics, the division into pieces does
//! not matter, and memory stays within its bound.

use proptest::prelude::*;
use proq_base::usage::SessionTotals;

use super::{RECORDED_AGENTS, exit, recorded_exit_codes, recorded_stream};
use crate::base::event::StreamEvent;
use crate::base::lines::MAX_LINE_BYTES;
use crate::reader::{Dialect, OutputReader};
use crate::summary::Summary;

const ALL_DIALECTS: [Dialect; 10] = [
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

/// Maximum number of bytes that a reader holds beside one line: a few texts of maximum length, and names.
const MAX_BYTES_BESIDE_LINE: usize = 1024 * 1024;

fn parse_in_pieces(dialect: Dialect, bytes: &[u8], piece_lengths: &[usize]) -> (Vec<StreamEvent>, Summary) {
    let mut reader = OutputReader::new(dialect, &SessionTotals::default());
    let mut events = Vec::new();
    let mut remaining = bytes;
    for piece_length in piece_lengths.iter().cycle().take(bytes.len().min(400)) {
        let (piece, after) = remaining.split_at((*piece_length).min(remaining.len()));
        reader.feed_stdout(piece, &mut events);
        assert!(reader.memory_bytes() <= bytes.len() + MAX_BYTES_BESIDE_LINE);
        remaining = after;
    }
    reader.feed_stdout(remaining, &mut events);
    let summary = reader.finish(exit(0), &mut events);
    (events, summary)
}

fn check_same_in_pieces(
    dialect: Dialect,
    bytes: &[u8],
    piece_lengths: &[usize],
) -> Result<(), TestCaseError> {
    prop_assert_eq!(
        parse_in_pieces(dialect, bytes, &[bytes.len()]),
        parse_in_pieces(dialect, bytes, piece_lengths)
    );
    Ok(())
}

fn any_dialect() -> impl Strategy<Value = Dialect> {
    prop::sample::select(ALL_DIALECTS.to_vec())
}

/// JSON values with the keywords of the formats, in places where they may or may not belong.
fn any_json_value() -> impl Strategy<Value = serde_json::Value> {
    let format_words: Vec<&str> = "type subtype message content text tool_use tool_result assistant user system init result \
        usage input_tokens item id part state tokens cache cost data update params method sessionUpdate session/update \
        tool_call tool_call_update status completed failed error success is_error modelUsage stats role delta session_id \
        item.completed turn.completed step_finish message_end agent_end stopReason status exitCode"
        .split_whitespace()
        .collect();
    let word = prop::sample::select(format_words);
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

/// A change to the lines of a recorded stream.
#[derive(Debug, Clone)]
enum StreamMutation {
    FlipBit(usize, usize, u8),
    DropLine(usize),
    DuplicateLine(usize),
    SwapLines(usize, usize),
    TruncateLine(usize, usize),
}

fn any_mutations() -> impl Strategy<Value = Vec<StreamMutation>> {
    let n = any::<usize>;
    let any_mutation = prop_oneof![
        (n(), n(), any::<u8>()).prop_map(|(line, at, bit)| StreamMutation::FlipBit(line, at, bit)),
        n().prop_map(StreamMutation::DropLine),
        n().prop_map(StreamMutation::DuplicateLine),
        (n(), n()).prop_map(|(a, b)| StreamMutation::SwapLines(a, b)),
        (n(), n()).prop_map(|(line, at)| StreamMutation::TruncateLine(line, at)),
    ];
    prop::collection::vec(any_mutation, 1..8)
}

fn apply_mutations(stream: &[u8], mutations: &[StreamMutation]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = stream.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    for mutation in mutations {
        let count = lines.len();
        if count == 0 {
            break;
        }
        match *mutation {
            StreamMutation::FlipBit(line, at, bit) => {
                let line = &mut lines[line % count];
                let length = line.len();
                if length > 0 {
                    line[at % length] ^= 1 << (bit % 8);
                }
            }
            StreamMutation::DropLine(line) => drop(lines.remove(line % count)),
            StreamMutation::DuplicateLine(line) => lines.insert(line % count, lines[line % count].clone()),
            StreamMutation::SwapLines(a, b) => lines.swap(a % count, b % count),
            StreamMutation::TruncateLine(line, at) => {
                let line = &mut lines[line % count];
                line.truncate(at % (line.len() + 1));
            }
        }
    }
    lines.join(&b'\n')
}

fn any_recorded_stream() -> impl Strategy<Value = (Dialect, Vec<u8>)> {
    let recordings: Vec<(Dialect, Vec<u8>)> = RECORDED_AGENTS
        .iter()
        .flat_map(|(agent, dialect)| {
            recorded_exit_codes(agent).into_iter().map(|(name, _)| (*dialect, recorded_stream(agent, &name)))
        })
        .collect();
    prop::sample::select(recordings)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn arbitrary_bytes_parse_same_in_pieces(
        dialect in any_dialect(),
        bytes in prop::collection::vec(prop_oneof![3 => any::<u8>(), 1 => Just(b'\n'), 1 => Just(b'{')], 0..600),
        cuts in prop::collection::vec(1usize..50, 1..8),
    ) {
        check_same_in_pieces(dialect, &bytes, &cuts)?;
    }

    #[test]
    fn json_values_parse_same_in_pieces(
        dialect in any_dialect(),
        values in prop::collection::vec(any_json_value(), 1..6),
        cuts in prop::collection::vec(1usize..50, 1..8),
    ) {
        let lines: Vec<String> = values.iter().map(ToString::to_string).collect();
        check_same_in_pieces(dialect, lines.join("\n").as_bytes(), &cuts)?;
    }

    #[test]
    fn mutated_recordings_parse_same_in_pieces(
        (dialect, stream) in any_recorded_stream(),
        other in any_dialect(),
        changes in any_mutations(),
        cuts in prop::collection::vec(1usize..5000, 1..8),
    ) {
        let bytes = apply_mutations(&stream, &changes);
        check_same_in_pieces(dialect, &bytes, &cuts)?;
        check_same_in_pieces(other, &bytes, &cuts)?;
    }
}

#[test]
fn gigabyte_line_stays_within_memory_bound() {
    let chunk = vec![b'x'; 1024 * 1024];
    for dialect in ALL_DIALECTS {
        let mut reader = OutputReader::new(dialect, &SessionTotals::default());
        let mut events = Vec::new();
        reader.feed_stdout(b"{\"type\":\"", &mut events);
        for _ in 0..1024 {
            reader.feed_stdout(&chunk, &mut events);
            assert!(
                reader.memory_bytes() <= MAX_LINE_BYTES + MAX_BYTES_BESIDE_LINE,
                "{}",
                reader.memory_bytes()
            );
        }
        reader.feed_stdout(b"\"}\n{\"type\":\"next\"}\n", &mut events);
        assert!(reader.memory_bytes() <= MAX_BYTES_BESIDE_LINE);
        assert_eq!(events.len(), 2);
        assert_eq!(events[0], StreamEvent::Unknown { kind: "too long".to_owned() });
    }
}

#[test]
fn reads_lines_up_to_length_limit() {
    for (length, kind) in [(MAX_LINE_BYTES, "no event"), (MAX_LINE_BYTES + 1, "too long")] {
        let mut line = vec![b'x'; length];
        line.push(b'\n');
        let wanted = [StreamEvent::Unknown { kind: kind.to_owned() }];
        for piece_length in [length + 1, length, length - 1, 1 << 20] {
            assert_eq!(
                parse_in_pieces(Dialect::Claude, &line, &[piece_length]).0,
                wanted,
                "{length} in pieces of {piece_length}"
            );
        }
    }
}

#[test]
fn bounds_events_and_memory_of_hostile_lines() {
    let deep_array = "[".repeat(100_000);
    let deep_in_input = format!(
        "{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"tool_use\",\"input\":{}",
        "{\"a\":".repeat(100_000)
    );
    let many_blocks =
        format!("{{\"type\":\"assistant\",\"message\":{{\"content\":[{}0]}}}}", "{},".repeat(300_000));
    let text = "y".repeat(1_000_000);
    let long_texts = format!(
        "{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}},\
         {{\"type\":\"tool_use\",\"id\":\"{text}\",\"name\":\"{text}\",\"input\":{{\"a\":\"{text}\",\"b\":[1]}}}}]}}}}"
    );
    for line in [deep_array.as_str(), &deep_in_input, &many_blocks, &long_texts] {
        for dialect in ALL_DIALECTS {
            let mut reader = OutputReader::new(dialect, &SessionTotals::default());
            let mut events = Vec::new();
            reader.feed_stdout(line.as_bytes(), &mut events);
            reader.feed_stdout(b"\n", &mut events);
            assert!(reader.memory_bytes() <= MAX_BYTES_BESIDE_LINE, "{dialect:?}");
            assert!(events.len() <= 20_000, "{dialect:?}: {}", events.len());
            let events_bytes: usize = events.iter().map(|e| serde_json::to_string(e).unwrap().len()).sum();
            assert!(events_bytes <= 2_000_000, "{dialect:?}: {events_bytes}");
        }
    }
}
