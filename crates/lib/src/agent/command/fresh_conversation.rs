//! Prompt of a run that continues a task in a new conversation, because the earlier one became too long or
//! cannot be resumed.

use proq_git::Repo;
use proq_store::Store;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::records::lane::AnyLane;
use proq_store::records::run::RunRecord;

use super::prompt::attachment_list;
use crate::agent::Error;
use crate::lane;
use crate::lane::Project;
use crate::lane::messages::delivered_messages::read_delivered;

/// Maximum number of commits that the prompt lists.
const MAX_COMMITS_LISTED: usize = 50;

/// Counter of the runs that were ended because their context was full, for the limit on further runs of a
/// task.
#[derive(Debug, Default)]
pub(crate) struct RestartCounter {
    /// Number of the first run that was counted.
    first_run: Option<RunNumber>,
    /// Number of runs counted so far.
    run_count: u32,
}

impl RestartCounter {
    /// Counts a run that was ended because its context was full. Returns the number of the first such run if
    /// a further run is allowed; none otherwise.
    pub(crate) fn count_context_full_run(
        &mut self,
        run_number: RunNumber,
        max_runs: u32,
    ) -> Option<RunNumber> {
        self.run_count += 1;
        let first = *self.first_run.get_or_insert(run_number);
        (self.run_count < max_runs).then_some(first)
    }
}

/// Reason for a new conversation: the earlier one became too long.
pub(crate) const TOO_LONG_REASON: &str = "became too long";

/// Reason for a new conversation: the agent cannot resume the earlier one.
pub(crate) const NOT_RESUMABLE_REASON: &str = "cannot be resumed";

/// Returns the run with which the conversation of `run` began.
pub(crate) fn first_run_of_conversation(
    store: &Store,
    lane: &AnyLane,
    run: RunRecord,
) -> Result<RunRecord, Error> {
    let mut first = run;
    while first.resumes_session {
        match previous_run_in_conversation(store, lane, &first)? {
            Some(earlier) => first = earlier,
            None => break,
        }
    }
    Ok(first)
}

/// Returns the run before `run` in its conversation, without those that resolve a conflict; none for the
/// first one.
fn previous_run_in_conversation(
    store: &Store,
    lane: &AnyLane,
    run: &RunRecord,
) -> Result<Option<RunRecord>, Error> {
    for run_number in RunNumber::first().through(run.number.previous()).rev() {
        let earlier = RunRecord::load_if_exists(&store.layout().run_record(&lane.name, run_number))?;
        if let Some(earlier) = earlier.filter(|before| {
            !before.resolves_conflict && before.conversation_number() == run.conversation_number()
        }) {
            return Ok(Some(earlier));
        }
    }
    Ok(None)
}

/// Returns the runs of the conversation that `first` began, including `first`, without those that resolve a
/// conflict.
fn conversation_runs(store: &Store, lane: &AnyLane, first: &RunRecord) -> Result<Vec<RunRecord>, Error> {
    let layout = store.layout();
    let mut out = Vec::new();
    for run_number in first.number.through(lane.last_run) {
        let run = RunRecord::load_if_exists(&layout.run_record(&lane.name, run_number))?;
        out.extend(run.filter(|run| {
            !run.resolves_conflict && run.conversation_number() == first.conversation_number()
        }));
    }
    Ok(out)
}

/// Returns the messages that the agent was sent after `first` had begun, in order.
fn later_messages(store: &Store, lane: &AnyLane, first: &RunRecord) -> Result<Vec<String>, Error> {
    let layout = store.layout();
    let mut out = Vec::new();
    for run in conversation_runs(store, lane, first)? {
        if run.has_prompt_override && run.resumes_session {
            let prompt_file = layout.run_prompt_override(&lane.name, run.number);
            out.push(
                proq_base::regular_file::read_store_text(&prompt_file)
                    .map_err(lane::Error::io("read", &prompt_file))?,
            );
        }
        out.extend(read_delivered(&layout.lane(&lane.name), run.number)?);
    }
    Ok(out)
}

/// Composes the prompt of a new conversation: the prompt of `first`, later messages, and the progress since.
/// `reason` is the end of a clause about the earlier conversation.
pub(crate) fn compose_fresh_prompt(
    project: &Project,
    lane: &AnyLane,
    first: &RunRecord,
    reason: &str,
) -> Result<String, Error> {
    let layout = project.store.layout();
    let read = |path: std::path::PathBuf| {
        proq_base::regular_file::read_store_text(&path).map_err(|e| lane::Error::io("read", &path)(e))
    };
    let mut out = read(layout.task_prompt(&lane.name))?.trim_end().to_owned();
    out.push_str(&attachment_list(&project.store, &lane.name)?);
    if first.has_prompt_override && !first.resumes_session {
        // The prompt of a run with its own prompt already contains the task.
        out = read(layout.run_prompt_override(&lane.name, first.number))?;
    }
    for message in later_messages(&project.store, lane, first)? {
        out.push_str(&format!("\n\nLater message from the user:\n\n{}", message.trim_end()));
    }
    out.push_str(&format!(
        "\n\n# Progress so far\n\nThis task was started in an earlier conversation, which {reason}. "
    ));
    match lane.commit_branch() {
        Some(branch) => out.push_str(&describe_lane_progress(&project.repo, lane, branch)?),
        None => out.push_str(&collect_answers(&project.store, lane, first)?),
    }
    Ok(out)
}

/// Describes the progress in the worktree and on its branch.
fn describe_lane_progress(repo: &Repo, lane: &AnyLane, branch: &str) -> Result<String, Error> {
    let mut out =
        "Its results are in this worktree. Continue from there and do not repeat finished work.\n".to_owned();
    let tip = repo.branch_tip(branch)?.unwrap_or(lane.start);
    let mut commits = repo.commits_touching(tip, lane.start, &[], MAX_COMMITS_LISTED)?;
    commits.reverse();
    if !commits.is_empty() {
        let lines: Vec<String> =
            commits.iter().map(|(id, subject, _)| format!("- {id} {subject}\n")).collect();
        out.push_str(&format!("\nCommits on this branch, oldest first:\n\n{}", lines.concat()));
    }
    if !proq_git::status::status_query::status(repo, &lane.path, true)?.is_clean() {
        out.push_str("\nThere are uncommitted changes; `git status` lists them.\n");
    }
    if lane.path.join("STATUS.md").is_file() {
        out.push_str("\n`STATUS.md` may describe the progress: read it first.\n");
    }
    Ok(out)
}

/// Collects the answers of all runs of a read-only lane's conversation, which `first` began, as text for the
/// prompt.
fn collect_answers(store: &Store, lane: &AnyLane, first: &RunRecord) -> Result<String, Error> {
    let mut out = String::new();
    for run in conversation_runs(store, lane, first)? {
        let file = store.layout().run_answer(&lane.name, run.number);
        match proq_base::regular_file::read_store_text(&file) {
            Ok(answer) => out.push_str(&format!("\nYour answer then:\n\n{}\n", answer.trim_end())),
            // The run was ended before it gave an answer.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(lane::Error::io("read", &file)(e).into()),
        }
    }
    if out.is_empty() {
        out.push_str("The findings of that conversation are not available: inspect the repository again.\n");
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_at_max_runs() {
        let mut counter = RestartCounter::default();
        let third = RunNumber::new(3);
        assert_eq!(
            [3, 5, 6].map(|number| counter.count_context_full_run(RunNumber::new(number), 3)),
            [Some(third), Some(third), None]
        );
        assert_eq!(RestartCounter::default().count_context_full_run(RunNumber::first(), 0), None);
    }
}
