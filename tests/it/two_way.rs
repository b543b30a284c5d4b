//! Owns the tests of telling an agent more that reads one prompt after the other on its standard input.

use super::profiles::configure;
use super::stop::kill_supervisor;
use super::support::Sandbox;
use super::support::patience::wait_until;

/// An agent that takes what it is told line by line, does what the words in it say, and tells what its session has used so far.
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

/// That agent as `claude`, at work in lane `x` until a word comes in the pipe `a-go`.
fn at_work(task: &str) -> Sandbox {
    at_work_with(task, &[])
}

/// The same with these options.
fn at_work_with(task: &str, options: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program_as_it_is("claude", AGENT);
    sandbox.git(&["config", "proq.agent.crashRetries", "0"]);
    for pipe in ["a-up", "a-go", "b-up", "b-go"] {
        sandbox.pipe(pipe);
    }
    let _ = sandbox.proq(&[&["spawn", "-n", "x", "claude", task], options].concat()).ok();
    sandbox.hear("a-up");
    sandbox
}

/// What it was told, in the order in which it was.
fn told(sandbox: &Sandbox) -> Vec<String> {
    let lines = std::fs::read_to_string(sandbox.root().join("lines")).unwrap();
    let text = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&message["type"], &message["message"]["role"]), (&"user".into(), &"user".into()));
        message["message"]["content"].as_str().unwrap().to_owned()
    };
    lines.lines().map(text).collect()
}

fn notes(sandbox: &Sandbox) -> Vec<String> {
    let notes = std::fs::read_to_string(sandbox.root().join("notes")).unwrap();
    notes.lines().map(ToOwned::to_owned).collect()
}

fn waiting(sandbox: &Sandbox) -> usize {
    let shown = sandbox.proq(&["show", "x", "--json"]).json();
    shown["waiting"].as_array().map_or(0, Vec::len)
}

/// Kills the agent, as nobody who is asked can be.
fn kill_agent(sandbox: &Sandbox) {
    let pid = sandbox.last_run("x")["pid"].to_string();
    sandbox.sh(&format!("kill -9 {pid}"));
}

#[test]
fn what_is_sent_goes_to_the_same_process_when_its_turn_has_ended() {
    let sandbox = at_work("hold-a write-one");
    let kept = sandbox.proq(&["send", "x", "write-two \"quoted\"\n\\ é"]).ok();
    assert_eq!(kept, "kept for 'x' until its agent's turn has ended\n");
    let _ = sandbox.proq(&["send", "x", "hold-b write-three"]).ok();
    sandbox.tell("a-go");
    sandbox.hear("b-up");
    // While that is done, there is a third time.
    let _ = sandbox.proq(&["send", "x", "write-four"]).ok();
    sandbox.tell("b-go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(notes(&sandbox).len(), 2, "{:?}", notes(&sandbox));
    assert_eq!(notes(&sandbox)[1], "ended");
    assert!(told(&sandbox)[0].contains("hold-a write-one"));
    assert_eq!(told(&sandbox)[1..], ["write-two \"quoted\"\n\\ é\n\nhold-b write-three", "write-four"]);
    let run = sandbox.last_run("x");
    let (attempt, times, class) = (&run["attempt"], &run["told"], &run["class"]);
    assert_eq!((attempt, times, class), (&1.into(), &2.into(), &"done".into()), "{run:#}");
    // The session counts on from turn to turn, and the number of turns does not.
    assert_eq!(run["account"]["tokens"]["input"], 300);
    assert_eq!(run["account"]["cost"]["nanos"], 30_000_000);
    assert_eq!(run["account"]["turns"], 6);
    assert_eq!(run["account"]["answer"], "Turn 3");
    assert_eq!(sandbox.git(&["ls-tree", "--name-only", "proq/x"]), "a.txt\nfour\none\nthree\ntwo");
    assert_eq!(waiting(&sandbox), 0);
    assert_eq!(sandbox.events("agent.told").len(), 2);
    let logs = sandbox.proq(&["logs", "x"]).ok();
    assert!(logs.contains("< told more: write-two") && logs.contains("< told more: write-four\n"), "{logs}");
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("told more 2 times while it was at work"), "{shown}");
    let prompt = sandbox.proq(&["show", "x", "--prompt"]).ok();
    assert!(prompt.contains("hold-a write-one") && prompt.ends_with("write-four\n"), "{prompt}");
    // Nobody reads any more: what is sent now begins the next run, in the same session.
    let _ = sandbox.proq(&["send", "x", "write-five", "--wait"]).ok();
    assert_eq!(sandbox.last_run("x")["attempt"], 2);
    assert!(notes(&sandbox)[2].contains("--resume s"), "{:?}", notes(&sandbox));
    sandbox.assert_healthy();
}

#[test]
fn a_message_that_an_agent_has_is_not_told_again_when_it_is_killed() {
    let sandbox = at_work("hold-a");
    let _ = sandbox.proq(&["send", "x", "says hold-b"]).ok();
    sandbox.tell("a-go");
    sandbox.hear("b-up");
    wait_until("it has the message", || waiting(&sandbox) == 0);
    kill_agent(&sandbox);
    let _ = sandbox.proq(&["wait", "x"]).fails(4);
    assert_eq!(sandbox.last_run("x")["class"], "crashed");
    assert!(sandbox.proq(&["send", "x"]).fails(1).contains("nothing waits"));
    assert_eq!(told(&sandbox).len(), 2);
    sandbox.assert_healthy();
}

#[test]
fn a_message_that_an_agent_may_not_have_is_told_again_when_it_is_killed() {
    let sandbox = at_work("hold-a");
    let _ = sandbox.proq(&["send", "x", "hold-b write-two"]).ok();
    sandbox.tell("a-go");
    sandbox.hear("b-up");
    assert_eq!(waiting(&sandbox), 1);
    kill_agent(&sandbox);
    let _ = sandbox.proq(&["wait", "x"]).fails(4);
    assert_eq!(waiting(&sandbox), 1);
    let _ = sandbox.proq(&["send", "x"]).ok();
    sandbox.hear("b-up");
    sandbox.tell("b-go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(told(&sandbox)[2], "hold-b write-two");
    assert_eq!(sandbox.git(&["show", "proq/x:two"]), "text");
    assert_eq!(waiting(&sandbox), 0);
    sandbox.assert_healthy();
}

#[test]
fn an_agent_that_ends_without_having_read_on_has_ended_well_and_is_told_in_its_next_run() {
    let sandbox = at_work("hold-a deaf write-one");
    let _ = sandbox.proq(&["send", "x", "write-two"]).ok();
    sandbox.tell("a-go");
    // It is on its way to it by now.
    wait_until("its log has the message", || {
        sandbox.proq(&["logs", "x"]).ok().contains("< told more: write-two")
    });
    sandbox.tell("b-go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    let runs = |n: usize| sandbox.proq(&["show", "x", "--json"]).json()["runs"][n].clone();
    assert_eq!(sandbox.last_run("x")["attempt"], 2, "{:#}", runs(0));
    assert_eq!(
        (&runs(0)["class"], &runs(0)["told"]),
        (&"done".into(), &serde_json::Value::Null),
        "{:#}",
        runs(0)
    );
    assert_eq!(told(&sandbox)[1..], ["write-two"]);
    assert_eq!(sandbox.git(&["ls-tree", "--name-only", "proq/x"]), "a.txt\none\ntwo");
    assert_eq!(waiting(&sandbox), 0);
    sandbox.assert_healthy();
}

#[test]
fn without_its_supervisor_an_agent_ends_its_turn_and_is_told_nothing_more() {
    let sandbox = at_work("hold-a write-one");
    let _ = sandbox.proq(&["send", "x", "write-two"]).ok();
    kill_supervisor(&sandbox, "x");
    let pid = sandbox.last_run("x")["pid"].to_string();
    sandbox.tell("a-go");
    wait_until("its end", || !sandbox.lives(&pid));
    assert_eq!(notes(&sandbox)[1], "ended");
    assert_eq!(waiting(&sandbox), 1);
    let _ = sandbox.proq(&["send", "x", "--wait"]).ok();
    assert_eq!(told(&sandbox)[1..], ["write-two"]);
    sandbox.assert_healthy();
}

#[test]
fn where_it_is_not_wanted_an_agent_gets_one_prompt_as_text_and_the_end_of_its_input() {
    let sandbox = Sandbox::new();
    configure(&sandbox, "[agents.claude]\ncapabilities.two_way = false\n");
    let result = r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s"}"#;
    sandbox.program_as_it_is(
        "claude",
        &format!("echo \"$*\" > \"$ROOT/notes\"; cat > \"$ROOT/heard\"; echo '{result}'"),
    );
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "claude", "do it"]).ok();
    assert!(!notes(&sandbox)[0].contains("--input-format"), "{:?}", notes(&sandbox));
    assert_eq!(std::fs::read_to_string(sandbox.root().join("heard")).unwrap(), "do it");
    let capabilities = |agent: &str| {
        let known = sandbox.proq(&["agents", "--json"]).json();
        let all = known["agents"].as_array().unwrap().clone();
        all.iter().find(|row| row["name"] == agent).unwrap()["capabilities"].to_string()
    };
    assert!(!capabilities("claude").contains("two-way") && capabilities("acp").contains("two-way"));
}

#[test]
fn one_that_has_cost_all_that_it_may_is_told_nothing_more() {
    let sandbox = at_work_with("hold-a write-one", &["--budget", "0.01"]);
    let _ = sandbox.proq(&["send", "x", "write-two"]).ok();
    sandbox.tell("a-go");
    let out = sandbox.proq(&["wait", "x"]).ok();
    assert!(out.contains("it has cost all that it may"), "{out}");
    assert_eq!((told(&sandbox).len(), waiting(&sandbox)), (1, 1));
    assert_eq!((notes(&sandbox).len(), sandbox.last_run("x")["class"].as_str()), (2, Some("done")));
}

#[test]
fn what_it_is_told_in_the_same_run_is_no_command_of_its_own() {
    let sandbox = at_work("hold-a");
    let _ = sandbox.proq(&["send", "x", "/compact it"]).ok();
    sandbox.tell("a-go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(told(&sandbox)[1..], ["# Task\n\n/compact it"]);
    assert_eq!(notes(&sandbox).iter().filter(|note| note.starts_with("started")).count(), 1);
}
