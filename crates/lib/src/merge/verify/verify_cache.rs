//! Cache of states on which all checks passed, so that no state is checked twice. The key covers the commits
//! that would land and those below them, the form of files, the commands and the environment. Other inputs of
//! a check (tags, other settings, the network) are not part of it.

use std::path::PathBuf;
use std::rc::Rc;

use proq_git::repository::objects::TempObjectStore;
use proq_git::{CommitId, Repo, TreeId};
use proq_store::base::clock::now;
use proq_store::base::record::Record;
use proq_store::records::check::VerifyCacheRecord;

use crate::lane::Project;
use crate::lane::removal::verify_cache_expiry::VERIFY_CACHE_LIFETIME;
use crate::merge::Error;
use crate::merge::checks::check_environment::{affects_result, check_environment};
use crate::merge::stack::lane_stack::Stack;

/// Input of the checks of one state: its files in the form in which git writes them now, the commits that
/// lead to it, and the contents of variables that git-proq sets. Ports (any free ones) and dates of commits
/// that a landing creates are left out, because they differ each time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CheckInput {
    /// Tree of the state.
    pub tree: TreeId,
    /// Encoded base, commits and file form.
    context: Rc<[u8]>,
}

impl CheckInput {
    /// Returns the input of a base without any lane.
    pub(crate) fn from_base(repo: &Repo, onto: &str, base: CommitId) -> Result<CheckInput, Error> {
        Ok(CheckInput { tree: repo.tree_of(base)?, context: base_context(repo, onto, base)?.into() })
    }

    /// Returns the input of each prefix of a stack, from its first lane on. The commits may exist in
    /// `temp_objects` only.
    pub(crate) fn from_stack(
        repo: &Repo,
        stack: &Stack,
        temp_objects: Option<&TempObjectStore>,
    ) -> Result<Vec<CheckInput>, Error> {
        let (mut out, mut context, mut ours) =
            (Vec::new(), base_context(repo, &stack.onto, stack.base)?, stack.base);
        for step in &stack.applied_lanes {
            let (lane, tip) = (&step.candidate.lane.name, step.candidate.tip);
            context.extend_from_slice(format!("{lane}\0{tip}\0").as_bytes());
            context.extend(repo.comparable_description(step.commit, &[ours, tip], temp_objects)?);
            context.push(0);
            ours = step.commit;
            out.push(CheckInput { tree: step.tree, context: context.as_slice().into() });
        }
        Ok(out)
    }
}

/// Encodes the inputs that all states on a base share: branch, tip and the form of files.
fn base_context(repo: &Repo, onto: &str, base: CommitId) -> Result<Vec<u8>, Error> {
    let conversion_key = repo.conversion_config(repo.command_dir())?;
    let mut context = format!("{onto}\0{base}\0{}\0", conversion_key.len()).into_bytes();
    context.extend(conversion_key);
    Ok(context)
}

/// Returns the cache file for a state with these commands in this environment; none if git cannot compute its
/// id.
fn cache_path(project: &Project, input: &CheckInput, commands: &[String]) -> Option<PathBuf> {
    let mut text = format!("{}\0{}\0{}\0", input.tree, input.context.len(), commands.join("\n")).into_bytes();
    text.extend_from_slice(&input.context);
    for (name, value) in check_environment().into_iter().filter(|(name, _)| affects_result(name)) {
        text.extend_from_slice(name.as_encoded_bytes());
        text.push(b'=');
        text.extend_from_slice(value.as_encoded_bytes());
        text.push(0);
    }
    let id = project.repo.blob_id(&text)?;
    Some(project.store.layout().verify_cache_entry(&id.to_string()))
}

/// Returns the command lines by which the cache knows checks: those that prepare the worktree, marked as such, and
/// the checks themselves.
pub(crate) fn cache_lines(set_up: &[String], commands: Vec<String>) -> Vec<String> {
    set_up.iter().map(|line| format!("set-up: {line}")).chain(commands).collect()
}

/// Returns whether all commands passed on a state within the lifetime of the cache.
pub(crate) fn has_passed(project: &Project, input: &CheckInput, commands: &[String]) -> bool {
    let Some(path) = cache_path(project, input, commands) else { return false };
    // An unreadable record counts as missing.
    VerifyCacheRecord::load_if_exists(&path).ok().flatten().is_some_and(|record| {
        record.tree == input.tree
            && record.commands == commands
            && !record.passed_at.is_older_than(VERIFY_CACHE_LIFETIME)
    })
}

/// Records that all commands passed on a state. A failure to write is ignored: this is a cache.
pub(crate) fn save_passed(project: &Project, input: &CheckInput, commands: &[String]) {
    if let Some(path) = cache_path(project, input, commands) {
        drop(
            VerifyCacheRecord { tree: input.tree, commands: commands.to_vec(), passed_at: now() }.save(&path),
        );
    }
}
