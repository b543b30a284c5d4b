//! Tests of marking tasks as done in a plan's file: checkboxes, status values, and unchanged text.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;

/// Marks tasks in a text; each is `NAME` or `NAME=Title`.
fn mark_tasks(format: PlanFormat, milestone: &str, text: &str, done: &[&str]) -> MarkedFile {
    let done: Vec<(&str, &str)> = done.iter().map(|d| d.split_once('=').unwrap_or((d, ""))).collect();
    mark_done(PlanFile { format, name: &Arc::from("plan"), text, milestone }, &done).unwrap()
}

/// Returns the lines that changed, with `-` and `+`.
fn changed_lines(format: PlanFormat, milestone: &str, text: &str, done: &[&str]) -> String {
    let MarkedFile { text: new, unmarked_tasks: missing } = mark_tasks(format, milestone, text, done);
    assert_eq!(missing, Vec::<String>::new());
    let (old, new): (Vec<&str>, Vec<&str>) = (text.split('\n').collect(), new.split('\n').collect());
    let removed = old.iter().filter(|line| !new.contains(line)).map(|line| format!("-{line}\n"));
    let added = new.iter().filter(|line| !old.contains(line)).map(|line| format!("+{line}\n"));
    removed.chain(added).collect()
}

#[test]
fn ticks_boxes_of_roadmap() {
    let text = "# One\n\n- [ ] Fix it\n- [ ] Fix it\n  - [ ] a part\n\n# Two\r\n\n\
                ```\n- [ ] no item\n```\n 1. [ ] **T-1**: A [ ] bracket\r\n* [x] Done\n\t+ [ ] below\n- [ ]\té\n";
    assert_eq!(changed_lines(PlanFormat::Roadmap, "One", text, &["fix-it-2=Fix it"]), "+- [x] Fix it\n");
    let two = changed_lines(PlanFormat::Roadmap, "Two", text, &["T-1=A [ ] bracket", "e=é", "done=Done"]);
    assert_eq!(
        two,
        "- 1. [ ] **T-1**: A [ ] bracket\r\n-- [ ]\té\n+ 1. [x] **T-1**: A [ ] bracket\r\n+- [x]\té\n"
    );
}

#[test]
fn ticks_the_named_one_of_equal_items() {
    let text = "# One\n- [ ] Fix it\n- [ ] Fix it\n";
    let MarkedFile { text: new, unmarked_tasks: missing } =
        mark_tasks(PlanFormat::Roadmap, "One", text, &["fix-it-2=Fix it"]);
    assert_eq!((new.as_str(), missing.len()), ("# One\n- [ ] Fix it\n- [x] Fix it\n", 0));
}

#[test]
fn reports_missing_tasks_and_marks_the_others() {
    let text = "# One\n- [ ] First\n- [ ] Other\n";
    let marked =
        mark_tasks(PlanFormat::Roadmap, "One", text, &["first=First", "second=Second", "other=Former title"]);
    assert_eq!(marked.text, "# One\n- [x] First\n- [ ] Other\n");
    assert_eq!(marked.unmarked_tasks, ["second", "other"]);
    let ticked = "# One\n- [x] First\n";
    let file =
        PlanFile { format: PlanFormat::Roadmap, name: &Arc::from("plan"), text: ticked, milestone: "Gone" };
    assert!(mark_done(file, &[("first", "First")]).is_err());
}

#[test]
fn marks_stories_in_the_style_of_their_file() {
    let text = "stories:\n  - id: A-1 # first\n    title: One\n    status: in progress\n  - title: Two\n    id: \"A-2\"\n  \
                - {id: 3, title: 'Three', status: \"todo\"}\n  - {id: A-4, title: Four}\n";
    assert_eq!(
        changed_lines(PlanFormat::Stories, "", text, &["A-1", "A-2", "3", "A-4"]),
        "-    status: in progress\n-  - {id: 3, title: 'Three', status: \"todo\"}\n-  - {id: A-4, title: Four}\n\
         +    status: done\n+    status: done\n+  - {id: 3, title: 'Three', status: \"done\"}\n+  - {id: A-4, status: done, title: Four}\n"
    );
    let text = "- id: A\n  title: One\n  status: Open\n- id: B\n  title: Two\n  status: 'Merged'\n";
    assert_eq!(changed_lines(PlanFormat::Stories, "", text, &["A"]), "-  status: Open\n+  status: Merged\n");
    let text = "- id: A\n  title: One\n  passes: False\n- id: B\n  title: Two\n";
    let both = changed_lines(PlanFormat::Stories, "", text, &["A", "B"]);
    assert_eq!(both, "-  passes: False\n+  passes: true\n+  passes: true\n");
    assert_eq!(mark_tasks(PlanFormat::Stories, "", text, &["B"]).text.matches("passes: true").count(), 1);
    let text = "- id: A\n  title: One\n  status: TODO\n  passes: false";
    assert_eq!(
        mark_tasks(PlanFormat::Stories, "", text, &["A"]).text,
        "- id: A\n  title: One\n  status: DONE\n  passes: true"
    );
}

#[test]
fn leaves_entry_that_cannot_be_marked_safely() {
    let text = "- id: A\n  title: One\n  status: \"to\\x64o\"\n- id: B\n  title: Two\n  status: open\n";
    let marked = mark_tasks(PlanFormat::Stories, "", text, &["A", "B"]);
    assert_eq!(marked.unmarked_tasks, ["A"]);
    assert_eq!(marked.text, text.replace("open", "done"));
}

#[test]
fn adds_done_line_to_toml_tasks() {
    let text = "format = 1\r\n[[phase]]\r\n  [[phase.group]]\r\n    [[phase.group.task]]\r\n    \
                id = \"A\" # a\r\n    title = \"One\"\r\n    [[phase.group.task]]\n\tid = 'B'\n\ttitle = \"Two\"\n\tdone = false\n";
    assert_eq!(
        changed_lines(PlanFormat::Toml, "", text, &["A", "B"]),
        "-\tdone = false\n+    done = true\r\n+\tdone = true\n"
    );
    let text = "format = 1\ntask = [{ id = \"A\", title = \"One\" }, { title = \"Two\", id = \"B\" }]\n\n[[phase]]\n";
    assert!(toml_plan::read(&Arc::from("plan"), text).is_err());
    let text =
        "format = 1\ntask = [{ id = \"A\", title = \"One\" }, { title = \"Two\", area = \"x\", id = \"B\" }]";
    assert_eq!(
        mark_tasks(PlanFormat::Toml, "", text, &["A", "x/B"]).text,
        "format = 1\ntask = [{ id = \"A\", done = true, title = \"One\" }, { title = \"Two\", area = \"x\", id = \"B\", done = true }]"
    );
}

fn any_plan_file() -> impl Strategy<Value = (PlanFormat, String, usize)> {
    let words =
        || proptest::sample::select(vec!["Fix it", "é [ ] x", "a: b", "- [ ] y", "T-1", "x # y", "'q'"]);
    let item = (words(), any::<bool>(), any::<bool>());
    (0..3_usize, proptest::collection::vec(item, 1..12), any::<bool>()).prop_map(|(format, items, crlf)| {
        let mut text = ["# M\n", "format = 1\n", "stories:\n"][format].to_owned();
        for (index, (title, done, flag)) in items.iter().enumerate() {
            text += &match (format, flag) {
                (0, _) => format!("- [{}] {title}\n", if *done { 'x' } else { ' ' }),
                (1, true) => format!("[[task]]\nid = \"T-{index}\"\ntitle = \"{title}\"\ndone = {done}\n"),
                (1, false) => format!("[[task]]\ntitle = \"{title}\"\nid = \"T-{index}\"\n"),
                (_, true) => format!("- id: T-{index}\n  title: \"{title}\"\n  passes: {done}\n"),
                (_, false) => format!("- {{title: \"{title}\", id: T-{index}}}\n"),
            };
        }
        let format = [PlanFormat::Roadmap, PlanFormat::Toml, PlanFormat::Stories][format];
        (format, if crlf { text.replace('\n', "\r\n") } else { text }, items.len())
    })
}

proptest! {
    #[test]
    fn marks_chosen_tasks_and_changes_nothing_else((format, text, count) in any_plan_file(), which: u16) {
        let name: Arc<str> = Arc::from("plan");
        let file = PlanFile { format, name: &name, text: &text, milestone: "M" };
        let plan = file.parse().unwrap();
        prop_assert_eq!(plan.tasks().count(), count);
        let chosen: Vec<(String, String)> = plan
            .tasks()
            .enumerate()
            .filter(|(at, _)| which >> (at % 16) & 1 == 1)
            .map(|(_, spot)| (spot.task.full_name(), spot.task.title.clone()))
            .collect();
        let chosen: Vec<(&str, &str)> = chosen.iter().map(|(id, title)| (id.as_str(), title.as_str())).collect();
        let noted = mark_done(file, &chosen).unwrap();
        prop_assert_eq!(&noted.unmarked_tasks, &Vec::<String>::new());
        let after = PlanFile { text: &noted.text, ..file }.parse().unwrap();
        for (before, after) in plan.tasks().zip(after.tasks()) {
            let name = before.task.full_name();
            prop_assert_eq!(after.task.done, before.task.done || chosen.iter().any(|(id, _)| *id == name));
        }
        // Marking the same tasks again changes nothing.
        prop_assert_eq!(mark_done(PlanFile { text: &noted.text, ..file }, &chosen).unwrap().text, noted.text);
    }
}
