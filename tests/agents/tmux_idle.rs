//! Tests of agents in windows whose turn has ended: when their lane is done, how it lands, and that no lane
//! lands under a working agent.

use std::time::Duration;

use proq_test_kit::tmux::TmuxSandbox;
use proq_test_kit::waiting::{WAIT_LIMIT, assert_no_wakeups, wait_within};

/// Returns a shell command that sends one of the agent's hook events.
fn hook_event(event: &str) -> String {
    format!("echo '{{}}' | \"$PROQ_PROGRAM\" _agent-event {event}")
}

/// Starts lane `x` whose agent has committed `one.txt` and ended its turn. Returns the agent's process id.
fn start_idle_agent(screen: &TmuxSandbox) -> String {
    let agent = screen.start("do it");
    assert_eq!(screen.0.started_row("x")["state"], "running");
    screen.type_line("echo one > one.txt; git add one.txt; git commit -qm one");
    screen.type_line(&hook_event("stop"));
    agent
}

fn assert_state(screen: &TmuxSandbox, state: &str, detail: &str) {
    let row = screen.0.row("x");
    assert_eq!((&row["state"], row["detail"].as_str().unwrap_or_default()), (&state.into(), detail));
}

/// Promise: concurrency/tmux-idle
#[test]
fn lane_is_done_only_while_agent_is_idle_and_committed() {
    let screen = TmuxSandbox::new();
    let _ = screen.start("do it");
    screen.type_line(&hook_event("stop"));
    assert_state(&screen, "running", "idle");
    screen.type_line("echo one > one.txt");
    assert_state(&screen, "running", "idle");
    screen.type_line("git add one.txt; git commit -qm one");
    assert_state(&screen, "done", "its agent is idle in its window");
    assert_eq!(screen.proq(&["show", "x", "--json"]).json()["current_state"], "done");
    assert!(screen.proq(&["show", "x"]).ok().contains("idle, in a window of tmux"));
    assert_eq!(screen.proq(&["wait", "x"]).ok(), "x: done (its agent is idle in its window)\n");
    screen.type_line(&hook_event("prompt"));
    assert_state(&screen, "running", "");
    assert_eq!(screen.proq(&["wait", "x", "--timeout", "0"]).code, 5);
    screen.type_line(&hook_event("stop"));
    assert_state(&screen, "done", "its agent is idle in its window");
    screen.type_line("echo left > left.txt");
    assert_state(&screen, "running", "idle");
    screen.type_line(
        "rm left.txt; git checkout -q --detach; echo more > two.txt; git add two.txt; git commit -qm two",
    );
    assert_state(&screen, "running", "idle");
}

#[test]
fn wait_returns_when_the_turn_has_ended() {
    let screen = TmuxSandbox::new();
    let _ = screen.start("do it");
    let mut wait = screen.command(&["wait", "x"]);
    let wait = wait.stdout(std::process::Stdio::piped()).spawn().unwrap();
    screen.type_line("echo one > one.txt; git add one.txt; git commit -qm one");
    screen.type_line(&hook_event("stop"));
    let out = wait.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(out.stdout).unwrap(), "x: done (its agent is idle in its window)\n");
}

/// Only a file of the worktree changes, and `wait` does not poll it.
#[test]
fn wait_returns_when_the_worktree_of_an_idle_agent_is_clean() {
    let screen = TmuxSandbox::new();
    let _ = start_idle_agent(&screen);
    screen.0.write_in(&screen.0.lane_path("x"), "new/left.txt", "left\n");
    assert_state(&screen, "running", "idle");
    let mut wait = screen.command(&["wait", "x"]);
    let wait = wait.stdout(std::process::Stdio::piped()).spawn().unwrap();
    assert_no_wakeups(&[wait.id().to_string()]);
    std::fs::remove_file(screen.0.lane_path("x").join("new/left.txt")).unwrap();
    let out = wait.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(out.stdout).unwrap(), "x: done (its agent is idle in its window)\n");
}

/// Promise: concurrency/tmux-idle
#[test]
fn idle_agent_lands_with_merge_stop() {
    let screen = TmuxSandbox::new();
    let agent = start_idle_agent(&screen);
    insta::assert_snapshot!(screen.proq(&["merge", "x"]).to_text(), @r"
    refused x: it is done, and its agent is idle in its window
    --- stderr
    hint: end its session and merge it: git proq merge --stop x
    --- code 1
    ");
    insta::assert_snapshot!(screen.proq(&["merge", "--all"]).to_text(), @"
    nothing to land
    --- stderr
    skipped x: it is done, and its agent is idle in its window; to end its session and merge it: git proq merge --stop x
    --- code 0
    ");
    let _ = screen.proq(&["discard", "x"]).fails(1);
    assert!(screen.0.is_alive(&agent));
    let out = screen.proq(&["merge", "--stop", "x"]);
    assert!(out.stdout.starts_with("landed x on main ("), "{}", out.to_text());
    assert!(!screen.0.is_alive(&agent));
    let _ = screen.tmux(&["has-session", "-t", "=proq-repo"]).fails(1);
    assert_eq!(screen.0.git(&["show", "main:one.txt"]), "one");
    screen.0.assert_healthy();
}

#[test]
fn session_ended_while_idle_leaves_done_lane() {
    for how in ["stop", "close"] {
        let screen = TmuxSandbox::new();
        let agent = start_idle_agent(&screen);
        match how {
            "stop" => drop(screen.proq(&["stop", "x"]).ok()),
            _ => drop(screen.tmux(&["kill-window", "-t", "=proq-repo:x"]).ok()),
        }
        // For a moment after its window was closed, the agent may still appear idle.
        let ended = "x: done (its session was ended while it was idle)\n";
        let wait = || screen.proq(&["wait", "x"]);
        wait_within(WAIT_LIMIT, || wait().to_text(), || (wait().ok() == ended).then_some(()));
        assert!(!screen.0.is_alive(&agent));
        let _ = screen.proq(&["merge", "x"]).ok();
        assert_eq!(screen.0.git(&["show", "main:one.txt"]), "one");
    }
}

/// Promise: concurrency/tmux-idle
#[test]
fn session_stopped_while_working_is_not_done() {
    let screen = TmuxSandbox::new();
    let _ = start_idle_agent(&screen);
    screen.type_line(&hook_event("prompt"));
    assert_eq!(screen.proq(&["stop", "x"]).code, 0);
    assert_eq!(screen.0.row("x")["state"], "stopped");
    let _ = screen.proq(&["merge", "x"]).fails(1);
}

/// Promise: concurrency/tmux-idle
#[test]
fn merge_confirms_on_terminal_and_spares_working_agent() {
    for (answer, resumes, lands) in [("y", false, true), ("n", false, false), ("y", true, false)] {
        let screen = TmuxSandbox::new();
        let agent = start_idle_agent(&screen);
        screen.0.pipe("over");
        let repo = screen.0.repo.to_str().unwrap();
        let command = "TERM=screen git-proq merge x > \"$ROOT/said\"; echo $? > \"$ROOT/over\"";
        let _ = screen.tmux(&["new-window", "-d", "-n", "me", "-c", repo, "-t", "=proq-repo:", command]).ok();
        let shown = || screen.tmux(&["capture-pane", "-p", "-J", "-t", "=proq-repo:me"]).stdout;
        let output = || std::fs::read_to_string(screen.0.root().join("said")).unwrap_or_default();
        wait_within(Duration::from_secs(30), output, || shown().contains("merge it? [y/N]").then_some(()));
        if resumes {
            screen.type_line(&hook_event("prompt"));
        }
        let _ = screen.tmux(&["send-keys", "-t", "=proq-repo:me", answer, "Enter"]).ok();
        assert_eq!(screen.0.read_pipe("over").trim(), if lands { "0" } else { "1" }, "{answer} {resumes}");
        assert_eq!(screen.0.is_alive(&agent), !lands);
        assert_eq!(screen.0.repo.join("one.txt").exists(), lands);
    }
}

#[test]
fn session_from_plugin_event_can_be_resumed() {
    let screen = TmuxSandbox::new();
    let plugin_event = |session: &str| {
        format!(
            "echo '{{\"ev\":\"agent_end\",\"piSession\":\"{session}\"}}' | \"$PROQ_PROGRAM\" _agent-event pi"
        )
    };
    let agent_end = "echo '{\"type\":\"agent_end\"}'";
    let script = format!(
        "printf '<%s>\\n' \"$@\" > \"$ROOT/heard\"; {}; {}; {agent_end}",
        plugin_event("0198-a"),
        plugin_event("--x y")
    );
    screen.0.program("pi", &script);
    let _ = screen.proq(&["spawn", "--tmux", "-n", "x", "pi", "do it"]).ok();
    let _ = screen.proq(&["wait", "x"]);
    assert_eq!(screen.proq(&["show", "x", "--json"]).json()["runs"][0]["account"]["session"], "0198-a");
    let _ = screen.proq(&["send", "x", "--wait", "more"]);
    let args = std::fs::read_to_string(screen.0.root().join("heard")).unwrap();
    assert!(args.ends_with("<--session>\n<0198-a>\n"), "{args}");
}

#[test]
fn prompt_outside_window_forbids_questions_once() {
    let screen = TmuxSandbox::new();
    let script = "[ \"$1\" = --version ] && { echo 0.61.0; exit 0; }; for last; do :; done
        case \" $* \" in *' --resume '*)
            echo \"{\\\"type\\\":\\\"init\\\",\\\"session_id\\\":\\\"$last\\\"}\"
            echo '{\"type\":\"result\",\"status\":\"success\"}' ;;
        esac";
    screen.0.program("gemini", script);
    let prompt = |run: u32| screen.0.read(&format!(".git/proq/lanes/x/runs/{run}.md"));
    let _ = screen.proq(&["spawn", "--tmux", "-n", "x", "gemini", "do it"]).ok();
    let _ = screen.proq(&["wait", "x"]);
    assert!(prompt(1).contains("ask if you cannot decide"), "{}", prompt(1));
    let _ = screen.proq(&["send", "x", "--wait", "more"]);
    let expected = "From now on: Nobody can answer questions: decide yourself and list your decisions in your final message.";
    assert_eq!(prompt(2).trim_end(), format!("more\n\n{expected}"));
    let _ = screen.proq(&["send", "x", "--wait", "again"]);
    assert_eq!(prompt(3).trim_end(), "again");
}
