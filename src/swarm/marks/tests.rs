//! Owns the tests of noting tasks in a plan: boxes, states, and all that has to stay as it was.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;

/// What becomes of a text in which tasks are noted, which are `NAME` or `NAME=Title`.
fn noted(format: Format, milestone: &str, text: &str, done: &[&str]) -> Noted {
    let done: Vec<(&str, &str)> = done.iter().map(|d| d.split_once('=').unwrap_or((d, ""))).collect();
    note(File { format, name: &Arc::from("plan"), text, milestone }, &done).unwrap()
}

/// The lines that changed, with `-` and `+`.
fn changes(format: Format, milestone: &str, text: &str, done: &[&str]) -> String {
    let Noted { text: new, missing } = noted(format, milestone, text, done);
    assert_eq!(missing, Vec::<String>::new());
    let (old, new): (Vec<&str>, Vec<&str>) = (text.split('\n').collect(), new.split('\n').collect());
    let lost = old.iter().filter(|line| !new.contains(line)).map(|line| format!("-{line}\n"));
    let won = new.iter().filter(|line| !old.contains(line)).map(|line| format!("+{line}\n"));
    lost.chain(won).collect()
}

#[test]
fn boxes_of_a_roadmap_are_ticked() {
    let text = "# One\n\n- [ ] Fix it\n- [ ] Fix it\n  - [ ] a part\n\n# Two\r\n\n\
                ```\n- [ ] no item\n```\n 1. [ ] **T-1**: A [ ] bracket\r\n* [x] Done\n\t+ [ ] below\n- [ ]\té\n";
    assert_eq!(changes(Format::Roadmap, "One", text, &["fix-it-2=Fix it"]), "+- [x] Fix it\n");
    let two = changes(Format::Roadmap, "Two", text, &["T-1=A [ ] bracket", "e=é", "done=Done"]);
    assert_eq!(
        two,
        "- 1. [ ] **T-1**: A [ ] bracket\r\n-- [ ]\té\n+ 1. [x] **T-1**: A [ ] bracket\r\n+- [x]\té\n"
    );
}

#[test]
fn of_items_that_are_called_alike_the_one_that_was_meant_is_ticked() {
    let text = "# One\n- [ ] Fix it\n- [ ] Fix it\n";
    let Noted { text: new, missing } = noted(Format::Roadmap, "One", text, &["fix-it-2=Fix it"]);
    assert_eq!((new.as_str(), missing.len()), ("# One\n- [ ] Fix it\n- [x] Fix it\n", 0));
}

#[test]
fn what_is_not_there_any_more_is_said_and_the_rest_is_noted() {
    let text = "# One\n- [ ] First\n- [ ] Other\n";
    let noted = noted(Format::Roadmap, "One", text, &["first=First", "second=Second", "other=Former title"]);
    assert_eq!(noted.text, "# One\n- [x] First\n- [ ] Other\n");
    assert_eq!(noted.missing, ["second", "other"]);
    let ticked = "# One\n- [x] First\n";
    let file = File { format: Format::Roadmap, name: &Arc::from("plan"), text: ticked, milestone: "Gone" };
    assert!(note(file, &[("first", "First")]).is_err());
}

#[test]
fn stories_say_it_as_the_others_do() {
    let text = "stories:\n  - id: A-1 # first\n    title: One\n    status: in progress\n  - title: Two\n    id: \"A-2\"\n  \
                - {id: 3, title: 'Three', status: \"todo\"}\n  - {id: A-4, title: Four}\n";
    assert_eq!(
        changes(Format::Stories, "", text, &["A-1", "A-2", "3", "A-4"]),
        "-    status: in progress\n-  - {id: 3, title: 'Three', status: \"todo\"}\n-  - {id: A-4, title: Four}\n\
         +    status: done\n+    status: done\n+  - {id: 3, title: 'Three', status: \"done\"}\n+  - {id: A-4, status: done, title: Four}\n"
    );
    let text = "- id: A\n  title: One\n  status: Open\n- id: B\n  title: Two\n  status: 'Merged'\n";
    assert_eq!(changes(Format::Stories, "", text, &["A"]), "-  status: Open\n+  status: Merged\n");
    let text = "- id: A\n  title: One\n  passes: False\n- id: B\n  title: Two\n";
    let both = changes(Format::Stories, "", text, &["A", "B"]);
    assert_eq!(both, "-  passes: False\n+  passes: true\n+  passes: true\n");
    assert_eq!(noted(Format::Stories, "", text, &["B"]).text.matches("passes: true").count(), 1);
    let text = "- id: A\n  title: One\n  status: TODO\n  passes: false";
    assert_eq!(
        noted(Format::Stories, "", text, &["A"]).text,
        "- id: A\n  title: One\n  status: DONE\n  passes: true"
    );
}

#[test]
fn what_cannot_be_noted_safely_is_left_as_it_is() {
    let text = "- id: A\n  title: One\n  status: \"to\\x64o\"\n- id: B\n  title: Two\n  status: open\n";
    let noted = noted(Format::Stories, "", text, &["A", "B"]);
    assert_eq!(noted.missing, ["A"]);
    assert_eq!(noted.text, text.replace("open", "done"));
}

#[test]
fn tasks_of_a_plan_in_toml_get_a_line() {
    let text = "format = 1\r\n[[phase]]\r\n  [[phase.group]]\r\n    [[phase.group.task]]\r\n    \
                id = \"A\" # a\r\n    title = \"One\"\r\n    [[phase.group.task]]\n\tid = 'B'\n\ttitle = \"Two\"\n\tdone = false\n";
    assert_eq!(
        changes(Format::Toml, "", text, &["A", "B"]),
        "-\tdone = false\n+    done = true\r\n+\tdone = true\n"
    );
    let text = "format = 1\ntask = [{ id = \"A\", title = \"One\" }, { title = \"Two\", id = \"B\" }]\n\n[[phase]]\n";
    assert!(toml_plan::read(&Arc::from("plan"), text).is_err());
    let text =
        "format = 1\ntask = [{ id = \"A\", title = \"One\" }, { title = \"Two\", area = \"x\", id = \"B\" }]";
    assert_eq!(
        noted(Format::Toml, "", text, &["A", "x/B"]).text,
        "format = 1\ntask = [{ id = \"A\", done = true, title = \"One\" }, { title = \"Two\", area = \"x\", id = \"B\", done = true }]"
    );
}

fn a_file() -> impl Strategy<Value = (Format, String, usize)> {
    let words =
        || proptest::sample::select(vec!["Fix it", "é [ ] x", "a: b", "- [ ] y", "T-1", "x # y", "'q'"]);
    let item = (words(), any::<bool>(), any::<bool>());
    (0..3_usize, proptest::collection::vec(item, 1..12), any::<bool>()).prop_map(|(format, items, crlf)| {
        let mut text = ["# M\n", "format = 1\n", "stories:\n"][format].to_owned();
        for (at, (title, done, flag)) in items.iter().enumerate() {
            text += &match (format, flag) {
                (0, _) => format!("- [{}] {title}\n", if *done { 'x' } else { ' ' }),
                (1, true) => format!("[[task]]\nid = \"T-{at}\"\ntitle = \"{title}\"\ndone = {done}\n"),
                (1, false) => format!("[[task]]\ntitle = \"{title}\"\nid = \"T-{at}\"\n"),
                (_, true) => format!("- id: T-{at}\n  title: \"{title}\"\n  passes: {done}\n"),
                (_, false) => format!("- {{title: \"{title}\", id: T-{at}}}\n"),
            };
        }
        let format = [Format::Roadmap, Format::Toml, Format::Stories][format];
        (format, if crlf { text.replace('\n', "\r\n") } else { text }, items.len())
    })
}

proptest! {
    #[test]
    fn all_that_is_noted_is_read_again_and_nothing_else_changes((format, text, count) in a_file(), which: u16) {
        let name: Arc<str> = Arc::from("plan");
        let file = File { format, name: &name, text: &text, milestone: "M" };
        let plan = file.plan().unwrap();
        prop_assert_eq!(plan.spots().count(), count);
        let chosen: Vec<(String, String)> = plan
            .spots()
            .enumerate()
            .filter(|(at, _)| which >> (at % 16) & 1 == 1)
            .map(|(_, spot)| (spot.task.name(), spot.task.title.clone()))
            .collect();
        let chosen: Vec<(&str, &str)> = chosen.iter().map(|(id, title)| (id.as_str(), title.as_str())).collect();
        let noted = note(file, &chosen).unwrap();
        prop_assert_eq!(&noted.missing, &Vec::<String>::new());
        let after = File { text: &noted.text, ..file }.plan().unwrap();
        for (before, after) in plan.spots().zip(after.spots()) {
            let name = before.task.name();
            prop_assert_eq!(after.task.done, before.task.done || chosen.iter().any(|(id, _)| *id == name));
        }
        // Once more changes nothing.
        prop_assert_eq!(note(File { text: &noted.text, ..file }, &chosen).unwrap().text, noted.text);
    }
}
