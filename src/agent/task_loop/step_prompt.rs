//! Prompt of one run in the loop over a task folder: what to do in this step, and which files hold the task
//! and its status.

use super::status::TaskStep;
use super::task_folder::{LaneTaskFolder, PROMPT_FILE, STATUS_FILE};
use crate::git::Oid;
use crate::store::records::StepPhase;

/// Size limit, in bytes, up to which the prompt includes the task's text. An agent reads a longer task from
/// its file.
const MAX_INLINE_TASK_BYTES: usize = 16 * 1024;
/// Size limit, in bytes, of the review that the prompt quotes.
const MAX_REVIEW_BYTES: usize = 32 * 1024;

/// Data that the prompt of one run of a task loop is built from.
pub(super) struct StepPrompt<'a> {
    pub(super) title: &'a str,
    pub(super) folder: &'a LaneTaskFolder,
    /// Content of PROMPT.md.
    pub(super) prompt: &'a str,
    pub(super) phase: StepPhase,
    pub(super) step: &'a TaskStep,
    /// Additional text for runs that plan or work; reviewers do not get it.
    pub(super) extra_prompt: &'a str,
    /// Changes that a reviewer requested in the previous plan or work.
    pub(super) requested_changes: Option<&'a str>,
    /// First and last commit of the range to review.
    pub(super) commit_range: Option<(Oid, Oid)>,
    /// Whether git leaves STATUS.md out of commits.
    pub(super) exclude_status: bool,
}

/// Returns the label of a step: its number, and its title where it has one.
pub(super) fn step_label(step: &TaskStep) -> String {
    match step.title.as_str() {
        "" => format!("step {}", step.number),
        title => format!("step {}: {title}", step.number),
    }
}

impl StepPrompt<'_> {
    /// Renders the complete prompt of the run, except for the lane's rules.
    pub(super) fn render(&self) -> String {
        let mut out = format!("# {}, {}\n\n", self.title, step_label(self.step));
        out.push_str(&match self.phase {
            StepPhase::Plan => self.plan_prompt(),
            StepPhase::Work => self.work_prompt(),
            StepPhase::PlanReview | StepPhase::CodeReview => self.review_prompt(),
        });
        if let Some(review) = self.requested_changes {
            out.push_str(&format!(
                "\n# What the reviewer said\n\n{}\n",
                truncate(review.trim(), MAX_REVIEW_BYTES)
            ));
        }
        if self.prompt.len() <= MAX_INLINE_TASK_BYTES {
            out.push_str(&format!("\n# The whole task\n\n{}\n", self.prompt.trim()));
        }
        if !self.extra_prompt.is_empty() && !self.phase.is_review() {
            out.push_str(&format!("\n# Where it stands\n\n{}\n", self.extra_prompt.trim()));
        }
        out
    }

    /// Returns the lines that name the files of the task and of its status.
    fn file_locations(&self) -> String {
        format!(
            "- The task is in `{}`. Read it first{}.\n- How far it has come is in `{}`: boxes, and what was noted below each step. Read that \
             too.\n",
            self.folder.path_in_worktree(PROMPT_FILE),
            if self.prompt.len() <= MAX_INLINE_TASK_BYTES { ", or below" } else { "" },
            self.folder.path_in_worktree(STATUS_FILE)
        )
    }

    fn intro(&self) -> String {
        format!(
            "You work at one step of a task, in a conversation of its own. What was found out in others is not known to you but by what \
             was written down.\n\n{}",
            self.file_locations()
        )
    }

    fn closing_rules(&self) -> String {
        let mut out = String::new();
        if self.exclude_status {
            out.push_str(&format!(
                "- Git leaves `{}` out of commits, and so do you: never add it with -f. It is kept all the same.\n",
                self.folder.path_in_worktree(STATUS_FILE)
            ));
        }
        out
    }

    fn plan_prompt(&self) -> String {
        let step = step_label(self.step);
        let instruction = match self.requested_changes {
            None => format!("- Write down how {step} is to be done, below its heading in STATUS.md:"),
            Some(_) => {
                format!(
                    "- The plan for {step} below its heading in STATUS.md was not found good, see below. Write it anew:"
                )
            }
        };
        format!(
            "{}{instruction} what changes in which files, in which order, and how one sees that it is done. Somebody reviews that before the work \
             begins.\n- Do nothing else: change no other file, and tick no box.\n{}",
            self.intro(),
            self.closing_rules()
        )
    }

    fn work_prompt(&self) -> String {
        let step = step_label(self.step);
        let instruction = match self.requested_changes {
            None => format!(
                "- Work at {step}, and at nothing else. What stands below its heading in STATUS.md is how far it has come."
            ),
            Some(_) => format!(
                "- {} was done, and was not found good, see below. Put right what the reviewer says. Its boxes stay ticked.",
                capitalize(&step)
            ),
        };
        format!(
            "{}{instruction}\n- Tick a box in STATUS.md (`- [x]`) when what it says is done, and only then. Note below the step, in a few lines, what \
             whoever goes on has to know.\n- Commit your work at the end. When every box of the step is ticked, end; the next one is begun in \
             another conversation.\n{}",
            self.intro(),
            self.closing_rules()
        )
    }

    fn review_prompt(&self) -> String {
        let step = step_label(self.step);
        let subject = match (self.phase, self.commit_range) {
            (StepPhase::CodeReview, Some((from, to))) => format!(
                "what was done of {step}: `git log {from}..{to}` and `git diff {from} {to}` show it. Does it do what the task says, completely \
                 and without harm to anything else? Is it tested?"
            ),
            _ => format!(
                "the plan for {step}, which stands below its heading in STATUS.md. Would it do what the task says, completely and without harm to \
                 anything else? How would one see that it is done?"
            ),
        };
        format!(
            "You review {subject}\n\n{}- Change nothing: no file, no box, no commit.\n- The first line of your last message is `APPROVE`, or `REVISE` \
             if something has to change before it goes on. Below that say what, and where, so that somebody can act on it who knows nothing \
             else of you.\n",
            self.file_locations()
        )
    }
}

fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Returns the beginning of `text`, at most `max_bytes` bytes, cut at a character boundary.
fn truncate(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}
