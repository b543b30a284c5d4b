//! The complete health examination: order of the checks, when they are repeated, and which findings are
//! repaired.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use proq_base::config::layers::InvalidValues;
use proq_base::diagnostics::{Listener, Note};
use proq_base::lane_name::LaneName;
use proq_git as git;
use proq_git::Repo;
use proq_git::worktrees::health_probe;
use proq_store::Store;
use proq_store::paths::layout::Layout;
use serde::Serialize;

use super::check_context::CheckContext;
use super::finding::{Finding, Severity};
use super::{
    batches, conflicts, disk, git_program, lanes, leftovers, main_checkout, objects, operations, pool,
    preview, settings, snapshots, trash, unrecorded,
};
use crate::lane::{Error, Project};
use crate::step_kinds::register_step_kinds;

/// How long the checks are repeated while no command is running and the findings change.
const RECHECK_LIMIT: Duration = Duration::from_secs(3);
/// How long to wait for running commands, whose partial changes appear as problems.
const BUSY_RECHECK_LIMIT: Duration = Duration::from_secs(20);
const RECHECK_INTERVAL: Duration = Duration::from_millis(60);

/// Items that an examination covered: their numbers, the version of git, and the installed agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CheckedItems {
    /// Whether the folder is in a repository.
    pub repository: bool,
    /// Version of git, if it is installed.
    #[serde(rename = "git")]
    pub git_version: Option<String>,
    /// Known agents that are installed on `PATH`.
    pub agents: Vec<String>,
    /// Number of lanes.
    pub lanes: usize,
    /// Number of removed lanes on record.
    #[serde(rename = "history")]
    pub removed_lanes: usize,
    /// Number of snapshots.
    pub snapshots: usize,
    /// Number of captured conflicts.
    pub conflicts: usize,
    /// Number of entries in the trash.
    pub trash: usize,
    /// Landed lanes whose folders the next lane may reuse, most recent first.
    #[serde(rename = "waiting")]
    pub(crate) reusable_folders: Vec<LaneName>,
    /// Number of refs that keep the commits of removed lanes.
    #[serde(rename = "saved")]
    pub saved_refs: usize,
    /// Number of operations in the operation log.
    pub operations: usize,
    /// Whether a preview is open.
    #[serde(rename = "preview")]
    pub is_preview_open: bool,
}

/// Result of an examination: the findings, and what was checked.
#[derive(Debug, Clone)]
#[must_use]
pub struct Report {
    /// Findings, worst first.
    pub findings: Vec<Finding>,
    /// Counts of the checked items.
    pub checked: CheckedItems,
}

impl Report {
    /// Returns whether no error is left unrepaired.
    pub fn is_ok(&self) -> bool {
        !self.findings.iter().any(|f| f.severity == Severity::Error && !f.fixed)
    }

    /// Returns whether a finding is an error or a warning.
    fn has_problems(&self) -> bool {
        self.findings.iter().any(Finding::is_problem)
    }

    /// Returns check, subject and message of each error and warning.
    fn problems(&self) -> Vec<(&str, &str, &str)> {
        let problems = self.findings.iter().filter(|f| f.is_problem());
        problems.map(|f| (f.check, f.subject.as_str(), f.message.as_str())).collect()
    }
}

/// Examines the repository that contains `dir`, or only git, agents and settings outside of one. With `fix`,
/// applies the safe repairs.
pub fn examine(dir: &Path, fix: bool) -> Report {
    let (version, mut general_findings) = git_program::installed_version(dir);
    let (agents, agent_findings) = settings::installed_agents(dir);
    general_findings.extend(agent_findings);
    let initial = CheckedItems { git_version: version, agents, ..CheckedItems::default() };
    let recovery_log = RecoveryLog::default();
    let project = open_repository(dir, recovery_log.listener(), &mut general_findings);
    let mut report = match &project {
        Some(project) => stable_report(project, &initial, &recovery_log),
        None => Report { findings: Vec::new(), checked: initial.clone() },
    };
    if let Some(project) = project.filter(|_| fix) {
        let (repaired, failed) = apply_repairs(&project, &report);
        if !repaired.is_empty() {
            report = stable_report(&project, &initial, &recovery_log);
        }
        let is_still_found =
            |f: &Finding| report.findings.iter().any(|r| (r.check, &r.subject) == (f.check, &f.subject));
        let repaired: Vec<Finding> = repaired.into_iter().filter(|f| !is_still_found(f)).collect();
        for finding in &mut report.findings {
            let failure =
                failed.iter().find(|(f, _)| (f.check, &f.subject) == (finding.check, &finding.subject));
            finding.left_reason =
                failure.map(|(_, reason)| reason.clone()).or_else(|| finding.left_reason.take());
        }
        report.findings.extend(repaired.into_iter().map(|f| Finding { fixed: true, ..f }));
    }
    report.findings.extend(general_findings);
    report.findings.extend(
        recovery_log
            .recovery_warnings
            .take()
            .into_iter()
            .map(|text| Finding::info("recovery", "recovery", text)),
    );
    report.findings.sort_by_key(|f| (f.fixed, f.severity));
    report
}

/// Opens the repository as far as possible, and adds a finding for each obstacle.
fn open_repository(dir: &Path, listener: Listener, out: &mut Vec<Finding>) -> Option<Project> {
    let repo = match Repo::discover(dir) {
        Ok(repo) => Some(repo),
        // The check of git's version has already reported this.
        Err(git::Error::NoGit) => None,
        Err(git::Error::NoRepository { named_by_git_dir_variable: false, .. })
            if !health_probe::is_in_repository(dir) =>
        {
            let message = "not in a repository, so only git, agents and settings were checked";
            out.push(Finding::info("repository", dir.display().to_string(), message));
            None
        }
        Err(git::Error::NoRepository { named_by_git_dir_variable: false, .. }) => {
            let message = "git knows a repository here, but it is of a kind that git-proq cannot read";
            let help = "git config --get-regexp '^extensions'";
            out.push(Finding::error("repository", dir.display().to_string(), message).with_help(help));
            None
        }
        Err(e) => {
            out.push(Finding::from_error("repository", dir.display().to_string(), &e));
            None
        }
    };
    if let Some(Err(e)) = repo.as_ref().map(|repo| Store::refuse_links(repo.common_dir())) {
        out.push(Finding::from_error("store", dir.display().to_string(), &e));
        return None;
    }
    let unreadable_store = repo.as_ref().and_then(|repo| Store::require_readable(repo.common_dir()).err());
    out.extend(unreadable_store.as_ref().map(|e| {
        let finding = Finding::from_error("permissions", dir.display().to_string(), e);
        finding.with_left_reason("only its owner may change that")
    }));
    let layers = Project::load_layers(repo.as_ref()).unwrap_or_else(|e| {
        // The place of `proq.toml` depends on the open preview, whose record is in the store.
        if unreadable_store.is_none() {
            out.push(Finding::from_error("setting", "settings", &e).with_left_reason("the file is yours"));
        }
        Project::load_layers_with(repo.as_ref(), InvalidValues::Ignore).unwrap_or_default()
    });
    out.extend(settings::unknown_settings(&layers));
    register_step_kinds();
    let project = repo.map(|repo| Project::with_layers(repo, layers, listener))?;
    if let Err(e) = project.repo.require_writable() {
        let dir = project.repo.common_dir().display().to_string();
        out.push(Finding::from_error("rights", dir, &e).with_left_reason("only you can decide who owns it"));
    }
    out.extend(settings::missing_notifiers(&project.settings.notify, project.repo.command_dir()));
    if unreadable_store.is_some() {
        // Every check of records would report the permission again.
        out.extend(check_without_store(&project));
        return None;
    }
    Some(project)
}

/// Runs the checks that need no file of the store.
fn check_without_store(project: &Project) -> Vec<Finding> {
    let context = match CheckContext::without_store(project) {
        Ok(context) => context,
        Err(e) => return vec![unreadable_repository(&e)],
    };
    [main_checkout::check, objects::check, git_program::check, disk::check_all_free_space]
        .into_iter()
        .flat_map(|check| check(&context))
        .collect()
}

/// Collects the warnings of recovery for the report. Other warnings during the examination are findings
/// anyway.
#[derive(Default)]
struct RecoveryLog {
    /// Warnings since the last recovery began.
    latest_warnings: Rc<RefCell<Vec<String>>>,
    /// Warnings of all recoveries.
    recovery_warnings: RefCell<Vec<String>>,
}

impl RecoveryLog {
    /// Returns a listener that collects warnings here.
    fn listener(&self) -> Listener {
        let pending = Rc::clone(&self.latest_warnings);
        Listener::new(move |note| {
            if let Note::Warning(text) = note {
                pending.borrow_mut().push(text.clone());
            }
        })
    }

    /// Recovers crashed operations and keeps the warnings of that. Returns findings for those that cannot be
    /// recovered.
    fn recover(&self, project: &Project) -> Vec<Finding> {
        self.latest_warnings.take();
        let found = operations::recover_operations(project);
        self.recovery_warnings.borrow_mut().extend(self.latest_warnings.take());
        found
    }
}

/// Repeats the checks until the problems stay the same while no command is running.
fn stable_report(project: &Project, initial: &CheckedItems, recovery_log: &RecoveryLog) -> Report {
    let started = Instant::now();
    let mut report = run_checks(project, initial, recovery_log);
    while report.has_problems() {
        std::thread::sleep(RECHECK_INTERVAL);
        let running = operations::running_command(&project.store);
        let rechecked = run_checks(project, initial, recovery_log);
        let is_unchanged = rechecked.problems() == report.problems();
        report = rechecked;
        match running {
            None if is_unchanged || started.elapsed() > RECHECK_LIMIT => break,
            Some(command) if started.elapsed() > BUSY_RECHECK_LIMIT => {
                return downgrade_problems(report, &command);
            }
            _ => {}
        }
    }
    report
}

/// Downgrades the problems of a report to warnings that cannot be repaired, because `command` has been
/// running for so long. A problem may be a partial change that `command` has made.
fn downgrade_problems(mut report: Report, command: &str) -> Report {
    for finding in report.findings.iter_mut().filter(|f| f.is_problem()) {
        finding.severity = Severity::Warning;
        finding.fixable = false;
        finding.repair = None;
        finding.left_reason =
            Some(format!("{command} is running, and this may be an intermediate state of it"));
    }
    let message = format!("{command} is running; problems may be intermediate states of it");
    report.findings.push(Finding::info("at-work", "at work", message).with_help("git proq doctor"));
    report
}

/// Recovers crashed operations and runs all checks once; `initial` has the version of git and the agents.
fn run_checks(project: &Project, initial: &CheckedItems, recovery_log: &RecoveryLog) -> Report {
    let unfinished = recovery_log.recover(project);
    let context = match CheckContext::read(project) {
        Ok(context) => context,
        Err(e) => {
            return Report {
                findings: unfinished.into_iter().chain([unreadable_repository(&e)]).collect(),
                checked: initial.clone(),
            };
        }
    };
    let mut findings = unfinished;
    findings.extend(context.unreadable_records.iter().cloned());
    for check in [
        lanes::check,
        batches::check,
        unrecorded::check,
        snapshots::check,
        preview::check,
        main_checkout::check,
        conflicts::check,
        trash::check,
        objects::check,
        operations::check,
        leftovers::check,
        disk::check,
        git_program::check,
    ] {
        findings.extend(check(&context));
    }
    let (waiting, found) = pool::check_pool(&context);
    findings.extend(found);
    let checked = CheckedItems {
        repository: true,
        reusable_folders: waiting,
        lanes: context.lane_names.len(),
        removed_lanes: Layout::entry_names(&project.store.layout().removed_lanes()).len(),
        snapshots: context.snapshots.len(),
        conflicts: context.refs_below(conflicts::CONFLICT_REFS).count(),
        trash: Layout::entry_names(&project.store.layout().trash()).len(),
        saved_refs: context.refs_below("refs/proq/saved/").count(),
        operations: project.store.layout().operation_numbers().len(),
        is_preview_open: context.preview.is_some(),
        ..initial.clone()
    };
    Report { findings, checked }
}

/// Returns the finding that the state of the repository cannot be read.
fn unreadable_repository(e: &Error) -> Finding {
    Finding::from_error("repository", "the repository", e).with_left_reason("nothing could be checked")
}

/// Applies every safe repair. Returns the repaired findings, and those that could not be repaired with the
/// reason.
fn apply_repairs(project: &Project, report: &Report) -> (Vec<Finding>, Vec<(Finding, String)>) {
    let (mut repaired, mut failed) = (Vec::new(), Vec::new());
    for finding in &report.findings {
        match finding.repair.as_ref().map(|repair| repair.apply(project)) {
            Some(Ok(())) => repaired.push(finding.clone()),
            Some(Err(e)) => failed.push((finding.clone(), e.to_string())),
            None => {}
        }
    }
    (repaired, failed)
}
