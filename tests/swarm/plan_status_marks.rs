//! Tests of marking landed tasks as done in their plan: on which branch, in which commit, and which of the
//! user's own edits stay.

use std::process::{Child, Stdio};

use proq_test_kit::Sandbox;
use proq_test_kit::plans::{install_worker, repo_with_plan};
use proq_test_kit::waiting::wait_until;

const BATCH: &str = "20260102-030405";

/// Plan with three items in the first milestone; the agent of the second one fails.
const ROADMAP: &str =
    "# Roadmap\n\n## M1: Shop\n\n- [ ] Table\n- [ ] Fails\n- [ ] Form\n\n## M2: Mail\n\n- [ ] Table\n";

const AUTH_1: &str = "# AUTH-1: Roles\n\n## Dependencies\n\n**None**\n";
const AUTH_2: &str = "# AUTH-2: Users\n\n## Dependencies\n\n**None**\n";

/// Agent script that ticks all steps of its task folder.
const STEPS: &str = "sed -i 's/\\[ \\]/[x]/' tasks/auth/AUTH-*/STATUS.md";

/// Creates a repository in which the plan `path` is committed.
fn sandbox_with_plan(path: &str, text: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(path, text);
    sandbox.commit_all("the plan");
    sandbox.git(&["config", "proq.swarm.agent", "worker"]);
    install_worker(&sandbox, "case $PROQ_TASK in *fail*|*FAIL*) exit 3 ;; esac");
    sandbox
}

/// Runs the plan to its end, whether its tasks land or fail.
fn run_swarm(sandbox: &Sandbox, args: &[&str]) {
    let command: Vec<&str> = ["swarm"].iter().chain(args).chain(&["-q"]).copied().collect();
    let out = sandbox.proq(&command);
    assert!(out.stdout.contains(" landed") || out.stdout.is_empty(), "{}{}", out.stdout, out.stderr);
}

#[test]
fn ticks_landed_boxes_in_a_commit_on_top() {
    let sandbox = sandbox_with_plan("ROADMAP.md", ROADMAP);
    run_swarm(&sandbox, &["ROADMAP.md", "--milestone", "M1"]);
    // The batch is not on main yet, and each command that lists lanes reports it.
    assert_eq!(sandbox.read("ROADMAP.md"), ROADMAP);
    let notice =
        format!("batch {BATCH}: 2 of 3 tasks landed on proq/batch-{BATCH}, which is not on main yet\n");
    let hint = format!("hint: land it on main: git proq merge --batch {BATCH}\n");
    for args in [&[][..], &["list"], &["merge", "--all"], &["merge", "--all", "--dry-run"]] {
        let out = sandbox.proq(args);
        assert!(out.stderr.contains(&notice) && out.stderr.contains(&hint), "{}", out.to_text());
        assert!(!out.stdout.contains("No lanes yet"), "{}", out.to_text());
    }
    assert_eq!(sandbox.proq(&["--json"]).json()["unlanded_batches"][0], BATCH);
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stderr.contains("marked in the plan by commit "), "{}", out.stderr);
    let expected = ROADMAP.replacen("- [ ] Table", "- [x] Table", 1).replace("- [ ] Form", "- [x] Form");
    assert_eq!(sandbox.read("ROADMAP.md"), expected);
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    insta::assert_snapshot!(sandbox.git(&["log", "-1", "--format=%an%n%B"]), @r"
    Ann Author
    Note 2 tasks as done

    table: Table
    form: Form

    Done in batch 20260102-030405.
    ");
    assert_eq!(sandbox.git(&["diff", "--name-only", "HEAD^"]), "ROADMAP.md");
    assert!(!sandbox.proq(&[]).stderr.contains("tasks landed"));
    sandbox.assert_healthy();
}

#[test]
fn landing_the_batch_lane_ticks_boxes_too() {
    let sandbox = sandbox_with_plan("ROADMAP.md", ROADMAP);
    run_swarm(&sandbox, &["ROADMAP.md", "--milestone", "M1"]);
    // The batch conflicts, so the user continues with the batch's lane.
    sandbox.write("table.txt", "mine\n");
    sandbox.commit_all("mine");
    let text = sandbox.proq(&["merge", "--batch", BATCH]).fails(3);
    assert!(text.contains("table.txt"), "{text}");
    sandbox.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let out = sandbox.proq(&["merge", &format!("swarm-{BATCH}")]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stderr.contains("marked in the plan by commit "), "{}", out.stderr);
    let expected = ROADMAP.replacen("- [ ] Table", "- [x] Table", 1).replace("- [ ] Form", "- [x] Form");
    assert_eq!(sandbox.read("ROADMAP.md"), expected);
    let status = sandbox.proq(&["batch", "status"]).to_text();
    assert!(status.contains("; merged into main\n") && !status.contains("merge it into"), "{status}");
    sandbox.assert_healthy();
}

#[test]
fn undo_unticks_and_merging_again_ticks_once() {
    let sandbox = sandbox_with_plan("ROADMAP.md", ROADMAP);
    run_swarm(&sandbox, &["ROADMAP.md", "--milestone", "M1"]);
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.read("ROADMAP.md"), ROADMAP);
    assert!(!sandbox.repo.join("table.txt").exists());
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    // A batch that is on main already is marked then, and only once.
    sandbox.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert!(out.stderr.contains("marked in the plan"), "{}{}", out.stdout, out.stderr);
    let tip = sandbox.git(&["rev-parse", "main"]);
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert!(!out.stderr.contains("marked in"), "{}", out.stderr);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);
    let report = sandbox.proq(&["report", "--json"]).json();
    assert_eq!(report["noted"]["commit"], tip);
    sandbox.assert_healthy();
}

#[test]
fn ticks_edited_plan_in_place_without_commit() {
    let sandbox = sandbox_with_plan("ROADMAP.md", ROADMAP);
    run_swarm(&sandbox, &["ROADMAP.md", "--milestone", "M1"]);
    let edited = ROADMAP.replace("# Roadmap\n", "# Roadmap\n\nMine.\n");
    sandbox.write("ROADMAP.md", &edited);
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stderr.contains("ROADMAP.md, which you have to commit"), "{}", out.stderr);
    let expected = edited.replacen("- [ ] Table", "- [x] Table", 1).replace("- [ ] Form", "- [x] Form");
    assert_eq!(sandbox.read("ROADMAP.md"), expected);
    assert_eq!(sandbox.git(&["show", "HEAD:ROADMAP.md"]) + "\n", ROADMAP);
    assert_eq!(sandbox.git(&["status", "--porcelain"]), " M ROADMAP.md");
}

#[test]
fn refuses_retries_without_an_agent_before_it_makes_a_lane() {
    let sandbox = sandbox_with_plan("ROADMAP.md", ROADMAP);
    run_swarm(&sandbox, &["ROADMAP.md", "--milestone", "M1"]);
    let operations = sandbox.proq(&["op", "log", "--json"]).ok();
    let message = sandbox.proq(&["merge", "--batch", BATCH, "--conflict-retries", "1"]).fails(2);
    assert!(message.contains("error: cannot use --conflict-retries"), "{message}");
    assert_eq!(sandbox.proq(&["op", "log", "--json"]).ok(), operations);
}

#[test]
fn leaves_edited_lines_and_reports_the_patch() {
    let sandbox = sandbox_with_plan("ROADMAP.md", ROADMAP);
    run_swarm(&sandbox, &["ROADMAP.md", "--milestone", "M1"]);
    let edited = ROADMAP.replace("- [ ] Form\n", "- [ ] Form  \n");
    sandbox.write("ROADMAP.md", &edited);
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stderr.contains("another program is changing these lines"), "{}", out.stderr);
    assert!(out.stderr.contains(&format!("as a patch: git proq batch report {BATCH}\n")), "{}", out.stderr);
    assert_eq!(sandbox.read("ROADMAP.md"), edited);
    let report = sandbox.proq(&["report"]).ok();
    assert!(report.contains("-- [ ] Table") && report.contains("+- [x] Table"), "{report}");
    let page = sandbox.proq(&["report", "--html"]).ok();
    assert!(page.contains("<pre>") && page.contains("+- [x] Table"), "{page}");
}

#[test]
fn ticks_untracked_plan_in_place() {
    let plan = "format = 1\nagent = \"worker\"\n# first\n[[task]]\nid = \"one\"\ntitle = \"One\"\n";
    let sandbox = repo_with_plan(plan);
    run_swarm(&sandbox, &["plan.toml"]);
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert!(out.stderr.contains("plan.toml, which you have to commit"), "{}", out.stderr);
    let expected =
        "format = 1\nagent = \"worker\"\n# first\n[[task]]\nid = \"one\"\ndone = true\ntitle = \"One\"\n";
    assert_eq!(sandbox.read("plan.toml"), expected);
    assert!(!sandbox.git(&["ls-files"]).contains("plan.toml"));
    let text = sandbox.proq(&["swarm", "plan.toml"]).fails(1);
    assert!(text.contains("done"), "{text}");
}

/// Creates an untracked plan of one task and runs its batch. Returns the plan's text too.
fn untracked_plan_after_batch() -> (Sandbox, String) {
    let plan = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"one\"\ntitle = \"One\"\n";
    let sandbox = repo_with_plan(plan);
    run_swarm(&sandbox, &["plan.toml"]);
    (sandbox, plan.to_owned())
}

/// Starts a landing of the batch that stops at the given fault points.
fn spawn_stopped_landing(sandbox: &Sandbox, points: &str) -> Child {
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "--batch", BATCH]);
    command.env("PROQ_TEST_STAND_AT", points).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the landing to finish and returns its warnings.
fn warnings(landing: Child) -> String {
    String::from_utf8(landing.wait_with_output().unwrap().stderr).unwrap()
}

/// Returns the contents of all plans in the trash.
fn trashed_plans(sandbox: &Sandbox) -> String {
    sandbox.sh("find .git/proq/trash -type f -name '*plan.toml*' -exec cat {} +")
}

/// Promise: strangers/plan-save-during-marking
#[test]
fn plan_saved_during_ticking_keeps_the_saved_text() {
    let (sandbox, plan) = untracked_plan_after_batch();
    let landing = spawn_stopped_landing(&sandbox, "plan.drafted");
    let stopped = sandbox.wait_until_stopped(landing.id());
    sandbox.sh("cp plan.toml new && echo '# mine' >> new && mv new plan.toml");
    let names = sandbox.sh("ls -A");
    drop(stopped);
    let text = warnings(landing);
    assert!(text.contains("another program is changing it"), "{text}");
    assert_eq!(sandbox.read("plan.toml"), format!("{plan}# mine\n"));
    assert_eq!((sandbox.sh("ls -A"), trashed_plans(&sandbox)), (names, String::new()));
    let report = sandbox.proq(&["report"]).ok();
    assert!(report.contains("+done = true"), "{report}");
}

/// Promise: strangers/plan-save-during-marking
#[test]
fn later_of_two_saves_wins_and_the_other_is_trashed() {
    let (sandbox, plan) = untracked_plan_after_batch();
    let landing = spawn_stopped_landing(&sandbox, "plan.drafted,plan.taken");
    let stopped = sandbox.wait_until_stopped(landing.id());
    sandbox.sh("cp plan.toml new && echo '# first' >> new && mv new plan.toml");
    drop(stopped);
    let stopped_again = sandbox.wait_until_stopped(landing.id());
    let second = format!("{}# second\n", sandbox.read("plan.toml"));
    assert!(second.contains("done = true"), "{second}");
    sandbox.write("plan.toml", &second);
    drop(stopped_again);
    let text = warnings(landing);
    assert!(text.contains("its earlier content is in "), "{text}");
    assert_eq!(sandbox.read("plan.toml"), second);
    assert_eq!(trashed_plans(&sandbox), format!("{plan}# first").trim_end());
}

/// Promise: strangers/plan-save-during-marking
#[test]
fn restores_plan_moved_away_during_ticking() {
    let (sandbox, plan) = untracked_plan_after_batch();
    let landing = spawn_stopped_landing(&sandbox, "plan.drafted,plan.taken");
    let stopped = sandbox.wait_until_stopped(landing.id());
    sandbox.sh("cp plan.toml new && echo '# mine' >> new && mv new plan.toml");
    drop(stopped);
    let stopped_again = sandbox.wait_until_stopped(landing.id());
    sandbox.sh("mv plan.toml plan.toml~");
    drop(stopped_again);
    let text = warnings(landing);
    assert!(text.contains("another program is changing it"), "{text}");
    assert_eq!(sandbox.read("plan.toml"), format!("{plan}# mine\n"));
    assert!(sandbox.read("plan.toml~").contains("done = true"));
}

/// Promise: strangers/plan-save-during-marking
#[test]
fn kill_during_ticking_keeps_saved_text_in_trash() {
    let (sandbox, plan) = untracked_plan_after_batch();
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "--batch", BATCH]);
    command.env("PROQ_TEST_STAND_AT", "plan.drafted").env("PROQ_TEST_DIE_AT", "plan.taken");
    let mut landing = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let stopped = sandbox.wait_until_stopped(landing.id());
    sandbox.sh("cp plan.toml new && echo '# mine' >> new && mv new plan.toml");
    drop(stopped);
    assert!(!landing.wait().unwrap().success());
    assert!(sandbox.read("plan.toml").contains("done = true"));
    assert_eq!(trashed_plans(&sandbox), format!("{plan}# mine").trim_end());
}

/// Promise: strangers/plan-save-during-marking
#[test]
fn kill_during_ticking_leaves_no_temporary_file() {
    let (sandbox, plan) = untracked_plan_after_batch();
    let names = sandbox.sh("ls -A");
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "--batch", BATCH]);
    command.env("PROQ_TEST_DIE_AT", "plan.drafted");
    assert_ne!(sandbox.output(command).code, 0);
    assert_eq!((sandbox.read("plan.toml"), sandbox.sh("ls -A | grep -v one.txt")), (plan, names));
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    assert!(sandbox.read("plan.toml").contains("done = true"));
}

#[test]
fn story_status_gets_the_word_used_by_others() {
    let plan = "stories:\n  - id: one # first\n    title: One\n    status: todo\n  - id: two\n    title: Two\n    status: done\n";
    let sandbox = sandbox_with_plan("stories.yaml", plan);
    run_swarm(&sandbox, &["stories.yaml"]);
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    assert_eq!(sandbox.read("stories.yaml"), plan.replace("status: todo", "status: done"));
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
}

#[test]
fn archives_tracked_and_untracked_task_folders() {
    let sandbox = sandbox_with_plan("tasks/auth/AUTH-1-roles/PROMPT.md", AUTH_1);
    sandbox.git(&["config", "proq.swarm.whenLanded", "archive"]);
    // Task folder that is not committed.
    sandbox.write("tasks/auth/AUTH-2-users/PROMPT.md", AUTH_2);
    install_worker(&sandbox, STEPS);
    run_swarm(&sandbox, &["auth"]);
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    let files = sandbox.git(&["ls-tree", "-r", "--name-only", "main", "--", "tasks"]);
    assert_eq!(files, "tasks/auth/archive/AUTH-1-roles/.DONE\ntasks/auth/archive/AUTH-1-roles/PROMPT.md");
    assert!(sandbox.repo.join("tasks/auth/archive/AUTH-2-users/.DONE").exists());
    assert!(!sandbox.repo.join("tasks/auth/AUTH-1-roles").exists());
    assert!(!sandbox.repo.join("tasks/auth/AUTH-2-users").exists());
    assert!(sandbox.proq(&["plan", "auth"]).fails(1).contains("auth"));
}

#[test]
fn marks_task_folders_in_place_without_archive() {
    let sandbox = sandbox_with_plan("tasks/auth/AUTH-1-roles/PROMPT.md", AUTH_1);
    install_worker(&sandbox, STEPS);
    run_swarm(&sandbox, &["auth"]);
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    let files = sandbox.git(&["ls-tree", "-r", "--name-only", "main", "--", "tasks"]);
    assert_eq!(files, "tasks/auth/AUTH-1-roles/.DONE\ntasks/auth/AUTH-1-roles/PROMPT.md");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
}

#[test]
fn file_in_place_of_the_archive_stays() {
    let sandbox = sandbox_with_plan("tasks/auth/AUTH-1-roles/PROMPT.md", AUTH_1);
    sandbox.git(&["config", "proq.swarm.whenLanded", "archive"]);
    install_worker(&sandbox, STEPS);
    run_swarm(&sandbox, &["auth"]);
    sandbox.write("tasks/auth/archive", "important\n");
    sandbox.commit_all("a file");
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert!(out.stderr.contains("something else is that is no folder"), "{}", out.stderr);
    assert_eq!(sandbox.read("tasks/auth/archive"), "important\n");
    let files = sandbox.git(&["ls-tree", "-r", "--name-only", "main", "--", "tasks"]);
    assert_eq!(files, "tasks/auth/AUTH-1-roles/.DONE\ntasks/auth/AUTH-1-roles/PROMPT.md\ntasks/auth/archive");
}

#[test]
fn when_landed_nothing_ticks_no_box() {
    let sandbox = sandbox_with_plan("ROADMAP.md", ROADMAP);
    sandbox.git(&["config", "proq.swarm.whenLanded", "nothing"]);
    run_swarm(&sandbox, &["ROADMAP.md", "--milestone", "M1"]);
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert!(!out.stderr.contains("marked in"), "{}", out.stderr);
    assert_eq!(sandbox.read("ROADMAP.md"), ROADMAP);
}

#[test]
fn auto_merged_tasks_are_ticked_at_the_end() {
    let sandbox = sandbox_with_plan("ROADMAP.md", ROADMAP);
    run_swarm(&sandbox, &["ROADMAP.md", "--milestone", "M2", "--auto-merge"]);
    let offset = ROADMAP.rfind("- [ ] Table").unwrap();
    let expected = format!("{}- [x] Table\n", &ROADMAP[..offset]);
    assert_eq!(sandbox.read("ROADMAP.md"), expected);
    assert!(sandbox.git(&["log", "-1", "--format=%s"]).starts_with("Note task table as done"));
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    sandbox.assert_healthy();
}

#[test]
fn retried_task_is_ticked_when_its_batch_lands() {
    let sandbox = sandbox_with_plan("ROADMAP.md", ROADMAP);
    run_swarm(&sandbox, &["ROADMAP.md", "--milestone", "M1"]);
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    assert!(sandbox.read("ROADMAP.md").contains("- [ ] Fails"));
    install_worker(&sandbox, "");
    let out = sandbox.proq(&["swarm", "ROADMAP.md", "--milestone", "M1", "--new", "--retry", "fails", "-q"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    let batches = std::fs::read_dir(sandbox.repo.join(".git/proq/batches")).unwrap().flatten();
    let mut names: Vec<String> = batches.map(|batch| batch.file_name().into_string().unwrap()).collect();
    names.sort();
    let _ = sandbox.proq(&["merge", "--batch", &names[1]]).ok();
    assert!(sandbox.read("ROADMAP.md").contains("- [x] Fails"));
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
}

#[test]
fn ticks_the_right_one_of_equal_headings() {
    let text = "# v1\n\n## Tasks\n\n- [x] Write tests\n- [x] Other\n\n# v2\n\n## Tasks\n\n- [ ] Write tests\n- [ ] New\n";
    let sandbox = sandbox_with_plan("ROADMAP.md", text);
    let refusal = sandbox.proq(&["plan", "ROADMAP.md", "--milestone", "tasks"]).fails(1);
    assert!(refusal.contains("v1: Tasks, v2: Tasks"), "{refusal}");
    run_swarm(&sandbox, &["ROADMAP.md"]);
    // The user adds an item of the same name to the first list while the batch waits.
    let changed_plan = text.replace("- [x] Other\n", "- [x] Other\n- [ ] New\n");
    sandbox.write("ROADMAP.md", &changed_plan);
    sandbox.commit_all("more");
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    let (first, second) = changed_plan.split_at(changed_plan.find("# v2").unwrap());
    assert_eq!(sandbox.read("ROADMAP.md"), format!("{first}{}", second.replace("- [ ]", "- [x]")));
}

#[test]
fn ticks_on_the_branch_landed_on() {
    let sandbox = sandbox_with_plan("ROADMAP.md", ROADMAP);
    sandbox.git(&["branch", "release"]);
    run_swarm(&sandbox, &["ROADMAP.md", "--milestone", "M2"]);
    let main = sandbox.git(&["rev-parse", "main"]);
    let out = sandbox.proq(&["merge", "--batch", BATCH, "--onto", "release"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stderr.contains("on release"), "{}", out.stderr);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
    assert!(sandbox.git(&["show", "release:ROADMAP.md"]).contains("- [x] Table"));
}

#[test]
fn reset_landing_is_not_ticked() {
    let sandbox = sandbox_with_plan("ROADMAP.md", ROADMAP);
    sandbox.pipe("go");
    install_worker(&sandbox, "case $name in fails) exit 3 ;; form) read line < $ROOT/go ;; esac");
    let _ = sandbox
        .proq(&["swarm", "ROADMAP.md", "--milestone", "M1", "--auto-merge", "--detach", "--yes", "-q"])
        .ok();
    wait_until("the landing of the table", || sandbox.repo.join("table.txt").exists());
    wait_until("it is known", || {
        let status = sandbox.proq(&["status", BATCH, "--json"]).json();
        status["tasks"][0]["state"] == "landed"
    });
    sandbox.git(&["reset", "-q", "--hard", "HEAD^"]);
    sandbox.write_pipe("go");
    wait_until("the landing of the form", || sandbox.repo.join("form.txt").exists());
    // While a file is replaced, it can be missing for a moment.
    let text = || std::fs::read_to_string(sandbox.repo.join("ROADMAP.md")).unwrap_or_default();
    wait_until("its note", || text().contains("- [x] Form"));
    assert!(!sandbox.read("ROADMAP.md").contains("- [x] Table"), "{}", sandbox.read("ROADMAP.md"));
}

#[test]
fn commits_ticks_for_plan_in_another_worktree() {
    let sandbox = sandbox_with_plan("ROADMAP.md", ROADMAP);
    sandbox.git(&["branch", "trunk"]);
    let other = sandbox.root().join("other");
    sandbox.git(&["worktree", "add", "-q", other.to_str().unwrap(), "trunk"]);
    let out = sandbox.proq_in(&other, &["swarm", "ROADMAP.md", "--milestone", "M2", "--yes", "-q"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    let out = sandbox.proq_in(&other, &["merge", "--batch", BATCH]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(sandbox.git(&["show", "trunk:ROADMAP.md"]).contains("- [x] Table"));
    assert_eq!(sandbox.git_in(&other, &["status", "--porcelain"]), "");
    assert_eq!(sandbox.git(&["show", "main:ROADMAP.md"]) + "\n", ROADMAP);
}

#[test]
fn pipe_in_place_of_the_plan_does_not_block() {
    let sandbox = sandbox_with_plan("ROADMAP.md", ROADMAP);
    run_swarm(&sandbox, &["ROADMAP.md", "--milestone", "M2"]);
    sandbox.sh("rm ROADMAP.md && mkfifo ROADMAP.md");
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert!(out.stderr.contains("it is no longer a file"), "{}", out.stderr);
    let report = sandbox.proq(&["report"]).ok();
    assert!(report.contains("it is no longer a file"), "{report}");
}

#[test]
fn kill_at_any_step_of_ticking_loses_nothing() {
    for point in ["journal.planned", "step.before", "transition.staged", "transition.moved", "journal.ended"]
    {
        let sandbox = sandbox_with_plan("ROADMAP.md", ROADMAP);
        run_swarm(&sandbox, &["ROADMAP.md", "--milestone", "M1"]);
        let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        // Nothing is left to land, so the first operation that reaches the fault point is the one that marks
        // the plan.
        let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "--batch", BATCH]);
        command.env("PROQ_TEST_DIE_AT", point);
        assert_ne!(sandbox.output(command).code, 0, "{point} is never come to");
        let retry = sandbox.proq(&["merge", "--batch", BATCH]);
        assert_eq!(retry.code, 0, "{point}: {}{}", retry.stdout, retry.stderr);
        assert!(sandbox.read("ROADMAP.md").contains("- [x] Table"), "{point}");
        assert_eq!(sandbox.git(&["status", "--porcelain"]), "", "{point}");
        assert_eq!(
            sandbox.git(&["log", "--format=%s", "main"]).matches("Note 2 tasks").count(),
            1,
            "{point}"
        );
        sandbox.assert_healthy();
    }
}

#[test]
fn undo_warns_of_marks_that_are_in_no_commit() {
    let plan = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"one\"\ntitle = \"One\"\n";
    let sandbox = repo_with_plan(plan);
    run_swarm(&sandbox, &["plan.toml"]);
    let main = sandbox.git(&["rev-parse", "main"]);
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    let marked_plan = sandbox.read("plan.toml");
    let warning = "warning: tasks are still marked as done in [ROOT]/repo/plan.toml, which git-proq does not";
    let dry_run = sandbox.proq(&["undo", "--dry-run"]).to_text();
    assert!(dry_run.contains("tasks would still be marked as done in [ROOT]/repo/plan.toml"), "{dry_run}");
    let text = sandbox.proq(&["undo"]).to_text();
    assert!(text.contains(warning), "{text}");
    assert_eq!((sandbox.git(&["rev-parse", "main"]), sandbox.read("plan.toml")), (main, marked_plan));
    // After a redo the marks are true again, and the next undo reverts another operation.
    assert!(!sandbox.proq(&["op", "redo"]).to_text().contains("marked as done"));
    let json = sandbox.proq(&["undo", "--json"]).json();
    assert_eq!(json["still_noted"][0], "[ROOT]/repo/plan.toml");
    sandbox.lane_with_commit("mine", "echo > mine");
    assert!(!sandbox.proq(&["undo"]).to_text().contains("marked as done"));
    // A plan that is deleted, or whose marks were removed, is not named.
    sandbox.write("plan.toml", plan);
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    sandbox.write("plan.toml", plan);
    assert!(!sandbox.proq(&["undo"]).to_text().contains("marked as done"));
}
