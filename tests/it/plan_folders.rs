//! Owns the tests of plans that are task folders, through the program: areas, settings, remarks, and where a task is missing.

use super::support::Sandbox;

/// A repository with the task folders of the fixtures.
fn shop() -> Sandbox {
    let sandbox = Sandbox::new();
    for path in ["src/http/billing.rs", "src/http/mod.rs", "src/auth/role.rs"] {
        sandbox.write(path, "1\n");
    }
    let from = format!("{}/tests/fixtures/plans/tasks", env!("CARGO_MANIFEST_DIR"));
    sandbox.sh(&format!("cp -R '{from}' tasks"));
    sandbox.commit_all("shop");
    sandbox
}

#[test]
fn all_areas_are_a_plan() {
    insta::assert_snapshot!(shop().proq(&["plan", "all"]).shown(), @r"
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
      billing/BIL-1 and billing/BIL-2 are about src/billing/ and src/billing/pdf.rs
      auth/AUTH-2 and billing/BIL-1 are about src/http/*.rs and src/http/billing.rs
    Longest way: auth/AUTH-2 -> billing/BIL-1 -> billing/BIL-2 (8 of 9 by size)
    Time: as long as 8 small tasks one after the other
    --- stderr
    warning: tasks/auth/AUTH-2-roles/PROMPT.md:19:3: this names no task, and is passed over: The names of the roles, which the product team is to decide
    --- code 0
    ");
}

#[test]
fn what_an_area_lacks_is_told_with_the_command_that_has_it() {
    let sandbox = shop();
    let said = sandbox.proq(&["plan", "billing"]).fails(1);
    insta::assert_snapshot!(said, @r"
    error: tasks/billing/BIL-1-invoices/PROMPT.md:7:3: task 'billing/BIL-1' needs 'auth/AUTH-2', which is not done and no part of this plan
    hint: include it: git proq plan billing auth
    ");
    let command = said.trim_end().rsplit_once("git proq ").unwrap().1;
    let words: Vec<&str> = command.split(' ').collect();
    let answer = sandbox.proq(&[&words[..], &["--json"]].concat()).json();
    assert_eq!(answer["tasks"].as_array().unwrap().len(), 5);
    assert_eq!(
        answer["waves"],
        serde_json::json!([["auth/AUTH-2"], ["auth/AUTH-10", "billing/BIL-1"], ["billing/BIL-2"]])
    );
    // One task alone: what it lacks is in its own area.
    let said = sandbox.proq(&["plan", "tasks/billing/BIL-2-pdf/PROMPT.md"]).fails(1);
    insta::assert_snapshot!(said, @r"
    error: tasks/billing/BIL-2-pdf/PROMPT.md:8:3: task 'billing/BIL-2' needs 'billing/BIL-1', which is not done and no part of this plan
    hint: include it: git proq plan tasks/billing/BIL-2-pdf/PROMPT.md tasks/billing/BIL-1-invoices
    ");
}

#[test]
fn what_somebody_has_done_of_a_task_is_told() {
    let answer = shop().proq(&["plan", "tasks", "--json"]).json();
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
fn areas_can_lie_anywhere_in_the_repository() {
    let sandbox = shop();
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
    error: swarm.areas = 'billing=../elsewhere' (from git config) cannot be used; it takes a list of NAME=FOLDER, each a folder of the repository
    hint: correct it where it is set; without it there is none
    ");
}

#[test]
fn names_of_folders_that_a_terminal_would_obey_are_shown_harmlessly() {
    let sandbox = shop();
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
fn a_lane_reads_the_tasks_that_lie_in_it() {
    let sandbox = shop();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "try"]).ok();
    let lane = sandbox.lane("try");
    sandbox.write_in(&lane, "tasks/auth/AUTH-2-roles/.DONE", "");
    let done = |dir: &std::path::Path| {
        let answer = sandbox.proq_in(dir, &["plan", "auth", "--json"]).json();
        answer["tasks"][1]["done"].as_bool().unwrap()
    };
    assert!(done(&lane) && !done(&sandbox.repo));
}
