//! The tool `merge`: the first call returns a plan with a token, and only that plan can land.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use proq_base::config::choices::UncommittedPolicy;
use proq_base::diagnostics::Listener;
use proq_base::lane_name::LaneName;
use proq_git::status::status_query;
use proq_lib::lane;
use proq_lib::lane::Project;
use rmcp::model::CallToolResult;
use rmcp::schemars;
use serde::Deserialize;
use serde_json::{Value, json};

use super::command_line::CommandLine;
use super::server::Server;
use super::tool_call::{error_result, failure_text, text_result, tool_result};

/// What is to land.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Landing")]
pub(crate) struct MergeRequest {
    /// The lanes; all that are done when left out.
    #[serde(default)]
    lanes: Vec<String>,
    /// How: merge, rebase or squash; what is set for the repository when left out.
    #[serde(default)]
    strategy: Option<String>,
    /// Shell commands to check what will land with, besides those that are set.
    #[serde(default)]
    verify: Vec<String>,
    /// All of them or none.
    #[serde(default)]
    atomic: bool,
    /// The token of the plan; left out in the first call.
    #[serde(default)]
    token: Option<String>,
}

/// Result of a dry run of `git proq merge`.
struct DryRunPlan {
    /// JSON output of the dry run.
    report: Value,
    /// Names of the lanes that would be tried, in order.
    lanes: Vec<String>,
    /// Text that changes with everything that the plan depends on: lanes and bases with their tips, settings,
    /// checks, remotes and forecast results.
    state_fingerprint: String,
}

impl MergeRequest {
    /// Returns the command line that the dry run and the landing have in common.
    fn merge_command(&self) -> CommandLine {
        CommandLine::with_json("merge")
            .options("--strategy", &self.strategy)
            .options("--verify", &self.verify)
            .flag("--atomic", self.atomic)
    }
}

impl Server {
    /// Lands the plan that the request's token belongs to; without a matching token, returns a new plan and
    /// lands nothing.
    pub(crate) async fn land_or_plan(&self, request: MergeRequest) -> CallToolResult {
        let plan = match self.make_dry_run_plan(&request).await {
            Ok(plan) => plan,
            Err(reason) => return error_result(&reason),
        };
        let token = plan_token(&self.token_hasher, &request, &plan);
        if plan.lanes.is_empty() || request.token.as_ref() != Some(&token) {
            return text_result(&plan_text(&request, &plan, &token));
        }
        // Each lane is named: a lane that is done since then is not part of the plan.
        let command =
            request.merge_command().options("--order", [&"given".to_owned()]).positional_args(&plan.lanes);
        match self.run_program(&command.into_args(), Vec::new()).await {
            Ok(output) => tool_result(&output),
            Err(reason) => error_result(&reason),
        }
    }

    /// Makes a dry run, and reads the state that it depends on before and after. A state that changes between
    /// the two reads matches no later plan.
    async fn make_dry_run_plan(&self, request: &MergeRequest) -> Result<DryRunPlan, String> {
        let before = RepoState::read(&self.dir)?;
        let command = request.merge_command().flag("--dry-run", true).flag("--all", request.lanes.is_empty());
        let report = self.run_and_parse_json(command.positional_args(&request.lanes)).await?;
        let after = RepoState::read(&self.dir)?;
        let rows = || report["lanes"].as_array().into_iter().flatten();
        let text_of = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let lanes: Vec<String> = rows().map(|row| text_of(row, "lane")).collect();
        // If both states are equal, the plan belongs to that state. If they differ, no later plan has the
        // same basis.
        let mut basis = format!("{:?}\n", (&before.settings, &after.settings));
        for row in rows() {
            let lane = text_of(row, "lane");
            let lane_states = (before.lanes.get(lane.as_str()), after.lanes.get(lane.as_str()));
            basis.push_str(&format!(
                "{lane:?} {lane_states:?} {:?} {:?} {:?} {:?}\n",
                text_of(row, "onto"),
                text_of(row, "result"),
                text_of(row, "method"),
                row["message"].as_str(),
            ));
        }
        // Whether a check ran or its result was cached does not belong to the basis.
        for pointer in ["/checks/commands", "/checks/tasks", "/checks/unapproved", "/pushed", "/stopped"] {
            basis.push_str(&format!("{:?}\n", report.pointer(pointer)));
        }
        Ok(DryRunPlan { report, lanes, state_fingerprint: basis })
    }

    /// Runs a command and parses its JSON output; fails with the error text if the command failed.
    async fn run_and_parse_json(&self, command: CommandLine) -> Result<Value, String> {
        let output = self.run_program(&command.into_args(), Vec::new()).await?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        match failure_text(&stdout, &stderr, output.code) {
            Some(reason) => Err(reason),
            None => serde_json::from_str(&stdout).map_err(|e| format!("the answer was no JSON: {e}")),
        }
    }
}

/// State of the repository that a landing depends on and that a dry run does not show.
struct RepoState {
    /// For each lane its tip, its base's name and tip, and its uncommitted files.
    lanes: BTreeMap<LaneName, String>,
    /// Settings of git-proq, and the URLs that git pushes to.
    settings: String,
}

impl RepoState {
    fn read(dir: &Path) -> Result<RepoState, String> {
        let read_state = || -> Result<RepoState, lane::Error> {
            let project = Project::open(dir, Listener::silent())?;
            let repo = &project.repo;
            let mut lanes = BTreeMap::new();
            for lane in project.owned_lanes()? {
                let (tip, base) = (repo.branch_tip(&lane.kind.branch)?, repo.branch_tip(&lane.base)?);
                // A lane whose worktree cannot be read counts as unchanged as long as it stays unreadable.
                let uncommitted = uncommitted_state(&project, &lane.path).unwrap_or_else(|e| e.to_string());
                lanes.insert(lane.name, format!("{tip:?} {} {base:?} {uncommitted}", lane.base));
            }
            let settings = format!("{:?} {:?}", project.layers, repo.remote_push_settings());
            Ok(RepoState { lanes, settings })
        };
        read_state().map_err(|e| format!("error: {e}"))
    }
}

/// Returns the uncommitted files of a worktree with their stat data. With `merge.uncommitted = commit` a
/// landing may commit them; otherwise the result is empty.
fn uncommitted_state(project: &Project, dir: &Path) -> Result<String, lane::Error> {
    let mut out = String::new();
    if project.settings.uncommitted != UncommittedPolicy::Commit || !dir.is_dir() {
        return Ok(out);
    }
    for path in status_query::status(&project.repo, dir, true)?.paths() {
        let metadata = path.to_fs_path(dir).symlink_metadata().ok();
        let file_stamp = metadata.map(|metadata| {
            (metadata.ino(), metadata.size(), metadata.mode(), metadata.ctime(), metadata.ctime_nsec())
        });
        out.push_str(&format!("{path} {file_stamp:?};"));
    }
    Ok(out)
}

/// Returns the token of a plan. Its hash is keyed by the server's random state, so only the server that
/// showed the plan can create it.
fn plan_token(hasher: &RandomState, request: &MergeRequest, plan: &DryRunPlan) -> String {
    let inputs = (&request.strategy, &request.verify, request.atomic, &plan.lanes, &plan.state_fingerprint);
    format!("{:016x}", hasher.hash_one(inputs))
}

fn plan_text(request: &MergeRequest, plan: &DryRunPlan, token: &str) -> String {
    let next = match (&request.token, plan.lanes.is_empty()) {
        (_, true) => "there is nothing to land; nothing was changed",
        (None, _) => {
            "nothing has landed yet; to land exactly this, call merge again with the same arguments and this token"
        }
        (Some(_), _) => {
            "nothing has landed: this is another plan than the one of that token, since lanes, bases, settings or arguments \
             have changed; look at it, then call merge again with this token"
        }
    };
    let token = (!plan.lanes.is_empty()).then_some(token);
    let answer = json!({ "plan": plan.report, "token": token, "next": next });
    serde_json::to_string_pretty(&answer).unwrap_or_default()
}
