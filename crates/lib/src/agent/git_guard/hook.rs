//! Hook shims of a git guard: finding the repository that git runs in, git-proq's own checks, then the
//! repository's own hook.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};

use proq_base::diagnostics::Listener;
use proq_base::process::exec_target::ExecTarget;
use proq_git::hooks::hook_repo;
use proq_git::program::injected_config;

use super::hook_call::HookCall;
use super::{after_commit, escape, post_commit_hook, ref_policy, ref_update, save_refs};
use crate::agent::Error;
use crate::lane::Project;

/// Hook that git runs for every change of refs.
const REFERENCE_TRANSACTION_HOOK: &str = "reference-transaction";

/// Hook that git runs before a push.
const PRE_PUSH_HOOK: &str = "pre-push";

/// Messages and exit code of a hook.
#[derive(Debug, Default)]
#[must_use]
pub struct HookOutcome {
    /// Lines for the user or agent that runs git.
    pub messages: Vec<String>,
    /// Exit code of the hook; git refuses the action unless it is 0.
    pub exit_code: u8,
}

/// Runs the hook `shim` of a git guard, which git has started in `dir`. Where the repository has its own hook
/// of that name, this process is replaced by it and the function does not return.
///
/// # Errors
/// Fails when the repository's own hook cannot be found or started. Git must not continue then as if the
/// repository had none.
pub fn run_hook(dir: &Path, shim: &Path, args: &[OsString]) -> Result<HookOutcome, Error> {
    let name = shim.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let Some(hook) = HookCall::load(dir, shim, args) else {
        return run_repository_hook(dir, name, args);
    };
    match name {
        REFERENCE_TRANSACTION_HOOK => handle_reference_transaction(dir, &hook),
        PRE_PUSH_HOOK => handle_push(dir, &hook),
        "post-commit" => {
            let repository_hook =
                if hook.has_repository_hook(name) { hook_repo::find_repo_hook(dir, name)? } else { None };
            // The hook of `git proq hooks install` announces the commit itself.
            if !repository_hook.as_ref().is_some_and(|file| post_commit_hook::is_proq_hook(&dir.join(file))) {
                after_commit::handle_agent_commit(dir, &hook);
            }
            exec_repository_hook(repository_hook, args)
        }
        _ => run_repository_hook(dir, name, args),
    }
}

/// Replaces this process by the repository's own hook, if it has one, with the environment that git would
/// have given it.
fn run_repository_hook(dir: &Path, name: &str, args: &[OsString]) -> Result<HookOutcome, Error> {
    exec_repository_hook(hook_repo::find_repo_hook(dir, name)?, args)
}

fn exec_repository_hook(repository_hook: Option<PathBuf>, args: &[OsString]) -> Result<HookOutcome, Error> {
    match repository_hook {
        Some(file) => Err(hook_command(&file, args).replace_process().into()),
        None => Ok(HookOutcome::default()),
    }
}

fn hook_command(file: &Path, args: &[OsString]) -> ExecTarget {
    ExecTarget::new(
        file,
        args,
        (injected_config::CONFIG_VARIABLE, injected_config::user_config_parameters().as_deref()),
    )
}

/// Handles a call of the `reference-transaction` hook. Git calls it up to three times per change, and most
/// changes need no decision, so checks that open no repository come first.
fn handle_reference_transaction(dir: &Path, hook: &HookCall<'_>) -> Result<HookOutcome, Error> {
    let has_own_hook = hook.has_repository_hook(REFERENCE_TRANSACTION_HOOK);
    let step = hook.args.first().and_then(|arg| arg.to_str()).unwrap_or_default();
    let is_outside = hook.is_outside_own_worktree();
    // Git has released its locks at this step.
    if matches!(step, "committed" | "aborted")
        && save_refs::has_pending_saves(&hook.guard_dir)
        && let Ok(project) = Project::open(dir, Listener::silent())
    {
        save_refs::save_pending_refs(&project, &hook.guard_dir);
    }
    if !has_own_hook && step != "prepared" && !(step == "committed" && is_outside) {
        return Ok(HookOutcome::default());
    }
    let mut input = Vec::new();
    // Input that cannot be read cannot be checked; git then fails in the same way.
    drop(std::io::stdin().read_to_end(&mut input));
    if step == "prepared"
        && let Some(messages) = ref_policy::check_updates(dir, hook, &input)
    {
        return Ok(HookOutcome { messages, exit_code: 1 });
    }
    if step == "committed" && is_outside {
        escape::report_head_change(dir, hook, &input);
    }
    forward_to_repository_hook(dir, hook, REFERENCE_TRANSACTION_HOOK, &input)
}

/// Checks a push into the repository itself before it starts, because the receiving git writes the refs
/// without this run's git guard.
fn handle_push(dir: &Path, hook: &HookCall<'_>) -> Result<HookOutcome, Error> {
    let mut input = Vec::new();
    drop(std::io::stdin().read_to_end(&mut input));
    if hook.args.get(1).is_some_and(|destination| hook.repo.is_push_target(dir, destination)) {
        let updates = ref_update::convert_push_input(&input);
        if let Some(messages) = ref_policy::check_updates(dir, hook, &updates) {
            return Ok(HookOutcome { messages, exit_code: 1 });
        }
    }
    forward_to_repository_hook(dir, hook, PRE_PUSH_HOOK, &input)
}

/// Runs the repository's own hook, if it has one, with the input that was already read.
fn forward_to_repository_hook(
    dir: &Path,
    hook: &HookCall<'_>,
    name: &str,
    input: &[u8],
) -> Result<HookOutcome, Error> {
    let repository_hook =
        if hook.has_repository_hook(name) { hook_repo::find_repo_hook(dir, name)? } else { None };
    match repository_hook {
        Some(file) => Ok(HookOutcome {
            exit_code: hook_command(&file, hook.args).run_with_input(input)?,
            ..HookOutcome::default()
        }),
        None => Ok(HookOutcome::default()),
    }
}
