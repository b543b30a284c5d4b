//! Check commands of a landing, and the known verdicts on the states that they were run on.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Duration;

use proq_base::config::choices::BaseFailurePolicy;
use proq_base::config::settings::Settings;
use proq_base::diagnostics::Listener;
use proq_git::CommitId;

use super::verify_cache;
use super::verify_cache::CheckInput;
use crate::event::approval::{Approvals, ShellCommand};
use crate::lane::Project;
use crate::merge::Error;
use crate::merge::checks::check_commands::{CheckCommands, CommandNumbers};
use crate::merge::checks::check_runs::{CheckResult, CheckRules, CheckRuns, CommitCheck, FailedCommand};
use crate::merge::checks::culprit_search::CheckVerdict;
use crate::merge::stack::lane_stack::{AppliedLane, Stack};
use crate::merge::types::options::Landing;
use crate::merge::types::outcome::{CheckSummary, TaskChecks, describe_state};

/// Check commands of one landing, and the verdicts on stacks known so far.
#[derive(Debug)]
pub(crate) struct Verifier {
    pub commands: CheckCommands,
    /// Checks of each base, by branch name.
    base_checks: BTreeMap<String, BaseChecks>,
    /// Commands of the options, which check each base.
    extra_commands: Vec<String>,
    /// Whether the commands of the settings and of the lanes' tasks are run.
    use_configured_checks: bool,
    dry_run: bool,
    /// Whether a command that fails on the base itself is ignored with a warning.
    pub(crate) ignores_base_failures: bool,
    pub jobs: usize,
    pub runs: CheckRuns,
    /// Verdicts by state. They depend on the tolerated commands of the current base, and are cleared when
    /// another base changes the tolerated commands.
    pub verdicts: HashMap<VerdictKey, StateVerdict>,
    /// Command lines that prepare a worktree for checks of the current base.
    pub(crate) current_set_up: Vec<String>,
    /// Tip of the base that the tolerated commands were found on.
    pub(crate) current_base_tip: Option<CommitId>,
    /// Numbers of the commands whose failure is ignored, because they fail on the current base itself.
    pub(crate) tolerated_commands: Vec<usize>,
    pub summary: CheckSummary,
}

/// Checks of one base.
#[derive(Debug, Clone)]
struct BaseChecks {
    commands: CommandNumbers,
    /// Command lines that prepare a check worktree.
    set_up: Vec<String>,
    /// Time limit of one command.
    time_limit: Duration,
    /// Commands that are not approved.
    unapproved: Vec<String>,
    /// Tip of the base for which the checks were loaded; none before the landing has a tip.
    loaded_for_tip: Option<CommitId>,
}

/// Key of a verdict: the input of a check of the base with some lanes, and the commands that apply to them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct VerdictKey {
    pub input: CheckInput,
    pub commands: CommandNumbers,
}

/// Verdict of the checks on a state, with the details of a failure.
#[derive(Debug, Clone)]
pub(crate) enum StateVerdict {
    Passed,
    Failed(Rc<FailedCommand>),
}

impl StateVerdict {
    /// Returns the verdict without the details of a failure.
    pub fn verdict(&self) -> CheckVerdict {
        match self {
            StateVerdict::Passed => CheckVerdict::Passed,
            StateVerdict::Failed(failure) => CheckVerdict::Failed(failure.command_number),
        }
    }
}

impl Verifier {
    /// Creates the verifier for a landing.
    ///
    /// # Errors
    /// [`Error::UnapprovedChecks`] when a command of the repository is not approved.
    pub fn new(project: &Project, landing: &Landing) -> Result<Verifier, Error> {
        let options = &landing.options;
        let extra_commands =
            options.extra_checks.iter().filter(|line| !line.trim().is_empty()).cloned().collect();
        let mut verifier = Verifier {
            commands: CheckCommands::default(),
            base_checks: BTreeMap::new(),
            extra_commands,
            use_configured_checks: !options.no_checks,
            dry_run: landing.dry_run,
            ignores_base_failures: options.ignore_base_failures
                || project.settings.base_failures == BaseFailurePolicy::Warn,
            jobs: options.jobs.unwrap_or(project.settings.verify_jobs),
            runs: CheckRuns::default(),
            verdicts: HashMap::new(),
            current_set_up: Vec::new(),
            current_base_tip: None,
            tolerated_commands: Vec::new(),
            summary: CheckSummary::default(),
        };
        for base in landing.bases(project)? {
            verifier.load_base_checks(project, &base, None)?;
        }
        Ok(verifier)
    }

    /// Loads the checks of each base again. Other landings may have changed them while this one waited in the
    /// queue.
    ///
    /// # Errors
    /// Fails as [`Verifier::new`] does.
    pub(crate) fn reload_base_checks(&mut self, project: &Project) -> Result<(), Error> {
        let bases: Vec<String> = self.base_checks.keys().cloned().collect();
        bases.iter().try_for_each(|base| self.load_base_checks(project, base, None))
    }

    /// Loads the checks of a base, once for each tip.
    fn load_base_checks(
        &mut self,
        project: &Project,
        base: &str,
        tip: Option<CommitId>,
    ) -> Result<(), Error> {
        if tip.is_some() && self.base_checks.get(base).is_some_and(|checks| checks.loaded_for_tip == tip) {
            return Ok(());
        }
        let (mut commands, mut set_up) = (Vec::new(), Vec::new());
        let mut limit = project.settings.verify_timeout;
        if self.use_configured_checks {
            let checks = project.landing_checks(base)?;
            let approvals = Approvals::load(&project.repo, &project.store)?;
            (commands, limit) =
                (approvals.commands_for_verify(&checks.layers, &checks.commands), checks.timeout);
            set_up = approvals.check_set_up_commands(&checks.layers, &checks.set_up);
        }
        let unapproved_commands: Vec<&ShellCommand> =
            set_up.iter().chain(&commands).filter(|c| !c.approved).collect();
        let unapproved_lines = || unapproved_commands.iter().map(|c| c.line.clone());
        if let (Some(path), false) =
            (unapproved_commands.first().and_then(|c| c.source_file.clone()), self.dry_run)
        {
            return Err(Error::UnapprovedChecks {
                path,
                commands: unapproved_lines().collect(),
                base: base.to_owned(),
            });
        }
        let unapproved = unapproved_lines().collect();
        let set_up = set_up.into_iter().map(|c| c.line).collect();
        let command_lines: Vec<String> =
            commands.into_iter().map(|c| c.line).chain(self.extra_commands.clone()).collect();
        // Bases with the same command lines share their numbers, so that a verdict on one base is known on
        // the other.
        let has_same_lines = |checks: &&BaseChecks| self.commands.lines_of(&checks.commands) == command_lines;
        let known_numbers = self.base_checks.values().find(has_same_lines).map(|on| on.commands.clone());
        let commands = known_numbers.unwrap_or_else(|| self.commands.add_base_commands(command_lines));
        self.base_checks.insert(
            base.to_owned(),
            BaseChecks { commands, set_up, time_limit: limit, unapproved, loaded_for_tip: tip },
        );
        Ok(())
    }

    /// Returns the summary of all checks for the report of the landing; none without commands.
    pub(crate) fn into_summary(self) -> Option<CheckSummary> {
        let base_commands = self.base_checks.values().flat_map(|on| self.commands.lines_of(&on.commands));
        let mut commands: Vec<String> = Vec::new();
        for command_line in base_commands {
            if !commands.contains(&command_line) {
                commands.push(command_line);
            }
        }
        if commands.is_empty() && self.summary.tasks.is_empty() {
            return None;
        }
        let unapproved = self.base_checks.into_values().flat_map(|on| on.unapproved).collect();
        Some(CheckSummary { commands, unapproved, runs: self.runs.run_count, ..self.summary })
    }

    /// Adds the commands of the tasks of a stack's lanes to the summary.
    pub(crate) fn add_tasks_to_summary(&mut self, stack: &Stack) {
        for lane in stack.applied_lanes.iter().map(|step| &step.candidate.lane) {
            let is_noted = self.summary.tasks.iter().any(|noted| noted.lane == lane.name);
            if self.use_configured_checks && !lane.checks.is_empty() && !is_noted {
                let (lane, commands) = (lane.name.clone(), lane.checks.clone());
                self.summary.tasks.push(TaskChecks { lane, commands });
            }
        }
    }

    /// Returns the numbers of the commands that check the base `onto` with the lanes of `steps`. The checks
    /// of the base must be loaded.
    pub(crate) fn command_numbers_on(&mut self, onto: &str, steps: &[AppliedLane]) -> CommandNumbers {
        let steps = if self.use_configured_checks { steps } else { &[] };
        let base_numbers = self.base_checks.get(onto).map_or_else(Vec::new, |on| on.commands.clone());
        self.commands
            .numbers_for_state(&base_numbers, steps.iter().map(|step| step.candidate.lane.checks.as_slice()))
    }

    /// Returns the time limit of a command on a base.
    pub(crate) fn time_limit_on(&self, settings: &Settings, onto: &str) -> Duration {
        self.base_checks.get(onto).map_or(settings.verify_timeout, |on| on.time_limit)
    }

    /// Returns the command lines that prepare a worktree for checks of a base.
    pub(crate) fn set_up_on(&self, onto: &str) -> Vec<String> {
        self.base_checks.get(onto).map_or_else(Vec::new, |on| on.set_up.clone())
    }

    /// Returns the command lines that the verify cache has for a state: those of the current set-up, then those
    /// of these numbers.
    pub(crate) fn cache_lines(&self, commands: &[usize]) -> Vec<String> {
        verify_cache::cache_lines(&self.current_set_up, self.commands.lines_of(commands))
    }

    /// Returns whether the checks of a stack have any command.
    ///
    /// # Errors
    /// Fails as [`Verifier::new`] does.
    pub(crate) fn has_commands_on(&mut self, project: &Project, stack: &Stack) -> Result<bool, Error> {
        self.load_base_checks(project, &stack.onto, Some(stack.base))?;
        Ok(!self.command_numbers_on(&stack.onto, &stack.applied_lanes).is_empty())
    }

    /// Runs the checks of states that have no verdict yet, and records their verdicts.
    pub(crate) fn run_checks(
        &mut self,
        project: &Project,
        verdict_keys: &[VerdictKey],
        checks: &[CommitCheck],
        prefixes: &[usize],
    ) -> Result<(), Error> {
        let onto = checks.first().map_or("", |task| &task.onto);
        let limit = self.time_limit_on(&project.settings, onto);
        let rules = CheckRules {
            command_lines: self.commands.lines(),
            tolerated_commands: &self.tolerated_commands,
            set_up_commands: &self.current_set_up,
            time_limit: limit,
        };
        let results = self.runs.run(project, rules, checks, prefixes, self.jobs)?;
        for ((result, state), check) in results.into_iter().zip(verdict_keys).zip(checks) {
            match result {
                None => {}
                Some(CheckResult::Failed(red)) => {
                    drop(self.verdicts.insert(state.clone(), StateVerdict::Failed(Rc::new(red))));
                }
                Some(CheckResult::Passed { flaky_command: flaky }) => {
                    self.verdicts.insert(state.clone(), StateVerdict::Passed);
                    match flaky {
                        Some(command) => self.report_flaky(&project.listener, command, check),
                        None => self.cache_passed(project, state),
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds a passed state to the cache for later landings, if no command was tolerated on it.
    pub(crate) fn cache_passed(&self, project: &Project, state: &VerdictKey) {
        if state.commands.iter().any(|command| self.tolerated_commands.contains(command)) {
            return;
        }
        verify_cache::save_passed(project, &state.input, &self.cache_lines(&state.commands));
    }

    /// Warns of a command that failed and then succeeded, and adds it to the summary.
    fn report_flaky(&mut self, listener: &Listener, command: usize, check: &CommitCheck) {
        let command_line = &self.commands.lines()[command];
        listener.warn(format!(
            "`{command_line}` failed and then succeeded on the same files ({}): it is flaky",
            describe_state(&check.onto, &check.lanes)
        ));
        if !self.summary.flaky.contains(command_line) {
            self.summary.flaky.push(command_line.clone());
        }
    }

    /// Returns the verdict on a state, from this landing or the cache; none if it is not known. A state
    /// without commands passes.
    pub(crate) fn find_verdict(&mut self, project: &Project, state: &VerdictKey) -> Option<StateVerdict> {
        if let Some(verdict) = self.verdicts.get(state) {
            return Some(verdict.clone());
        }
        if !state.commands.is_empty() {
            if !verify_cache::has_passed(project, &state.input, &self.cache_lines(&state.commands)) {
                return None;
            }
            self.summary.reused += 1;
        }
        self.verdicts.insert(state.clone(), StateVerdict::Passed);
        Some(StateVerdict::Passed)
    }
}
