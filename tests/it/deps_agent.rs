//! Owns the tests of dependencies that an agent finds missing: checked, agreed to, kept for as long as the tasks say the same.

use std::process::Stdio;

use serde_json::{Value, json};

use super::looking::{repository, told_of_escapes};
use super::plan_ai::{PLAN, planner, says, times, told};
use super::profiles::configure;
use super::support::Sandbox;
use super::support::patience::Beside;

const TASKS: &str = "format = 1\n[[task]]\nid = 'a'\ntitle = 'A table'\n[[task]]\nid = 'b'\ntitle = 'A form'\nneeds = ['a']\n\
                     [[task]]\nid = 'c'\ntitle = 'A client'\nprompt = 'Calls the form.'\n[[task]]\nid = 'd'\ntitle = 'Docs'\ndone = true\n";

/// What an agent finds, most of which does not fit.
const FOUND: &str = r#"These:
    [{"task": "c", "needs": "b", "because": "it calls the form"}, {"task": "a", "needs": "c"}, {"task": "b", "needs": "a"},
     {"task": "nowhere\u001b[2J", "needs": "a"}, {"task": "c", "needs": "c"}, {"task": "d", "needs": "a"},]"#;

fn asked(answer: &str) -> Sandbox {
    let sandbox = planner(answer);
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

#[test]
fn what_is_missing_is_shown_and_used_once_somebody_agrees() {
    let sandbox = asked(FOUND);
    let before = repository(&sandbox);
    insta::assert_snapshot!(sandbox.proq(&["deps", "plan.toml", "--agent", "claude"]).shown(), @r"
    Missing:
      c after b: it calls the form

    a A table
    └─ b A form
       └─ c A client (* says claude, not used)
    d Docs (done)
    --- stderr
    claude looks for what is missing: lane 'which-dependencies-are-missing-between'
    warning: not taken: 'b' says itself that it needs 'a'
    warning: not taken: there is no task 'nowhere\u{1b}[2J'
    warning: not taken: 'c' cannot wait for itself
    warning: not taken: 'd' is done, and waits for nothing
    warning: not taken: by claude: these tasks need each other: a -> c -> b -> a (one of them has to go first: for example, let 'b' not need 'a')
    error: nobody can be asked whether 1 dependency of claude's may be used; nothing was approved
    hint: agree to it as it is: git proq deps --agent claude --yes plan.toml
    --- code 1
    ");
    assert_eq!(edges(&sandbox), [pair("b", "a")], "nobody has agreed");
    let told = told(&sandbox, 1);
    assert!(
        told.contains(r#""id":"c""#) && told.contains("Calls the form.") && !told.contains("Docs"),
        "{told}"
    );
    // It is not asked again.
    insta::assert_snapshot!(sandbox.proq(&["deps", "plan.toml", "--agent", "claude", "--yes"]).shown(), @r"
    Missing:
      c after b: it calls the form

    a A table
    └─ b A form
       └─ c A client (* says claude, not used)
    d Docs (done)
    --- stderr
    claude was asked before, at 2026-01-02T03:04:05Z; --refresh asks anew
    1 dependency of claude's used for these tasks as they are ($0.0100)
    --- code 0
    ");
    assert_eq!((times(&sandbox), sandbox.read("plan.toml").as_str()), (1, TASKS));
    assert_eq!(repository(&sandbox), before);
    // What was said stays to be read, and the lane is gone.
    assert_eq!(sandbox.proq(&["list", "--json"]).json()["lanes"], json!([]));
    assert!(
        sandbox
            .proq(&["show", "which-dependencies-are-missing-between@1"])
            .ok()
            .contains("it calls the form")
    );
    sandbox.assert_healthy();
}

#[test]
fn what_is_used_is_marked_wherever_it_is_shown() {
    let sandbox = asked(FOUND);
    let _ = sandbox.proq(&["deps", "plan.toml", "--agent", "claude", "--yes"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["deps", "plan.toml"]).shown(), @r"
    a A table
    └─ b A form
       └─ c A client (* says claude)
    d Docs (done)
    --- code 0
    ");
    assert!(sandbox.proq(&["deps", "plan.toml", "--dot"]).ok().contains("\"b\" -> \"c\" [style=dashed];"));
    let shown = sandbox.proq(&["plan", "plan.toml"]).ok();
    assert!(
        shown.contains("By an agent, and approved:\n  c after b, says claude: it calls the form"),
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

#[test]
fn they_count_for_as_long_as_the_tasks_say_the_same() {
    let sandbox = asked(FOUND);
    let ask = ["deps", "plan.toml", "--agent", "claude", "--yes"];
    let _ = sandbox.proq(&ask).ok();
    let with = [pair("b", "a"), pair("c", "b")];
    assert_eq!(edges(&sandbox), with);
    // How far they are, and how the file looks, is nothing that they say.
    sandbox.write(
        "plan.toml",
        &format!("# mine\n{}", TASKS.replace("title = 'A table'", "title = 'A table'\ndone = true")),
    );
    assert_eq!(edges(&sandbox), with);
    sandbox.write("plan.toml", &TASKS.replace("Calls the form.", "Calls nobody."));
    assert_eq!(edges(&sandbox), [pair("b", "a")]);
    says(&sandbox, "say", "[]");
    assert!(sandbox.proq(&ask).ok().starts_with("nothing is missing\n"));
    assert_eq!(times(&sandbox), 2);
    assert!(
        sandbox.proq(&["deps", "plan.toml", "--agent", "claude"]).ok().starts_with("nothing is missing\n")
    );
    assert_eq!(times(&sandbox), 2, "that nothing is missing is known");
    sandbox.write("plan.toml", TASKS);
    assert_eq!(edges(&sandbox), with);
    let out = sandbox.proq(&["deps", "plan.toml", "--agent", "claude", "--refresh"]);
    assert!(out.stdout.starts_with("nothing is missing\n"), "{}", out.shown());
    assert_eq!((times(&sandbox), edges(&sandbox)), (3, vec![pair("b", "a")]));
    says(&sandbox, "say", FOUND);
    let _ = sandbox.proq(&[&ask[..], &["--refresh"]].concat()).ok();
    assert_eq!(edges(&sandbox), with);
    assert_eq!(sandbox.proq(&["deps", "plan.toml", "--forget"]).ok(), "forgot what an agent found missing\n");
    assert_eq!(edges(&sandbox), [pair("b", "a")]);
    assert_eq!(sandbox.proq(&["deps", "plan.toml", "--forget", "--json"]).json()["forgotten"], false);
}

#[test]
fn what_is_known_stays_when_asking_anew_comes_to_nothing() {
    let sandbox = asked(FOUND);
    configure(&sandbox, "agent.crash_retries = 0\n");
    let ask = ["deps", "plan.toml", "--agent", "claude", "--yes"];
    let _ = sandbox.proq(&ask).ok();
    sandbox.write_in(&sandbox.root(), "before", "exit 1\n");
    let said = sandbox.proq(&[&ask[..], &["--refresh"]].concat()).fails(4);
    assert!(said.contains("claude did not come to a list of dependencies"), "{said}");
    assert_eq!(edges(&sandbox).len(), 2);
    let out = sandbox.proq(&ask);
    assert!(out.stderr.contains("claude was asked before"), "{}", out.shown());
    // One that never came to anything is asked again.
    sandbox.write("plan.toml", &TASKS.replace("Calls the form.", "Calls it."));
    let _ = sandbox.proq(&ask).fails(4);
    std::fs::remove_file(sandbox.root().join("before")).unwrap();
    let _ = sandbox.proq(&ask).ok();
    assert_eq!(edges(&sandbox).len(), 2);
    // The same once more is agreed to already.
    let _ = sandbox.proq(&["deps", "plan.toml", "--agent", "claude", "--refresh"]).ok();
    assert_eq!(times(&sandbox), 5);
    sandbox.assert_healthy();
}

#[test]
fn task_folders_are_left_as_they_are() {
    let sandbox = planner(r#"[{"task": "x/T-2", "needs": "T-1"}]"#);
    sandbox.write("tasks/x/T-1-one/PROMPT.md", "# T-1: One\n");
    sandbox.write("tasks/x/T-2-two/PROMPT.md", "# T-2: Two\n");
    sandbox.commit_all("tasks");
    let _ = sandbox.proq(&["deps", "all", "--agent", "claude", "--yes"]).ok();
    assert_eq!(sandbox.proq(&["plan", "all", "--json"]).json()["waves"], json!([["x/T-1"], ["x/T-2"]]));
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    // Of a part of them nothing is known.
    sandbox.write("tasks/y/T-3-three/PROMPT.md", "# T-3: Three\n");
    assert_eq!(sandbox.proq(&["plan", "all", "--json"]).json()["waves"][0].as_array().unwrap().len(), 3);
    assert_eq!(sandbox.proq(&["plan", "x", "--json"]).json()["waves"], json!([["x/T-1"], ["x/T-2"]]));
}

#[test]
fn programs_are_told_whether_it_is_used() {
    let sandbox = asked(FOUND);
    let ask = ["deps", "plan.toml", "--agent", "claude", "--json"];
    let out = sandbox.proq(&ask);
    assert_eq!((out.code, &out.json()["edges"][1]["approved"]), (1, &json!(false)));
    let out = sandbox.proq(&[&ask[..], &["--yes"]].concat());
    assert_eq!((out.code, &out.json()["edges"][1]["approved"]), (0, &json!(true)));
    assert_eq!(times(&sandbox), 1);
    let mut command =
        sandbox.proq_command(&sandbox.repo, &["deps", "plan.toml", "--agent", "claude", "--yes"]);
    command.env("PROQ_LANE", "x");
    assert!(sandbox.output(command).fails(1).contains("this is for a person"));
}

#[test]
fn an_answer_that_is_wrong_is_mended_and_one_that_never_is_right_is_named() {
    let sandbox = asked(FOUND);
    says(&sandbox, "say.1", "[{\"task\": \"c\"}]");
    let out = sandbox.proq(&["deps", "plan.toml", "--agent", "claude", "--yes"]);
    assert_eq!(out.code, 0, "{}", out.shown());
    assert!(
        out.stderr.contains(
            "what claude answered is not a list of dependencies, it is asked again: $[0] has no text 'needs'"
        ),
        "{}",
        out.stderr
    );
    assert!(
        told(&sandbox, 2)
            .starts_with("That answer cannot be used: $[0] has no text 'needs', the ID of a task\n")
    );
    let sandbox = asked("None that I know of.");
    insta::assert_snapshot!(sandbox.proq(&["deps", "plan.toml", "--agent", "claude", "--yes"]).shown(), @r"
    --- stderr
    claude looks for what is missing: lane 'which-dependencies-are-missing-between'
    what claude answered is not a list of dependencies, it is asked again: there is no JSON in it
    what claude answered is not a list of dependencies, it is asked again: there is no JSON in it
    error: claude did not come to a list of dependencies: there is no JSON in it
    hint: what it said: [ROOT]/repo/.git/proq/lanes/which-dependencies-are-missing-between/runs/3.answer.md
    hint: see how it went: git proq logs which-dependencies-are-missing-between
    --- code 4
    ");
    assert_eq!((times(&sandbox), edges(&sandbox)), (3, vec![pair("b", "a")]));
    // It is asked anew: what it said is no answer.
    says(&sandbox, "say", FOUND);
    let _ = sandbox.proq(&["deps", "plan.toml", "--agent", "claude", "--yes"]).ok();
    assert_eq!(edges(&sandbox).len(), 2);
    sandbox.assert_healthy();
}

#[test]
fn an_answer_whose_asker_was_killed_is_taken_up() {
    let sandbox = asked(FOUND);
    sandbox.pipe("up");
    sandbox.pipe("go");
    sandbox.write_in(
        &sandbox.root(),
        "before",
        "echo up > \"$ROOT/up\"; read line < \"$ROOT/go\"; echo new > new.txt\n",
    );
    let ask = ["deps", "plan.toml", "--agent", "claude", "--yes"];
    let mut command = sandbox.proq_command(&sandbox.repo, &ask);
    let mut asker = Beside(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    sandbox.hear("up");
    asker.0.kill().unwrap();
    let _ = asker.code();
    assert_eq!(edges(&sandbox), [pair("b", "a")]);
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait"]).ok();
    let _ = sandbox.proq(&ask).ok();
    assert_eq!((times(&sandbox), edges(&sandbox).len()), (1, 2));
    assert!(told_of_escapes(&sandbox)[0].contains("changed files there, which go to the trash: new.txt"));
    sandbox.assert_healthy();
}

#[test]
fn a_draft_can_be_looked_through_too() {
    let sandbox = planner(PLAN);
    let _ = sandbox.proq(&["plan", "--ai", "pay by card", "-o", "plan.toml"]).ok();
    says(&sandbox, "say", r#"[{"task": "b", "needs": "a"}]"#);
    let out = sandbox.proq(&["deps", "plan.toml", "--agent", "claude"]);
    assert!(out.stderr.contains("warning: not taken: 'b' says itself that it needs 'a'"), "{}", out.shown());
    assert_eq!(out.code, 0);
    let _ = sandbox.proq(&["deps", "plan.toml", "--refresh"]).fails(2);
    let _ = sandbox.proq(&["deps", "plan.toml", "--agent", "nobody", "--refresh"]).fails(1);
}
