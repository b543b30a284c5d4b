//! Health checks of the open preview against the main checkout: which changes are waiting, and whether they
//! can be restored.

use proq_git::base::head::Head;
use proq_git::{CommitId, Oid};
use proq_store::records::preview::PreviewRecord;

use super::check_context::CheckContext;
use super::finding::Finding;
use super::repair::Repair;

const RETURN_COMMAND: &str = "git proq preview --back";

/// Checks the preview on record, or a main checkout that is on a preview branch without a record.
pub(super) fn check(context: &CheckContext<'_>) -> Vec<Finding> {
    let mut out = check_leftover_origins(context);
    match &context.preview {
        Some(preview) => out.extend(
            [
                check_origin(context, preview),
                check_lane(context, preview),
                check_head(context, preview),
                check_saved_changes(context, preview),
            ]
            .into_iter()
            .flatten(),
        ),
        None => out.extend(unrecorded_preview(context)),
    }
    out
}

fn preview_subject(preview: &PreviewRecord) -> String {
    format!("preview of '{}'", preview.lane)
}

/// Returns whether HEAD of the main checkout is where the preview was entered from.
fn is_back_at_origin(context: &CheckContext<'_>, preview: &PreviewRecord) -> bool {
    context.head.as_ref() == Some(&preview.previous_head)
}

/// Returns whether HEAD of the main checkout is on the preview's branch.
fn is_on_preview_branch(context: &CheckContext<'_>, preview: &PreviewRecord) -> bool {
    context.head == Some(Head::Branch(preview.branch.clone()))
}

/// Finds a preview whose origin, the branch that it was entered from, is missing.
fn check_origin(context: &CheckContext<'_>, preview: &PreviewRecord) -> Option<Finding> {
    let Head::Branch(branch) = &preview.previous_head else { return check_origin_ref(context, preview) };
    if context.branch_tip(branch).is_some() {
        return None;
    }
    let message =
        format!("'{branch}', the branch that the preview of '{}' returns to, no longer exists", preview.lane);
    let help = format!("git branch {branch} {}", preview.previous_commit.short_in_command());
    Some(
        Finding::error("preview-origin", preview_subject(preview), message)
            .with_help(help)
            .with_left_reason("you may have deleted it on purpose"),
    )
}

/// Finds a preview that was entered from no branch, and whose ref for that commit is missing.
fn check_origin_ref(context: &CheckContext<'_>, preview: &PreviewRecord) -> Option<Finding> {
    let (commit, name) = preview.detached_origin()?;
    if context.refs.contains_key(&name) {
        return None;
    }
    let message = format!(
        "no ref keeps {}, the commit that the preview of '{}' returns to",
        commit.short(),
        preview.lane
    );
    Some(
        Finding::warning("preview-origin", preview_subject(preview), message)
            .with_help(format!("git update-ref {name} {commit}"))
            .with_repair(Repair::CreateRef { name, commit }),
    )
}

/// Finds refs that keep the commits from which other previews than the open one were entered.
fn check_leftover_origins(context: &CheckContext<'_>) -> Vec<Finding> {
    // A record that cannot be read may need the ref.
    if context.preview.is_none() && context.project.store.layout().preview_record().exists() {
        return Vec::new();
    }
    let origin_ref = context.preview.as_ref().and_then(PreviewRecord::detached_origin).map(|origin| origin.1);
    let to_finding = |(name, id): (String, Oid)| {
        let message = format!("{name} is left over from a preview");
        let branch = format!("kept-{}", CommitId::from_oid(id).short());
        Finding::warning("preview-origin", name.clone(), message)
            .with_help(format!("git branch {branch} {id} && git update-ref -d {name}"))
            .with_left_reason("the commit may be nowhere else")
    };
    context
        .refs_below(PreviewRecord::ORIGIN_REF_PREFIX)
        .map(|(rest, id)| (format!("{}{rest}", PreviewRecord::ORIGIN_REF_PREFIX), id))
        .filter(|(name, _)| Some(name) != origin_ref.as_ref())
        .map(to_finding)
        .collect()
}

/// Finds a preview whose lane is missing.
fn check_lane(context: &CheckContext<'_>, preview: &PreviewRecord) -> Option<Finding> {
    if context.has_lane(preview.lane.as_str()) || is_back_at_origin(context, preview) {
        return None;
    }
    let message = format!("the main checkout shows lane '{}', which no longer exists", preview.lane);
    Some(Finding::warning("preview-lane", preview_subject(preview), message).with_help(RETURN_COMMAND))
}

/// Finds a preview whose branch is missing, or that the user left by hand.
fn check_head(context: &CheckContext<'_>, preview: &PreviewRecord) -> Option<Finding> {
    let changes_wait = preview.parked_snapshot.as_ref().is_some_and(|id| context.is_awaiting_restore(id));
    let wait_note = if changes_wait { "; your own changes are saved" } else { "" };
    if is_on_preview_branch(context, preview) {
        return context.branch_tip(&preview.branch).is_none().then(|| {
            let message = format!("the main checkout is on '{}', which no longer exists", preview.branch);
            Finding::error("preview-branch", preview_subject(preview), message)
                .with_help(format!("git branch {} {}", preview.branch, preview.tip.short_in_command()))
                .with_left_reason("it may have commits")
        });
    }
    let head_text = context.head.as_ref().map_or_else(|| "no commit".to_owned(), ToString::to_string);
    let message = format!("the preview of '{}' was left with git, for {head_text}{wait_note}", preview.lane);
    let finding = Finding::warning("preview-place", preview_subject(preview), message);
    let is_finished =
        is_back_at_origin(context, preview) && !changes_wait && context.branch_tip(&preview.branch).is_none();
    Some(if is_finished {
        finding.with_help(RETURN_COMMAND).with_repair(Repair::ClosePreview)
    } else if is_back_at_origin(context, preview) {
        finding.with_help(RETURN_COMMAND).with_left_reason("changes are restored only at your command")
    } else {
        let help = format!("git switch {} && {RETURN_COMMAND}", preview.previous_head);
        finding.with_help(help).with_left_reason("you may have switched on purpose")
    })
}

/// Finds a preview whose parked changes are lost: neither record nor ref of the snapshot is left.
fn check_saved_changes(context: &CheckContext<'_>, preview: &PreviewRecord) -> Option<Finding> {
    let id = preview.parked_snapshot.as_ref().filter(|id| !context.has_snapshot(id))?;
    // At the origin, an interrupted command has already restored it and did not close the preview.
    if is_back_at_origin(context, preview) {
        return None;
    }
    let message = format!(
        "your changes from before the preview of '{}' (snapshot {id}) are lost: neither record nor ref exists",
        preview.lane
    );
    Some(
        Finding::error("preview-changes", preview_subject(preview), message)
            .with_help("git fsck --lost-found")
            .with_left_reason("lost changes cannot be restored"),
    )
}

/// Finds a main checkout that is on a preview branch while no preview is open.
fn unrecorded_preview(context: &CheckContext<'_>) -> Option<Finding> {
    let Some(Head::Branch(branch)) = &context.head else { return None };
    // A record that cannot be read has already been reported.
    if context.project.store.layout().preview_record().exists() {
        return None;
    }
    let lane = context.project.previewed_lane(branch)?;
    let message = format!("the main checkout is on the preview branch of '{lane}', and no preview is open");
    Some(
        Finding::error("preview-record", branch.clone(), message)
            .with_help("git switch -")
            .with_left_reason("only the record had the branch to return to"),
    )
}
