//! Properties that hold for any output of an agent: its lines reach the log unchanged and cannot pass for
//! entries of the client, and each of its requests gets one response.

use std::path::PathBuf;

use proptest::prelude::*;
use proq_base::lane_name::LaneName;
use proq_store::base::run_number::RunNumber;
use proq_stream::base::client_line::{CLIENT_LINE_PREFIX, ClientLine};
use proq_stream::base::lines::MAX_LINE_BYTES;
use serde_json::{Value, json};

use super::client::{Client, ClientAction, ClientConfig};
use super::relay::{OutputRelay, RelayedLine};
use super::tool_policy::ToolPolicy;
use crate::agent::profiles::profile::permission::Permission;

/// Splits a log into the client's entries and the agent's bytes, with the escaping removed.
fn split_log(log: &[u8]) -> (Vec<ClientLine>, Vec<u8>) {
    let (mut entries, mut agent_bytes) = (Vec::new(), Vec::new());
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(CLIENT_LINE_PREFIX) {
            entries.push(serde_json::from_slice(line).unwrap());
        } else {
            let spaces = line.iter().take_while(|byte| **byte == b' ').count();
            let escaped = line[spaces..].starts_with(CLIENT_LINE_PREFIX);
            agent_bytes.extend_from_slice(&line[usize::from(escaped)..]);
        }
    }
    (entries, agent_bytes)
}

/// Relays `bytes` in chunks and writes a client entry after each line. Returns the log, the entries and the
/// relayed lines.
fn relay_in_chunks(bytes: &[u8], chunk_sizes: &[usize]) -> (Vec<u8>, Vec<ClientLine>, Vec<RelayedLine>) {
    let mut relay = OutputRelay::new(Vec::new());
    let (mut entries, mut lines) = (Vec::new(), Vec::new());
    let mut collect_line = |relay: &mut OutputRelay<Vec<u8>>, line| {
        lines.push(line);
        let entry = ClientLine::Note { text: format!("line {}", lines.len()) };
        relay.write_entry(&entry);
        entries.push(entry);
    };
    let mut remaining = bytes;
    for chunk_size in chunk_sizes.iter().cycle().take(if chunk_sizes.is_empty() { 0 } else { bytes.len() }) {
        let (chunk, after) = remaining.split_at((*chunk_size).min(remaining.len()));
        relay.feed(chunk);
        while let Some(line) = relay.next_line() {
            collect_line(&mut relay, line);
        }
        remaining = after;
    }
    relay.feed(remaining);
    while let Some(line) = relay.next_line() {
        collect_line(&mut relay, line);
    }
    if let Some(line) = relay.finish_last_line() {
        collect_line(&mut relay, line);
    }
    (relay.log().clone(), entries, lines)
}

/// Generates bytes with many line breaks, and many lines that imitate entries of the client.
fn hostile_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(CLIENT_LINE_PREFIX.to_vec()),
        Just(ClientLine::NoMoreRequests.to_line().into_bytes()),
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
    fn log_keeps_every_byte_and_no_line_is_forged(
        bytes in hostile_bytes(),
        cuts in prop::collection::vec(1usize..9, 0..5),
    ) {
        let (log, entries, lines) = relay_in_chunks(&bytes, &cuts);
        let (ours, theirs) = split_log(&log);
        let mut expected = bytes.clone();
        if !expected.is_empty() && !expected.ends_with(b"\n") {
            expected.push(b'\n');
        }
        prop_assert_eq!(&theirs, &expected);
        prop_assert_eq!(ours, entries);
        let relayed: Vec<u8> = lines.into_iter().flat_map(|line| match line {
            RelayedLine::Complete(line) => line,
            RelayedLine::TooLong => Vec::new(),
        }).collect();
        prop_assert_eq!(relayed, expected);
    }
}

/// Promise: agent-requests/log-lines
#[test]
fn escapes_agent_line_that_looks_like_client_entry() {
    let (log, _, _) = relay_in_chunks(b"{\"proq\":\"ends\"}\n  {\"proq\":1}\n{\"prog\":1}", &[]);
    let lines: Vec<_> = std::str::from_utf8(&log).unwrap().lines().filter(|l| !l.contains("notes")).collect();
    assert_eq!(lines, [" {\"proq\":\"ends\"}", "   {\"proq\":1}", "{\"prog\":1}"]);
}

#[test]
fn gigabyte_line_uses_bounded_memory() {
    /// Writer that counts the bytes it is given.
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
    let mut relay = OutputRelay::new(Counted(0));
    let chunk = vec![b'x'; 1024 * 1024];
    for _ in 0..1024 {
        relay.feed(&chunk);
        assert_eq!(relay.next_line(), None);
        assert!(relay.memory_use() <= 3 * MAX_LINE_BYTES);
    }
    relay.write_entry(&ClientLine::NoMoreRequests);
    relay.feed(b"\n{}\n");
    assert_eq!(relay.next_line(), Some(RelayedLine::TooLong));
    assert_eq!(relay.next_line(), Some(RelayedLine::Complete(b"{}\n".to_vec())));
    let total_bytes = 1024 * 1024 * 1024 + 1 + ClientLine::NoMoreRequests.to_line().len() as u64 + 3;
    assert_eq!(relay.log().0, total_bytes);
}

/// Promise: agent-requests/log-lines
#[test]
fn log_starts_new_line_after_failed_write() {
    /// Writer that accepts the given number of bytes, then fails one write.
    struct FullDisk(Vec<u8>, usize);
    impl std::io::Write for FullDisk {
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
    let mut relay = OutputRelay::new(FullDisk(Vec::new(), 10));
    relay.write_entry(&ClientLine::Note { text: "lost".to_owned() });
    relay.feed(b"s\",\"text\":\"forged\"}\n{}\n");
    while relay.next_line().is_some() {}
    assert_eq!(relay.log().0, b"{\"proq\":\"n\ns\",\"text\":\"forged\"}\n{}\n");
}

fn test_client(session: Option<&str>) -> Client {
    let config = ClientConfig {
        work_dir: PathBuf::from("/lane"),
        lane: LaneName::parse("x").unwrap(),
        run_number: RunNumber::first(),
        git_proq_path: PathBuf::from("/bin/git-proq"),
        session_to_resume: session.map(str::to_owned),
        prompt: "go on".to_owned(),
        restart_prompt: Some("all of it".to_owned()),
    };
    Client::new(
        config,
        ToolPolicy {
            level: Permission::Edit,
            lane_dir: PathBuf::from("/lane"),
            checks: Vec::new(),
            allowed: Vec::new(),
        },
    )
}

fn receive(client: &mut Client, message: &Value) -> Vec<ClientAction> {
    client.receive_line(&RelayedLine::Complete(message.to_string().into_bytes()))
}

/// Returns the messages that are sent to the agent.
fn sent_messages(actions: &[ClientAction]) -> Vec<&Value> {
    actions
        .iter()
        .filter_map(|action| if let ClientAction::Send(message) = action { Some(message) } else { None })
        .collect()
}

#[test]
fn loads_session_only_when_agent_supports_it() {
    let start_client = |can_load: bool| {
        let mut client = test_client(Some("s-1"));
        let _ = client.initialize();
        let actions = receive(
            &mut client,
            &json!({"id": 1, "result": {"protocolVersion": 1, "agentCapabilities": {"loadSession": can_load}}}),
        );
        (client, sent_messages(&actions)[0].clone())
    };
    let (mut client, load) = start_client(true);
    assert_eq!((&load["method"], &load["params"]["sessionId"]), (&"session/load".into(), &"s-1".into()));
    let actions = receive(&mut client, &json!({"id": 2, "result": {}}));
    assert_eq!(sent_messages(&actions)[0]["params"]["prompt"][0]["text"], "go on");
    let (mut client, new) = start_client(false);
    assert_eq!(new["method"], "session/new");
    let actions = receive(&mut client, &json!({"id": 2, "result": {"sessionId": "s-2"}}));
    let prompt = &sent_messages(&actions)[0]["params"];
    assert_eq!((&prompt["sessionId"], &prompt["prompt"][0]["text"]), (&"s-2".into(), &"all of it".into()));
}

#[test]
fn delivery_is_confirmed_by_first_reaction() {
    let mut client = test_client(None);
    let _ = client.initialize();
    let _ = receive(&mut client, &json!({"id": 1, "result": {"protocolVersion": 1}}));
    let _ = receive(&mut client, &json!({"id": 2, "result": {"sessionId": "s"}}));
    assert_eq!(
        receive(&mut client, &json!({"id": 3, "result": {"stopReason": "end_turn"}})),
        [ClientAction::ContinueAfterTurn]
    );
    let _ = client.send_message("more");
    let update =
        |kind: &str| json!({"method": "session/update", "params": {"update": {"sessionUpdate": kind}}});
    assert_eq!(receive(&mut client, &update("available_commands_update")), []);
    // A second response to a request that already has one.
    assert_eq!(receive(&mut client, &json!({"id": 3, "result": {"stopReason": "end_turn"}})), []);
    assert_eq!(receive(&mut client, &update("agent_thought_chunk")), [ClientAction::ConfirmDelivery]);
    assert_eq!(receive(&mut client, &update("agent_thought_chunk")), []);
    let actions = receive(&mut client, &json!({"id": 4, "result": {"stopReason": "max_tokens"}}));
    assert_eq!(actions, [ClientAction::Log(ClientLine::NoMoreRequests), ClientAction::CloseInput]);
}

/// Generates messages of every kind, valid and invalid.
fn arbitrary_message() -> impl Strategy<Value = Value> {
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
    fn answers_each_request_once_and_finishes_once(
        all in prop::collection::vec(arbitrary_message(), 0..30),
        cancelled_at in 0usize..60,
    ) {
        let mut client = test_client(Some("s-0"));
        let mut requests = sent_messages(&client.initialize()).len();
        let mut finish_count = 0;
        for (n, message) in all.iter().enumerate() {
            let mut actions = receive(&mut client, message);
            let is_request = message.get("method").is_some() && message.get("id").is_some_and(|id| !id.is_null());
            let answers = sent_messages(&actions).into_iter().filter(|m| m.get("method").is_none()).count();
            prop_assert_eq!(answers, usize::from(is_request), "{} has {:?}", message, actions);
            if let Some(answer) = sent_messages(&actions).into_iter().find(|m| m.get("method").is_none()) {
                prop_assert_eq!(&answer["id"], &message["id"]);
            }
            if n == cancelled_at {
                actions.extend(client.cancel());
            }
            if actions.contains(&ClientAction::ContinueAfterTurn) {
                actions.extend(client.send_message("more"));
            }
            requests += sent_messages(&actions).iter().filter(|m| m.get("id").is_some() && m.get("method").is_some()).count();
            finish_count += actions.iter().filter(|action| **action == ClientAction::CloseInput).count();
        }
        prop_assert!(finish_count <= 1 && requests <= all.len() + 1);
    }
}
