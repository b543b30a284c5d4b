//! Cases that need a person, each with the state that clears it.

use std::path::Path;
use std::time::Duration;

use proq_git::CommitId;
use proq_store::base::clock::now;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::{AnyLane, LaneKind, LaneWorktree};
use proq_store::records::lane_state::LaneStatus;
use serde_json::{Value, json};

use super::*;
use crate::lane::state::state_records::StateRecords;

const TIP: &str = "1111111111111111111111111111111111111111";

fn name(text: &str) -> LaneName {
    LaneName::parse(text).unwrap()
}

/// Returns a view of lane `pay` after its second run.
fn view(state: LaneState) -> LaneView {
    let kind = LaneKind::Owned(LaneWorktree { branch: "proq/pay".to_owned(), worktree_id: "pay".to_owned() });
    let start = CommitId::from_hex(TIP.as_bytes()).unwrap();
    let mut lane = AnyLane::new(&name("pay"), kind, "/repo/pay".into(), "main".to_owned(), start);
    lane.last_run = serde_json::from_value(json!(2)).unwrap();
    LaneView {
        records: StateRecords::new(&Layout::new(Path::new("/repo/.git")), &lane),
        active_at: lane.state_changed_at,
        lane,
        status: LaneStatus::from_word(state),
        shown_state: None,
        detail: None,
        activity: None,
        tip: Some(start),
        is_folder_missing: false,
        worktree_defect: None,
        distance: None,
        pending_messages: 0,
        dirty: None,
    }
}

fn facts(view: &LaneView) -> LaneFacts<'_> {
    LaneFacts {
        view,
        is_scheduled: false,
        activity: None,
        last_run: None,
        conflict: None,
        failed_check: None,
        report: None,
        base_conflict: Vec::new(),
        overlaps: Vec::new(),
        events: &[],
    }
}

/// Returns a run that began one hour ago, with more fields of its record.
fn run(more: &Value) -> RunRecord {
    let started = now().saturating_sub(Duration::from_hours(1));
    let mut record = json!({
        "attempt": 2, "agent": "claude", "command": [], "prompt_on_stdin": false,
        "tip_before": TIP, "started": started,
    });
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(record).unwrap()
}

/// Returns the kinds and commands of cases.
fn summary(cases: &[Attention]) -> Vec<(AttentionKind, &str)> {
    cases.iter().map(|case| (case.kind, case.command.as_str())).collect()
}

/// Asserts that there is one case, and returns its reason.
#[track_caller]
fn one(facts: &LaneFacts<'_>, kind: AttentionKind, command: &str) -> String {
    let cases = facts.attention();
    assert_eq!(summary(&cases), [(kind, command)]);
    assert!(cases[0].since.is_some());
    cases[0].why.clone()
}

#[test]
fn states_that_need_nobody() {
    for state in [
        LaneState::Idle,
        LaneState::Starting,
        LaneState::Running,
        LaneState::Done,
        LaneState::Stopped,
        LaneState::NoChange,
        LaneState::Landed,
        LaneState::Discarded,
    ] {
        assert_eq!(facts(&view(state)).attention(), [], "{state}");
    }
}

#[test]
fn approval_until_agent_goes_on() {
    let record = |activity| ActivityRecord {
        activity,
        since: now(),
        waits_for: Some("use Bash".to_owned()),
        refused_stops: 0,
        session: None,
    };
    let waiting = LaneView { activity: Some(Activity::NeedsApproval), ..view(LaneState::Running) };
    let with_record = |activity| LaneFacts { activity: Some(record(activity)), ..facts(&waiting) };
    let why = one(&with_record(Activity::NeedsApproval), AttentionKind::NeedsApproval, "git proq open pay");
    assert_eq!(why, "use Bash");
    assert_eq!(with_record(Activity::Working).attention(), []);
}

#[test]
fn conflict_and_failed_check() {
    let conflict = serde_json::from_value(json!({
        "lane": "pay", "onto": "main", "ours": TIP, "base_tip": TIP, "theirs": TIP, "tree": TIP, "at": now(),
        "paths": ["a.rs", "b.rs"], "messages": [], "stages": [],
        "attempts": 1,
    }))
    .unwrap();
    let in_conflict = view(LaneState::Conflict);
    let captured = LaneFacts { conflict: Some(conflict), ..facts(&in_conflict) };
    let why = one(&captured, AttentionKind::Conflict, "git proq resolve pay");
    assert_eq!(why, "conflict with main in a.rs, b.rs");
    let failed = LaneView { detail: Some("make test".to_owned()), ..view(LaneState::CheckFailed) };
    let why = one(&facts(&failed), AttentionKind::CheckFailed, "git proq logs pay --checks");
    assert_eq!(why, "make test");
    for view in [&in_conflict, &failed] {
        assert_eq!(LaneFacts { is_scheduled: true, ..facts(view) }.attention(), []);
    }
}

#[test]
fn refused_landing_while_it_is_done() {
    let refusal = json!({ "at": now(), "message": "a.rs is edited", "exit": 4 });
    let mut view = view(LaneState::Done);
    view.lane.auto_merge = true;
    view.lane.auto_merge_refusal = serde_json::from_value(refusal).unwrap();
    assert_eq!(one(&facts(&view), AttentionKind::Refused, "git proq merge pay --dry-run"), "a.rs is edited");
    view.status = LaneStatus::from_word(LaneState::Running);
    assert_eq!(facts(&view).attention(), []);
}

#[test]
fn runs_that_ended_badly() {
    for (state, kind, command) in [
        (LaneState::Failed, AttentionKind::Failed, "git proq show pay"),
        (LaneState::Stalled, AttentionKind::Stalled, "git proq show pay"),
        (LaneState::Orphaned, AttentionKind::Orphaned, "git proq stop pay"),
    ] {
        one(&facts(&view(state)), kind, command);
    }
    assert_eq!(LaneFacts { is_scheduled: true, ..facts(&view(LaneState::Failed)) }.attention(), []);
}

#[test]
fn limit_with_time_when_it_is_lifted() {
    let ended = || Some(run(&json!({ "ended": now(), "class": "rate-limited" })));
    let detail = Some("its limit is lifted at 14:05".to_owned());
    let failed = LaneView { detail: detail.clone(), ..view(LaneState::Failed) };
    let over = LaneFacts { last_run: ended(), ..facts(&failed) };
    assert_eq!(
        one(&over, AttentionKind::Limit, "git proq send pay continue"),
        "its limit is lifted at 14:05"
    );
    let waiting = LaneView { detail, ..view(LaneState::Running) };
    one(&LaneFacts { last_run: ended(), ..facts(&waiting) }, AttentionKind::Limit, "git proq logs pay");
    let begun = LaneFacts { last_run: Some(run(&json!({}))), ..facts(&waiting) };
    assert_eq!(begun.attention(), []);
}

#[test]
fn only_certain_escape_of_last_run() {
    let event = |certainty, at| {
        let mut event = Event::new(EventName::LaneEscape, "it changed a.rs of the main checkout");
        (event.n, event.lane, event.certainty, event.at) = (7, Some("pay".to_owned()), certainty, at);
        [event]
    };
    let long_ago = now().saturating_sub(Duration::from_hours(2));
    let certain = event(Some(Certainty::Certain), now());
    let likely = event(Some(Certainty::Likely), now());
    let earlier = event(Some(Certainty::Certain), long_ago);
    for state in [LaneState::Done, LaneState::NoChange] {
        let view = view(state);
        let with = |events| LaneFacts { last_run: Some(run(&json!({}))), events, ..facts(&view) };
        one(&with(&certain), AttentionKind::Escape, "git proq events --since 6");
        assert_eq!(with(&likely).attention(), []);
        assert_eq!(with(&earlier).attention(), []);
    }
}

#[test]
fn budget_from_four_fifths_on() {
    let running = view(LaneState::Running);
    let with_cost = |nanos: u64| {
        let run = run(&json!({
            "limits": { "budget": 10_000_000_000_u64 },
            "account": { "cost": { "nanos": nanos } },
        }));
        LaneFacts { last_run: Some(run), ..facts(&running) }
    };
    let why = one(&with_cost(8_000_000_000), AttentionKind::Budget, "git proq stop pay --wrap-up");
    assert_eq!(why, "its run has cost $8.00 of $10.00");
    assert_eq!(with_cost(7_999_999_999).attention(), []);
}

#[test]
fn message_that_nobody_takes() {
    let waiting = LaneView { pending_messages: 2, ..view(LaneState::Done) };
    assert_eq!(one(&facts(&waiting), AttentionKind::Message, "git proq send pay"), "2 messages wait");
    let running = LaneView { status: LaneStatus::from_word(LaneState::Running), ..waiting };
    assert_eq!(facts(&running).attention(), []);
}

#[test]
fn human_steps_of_last_run() {
    let report = |number: u32| ReportRecord {
        run: serde_json::from_value(json!(number)).unwrap(),
        at: now(),
        status: None,
        findings: Vec::new(),
        human_steps: vec!["create a key".to_owned(), "set it".to_owned()],
    };
    let done = view(LaneState::Done);
    let with_report = |number| LaneFacts { report: Some(report(number)), ..facts(&done) };
    assert_eq!(one(&with_report(2), AttentionKind::HumanSteps, "git proq show pay"), "create a key; set it");
    assert_eq!(with_report(1).attention(), []);
}

#[test]
fn forecast_conflict_with_the_base_once_the_agent_is_done() {
    let base_conflict = vec![RepoPath::new("a.rs")];
    let (done, running) = (view(LaneState::Done), view(LaneState::Running));
    let facts_of = |view| LaneFacts { base_conflict: base_conflict.clone(), ..facts(view) };
    let why = one(&facts_of(&done), AttentionKind::Conflict, "git proq resolve pay");
    assert_eq!(why, "it would conflict with main in a.rs");
    assert_eq!(facts_of(&running).attention(), []);
}

#[test]
fn overlap_since_its_event() {
    let mut event = Event::new(EventName::LaneOverlap, "lanes 'auth' and 'pay' conflict in a.rs");
    (event.lane, event.other) = (Some("auth".to_owned()), Some("pay".to_owned()));
    event.at = now().saturating_sub(Duration::from_mins(5));
    let (events, done) = ([event], view(LaneState::Done));
    let facts = LaneFacts { overlaps: vec![name("auth")], events: &events, ..facts(&done) };
    one(&facts, AttentionKind::Overlap, "git proq matrix pay auth");
    assert_eq!(facts.attention()[0].since, Some(events[0].at));
    assert_eq!(LaneFacts { overlaps: Vec::new(), ..facts }.attention(), []);
}

#[test]
fn paused_batch_tasks_set_aside_and_commands() {
    let id = BatchId::new("20261121-1405");
    let batch = BatchFacts { id: &id, is_paused: true, set_aside: vec!["area/T 1"], since: None };
    assert_eq!(
        summary(&batch.attention()),
        [
            (AttentionKind::BatchPaused, "git proq batch resume 20261121-1405"),
            (AttentionKind::SetAside, "git proq batch resume 20261121-1405 --retry 'area/T 1'"),
        ]
    );
    let running = BatchFacts { is_paused: false, set_aside: Vec::new(), ..batch };
    assert_eq!(running.attention(), []);
    assert_eq!(of_commands(0), None);
    assert_eq!(of_commands(2).unwrap().why, "2 commands are not approved");
}
