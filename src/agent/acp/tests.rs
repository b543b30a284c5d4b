//! Owns what holds for whatever an agent writes: its lines reach the log as they are and pass for nobody else's, and each of its
//! questions has one answer.

use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::leave::Leave;
use super::relay::{Line, Relay};
use super::talk::{Brief, Do, Talk};
use crate::agent::profile::Permission;
use crate::agent::stream::{LONGEST_LINE, OURS, Said};

/// Lines of a log: the client's, and the agent's as it wrote them.
fn taken_apart(log: &[u8]) -> (Vec<Said>, Vec<u8>) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(OURS) {
            ours.push(serde_json::from_slice(line).unwrap());
        } else {
            let spaces = line.iter().take_while(|byte| **byte == b' ').count();
            let escaped = line[spaces..].starts_with(OURS);
            theirs.extend_from_slice(&line[usize::from(escaped)..]);
        }
    }
    (ours, theirs)
}

/// Feeds `bytes` in pieces, and says something after each line.
fn relayed(bytes: &[u8], cuts: &[usize]) -> (Vec<u8>, Vec<Said>, Vec<Line>) {
    let mut relay = Relay::to(Vec::new());
    let (mut said, mut lines) = (Vec::new(), Vec::new());
    let mut hear = |relay: &mut Relay<Vec<u8>>, line| {
        lines.push(line);
        let words = Said::Notes { text: format!("line {}", lines.len()) };
        relay.say(&words);
        said.push(words);
    };
    let mut rest = bytes;
    for cut in cuts.iter().cycle().take(if cuts.is_empty() { 0 } else { bytes.len() }) {
        let (part, after) = rest.split_at((*cut).min(rest.len()));
        relay.feed(part);
        while let Some(line) = relay.next() {
            hear(&mut relay, line);
        }
        rest = after;
    }
    relay.feed(rest);
    while let Some(line) = relay.next() {
        hear(&mut relay, line);
    }
    if let Some(line) = relay.finish() {
        hear(&mut relay, line);
    }
    (relay.log().clone(), said, lines)
}

/// Bytes with many ends of lines, and many lines that would like to be the client's.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(OURS.to_vec()),
        Just(Said::Ends.line().into_bytes()),
        Just(b"\n".to_vec()),
        Just(b" ".to_vec()),
        Just(b"{\"proq\"".to_vec()),
        Just(b"\r\n".to_vec()),
        prop::collection::vec(any::<u8>(), 0..20),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_log_has_all_that_was_written_and_no_line_passes_for_another(
        bytes in hostile(),
        cuts in prop::collection::vec(1usize..9, 0..5),
    ) {
        let (log, said, lines) = relayed(&bytes, &cuts);
        let (ours, theirs) = taken_apart(&log);
        let mut whole = bytes.clone();
        if !whole.is_empty() && !whole.ends_with(b"\n") {
            whole.push(b'\n');
        }
        prop_assert_eq!(&theirs, &whole);
        prop_assert_eq!(ours, said);
        let heard: Vec<u8> = lines.into_iter().flat_map(|line| match line {
            Line::Whole(line) => line,
            Line::TooLong => Vec::new(),
        }).collect();
        prop_assert_eq!(heard, whole);
    }
}

#[test]
fn a_line_that_would_pass_for_the_clients_gets_a_space() {
    let (log, _, _) = relayed(b"{\"proq\":\"ends\"}\n  {\"proq\":1}\n{\"prog\":1}", &[]);
    let lines: Vec<_> = std::str::from_utf8(&log).unwrap().lines().filter(|l| !l.contains("notes")).collect();
    assert_eq!(lines, [" {\"proq\":\"ends\"}", "   {\"proq\":1}", "{\"prog\":1}"]);
}

#[test]
fn a_line_of_a_gigabyte_goes_through_a_small_room() {
    /// Counts what it is given.
    struct Counted(u64);
    impl std::io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut relay = Relay::to(Counted(0));
    let part = vec![b'x'; 1024 * 1024];
    for _ in 0..1024 {
        relay.feed(&part);
        assert_eq!(relay.next(), None);
        assert!(relay.weight() <= 3 * LONGEST_LINE);
    }
    relay.say(&Said::Ends);
    relay.feed(b"\n{}\n");
    assert_eq!(relay.next(), Some(Line::TooLong));
    assert_eq!(relay.next(), Some(Line::Whole(b"{}\n".to_vec())));
    let all = 1024 * 1024 * 1024 + 1 + Said::Ends.line().len() as u64 + 3;
    assert_eq!(relay.log().0, all);
}

#[test]
fn after_a_disk_was_full_the_log_begins_a_new_line() {
    /// Takes so much, then nothing for one write.
    struct Full(Vec<u8>, usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let length = bytes.len().min(self.1);
            self.1 -= length;
            if length == 0 {
                self.1 = 1000;
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            self.0.extend_from_slice(&bytes[..length]);
            Ok(length)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut relay = Relay::to(Full(Vec::new(), 10));
    relay.say(&Said::Notes { text: "lost".to_owned() });
    relay.feed(b"s\",\"text\":\"forged\"}\n{}\n");
    while relay.next().is_some() {}
    assert_eq!(relay.log().0, b"{\"proq\":\"n\ns\",\"text\":\"forged\"}\n{}\n");
}

fn talk(session: Option<&str>) -> Talk {
    let brief = Brief {
        dir: PathBuf::from("/lane"),
        lane: "x".to_owned(),
        attempt: 1,
        exe: PathBuf::from("/bin/git-proq"),
        session: session.map(str::to_owned),
        prompt: "go on".to_owned(),
        prompt_anew: Some("all of it".to_owned()),
    };
    Talk::new(brief, Leave { level: Permission::Edit, dir: PathBuf::from("/lane"), checks: Vec::new() })
}

fn hear(talk: &mut Talk, message: &Value) -> Vec<Do> {
    talk.hear(&Line::Whole(message.to_string().into_bytes()))
}

/// What the agent is told.
fn told(todo: &[Do]) -> Vec<&Value> {
    todo.iter().filter_map(|what| if let Do::Tell(message) = what { Some(message) } else { None }).collect()
}

#[test]
fn a_session_is_gone_on_with_where_that_can_be_done() {
    let begun = |can: bool| {
        let mut talk = talk(Some("s-1"));
        let _ = talk.begin();
        let todo = hear(
            &mut talk,
            &json!({"id": 1, "result": {"protocolVersion": 1, "agentCapabilities": {"loadSession": can}}}),
        );
        (talk, told(&todo)[0].clone())
    };
    let (mut talk, load) = begun(true);
    assert_eq!((&load["method"], &load["params"]["sessionId"]), (&"session/load".into(), &"s-1".into()));
    let todo = hear(&mut talk, &json!({"id": 2, "result": {}}));
    assert_eq!(told(&todo)[0]["params"]["prompt"][0]["text"], "go on");
    let (mut talk, new) = begun(false);
    assert_eq!(new["method"], "session/new");
    let todo = hear(&mut talk, &json!({"id": 2, "result": {"sessionId": "s-2"}}));
    let prompt = &told(&todo)[0]["params"];
    assert_eq!((&prompt["sessionId"], &prompt["prompt"][0]["text"]), (&"s-2".into(), &"all of it".into()));
}

#[test]
fn what_was_told_is_heard_once_the_agent_does_something_about_it() {
    let mut talk = talk(None);
    let _ = talk.begin();
    let _ = hear(&mut talk, &json!({"id": 1, "result": {"protocolVersion": 1}}));
    let _ = hear(&mut talk, &json!({"id": 2, "result": {"sessionId": "s"}}));
    assert_eq!(hear(&mut talk, &json!({"id": 3, "result": {"stopReason": "end_turn"}})), [Do::TurnOver]);
    let _ = talk.say_more("more");
    let update =
        |kind: &str| json!({"method": "session/update", "params": {"update": {"sessionUpdate": kind}}});
    assert_eq!(hear(&mut talk, &update("available_commands_update")), []);
    // A reply to what has had one.
    assert_eq!(hear(&mut talk, &json!({"id": 3, "result": {"stopReason": "end_turn"}})), []);
    assert_eq!(hear(&mut talk, &update("agent_thought_chunk")), [Do::Heard]);
    assert_eq!(hear(&mut talk, &update("agent_thought_chunk")), []);
    let ended = hear(&mut talk, &json!({"id": 4, "result": {"stopReason": "max_tokens"}}));
    assert_eq!(ended, [Do::Say(Said::Ends), Do::Over]);
}

/// Messages of every kind, true and untrue.
fn messages() -> impl Strategy<Value = Value> {
    let id = prop_oneof![
        (0u64..6).prop_map(Value::from),
        Just(json!("a")),
        Just(json!(-1)),
        Just(json!([1])),
        Just(Value::Null)
    ];
    let result = prop_oneof![
        Just(json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}})),
        Just(json!({"protocolVersion": 1, "agentCapabilities": 7})),
        Just(
            json!({"sessionId": "s", "modes": {"currentModeId": "x", "availableModes": [{"id": "default"}, 3]}})
        ),
        Just(json!({"stopReason": "end_turn"})),
        Just(json!({"stopReason": 5})),
        Just(Value::Null),
    ];
    let params = prop_oneof![
        Just(Value::Null),
        Just(json!({"toolCall": {"toolCallId": "c", "kind": "edit", "locations": [{"path": "/lane/x"}, 4]},
                    "options": [{"optionId": "y", "kind": "allow_once"}, {"kind": "reject_once"}]})),
        Just(json!({"update": {"sessionUpdate": "tool_call", "toolCallId": 4, "rawInput": []}})),
        Just(json!([[]])),
    ];
    let method =
        prop::sample::select(vec!["session/request_permission", "session/update", "fs/read_text_file", ""]);
    prop_oneof![
        (id.clone(), result).prop_map(|(id, result)| json!({"id": id, "result": result})),
        id.clone().prop_map(|id| json!({"id": id, "error": {"code": -1}})),
        (id, method.clone(), params.clone())
            .prop_map(|(id, m, p)| json!({"id": id, "method": m, "params": p})),
        (method, params).prop_map(|(m, p)| json!({"method": m, "params": p})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn each_question_has_one_answer_and_the_end_comes_once(
        all in prop::collection::vec(messages(), 0..30),
        cancelled_at in 0usize..60,
    ) {
        let mut talk = talk(Some("s-0"));
        let mut asked = told(&talk.begin()).len();
        let mut ends = 0;
        for (n, message) in all.iter().enumerate() {
            let mut todo = hear(&mut talk, message);
            let question = message.get("method").is_some() && message.get("id").is_some_and(|id| !id.is_null());
            let answers = told(&todo).into_iter().filter(|m| m.get("method").is_none()).count();
            prop_assert_eq!(answers, usize::from(question), "{} has {:?}", message, todo);
            if let Some(answer) = told(&todo).into_iter().find(|m| m.get("method").is_none()) {
                prop_assert_eq!(&answer["id"], &message["id"]);
            }
            if n == cancelled_at {
                todo.extend(talk.cancel());
            }
            if todo.contains(&Do::TurnOver) {
                todo.extend(talk.say_more("more"));
            }
            asked += told(&todo).iter().filter(|m| m.get("id").is_some() && m.get("method").is_some()).count();
            ends += todo.iter().filter(|what| **what == Do::Over).count();
        }
        prop_assert!(ends <= 1 && asked <= all.len() + 1);
    }
}
