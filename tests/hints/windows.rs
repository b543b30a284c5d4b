//! Hints about tmux windows of agents, about lanes without one, and on the user's terminal.

use proq_test_kit::Sandbox;
use proq_test_kit::plans::install_worker;
use proq_test_kit::tmux::{TmuxSandbox, UserTerminal};
use proq_test_kit::waiting::{wait_for, wait_until};

use crate::scenes::play;

/// Follows a hint on the user's terminal: it shows the window of lane `x`, a line typed there reaches the
/// agent, and detaching from the window ends the command.
fn follow_into_window(screen: &TmuxSandbox, printed: &str, purpose: &str) {
    let command = screen.0.hint_command(printed, purpose);
    let left = screen.0.root().join("left");
    let terminal = UserTerminal::open(screen, &format!("{command}; echo $? > \"$ROOT/left\""));
    let clients = || screen.tmux(&["list-clients", "-F", "#{session_name} #{window_name}"]).stdout;
    wait_until("the user in the window", || clients() == "proq-repo x\n");
    terminal.type_line_to_agent("echo typed > typed.txt");
    assert_eq!(std::fs::read_to_string(screen.0.lane_path("x").join("typed.txt")).unwrap(), "typed\n");
    let _ = screen.tmux(&["detach-client", "-s", "=proq-repo"]).ok();
    let is_complete = |text: &String| text.ends_with('\n');
    let code = wait_for("its exit code", || std::fs::read_to_string(&left).ok().filter(is_complete));
    assert_eq!(code, "0\n");
}

#[test]
fn hint_to_open_the_window_of_a_new_run_works() {
    let screen = TmuxSandbox::new();
    let started = screen.proq(&["spawn", "--tmux", "-n", "x", "claude", "do it"]);
    drop(screen.0.read_pipe("up"));
    follow_into_window(&screen, &started.stderr, "open its window");
}

#[test]
fn hint_to_type_a_message_in_the_window_works() {
    let screen = TmuxSandbox::new();
    let _ = screen.start("do it");
    let refused = screen.proq(&["send", "x", "more"]).fails(1);
    follow_into_window(&screen, &refused, "type your message there");
}

#[test]
fn hint_to_follow_a_run_without_a_window_works() {
    play(&[[
        "mkfifo p; git proq spawn -n b -- sh -c 'read x < ../../p; echo seen'",
        "git proq attach b; echo > p",
        "follow its output",
        "seen",
        "test \"$(git proq wait b)\" = 'b: no-change'",
    ]]);
}

#[test]
fn hint_to_open_a_shell_without_a_window_works() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("b", "true");
    sandbox.program_verbatim("my-shell", "pwd > \"$ROOT/opened\"");
    let refused = sandbox.proq(&["attach", "b"]).fails(1);
    let mut command = sandbox.command("sh", &sandbox.repo);
    command.args(["-c", &sandbox.hint_command(&refused, "open a shell in its worktree")]);
    command.env("SHELL", sandbox.root().join("bin/my-shell"));
    let _ = sandbox.output(command).ok();
    let opened = std::fs::read_to_string(sandbox.root().join("opened")).unwrap();
    assert_eq!(opened.trim_end(), sandbox.lane_path("b").to_str().unwrap());
}

#[test]
fn hint_after_leaving_a_batch_stays_on_the_screen() {
    let screen = TmuxSandbox::new();
    screen.0.pipe("go");
    install_worker(&screen.0, "read x < \"$ROOT/go\"");
    screen.0.write("plan.toml", "format = 1\nagent = \"worker\"\n[[task]]\nid = \"one\"\ntitle = \"One\"\n");
    // git waits for git-proq and then ends by the signal, which would end a shell without the trap, too.
    let line = "trap : INT; sh -c 'echo $$ > \"$ROOT/git\"; exec git proq swarm plan.toml --yes'; echo ended; exec cat";
    let terminal = UserTerminal::open(&screen, line);
    let _ = terminal.wait_for_text("running");
    // git passes the signal on to git-proq, which has it already: here, when the question is on the screen.
    screen.0.sh("kill -STOP $(cat \"$ROOT/git\")");
    terminal.press(&["C-c"]);
    let _ = terminal.wait_for_text("[p/l/N]");
    screen.0.sh("kill -CONT $(cat \"$ROOT/git\")");
    terminal.press(&["l", "Enter"]);
    let left = terminal.wait_for_text("ended");
    let end: Vec<&str> = left.trim_end().lines().rev().take(2).collect();
    assert!(end[0] == "ended" && end[1].starts_with("hint: it continues; follow it again: "), "{left}");
    drop(terminal);
    let command = screen.0.hint_command(&left, "it continues; follow it again");
    let terminal = UserTerminal::open(&screen, &format!("{command}; echo ended $?; exec cat"));
    let _ = terminal.wait_for_text("running");
    screen.0.write_pipe("go");
    let followed = terminal.wait_for_text("ended");
    assert!(
        followed.contains("is complete: 1 of 1 task landed") && followed.contains("ended 0"),
        "{followed}"
    );
}
