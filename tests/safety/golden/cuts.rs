//! Golden journals that end after or within each of their lines, as kills leave them, and their recovery.

use std::process::Command;

use proq_test_kit::faults::{assert_tidy, kill_at};
use proq_test_kit::{RepoState, Sandbox, file_names, without_run_and_landing};
use serde_json::Value;

use super::canonical::RunValues;
use super::cases::{CASES, Case};
use super::journals::{capture, golden_journals, logged_operations, run_case};

/// A kill between two changes of an operation.
struct Kill {
    /// Fault point at which the program is killed.
    at: String,
    /// Number of complete lines in the journal.
    line_count: usize,
    /// Whether half of another line follows.
    is_torn: bool,
}

/// Returns the kills that leave a journal with each number of lines. The line that records a finished step is
/// not written yet at the fault point after the step.
fn kills(journal: &str) -> Vec<Kill> {
    let (mut plans, mut ended_steps) = (0, 0);
    let mut out = Vec::new();
    for (n, line) in journal.lines().enumerate() {
        let line: Value = serde_json::from_str(line).unwrap();
        let at = match line.as_object().unwrap().keys().next().unwrap().as_str() {
            "open" => "journal.planned".to_owned(),
            "plan" => {
                plans += 1;
                format!("journal.planned:{plans}")
            }
            "done" => {
                ended_steps += 1;
                format!("step.after:{ended_steps}")
            }
            "end" => "journal.ended".to_owned(),
            other => panic!("a finished operation has no {other}"),
        };
        // A plan that is not complete is none: its steps have not begun.
        if !at.starts_with("journal.planned:") {
            out.push(Kill { at: at.clone(), line_count: n, is_torn: true });
        }
        out.push(Kill { at, line_count: n + 1, is_torn: false });
    }
    out
}

/// A repository that is made once and copied for each kill. Its folder has the same path each time.
struct Template {
    sandbox: Sandbox,
    before: RepoState,
}

impl Template {
    fn new(scene: fn() -> Sandbox) -> Template {
        let sandbox = scene();
        let before = capture(&sandbox);
        copy_repository(&sandbox, "repo", "template");
        Template { sandbox, before }
    }

    /// Returns the sandbox as the scene made it.
    fn reset(&self) -> &Sandbox {
        copy_repository(&self.sandbox, "template", "repo");
        // Copies are other files to git.
        let lanes = file_names(&self.sandbox.repo.join(".proq-worktrees")).into_iter();
        for dir in lanes.map(|lane| self.sandbox.lane_path(&lane)).chain([self.sandbox.repo.clone()]) {
            if dir.join(".git").exists() {
                self.sandbox.sh_in(&dir, "git update-index -q --refresh || true");
            }
        }
        &self.sandbox
    }
}

fn copy_repository(sandbox: &Sandbox, from: &str, to: &str) {
    let mut copy: Command = sandbox.command("sh", &sandbox.root());
    copy.args(["-ec", "rm -rf \"$1\"; cp -a \"$0\" \"$1\"", from, to]);
    let _ = sandbox.output(copy).ok();
}

/// Leaves the golden journal with the lines that a kill leaves, with the values of this run.
fn shorten_journal(sandbox: &Sandbox, golden: &str, kill: &Kill) {
    let work = sandbox.repo.join(".git/proq/work");
    let mut journals = file_names(&work).into_iter().map(|id| work.join(id).join("journal"));
    let journal = journals.rfind(|path| path.exists()).unwrap();
    let (_, run) = RunValues::canonicalize(sandbox, &std::fs::read_to_string(&journal).unwrap());
    let mut lines = golden.split_inclusive('\n');
    let mut text: String = lines.by_ref().take(kill.line_count).collect();
    if kill.is_torn {
        let line = lines.next().unwrap();
        text.push_str(&line[..line.len() / 2]);
    }
    std::fs::write(journal, run.materialize(&text)).unwrap();
    write_records_of_older_version(sandbox);
}

/// Leaves the records of lanes as the version wrote them that wrote the golden journals.
pub fn write_records_of_older_version(sandbox: &Sandbox) {
    for folder in ["lanes", "history"] {
        let dir = sandbox.repo.join(".git/proq").join(folder);
        for record in file_names(&dir).into_iter().map(|lane| dir.join(lane).join("lane.toml")) {
            if let Ok(text) = std::fs::read_to_string(&record) {
                std::fs::write(record, without_run_and_landing(&text)).unwrap();
            }
        }
    }
}

/// Kills a case at each line of its journal, and recovers it twice.
#[track_caller]
pub fn check_cut_journals(case: &Case) {
    let golden = golden_journals(case);
    let template = Template::new(case.scene);
    let state_after = |args: &Case| {
        let sandbox = template.reset();
        let _ = run_case(sandbox, args);
        capture(sandbox)
    };
    let after = state_after(case);
    let between = case.between.iter().map(|args| state_after(&Case { args, ..*case }));
    let between: Vec<RepoState> = between.collect();
    for kill in kills(&golden) {
        let moment = format!("{}, {} lines, torn: {}", kill.at, kill.line_count, kill.is_torn);
        let sandbox = template.reset();
        kill_at(sandbox, &kill.at, case.args);
        shorten_journal(sandbox, &golden, &kill);
        let first = sandbox.proq(&["list"]);
        assert_eq!(first.code, 0, "{moment}: {}", first.to_text());
        let logged = logged_operations(sandbox);
        let second = sandbox.proq(&["list"]);
        assert!(!second.stderr.contains("cut short"), "{moment}: {}", second.to_text());
        assert_eq!(logged_operations(sandbox), logged, "{moment}: a second recovery");
        assert_tidy(sandbox);
        let state = capture(sandbox);
        if state != after && !between.contains(&state) {
            state.assert_same(&template.before, &moment);
        }
    }
}

macro_rules! cut {
    ($($test:ident: $name:literal;)*) => {
        $(#[test]
        fn $test() {
            check_cut_journals(CASES.iter().find(|case| case.name == $name).unwrap());
        })*

        #[test]
        fn every_case_is_killed() {
            let killed = CASES.iter().filter(|case| case.can_be_killed).map(|case| case.name);
            assert_eq!([$($name),*].as_slice(), killed.collect::<Vec<_>>());
        }
    };
}

cut! {
    approve: "approve";
    cleanup: "cleanup";
    cleanup_unrecorded: "cleanup-unrecorded";
    discard: "discard";
    doctor: "doctor";
    edit: "edit";
    merge: "merge";
    merge_all: "merge-all";
    merge_autostash: "merge-autostash";
    merge_conflict: "merge-conflict";
    merge_elsewhere: "merge-elsewhere";
    merge_rebase: "merge-rebase";
    merge_squash: "merge-squash";
    preview: "preview";
    preview_back: "preview-back";
    preview_back_commit: "preview-back-commit";
    preview_back_moved: "preview-back-moved";
    preview_refresh: "preview-refresh";
    preview_switch: "preview-switch";
    redo: "redo";
    rename: "rename";
    resolve: "resolve";
    resolve_abort: "resolve-abort";
    resolve_continue: "resolve-continue";
    snap_restore: "snap-restore";
    spawn: "spawn";
    spawn_carry: "spawn-carry";
    spawn_count: "spawn-count";
    spawn_pool: "spawn-pool";
    sync: "sync";
    undo: "undo";
    undo_pool: "undo-pool";
}
