//! Landing of lanes on their bases, by request of a person or a program.

pub mod conflict_agent;
pub mod fingerprint;
pub mod messages;

use std::collections::BTreeSet;
use std::path::PathBuf;

use proq_base::diagnostics::Listener;
use proq_base::lane_name::LaneName;
use proq_store::records::lane::LaneRecord;

use self::conflict_agent::{ConflictAgent, ConflictAgentChoice, ConflictAgentError};
use self::fingerprint::{MergeFingerprint, RepoState};
use super::waiting_merges::retry_waiting_merges;
use crate::agent::command::agent_command::RunOptions;
use crate::lane;
use crate::lane::Project;
use crate::lane::inspection::idle_lane::{IDLE_DETAIL, is_idle_with_work};
use crate::merge;
use crate::merge::land::landing::land_lanes;
use crate::merge::queue::queue_turn::reload_lanes;
use crate::merge::resolution::resolve_agent;
use crate::merge::types::options::{
    Landing, LandingCallbacks, LandingOptions, PinnedTips, PushMode, StackOrder,
};
use crate::merge::types::outcome::{LandingPlan, LandingReport, LaneOutcome, Verdict};
use crate::merge::types::resolver::{Allowance, Resolver};
use crate::ops::approvals;
use crate::ops::error::Error;
use crate::ops::reporter::{Progress, Question, Reporter, SilentReporter};

/// Whether the bases that lanes land on are pushed afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PushChoice {
    /// They are pushed if `merge.push` is set.
    #[default]
    Setting,
    /// They are pushed.
    Push,
    /// They are not pushed.
    Keep,
}

/// Lanes to land, and how they land.
#[derive(Debug, Clone, Default)]
pub struct MergeRequest {
    /// Names or branches of the lanes; none if every lane that is done lands (`options.all`).
    pub lanes: Vec<String>,
    /// Lane as it would be created, for a forecast of its landing, in place of `lanes`.
    pub simulated_lane: Option<Box<LaneRecord>>,
    /// Message of the commit by which the only lane lands; none for that of the settings.
    pub message: Option<String>,
    /// Whether the agents of the lanes are stopped when the landing's turn has come.
    pub stop: bool,
    /// Agent that resolves conflicts.
    pub conflict_agent: ConflictAgentChoice,
    /// Number of further attempts of the conflict agent; none for `merge.conflict_retries`.
    pub conflict_retries: Option<u32>,
    /// Folder that a relative path to the conflict agent starts from.
    pub current_dir: PathBuf,
    /// Whether bases are pushed.
    pub push: PushChoice,
    /// Whether git may prompt at the terminal when it pushes.
    pub may_push_prompt: bool,
    /// Further options of the landing.
    pub options: LandingOptions,
}

/// Landing that may begin: its lanes exist, and the conflict agent, if any, is installed.
#[derive(Debug, Clone)]
#[must_use]
pub struct MergePlan {
    landing: Landing,
    conflict_agent: Option<ConflictAgent>,
    /// Lanes whose messages the user has edited.
    edited: Vec<LaneName>,
}

/// Result of a landing or of its forecast.
#[derive(Debug, Clone)]
pub struct MergeOutcome {
    /// Outcome of each lane, of the checks and of the pushes.
    pub report: LandingReport,
    /// Whether this is a forecast.
    pub dry_run: bool,
    /// Agent that resolves conflicts.
    pub conflict_agent: Option<ConflictAgent>,
    /// Warnings about automatic merges that waited for this landing.
    pub warnings: Vec<String>,
}

/// Decides how lanes land, without a change.
///
/// # Errors
/// Fails if a lane does not exist, or the requested conflict agent is not installed.
pub fn plan(project: &Project, request: &MergeRequest) -> Result<MergePlan, Error> {
    let lanes = match &request.simulated_lane {
        Some(lane) => vec![LaneRecord::clone(lane)],
        None => request.lanes.iter().map(|name| project.find_lane(name)).collect::<Result<_, _>>()?,
    };
    plan_lanes(project, request, lanes)
}

/// Decides how the lanes with these records land, in place of those that the request names.
///
/// # Errors
/// Fails as [`plan`] does.
pub(crate) fn plan_lanes(
    project: &Project,
    request: &MergeRequest,
    lanes: Vec<LaneRecord>,
) -> Result<MergePlan, Error> {
    let MergeRequest { conflict_agent: choice, options, .. } = request;
    // Resolving one lane after the other cannot land all or none.
    let choice = match choice {
        ConflictAgentChoice::Setting if options.atomic => &ConflictAgentChoice::Nobody,
        choice => choice,
    };
    let auto_lane = lanes.first().filter(|_| options.is_automatic);
    let conflict_agent = ConflictAgent::choose(project, choice, auto_lane, &request.current_dir)?;
    if conflict_agent.is_none()
        && request.conflict_retries.is_some()
        && project.settings.conflict_agent.is_none()
    {
        return Err(ConflictAgentError::NobodyRetries.into());
    }
    // Nothing lands where a conflict agent could not be started.
    project.git_proq_path()?;
    let resolver = conflict_agent.as_ref().map(|agent| Resolver {
        agent: agent.name.clone(),
        retries: request.conflict_retries.unwrap_or(project.settings.conflict_retries),
        allowance: Allowance::default(),
        run_options: RunOptions::default(),
        current_dir: request.current_dir.clone(),
    });
    let is_pushed = match request.push {
        PushChoice::Setting => project.settings.merge_push,
        PushChoice::Push => true,
        PushChoice::Keep => false,
    };
    let push = match is_pushed {
        false => PushMode::Never,
        true if request.may_push_prompt => PushMode::MayPrompt,
        true => PushMode::WithoutPrompt,
    };
    let mut options = options.clone();
    if let Some(text) = &request.message {
        let named_lanes = if options.all { &[] } else { &lanes[..] };
        messages::add_given_message(project, &mut options, named_lanes, text)?;
    }
    let landing = Landing {
        options,
        given_names: request.lanes.clone(),
        is_simulated: request.simulated_lane.is_some(),
        stopped_lanes: request.stop.then(Vec::new),
        lanes,
        resolver,
        push,
        ..Landing::default()
    };
    Ok(MergePlan { landing, conflict_agent, edited: Vec::new() })
}

impl MergePlan {
    /// Forecasts what would land and what would conflict, without a change.
    ///
    /// # Errors
    /// Fails when nothing could be tried. Refusals of single lanes are in the outcome.
    pub fn forecast(&self, project: &Project, reporter: &dyn Reporter) -> Result<MergeOutcome, Error> {
        Ok(self.try_forecast(project, reporter)?)
    }

    fn try_forecast(&self, project: &Project, reporter: &dyn Reporter) -> Result<MergeOutcome, merge::Error> {
        let _scope = reporter.enter_cancellation();
        let landing = Landing { dry_run: true, ..self.landing.clone() };
        // The outcome of a forecast contains its plan.
        let callbacks = LandingCallbacks { on_turn: &|_| Ok(()), on_plan: &|_| {} };
        Ok(self.outcome(land_lanes(project, landing, callbacks)?, true))
    }

    /// Lets the user edit the message of each named lane in an editor, before the lanes land.
    ///
    /// # Errors
    /// [`messages::MessageError`], for example if a message is empty, and errors of git.
    pub fn edit_messages(&mut self, project: &Project) -> Result<(), Error> {
        let Landing { options, lanes, .. } = &mut self.landing;
        self.edited = lanes.iter().map(|lane| lane.name.clone()).collect();
        messages::edit_messages(project, options, lanes)
            .inspect_err(|_| messages::settle_edited_messages(project, &self.edited, &[]))
    }

    /// Lands the lanes, ends idle sessions that the user agrees to end, and starts the retries of automatic
    /// merges that waited for this landing. Requests the approvals that the landing needs before.
    ///
    /// # Errors
    /// Fails when nothing could be tried, and if an approval is refused or missing. Refusals of single lanes
    /// are in the outcome.
    pub fn execute(self, project: &Project, reporter: &dyn Reporter) -> Result<MergeOutcome, Error> {
        self.execute_on_turn(project, reporter, &|_| Ok(()))
    }

    /// Forecasts the landing and binds the plan to that forecast.
    ///
    /// # Errors
    /// Fails as [`MergePlan::forecast`] does.
    pub fn pin(self, project: &Project) -> Result<PinnedMergePlan, Error> {
        Ok(self.try_pin(project)?)
    }

    fn try_pin(self, project: &Project) -> Result<PinnedMergePlan, merge::Error> {
        let before = RepoState::read(project, &self.landing)?;
        let forecast = self.try_forecast(project, &SilentReporter)?;
        let after = RepoState::read(project, &self.landing)?;
        let fingerprint =
            MergeFingerprint::new(&project.repo, &self.landing, &before, &after, &forecast.report);
        Ok(PinnedMergePlan { plan: self, forecast, tips: after.pinned_tips(), fingerprint })
    }

    /// Lands exactly what a plan of the same request with this fingerprint has shown. The landing is forecast
    /// when its turn has come, and also before a hook runs or a person is prompted. A lane whose tip or base
    /// moves later, for example during the checks, is refused.
    ///
    /// # Errors
    /// [`merge::Error::PlanOutdated`] if the plan has another fingerprint by then, and as
    /// [`MergePlan::execute`] does.
    pub fn execute_pinned(
        self,
        project: &Project,
        reporter: &dyn Reporter,
        fingerprint: &str,
    ) -> Result<MergeOutcome, Error> {
        let _scope = reporter.enter_cancellation();
        let mut limited = self.clone();
        if reporter.can_prompt_user() || project.has_pre_merge_hook() {
            let current = self.clone().try_pin(project)?;
            current.require_fingerprint(fingerprint)?;
            current.limit(&mut limited.landing, project)?;
        }
        let pin_again = |landing: &mut Landing| {
            // Other settings may be in force by then.
            let project = Project::open(project.repo.command_dir(), Listener::silent())?;
            let mut plan = self.clone();
            let (lanes, removed) = reload_lanes(&project, &plan.landing.lanes);
            if !removed.is_empty() {
                return Err(merge::Error::PlanOutdated);
            }
            plan.landing.lanes = lanes;
            let current = plan.try_pin(&project)?;
            current.require_fingerprint(fingerprint)?;
            Ok(current.limit(landing, &project)?)
        };
        limited.execute_on_turn(project, reporter, &pin_again)
    }

    /// Lands the lanes, as [`MergePlan::execute`] does, unless `on_turn` refuses that when the landing's turn
    /// has come.
    fn execute_on_turn(
        self,
        project: &Project,
        reporter: &dyn Reporter,
        on_turn: &dyn Fn(&mut Landing) -> Result<(), merge::Error>,
    ) -> Result<MergeOutcome, Error> {
        let edited = self.edited.clone();
        let outcome = self.land(project, reporter, on_turn);
        let lanes = outcome.as_ref().map_or(&[][..], |outcome| &outcome.report.lanes);
        let has_landed = |line: &&LaneOutcome| {
            matches!(line.result, Verdict::Landed | Verdict::Resolved | Verdict::AlreadyLanded)
        };
        let landed: Vec<&LaneName> = lanes.iter().filter(has_landed).map(|line| &line.lane).collect();
        messages::settle_edited_messages(project, &edited, &landed);
        outcome
    }

    fn land(
        mut self,
        project: &Project,
        reporter: &dyn Reporter,
        on_turn: &dyn Fn(&mut Landing) -> Result<(), merge::Error>,
    ) -> Result<MergeOutcome, Error> {
        let _scope = reporter.enter_cancellation();
        self.require_approvals(project, reporter)?;
        self.landing.endable_sessions = self.confirm_session_ends(project, reporter)?;
        let on_plan = &|plan: &LandingPlan| reporter.progress(Progress::Landing(plan));
        let report = land_lanes(project, self.landing.clone(), LandingCallbacks { on_turn, on_plan })?;
        let mut outcome = self.outcome(report, false);
        if !self.landing.options.is_automatic {
            let bases: BTreeSet<&str> = outcome.report.lanes.iter().map(|line| line.onto.as_str()).collect();
            let attempted: Vec<LaneName> =
                outcome.report.lanes.iter().map(|line| line.lane.clone()).collect();
            outcome.warnings = retry_waiting_merges(project, &bases, &attempted);
        }
        Ok(outcome)
    }

    /// Requests approval of the checks, the pre-merge hooks and the conflict agent, if there is a person.
    fn require_approvals(&self, project: &Project, reporter: &dyn Reporter) -> Result<(), Error> {
        let configured = self.conflict_agent.as_ref().filter(|agent| agent.is_configured);
        let configured = configured.map(|agent| agent.name.as_str());
        if reporter.can_prompt_user() {
            let bases =
                if self.landing.options.no_checks { BTreeSet::new() } else { self.landing.bases(project)? };
            approvals::request_landing_approval(project, reporter, bases, configured)?;
        }
        match configured {
            Some(agent) => Ok(resolve_agent::require_agent_approved(project, agent)?),
            None => Ok(()),
        }
    }

    /// Returns the lanes that are done and whose agents' idle sessions the user agrees to end.
    fn confirm_session_ends(
        &self,
        project: &Project,
        reporter: &dyn Reporter,
    ) -> Result<Vec<LaneName>, Error> {
        let Landing { options, stopped_lanes, lanes, .. } = &self.landing;
        let mut out = Vec::new();
        if stopped_lanes.is_some() || options.is_automatic || !reporter.can_prompt_user() {
            return Ok(out);
        }
        let lanes = if options.all { project.owned_lanes()? } else { lanes.clone() };
        for lane in lanes {
            let question = Question::EndSession { lane: &lane.name, detail: IDLE_DETAIL };
            if is_idle_with_work(project, &lane)? && reporter.confirm(question) {
                out.push(lane.name);
            }
        }
        Ok(out)
    }

    fn outcome(&self, report: LandingReport, dry_run: bool) -> MergeOutcome {
        MergeOutcome { report, dry_run, conflict_agent: self.conflict_agent.clone(), warnings: Vec::new() }
    }
}

/// Plan of a landing that is bound to its forecast: exactly that lands, or nothing.
#[derive(Debug)]
#[must_use]
pub struct PinnedMergePlan {
    plan: MergePlan,
    /// Forecast of the landing.
    pub forecast: MergeOutcome,
    tips: PinnedTips,
    fingerprint: MergeFingerprint,
}

impl PinnedMergePlan {
    /// Returns the fingerprint of the plan, which another plan of the same request has only as long as
    /// nothing has changed that the landing depends on.
    pub fn fingerprint(&self) -> &MergeFingerprint {
        &self.fingerprint
    }

    fn require_fingerprint(&self, expected: &str) -> Result<(), merge::Error> {
        if self.fingerprint.as_str() == expected { Ok(()) } else { Err(merge::Error::PlanOutdated) }
    }

    /// Lands the lanes of the forecast in their order.
    ///
    /// # Errors
    /// [`merge::Error::PlanOutdated`] if the fingerprint is another one when the landing's turn has come, and
    /// as [`MergePlan::execute`] does.
    pub fn execute(self, project: &Project, reporter: &dyn Reporter) -> Result<MergeOutcome, Error> {
        let mut plan = self.plan.clone();
        self.limit(&mut plan.landing, project)?;
        plan.execute_pinned(project, reporter, self.fingerprint.as_str())
    }

    /// Limits a landing to the lanes of the forecast in their order, and to the tips that the plan was made
    /// of. A lane that is done since then is not part of the plan.
    fn limit(&self, landing: &mut Landing, project: &Project) -> Result<(), lane::Error> {
        let lanes = self.forecast.report.lanes.iter().map(|line| project.lane(&line.lane));
        landing.lanes = lanes.collect::<Result<_, _>>()?;
        landing.given_names = landing.lanes.iter().map(|lane| lane.name.to_string()).collect();
        (landing.options.all, landing.options.order) = (false, StackOrder::Given);
        landing.pinned_tips = Some(self.tips.clone());
        Ok(())
    }
}
