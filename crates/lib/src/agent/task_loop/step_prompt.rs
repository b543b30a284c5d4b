//! Prompt and one-line description of one run in the loop over a task folder.

use proq_git::CommitId;
use proq_plan::task_status::TaskStep;
use proq_store::records::step_run::{StepPhase, StepRun};

use super::task_folder::{LaneTaskFolder, PROMPT_FILE, STATUS_FILE};

/// Size limit, in bytes, up to which the prompt includes the task's text. An agent reads a longer task from
/// its file.
const MAX_INLINE_TASK_BYTES: usize = 16 * 1024;
/// Size limit, in bytes, of the review that the prompt quotes.
const MAX_REVIEW_BYTES: usize = 32 * 1024;

/// Data that the prompt of one run of a task loop is built from.
pub(crate) struct StepPrompt<'a> {
    pub title: &'a str,
    pub folder: &'a LaneTaskFolder,
    /// Content of PROMPT.md.
    pub task_prompt: &'a str,
    pub phase: StepPhase,
    pub step: &'a TaskStep,
    /// Additional text for runs that plan or work; reviewers do not get it.
    pub extra_prompt: &'a str,
    /// Text of the review that requested changes in the previous plan or work.
    pub(crate) requested_changes: Option<&'a str>,
    /// Commits to review: the tip before the step, which is not part of them, and the last commit.
    pub(crate) commit_range: Option<(CommitId, CommitId)>,
    /// Whether git ignores STATUS.md in the lane, so that the agent must not commit it.
    pub is_status_ignored_by_git: bool,
}

/// Returns the label of a step: its number, and its title where it has one.
pub(crate) fn step_label(step: &TaskStep) -> String {
    match step.title.as_str() {
        "" => format!("step {}", step.number),
        title => format!("step {}: {title}", step.number),
    }
}

/// Describes in one line what a run of a task loop does.
pub(crate) fn describe_step_run(step_run: &StepRun, agent: &str) -> String {
    let StepRun { phase, step, iteration, .. } = step_run;
    match phase {
        StepPhase::Plan => format!("iteration {iteration}: the plan of step {step}"),
        StepPhase::Work => format!("iteration {iteration}: step {step}"),
        StepPhase::PlanReview => format!("{agent} reviews the plan of step {step}"),
        StepPhase::CodeReview => format!("{agent} reviews the code of step {step}"),
    }
}

impl StepPrompt<'_> {
    /// Renders the complete prompt of the run, except for the lane's rules.
    pub fn render(&self) -> String {
        let mut out = format!("# {}, {}\n\n", self.title, step_label(self.step));
        out.push_str(&match self.phase {
            StepPhase::Plan => self.plan_prompt(),
            StepPhase::Work => self.work_prompt(),
            StepPhase::PlanReview | StepPhase::CodeReview => self.review_prompt(),
        });
        if let Some(review) = self.requested_changes {
            out.push_str(&format!(
                "\n# Requested changes from the reviewer\n\n{}\n",
                truncate(review.trim(), MAX_REVIEW_BYTES)
            ));
        }
        if self.task_prompt.len() <= MAX_INLINE_TASK_BYTES {
            out.push_str(&format!("\n# The complete task\n\n{}\n", self.task_prompt.trim()));
        }
        if !self.extra_prompt.is_empty() && !self.phase.is_review() {
            out.push_str(&format!("\n# Context\n\n{}\n", self.extra_prompt.trim()));
        }
        out
    }

    /// Returns the lines that name the files of the task and of its status.
    fn file_locations(&self) -> String {
        format!(
            "- The task is in `{}`. Read it first{}.\n- The progress is in `{}`: boxes, and notes below each step. Read that file too.\n",
            self.folder.path_in_worktree(PROMPT_FILE),
            if self.task_prompt.len() <= MAX_INLINE_TASK_BYTES { ", or below" } else { "" },
            self.folder.path_in_worktree(STATUS_FILE)
        )
    }

    fn intro(&self) -> String {
        format!(
            "You are working on one step of a task, in a separate conversation. From earlier conversations you only know what was written down.\n\n{}",
            self.file_locations()
        )
    }

    fn closing_rules(&self) -> String {
        let mut out = String::new();
        if self.is_status_ignored_by_git {
            out.push_str(&format!(
                "- git ignores `{}`: never add it with -f. git-proq saves it anyway.\n",
                self.folder.path_in_worktree(STATUS_FILE)
            ));
        }
        out
    }

    fn plan_prompt(&self) -> String {
        let step = step_label(self.step);
        let instruction = match self.requested_changes {
            None => format!("- Write a plan for {step} below its heading in STATUS.md:"),
            Some(_) => {
                format!(
                    "- The reviewer rejected the plan for {step} below its heading in STATUS.md (see below). Rewrite it:"
                )
            }
        };
        format!(
            "{}{instruction} what changes in which files, in which order, and how to verify the result. A reviewer reads the plan before the work \
             starts.\n- Do nothing else: change no other file, and tick no box.\n{}",
            self.intro(),
            self.closing_rules()
        )
    }

    fn work_prompt(&self) -> String {
        let step = step_label(self.step);
        let instruction = match self.requested_changes {
            None => format!(
                "- Work on {step} only. The text below its heading in STATUS.md describes the progress."
            ),
            Some(_) => format!(
                "- The reviewer rejected the work on {step} (see below). Make the requested changes. The boxes of the step stay ticked."
            ),
        };
        format!(
            "{}{instruction}\n- Tick a box in STATUS.md (`- [x]`) when its item is done, and only then. Below the step, write a few lines with what the next \
             agent needs to know.\n- Commit your work at the end. Finish when every box of the step is ticked; the next step starts in another \
             conversation.\n{}",
            self.intro(),
            self.closing_rules()
        )
    }

    fn review_prompt(&self) -> String {
        let step = step_label(self.step);
        let subject = match (self.phase, self.commit_range) {
            (StepPhase::CodeReview, Some((from, to))) => format!(
                "the work on {step}: `git log {from}..{to}` and `git diff {from} {to}` show it. Does it do what the task requires, completely \
                 and without breaking anything else? Is it tested?"
            ),
            _ => format!(
                "the plan for {step} below its heading in STATUS.md. Would it do what the task requires, completely and without breaking \
                 anything else? How could the result be verified?"
            ),
        };
        format!(
            "Review {subject}\n\n{}- Change nothing: no file, no box, no commit.\n- The first line of your final message is `APPROVE`, or `REVISE` if something must change before work continues. Below it, \
             describe what must change and where, so that an agent without other context can act on it.\n",
            self.file_locations()
        )
    }
}

/// Returns the beginning of `text`, at most `max_bytes` bytes, cut at a character boundary.
fn truncate(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}
