//! `git proq open`: path, shell and editor.

use proq_test_kit::Sandbox;

#[test]
fn prints_the_path_without_a_terminal() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    let path = "[ROOT]/repo/.proq-worktrees/x";
    for args in [&["open", "x"][..], &["open", "x", "--path"]] {
        assert_eq!(sandbox.proq(args).ok(), format!("{path}\n"));
    }
    let out = sandbox.proq(&["open", "x", "--json"]).json();
    assert_eq!((&out["lane"], out["path"].as_str()), (&"x".into(), Some(path)));
    std::fs::remove_dir_all(sandbox.lane_path("x")).unwrap();
    insta::assert_snapshot!(sandbox.proq(&["open", "x"]).fails(1), @r"
    error: cannot open lane 'x': its worktree [ROOT]/repo/.proq-worktrees/x does not exist
    hint: see how to repair it: git proq doctor
    ");
}

#[test]
fn shell_starts_in_the_worktree_without_git_variables() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox
        .program("my-shell", "pwd > \"$ROOT/shell\"; echo \"${GIT_DIR-unset}\" >> \"$ROOT/shell\"; exit 3");
    let mut command = sandbox.proq_command(&sandbox.repo, &["open", "x", "--shell"]);
    command.env("SHELL", sandbox.root().join("bin/my-shell")).env("GIT_DIR", sandbox.repo.join(".git"));
    let _ = sandbox.output(command).ok();
    let seen = std::fs::read_to_string(sandbox.root().join("shell")).unwrap();
    assert_eq!(seen, format!("{}\nunset\n", sandbox.lane_path("x").display()));
}

#[test]
fn editor_is_a_command_line_from_settings_or_environment() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.program("my-editor", "printf '%s\\n' \"$@\" > \"$ROOT/edited\"");
    let open = |variables: &[(&str, &str)]| {
        let mut command = sandbox.proq_command(&sandbox.repo, &["open", "x", "--editor"]);
        command.env_remove("GIT_EDITOR").env_remove("VISUAL").env_remove("EDITOR");
        command.envs(variables.iter().copied());
        sandbox.output(command)
    };
    let edited = || std::fs::read_to_string(sandbox.root().join("edited")).unwrap();
    let path = sandbox.lane_path("x");
    let path = path.display();
    assert!(open(&[]).fails(1).contains("no editor is set"));
    let _ = open(&[("EDITOR", "false"), ("VISUAL", "my-editor --wait")]).ok();
    assert_eq!(edited(), format!("--wait\n{path}\n"));
    assert!(open(&[("EDITOR", "false")]).fails(1).contains("the editor failed: false"));
    let _ = sandbox.proq(&["config", "set", "open.editor", "my-editor -n"]).ok();
    let _ = open(&[("EDITOR", "false")]).ok();
    assert_eq!(edited(), format!("-n\n{path}\n"));
}
