//! Tests of follow-up messages to a running agent that reads prompts one by one on its standard input.

use proq_test_kit::Sandbox;
use proq_test_kit::claude::write_user_config;
use proq_test_kit::runs::kill_supervisor;
use proq_test_kit::waiting::wait_until;

/// Script of an agent that reads prompts line by line, acts on the words in them, and reports the session's
/// usage so far.
const AGENT: &str = r#"echo "started $*" >> "$ROOT/notes"; n=0
total() { echo "\"total_cost_usd\":0.0$n,\"modelUsage\":{\"m\":{\"inputTokens\":${n}00,\"outputTokens\":$n,\"costUSD\":0.0$n}}"; }
while IFS= read -r line; do
    n=$((n + 1)); printf '%s\n' "$line" >> "$ROOT/lines"
    echo '{"type":"system","subtype":"init","session_id":"s","model":"m"}'
    case "$line" in *says*) echo '{"type":"assistant","message":{"id":"a","content":[{"type":"text","text":"I hear"}]}}' ;; esac
    case "$line" in *hold-a*) echo > "$ROOT/a-up"; read -r go < "$ROOT/a-go" ;; esac
    case "$line" in *hold-b*) echo > "$ROOT/b-up"; read -r go < "$ROOT/b-go" ;; esac
    for name in one two three four; do
        case "$line" in *write-$name*) echo text > $name; git add $name; git commit -qm $name ;; esac
    done
    echo '{"type":"assistant","message":{"id":"b'$n'","content":[{"type":"text","text":"Turn '$n'"}]}}'
    echo '{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"Turn '$n'","session_id":"s",'"$(total)"'}'
    case "$line" in *deaf*) read -r go < "$ROOT/b-go"; exit 0 ;; esac
done
echo ended >> "$ROOT/notes""#;

/// Starts that agent as `claude` in lane `x`; it waits for a line in the pipe `a-go`.
fn start_waiting_agent(task: &str) -> Sandbox {
    start_waiting_agent_with(task, &[])
}

/// Starts the waiting agent with more options of `spawn`.
fn start_waiting_agent_with(task: &str, options: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program_verbatim("claude", AGENT);
    sandbox.git(&["config", "proq.agent.crashRetries", "0"]);
    for pipe in ["a-up", "a-go", "b-up", "b-go"] {
        sandbox.pipe(pipe);
    }
    let _ = sandbox.proq(&[&["spawn", "-n", "x", "claude", task], options].concat()).ok();
    sandbox.read_pipe("a-up");
    sandbox
}

/// Returns the prompts that the agent has read, in order.
fn received_prompts(sandbox: &Sandbox) -> Vec<String> {
    let lines = std::fs::read_to_string(sandbox.root().join("lines")).unwrap();
    let text = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&message["type"], &message["message"]["role"]), (&"user".into(), &"user".into()));
        message["message"]["content"].as_str().unwrap().to_owned()
    };
    lines.lines().map(text).collect()
}

fn recorded_notes(sandbox: &Sandbox) -> Vec<String> {
    let notes = std::fs::read_to_string(sandbox.root().join("notes")).unwrap();
    notes.lines().map(ToOwned::to_owned).collect()
}

fn queued_messages(sandbox: &Sandbox) -> usize {
    let shown = sandbox.proq(&["show", "x", "--json"]).json();
    shown["waiting"].as_array().map_or(0, Vec::len)
}

/// Kills the agent without a chance to react.
fn kill_agent(sandbox: &Sandbox) {
    let pid = sandbox.last_run("x")["pid"].to_string();
    sandbox.sh(&format!("kill -9 {pid}"));
}

/// Promise: concurrency/message-to-running-agent
#[test]
fn sends_messages_to_same_process_after_its_turn() {
    let sandbox = start_waiting_agent("hold-a write-one");
    let message = sandbox.proq(&["send", "x", "write-two \"quoted\"\n\\ é"]).ok();
    assert_eq!(message, "kept for 'x' until its agent's turn has ended\n");
    let _ = sandbox.proq(&["send", "x", "hold-b write-three"]).ok();
    sandbox.write_pipe("a-go");
    sandbox.read_pipe("b-up");
    // A third message is sent during that turn.
    let _ = sandbox.proq(&["send", "x", "write-four"]).ok();
    sandbox.write_pipe("b-go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(recorded_notes(&sandbox).len(), 2, "{:?}", recorded_notes(&sandbox));
    assert_eq!(recorded_notes(&sandbox)[1], "ended");
    assert!(received_prompts(&sandbox)[0].contains("hold-a write-one"));
    assert_eq!(
        received_prompts(&sandbox)[1..],
        ["write-two \"quoted\"\n\\ é\n\nhold-b write-three", "write-four"]
    );
    let run = sandbox.last_run("x");
    let (attempt, times, class) = (&run["attempt"], &run["told"], &run["class"]);
    assert_eq!((attempt, times, class), (&1.into(), &2.into(), &"done".into()), "{run:#}");
    // The usage counts on through the session; the number of turns starts again with each prompt.
    assert_eq!(run["account"]["tokens"]["input"], 300);
    assert_eq!(run["account"]["cost"]["nanos"], 30_000_000);
    assert_eq!(run["account"]["turns"], 6);
    assert_eq!(run["account"]["answer"], "Turn 3");
    assert_eq!(sandbox.git(&["ls-tree", "--name-only", "proq/x"]), "a.txt\nfour\none\nthree\ntwo");
    assert_eq!(queued_messages(&sandbox), 0);
    assert_eq!(sandbox.events("agent.told").len(), 2);
    let logs = sandbox.proq(&["logs", "x"]).ok();
    assert!(logs.contains("< message: write-two") && logs.contains("< message: write-four\n"), "{logs}");
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("received 2 messages while it ran"), "{shown}");
    let prompt = sandbox.proq(&["show", "x", "--prompt"]).ok();
    assert!(prompt.contains("hold-a write-one") && prompt.ends_with("write-four\n"), "{prompt}");
    // No agent reads any more: a message starts the next run, in the same session.
    let _ = sandbox.proq(&["send", "x", "write-five", "--wait"]).ok();
    assert_eq!(sandbox.last_run("x")["attempt"], 2);
    assert!(recorded_notes(&sandbox)[2].contains("--resume s"), "{:?}", recorded_notes(&sandbox));
    sandbox.assert_healthy();
}

/// Promise: concurrency/message-to-running-agent
#[test]
fn received_message_is_not_resent_after_kill() {
    let sandbox = start_waiting_agent("hold-a");
    let _ = sandbox.proq(&["send", "x", "says hold-b"]).ok();
    sandbox.write_pipe("a-go");
    sandbox.read_pipe("b-up");
    wait_until("it has the message", || queued_messages(&sandbox) == 0);
    kill_agent(&sandbox);
    let _ = sandbox.proq(&["wait", "x"]).fails(4);
    assert_eq!(sandbox.last_run("x")["class"], "crashed");
    assert!(sandbox.proq(&["send", "x"]).fails(1).contains("no message is queued"));
    assert_eq!(received_prompts(&sandbox).len(), 2);
    sandbox.assert_healthy();
}

/// Promise: concurrency/message-to-running-agent
#[test]
fn unconfirmed_message_is_resent_after_kill() {
    let sandbox = start_waiting_agent("hold-a");
    let _ = sandbox.proq(&["send", "x", "hold-b write-two"]).ok();
    sandbox.write_pipe("a-go");
    sandbox.read_pipe("b-up");
    assert_eq!(queued_messages(&sandbox), 1);
    kill_agent(&sandbox);
    let _ = sandbox.proq(&["wait", "x"]).fails(4);
    assert_eq!(queued_messages(&sandbox), 1);
    let _ = sandbox.proq(&["send", "x"]).ok();
    sandbox.read_pipe("b-up");
    sandbox.write_pipe("b-go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(received_prompts(&sandbox)[2], "hold-b write-two");
    assert_eq!(sandbox.git(&["show", "proq/x:two"]), "text");
    assert_eq!(queued_messages(&sandbox), 0);
    sandbox.assert_healthy();
}

/// Promise: concurrency/message-to-running-agent
#[test]
fn unread_message_starts_next_run_after_success() {
    let sandbox = start_waiting_agent("hold-a deaf write-one");
    let _ = sandbox.proq(&["send", "x", "write-two"]).ok();
    sandbox.write_pipe("a-go");
    // The message is being written to the agent by now.
    wait_until("its log has the message", || {
        sandbox.proq(&["logs", "x"]).ok().contains("< message: write-two")
    });
    sandbox.write_pipe("b-go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    let runs = |n: usize| sandbox.proq(&["show", "x", "--json"]).json()["runs"][n].clone();
    assert_eq!(sandbox.last_run("x")["attempt"], 2, "{:#}", runs(0));
    assert_eq!(
        (&runs(0)["class"], &runs(0)["told"]),
        (&"done".into(), &serde_json::Value::Null),
        "{:#}",
        runs(0)
    );
    assert_eq!(received_prompts(&sandbox)[1..], ["write-two"]);
    assert_eq!(sandbox.git(&["ls-tree", "--name-only", "proq/x"]), "a.txt\none\ntwo");
    assert_eq!(queued_messages(&sandbox), 0);
    sandbox.assert_healthy();
}

/// Promise: concurrency/message-to-running-agent
#[test]
fn orphaned_agent_ends_its_turn_without_new_messages() {
    let sandbox = start_waiting_agent("hold-a write-one");
    let _ = sandbox.proq(&["send", "x", "write-two"]).ok();
    kill_supervisor(&sandbox, "x");
    let pid = sandbox.last_run("x")["pid"].to_string();
    sandbox.write_pipe("a-go");
    wait_until("its end", || !sandbox.is_alive(&pid));
    assert_eq!(recorded_notes(&sandbox)[1], "ended");
    assert_eq!(queued_messages(&sandbox), 1);
    let _ = sandbox.proq(&["send", "x", "--wait"]).ok();
    assert_eq!(received_prompts(&sandbox)[1..], ["write-two"]);
    sandbox.assert_healthy();
}

#[test]
fn disabled_two_way_sends_one_plain_prompt() {
    let sandbox = Sandbox::new();
    write_user_config(&sandbox, "[agents.claude]\ncapabilities.two_way = false\n");
    let result = r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s"}"#;
    sandbox.program_verbatim(
        "claude",
        &format!("echo \"$*\" > \"$ROOT/notes\"; cat > \"$ROOT/heard\"; echo '{result}'"),
    );
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "claude", "do it"]).ok();
    assert!(!recorded_notes(&sandbox)[0].contains("--input-format"), "{:?}", recorded_notes(&sandbox));
    assert_eq!(std::fs::read_to_string(sandbox.root().join("heard")).unwrap(), "do it");
    let capabilities = |agent: &str| {
        let listing = sandbox.proq(&["agents", "--json"]).json();
        let all = listing["agents"].as_array().unwrap().clone();
        all.iter().find(|row| row["name"] == agent).unwrap()["capabilities"].to_string()
    };
    assert!(!capabilities("claude").contains("two-way") && capabilities("acp").contains("two-way"));
}

#[test]
fn agent_over_budget_receives_no_message() {
    let sandbox = start_waiting_agent_with("hold-a write-one", &["--budget", "0.01"]);
    let _ = sandbox.proq(&["send", "x", "write-two"]).ok();
    sandbox.write_pipe("a-go");
    let out = sandbox.proq(&["wait", "x"]).ok();
    assert!(out.contains("it has used up its budget"), "{out}");
    assert_eq!((received_prompts(&sandbox).len(), queued_messages(&sandbox)), (1, 1));
    assert_eq!((recorded_notes(&sandbox).len(), sandbox.last_run("x")["class"].as_str()), (2, Some("done")));
}

/// Promise: agent-requests/prompt-is-no-command
#[test]
fn message_is_not_read_as_slash_command() {
    let sandbox = start_waiting_agent("hold-a");
    let _ = sandbox.proq(&["send", "x", "/compact it"]).ok();
    sandbox.write_pipe("a-go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(received_prompts(&sandbox)[1..], ["# Task\n\n/compact it"]);
    assert_eq!(recorded_notes(&sandbox).iter().filter(|note| note.starts_with("started")).count(), 1);
}
