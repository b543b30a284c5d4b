//! Missing dependencies of a plan: prompting an agent to find them, listing them, and approving them.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::terminal_text;
use proq_lib::lane::Project;
use proq_lib::swarm::planner::agent_query::AgentQuery;
use proq_lib::swarm::planner::draft_error::DraftError;
use proq_lib::swarm::planner::draft_session::AnswerOutcome;
use proq_lib::swarm::planner::missing_needs::MissingNeedsSearch;
use proq_lib::swarm::planner::proposed_needs;
use proq_plan::plan_source;
use proq_plan::plan_source::LoadedPlan;
use proq_store::records::draft::ProposalsRecord;
use proq_store::records::lane::{AnyLane, LanePurpose};
use proq_store::records::lane_state::LaneState;

use crate::cli::arguments::candidates::installed_agent_names;
use crate::cli::arguments::plan_source::PlanSource;
use crate::cli::invocation::caller;
use crate::cli::invocation::confirm::{cannot_prompt_user, require_confirmation};
use crate::cli::invocation::context::CommandContext;
use crate::cli::invocation::failure::Failure;
use crate::cli::runs::answer_loop::{AnswerHandler, follow_until_answered};
use crate::cli::terminal::usage;

/// What is asked of an agent.
#[derive(Debug, Args)]
#[command(next_help_heading = "Dependencies that are missing")]
pub(crate) struct DependencyQueryArgs {
    /// Have AGENT look for those that are missing; it looks at the repository and changes nothing
    #[arg(long, value_name = "AGENT", add = ArgValueCompleter::new(installed_agent_names))]
    pub(crate) agent: Option<String>,
    /// The model that it is asked to use
    #[arg(long, value_name = "MODEL", requires = "agent")]
    model: Option<String>,
    /// Ask it also where it was asked before
    #[arg(long, requires = "agent")]
    refresh: bool,
    /// Use what it finds, without a question
    #[arg(long, short, requires = "agent")]
    pub(crate) yes: bool,
    /// Forget what was found missing before
    #[arg(long, conflicts_with = "agent")]
    pub(crate) forget: bool,
}

/// Prompts an agent for missing dependencies of a plan, unless its earlier answer is saved. Returns the plan
/// with the proposed dependencies, and whether the user has approved them.
pub(crate) fn find_missing_needs(
    context: &CommandContext,
    project: &Project,
    (source, options): (&PlanSource, &DependencyQueryArgs),
    agent: &str,
) -> Result<(LoadedPlan, bool), Failure> {
    if options.yes {
        caller::refuse_in_lane(context, project)?;
    }
    let read = || source.read_without_proposals(context, project, "git proq deps --agent claude plan.toml");
    let loaded_plan = read()?;
    let model = options.model.as_deref();
    let query = AgentQuery { project, agent, model, purpose: LanePurpose::Answer, revision: None };
    let missing = MissingNeedsSearch::new(query, &loaded_plan.plan)?;
    let saved = missing.load_record()?.filter(|_| !options.refresh);
    let unread = saved.as_ref().map(|record| missing.lane_with_pending_answer(record)).transpose()?.flatten();
    let record = match saved {
        Some(record) if record.is_answer_read && unread.is_none() => {
            let (when, by) = (record.changed_at, terminal_text::escape_line(&record.agent));
            context.ui.status(format!("{by} was asked before, at {when}; --refresh asks anew"));
            record
        }
        _ => {
            let lane = match unread {
                Some(lane) => lane,
                None => missing.start()?,
            };
            context.ui.status(format!("{agent} looks for what is missing: lane '{}'", lane.name));
            query_agent(context, project, &missing, agent, (lane, loaded_plan))?
        }
    };
    Ok((
        proposed_needs::with_proposals(source.read_silently(context, project)?, &record).0,
        record.is_approved,
    ))
}

/// Handler of the agent's answers: checks each proposed dependency against the plan.
struct DependencyAnswerHandler<'m, 'a> {
    search: &'m MissingNeedsSearch<'a>,
    agent: &'m str,
    loaded_plan: LoadedPlan,
    /// Dependencies in the last answer that were rejected, each as a line with the reason.
    rejected_needs: Vec<String>,
}

impl AnswerHandler for DependencyAnswerHandler<'_, '_> {
    fn agent_name(&self) -> &str {
        self.agent
    }

    fn expected_answer(&self) -> &'static str {
        "a list of dependencies"
    }

    fn process_answer(&mut self, lane: &AnyLane, state: LaneState) -> Result<AnswerOutcome, Failure> {
        let (outcome, rejected) = self.search.record_answer(lane, state, self.loaded_plan.clone())?;
        self.rejected_needs = rejected;
        Ok(outcome)
    }

    fn retry(&mut self, lane: &AnyLane, outcome: &AnswerOutcome) -> Result<Option<AnyLane>, Failure> {
        match outcome {
            AnswerOutcome::Invalid { reason, answer } => {
                Ok(Some(self.search.reject_answer(lane, answer, reason)?))
            }
            _ => Ok(None),
        }
    }
}

/// Follows the agent's run until it answers with dependencies, and returns the saved proposals.
fn query_agent(
    context: &CommandContext,
    project: &Project,
    missing: &MissingNeedsSearch<'_>,
    agent: &str,
    (lane, loaded_plan): (AnyLane, LoadedPlan),
) -> Result<ProposalsRecord, Failure> {
    let mut handler =
        DependencyAnswerHandler { search: missing, agent, loaded_plan, rejected_needs: Vec::new() };
    let (lane, outcome) = follow_until_answered(context, project, lane, &mut handler)?;
    if let AnswerOutcome::Invalid { reason, .. } | AnswerOutcome::NoAnswer { reason } = outcome {
        let file = project.store.layout().run_answer(&lane.name, lane.last_run);
        return Err(DraftError::InvalidAnswer {
            agent: agent.to_owned(),
            expected: "a list of dependencies",
            reason: terminal_text::escape_line(&reason),
            answer_file: Some(file).filter(|file| file.exists()),
            lane: lane.name,
            is_draft: false,
        }
        .into());
    }
    for reason in &handler.rejected_needs {
        context.ui.warn(format!("not taken: {}", terminal_text::escape_line(reason)));
    }
    if let Err(e) = missing.remove_lane(&lane) {
        // A leftover lane does no harm.
        context.ui.warn(terminal_text::escape_line(&e.to_string()));
    }
    let record = missing.load_record()?;
    Ok(record.ok_or(DraftError::NoDrafts)?)
}

/// Returns one line for each missing dependency that was found.
pub(crate) fn describe_proposals(loaded_plan: &LoadedPlan) -> Vec<String> {
    let names: Vec<String> = loaded_plan.plan.tasks().map(|spot| spot.task.full_name()).collect();
    let line = |edge: &plan_source::ProposedEdge| {
        let reason = if edge.reason.is_empty() { String::new() } else { format!(": {}", edge.reason) };
        terminal_text::escape_line(&format!("{} after {}{reason}", names[edge.task], names[edge.needed]))
    };
    loaded_plan.approved_needs.iter().map(line).collect()
}

/// Prompts the user to approve the missing dependencies that an agent proposed, and saves the approval. From
/// then on, plans use them.
pub(crate) fn approve_proposals(
    context: &CommandContext,
    project: &Project,
    (source, options): (&PlanSource, &DependencyQueryArgs),
    agent: &str,
) -> Result<(), Failure> {
    let loaded_plan = source.read_silently(context, project)?;
    let query = AgentQuery { project, agent, model: None, purpose: LanePurpose::Answer, revision: None };
    let missing = MissingNeedsSearch::new(query, &loaded_plan.plan)?;
    let record = missing.load_record()?.ok_or(DraftError::NoDrafts)?;
    let count = match record.needs.len() {
        1 => "1 dependency".to_owned(),
        n => format!("{n} dependencies"),
    };
    if !options.yes {
        if cannot_prompt_user(context) {
            let what = format!("{count} of {agent}'s may be used");
            let command = format!("git proq deps --agent {agent} --yes {}", source.source_names().join(" "));
            return Err(DraftError::ApprovalRequired { question: what, approve_command: command }.into());
        }
        require_confirmation(&format!("use {count} of {agent}'s from now on? [y/N] "))?;
    }
    let record = missing.approve(record)?;
    if !context.ui.json {
        let cost =
            record.costs.cost.map(usage::cost_text).map(|cost| format!(" ({cost})")).unwrap_or_default();
        context.ui.status(format!(
            "{count} of {}'s used for these tasks as they are{cost}",
            terminal_text::escape_line(&record.agent)
        ));
    }
    Ok(())
}
