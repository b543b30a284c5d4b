//! Messages of landings that the user gives: as text, or in an editor.

use std::path::{Path, PathBuf};

use proq_base::explain::Explain;
use proq_base::lane_name::LaneName;
use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::limited_process::ExitOutcome;
use proq_base::regular_file::read_store_text;
use proq_store as store;
use proq_store::base::atomic;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::{LaneRecord, MergeStrategy};

use crate::lane::Project;
use crate::merge;
use crate::merge::stack::message::LaneMessage;
use crate::merge::types::options::LandingOptions;
use crate::ops::error::Error;

/// Text below the message in the editor.
const EDITOR_NOTE: &str = "Enter the message of the commit that lands the lane. Lines that start like this one\n\
    are ignored, and an empty message aborts the merge.\n";

/// Reason why a lane cannot land with a message of the user.
#[derive(Debug, thiserror::Error, Explain)]
pub enum MessageError {
    /// One message was given for several lanes.
    #[error("cannot use one message for {count} lanes: --message needs exactly one lane")]
    #[exit(Usage)]
    #[hint("set a template for all landings: git config proq.merge.subject 'feat({{lane}}): {{title}}'")]
    NotOneLane {
        /// Number of lanes; zero for every lane that is done.
        count: usize,
    },
    /// Each commit keeps its own message in a rebase.
    #[error("cannot give '{lane}' a message: a rebase keeps the messages of its commits")]
    #[hint("land it as one commit: git proq merge --squash {lane}")]
    Rebase {
        /// Lane that would have landed.
        lane: LaneName,
    },
    /// The message is empty.
    #[error("cannot merge '{lane}': its commit message is empty")]
    Empty {
        /// Lane that would have landed.
        lane: LaneName,
    },
    /// The editor failed.
    #[error("cannot merge '{lane}': the editor `{editor}` failed ({ended})")]
    #[hint("choose another editor: git config core.editor vi")]
    Editor {
        /// Lane that would have landed.
        lane: LaneName,
        /// Command line of the editor.
        editor: String,
        /// Exit of the editor.
        ended: ExitOutcome,
    },
}

/// Adds the message `text` of the user to the options, for the only one of `lanes`.
///
/// # Errors
/// [`MessageError`], or the error of a sign-off.
pub(super) fn add_given_message(
    project: &Project,
    options: &mut LandingOptions,
    lanes: &[LaneRecord],
    text: &str,
) -> Result<(), Error> {
    let [lane] = lanes else { return Err(MessageError::NotOneLane { count: lanes.len() }.into()) };
    refuse_rebase(project, options, lane)?;
    if text.trim().is_empty() {
        return Err(MessageError::Empty { lane: lane.name.clone() }.into());
    }
    let message = with_lane_message(project, options, lane, |source| source.append_trailers(text, &[]))?;
    options.messages.insert(lane.name.clone(), message);
    Ok(())
}

/// Opens the user's editor with the message of each lane, and adds what was written to the options. The text of
/// an earlier landing that failed is offered again.
///
/// # Errors
/// [`MessageError`], and errors of git.
pub(super) fn edit_messages(
    project: &Project,
    options: &mut LandingOptions,
    lanes: &[LaneRecord],
) -> Result<(), Error> {
    let strategy = options.strategy(&project.settings);
    for lane in lanes {
        refuse_rebase(project, options, lane)?;
        let draft = with_lane_message(project, options, lane, |source| match strategy {
            MergeStrategy::Squash => source.for_squash(),
            MergeStrategy::Merge | MergeStrategy::Rebase => source.for_merge(),
        })?;
        let kept = kept_message_path(project, &lane.name);
        let draft = match read_store_text(&kept) {
            Ok(text) => project.repo.without_comments(&text)?,
            Err(_) => draft,
        };
        let message = edit_text(project, lane, &draft)?;
        atomic::write_in_existing_dir(&kept, message.as_bytes())?;
        options.messages.insert(lane.name.clone(), message);
    }
    Ok(())
}

/// Removes the messages that the user edited for lanes that have `landed`, and warns where the others are kept.
pub(super) fn settle_edited_messages(project: &Project, edited: &[LaneName], landed: &[&LaneName]) {
    for lane in edited {
        let kept = kept_message_path(project, lane);
        if landed.contains(&lane) {
            // The lane and its folder are usually removed by then.
            drop(std::fs::remove_file(&kept));
        } else if kept.exists() {
            warn_kept_message(project, lane, &kept);
        }
    }
}

fn warn_kept_message(project: &Project, lane: &LaneName, kept: &Path) {
    let path = kept.display();
    project.listener.warn(format!(
        "the message of '{lane}' is kept in {path}, and `git proq merge --edit {lane}` starts with it"
    ));
}

fn kept_message_path(project: &Project, lane: &LaneName) -> PathBuf {
    Layout::landing_message_in(&project.store.layout().lane(lane))
}

fn refuse_rebase(project: &Project, options: &LandingOptions, lane: &LaneRecord) -> Result<(), MessageError> {
    match options.strategy(&project.settings) {
        MergeStrategy::Rebase => Err(MessageError::Rebase { lane: lane.name.clone() }),
        MergeStrategy::Merge | MergeStrategy::Squash => Ok(()),
    }
}

/// Calls `use_source` with the message source of a lane that would land on its base as both are now.
fn with_lane_message(
    project: &Project,
    options: &LandingOptions,
    lane: &LaneRecord,
    use_source: impl Fn(&LaneMessage<'_>) -> Result<String, merge::Error>,
) -> Result<String, Error> {
    let onto = options.onto.as_deref().unwrap_or(&lane.base);
    let commits = || match (project.repo.branch_tip(onto)?, project.repo.branch_tip(&lane.kind.branch)?) {
        (Some(base), Some(tip)) => Ok(project.repo.commits_since(base, tip, None)?),
        _ => Ok(Vec::new()),
    };
    let source = LaneMessage {
        repo: &project.repo,
        listener: &project.listener,
        settings: &project.settings.messages,
        options,
        onto,
        lane,
        commits: &commits,
    };
    Ok(use_source(&source)?)
}

/// Lets the user edit a message, and returns it without comments. The file stays if the editor fails or git-proq is
/// killed before it ends, unless it has only the draft.
fn edit_text(project: &Project, lane: &LaneRecord, draft: &str) -> Result<String, Error> {
    let file = kept_message_path(project, &lane.name);
    let had_file = file.exists();
    let note = project.repo.comment_lines(EDITOR_NOTE)?;
    let io = |verb| store::Error::io(verb, &file);
    let offered = format!("{draft}\n{note}");
    // The file may have a text that was typed earlier.
    atomic::write_in_existing_dir(&file, offered.as_bytes())?;
    let editor = project.repo.editor_command()?;
    // git too lets a shell read the command line.
    let shell_line = format!("{editor} \"$@\"");
    let command = CommandBuilder::new(Path::new("sh"), project.repo.command_dir())
        .args(["-c", &shell_line, &editor])
        .args([&file]);
    let status = command.run_on_terminal()?;
    let (lane, ended) = (lane.name.clone(), ExitOutcome::from_status(status));
    let text = read_store_text(&file).map_err(io("read"))?;
    if !ended.is_success() {
        if text == offered && !had_file {
            drop(std::fs::remove_file(&file));
        } else {
            warn_kept_message(project, &lane, &file);
        }
        return Err(MessageError::Editor { lane, editor, ended }.into());
    }
    let message = project.repo.without_comments(&text)?;
    if message.trim().is_empty() {
        drop(std::fs::remove_file(&file));
        return Err(MessageError::Empty { lane }.into());
    }
    Ok(message)
}
