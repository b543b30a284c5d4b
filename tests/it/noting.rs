//! Owns the tests of what is noted in a plan once its tasks have landed: where, by whom, and what of a person's stays as it is.

use std::process::{Child, Stdio};

use super::support::Sandbox;
use super::support::patience::wait_until;
use super::swarm::{planned, worker};

const BATCH: &str = "20260102-030405";

/// Three items; the second one's agent fails.
const ROADMAP: &str =
    "# Roadmap\n\n## M1: Shop\n\n- [ ] Table\n- [ ] Fails\n- [ ] Form\n\n## M2: Mail\n\n- [ ] Table\n";

const AUTH_1: &str = "# AUTH-1: Roles\n\n## Dependencies\n\n**None**\n";
const AUTH_2: &str = "# AUTH-2: Users\n\n## Dependencies\n\n**None**\n";

/// What an agent does that is at all steps of its folder at once.
const STEPS: &str = "sed -i 's/\\[ \\]/[x]/' tasks/auth/AUTH-*/STATUS.md";

/// A repository with this file committed.
fn with(path: &str, text: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(path, text);
    sandbox.commit_all("the plan");
    sandbox.git(&["config", "proq.swarm.agent", "worker"]);
    worker(&sandbox, "case $PROQ_TASK in *fail*|*FAIL*) exit 3 ;; esac");
    sandbox
}

/// Runs the plan to its end, whatever that is.
fn run(sandbox: &Sandbox, args: &[&str]) {
    let all: Vec<&str> = ["swarm"].iter().chain(args).chain(&["-q"]).copied().collect();
    let out = sandbox.proq(&all);
    assert!(out.stdout.contains(" landed") || out.stdout.is_empty(), "{}{}", out.stdout, out.stderr);
}

#[test]
fn boxes_of_what_landed_are_ticked_by_a_commit_on_top() {
    let sandbox = with("ROADMAP.md", ROADMAP);
    run(&sandbox, &["ROADMAP.md", "--milestone", "M1"]);
    // Nothing is on main yet, and whoever looks is told.
    assert_eq!(sandbox.read("ROADMAP.md"), ROADMAP);
    let said = format!("batch {BATCH} is over; what it landed on proq/batch-{BATCH} is not on main yet");
    let hint = format!("hint: land it on main: git proq merge --batch {BATCH}\n");
    for args in [&[][..], &["list"], &["merge", "--all"], &["merge", "--all", "--dry-run"]] {
        let out = sandbox.proq(args);
        assert!(out.stderr.contains(&said) && out.stderr.contains(&hint), "{}", out.shown());
        assert!(!out.stdout.contains("No lanes yet"), "{}", out.shown());
    }
    assert_eq!(sandbox.proq(&["--json"]).json()["unlanded_batches"][0], BATCH);
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stderr.contains("noted in the plan, by commit "), "{}", out.stderr);
    let noted = ROADMAP.replacen("- [ ] Table", "- [x] Table", 1).replace("- [ ] Form", "- [x] Form");
    assert_eq!(sandbox.read("ROADMAP.md"), noted);
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    insta::assert_snapshot!(sandbox.git(&["log", "-1", "--format=%an%n%B"]), @r"
    Ann Author
    Note 2 tasks as done

    table: Table
    form: Form

    Done in batch 20260102-030405.
    ");
    assert_eq!(sandbox.git(&["diff", "--name-only", "HEAD^"]), "ROADMAP.md");
    assert!(!sandbox.proq(&[]).stderr.contains("is over"));
    sandbox.assert_healthy();
}

#[test]
fn what_lands_by_the_name_of_the_batchs_lane_is_noted_too() {
    let sandbox = with("ROADMAP.md", ROADMAP);
    run(&sandbox, &["ROADMAP.md", "--milestone", "M1"]);
    // It conflicts, and its lane is what a person is told to go on with.
    sandbox.write("table.txt", "mine\n");
    sandbox.commit_all("mine");
    let said = sandbox.proq(&["merge", "--batch", BATCH]).fails(3);
    assert!(said.contains("table.txt"), "{said}");
    sandbox.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let out = sandbox.proq(&["merge", &format!("swarm-{BATCH}")]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stderr.contains("noted in the plan, by commit "), "{}", out.stderr);
    let noted = ROADMAP.replacen("- [ ] Table", "- [x] Table", 1).replace("- [ ] Form", "- [x] Form");
    assert_eq!(sandbox.read("ROADMAP.md"), noted);
    let status = sandbox.proq(&["status"]).shown();
    assert!(status.contains("; all of that is on main\n") && !status.contains("land it on"), "{status}");
    sandbox.assert_healthy();
}

#[test]
fn noting_is_undone_with_its_landing_and_done_again_on_demand() {
    let sandbox = with("ROADMAP.md", ROADMAP);
    run(&sandbox, &["ROADMAP.md", "--milestone", "M1"]);
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.read("ROADMAP.md"), ROADMAP);
    assert!(!sandbox.repo.join("table.txt").exists());
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    // What is on main is noted then, and only once.
    sandbox.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert!(out.stderr.contains("noted in the plan"), "{}{}", out.stdout, out.stderr);
    let tip = sandbox.git(&["rev-parse", "main"]);
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert!(!out.stderr.contains("noted"), "{}", out.stderr);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);
    let report = sandbox.proq(&["report", "--json"]).json();
    assert_eq!(report["noted"]["commit"], tip);
    sandbox.assert_healthy();
}

#[test]
fn a_file_that_somebody_is_at_is_edited_where_it_lies_and_not_committed() {
    let sandbox = with("ROADMAP.md", ROADMAP);
    run(&sandbox, &["ROADMAP.md", "--milestone", "M1"]);
    let mine = ROADMAP.replace("# Roadmap\n", "# Roadmap\n\nMine.\n");
    sandbox.write("ROADMAP.md", &mine);
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stderr.contains("ROADMAP.md, which is yours to commit"), "{}", out.stderr);
    let noted = mine.replacen("- [ ] Table", "- [x] Table", 1).replace("- [ ] Form", "- [x] Form");
    assert_eq!(sandbox.read("ROADMAP.md"), noted);
    assert_eq!(sandbox.git(&["show", "HEAD:ROADMAP.md"]) + "\n", ROADMAP);
    assert_eq!(sandbox.git(&["status", "--porcelain"]), " M ROADMAP.md");
}

#[test]
fn lines_that_somebody_is_changing_stay_theirs_and_the_patch_is_in_the_report() {
    let sandbox = with("ROADMAP.md", ROADMAP);
    run(&sandbox, &["ROADMAP.md", "--milestone", "M1"]);
    let mine = ROADMAP.replace("- [ ] Form\n", "- [ ] Form  \n");
    sandbox.write("ROADMAP.md", &mine);
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stderr.contains("somebody is changing these very lines"), "{}", out.stderr);
    assert!(out.stderr.contains(&format!("git proq report {BATCH} has it as a patch")), "{}", out.stderr);
    assert_eq!(sandbox.read("ROADMAP.md"), mine);
    let report = sandbox.proq(&["report"]).ok();
    assert!(report.contains("-- [ ] Table") && report.contains("+- [x] Table"), "{report}");
    let page = sandbox.proq(&["report", "--html"]).ok();
    assert!(page.contains("<pre>") && page.contains("+- [x] Table"), "{page}");
}

#[test]
fn a_plan_that_git_does_not_know_is_edited_where_it_lies() {
    let plan = "format = 1\nagent = \"worker\"\n# first\n[[task]]\nid = \"one\"\ntitle = \"One\"\n";
    let sandbox = planned(plan);
    run(&sandbox, &["plan.toml"]);
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert!(out.stderr.contains("plan.toml, which is yours to commit"), "{}", out.stderr);
    let noted =
        "format = 1\nagent = \"worker\"\n# first\n[[task]]\nid = \"one\"\ndone = true\ntitle = \"One\"\n";
    assert_eq!(sandbox.read("plan.toml"), noted);
    assert!(!sandbox.git(&["ls-files"]).contains("plan.toml"));
    let said = sandbox.proq(&["swarm", "plan.toml"]).fails(1);
    assert!(said.contains("done"), "{said}");
}

/// A plan of one task that git does not know, and its batch, which has run.
fn untracked() -> (Sandbox, String) {
    let plan = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"one\"\ntitle = \"One\"\n";
    let sandbox = planned(plan);
    run(&sandbox, &["plan.toml"]);
    (sandbox, plan.to_owned())
}

/// A landing of the batch that stands still at these points.
fn stands_at(sandbox: &Sandbox, points: &str) -> Child {
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "--batch", BATCH]);
    command.env("PROQ_TEST_STAND_AT", points).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// What a landing warned of, at its end.
fn warned(landing: Child) -> String {
    String::from_utf8(landing.wait_with_output().unwrap().stderr).unwrap()
}

/// What the trash has of plans.
fn put_aside(sandbox: &Sandbox) -> String {
    sandbox.sh("find .git/proq/trash -type f -name '*plan.toml*' -exec cat {} +")
}

#[test]
fn a_plan_that_an_editor_saves_while_it_is_noted_is_as_that_saved_it() {
    let (sandbox, plan) = untracked();
    let landing = stands_at(&sandbox, "plan.drafted");
    let standing = sandbox.standing(landing.id());
    sandbox.sh("cp plan.toml new && echo '# mine' >> new && mv new plan.toml");
    let names = sandbox.sh("ls -A");
    drop(standing);
    let said = warned(landing);
    assert!(said.contains("somebody is changing it just now"), "{said}");
    assert_eq!(sandbox.read("plan.toml"), format!("{plan}# mine\n"));
    assert_eq!((sandbox.sh("ls -A"), put_aside(&sandbox)), (names, String::new()));
    let report = sandbox.proq(&["report"]).ok();
    assert!(report.contains("+done = true"), "{report}");
}

#[test]
fn of_two_that_save_a_plan_while_it_is_noted_the_later_has_it_and_the_other_is_kept() {
    let (sandbox, plan) = untracked();
    let landing = stands_at(&sandbox, "plan.drafted,plan.taken");
    let standing = sandbox.standing(landing.id());
    sandbox.sh("cp plan.toml new && echo '# first' >> new && mv new plan.toml");
    drop(standing);
    let standing = sandbox.standing(landing.id());
    let second = format!("{}# second\n", sandbox.read("plan.toml"));
    assert!(second.contains("done = true"), "{second}");
    sandbox.write("plan.toml", &second);
    drop(standing);
    let said = warned(landing);
    assert!(said.contains("what it said a moment ago is in "), "{said}");
    assert_eq!(sandbox.read("plan.toml"), second);
    assert_eq!(put_aside(&sandbox), format!("{plan}# first").trim_end());
}

#[test]
fn a_plan_that_an_editor_moves_away_while_it_is_noted_comes_back() {
    let (sandbox, plan) = untracked();
    let landing = stands_at(&sandbox, "plan.drafted,plan.taken");
    let standing = sandbox.standing(landing.id());
    sandbox.sh("cp plan.toml new && echo '# mine' >> new && mv new plan.toml");
    drop(standing);
    let standing = sandbox.standing(landing.id());
    sandbox.sh("mv plan.toml plan.toml~");
    drop(standing);
    let said = warned(landing);
    assert!(said.contains("somebody is changing it just now"), "{said}");
    assert_eq!(sandbox.read("plan.toml"), format!("{plan}# mine\n"));
    assert!(sandbox.read("plan.toml~").contains("done = true"));
}

#[test]
fn what_is_saved_into_a_plan_is_in_the_trash_after_a_kill_in_the_midst_of_noting() {
    let (sandbox, plan) = untracked();
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "--batch", BATCH]);
    command.env("PROQ_TEST_STAND_AT", "plan.drafted").env("PROQ_TEST_DIE_AT", "plan.taken");
    let mut landing = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let standing = sandbox.standing(landing.id());
    sandbox.sh("cp plan.toml new && echo '# mine' >> new && mv new plan.toml");
    drop(standing);
    assert!(!landing.wait().unwrap().success());
    assert!(sandbox.read("plan.toml").contains("done = true"));
    assert_eq!(put_aside(&sandbox), format!("{plan}# mine").trim_end());
}

#[test]
fn a_kill_while_a_plan_is_noted_leaves_nothing_beside_it() {
    let (sandbox, plan) = untracked();
    let names = sandbox.sh("ls -A");
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "--batch", BATCH]);
    command.env("PROQ_TEST_DIE_AT", "plan.drafted");
    assert_ne!(sandbox.output(command).code, 0);
    assert_eq!((sandbox.read("plan.toml"), sandbox.sh("ls -A | grep -v one.txt")), (plan, names));
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    assert!(sandbox.read("plan.toml").contains("done = true"));
}

#[test]
fn stories_get_the_state_that_the_others_have() {
    let plan = "stories:\n  - id: one # first\n    title: One\n    status: todo\n  - id: two\n    title: Two\n    status: done\n";
    let sandbox = with("stories.yaml", plan);
    run(&sandbox, &["stories.yaml"]);
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    assert_eq!(sandbox.read("stories.yaml"), plan.replace("status: todo", "status: done"));
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
}

#[test]
fn folders_that_git_knows_are_marked_and_archived_by_the_commit() {
    let sandbox = with("tasks/auth/AUTH-1-roles/PROMPT.md", AUTH_1);
    sandbox.git(&["config", "proq.swarm.whenLanded", "archive"]);
    // One that lies there uncommitted.
    sandbox.write("tasks/auth/AUTH-2-users/PROMPT.md", AUTH_2);
    worker(&sandbox, STEPS);
    run(&sandbox, &["auth"]);
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
fn folders_are_only_marked_where_nobody_wants_an_archive() {
    let sandbox = with("tasks/auth/AUTH-1-roles/PROMPT.md", AUTH_1);
    worker(&sandbox, STEPS);
    run(&sandbox, &["auth"]);
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    let files = sandbox.git(&["ls-tree", "-r", "--name-only", "main", "--", "tasks"]);
    assert_eq!(files, "tasks/auth/AUTH-1-roles/.DONE\ntasks/auth/AUTH-1-roles/PROMPT.md");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_file_where_the_archive_would_be_stays() {
    let sandbox = with("tasks/auth/AUTH-1-roles/PROMPT.md", AUTH_1);
    sandbox.git(&["config", "proq.swarm.whenLanded", "archive"]);
    worker(&sandbox, STEPS);
    run(&sandbox, &["auth"]);
    sandbox.write("tasks/auth/archive", "important\n");
    sandbox.commit_all("a file");
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert!(out.stderr.contains("something else is that is no folder"), "{}", out.stderr);
    assert_eq!(sandbox.read("tasks/auth/archive"), "important\n");
    let files = sandbox.git(&["ls-tree", "-r", "--name-only", "main", "--", "tasks"]);
    assert_eq!(files, "tasks/auth/AUTH-1-roles/.DONE\ntasks/auth/AUTH-1-roles/PROMPT.md\ntasks/auth/archive");
}

#[test]
fn nothing_is_noted_where_nobody_wants_that() {
    let sandbox = with("ROADMAP.md", ROADMAP);
    sandbox.git(&["config", "proq.swarm.whenLanded", "nothing"]);
    run(&sandbox, &["ROADMAP.md", "--milestone", "M1"]);
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert!(!out.stderr.contains("noted"), "{}", out.stderr);
    assert_eq!(sandbox.read("ROADMAP.md"), ROADMAP);
}

#[test]
fn tasks_that_land_by_themselves_are_noted_in_the_end() {
    let sandbox = with("ROADMAP.md", ROADMAP);
    run(&sandbox, &["ROADMAP.md", "--milestone", "M2", "--auto-merge"]);
    let at = ROADMAP.rfind("- [ ] Table").unwrap();
    let noted = format!("{}- [x] Table\n", &ROADMAP[..at]);
    assert_eq!(sandbox.read("ROADMAP.md"), noted);
    assert!(sandbox.git(&["log", "-1", "--format=%s"]).starts_with("Note task table as done"));
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    sandbox.assert_healthy();
}

#[test]
fn what_lands_later_is_noted_then() {
    let sandbox = with("ROADMAP.md", ROADMAP);
    run(&sandbox, &["ROADMAP.md", "--milestone", "M1"]);
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    assert!(sandbox.read("ROADMAP.md").contains("- [ ] Fails"));
    worker(&sandbox, "");
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
fn of_headings_that_are_written_alike_the_right_one_is_noted() {
    let text = "# v1\n\n## Tasks\n\n- [x] Write tests\n- [x] Other\n\n# v2\n\n## Tasks\n\n- [ ] Write tests\n- [ ] New\n";
    let sandbox = with("ROADMAP.md", text);
    let said = sandbox.proq(&["plan", "ROADMAP.md", "--milestone", "tasks"]).fails(1);
    assert!(said.contains("v1: Tasks, v2: Tasks"), "{said}");
    run(&sandbox, &["ROADMAP.md"]);
    // Somebody adds one of the same name to the former meanwhile.
    let more = text.replace("- [x] Other\n", "- [x] Other\n- [ ] New\n");
    sandbox.write("ROADMAP.md", &more);
    sandbox.commit_all("more");
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    let (first, second) = more.split_at(more.find("# v2").unwrap());
    assert_eq!(sandbox.read("ROADMAP.md"), format!("{first}{}", second.replace("- [ ]", "- [x]")));
}

#[test]
fn it_is_noted_on_the_branch_that_has_it() {
    let sandbox = with("ROADMAP.md", ROADMAP);
    sandbox.git(&["branch", "release"]);
    run(&sandbox, &["ROADMAP.md", "--milestone", "M2"]);
    let main = sandbox.git(&["rev-parse", "main"]);
    let out = sandbox.proq(&["merge", "--batch", BATCH, "--onto", "release"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stderr.contains("on release"), "{}", out.stderr);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
    assert!(sandbox.git(&["show", "release:ROADMAP.md"]).contains("- [x] Table"));
}

#[test]
fn what_was_taken_back_is_not_noted() {
    let sandbox = with("ROADMAP.md", ROADMAP);
    sandbox.pipe("go");
    worker(&sandbox, "case $name in fails) exit 3 ;; form) read line < $ROOT/go ;; esac");
    let _ = sandbox
        .proq(&["swarm", "ROADMAP.md", "--milestone", "M1", "--auto-merge", "--detach", "--yes", "-q"])
        .ok();
    wait_until("the landing of the table", || sandbox.repo.join("table.txt").exists());
    wait_until("it is known", || {
        let status = sandbox.proq(&["status", BATCH, "--json"]).json();
        status["tasks"][0]["state"] == "landed"
    });
    sandbox.git(&["reset", "-q", "--hard", "HEAD^"]);
    sandbox.tell("go");
    wait_until("the landing of the form", || sandbox.repo.join("form.txt").exists());
    // A file that is being replaced is not there for a moment.
    let text = || std::fs::read_to_string(sandbox.repo.join("ROADMAP.md")).unwrap_or_default();
    wait_until("its note", || text().contains("- [x] Form"));
    assert!(!sandbox.read("ROADMAP.md").contains("- [x] Table"), "{}", sandbox.read("ROADMAP.md"));
}

#[test]
fn a_plan_in_another_worktree_gets_its_commit_too() {
    let sandbox = with("ROADMAP.md", ROADMAP);
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
fn a_pipe_in_the_plans_place_is_not_waited_for() {
    let sandbox = with("ROADMAP.md", ROADMAP);
    run(&sandbox, &["ROADMAP.md", "--milestone", "M2"]);
    sandbox.sh("rm ROADMAP.md && mkfifo ROADMAP.md");
    let out = sandbox.proq(&["merge", "--batch", BATCH]);
    assert!(out.stderr.contains("it is no file any more"), "{}", out.stderr);
    let report = sandbox.proq(&["report"]).ok();
    assert!(report.contains("it is no file any more"), "{report}");
}

#[test]
fn a_kill_at_any_step_of_noting_loses_nothing() {
    for point in ["journal.planned", "step.before", "transition.staged", "transition.moved", "journal.ended"]
    {
        let sandbox = with("ROADMAP.md", ROADMAP);
        run(&sandbox, &["ROADMAP.md", "--milestone", "M1"]);
        let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        // There is nothing to land any more, so the first operation that it comes to is the one that notes.
        let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "--batch", BATCH]);
        command.env("PROQ_TEST_DIE_AT", point);
        assert_ne!(sandbox.output(command).code, 0, "{point} is never come to");
        let again = sandbox.proq(&["merge", "--batch", BATCH]);
        assert_eq!(again.code, 0, "{point}: {}{}", again.stdout, again.stderr);
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
fn undo_names_a_note_that_is_in_no_commit() {
    let plan = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"one\"\ntitle = \"One\"\n";
    let sandbox = planned(plan);
    run(&sandbox, &["plan.toml"]);
    let main = sandbox.git(&["rev-parse", "main"]);
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    let noted = sandbox.read("plan.toml");
    let still = "warning: tasks are still noted as done in [ROOT]/repo/plan.toml, which git-proq does not change back";
    let ahead = sandbox.proq(&["undo", "--dry-run"]).shown();
    assert!(ahead.contains("tasks would still be noted as done in [ROOT]/repo/plan.toml"), "{ahead}");
    let said = sandbox.proq(&["undo"]).shown();
    assert!(said.contains(still), "{said}");
    assert_eq!((sandbox.git(&["rev-parse", "main"]), sandbox.read("plan.toml")), (main, noted));
    // Forward again it is true, and the next undo is of something else.
    assert!(!sandbox.proq(&["op", "redo"]).shown().contains("noted"));
    let answer = sandbox.proq(&["undo", "--json"]).json();
    assert_eq!(answer["still_noted"][0], "[ROOT]/repo/plan.toml");
    sandbox.lane_of("mine", "echo > mine");
    assert!(!sandbox.proq(&["undo"]).shown().contains("noted"));
    // One that is gone, or was changed back, is named no longer.
    sandbox.write("plan.toml", plan);
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    sandbox.write("plan.toml", plan);
    assert!(!sandbox.proq(&["undo"]).shown().contains("noted"));
}
