//! The tool `merge`: the first call returns a plan with a token, and only that plan can land.

use std::ffi::OsString;
use std::hash::BuildHasher;

use clap::{Args, FromArgMatches};
use proq_lib::board::landing::LandingOutput;
use proq_lib::lane::recovery;
use proq_lib::ops::land::merge;
use proq_lib::ops::land::merge::{MergeOutcome, MergeRequest};
use rmcp::model::CallToolResult;
use rmcp::schemars;
use serde::Deserialize;
use serde_json::json;

use super::command_line::CommandLine;
use super::in_process::InProcessCall;
use super::server::Server;
use super::tool_call::{describe_error, error_result, text_result_with_notes};
use crate::cli::arguments::parse_error::describe_parse_error;
use crate::cli::invocation::failure::{Failure, FailureOutput};
use crate::cli::land::merge_args::Merge;
use crate::cli::terminal::ui::json_value;

/// What is to land.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Landing")]
pub(crate) struct MergeToolRequest {
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

/// Forecast of a landing, and what identifies it.
struct MergeToolPlan {
    forecast: MergeOutcome,
    fingerprint: String,
}

impl MergeToolRequest {
    /// Adds what the plan and the landing have in common to a command line of `git proq merge`.
    fn add_terms(&self, command: CommandLine) -> CommandLine {
        command
            .options("--strategy", &self.strategy)
            .options("--verify", &self.verify)
            .flag("--atomic", self.atomic)
    }

    /// Returns the arguments as `git proq merge` reads them.
    fn parse(&self) -> Result<Merge, String> {
        let mut grammar = Merge::augment_args(clap::Command::default().name("merge"));
        let command = self.add_terms(CommandLine::with_text("merge")).flag("--all", self.lanes.is_empty());
        let words = command.positional_args(&self.lanes).into_args();
        let matches = grammar.try_get_matches_from_mut(&words);
        matches.and_then(|matches| Merge::from_arg_matches(&matches)).map_err(|e| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            describe_error(&FailureOutput::new(&describe_parse_error(&e, &grammar, &words).into()))
        })
    }
}

impl Server {
    /// Lands the plan that the request's token belongs to; without a matching token, returns a new plan and
    /// lands nothing.
    pub(crate) async fn land_or_plan(&self, request: MergeToolRequest) -> CallToolResult {
        let args = match request.parse() {
            Ok(args) => args,
            Err(reason) => return error_result(&reason),
        };
        let (plan, _) = match self.run_in_process(move |call| make_plan(call, &args)).await {
            Ok(planned) => planned,
            Err(reason) => return error_result(&reason),
        };
        // The hash is keyed by the server's random state, so only the server that showed the plan can create it.
        let token = format!("{:016x}", self.token_hasher.hash_one(&plan.fingerprint));
        if plan.forecast.report.lanes.is_empty() || request.token.as_ref() != Some(&token) {
            return text_result_with_notes(&plan_text(&request, &plan.forecast, &token), "");
        }
        // Each lane is named: a lane that is done since then is not part of the plan.
        let lanes: Vec<String> =
            plan.forecast.report.lanes.iter().map(|line| line.lane.to_string()).collect();
        let command = request
            .add_terms(CommandLine::with_json("merge"))
            .options("--order", [&"given".to_owned()])
            .options("--plan-token", [&plan.fingerprint])
            .positional_args(&lanes);
        self.run_as_tool(&command.into_args(), Vec::new()).await
    }
}

/// Forecasts the landing.
fn make_plan(call: &InProcessCall, args: &Merge) -> Result<MergeToolPlan, Failure> {
    let project = call.unrecovered_project()?;
    recovery::recover(&project)?;
    // git cannot prompt for a password where a server runs.
    let request = MergeRequest { may_push_prompt: false, ..args.request(&call.dir) };
    let pinned = merge::plan(&project, &request)?.pin(&project)?;
    let fingerprint = pinned.fingerprint().as_str().to_owned();
    Ok(MergeToolPlan { forecast: pinned.forecast, fingerprint })
}

fn plan_text(request: &MergeToolRequest, forecast: &MergeOutcome, token: &str) -> String {
    let is_empty = forecast.report.lanes.is_empty();
    let next = match (&request.token, is_empty) {
        (_, true) => "nothing to land; nothing was changed",
        (None, _) => {
            "nothing has landed yet; to land exactly this, call merge again with the same arguments and this token"
        }
        (Some(_), _) => {
            "nothing has landed: lanes, bases, settings or arguments have changed since the plan of that token; read the \
             new plan, then call merge again with its token"
        }
    };
    let answer = json!({ "plan": json_value(LandingOutput::new(forecast)), "token": (!is_empty).then_some(token), "next": next });
    serde_json::to_string_pretty(&answer).unwrap_or_default()
}
