//! Tests of task folders: parsing, each error, and links out of the repository.

use std::sync::Arc;

use proptest::prelude::*;
use proq_base::explain::Explain;

use super::layout::id_from_folder_name;
use super::*;
use crate::dependency_graph::DependencyGraph;
use crate::plan::{BoxProgress, Size};

/// A repository with the given files.
struct TestRepo {
    dir: tempfile::TempDir,
    areas: Vec<(String, String)>,
}

impl TestRepo {
    fn new(files: &[(&str, &str)]) -> TestRepo {
        let tree = TestRepo { dir: tempfile::tempdir().unwrap(), areas: Vec::new() };
        for (path, text) in files {
            let path = tree.top().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        tree
    }

    fn top(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("repo")
    }

    fn read_plan(&self, sources: &[&str]) -> Result<Plan, PlanError> {
        let top = self.top();
        let sources: Vec<String> = sources.iter().map(|s| (*s).to_owned()).collect();
        read_plan(&top, &sources, &TaskLayout { top: &top, tasks_dir: "tasks", areas: &self.areas })
    }

    /// Returns the names of the plan's tasks.
    #[track_caller]
    fn task_names(&self, sources: &[&str]) -> Vec<String> {
        self.read_plan(sources).unwrap().tasks().map(|spot| spot.task.full_name()).collect()
    }

    /// Returns the error and hints for a plan that is not valid.
    #[track_caller]
    fn error_text(&self, sources: &[&str]) -> String {
        let error =
            self.read_plan(sources).and_then(|plan| DependencyGraph::from_plan(&plan)).expect_err("an error");
        let hints = error.hints().join("\n  ");
        format!("{error}\n  {hints}\n").replace(self.top().to_str().unwrap(), "[TOP]")
    }
}

/// Returns the error and hints for a task `a/A-1` with this text, in a repository with `a/A-2` and `b/B-1`.
fn error_text_of_task(text: &str) -> String {
    TestRepo::new(&[
        ("tasks/a/A-1/PROMPT.md", text),
        ("tasks/a/A-2-x/PROMPT.md", ""),
        ("tasks/b/B-1/PROMPT.md", ""),
    ])
    .error_text(&["a"])
}

/// Returns the task that is read from this text, with the notes of the plan.
fn read_task_and_notes(text: &str) -> (Task, Vec<String>) {
    let tree = TestRepo::new(&[
        ("tasks/a/A-1-the-name/PROMPT.md", text),
        ("tasks/a/A-2/PROMPT.md", ""),
        ("tasks/a/login/PROMPT.md", ""),
        ("tasks/b/B-1/PROMPT.md", ""),
    ]);
    let plan = tree.read_plan(&["all"]).unwrap();
    let notes = plan.source_notes.iter().map(ToString::to_string).collect();
    let task = plan.tasks().map(|spot| spot.task).find(|task| task.id == "A-1").unwrap();
    (task.clone(), notes)
}

fn needs_and_notes(text: &str) -> Vec<String> {
    let (task, notes) = read_task_and_notes(&format!("## Dependencies\n{text}\n"));
    task.needs.into_iter().map(|need| need.name).chain(notes).collect()
}

#[test]
fn reports_errors_with_location_and_fix() {
    let errors: String = [
        "# Task: A-7 - Other\n",
        "**Size:** XL\n",
        "\n## Review Level: 4\n",
        "**Review Level:** high\n",
        "## File Scope\n- `../other`\n",
        "## Dependencies\n- A-3\n",
        "## Dependencies\n- **Task:** c/B-1\n",
        "## Dependencies\n- **Task:** a/nothing\n",
        "## Dependencies\n- B-1\n",
        "## Dependencies\n- A-2\n- A-1\n",
    ]
    .map(error_text_of_task)
    .concat();
    insta::assert_snapshot!(errors, @r"
    tasks/a/A-1/PROMPT.md:1:1: the heading names 'A-7', but the folder is 'A-1'
      give both the same ID
    tasks/a/A-1/PROMPT.md:1:1: there is no size 'XL'
      write S, M or L
    tasks/a/A-1/PROMPT.md:2:1: there is no review level '4'
      write 0, 1, 2 or 3
    tasks/a/A-1/PROMPT.md:1:1: there is no review level 'high'
      write 0, 1, 2 or 3
    tasks/a/A-1/PROMPT.md:2:3: '../other' is no glob: it must stay inside the repository
      name files of this repository, as in `src/pay/`
    tasks/a/A-1/PROMPT.md:2:3: task 'a/A-1' needs 'A-3', which is not a task of this plan
      did you mean 'a/A-2'?
    tasks/a/A-1/PROMPT.md:2:3: task 'a/A-1' needs 'c/B-1', which is not a task of this plan
      did you mean 'b/B-1'?
    tasks/a/A-1/PROMPT.md:2:3: task 'a/A-1' needs 'a/nothing', which is not a task of this plan
      add a task 'a/nothing', or remove it from the needs of 'a/A-1'
    tasks/a/A-1/PROMPT.md:2:3: task 'a/A-1' needs 'b/B-1', which is not done and not part of this plan
      include it: git proq plan a b
    tasks/a/A-1/PROMPT.md:3:3: these tasks depend on each other: a/A-1 -> a/A-1
      remove it: a task cannot wait for itself
    ");
}

#[test]
fn reports_duplicate_ids_with_both_locations() {
    let duplicate = TestRepo::new(&[("tasks/a/A-1-x/PROMPT.md", ""), ("tasks/a/a-1-y/PROMPT.md", "")]);
    let done = TestRepo::new(&[("tasks/a/A-1-x/PROMPT.md", ""), ("tasks/a/archive/A-1/PROMPT.md", "")]);
    let ambiguous = TestRepo::new(&[
        ("tasks/a/X-1/PROMPT.md", ""),
        ("tasks/b/X-1/PROMPT.md", ""),
        ("tasks/c/C-1/PROMPT.md", "## Dependencies\n- X-1\n"),
    ]);
    insta::assert_snapshot!([duplicate.error_text(&["all"]), done.error_text(&["a"]), ambiguous.error_text(&["c"])].concat(), @r"
    tasks/a/a-1-y/PROMPT.md:1:1: task 'a/a-1' is defined twice; the other definition is at tasks/a/A-1-x/PROMPT.md:1:1
      give one of the tasks another ID
    tasks/a/archive/A-1/PROMPT.md:1:1: task 'a/A-1' is defined twice; the other definition is at tasks/a/A-1-x/PROMPT.md:1:1
      give one of the tasks another ID
    tasks/c/C-1/PROMPT.md:2:3: task 'c/C-1' needs 'X-1', which is ambiguous: a/X-1, b/X-1
      use one of: 'a/X-1' or 'b/X-1'
    ");
}

#[test]
fn reads_areas_folders_and_files() {
    let mut tree = TestRepo::new(&[
        ("tasks/a/A-10/PROMPT.md", ""),
        ("tasks/a/A-9-x/PROMPT.md", ""),
        ("tasks/a/notes/README.md", ""),
        ("tasks/a/archive/A-1/PROMPT.md", ""),
        ("tasks/T-1/PROMPT.md", ""),
        ("tasks/b/B-1/PROMPT.md", ""),
        ("services/pay/todo/P-1/PROMPT.md", "## Dependencies\n- P-2\n"),
        ("services/pay/todo/P-2/PROMPT.md", ""),
        ("other/O-1/PROMPT.md", ""),
    ]);
    assert_eq!(tree.task_names(&["all"]), ["T-1", "a/A-9", "a/A-10", "b/B-1"]);
    assert_eq!(tree.task_names(&["a"]), ["a/A-9", "a/A-10"]);
    assert_eq!(tree.task_names(&["b", "tasks/a/A-10"]), ["a/A-10", "b/B-1"]);
    assert_eq!(tree.task_names(&["./tasks/a/A-10/PROMPT.md"]), ["a/A-10"]);
    assert_eq!(tree.task_names(&["tasks"]), tree.task_names(&["all"]));
    assert_eq!(tree.task_names(&["services/pay/todo"]), ["todo/P-1", "todo/P-2"]);
    assert_eq!(tree.task_names(&["other/O-1"]), ["other/O-1"]);
    tree.areas = vec![("pay".to_owned(), "services/pay/todo".to_owned())];
    assert_eq!(tree.task_names(&["pay", "b"]), ["b/B-1", "pay/P-1", "pay/P-2"]);
    let invalid_sources = [&["aa"][..], &["pay/P-1"], &["services/pay/todo/P-1"]];
    insta::assert_snapshot!(invalid_sources.map(|sources| tree.error_text(sources)).concat(), @r"
    cannot find the plan 'aa'
      did you mean 'a'?
    cannot find the plan 'pay/P-1'
      did you mean 'pay'?
    services/pay/todo/P-1/PROMPT.md:2:3: task 'pay/P-1' needs 'pay/P-2', which is not done and not part of this plan
      include it: git proq plan services/pay/todo/P-1 services/pay/todo/P-2
    ");
}

#[test]
fn drops_needs_on_done_tasks_outside_plan() {
    let tree = TestRepo::new(&[
        ("tasks/a/A-1/PROMPT.md", "## Dependencies\n- B-1, B-2\n- A-2\n"),
        ("tasks/a/A-2/PROMPT.md", ""),
        ("tasks/a/A-2/.DONE", ""),
        ("tasks/b/B-1/PROMPT.md", ""),
        ("tasks/b/B-1/.DONE", ""),
        ("tasks/b/archive/B-2-x/PROMPT.md", ""),
    ]);
    let plan = tree.read_plan(&["a"]).unwrap();
    let tasks: Vec<_> = plan.tasks().map(|spot| spot.task).collect();
    // A need on a done task of the plan stays.
    assert_eq!(tasks[0].needs.iter().map(|n| n.name.as_str()).collect::<Vec<_>>(), ["a/A-2"]);
    assert!(!tasks[0].done && tasks[1].done);
    let plan = tree.read_plan(&["all"]).unwrap();
    assert_eq!(plan.tasks().next().unwrap().task.needs.len(), 2);
}

#[test]
fn reads_needs_in_all_forms() {
    for none in
        ["- **None**", "None", "- none (it stands alone)", "- **Task:** None", "", "> A-2", "```\n- A-2\n```"]
    {
        assert_eq!(needs_and_notes(none), [""; 0], "{none}");
    }
    for one in [
        "- A-2",
        "* `A-2` — the table",
        "- **Task:** A-2 (why)",
        "**Requires:** a/A-2",
        "A-2",
        "- a-2.",
        "- **A-2**: the table",
        "1. A-2",
        "- A-2\n---\n- B-1",
        "- A-2\n## Steps\n- B-1",
    ] {
        assert_eq!(needs_and_notes(one), ["a/A-2"], "{one}");
    }
    assert_eq!(needs_and_notes("- A-2, b/B-1 and login (all of them)"), ["a/A-2", "b/B-1", "a/login"]);
    insta::assert_snapshot!(needs_and_notes("- the login page\n- A-2\n- login works by then\n- b/B-1 has to land").join("\n"), @r"
    a/A-2
    b/B-1
    tasks/a/A-1-the-name/PROMPT.md:2:3: this names no task and is skipped: the login page
    tasks/a/A-1-the-name/PROMPT.md:4:3: this names no task and is skipped: login works by then
    ");
}

#[test]
fn reads_title_size_review_scope_and_progress() {
    let text = "# Task: A-1 — A title: with more\n\n**Size:** s (small)\n## Review Level: 2 (plan)\n## File Scope\n> why\n\
                - `src/a.rs` (new) and `b`\n- src/b/ — all\n- docs\n- any other file\n- **None**\n\n### Step 1: x\n- [x] one\n\
                #### Part\n- [ ] two\n## End\n- [ ] three\n";
    let (task, notes) = read_task_and_notes(text);
    assert_eq!((task.title.as_str(), task.size, task.review_level), ("A title: with more", Size::S, Some(2)));
    assert_eq!(task.scope, ["src/a.rs", "src/b/", "docs"]);
    assert_eq!(task.progress, Some(BoxProgress { done: 1, total: 2 }));
    assert_eq!(task.prompt, text);
    assert_eq!(
        notes,
        ["tasks/a/A-1-the-name/PROMPT.md:10:3: this names no file and is skipped: any other file"]
    );
    for (heading, title) in [
        ("# A-1", "A-1"),
        ("# A-1: Title", "Title"),
        ("# Task: Title - of it", "Title - of it"),
        ("# A-1 and others", "A-1 and others"),
        ("## A-7 - no", "A-1-the-name"),
    ] {
        assert_eq!(self::read_task_and_notes(heading).0.title, title, "{heading}");
    }
}

/// Promise: strangers/task-folder-read
#[test]
fn does_not_follow_links_out_of_repository() {
    let tree = TestRepo::new(&[
        ("tasks/a/A-1/PROMPT.md", ""),
        ("../out/secret/PROMPT.md", "secret"),
        ("../out/area/X-1/PROMPT.md", "secret"),
        ("../out/file", "secret"),
        ("lib/A-3/PROMPT.md", "inside"),
    ]);
    let link = |to: &str, from: &str| {
        std::os::unix::fs::symlink(to, tree.top().join(from)).unwrap();
    };
    link("../../../out/secret", "tasks/a/A-2-link");
    link("../../out/area", "tasks/b");
    link("../../lib/A-3", "tasks/a/A-3-inside");
    link("../../../gone", "tasks/a/A-4-gone");
    let plan = tree.read_plan(&["all"]).unwrap();
    let names: Vec<String> = plan.tasks().map(|spot| spot.task.full_name()).collect();
    assert_eq!(names, ["a/A-1", "a/A-3"]);
    let notes: Vec<String> = plan.source_notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
        [
            "tasks/b: this is a link out of the repository, so it is skipped",
            "tasks/a/A-2-link: this is a link out of the repository, so it is skipped",
        ]
    );
    // A link that was named explicitly is an error.
    let error_text = |sources: &[&str]| tree.error_text(sources);
    assert_eq!(
        error_text(&["tasks/b/X-1"]),
        "[TOP]/tasks/b/X-1 is outside of the repository\n  move it into the repository\n"
    );
    assert!(error_text(&["../out/area"]).starts_with("[TOP]/../out/area is outside of"));
    // A file of a task that links out of the repository is an error too.
    link("../../../../out/file", "tasks/a/A-1/STATUS.md");
    assert!(error_text(&["all"]).starts_with("[TOP]/tasks/a/A-1/STATUS.md is outside of the repository"));
}

/// Promise: strangers/task-folder-read
#[test]
fn refuses_folder_named_as_prompt_file() {
    let tree = TestRepo::new(&[("tasks/a/A-1/PROMPT.md", "")]);
    std::fs::create_dir_all(tree.top().join("tasks/a/A-2/PROMPT.md")).unwrap();
    assert!(tree.error_text(&["all"]).starts_with("cannot find the plan 'tasks/a/A-2/PROMPT.md'"));
}

#[test]
fn reads_id_from_folder_name() {
    let ids = ["AUTH-014-add-roles", "TP-1", "a1-2b-c", "login", "add-roles", "-x", "a b", "2-3-x"]
        .map(id_from_folder_name);
    let expected = [
        Some("AUTH-014"),
        Some("TP-1"),
        Some("a1-2b"),
        Some("login"),
        Some("add-roles"),
        None,
        None,
        Some("2-3-x"),
    ];
    assert_eq!(ids, expected);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        drop(prompt_file::parse(&Arc::from("f"), &text, &TaskIndex::from_folders(&[])));
        let _ = prompt_file::parse_progress(&text);
    }

    #[test]
    fn no_text_much_like_a_task_makes_it_panic(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "# ", "## Dependencies\n", "## File Scope\n", "- ", "**", "`", "Task:", ":", "A-1", "a/", ",", "and ", "é", "[ ] ", "[x]",
            "\n", "\r\n", "```", "~~~", "<!--", "-->", "**Size:**", "**Review Level:** ", "Review Level:", "—", "(", "\t", "1. ", "*",
        ]), 0..40),
    ) {
        let text = parts.concat();
        drop(prompt_file::parse(&Arc::from("f"), &text, &TaskIndex::from_folders(&[])));
        let _ = prompt_file::parse_progress(&text);
    }
}
