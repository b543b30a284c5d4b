//! Files attached to a follow-up message.

use proq_test_kit::Sandbox;
use proq_test_kit::claude::sandbox_with_claude;

/// Returns a sandbox with a lane `x` whose agent has finished.
fn sandbox_with_finished_run() -> Sandbox {
    let sandbox = sandbox_with_claude("begin; echo $n >> work; well");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "claude", "do it"]).ok();
    sandbox.write("notes/plan.md", "the plan\n");
    sandbox.write("a b.png", "a picture\n");
    sandbox
}

/// Returns the paths of the attached files that a prompt lists after the message.
fn attached_paths(prompt: &str, message: &str) -> Vec<String> {
    let file_list =
        prompt.strip_prefix(&format!("{message}\n\nThese files are attached. Read them at these paths:\n\n"));
    let lines = file_list.unwrap_or_else(|| panic!("{prompt}")).lines();
    lines.map(|line| line.strip_prefix("- ").unwrap().to_owned()).collect()
}

fn saved_attachments(sandbox: &Sandbox) -> usize {
    let dir = sandbox.repo.join(".git/proq/lanes/x/said-files");
    std::fs::read_dir(dir).map_or(0, Iterator::count)
}

#[test]
fn send_delivers_attached_files() {
    let sandbox = sandbox_with_finished_run();
    let send = ["send", "x", "like this", "--attach", "plan.md", "--attach", "../a b.png", "--wait"];
    let _ = sandbox.proq_in(&sandbox.repo.join("notes"), &send).ok();
    std::fs::write(sandbox.repo.join("notes/plan.md"), "changed\n").unwrap();
    let files = attached_paths(&sandbox.agent_record("prompt.2"), "like this");
    assert!(files[0].ends_with("/a b.png") && files[1].ends_with("/plan.md"), "{files:?}");
    assert_eq!(std::fs::read_to_string(&files[1]).unwrap(), "the plan\n");
    // Later messages may attach files with the same names.
    let _ = sandbox.proq(&["send", "x", "rather", "--attach", "notes/plan.md", "--wait"]).ok();
    let again = attached_paths(&sandbox.agent_record("prompt.3"), "rather");
    assert_ne!(again[0], files[1]);
    assert_eq!(std::fs::read_to_string(&again[0]).unwrap(), "changed\n");
    assert_eq!(saved_attachments(&sandbox), 2);
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert!(!std::path::Path::new(&files[1]).exists());
}

#[test]
fn run_passes_attached_files_to_next_agent() {
    let sandbox = sandbox_with_finished_run();
    let run = ["run", "x", "claude", "look at it", "--attach", "notes/plan.md", "--wait"];
    let _ = sandbox.proq(&run).ok();
    assert_eq!(attached_paths(&sandbox.agent_record("prompt.2"), "look at it").len(), 1);
}

#[test]
fn unsent_message_leaves_no_attachments() {
    let sandbox = sandbox_with_finished_run();
    insta::assert_snapshot!(sandbox.proq(&["send", "x", "--attach", "notes/plan.md"]).to_text(), @r#"
    --- stderr
    error: attachments need a text that they belong to
    hint: for example: git proq send payments "it looks like this" --attachment sketch.png
    --- code 2
    "#);
    insta::assert_snapshot!(sandbox.proq(&["send", "x", "more", "--attach", "none.md"]).to_text(), @r"
    --- stderr
    error: cannot read none.md: there is no such file; nothing was changed
    hint: list the files of that folder: ls -A [ROOT]/repo
    --- code 1
    ");
    sandbox.sh("mkfifo pipe");
    insta::assert_snapshot!(sandbox.proq(&["send", "x", "more", "--attach", "pipe"]).to_text(), @r"
    --- stderr
    error: cannot read pipe
      caused by: it is a pipe, not a regular file
    --- code 1
    ");
    let stdout = sandbox.proq(&["send", "x", "more", "--attach", "notes/plan.md", "--dry-run"]).ok();
    assert!(stdout.starts_with("would be sent"), "{stdout}");
    assert_eq!(saved_attachments(&sandbox), 0);
    // Attachments of a message that cannot be delivered are removed again.
    sandbox.sh("rm \"$ROOT/bin/claude\"");
    let mut command =
        sandbox.proq_command(&sandbox.repo, &["send", "x", "more", "--attach", "notes/plan.md"]);
    command.env("PATH", sandbox.path_without_agents(&[]));
    let _ = sandbox.output(command).fails(1);
    assert_eq!(saved_attachments(&sandbox), 0);
    sandbox.assert_healthy();
}
