//! Owns which refs an agent may not write: what is shared with others, and what is others'.

use std::path::Path;

use super::hook::Hook;
use super::keep;
use crate::git::{HookPlace, Oid};
use crate::lane::Project;
use crate::note::Listener;
use crate::store::new_id;

const HEADS: &str = "refs/heads/";
const TAGS: &str = "refs/tags/";
const STASH: &str = "refs/stash";
const PROQ: &str = "refs/proq/";

/// Refs of a worktree of its own.
const OWN: [&str; 3] = ["refs/worktree/", "refs/bisect/", "refs/rewritten/"];

/// One line of what git is about to do: ids as git writes them, all zeros for "not there", `ref:NAME` for a symbolic one.
pub(super) struct Update<'a> {
    pub(super) old: &'a [u8],
    pub(super) new: &'a [u8],
    pub(super) name: &'a str,
}

impl Update<'_> {
    /// The lines of a hook's input. What does not look like one is passed over.
    pub(super) fn all(input: &[u8]) -> impl Iterator<Item = Update<'_>> {
        input.split(|b| *b == b'\n').filter_map(|line| {
            let mut words = line.splitn(3, |b| *b == b' ');
            let (old, new) = (words.next()?, words.next()?);
            Some(Update { old, new, name: std::str::from_utf8(words.next()?).ok()? })
        })
    }

    /// Whether the ref becomes another name of some other one, which git says from 2.46 on.
    fn is_symbolic(&self) -> bool {
        self.new.starts_with(b"ref:")
    }

    pub(super) fn removes(&self) -> bool {
        is_zero(self.new)
    }
}

fn is_zero(id: &[u8]) -> bool {
    !id.is_empty() && id.iter().all(|b| *b == b'0')
}

/// The input of a `pre-push` hook in the form that [`Update::all`] reads: for each ref of the remote its old and new value and its name.
pub(super) fn of_push(input: &[u8]) -> Vec<u8> {
    let line = |line: &[u8]| {
        let mut words = line.splitn(4, |b| *b == b' ').skip(1);
        let (new, name, old) = (words.next()?, words.next()?, words.next()?);
        Some([old, b" ", new, b" ", name, b"\n"].concat())
    };
    input.split(|b| *b == b'\n').filter_map(line).flatten().collect()
}

/// Judges what git is about to do to refs, while it holds their locks, and returns what to say if it may not. HEAD,
/// remote-tracking branches and what lies in the worktree's own folder are nobody else's. A run that only looks may write none
/// but HEAD and those of its worktree.
pub(super) fn judge(dir: &Path, hook: &Hook<'_>, input: &[u8]) -> Option<Vec<String>> {
    // `pack-refs` takes each ref's own file away once its value is in the packed one.
    let pruned = |update: &Update<'_>| {
        let goes = hook.is_transaction() && update.removes() && !is_zero(update.old);
        goes && hook.place.is_prune(update.name.as_bytes(), update.old)
    };
    let doubtful = |update: &Update<'_>| is_doubtful(update, hook) && !pruned(update);
    let doubtful: Vec<Update<'_>> = Update::all(input).filter(doubtful).collect();
    if doubtful.is_empty() {
        return None;
    }
    let project = match Project::open(dir, Listener::silent()) {
        Ok(project) => project,
        Err(e) => return Some(vec![format!("git-proq: refused: it cannot be known whose this is: {e}")]),
    };
    // Of updates that git makes all at once, one that is refused refuses all.
    let mut allowed = Vec::new();
    for update in &doubtful {
        match verdict(&project, hook, update) {
            Verdict::Nothing => {}
            Verdict::Refused(words) => return Some(words),
            Verdict::Kept(now) => allowed.push((update, now)),
        }
    }
    keep::before_they_go(&project, hook, &allowed).map(|what| vec![may_not(hook, &what)])
}

/// How the fence answers an update of a ref that an agent's git is about to make.
enum Verdict {
    /// Git makes it.
    Nothing,
    /// Refuse it, with these words.
    Refused(Vec<String>),
    /// Git makes it once what the ref leads to now is kept.
    Kept(Option<Oid>),
}

fn may_not(hook: &Hook<'_>, what: &str) -> String {
    format!("git-proq: refused: {what}; the agent of lane '{}' may not write it", hook.record.lane)
}

fn is_doubtful(update: &Update<'_>, hook: &Hook<'_>) -> bool {
    let name = update.name;
    let own = hook.record.branch.is_some() && name.strip_prefix(HEADS) == hook.record.branch.as_deref();
    // The branch of the main checkout is others' too.
    let own = own && !hook.record.in_place && !hook.record.read_only && !update.is_symbolic();
    let shared = match only_looks(hook) {
        true => name.starts_with("refs/") && !OWN.iter().any(|own| name.starts_with(own)),
        false => name == STASH || [PROQ, HEADS, TAGS].iter().any(|start| name.starts_with(start)),
    };
    shared && !own
}

fn only_looks(hook: &Hook<'_>) -> bool {
    hook.record.branch.is_none() || hook.record.read_only
}

fn verdict(project: &Project, hook: &Hook<'_>, update: &Update<'_>) -> Verdict {
    let now = match project.repo.ref_object(update.name) {
        Ok(now) => now,
        Err(e) => {
            return Verdict::Refused(vec![format!(
                "git-proq: refused: it cannot be known whose this is: {e}"
            )]);
        }
    };
    // Refs that are packed are written with the values that they have.
    let unchanged = match now {
        Some(now) => Oid::from_hex(update.new) == Some(now),
        None => update.removes(),
    };
    if unchanged {
        return Verdict::Nothing;
    }
    if update.name == STASH {
        return stash(project, hook, update).map_or(Verdict::Nothing, Verdict::Refused);
    }
    // A symbolic ref is the branch that it leads to.
    let branch = update.name.strip_prefix(HEADS).map(|branch| project.repo.branch_behind(branch));
    match refusal(project, hook, update, now, branch.as_deref()) {
        Some(words) => Verdict::Refused(words),
        None if branch.is_some() && branch == hook.record.branch => Verdict::Nothing,
        None => Verdict::Kept(now),
    }
}

/// The words, a line each, with which an update of a branch, a tag or a ref of git-proq's is refused; none where it is allowed. `now` is
/// the object that the ref leads to, `branch` the branch that moves, without `refs/heads/`, where it is one.
fn refusal(
    project: &Project,
    hook: &Hook<'_>,
    update: &Update<'_>,
    now: Option<Oid>,
    branch: Option<&str>,
) -> Option<Vec<String>> {
    let Some(own) = hook.record.branch.as_ref().filter(|_| !only_looks(hook)) else {
        let what = branch.unwrap_or(update.name);
        return Some(vec![
            may_not(hook, &format!("{what} is not for a run that only looks")),
            "git-proq: say what should be done instead; that is what is kept".to_owned(),
        ]);
    };
    if let (Some(branch), true) = (branch, update.is_symbolic()) {
        return Some(vec![may_not(hook, &format!("branch {branch} would be a symbolic ref"))]);
    }
    if branch == Some(own.as_str()) {
        return own_branch(project, hook, update, now).map(|what| vec![may_not(hook, &what)]);
    }
    let what = match branch {
        None if update.name.starts_with(TAGS) => None,
        None => Some(format!("{} is git-proq's own", update.name)),
        Some(branch) => whose(project, &hook.place, branch),
    }?;
    let instead = match hook.record.in_place {
        false => format!("git-proq: commit to {own} in the lane instead; what is on it is landed from there"),
        true => format!("git-proq: commit to {own} instead"),
    };
    Some(vec![may_not(hook, &what), instead])
}

/// Why the branch of the main checkout may not be written so, as the beginning of a sentence. It may go anywhere, and what it
/// leaves behind is kept; it may not go.
fn own_branch(project: &Project, hook: &Hook<'_>, update: &Update<'_>, now: Option<Oid>) -> Option<String> {
    let branch = update.name.strip_prefix(HEADS).unwrap_or(update.name);
    if update.removes() {
        return Some(format!("branch {branch} is that of the main checkout, and stays"));
    }
    let now = now?;
    let follows =
        Oid::from_hex(update.new).is_some_and(|new| project.repo.is_ancestor(now, new).unwrap_or(false));
    if follows {
        return None;
    }
    let name = format!("{PROQ}saved/{}-{}", hook.record.lane, new_id());
    if project.repo.create_ref(&name, now, "git-proq: left behind in the main checkout").is_ok() {
        return None;
    }
    let noted = keep::keep_later(hook, now, &name);
    noted.err().map(|e| format!("what branch {branch} would leave behind could not be kept: {e}"))
}

/// Whose a branch is, as the beginning of a sentence; none if it is nobody's.
fn whose(project: &Project, place: &HookPlace, branch: &str) -> Option<String> {
    let lanes = project.lanes().unwrap_or_default();
    if let Some(lane) = lanes.iter().find(|lane| lane.place.branch == branch) {
        return Some(format!("branch {branch} is that of lane '{}'", lane.name));
    }
    if project.is_own_branch(branch) {
        return Some(format!("branch {branch} is git-proq's own"));
    }
    if lanes.iter().any(|lane| lane.base == branch && !lane.state.is_over()) {
        return Some(format!("branch {branch} is what lanes land on"));
    }
    let main = HookPlace { git_dir: place.common_dir.clone(), common_dir: place.common_dir.clone() };
    let on = |head: &str| Some(project.repo.branch_behind(head.strip_prefix("ref: refs/heads/")?));
    let there = main.head().is_some_and(|head| on(&head).as_deref() == Some(branch));
    (there && project.repo.main_worktree().is_some())
        .then(|| format!("branch {branch} is checked out in the main checkout"))
}

/// The stash is one for all worktrees. What would have gone there is kept; what git puts back by itself when a rebase or merge
/// is over has nowhere else to go.
fn stash(project: &Project, hook: &Hook<'_>, update: &Update<'_>) -> Option<Vec<String>> {
    let lane = &hook.record.lane;
    let refused = format!(
        "git-proq: refused: the stash is one for all worktrees; the agent of lane '{lane}' may not write it"
    );
    let Some(commit) = Oid::from_hex(update.new).filter(|_| !update.removes()) else {
        // Git has taken it off the list by now.
        let kept = "git-proq: what was its last entry is kept: git stash apply refs/stash";
        return Some(vec![refused, kept.to_owned()]);
    };
    if hook.place.is_autostash(update.new) {
        return None;
    }
    let name = format!("{PROQ}saved/{lane}-stash-{}", new_id());
    let kept = match project.repo.create_ref(&name, commit, "git-proq: a stash of a lane") {
        Ok(()) => format!("a copy is kept: git stash apply {name}"),
        Err(_) => format!("it is still there as {commit}"),
    };
    Some(vec![refused, format!("git-proq: your changes are where they were; commit them instead ({kept})")])
}
