//! Pull or merge request of a lane: its branch is pushed, and a request is opened or updated on the forge.

use proq_base::explain::shell_quote;
use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_git::worktrees::push::RemoteBranch;
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::pull_request::{ForgeProgram, PullRequest, PullRequestState};
use serde::Serialize;

use super::description::Description;
use super::forge::{Forge, READ_LIMIT};
use super::forge_output::ReportedRequest;
use super::forge_repository::{ForgeRepository, choose_program};
use super::forge_requests::{NewRequest, RequestChange};
use super::open_request_error::OpenRequestError;
use super::refresh::{forge_of_request, store_status};
use crate::event::log::EventName;
use crate::lane;
use crate::lane::Project;
use crate::lane::inspection::pull_request_status::pull_request_status;
use crate::merge::land::landing::leave_preview_with_commits;
use crate::merge::queue::stop::stop_agents;
use crate::merge::selection::eligibility::classify_lanes;
use crate::merge::types::options::{Landing, LandingOptions};
use crate::operation::run_operation::operate;
use crate::ops::error::Error;
use crate::ops::reporter::Reporter;
use crate::project::repository_file;

/// Lane for which a request is opened or updated.
#[derive(Debug, Clone, Default)]
pub struct OpenRequest {
    /// Name or branch of the lane.
    pub lane: String,
    /// Branch that the request is to be merged into; none for the lane's base.
    pub onto: Option<String>,
    /// Title, and below it the body; none for those made from the lane. An existing request gets them only if
    /// they are given.
    pub message: Option<String>,
    /// Whether the request is a draft.
    pub draft: bool,
    /// Labels to add.
    pub labels: Vec<String>,
    /// Whether a lane that failed or was stopped has a request too, and another request is opened after one
    /// that was closed.
    pub force: bool,
    /// Whether a lane may delete more than half of all files.
    pub allow_deletions: bool,
    /// Whether the lane's agent is stopped first.
    pub stop: bool,
    /// Whether git may prompt at the terminal when it pushes.
    pub may_prompt: bool,
}

/// What was done, or would be done, on the forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestAction {
    /// A request was opened.
    Opened,
    /// The request that existed has the lane's commits now.
    Updated,
}

/// Request that was opened or updated, or would be.
#[derive(Debug, Serialize)]
pub struct OpenRequestOutcome {
    /// Name of the lane.
    pub lane: LaneName,
    /// What was done.
    pub action: RequestAction,
    /// Program that speaks to the forge.
    pub program: ForgeProgram,
    /// Remote that the lane's branch was pushed to.
    pub remote: String,
    /// Branch of the remote.
    pub branch: String,
    /// Branch that the request is to be merged into.
    pub onto: String,
    /// Commit that was pushed.
    pub head: CommitId,
    /// Whether the branch of the remote had to move to a commit that does not follow the last one.
    pub forced: bool,
    /// Title; none where that of the existing request stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Body; none where that of the existing request stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Whether the request is a draft by this command.
    pub draft: bool,
    /// Labels that were added.
    pub labels: Vec<String>,
    /// Number of the request; none before it is opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Address of the request; none before it is opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether nothing was changed.
    pub dry_run: bool,
}

/// Request that may be opened or updated: the lane and the remote exist, and the program is installed.
#[derive(Debug)]
#[must_use]
pub struct OpenRequestPlan {
    request: OpenRequest,
    lane: LaneRecord,
    forge: Forge,
    /// Where the lane's branch is pushed to.
    target: RemoteBranch,
    /// Branch of the forge that the request is to be merged into.
    forge_base: String,
    /// Repository of the pushed branch, if it is another one than that of the request.
    fork: Option<ForgeRepository>,
    /// Owner of the repository of the pushed branch.
    owner: Option<String>,
}

/// Finds where the branch of a lane is pushed to, and the program that opens the request.
///
/// # Errors
/// Fails if the lane does not exist, no remote or more than one can be meant, its forge is unknown, or the
/// program is not installed.
pub fn plan(project: &Project, request: &OpenRequest) -> Result<OpenRequestPlan, Error> {
    let lane = project.find_lane(&request.lane)?;
    let action = action_text("open a pull request", &lane.name);
    let base = request.onto.clone().unwrap_or_else(|| lane.base.clone());
    let recorded = lane.pull_request.as_ref();
    // The request keeps its branch there, also of a lane that was renamed.
    let RemoteBranch { remote, branch } = if let Some(recorded) = recorded {
        RemoteBranch { remote: recorded.remote.clone(), branch: recorded.branch.clone() }
    } else {
        let branch = lane.kind.branch.clone();
        let remote = project.repo.lane_remote(&branch, &base);
        let remote = remote.map_err(|remotes| OpenRequestError::no_single_remote(&action, remotes))?;
        RemoteBranch { remote, branch }
    };
    if project.repo.is_mirror(&remote) {
        return Err(OpenRequestError::Mirror { action, remote }.into());
    }
    let upstream = project.repo.upstream_branch(&base);
    let upstream_remote = upstream.as_ref().map_or(&remote, |upstream| &upstream.remote);
    let pushed_to = ForgeRepository::of_remote(project, &remote);
    let repository = ForgeRepository::of_remote(project, upstream_remote).or_else(|| pushed_to.clone());
    let program = choose_program(project, repository.as_ref())
        .ok_or_else(|| OpenRequestError::UnknownHost { action: action.clone(), remote: remote.clone() })?;
    let fork = pushed_to.clone().filter(|fork| repository.as_ref().is_some_and(|target| target != fork));
    let repository = repository.map(|repository| repository.argument(program));
    Ok(OpenRequestPlan {
        forge: Forge::find(project, program, repository, &action)?,
        forge_base: upstream.map_or(base, |upstream| upstream.branch),
        target: RemoteBranch { remote, branch },
        owner: pushed_to.map(|repository| repository.owner().to_owned()),
        fork,
        request: request.clone(),
        lane,
    })
}

impl OpenRequestPlan {
    /// Returns what [`OpenRequestPlan::execute`] would do, as far as that is known without the network.
    ///
    /// # Errors
    /// Those of [`OpenRequestPlan::execute`] that are about the lane.
    pub fn forecast(&self, project: &Project) -> Result<OpenRequestOutcome, Error> {
        let tip = self.require_mergeable(project, true)?;
        let recorded = self.lane.pull_request.as_ref();
        let lease = self.required_lease(project, recorded, tip)?;
        let is_open = pull_request_status(project, &self.lane)
            .is_none_or(|status| status.state == PullRequestState::Open);
        let open = recorded.filter(|_| is_open);
        Ok(OpenRequestOutcome {
            number: open.map(|open| open.number),
            url: open.map(|open| open.url.clone()),
            dry_run: true,
            ..self.outcome(project, open.is_some(), tip, lease)
        })
    }

    /// Pushes the lane's branch, opens a request or updates the open one, and records it. Uncommitted work is
    /// treated as in a landing, and a preview with commits is left. No lock is held while a program of the
    /// forge or git's push runs.
    ///
    /// # Errors
    /// [`OpenRequestError`], and the failure of the program. What was pushed until then stays pushed.
    pub fn execute(self, project: &Project, reporter: &dyn Reporter) -> Result<OpenRequestOutcome, Error> {
        let _scope = reporter.enter_cancellation();
        let recorded = self.read_recorded(project)?;
        let tip = self.require_mergeable(project, false)?;
        let merged = recorded.filter_merged(tip);
        if let Some(request) = merged {
            return Err(self.already_merged(request).into());
        }
        let pushed_before = self.lane.pull_request.as_ref();
        let lease = self.required_lease(project, pushed_before, tip)?;
        let open = match recorded.open {
            Some(open) => Some(open),
            None => self.forge.find_open_request(&self.target.branch, self.owner.as_deref())?,
        };
        self.push(project, tip, lease)?;
        let outcome = self.outcome(project, open.is_some(), tip, lease);
        let (number, url) = match &open {
            Some(open) => {
                self.update(&outcome, open.status.number)?;
                (open.status.number, open.url.clone())
            }
            None => self.open(&outcome)?,
        };
        self.record(project, number, &url, tip)?;
        if let Ok(reported) = self.forge.read_request(number, READ_LIMIT) {
            store_status(project, &self.lane.name, &reported.status);
        }
        Ok(OpenRequestOutcome { number: Some(number), url: Some(url), ..outcome })
    }
}

/// Recorded request as its forge reports it now.
#[derive(Default)]
struct RecordedRequest {
    open: Option<ReportedRequest>,
    merged: Option<ReportedRequest>,
}

impl RecordedRequest {
    /// Returns the request if it was merged with `tip` as its head.
    fn filter_merged(&self, tip: CommitId) -> Option<&ReportedRequest> {
        self.merged.as_ref().filter(|merged| merged.status.is_merged_at(tip))
    }
}

impl OpenRequestPlan {
    /// Reads the recorded request on its forge.
    ///
    /// # Errors
    /// [`OpenRequestError::Closed`], unless another request may be opened.
    fn read_recorded(&self, project: &Project) -> Result<RecordedRequest, Error> {
        let Some(recorded) = &self.lane.pull_request else { return Ok(RecordedRequest::default()) };
        let reported = forge_of_request(project, recorded)?.read_request(recorded.number, READ_LIMIT)?;
        store_status(project, &self.lane.name, &reported.status);
        Ok(match reported.status.state {
            PullRequestState::Open => RecordedRequest { open: Some(reported), merged: None },
            PullRequestState::Merged => RecordedRequest { open: None, merged: Some(reported) },
            PullRequestState::Closed if self.request.force => RecordedRequest::default(),
            PullRequestState::Closed => {
                let kind = if recorded.program == ForgeProgram::Gh { "pr" } else { "mr" };
                let repository =
                    recorded.repository.iter().map(|name| format!(" --repo {}", shell_quote(name)));
                let reopen = format!("{} {kind} reopen {}", recorded.program, recorded.number);
                return Err(OpenRequestError::Closed {
                    lane: self.lane.name.clone(),
                    request: format!("{} {}", recorded.program.request_noun(), recorded.number_text()),
                    reopen: repository.fold(reopen, |command, option| command + &option),
                }
                .into());
            }
        })
    }

    /// Returns the tip of the lane, if it may be merged, by the rules of a landing on its base. Except in a
    /// dry run, commits uncommitted work if `merge.uncommitted` requires it.
    fn require_mergeable(&self, project: &Project, dry_run: bool) -> Result<CommitId, Error> {
        let OpenRequest { onto, force, allow_deletions, stop, .. } = self.request.clone();
        let options = LandingOptions { onto, force, allow_deletions, ..LandingOptions::default() };
        let mut landing = Landing {
            options,
            dry_run,
            given_names: vec![self.lane.name.to_string()],
            stopped_lanes: stop.then(Vec::new),
            lanes: vec![self.lane.clone()],
            ..Landing::default()
        };
        let stopped = stop_agents(project, &landing)?;
        landing.stopped_lanes = landing.stopped_lanes.map(|_| stopped.lanes);
        let classified = operate(project, "merge", |op| {
            if !dry_run {
                leave_preview_with_commits(op, &landing)?;
            }
            classify_lanes(op, &landing)
        })?;
        if let Some(candidate) = classified.eligible.into_iter().next() {
            self.require_valid_settings(project, candidate.tip)?;
            return Ok(candidate.tip);
        }
        let refused = stopped.refused.into_iter().chain(classified.refused).next();
        let (message, hints) = refused.map(|outcome| (outcome.message, outcome.hints)).unwrap_or_default();
        let reason = message.unwrap_or_else(|| format!("all of it is on {} already", self.lane.base));
        // The reasons and hints of a landing name its command.
        let with_option = |text: String| text.replace("proq merge ", "proq merge --pr ");
        Err(OpenRequestError::LaneRefused {
            action: self.action(),
            reason: with_option(reason),
            hints: hints.into_iter().map(|hint| hint.map_text(with_option)).collect(),
        }
        .into())
    }

    /// Refuses a lane whose `proq.toml` is new and not valid, as its landing does.
    fn require_valid_settings(&self, project: &Project, tip: CommitId) -> Result<(), Error> {
        let repo = &project.repo;
        let base = self.request.onto.as_ref().unwrap_or(&self.lane.base);
        let base_tip = repo.branch_tip(base)?.unwrap_or(self.lane.start);
        let tree = repo.tree_of(tip)?;
        // What the base has, or had where the lane comes from, is not the lane's.
        let fork_point = repo.merge_base(base_tip, tip)?.unwrap_or(self.lane.start);
        for before in [base_tip, fork_point] {
            if repository_file::new_settings_error(repo, repo.tree_of(before)?, tree, None)?.is_none() {
                return Ok(());
            }
        }
        let error = repository_file::new_settings_error(repo, repo.tree_of(base_tip)?, tree, None)?;
        let (reason, hint) =
            repository_file::invalid_settings_refusal(&self.lane.kind.branch, &error.unwrap_or_default());
        Err(OpenRequestError::LaneRefused { action: self.action(), reason, hints: vec![hint] }.into())
    }

    /// Returns the commit that the branch of the remote must be at, if `tip` does not follow it; none if
    /// nothing has to be forced.
    ///
    /// # Errors
    /// [`OpenRequestError::Rewritten`] if git-proq did not rewrite the lane's branch.
    fn required_lease(
        &self,
        project: &Project,
        pushed: Option<&PullRequest>,
        tip: CommitId,
    ) -> Result<Option<CommitId>, Error> {
        let Some(pushed) = pushed.map(|recorded| recorded.pushed) else { return Ok(None) };
        if project.repo.is_ancestor(pushed, tip)? {
            return Ok(None);
        }
        if project.repo.is_rewritten_by_proq(&self.lane.kind.branch, pushed)? {
            return Ok(Some(pushed));
        }
        Err(OpenRequestError::Rewritten {
            action: self.action(),
            branch: self.target.branch.clone(),
            remote: self.target.remote.clone(),
            pushed: pushed.to_string(),
            tip: tip.to_string(),
        }
        .into())
    }

    /// Pushes the lane's tip.
    fn push(&self, project: &Project, tip: CommitId, lease: Option<CommitId>) -> Result<(), Error> {
        let RemoteBranch { remote, branch } = &self.target;
        let command = format!("git proq merge --pr {}", self.lane.name);
        project.listener.progress(format!("pushing {branch} to {remote}"));
        let result = project.repo.push_commit(tip, &self.target, lease, self.request.may_prompt, &command);
        project.listener.progress("");
        result.map_err(|failure| OpenRequestError::NotPushed { action: self.action(), failure }.into())
    }

    /// Opens the request.
    fn open(&self, outcome: &OpenRequestOutcome) -> Result<(u64, String), Error> {
        let new = NewRequest {
            branch: &self.target.branch,
            fork: self.fork.as_ref().map(|fork| (fork.owner(), fork.path.as_str())),
            base: &self.forge_base,
            title: outcome.title.as_deref().unwrap_or_default(),
            body: outcome.body.as_deref().unwrap_or_default(),
            draft: self.request.draft,
            labels: &self.request.labels,
        };
        Ok(self.forge.open_request(&self.action(), &new)?)
    }

    /// Updates the text, the labels and the draft state of an open request, as far as the caller gave them.
    fn update(&self, outcome: &OpenRequestOutcome, number: u64) -> Result<(), Error> {
        let action =
            action_text(&format!("update {} {number}", self.forge.program.request_noun()), &self.lane.name);
        let text = outcome.title.as_deref().zip(outcome.body.as_deref());
        let change = RequestChange { text, draft: self.request.draft, labels: &self.request.labels };
        Ok(self.forge.change_request(&action, number, &change)?)
    }

    /// Records the request and what was pushed, in one operation.
    fn record(&self, project: &Project, number: u64, url: &str, tip: CommitId) -> Result<(), Error> {
        let request = PullRequest {
            number,
            url: url.to_owned(),
            program: self.forge.program,
            repository: self.forge.repository.clone(),
            remote: self.target.remote.clone(),
            branch: self.target.branch.clone(),
            pushed: tip,
        };
        let message = format!(
            "{} {} of lane '{}': {url}",
            request.program.request_noun(),
            request.number_text(),
            self.lane.name
        );
        Ok(operate(project, "merge", |op| {
            let lane =
                op.update_lane(&self.lane.name, |record: &mut AnyLane| record.pull_request = Some(request))?;
            op.emit(EventName::LaneEdited, Some(&lane), message);
            Ok::<_, lane::Error>(())
        })?)
    }

    /// Returns the outcome for a lane with this tip, without the number of the request.
    fn outcome(
        &self,
        project: &Project,
        exists: bool,
        head: CommitId,
        lease: Option<CommitId>,
    ) -> OpenRequestOutcome {
        let message = self.request.message.as_deref();
        let text = (!exists || message.is_some()).then(|| Description::of_lane(project, &self.lane, message));
        let (title, body) = text.map(|text| (text.title, text.body)).unzip();
        OpenRequestOutcome {
            lane: self.lane.name.clone(),
            action: if exists { RequestAction::Updated } else { RequestAction::Opened },
            program: self.forge.program,
            remote: self.target.remote.clone(),
            branch: self.target.branch.clone(),
            onto: self.forge_base.clone(),
            head,
            forced: lease.is_some(),
            title,
            body,
            draft: self.request.draft,
            labels: self.request.labels.clone(),
            number: None,
            url: None,
            dry_run: false,
        }
    }

    fn action(&self) -> String {
        action_text(&format!("open a {}", self.forge.program.request_noun()), &self.lane.name)
    }

    fn already_merged(&self, request: &ReportedRequest) -> OpenRequestError {
        let program = self.forge.program;
        let number = format!("{}{}", program.number_sign(), request.status.number);
        OpenRequestError::AlreadyMerged {
            lane: self.lane.name.clone(),
            request: format!("{} {number}", program.request_noun()),
        }
    }
}

/// Returns what is to be done for a lane, for errors.
fn action_text(verb: &str, lane: &LaneName) -> String {
    format!("{verb} for '{lane}'")
}
