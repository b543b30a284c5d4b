//! Owns the tests of agents in windows whose turn has ended: when their lane is done, how it lands, and that nothing lands under one that
//! works.

use std::time::Duration;

use super::support::patience::{PATIENCE, wait_within};
use super::tmux::Screen;

/// What a hook of the agent's says.
fn says(what: &str) -> String {
    format!("echo '{{}}' | \"$PROQ_PROGRAM\" _agent-event {what}")
}

/// A lane `x` whose agent has committed `one.txt` and ended its turn. Its process.
fn at_rest(screen: &Screen) -> String {
    let agent = screen.start("do it");
    assert_eq!(screen.0.started_row("x")["state"], "running");
    screen.types("echo one > one.txt; git add one.txt; git commit -qm one");
    screen.types(&says("stop"));
    agent
}

fn is(screen: &Screen, state: &str, detail: &str) {
    let row = screen.0.row("x");
    assert_eq!((&row["state"], row["detail"].as_str().unwrap_or_default()), (&state.into(), detail));
}

#[test]
fn a_lane_is_done_while_its_agent_is_idle_with_all_committed_and_at_no_other_time() {
    let screen = Screen::new();
    let _ = screen.start("do it");
    screen.types(&says("stop"));
    is(&screen, "running", "idle");
    screen.types("echo one > one.txt");
    is(&screen, "running", "idle");
    screen.types("git add one.txt; git commit -qm one");
    is(&screen, "done", "its agent is idle in its window");
    assert_eq!(screen.proq(&["show", "x", "--json"]).json()["current_state"], "done");
    assert!(screen.proq(&["show", "x"]).ok().contains("idle, in a window of tmux"));
    assert_eq!(screen.proq(&["wait", "x"]).ok(), "x: done (its agent is idle in its window)\n");
    screen.types(&says("prompt"));
    is(&screen, "running", "");
    assert_eq!(screen.proq(&["wait", "x", "--timeout", "0"]).code, 5);
    screen.types(&says("stop"));
    is(&screen, "done", "its agent is idle in its window");
    screen.types("echo left > left.txt");
    is(&screen, "running", "idle");
    screen.types(
        "rm left.txt; git checkout -q --detach; echo more > two.txt; git add two.txt; git commit -qm two",
    );
    is(&screen, "running", "idle");
}

#[test]
fn waiting_ends_when_the_agent_has_ended_its_turn() {
    let screen = Screen::new();
    let _ = screen.start("do it");
    let mut wait = screen.command(&["wait", "x"]);
    let wait = wait.stdout(std::process::Stdio::piped()).spawn().unwrap();
    screen.types("echo one > one.txt; git add one.txt; git commit -qm one");
    screen.types(&says("stop"));
    let out = wait.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(out.stdout).unwrap(), "x: done (its agent is idle in its window)\n");
}

#[test]
fn it_lands_when_its_session_may_be_ended() {
    let screen = Screen::new();
    let agent = at_rest(&screen);
    insta::assert_snapshot!(screen.proq(&["merge", "x"]).shown(), @r"
    refused x: it is done, and its agent is idle in its window
    --- stderr
    hint: end its session and land it: git proq merge x --stop
    --- code 1
    ");
    insta::assert_snapshot!(screen.proq(&["merge", "--all"]).shown(), @r"
    nothing to land
    --- stderr
    left out x: it is done, and its agent is idle in its window; git proq merge x --stop ends its session and lands it
    --- code 0
    ");
    let _ = screen.proq(&["discard", "x"]).fails(1);
    assert!(screen.0.lives(&agent));
    let out = screen.proq(&["merge", "x", "--stop"]);
    assert!(out.stdout.starts_with("landed x on main ("), "{}", out.shown());
    assert!(!screen.0.lives(&agent));
    let _ = screen.tmux(&["has-session", "-t", "=proq-repo"]).fails(1);
    assert_eq!(screen.0.git(&["show", "main:one.txt"]), "one");
    screen.0.assert_healthy();
}

#[test]
fn a_session_that_is_ended_at_rest_leaves_a_lane_that_is_done() {
    for end in ["stop", "close"] {
        let screen = Screen::new();
        let agent = at_rest(&screen);
        match end {
            "stop" => drop(screen.proq(&["stop", "x"]).ok()),
            _ => drop(screen.tmux(&["kill-window", "-t", "=proq-repo:x"]).ok()),
        }
        // It may be seen at rest still, a moment after its window was closed.
        let ended = "x: done (its session was ended while it was idle)\n";
        let said = || screen.proq(&["wait", "x"]);
        wait_within(PATIENCE, || said().shown(), || (said().ok() == ended).then_some(()));
        assert!(!screen.0.lives(&agent));
        let _ = screen.proq(&["merge", "x"]).ok();
        assert_eq!(screen.0.git(&["show", "main:one.txt"]), "one");
    }
}

#[test]
fn one_that_was_at_work_when_it_was_stopped_is_not_done() {
    let screen = Screen::new();
    let _ = at_rest(&screen);
    screen.types(&says("prompt"));
    assert_eq!(screen.proq(&["stop", "x"]).code, 0);
    assert_eq!(screen.0.row("x")["state"], "stopped");
    let _ = screen.proq(&["merge", "x"]).fails(1);
}

#[test]
fn on_a_terminal_it_is_asked_about_and_left_alone_when_it_works_again() {
    for (answer, works, lands) in [("y", false, true), ("n", false, false), ("y", true, false)] {
        let screen = Screen::new();
        let agent = at_rest(&screen);
        screen.0.pipe("over");
        let repo = screen.0.repo.to_str().unwrap();
        let command = "TERM=screen git-proq merge x > \"$ROOT/said\"; echo $? > \"$ROOT/over\"";
        let _ = screen.tmux(&["new-window", "-d", "-n", "me", "-c", repo, "-t", "=proq-repo:", command]).ok();
        let shown = || screen.tmux(&["capture-pane", "-p", "-J", "-t", "=proq-repo:me"]).stdout;
        let said = || std::fs::read_to_string(screen.0.root().join("said")).unwrap_or_default();
        wait_within(Duration::from_secs(30), said, || shown().contains("land it? [y/N]").then_some(()));
        if works {
            screen.types(&says("prompt"));
        }
        let _ = screen.tmux(&["send-keys", "-t", "=proq-repo:me", answer, "Enter"]).ok();
        assert_eq!(screen.0.hear("over").trim(), if lands { "0" } else { "1" }, "{answer} {works}");
        assert_eq!(screen.0.lives(&agent), !lands);
        assert_eq!(screen.0.repo.join("one.txt").exists(), lands);
    }
}

#[test]
fn a_session_that_only_its_plugin_tells_of_can_be_gone_on_with() {
    let screen = Screen::new();
    let says = |session: &str| {
        format!(
            "echo '{{\"ev\":\"agent_end\",\"piSession\":\"{session}\"}}' | \"$PROQ_PROGRAM\" _agent-event pi"
        )
    };
    let ends = "echo '{\"type\":\"agent_end\"}'";
    let script =
        format!("printf '<%s>\\n' \"$@\" > \"$ROOT/heard\"; {}; {}; {ends}", says("0198-a"), says("--x y"));
    screen.0.program("pi", &script);
    let _ = screen.proq(&["spawn", "--tmux", "-n", "x", "pi", "do it"]).ok();
    let _ = screen.proq(&["wait", "x"]);
    assert_eq!(screen.proq(&["show", "x", "--json"]).json()["runs"][0]["account"]["session"], "0198-a");
    let _ = screen.proq(&["send", "x", "--wait", "more"]);
    let heard = std::fs::read_to_string(screen.0.root().join("heard")).unwrap();
    assert!(heard.ends_with("<--session>\n<0198-a>\n"), "{heard}");
}

#[test]
fn who_may_ask_in_a_window_is_told_once_nobody_answers_any_more() {
    let screen = Screen::new();
    let script = "[ \"$1\" = --version ] && { echo 0.61.0; exit 0; }; for last; do :; done
        case \" $* \" in *' --resume '*)
            echo \"{\\\"type\\\":\\\"init\\\",\\\"session_id\\\":\\\"$last\\\"}\"
            echo '{\"type\":\"result\",\"status\":\"success\"}' ;;
        esac";
    screen.0.program("gemini", script);
    let prompt = |run: u32| screen.0.read(&format!(".git/proq/lanes/x/runs/{run}.md"));
    let _ = screen.proq(&["spawn", "--tmux", "-n", "x", "gemini", "do it"]).ok();
    let _ = screen.proq(&["wait", "x"]);
    assert!(prompt(1).contains("ask where you cannot decide"), "{}", prompt(1));
    let _ = screen.proq(&["send", "x", "--wait", "more"]);
    let now = "From now on: Nobody can answer questions: decide, and say at the end what you decided.";
    assert_eq!(prompt(2).trim_end(), format!("more\n\n{now}"));
    let _ = screen.proq(&["send", "x", "--wait", "again"]);
    assert_eq!(prompt(3).trim_end(), "again");
}
