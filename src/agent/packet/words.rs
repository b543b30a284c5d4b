//! Owns what a run of a task that is a folder is told: the one thing that is asked of it, and where everything else stands.

use super::folder::{Folder, PROMPT, STATUS};
use super::status::Step;
use crate::git::Oid;
use crate::store::records::Part;

/// How long a task may be that is told in full, in bytes. A longer one is read where it is.
const SMALL: usize = 16 * 1024;
/// How much of a review is told.
const REVIEW: usize = 32 * 1024;

/// One run that is to be told something.
pub(super) struct Words<'a> {
    pub(super) title: &'a str,
    pub(super) folder: &'a Folder,
    /// What stands in PROMPT.md.
    pub(super) prompt: &'a str,
    pub(super) part: Part,
    pub(super) step: &'a Step,
    /// What those who work at it are told besides.
    pub(super) more: &'a str,
    /// What a reviewer wants to be done anew.
    pub(super) review: Option<&'a str>,
    /// The commits that are to be looked at.
    pub(super) range: Option<(Oid, Oid)>,
    /// Whether git leaves STATUS.md out of commits.
    pub(super) hidden: bool,
}

/// A step as it is called: by number and title.
pub(super) fn called(step: &Step) -> String {
    match step.title.as_str() {
        "" => format!("step {}", step.number),
        title => format!("step {}: {title}", step.number),
    }
}

impl Words<'_> {
    /// All that the run is told, but for the lane's rules.
    pub(super) fn text(&self) -> String {
        let mut out = format!("# {}, {}\n\n", self.title, called(self.step));
        out.push_str(&match self.part {
            Part::Plan => self.to_plan(),
            Part::Work => self.to_work(),
            Part::PlanReview | Part::CodeReview => self.to_judge(),
        });
        if let Some(review) = self.review {
            out.push_str(&format!("\n# What the reviewer said\n\n{}\n", cut(review.trim(), REVIEW)));
        }
        if self.prompt.len() <= SMALL {
            out.push_str(&format!("\n# The whole task\n\n{}\n", self.prompt.trim()));
        }
        if !self.more.is_empty() && !self.part.is_review() {
            out.push_str(&format!("\n# Where it stands\n\n{}\n", self.more.trim()));
        }
        out
    }

    /// Where everything stands.
    fn places(&self) -> String {
        format!(
            "- The task is in `{}`. Read it first{}.\n- How far it has come is in `{}`: boxes, and what was noted below each step. Read that \
             too.\n",
            self.folder.name_of(PROMPT),
            if self.prompt.len() <= SMALL { ", or below" } else { "" },
            self.folder.name_of(STATUS)
        )
    }

    fn beginning(&self) -> String {
        format!(
            "You work at one step of a task, in a conversation of its own. What was found out in others is not known to you but by what \
             was written down.\n\n{}",
            self.places()
        )
    }

    fn end(&self) -> String {
        let mut out = String::new();
        if self.hidden {
            out.push_str(&format!(
                "- Git leaves `{}` out of commits, and so do you: never add it with -f. It is kept all the same.\n",
                self.folder.name_of(STATUS)
            ));
        }
        out
    }

    fn to_plan(&self) -> String {
        let step = called(self.step);
        let how = match self.review {
            None => format!("- Write down how {step} is to be done, below its heading in STATUS.md:"),
            Some(_) => {
                format!(
                    "- The plan for {step} below its heading in STATUS.md was not found good, see below. Write it anew:"
                )
            }
        };
        format!(
            "{}{how} what changes in which files, in which order, and how one sees that it is done. Somebody reviews that before the work \
             begins.\n- Do nothing else: change no other file, and tick no box.\n{}",
            self.beginning(),
            self.end()
        )
    }

    fn to_work(&self) -> String {
        let step = called(self.step);
        let what = match self.review {
            None => format!(
                "- Work at {step}, and at nothing else. What stands below its heading in STATUS.md is how far it has come."
            ),
            Some(_) => format!(
                "- {} was done, and was not found good, see below. Put right what the reviewer says. Its boxes stay ticked.",
                capital(&step)
            ),
        };
        format!(
            "{}{what}\n- Tick a box in STATUS.md (`- [x]`) when what it says is done, and only then. Note below the step, in a few lines, what \
             whoever goes on has to know.\n- Commit your work at the end. When every box of the step is ticked, end; the next one is begun in \
             another conversation.\n{}",
            self.beginning(),
            self.end()
        )
    }

    fn to_judge(&self) -> String {
        let step = called(self.step);
        let what = match (self.part, self.range) {
            (Part::CodeReview, Some((from, to))) => format!(
                "what was done of {step}: `git log {from}..{to}` and `git diff {from} {to}` show it. Does it do what the task says, completely \
                 and without harm to anything else? Is it tested?"
            ),
            _ => format!(
                "the plan for {step}, which stands below its heading in STATUS.md. Would it do what the task says, completely and without harm to \
                 anything else? How would one see that it is done?"
            ),
        };
        format!(
            "You review {what}\n\n{}- Change nothing: no file, no box, no commit.\n- The first line of your last message is `APPROVE`, or `REVISE` \
             if something has to change before it goes on. Below that say what, and where, so that somebody can act on it who knows nothing \
             else of you.\n",
            self.places()
        )
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The beginning of a text.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}
