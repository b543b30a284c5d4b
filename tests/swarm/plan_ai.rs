//! Tests of plans that an agent makes: creating, correcting, changing, saving and approving them.

use proq_test_kit::claude::write_user_config;
use proq_test_kit::runs::repository_state;
use proq_test_kit::{Output, Sandbox};
use serde_json::{Value, json};

/// Script of an agent that stores its prompt and its arguments for each start and prints the file `say.N`, or
/// else `say`.
const AGENT_SCRIPT: &str = r#"n=$(($(ls "$ROOT/told" | wc -l) + 1)); cat > "$ROOT/told/$n"; printf '%s\n' "$@" > "$ROOT/args.$n"
    echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m"}'
    if [ -e "$ROOT/before" ]; then . "$ROOT/before"; fi
    if [ -e "$ROOT/say.$n" ]; then cat "$ROOT/say.$n"; else cat "$ROOT/say"; fi"#;

/// Plan with two tasks.
pub const PLAN: &str = r#"{"summary": "Payments", "warnings": ["no test account"], "criteria": ["all green"], "phases": [{"title": "One", "groups": [
    {"theme": "store", "rationale": "one\nreviewer", "tasks": [
        {"id": "a", "title": "A table", "prompt": "Make it.", "scope": ["src/db/"], "size": "S", "checks": ["make test-db"]},
        {"id": "b", "title": "A form", "needs": ["a"], "scope": ["src/web/"], "agent": "codex"}]}]}]}"#;

/// Changed version of [`PLAN`].
const CHANGED: &str = r#"{"summary": "Payments", "warnings": ["no test account"], "criteria": ["all green"], "phases": [{"title": "One", "groups": [
    {"theme": "store", "rationale": "one\nreviewer", "tasks": [
        {"id": "c", "title": "A client"},
        {"id": "b", "title": "A form", "needs": ["c"], "scope": ["src/web/"], "agent": "codex", "size": "L"}]}]}]}"#;

/// Plan with a task that depends on a missing one.
const BROKEN_PLAN: &str = r#"{"task": [{"id": "a", "title": "A", "needs": ["nowhere"]}]}"#;

/// Creates a sandbox whose `claude` replies with `answer`.
pub fn sandbox_with_planner(answer: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program("claude", AGENT_SCRIPT);
    std::fs::create_dir(sandbox.root().join("told")).unwrap();
    set_agent_reply(&sandbox, "say", answer);
    sandbox
}

/// Sets the text of the agent's last message; `file` is `say`, or `say.N` for its n-th start.
pub fn set_agent_reply(sandbox: &Sandbox, file: &str, text: &str) {
    let line = json!({
        "type": "result", "subtype": "success", "is_error": false, "session_id": "s-1", "result": text,
        "total_cost_usd": 0.01, "usage": {"input_tokens": 1000, "output_tokens": 50},
    });
    sandbox.write_in(&sandbox.root(), file, &format!("{line}\n"));
}

/// Returns the prompt of the agent's n-th start.
pub fn prompt_of_start(sandbox: &Sandbox, n: u32) -> String {
    std::fs::read_to_string(sandbox.root().join(format!("told/{n}"))).unwrap()
}

/// Returns how often the agent was started.
pub fn start_count(sandbox: &Sandbox) -> usize {
    std::fs::read_dir(sandbox.root().join("told")).unwrap().count()
}

fn args_of_start(sandbox: &Sandbox, n: u32) -> String {
    std::fs::read_to_string(sandbox.root().join(format!("args.{n}"))).unwrap()
}

pub fn run_plan_ai(sandbox: &Sandbox) -> Output {
    sandbox.proq(&["plan", "--ai", "pay by card"])
}

/// Returns all drafts.
#[track_caller]
pub fn list_drafts(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.proq(&["plan", "--drafts", "--json"]).json()["drafts"].as_array().unwrap().clone()
}

fn task_ids(answer: &Value) -> Vec<&str> {
    answer["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap()).collect()
}

/// Promise: strangers/planning-agent-changes-nothing
#[test]
fn shows_and_saves_the_plan_and_changes_nothing_else() {
    let sandbox =
        sandbox_with_planner(&format!("Here it is:\n```json\n{PLAN}\n```\nTell me {{what}} you think."));
    sandbox.write("AGENTS.md", "Use tabs.\n");
    sandbox.write("docs/NOTES.md", "Cards only.\n");
    sandbox.commit_all("second");
    sandbox.write("a.txt", "an edit of mine\n");
    let before = repository_state(&sandbox);
    insta::assert_snapshot!(sandbox.proq(&["plan", "--ai", "pay by card", "--from", "docs/NOTES.md", "--agent", "claude"]).to_text(), @r#"
    Payments
    draft plan-pay-by-card, by claude, not approved
    planning took 1 run, 0s, 1k tokens in, 50 out, $0.01

    Warnings:
      no test account

    1. One
    └─ store: one reviewer
       ├─ a A table (wave 1, S)
       │    about  src/db/
       │    checks make test-db
       └─ b A form (wave 2, M, by codex)
            after  a
            about  src/web/

    Criteria:
      all green

    2 tasks, 2 waves. Lanes: 1 at a time (--max-parallel 3)
    Critical path: a -> b (3 of 3 by size)
    --- stderr
    warning: the plan is made without your uncommitted changes (a.txt)
    claude makes a plan: draft 'plan-pay-by-card'
    hint: revise it: git proq plan --feedback "what to change" plan-pay-by-card
    hint: save it: git proq plan -o plan.toml plan-pay-by-card
    --- code 0
    "#);
    assert_eq!(repository_state(&sandbox), before);
    let prompt = prompt_of_start(&sandbox, 1);
    for expected in [
        "pay by card\n\n# Assignment",
        "Use tabs.",
        "docs/NOTES.md, which the plan must follow",
        "Cards only.",
        "a.txt\n",
        " second\n",
        "\"needs\": [",
    ] {
        assert!(prompt.contains(expected), "{expected}: {prompt}");
    }
    assert!(!prompt.contains("an edit of mine"), "{prompt}");
    assert!(args_of_start(&sandbox, 1).contains("--disallowedTools\nEdit"), "{}", args_of_start(&sandbox, 1));
    sandbox.assert_healthy();
}

#[test]
fn shows_a_saved_draft_without_starting_the_agent() {
    let sandbox = sandbox_with_planner(PLAN);
    let _ = run_plan_ai(&sandbox).ok();
    insta::assert_snapshot!(sandbox.proq(&["plan", "--drafts"]).to_text(), @r"
    DRAFT             STATE  TASKS  AGENT    COST  WHEN    GOAL
    plan-pay-by-card  ready      2  claude  $0.01  0s ago  pay by card
    --- code 0
    ");
    let shown_again = sandbox.proq(&["plan", "plan-pay-by-card"]);
    assert!(
        shown_again.stdout.starts_with("Payments\ndraft plan-pay-by-card, by claude, not approved\n"),
        "{}",
        shown_again.to_text()
    );
    assert_eq!(start_count(&sandbox), 1);
    assert!(sandbox.proq(&["deps", "plan-pay-by-card"]).ok().contains("└─ b A form"));
    sandbox.assert_healthy();
}

#[test]
fn json_contains_the_plan_and_the_draft() {
    let sandbox = sandbox_with_planner(PLAN);
    let created = sandbox.proq(&["plan", "--ai", "pay by card", "--json"]).json();
    assert_eq!(task_ids(&created), ["a", "b"]);
    assert_eq!(created["waves"], json!([["a"], ["b"]]));
    let draft = &created["draft"];
    assert_eq!((&draft["name"], &draft["state"]), (&json!("plan-pay-by-card"), &json!("ready")));
    assert_eq!((&draft["session"], &draft["costs"]["cost"]["nanos"]), (&json!("s-1"), &json!(10_000_000)));
    let shown = sandbox.proq(&["plan", "plan-pay-by-card", "--json"]).json();
    assert_eq!((&shown["draft"], &shown["tasks"]), (draft, &created["tasks"]));
    assert_eq!(list_drafts(&sandbox), std::slice::from_ref(draft));
    let dry_run = sandbox.proq(&["plan", "--ai", "more", "--dry-run", "--json"]).json();
    assert!(dry_run["prompt"].as_str().unwrap().starts_with("more\n"));
    assert_eq!((start_count(&sandbox), list_drafts(&sandbox).len()), (1, 1));
}

#[test]
fn invalid_plan_is_corrected_in_the_same_conversation() {
    let sandbox = sandbox_with_planner(PLAN);
    set_agent_reply(&sandbox, "say.1", &format!("```\n{BROKEN_PLAN}\n```"));
    let out = run_plan_ai(&sandbox);
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert!(
        out.stderr.contains(
            "the answer of claude is not a plan; asking again: $.task[0].needs[0]: task 'a' needs 'nowhere'"
        ),
        "{}",
        out.stderr
    );
    let prompt = prompt_of_start(&sandbox, 2);
    assert!(prompt.starts_with("Your answer is not valid: $.task[0].needs[0]: task 'a' needs 'nowhere', which is not a task of this plan (add"), "{prompt}");
    assert!(args_of_start(&sandbox, 2).contains("--resume\ns-1"), "{}", args_of_start(&sandbox, 2));
    assert_eq!(list_drafts(&sandbox)[0]["costs"]["runs"], 2);
}

#[test]
fn draft_without_a_plan_is_kept_and_accepts_feedback() {
    let sandbox = sandbox_with_planner("Sorry, {no} plan.");
    insta::assert_snapshot!(run_plan_ai(&sandbox).to_text(), @r#"
    --- stderr
    claude makes a plan: draft 'plan-pay-by-card'
    the answer of claude is not a plan; asking again: it has no JSON
    the answer of claude is not a plan; asking again: it has no JSON
    error: claude did not produce a plan: it has no JSON
    hint: read its answer: cat '[ROOT]/repo/.git/proq/lanes/plan-pay-by-card/runs/3.answer.md'
    hint: give it feedback: git proq plan --feedback "follow the format" plan-pay-by-card
    --- code 4
    "#);
    assert_eq!(start_count(&sandbox), 3);
    let answer_file = sandbox.repo.join(".git/proq/lanes/plan-pay-by-card/runs/3.answer.md");
    assert_eq!(std::fs::read_to_string(answer_file).unwrap(), "Sorry, {no} plan.\n");
    let draft = &list_drafts(&sandbox)[0];
    assert_eq!((&draft["state"], &draft["wrong"]), (&json!("empty"), &json!("it has no JSON")));
    for args in
        [&["plan", "plan-pay-by-card"][..], &["plan", "--approve", "--yes"], &["plan", "-o", "p.toml"]]
    {
        let refusal = sandbox.proq(args).fails(1);
        assert!(refusal.contains("draft 'plan-pay-by-card' has no plan yet: it has no JSON"), "{refusal}");
    }
    assert!(!sandbox.repo.join("p.toml").exists());
    set_agent_reply(&sandbox, "say", PLAN);
    let _ = sandbox.proq(&["plan", "--feedback", "in JSON, please"]).ok();
    assert!(prompt_of_start(&sandbox, 4).starts_with("in JSON, please\n"));
    assert_eq!(
        (&list_drafts(&sandbox)[0]["state"], &list_drafts(&sandbox)[0]["wrong"]),
        (&json!("ready"), &Value::Null)
    );
    sandbox.assert_healthy();
}

#[test]
fn failed_agent_is_named_and_not_prompted_again() {
    let sandbox = sandbox_with_planner("");
    set_agent_reply(&sandbox, "say", PLAN);
    let error = json!({"type": "result", "subtype": "error_during_execution", "is_error": true, "session_id": "s-1", "result": "no luck"});
    sandbox.write_in(&sandbox.root(), "say.1", &error.to_string());
    let text = run_plan_ai(&sandbox).fails(4);
    assert!(text.contains("claude did not produce a plan"), "{text}");
    assert_eq!(start_count(&sandbox), 1);
    assert_eq!(list_drafts(&sandbox)[0]["state"], "empty");
    let _ = sandbox.proq(&["plan", "--feedback", "once more"]).ok();
    assert_eq!(list_drafts(&sandbox)[0]["state"], "ready");
}

/// Promise: strangers/plan-approval
#[test]
fn feedback_continues_the_conversation_and_lists_changes() {
    let sandbox = sandbox_with_planner(PLAN);
    let _ = run_plan_ai(&sandbox).ok();
    let _ = sandbox.proq(&["plan", "--approve", "--yes"]).ok();
    assert_eq!(list_drafts(&sandbox)[0]["state"], "approved");
    let unchanged = sandbox.proq(&["plan", "--feedback", "is that all?"]);
    assert!(unchanged.stderr.contains("the plan is unchanged"), "{}", unchanged.to_text());
    assert_eq!(list_drafts(&sandbox)[0]["state"], "approved", "it is the same plan");
    set_agent_reply(&sandbox, "say", CHANGED);
    insta::assert_snapshot!(sandbox.proq(&["plan", "--feedback", "a client first", "plan-pay-by-card"]).to_text(), @r#"
    Payments
    draft plan-pay-by-card, by claude, not approved
    planning took 3 runs, 0s, 3k tokens in, 150 out, $0.01

    Warnings:
      no test account

    1. One
    └─ store: one reviewer
       ├─ c A client (wave 1, M)
       └─ b A form (wave 2, L, by codex)
            after  c
            about  src/web/

    Criteria:
      all green

    2 tasks, 2 waves. Lanes: 1 at a time (--max-parallel 3)
    Critical path: c -> b (6 of 6 by size)

    What has changed:
      + c
      ~ b (needs, size)
      - a
    --- stderr
    claude changes draft 'plan-pay-by-card'
    hint: revise it: git proq plan --feedback "what to change" plan-pay-by-card
    hint: save it: git proq plan -o plan.toml plan-pay-by-card
    --- code 0
    "#);
    assert!(prompt_of_start(&sandbox, 3).starts_with("a client first\n\nChange the plan accordingly"));
    assert!(args_of_start(&sandbox, 3).contains("--resume\ns-1"));
    let draft = &list_drafts(&sandbox)[0];
    assert_eq!(
        (&draft["state"], &draft["feedback"]),
        (&json!("ready"), &json!(["is that all?", "a client first"]))
    );
    let answer = sandbox.proq(&["plan", "--feedback", "back", "--json"]).json();
    assert_eq!(answer["changes"], Value::Null);
}

#[test]
fn agent_without_resume_gets_the_plan_in_the_prompt() {
    let sandbox = sandbox_with_planner(PLAN);
    write_user_config(&sandbox, "[agents.other]\nlike = \"claude\"\nargs.resume = []\n");
    let _ = sandbox.proq(&["plan", "--ai", "pay by card", "--agent", "other"]).ok();
    set_agent_reply(&sandbox, "say.2", BROKEN_PLAN);
    set_agent_reply(&sandbox, "say", CHANGED);
    let out = sandbox.proq(&["plan", "--feedback", "a client first"]);
    assert!(out.stdout.contains("\n  + c\n"), "{}", out.to_text());
    let second_prompt = prompt_of_start(&sandbox, 2);
    for expected in [
        "pay by card\n",
        "# Output format",
        "The current plan, in TOML",
        "title = \"A table\"",
        "a client first",
    ] {
        assert!(second_prompt.contains(expected), "{expected}: {second_prompt}");
    }
    let third_prompt = prompt_of_start(&sandbox, 3);
    for expected in ["pay by card\n", "The invalid answer", "nowhere", "Your answer is not valid: $.task[0]"]
    {
        assert!(third_prompt.contains(expected), "{expected}: {third_prompt}");
    }
    assert!(
        !args_of_start(&sandbox, 2).contains("--resume") && !args_of_start(&sandbox, 3).contains("--resume")
    );
}

#[test]
fn lost_conversation_is_replaced_by_a_new_one() {
    let sandbox = sandbox_with_planner(PLAN);
    write_user_config(&sandbox, "agent.crash_retries = 0\n");
    let _ = run_plan_ai(&sandbox).ok();
    // The agent no longer knows its session.
    set_agent_reply(&sandbox, "say", CHANGED);
    sandbox.write_in(
        &sandbox.root(),
        "before",
        "case \" $* \" in *--resume*) echo 'no such session' >&2; exit 1;; esac\n",
    );
    let out = sandbox.proq(&["plan", "--feedback", "a client first"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert!(out.stderr.contains("claude could not continue; starting it again"), "{}", out.stderr);
    assert_eq!(start_count(&sandbox), 3);
    assert!(
        prompt_of_start(&sandbox, 3).contains("title = \"A table\"")
            && prompt_of_start(&sandbox, 3).contains("a client first")
    );
    // The lane of the draft is discarded.
    std::fs::remove_file(sandbox.root().join("before")).unwrap();
    let _ = sandbox.proq(&["discard", "plan-pay-by-card"]).ok();
    set_agent_reply(&sandbox, "say", PLAN);
    let out = sandbox.proq(&["plan", "--feedback", "a table first", "--json"]).json();
    assert_eq!(task_ids(&out), ["a", "b"]);
    assert!(prompt_of_start(&sandbox, 4).contains("title = \"A client\""));
    assert_eq!(out["draft"]["costs"]["runs"], 4);
    assert_eq!(sandbox.row("plan-pay-by-card")["state"], "done");
    sandbox.assert_healthy();
}

/// Promise: strangers/no-silent-overwrite
#[test]
fn saving_replaces_a_file_only_with_force() {
    let sandbox = sandbox_with_planner(PLAN);
    sandbox.write("mine.toml", "mine\n");
    // The file is checked before the agent is started.
    for file in ["mine.toml", ".", "no/where.toml"] {
        let _ = sandbox.proq(&["plan", "--ai", "pay by card", "-o", file]).fails(1);
    }
    assert_eq!((start_count(&sandbox), sandbox.read("mine.toml").as_str()), (0, "mine\n"));
    let _ = sandbox.proq(&["plan", "--ai", "pay by card\nand = 'x'", "-o", "plan.toml"]).ok();
    let text = sandbox.read("plan.toml");
    let head = "# A plan by claude, made with git proq plan --ai (draft plan-pay-by-card).\n# Goal: pay by card\n# and = 'x'\n#\n";
    assert!(text.starts_with(head), "{text}");
    let saved = sandbox.proq(&["plan", "plan.toml", "--json"]).json();
    let draft = sandbox.proq(&["plan", "plan-pay-by-card", "--json"]).json();
    for key in ["summary", "warnings", "criteria", "phases", "waves", "longest"] {
        assert_eq!(saved[key], draft[key], "{key}");
    }
    assert_eq!(task_ids(&saved), task_ids(&draft));
    let _ = sandbox.proq(&["plan", "--save", "plan.toml", "plan-pay-by-card"]).fails(1);
    insta::assert_snapshot!(sandbox.proq(&["plan", "--save", "mine.toml", "--force"]).to_text(), @r"
    wrote mine.toml
    --- stderr
    saved the previous file as [ROOT]/repo/.git/proq/replaced/[ID]
    hint: show it: git proq plan mine.toml
    --- code 0
    ");
    assert!(sandbox.read("mine.toml").starts_with("# A plan by claude"));
    let replaced_dir = sandbox.repo.join(".git/proq/replaced");
    let replaced_file = std::fs::read_dir(replaced_dir).unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::read_to_string(replaced_file).unwrap(), "mine\n");
    // Plans that are not drafts can be saved too.
    sandbox.write("ROADMAP.md", "# Next\n\n- [ ] one thing\n");
    let _ = sandbox.proq(&["plan", "ROADMAP.md", "-o", "road.toml"]).ok();
    assert_eq!(task_ids(&sandbox.proq(&["plan", "road.toml", "--json"]).json()), ["one-thing"]);
    sandbox.assert_healthy();
}

/// Promise: strangers/plan-approval
#[test]
fn only_a_user_approves_a_draft_and_each_change_of_it() {
    let sandbox = sandbox_with_planner(PLAN);
    let _ = run_plan_ai(&sandbox).ok();
    let refusal = sandbox.proq(&["plan", "--approve"]).fails(1);
    assert!(
        refusal.contains(
            "error: cannot ask whether draft 'plan-pay-by-card' may be run: not a terminal; nothing was approved"
        ),
        "{refusal}"
    );
    assert!(refusal.contains("checks make test-db") && refusal.contains("by codex"), "{refusal}");
    assert_eq!(list_drafts(&sandbox)[0]["state"], "ready");
    // An agent in a lane must not approve a plan.
    let mut command = sandbox.proq_command(&sandbox.repo, &["plan", "--approve", "--yes"]);
    command.env("PROQ_LANE", "plan-pay-by-card");
    assert!(sandbox.output(command).fails(1).contains("only a person or the supervising agent may"));
    assert_eq!(list_drafts(&sandbox)[0]["state"], "ready");
    let _ = sandbox.proq(&["plan", "--approve", "--yes", "plan-pay-by-card"]).ok();
    assert_eq!(list_drafts(&sandbox)[0]["state"], "approved");
    set_agent_reply(&sandbox, "say", CHANGED);
    let _ = sandbox.proq(&["plan", "--feedback", "a client first"]).ok();
    assert_eq!(list_drafts(&sandbox)[0]["state"], "ready", "it is another plan");
    // An agent in a lane does not approve the plan by running it either; when the user runs it with `--yes`,
    // the approval is reported.
    sandbox.program("codex", "exit 0");
    let swarm = ["swarm", "plan-pay-by-card", "--yes", "--detach", "--agent", "claude", "--ignore-dirty"];
    let mut command = sandbox.proq_command(&sandbox.repo, &swarm);
    command.env("PROQ_LANE", "plan-pay-by-card");
    let lane_refusal = sandbox.output(command).fails(1);
    assert!(lane_refusal.contains("only a person or the supervising agent may"), "{lane_refusal}");
    assert_eq!(list_drafts(&sandbox)[0]["state"], "ready");
    assert_eq!(sandbox.proq(&["status", "--json"]).json()["batches"], json!([]));
    let out = sandbox.proq(&swarm);
    let line = "the plan 'plan-pay-by-card', which an agent made, is approved by --yes\n";
    assert!(out.code == 0 && out.stderr.contains(line), "{}", out.to_text());
    let _ = sandbox.proq(&["abort", "--hard"]);
}

#[test]
fn draft_must_be_named_if_there_are_multiple() {
    let sandbox = sandbox_with_planner(PLAN);
    insta::assert_snapshot!(sandbox.proq(&["plan", "--feedback", "x"]).to_text(), @r#"
    --- stderr
    error: there is no draft
    hint: create one: git proq plan --ai "payments by card"
    --- code 2
    "#);
    let _ = run_plan_ai(&sandbox).ok();
    let _ = sandbox.proq(&["plan", "--ai", "pay by card"]).ok();
    let names: Vec<Value> = list_drafts(&sandbox).iter().map(|draft| draft["name"].clone()).collect();
    assert_eq!(names, ["plan-pay-by-card-2", "plan-pay-by-card"]);
    insta::assert_snapshot!(sandbox.proq(&["plan", "--approve", "--yes"]).to_text(), @r"
    --- stderr
    error: there are several drafts; name one: plan-pay-by-card-2, plan-pay-by-card
    hint: the latest one: git proq plan plan-pay-by-card-2
    --- code 2
    ");
    insta::assert_snapshot!(sandbox.proq(&["plan", "--feedback", "x", "../lanes"]).to_text(), @r"
    --- stderr
    error: there is no draft '../lanes'
    hint: list drafts: git proq plan --drafts
    --- code 1
    ");
    let _ = sandbox.proq(&["plan", "--ai", " "]).fails(2);
    let _ = sandbox.proq(&["plan", "--feedback", " "]).fails(2);
    assert_eq!(start_count(&sandbox), 2);
}
