//! Tests of dependencies that an agent proposes: validated, approved by the user, valid while the tasks are
//! unchanged.

use std::process::Stdio;

use proq_test_kit::Sandbox;
use proq_test_kit::claude::write_user_config;
use proq_test_kit::runs::{escape_messages, repository_state};
use proq_test_kit::waiting::KilledOnDrop;
use serde_json::{Value, json};

use super::plan_ai::{PLAN, prompt_of_start, sandbox_with_planner, set_agent_reply, start_count};

const TASKS: &str = "format = 1\n[[task]]\nid = 'a'\ntitle = 'A table'\n[[task]]\nid = 'b'\ntitle = 'A form'\nneeds = ['a']\n\
                     [[task]]\nid = 'c'\ntitle = 'A client'\nprompt = 'Calls the form.'\n[[task]]\nid = 'd'\ntitle = 'Docs'\ndone = true\n";

/// Answer of the agent; most of its dependencies are invalid.
const PROPOSED_DEPENDENCIES: &str = r#"These:
    [{"task": "c", "needs": "b", "because": "it calls the form"}, {"task": "a", "needs": "c"}, {"task": "b", "needs": "a"},
     {"task": "nowhere\u001b[2J", "needs": "a"}, {"task": "c", "needs": "c"}, {"task": "d", "needs": "a"},]"#;

fn planner_with_tasks(answer: &str) -> Sandbox {
    let sandbox = sandbox_with_planner(answer);
    sandbox.write("plan.toml", TASKS);
    sandbox
}

fn edges(sandbox: &Sandbox) -> Vec<(String, String)> {
    let answer = sandbox.proq(&["deps", "plan.toml", "--json"]).json();
    let edge = |edge: &Value| {
        (edge["task"].as_str().unwrap().to_owned(), edge["needs"].as_str().unwrap().to_owned())
    };
    answer["edges"].as_array().unwrap().iter().map(edge).collect()
}

fn pair(task: &str, needs: &str) -> (String, String) {
    (task.to_owned(), needs.to_owned())
}

/// Promise: strangers/agent-dependencies
#[test]
fn proposed_dependency_is_used_once_approved() {
    let sandbox = planner_with_tasks(PROPOSED_DEPENDENCIES);
    let before = repository_state(&sandbox);
    insta::assert_snapshot!(sandbox.proq(&["deps", "plan.toml", "--agent", "claude"]).to_text(), @r"
    Missing:
      c after b: it calls the form

    a A table
    └─ b A form
       └─ c A client (* says claude, not used)
    d Docs (done)
    --- stderr
    claude is searching for missing dependencies: lane 'which-dependencies'
    warning: not taken: 'b' already says that it needs 'a'
    warning: not taken: there is no task 'nowhere\u{1b}[2J'
    warning: not taken: 'c' cannot wait for itself
    warning: not taken: 'd' is done and waits for nothing
    warning: not taken: by claude: these tasks depend on each other: a -> c -> b -> a (one of them has to come first: for example, let 'b' not need 'a')
    error: cannot ask whether 1 dependency of claude's may be used: not a terminal; nothing was approved
    hint: approve it as it is: git proq deps --agent claude --yes plan.toml
    --- code 1
    ");
    assert_eq!(edges(&sandbox), [pair("b", "a")], "nobody has agreed");
    let prompt = prompt_of_start(&sandbox, 1);
    assert!(
        prompt.contains(r#""id":"c""#) && prompt.contains("Calls the form.") && !prompt.contains("Docs"),
        "{prompt}"
    );
    // The saved answer is used without another run.
    insta::assert_snapshot!(sandbox.proq(&["deps", "plan.toml", "--agent", "claude", "--yes"]).to_text(), @r"
    Missing:
      c after b: it calls the form

    a A table
    └─ b A form
       └─ c A client (* says claude, not used)
    d Docs (done)
    --- stderr
    reusing the answer of claude from 2026-01-02T03:04:05Z; --refresh requests a new one
    1 dependency found by claude approved for these tasks ($0.01)
    --- code 0
    ");
    assert_eq!((start_count(&sandbox), sandbox.read("plan.toml").as_str()), (1, TASKS));
    assert_eq!(repository_state(&sandbox), before);
    // The answer can still be shown after the lane was removed.
    assert_eq!(sandbox.proq(&["list", "--json"]).json()["lanes"], json!([]));
    assert!(sandbox.proq(&["show", "which-dependencies@1"]).ok().contains("it calls the form"));
    sandbox.assert_healthy();
}

#[test]
fn approved_dependency_is_marked_in_every_output() {
    let sandbox = planner_with_tasks(PROPOSED_DEPENDENCIES);
    let _ = sandbox.proq(&["deps", "plan.toml", "--agent", "claude", "--yes"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["deps", "plan.toml"]).to_text(), @r"
    a A table
    └─ b A form
       └─ c A client (* says claude)
    d Docs (done)
    --- code 0
    ");
    assert!(sandbox.proq(&["deps", "plan.toml", "--dot"]).ok().contains("\"b\" -> \"c\" [style=dashed];"));
    let shown = sandbox.proq(&["plan", "plan.toml"]).ok();
    assert!(
        shown.contains("Approved dependencies from an agent:\n  c after b, from claude: it calls the form"),
        "{shown}"
    );
    let answer = sandbox.proq(&["plan", "plan.toml", "--json"]).json();
    assert_eq!(answer["waves"], json!([["a"], ["b"], ["c"]]));
    assert_eq!(
        answer["proposed"],
        json!([{"task": "c", "needs": "b", "because": "it calls the form", "agent": "claude"}])
    );
    let answer = sandbox.proq(&["deps", "plan.toml", "--json"]).json();
    let edge = json!({"task": "c", "needs": "b", "why": "agent", "agent": "claude", "because": "it calls the form", "approved": true});
    assert_eq!(answer["edges"][1], edge);
}

/// Promise: strangers/agent-dependencies
#[test]
fn dependencies_hold_while_tasks_are_unchanged() {
    let sandbox = planner_with_tasks(PROPOSED_DEPENDENCIES);
    let args = ["deps", "plan.toml", "--agent", "claude", "--yes"];
    let _ = sandbox.proq(&args).ok();
    let all_edges = [pair("b", "a"), pair("c", "b")];
    assert_eq!(edges(&sandbox), all_edges);
    // Neither a done mark nor a comment in the file counts as a change of the tasks.
    sandbox.write(
        "plan.toml",
        &format!("# mine\n{}", TASKS.replace("title = 'A table'", "title = 'A table'\ndone = true")),
    );
    assert_eq!(edges(&sandbox), all_edges);
    sandbox.write("plan.toml", &TASKS.replace("Calls the form.", "Calls nobody."));
    assert_eq!(edges(&sandbox), [pair("b", "a")]);
    set_agent_reply(&sandbox, "say", "[]");
    assert!(sandbox.proq(&args).ok().starts_with("nothing is missing\n"));
    assert_eq!(start_count(&sandbox), 2);
    assert!(
        sandbox.proq(&["deps", "plan.toml", "--agent", "claude"]).ok().starts_with("nothing is missing\n")
    );
    assert_eq!(start_count(&sandbox), 2, "that nothing is missing is known");
    sandbox.write("plan.toml", TASKS);
    assert_eq!(edges(&sandbox), all_edges);
    let out = sandbox.proq(&["deps", "plan.toml", "--agent", "claude", "--refresh"]);
    assert!(out.stdout.starts_with("nothing is missing\n"), "{}", out.to_text());
    assert_eq!((start_count(&sandbox), edges(&sandbox)), (3, vec![pair("b", "a")]));
    set_agent_reply(&sandbox, "say", PROPOSED_DEPENDENCIES);
    let _ = sandbox.proq(&[&args[..], &["--refresh"]].concat()).ok();
    assert_eq!(edges(&sandbox), all_edges);
    assert_eq!(sandbox.proq(&["deps", "plan.toml", "--forget"]).ok(), "forgot what an agent found missing\n");
    assert_eq!(edges(&sandbox), [pair("b", "a")]);
    assert_eq!(sandbox.proq(&["deps", "plan.toml", "--forget", "--json"]).json()["forgotten"], false);
}

#[test]
fn failed_refresh_keeps_known_dependencies() {
    let sandbox = planner_with_tasks(PROPOSED_DEPENDENCIES);
    write_user_config(&sandbox, "agent.crash_retries = 0\n");
    let args = ["deps", "plan.toml", "--agent", "claude", "--yes"];
    let _ = sandbox.proq(&args).ok();
    sandbox.write_in(&sandbox.root(), "before", "exit 1\n");
    let output = sandbox.proq(&[&args[..], &["--refresh"]].concat()).fails(4);
    assert!(output.contains("claude did not produce a list of dependencies"), "{output}");
    assert_eq!(edges(&sandbox).len(), 2);
    let out = sandbox.proq(&args);
    assert!(out.stderr.contains("reusing the answer of claude"), "{}", out.to_text());
    // After a run without an answer the agent is started again.
    sandbox.write("plan.toml", &TASKS.replace("Calls the form.", "Calls it."));
    let _ = sandbox.proq(&args).fails(4);
    std::fs::remove_file(sandbox.root().join("before")).unwrap();
    let _ = sandbox.proq(&args).ok();
    assert_eq!(edges(&sandbox).len(), 2);
    // An identical proposal is already approved.
    let _ = sandbox.proq(&["deps", "plan.toml", "--agent", "claude", "--refresh"]).ok();
    assert_eq!(start_count(&sandbox), 5);
    sandbox.assert_healthy();
}

#[test]
fn task_folders_are_not_changed() {
    let sandbox = sandbox_with_planner(r#"[{"task": "x/T-2", "needs": "T-1"}]"#);
    sandbox.write("tasks/x/T-1-one/PROMPT.md", "# T-1: One\n");
    sandbox.write("tasks/x/T-2-two/PROMPT.md", "# T-2: Two\n");
    sandbox.commit_all("tasks");
    let _ = sandbox.proq(&["deps", "all", "--agent", "claude", "--yes"]).ok();
    assert_eq!(sandbox.proq(&["plan", "all", "--json"]).json()["waves"], json!([["x/T-1"], ["x/T-2"]]));
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    // The answer holds for exactly these folders, neither more nor fewer.
    sandbox.write("tasks/y/T-3-three/PROMPT.md", "# T-3: Three\n");
    assert_eq!(sandbox.proq(&["plan", "all", "--json"]).json()["waves"][0].as_array().unwrap().len(), 3);
    assert_eq!(sandbox.proq(&["plan", "x", "--json"]).json()["waves"], json!([["x/T-1"], ["x/T-2"]]));
}

#[test]
fn json_reports_whether_dependency_is_approved() {
    let sandbox = planner_with_tasks(PROPOSED_DEPENDENCIES);
    let args = ["deps", "plan.toml", "--agent", "claude", "--json"];
    let out = sandbox.proq(&args);
    assert_eq!((out.code, &out.json()["edges"][1]["approved"]), (1, &json!(false)));
    let out = sandbox.proq(&[&args[..], &["--yes"]].concat());
    assert_eq!((out.code, &out.json()["edges"][1]["approved"]), (0, &json!(true)));
    assert_eq!(start_count(&sandbox), 1);
    let mut command =
        sandbox.proq_command(&sandbox.repo, &["deps", "plan.toml", "--agent", "claude", "--yes"]);
    command.env("PROQ_LANE", "x");
    assert!(sandbox.output(command).fails(1).contains("only a person or the supervising agent may"));
}

#[test]
fn retries_invalid_answers_and_reports_failure() {
    let sandbox = planner_with_tasks(PROPOSED_DEPENDENCIES);
    set_agent_reply(&sandbox, "say.1", "[{\"task\": \"c\"}]");
    let out = sandbox.proq(&["deps", "plan.toml", "--agent", "claude", "--yes"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert!(
        out.stderr.contains(
            "the answer of claude is not a list of dependencies; asking again: $[0] has no text 'needs'"
        ),
        "{}",
        out.stderr
    );
    assert!(
        prompt_of_start(&sandbox, 2)
            .starts_with("Your answer is not valid: $[0] has no text 'needs', the ID of a task\n")
    );
    let sandbox = planner_with_tasks("None that I know of.");
    insta::assert_snapshot!(sandbox.proq(&["deps", "plan.toml", "--agent", "claude", "--yes"]).to_text(), @r"
    --- stderr
    claude is searching for missing dependencies: lane 'which-dependencies'
    the answer of claude is not a list of dependencies; asking again: it has no JSON
    the answer of claude is not a list of dependencies; asking again: it has no JSON
    error: claude did not produce a list of dependencies: it has no JSON
    hint: read its answer: cat '[ROOT]/repo/.git/proq/lanes/which-dependencies/runs/3.answer.md'
    hint: read its log: git proq logs which-dependencies
    --- code 4
    ");
    assert_eq!((start_count(&sandbox), edges(&sandbox)), (3, vec![pair("b", "a")]));
    // An invalid answer is not saved, so the agent is started again.
    set_agent_reply(&sandbox, "say", PROPOSED_DEPENDENCIES);
    let _ = sandbox.proq(&["deps", "plan.toml", "--agent", "claude", "--yes"]).ok();
    assert_eq!(edges(&sandbox).len(), 2);
    sandbox.assert_healthy();
}

#[test]
fn answer_survives_a_killed_deps_command() {
    let sandbox = planner_with_tasks(PROPOSED_DEPENDENCIES);
    sandbox.pipe("up");
    sandbox.pipe("go");
    sandbox.write_in(
        &sandbox.root(),
        "before",
        "echo up > \"$ROOT/up\"; read line < \"$ROOT/go\"; echo new > new.txt\n",
    );
    let args = ["deps", "plan.toml", "--agent", "claude", "--yes"];
    let mut command = sandbox.proq_command(&sandbox.repo, &args);
    let mut deps_command = KilledOnDrop(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    sandbox.read_pipe("up");
    deps_command.0.kill().unwrap();
    let _ = deps_command.exit_code();
    assert_eq!(edges(&sandbox), [pair("b", "a")]);
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait"]).ok();
    let _ = sandbox.proq(&args).ok();
    assert_eq!((start_count(&sandbox), edges(&sandbox).len()), (1, 2));
    assert!(escape_messages(&sandbox)[0].contains("changed files there; they are in the trash: new.txt"));
    sandbox.assert_healthy();
}

#[test]
fn accepts_a_draft_plan() {
    let sandbox = sandbox_with_planner(PLAN);
    let _ = sandbox.proq(&["plan", "--ai", "pay by card", "-o", "plan.toml"]).ok();
    set_agent_reply(&sandbox, "say", r#"[{"task": "b", "needs": "a"}]"#);
    let out = sandbox.proq(&["deps", "plan.toml", "--agent", "claude"]);
    assert!(
        out.stderr.contains("warning: not taken: 'b' already says that it needs 'a'"),
        "{}",
        out.to_text()
    );
    assert_eq!(out.code, 0);
    let _ = sandbox.proq(&["deps", "plan.toml", "--refresh"]).fails(2);
    let _ = sandbox.proq(&["deps", "plan.toml", "--agent", "nobody", "--refresh"]).fails(1);
}
