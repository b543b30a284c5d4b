//! Policy for the refs that an agent may write: it protects shared refs, and those of other lanes and of the
//! user.

use std::path::Path;

use proq_base::diagnostics::Listener;
use proq_git::hooks::hook_repo::HookRepo;
use proq_git::{CommitId, Oid, Repo};
use proq_store::base::id::new_id;

use super::hook_call::HookCall;
use super::ref_update::{RefUpdate, is_zero_id};
use super::save_refs;
use crate::lane::Project;

const HEADS_PREFIX: &str = "refs/heads/";
const TAGS_PREFIX: &str = "refs/tags/";
const STASH_REF: &str = "refs/stash";
const PROQ_PREFIX: &str = "refs/proq/";

/// Prefixes of refs that each worktree has separately.
const WORKTREE_REF_PREFIXES: [&str; 3] = ["refs/worktree/", "refs/bisect/", "refs/rewritten/"];

/// Decides on ref updates that git is about to make, while git holds the locks of the refs. Returns the
/// messages of a refusal; none when the updates are allowed. HEAD, remote-tracking branches and refs in the
/// worktree's own folder belong to the agent. A read-only run may write only HEAD and the refs of its
/// worktree.
pub(super) fn check_updates(dir: &Path, hook: &HookCall<'_>, input: &[u8]) -> Option<Vec<String>> {
    // `pack-refs` removes the loose file of a ref once its value is in `packed-refs`.
    let is_prune = |update: &RefUpdate<'_>| {
        let is_removal = hook.is_prepared_transaction() && update.is_deletion() && !is_zero_id(update.old);
        is_removal && hook.repo.is_ref_prune(update.name.as_bytes(), update.old)
    };
    let needs_decision = |update: &RefUpdate<'_>| targets_protected_ref(update, hook) && !is_prune(update);
    let updates: Vec<RefUpdate<'_>> = RefUpdate::parse_all(input).filter(needs_decision).collect();
    if updates.is_empty() {
        return None;
    }
    let project = match Project::open(dir, Listener::silent()) {
        Ok(project) => project,
        Err(e) => return Some(vec![format!("git-proq: refused: it cannot be known whose this is: {e}")]),
    };
    // Git makes all updates of a transaction or none, so one refusal refuses all.
    let mut allowed = Vec::new();
    for update in &updates {
        match decide_update(&project, hook, update) {
            UpdateDecision::Allow => {}
            UpdateDecision::Refuse(messages) => return Some(messages),
            UpdateDecision::AllowAfterSave(current) => allowed.push((update, current)),
        }
    }
    save_refs::save_old_values(&project, hook, &allowed).map(|reason| vec![refusal_line(hook, &reason)])
}

/// Decision on a ref update that an agent's git is about to make.
enum UpdateDecision {
    /// Allow the update.
    Allow,
    /// Refuse the update, with these messages.
    Refuse(Vec<String>),
    /// Allow the update once the ref's current object is saved.
    AllowAfterSave(Option<Oid>),
}

fn refusal_line(hook: &HookCall<'_>, reason: &str) -> String {
    format!("git-proq: refused: {reason}; the agent of lane '{}' may not write it", hook.record.lane)
}

/// Returns whether an update concerns a ref that the run may not simply write: a shared one for a run with a
/// branch, and every ref of the repository for a read-only run.
fn targets_protected_ref(update: &RefUpdate<'_>, hook: &HookCall<'_>) -> bool {
    let name = update.name;
    let is_lane_branch =
        hook.record.branch.is_some() && name.strip_prefix(HEADS_PREFIX) == hook.record.branch.as_deref();
    // The branch of the main checkout belongs to the user too.
    let is_writable_branch =
        is_lane_branch && !hook.record.works_in_place && !hook.record.is_read_only && !update.is_symbolic();
    let is_shared = match is_read_only_run(hook) {
        true => {
            name.starts_with("refs/") && !WORKTREE_REF_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        }
        false => {
            name == STASH_REF
                || [PROQ_PREFIX, HEADS_PREFIX, TAGS_PREFIX].iter().any(|prefix| name.starts_with(prefix))
        }
    };
    is_shared && !is_writable_branch
}

/// Returns whether the hook belongs to a run that may write no ref of the repository.
fn is_read_only_run(hook: &HookCall<'_>) -> bool {
    hook.record.branch.is_none() || hook.record.is_read_only
}

/// Decides on one ref update that [`check_updates`] cannot let pass at once.
fn decide_update(project: &Project, hook: &HookCall<'_>, update: &RefUpdate<'_>) -> UpdateDecision {
    let current = match project.repo.ref_object(update.name) {
        Ok(current) => current,
        Err(e) => {
            return UpdateDecision::Refuse(vec![format!(
                "git-proq: refused: it cannot be known whose this is: {e}"
            )]);
        }
    };
    // Packing refs writes each with its present value.
    let is_unchanged = match current {
        Some(current) => Oid::from_hex(update.new) == Some(current),
        None => update.is_deletion(),
    };
    if is_unchanged {
        return UpdateDecision::Allow;
    }
    if update.name == STASH_REF {
        return stash_refusal(&project.repo, hook, update)
            .map_or(UpdateDecision::Allow, UpdateDecision::Refuse);
    }
    // An update of a symbolic ref moves the branch to which it points.
    let branch =
        update.name.strip_prefix(HEADS_PREFIX).map(|branch| project.repo.resolve_symbolic_branch(branch));
    match ref_refusal(project, hook, update, current, branch.as_deref()) {
        Some(messages) => UpdateDecision::Refuse(messages),
        None if branch.is_some() && branch == hook.record.branch => UpdateDecision::Allow,
        None => UpdateDecision::AllowAfterSave(current),
    }
}

/// Returns the lines that refuse an update of a branch, a tag or a ref of git-proq; none where it is allowed.
/// `current` is the ref's present object. `branch` is the branch that moves, without `refs/heads/`, if the
/// ref is one.
fn ref_refusal(
    project: &Project,
    hook: &HookCall<'_>,
    update: &RefUpdate<'_>,
    current: Option<Oid>,
    branch: Option<&str>,
) -> Option<Vec<String>> {
    let Some(lane_branch) = hook.record.branch.as_ref().filter(|_| !is_read_only_run(hook)) else {
        let ref_name = branch.unwrap_or(update.name);
        return Some(vec![
            refusal_line(hook, &format!("{ref_name} is not for a run that only looks")),
            "git-proq: say what should be done instead; that is what is kept".to_owned(),
        ]);
    };
    if let (Some(branch), true) = (branch, update.is_symbolic()) {
        return Some(vec![refusal_line(hook, &format!("branch {branch} would be a symbolic ref"))]);
    }
    if branch == Some(lane_branch.as_str()) {
        return in_place_branch_refusal(&project.repo, hook, update, current)
            .map(|reason| vec![refusal_line(hook, &reason)]);
    }
    let reason = match branch {
        None if update.name.starts_with(TAGS_PREFIX) => None,
        None => Some(format!("{} is git-proq's own", update.name)),
        Some(branch) => describe_branch_owner(project, &hook.repo, branch),
    }?;
    let advice = match hook.record.works_in_place {
        false => format!(
            "git-proq: commit to {lane_branch} in the lane instead; what is on it is landed from there"
        ),
        true => format!("git-proq: commit to {lane_branch} instead"),
    };
    Some(vec![refusal_line(hook, &reason), advice])
}

/// Returns why an in-place run may not update the branch of the main checkout, as the start of a sentence;
/// none where it may. The branch may move anywhere, and commits that it leaves behind are saved. It may not
/// be deleted.
fn in_place_branch_refusal(
    repo: &Repo,
    hook: &HookCall<'_>,
    update: &RefUpdate<'_>,
    current: Option<Oid>,
) -> Option<String> {
    let branch = update.name.strip_prefix(HEADS_PREFIX).unwrap_or(update.name);
    if update.is_deletion() {
        return Some(format!("branch {branch} is that of the main checkout, and stays"));
    }
    let current = current?;
    let is_fast_forward = CommitId::from_hex(update.new)
        .is_some_and(|new| repo.is_ancestor(CommitId::from_oid(current), new).unwrap_or(false));
    if is_fast_forward {
        return None;
    }
    let name = format!("{PROQ_PREFIX}saved/{}-{}", hook.record.lane, new_id());
    if repo.create_ref(&name, current, "git-proq: left behind in the main checkout").is_ok() {
        return None;
    }
    let queued = save_refs::queue_save(hook, current, &name);
    queued.err().map(|e| format!("what branch {branch} would leave behind could not be kept: {e}"))
}

/// Returns a clause about who owns a branch: another lane, git-proq, a base or the main checkout. None if the
/// branch has no owner.
fn describe_branch_owner(project: &Project, hook_repo: &HookRepo, branch: &str) -> Option<String> {
    let lanes = project.owned_lanes().unwrap_or_default();
    if let Some(lane) = lanes.iter().find(|lane| lane.kind.branch == branch) {
        return Some(format!("branch {branch} is that of lane '{}'", lane.name));
    }
    if project.is_managed_branch(branch) {
        return Some(format!("branch {branch} is git-proq's own"));
    }
    if lanes.iter().any(|lane| lane.base == branch && !lane.status.landing.is_closed()) {
        return Some(format!("branch {branch} is what lanes land on"));
    }
    let main_repo =
        HookRepo { git_dir: hook_repo.common_dir.clone(), common_dir: hook_repo.common_dir.clone() };
    let head_branch =
        |head: &str| Some(project.repo.resolve_symbolic_branch(head.strip_prefix("ref: refs/heads/")?));
    let is_checked_out =
        main_repo.head_content().is_some_and(|head| head_branch(&head).as_deref() == Some(branch));
    (is_checked_out && project.repo.main_worktree().is_some())
        .then(|| format!("branch {branch} is checked out in the main checkout"))
}

/// Returns the messages that refuse an update of the stash, which all worktrees share, and saves the refused
/// entry; none when the update is allowed. Allowed is only the entry that git restores automatically after a
/// rebase or merge, because git can put it nowhere else.
fn stash_refusal(repo: &Repo, hook: &HookCall<'_>, update: &RefUpdate<'_>) -> Option<Vec<String>> {
    let lane = &hook.record.lane;
    let refusal = format!(
        "git-proq: refused: the stash is one for all worktrees; the agent of lane '{lane}' may not write it"
    );
    let Some(commit) = Oid::from_hex(update.new).filter(|_| !update.is_deletion()) else {
        // Git has already removed the entry from the list.
        let saved_note = "git-proq: what was its last entry is kept: git stash apply refs/stash";
        return Some(vec![refusal, saved_note.to_owned()]);
    };
    if hook.repo.is_autostash(update.new) {
        return None;
    }
    let name = format!("{PROQ_PREFIX}saved/{lane}-stash-{}", new_id());
    let saved_note = match repo.create_ref(&name, commit, "git-proq: a stash of a lane") {
        Ok(()) => format!("a copy is kept: git stash apply {name}"),
        Err(_) => format!("it is still there as {commit}"),
    };
    Some(vec![
        refusal,
        format!("git-proq: your changes are where they were; commit them instead ({saved_note})"),
    ])
}
