//! Output of lanes' removals, one by one as they happen.

use std::cell::Cell;

use proq_base::config::settings::Settings;
use proq_base::explain::{Exit, shell_quote_path};
use proq_base::hint;
use proq_lib::event::approval::ShellCommand;
use proq_lib::lane::Project;
use proq_lib::lane::removal::remove_lane::{RemovalReason, RemovedLane};
use proq_lib::lane::worktree::trash;
use proq_lib::ops::lane_removal::LaneRemoval;
use proq_lib::ops::reporter::{Progress, Question, Reporter};
use proq_lib::types::LanePurpose;

use crate::cli::invocation::context::CommandContext;
use crate::cli::invocation::failure;
use crate::cli::terminal::ui;
use crate::cli::terminal::ui::Ui;

/// Prints each removal, and notes the exit code.
pub(crate) struct RemovalReporter<'a> {
    context: &'a CommandContext,
    project: &'a Project,
    reason: RemovalReason,
    exit: Cell<Exit>,
    /// Exit code of the removal of unrecorded worktrees, which counts if all else succeeds.
    unrecorded_exit: Cell<Exit>,
}

impl<'a> RemovalReporter<'a> {
    pub(crate) fn new(context: &'a CommandContext, project: &'a Project, reason: RemovalReason) -> Self {
        let (exit, unrecorded_exit) = (Cell::new(Exit::Success), Cell::new(Exit::Success));
        RemovalReporter { context, project, reason, exit, unrecorded_exit }
    }

    /// Returns the exit code for everything that was reported.
    pub(crate) fn exit(&self) -> Exit {
        let exit = self.exit.get();
        if exit == Exit::Success { self.unrecorded_exit.get() } else { exit }
    }

    fn print_removal(&self, removal: &LaneRemoval) {
        let (ui, name) = (self.context.ui, &removal.lane);
        let (planned_verb, verb) = match self.reason {
            RemovalReason::Discard => ("discard", "discarded"),
            RemovalReason::Cleanup => ("clean up", "cleaned up"),
        };
        match &removal.error {
            Some(_) if ui.json && removal.is_failure => self.exit.set(Exit::Refused),
            Some(error) if removal.is_failure => self.exit.set(failure::print_failure(error, false)),
            Some(error) if !ui.json => ui.status(error.to_string()),
            None if !removal.removed => {
                let prefix = if removal.stops_agent { "stop its agent and " } else { "" };
                let saved = removal.reasons.join("; ");
                let is_saved = self.reason == RemovalReason::Discard && !saved.is_empty();
                let saved = if is_saved { format!(", after saving: {saved}") } else { String::new() };
                ui.status(format!("would {prefix}{planned_verb} {name}{saved}"));
            }
            None if !ui.json => {
                ui.print_line(format!("{verb} {name}"));
                if let Some(contents) = &removal.contents {
                    print_restore_commands(ui, &self.project.settings, contents, self.reason);
                } else if let Some(history_name) = &removal.history_name {
                    let is_in_place = removal.purpose == Some(LanePurpose::InPlace);
                    let retained = if is_in_place { "its record stays" } else { "its answer stays" };
                    ui.status(format!("{retained} for a while: git proq show {history_name}"));
                }
            }
            _ => {}
        }
    }
}

impl Reporter for RemovalReporter<'_> {
    fn progress(&self, progress: Progress<'_>) {
        let ui = self.context.ui;
        match progress {
            Progress::Removal(removal) => self.print_removal(removal),
            Progress::UnrecordedRetained(error) if error.0.is_decision() => {
                ui.status(error.to_string());
            }
            Progress::UnrecordedRetained(error) => {
                self.unrecorded_exit.set(failure::print_failure(error, false));
            }
            Progress::UnrecordedWorktree { path, is_removed } => {
                let verb = if is_removed { "cleaned up" } else { "would clean up" };
                ui.status(format!("{verb} {}, which no lane record names", path.display()));
            }
            _ => self.context.progress(progress),
        }
    }

    fn can_prompt_user(&self) -> bool {
        self.context.can_prompt_user()
    }

    fn confirm(&self, question: Question<'_>) -> bool {
        self.context.confirm(question)
    }

    fn approve(&self, commands: &[ShellCommand]) -> bool {
        self.context.approve(commands)
    }
}

/// Prints the command that leaves the current folder, if the removal of its lane has moved it away.
pub(crate) fn print_way_out(context: &CommandContext, project: &Project) {
    if let Some(main) = project.repo.main_worktree().filter(|_| !context.dir.exists()) {
        context.ui.hint(hint!("this folder was removed; leave it: cd {}", shell_quote_path(main)));
    }
}

/// Prints how to recover what a removed lane contained: unlanded commits, uncommitted files, and its folder
/// in the trash. Landed work needs no recovery.
pub(crate) fn print_restore_commands(
    ui: Ui,
    settings: &Settings,
    removed: &RemovedLane,
    reason: RemovalReason,
) {
    if let (true, Some(tip)) = (removed.has_unlanded, removed.tip) {
        ui.status(format!("its commits are kept: git branch restored-{0} {0}", tip.short_in_command()));
    }
    if let Some((location, tip)) = &removed.off_branch_commit {
        ui.status(format!(
            "its commits on {location} are kept: git branch restored-{0} {0}",
            tip.short_in_command()
        ));
    }
    if let Some(id) = removed.uncommitted_snapshot {
        ui.status(format!("its uncommitted files are kept: git stash apply {}", id.short_in_command()));
    }
    let Some(content) = removed.trash_contents else { return };
    let entry = removed.trash_entry.display();
    if !removed.unreadable_paths.is_empty() {
        let unreadable = trash::describe_unreadable(&removed.unreadable_paths);
        ui.warn(format!("{unreadable}: {content} stays in the trash until you move it out: {entry}"));
    } else if reason == RemovalReason::Discard {
        let days = ui::pluralize(settings.trash_keep.as_secs() / (24 * 60 * 60), "day");
        ui.status(format!("{content} is kept for {days}: {entry}"));
    }
}
