//! Tests of plans that are task folders: areas, settings, warnings, and missing dependencies.

use proq_test_kit::Sandbox;

/// Creates a repository with the task folders of the fixtures.
fn sandbox_with_task_folders() -> Sandbox {
    let sandbox = Sandbox::new();
    for path in ["src/http/billing.rs", "src/http/mod.rs", "src/auth/role.rs"] {
        sandbox.write(path, "1\n");
    }
    let fixture_dir = format!("{}/tests/fixtures/plans/tasks", env!("CARGO_MANIFEST_DIR"));
    sandbox.sh(&format!("cp -R '{fixture_dir}' tasks"));
    sandbox.commit_all("shop");
    sandbox
}

#[test]
fn all_areas_form_one_plan() {
    insta::assert_snapshot!(sandbox_with_task_folders().proq(&["plan", "all"]).to_text(), @r"
    A plan
    all (task folders): 5 tasks, 1 done, 3 waves

    Groups:
      auth: auth/AUTH-1, auth/AUTH-2, auth/AUTH-10
      billing: billing/BIL-1, billing/BIL-2

    WAVE  LANE  TASK           SIZE  STEPS  NEEDS                     SCOPE                              TITLE
    done  -     auth/AUTH-1    M     3/3    -                         src/auth/session.rs, migrations/   Sessions in the database
    1     1     auth/AUTH-2    L     3/4    auth/AUTH-1               src/auth/role.rs, src/http/*.rs    Roles for users
    2     2     auth/AUTH-10   S     -      auth/AUTH-2               src/auth/audit.rs                  A log of who changed which role
    2     1     billing/BIL-1  M     -      auth/AUTH-1, auth/AUTH-2  src/billing/, src/http/billing.rs  Invoices
    3     1     billing/BIL-2  M     1/3    billing/BIL-1             src/billing/pdf.rs, assets/fonts/  Invoices as PDF

    Lanes: 2 at a time (--max-parallel 3)
    One lane for auth/AUTH-2, billing/BIL-1, billing/BIL-2, one after the other:
      billing/BIL-1 and billing/BIL-2 both have src/billing/ and src/billing/pdf.rs
      auth/AUTH-2 and billing/BIL-1 both have src/http/*.rs and src/http/billing.rs
    Critical path: auth/AUTH-2 -> billing/BIL-1 -> billing/BIL-2 (8 of 9 by size)
    Time: as long as 8 small tasks in sequence
    --- stderr
    warning: tasks/auth/AUTH-2-roles/PROMPT.md:19:3: this names no task and is skipped: The names of the roles, which the product team is to decide
    --- code 0
    ");
}

#[test]
fn missing_dependency_hint_includes_its_area() {
    let sandbox = sandbox_with_task_folders();
    let text = sandbox.proq(&["plan", "billing"]).fails(1);
    insta::assert_snapshot!(text, @r"
    error: tasks/billing/BIL-1-invoices/PROMPT.md:7:3: task 'billing/BIL-1' needs 'auth/AUTH-2', which is not done and not part of this plan
    hint: include it: git proq plan billing auth
    ");
    let command = text.trim_end().rsplit_once("git proq ").unwrap().1;
    let args: Vec<&str> = command.split(' ').collect();
    let answer = sandbox.proq(&[&args[..], &["--json"]].concat()).json();
    assert_eq!(answer["tasks"].as_array().unwrap().len(), 5);
    assert_eq!(
        answer["waves"],
        serde_json::json!([["auth/AUTH-2"], ["auth/AUTH-10", "billing/BIL-1"], ["billing/BIL-2"]])
    );
    // For a single task, the missing one is in its own area.
    let text = sandbox.proq(&["plan", "tasks/billing/BIL-2-pdf/PROMPT.md"]).fails(1);
    insta::assert_snapshot!(text, @r"
    error: tasks/billing/BIL-2-pdf/PROMPT.md:8:3: task 'billing/BIL-2' needs 'billing/BIL-1', which is not done and not part of this plan
    hint: include it: git proq plan tasks/billing/BIL-2-pdf/PROMPT.md tasks/billing/BIL-1-invoices
    ");
}

#[test]
fn json_reports_done_tasks_steps_and_reviews() {
    let answer = sandbox_with_task_folders().proq(&["plan", "tasks", "--json"]).json();
    let task = |name: &str| {
        let tasks = answer["tasks"].as_array().unwrap();
        tasks.iter().find(|task| task["name"] == name).unwrap_or_else(|| panic!("{answer}")).clone()
    };
    assert_eq!(task("auth/AUTH-1")["done"], true);
    assert_eq!(task("auth/AUTH-2")["steps"], serde_json::json!({"done": 3, "of": 4}));
    assert_eq!((&task("auth/AUTH-2")["review"], &task("billing/BIL-2")["review"]), (&3.into(), &1.into()));
    assert_eq!(task("billing/BIL-2")["steps"], serde_json::json!({"done": 1, "of": 3}));
    assert_eq!(task("billing/BIL-1")["needs"], serde_json::json!(["auth/AUTH-1", "auth/AUTH-2"]));
    assert_eq!(answer["source"]["format"], "folders");
}

#[test]
fn areas_can_be_in_any_folder() {
    let sandbox = sandbox_with_task_folders();
    sandbox.sh("mkdir -p services/mail; mv tasks todo; mv todo/billing services/mail/todo");
    sandbox.write("proq.toml", "[swarm]\ntasks = \"todo\"\nareas = [\"billing = services/mail/todo\"]\n");
    let names = |args: &[&str]| {
        let answer = sandbox.proq(&[&["plan", "--json"], args].concat()).json();
        answer["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&["auth"]), ["auth/AUTH-1", "auth/AUTH-2", "auth/AUTH-10"]);
    assert_eq!(names(&["auth", "billing"]).len(), 5);
    assert_eq!(names(&["all"]), names(&["auth", "billing"]));
    sandbox.git(&["config", "--add", "proq.swarm.areas", "old=todo/auth/archive"]);
    sandbox.git(&["config", "--add", "proq.swarm.areas", "billing=../elsewhere"]);
    insta::assert_snapshot!(sandbox.proq(&["plan", "auth"]).fails(1), @r"
    error: cannot use swarm.areas = 'billing=../elsewhere' of git config: expected a list of NAME=FOLDER, each a folder of the repository
    hint: show where it is set: git config --show-origin --get-all proq.swarm.areas
    hint: or use the default, 'nothing': git config --unset-all proq.swarm.areas
    ");
}

/// Promise: strangers/plan-text-escapes
#[test]
fn escapes_control_characters_in_folder_names() {
    let sandbox = sandbox_with_task_folders();
    sandbox.write("tasks/auth/A\u{1b}[1m/PROMPT.md", "");
    sandbox.write("tasks/\u{202e}evil/A-1/PROMPT.md", "");
    sandbox.write("tasks/auth/X-1-\u{7}/PROMPT.md", "## Dependencies\n- \u{1b}[2J\n");
    for command in ["plan", "deps"] {
        let out = sandbox.proq(&[command, "all"]);
        let text = format!("{}{}", out.stdout, out.stderr);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
        assert_eq!(out.code, 0, "{text}");
        assert!(out.stderr.contains(r"tasks/auth/A\u{1b}[1m: this cannot be the name of a task"), "{text}");
    }
}

#[test]
fn reads_the_task_folders_of_the_lane_it_runs_in() {
    let sandbox = sandbox_with_task_folders();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "try"]).ok();
    let lane = sandbox.lane_path("try");
    sandbox.write_in(&lane, "tasks/auth/AUTH-2-roles/.DONE", "");
    let done = |dir: &std::path::Path| {
        let answer = sandbox.proq_in(dir, &["plan", "auth", "--json"]).json();
        answer["tasks"][1]["done"].as_bool().unwrap()
    };
    assert!(done(&lane) && !done(&sandbox.repo));
}
