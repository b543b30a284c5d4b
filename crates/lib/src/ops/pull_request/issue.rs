//! Issues of a forge, as tasks of lanes.

use proq_store::records::pull_request::IssueLink;

use super::forge::Forge;
use super::forge_error::ForgeError;
use super::forge_repository::{ForgeRepository, choose_program};
use super::open_request_error::OpenRequestError;
use crate::lane::Project;
use crate::ops::error::Error;

/// Issue of a forge. Its texts were written by others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Number and address.
    pub link: IssueLink,
    /// Title, one line.
    pub title: String,
    /// Body; empty if there is none.
    pub body: String,
}

impl Issue {
    /// Returns the issue as the prompt of an agent: title, body and address.
    #[must_use]
    pub fn prompt(&self) -> String {
        let parts = [self.title.as_str(), self.body.trim(), self.link.url.as_str()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
    }
}

/// Reads an issue of the repository that the current branch is pushed to, or comes from.
///
/// # Errors
/// Fails if there is no such remote, and as its program fails.
pub fn read_issue(project: &Project, number: u64) -> Result<Issue, Error> {
    let action = format!("read issue {number}");
    let branch = project.repo.current_head_name()?.unwrap_or_default();
    let upstream = project.repo.upstream_branch(&branch).map(|upstream| upstream.remote);
    let remote = match upstream {
        Some(remote) => remote,
        None => project
            .repo
            .lane_remote(&branch, &branch)
            .map_err(|remotes| OpenRequestError::no_single_remote(&action, remotes))?,
    };
    let repository = ForgeRepository::of_remote(project, &remote);
    let program = choose_program(project, repository.as_ref())
        .ok_or_else(|| OpenRequestError::UnknownHost { action: action.clone(), remote })?;
    let argument = repository.as_ref().map(|repository| repository.argument(program));
    let issue = Forge::find(project, program, argument, &action)?.read_issue(number)?;
    let found = match &repository {
        _ if issue.number != number => Some(format!("issue {}, not {number}", issue.number)),
        Some(repository) if !repository.has_issue_address(&issue.url, number) => {
            let name = format!("{}/{}", repository.host, repository.path);
            Some(format!("{}, which is no issue {number} of {name}", issue.url))
        }
        _ => None,
    };
    if let Some(found) = found {
        return Err(ForgeError::OtherIssue { action, program, found }.into());
    }
    Ok(Issue {
        link: IssueLink { number: issue.number, url: issue.url },
        title: issue.title.split_whitespace().collect::<Vec<_>>().join(" "),
        body: issue.body.unwrap_or_default().replace("\r\n", "\n"),
    })
}
