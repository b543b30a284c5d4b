//! Requests on a forge: read, opened, found and changed.

use std::time::Duration;

use proq_store::records::pull_request::ForgeProgram;
use serde::de::DeserializeOwned;

use super::forge::{CHANGE_LIMIT, Forge, ForgeCall, READ_LIMIT};
use super::forge_error::ForgeError;
use super::forge_output::{GH_FIELDS, GhRequest, GlabRequest, ReportedIssue, ReportedRequest};

/// Request to open.
pub(super) struct NewRequest<'a> {
    /// Branch of the lane on the forge.
    pub branch: &'a str,
    /// Owner and path of the repository of that branch, if it is another one than that of the request.
    pub fork: Option<(&'a str, &'a str)>,
    /// Branch that the request is to be merged into.
    pub base: &'a str,
    pub title: &'a str,
    pub body: &'a str,
    pub draft: bool,
    pub labels: &'a [String],
}

/// Changes of an open request; none of those that are absent.
pub(super) struct RequestChange<'a> {
    /// New title and body.
    pub text: Option<(&'a str, &'a str)>,
    /// Whether the request becomes a draft.
    pub draft: bool,
    /// Labels to add.
    pub labels: &'a [String],
}

impl Forge {
    /// Reads a request by its number.
    pub(super) fn read_request(&self, number: u64, limit: Duration) -> Result<ReportedRequest, ForgeError> {
        let action = format!("read {} {number}", self.program.request_noun());
        let args = match self.program {
            ForgeProgram::Gh => words(&["pr", "view", &number.to_string(), "--json", GH_FIELDS]),
            ForgeProgram::Glab => words(&["mr", "view", &number.to_string(), "--output", "json"]),
        };
        let output = self.run(&ForgeCall { action: &action, args, input: "", limit })?;
        let request = match self.program {
            ForgeProgram::Gh => self.parse::<GhRequest>(&action, &output)?.report(),
            ForgeProgram::Glab => self.parse::<GlabRequest>(&action, &output)?.report(),
        };
        request.ok_or_else(|| self.unreadable(&action, "unknown state".to_owned()))
    }

    /// Finds the open request of a branch. `owner` is that of the repository of the branch.
    pub(super) fn find_open_request(
        &self,
        branch: &str,
        owner: Option<&str>,
    ) -> Result<Option<ReportedRequest>, ForgeError> {
        let action = format!("find the {} of {branch}", self.program.request_noun());
        let args = match self.program {
            ForgeProgram::Gh => {
                words(&["pr", "list", "--head", branch, "--state", "open", "--json", GH_FIELDS])
            }
            ForgeProgram::Glab => words(&["mr", "list", "--source-branch", branch, "--output", "json"]),
        };
        let output = self.run(&ForgeCall { action: &action, args, input: "", limit: READ_LIMIT })?;
        let found: Vec<Option<ReportedRequest>> = match self.program {
            _ if output.trim().is_empty() => Vec::new(),
            ForgeProgram::Gh => {
                let list: Vec<GhRequest> = self.parse(&action, &output)?;
                list.into_iter().map(GhRequest::report).collect()
            }
            ForgeProgram::Glab => {
                let list: Vec<GlabRequest> = self.parse(&action, &output)?;
                list.into_iter().map(GlabRequest::report).collect()
            }
        };
        let is_of_owner = |request: &ReportedRequest| match (&request.head_owner, owner) {
            (Some(found), Some(owner)) => found.eq_ignore_ascii_case(owner),
            _ => true,
        };
        Ok(found.into_iter().flatten().find(is_of_owner))
    }

    /// Opens a request. Returns its number and address.
    pub(super) fn open_request(
        &self,
        action: &str,
        new: &NewRequest<'_>,
    ) -> Result<(u64, String), ForgeError> {
        let labels = new.labels.iter().flat_map(|label| ["--label", label.as_str()]);
        let draft = new.draft.then_some("--draft");
        let (mut args, input) = match self.program {
            ForgeProgram::Gh => {
                let head = match new.fork {
                    Some((owner, _)) => format!("{owner}:{}", new.branch),
                    None => new.branch.to_owned(),
                };
                let args = ["pr", "create", "--head", &head, "--base", new.base, "--title", new.title];
                ([words(&args), words(&["--body-file", "-"])].concat(), new.body)
            }
            ForgeProgram::Glab => {
                let args = ["mr", "create", "--source-branch", new.branch, "--target-branch", new.base];
                let texts = ["--title", new.title, "--description", new.body, "--yes"];
                let fork = new.fork.map(|(_, path)| words(&["--head", path])).unwrap_or_default();
                ([words(&args), words(&texts), fork].concat(), "")
            }
        };
        args.extend(draft.into_iter().chain(labels).map(ToOwned::to_owned));
        let output = self.run(&ForgeCall { action, args, input, limit: CHANGE_LIMIT })?;
        let address = output
            .split_whitespace()
            .rev()
            .find(|word| word.starts_with("https://") || word.starts_with("http://"));
        let number = address.and_then(|url| url.trim_end_matches('/').rsplit('/').next()?.parse().ok());
        match (number, address) {
            (Some(number), Some(url)) => Ok((number, url.to_owned())),
            _ => Err(self.unreadable(action, "it names no request".to_owned())),
        }
    }

    /// Changes an open request.
    pub(super) fn change_request(
        &self,
        action: &str,
        number: u64,
        change: &RequestChange<'_>,
    ) -> Result<(), ForgeError> {
        let number = number.to_string();
        let RequestChange { text, draft, labels } = change;
        let run = |args: Vec<String>, input: &str| {
            self.run(&ForgeCall { action, args, input, limit: CHANGE_LIMIT }).map(drop)
        };
        let (flag, mut args) = match self.program {
            ForgeProgram::Gh => ("--add-label", words(&["pr", "edit", &number])),
            ForgeProgram::Glab => ("--label", words(&["mr", "update", &number])),
        };
        args.extend(labels.iter().flat_map(|label| [flag, label.as_str()]).map(ToOwned::to_owned));
        let mut input = "";
        match (self.program, text) {
            (_, None) => {}
            (ForgeProgram::Gh, Some((title, body))) => {
                args.extend(words(&["--title", title, "--body-file", "-"]));
                input = body;
            }
            (ForgeProgram::Glab, Some((title, body))) => {
                args.extend(words(&["--title", title, "--description", body]));
            }
        }
        if *draft && self.program == ForgeProgram::Glab {
            args.push("--draft".to_owned());
        }
        if args.len() > 3 {
            run(args, input)?;
        }
        match (draft, self.program) {
            (true, ForgeProgram::Gh) => run(words(&["pr", "ready", &number, "--undo"]), ""),
            _ => Ok(()),
        }
    }

    /// Reads an issue.
    pub(super) fn read_issue(&self, number: u64) -> Result<ReportedIssue, ForgeError> {
        let action = format!("read issue {number}");
        let id = number.to_string();
        let args = match self.program {
            ForgeProgram::Gh => words(&["issue", "view", &id, "--json", "number,title,body,url"]),
            ForgeProgram::Glab => words(&["issue", "view", &id, "--output", "json"]),
        };
        let output = self.run(&ForgeCall { action: &action, args, input: "", limit: READ_LIMIT })?;
        self.parse(&action, &output)
    }

    fn parse<T: DeserializeOwned>(&self, action: &str, output: &str) -> Result<T, ForgeError> {
        serde_json::from_str(output).map_err(|e| self.unreadable(action, e.to_string()))
    }

    fn unreadable(&self, action: &str, reason: String) -> ForgeError {
        ForgeError::Unreadable { action: action.to_owned(), program: self.program, reason }
    }
}

fn words(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}
