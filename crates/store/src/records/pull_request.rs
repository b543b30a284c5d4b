//! Records about the pull or merge request of a lane, and about the issue that a lane is for.

use std::fmt;

use proq_git::CommitId;
use serde::{Deserialize, Serialize};

use crate::base::clock::Moment;
use crate::base::record::Record;

/// Program that speaks to the forge of a remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForgeProgram {
    /// The program of GitHub.
    Gh,
    /// The program of GitLab.
    Glab,
}

impl ForgeProgram {
    /// Parses the name of a program.
    pub fn from_name(name: &str) -> Option<ForgeProgram> {
        match name {
            "gh" => Some(ForgeProgram::Gh),
            "glab" => Some(ForgeProgram::Glab),
            _ => None,
        }
    }

    /// Returns what the forge calls a request to merge a branch.
    pub fn request_noun(self) -> &'static str {
        match self {
            ForgeProgram::Gh => "pull request",
            ForgeProgram::Glab => "merge request",
        }
    }

    /// Returns the sign that the forge writes before the number of a request.
    pub fn number_sign(self) -> char {
        match self {
            ForgeProgram::Gh => '#',
            ForgeProgram::Glab => '!',
        }
    }
}

impl fmt::Display for ForgeProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ForgeProgram::Gh => "gh",
            ForgeProgram::Glab => "glab",
        })
    }
}

/// Issue that a lane is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueLink {
    /// Number of the issue in its repository.
    pub number: u64,
    /// Address of its page.
    pub url: String,
}

/// Pull or merge request by which the work of a lane lands on a forge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    /// Number in the repository.
    pub number: u64,
    /// Address of its page.
    pub url: String,
    /// Program that opened it.
    pub program: ForgeProgram,
    /// Repository that it belongs to, as the program's `--repo` takes it; none for the one that the program
    /// finds by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Remote that the lane's branch was pushed to.
    pub remote: String,
    /// Branch of the remote, without `refs/heads/`.
    pub branch: String,
    /// Commit of the lane that was pushed last.
    pub pushed: CommitId,
}

impl PullRequest {
    /// Returns the number as the forge writes it, such as `#7`.
    pub fn number_text(&self) -> String {
        format!("{}{}", self.program.number_sign(), self.number)
    }
}

/// State of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PullRequestState {
    /// It can still be merged.
    Open,
    /// It was closed without a merge.
    Closed,
    /// It was merged.
    Merged,
}

impl fmt::Display for PullRequestState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            PullRequestState::Open => "open",
            PullRequestState::Closed => "closed",
            PullRequestState::Merged => "merged",
        })
    }
}

/// State of all checks that a forge runs on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RemoteChecks {
    /// All checks passed.
    Passed,
    /// A check failed.
    Failed,
    /// A check has not ended, and none failed.
    Pending,
}

impl fmt::Display for RemoteChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RemoteChecks::Passed => "passed",
            RemoteChecks::Failed => "failed",
            RemoteChecks::Pending => "pending",
        })
    }
}

/// Last known status of a request on its forge. The file may be lost: it can be read again there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestStatus {
    /// Number of the request.
    pub number: u64,
    /// State of the request.
    pub state: PullRequestState,
    /// Whether it is a draft.
    #[serde(default)]
    pub draft: bool,
    /// State of its checks; none without checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<RemoteChecks>,
    /// Newest commit of the request's branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<CommitId>,
    /// Commit of the base with which the request was merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_commit: Option<CommitId>,
    /// Time of the merge, as the forge writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_at: Option<String>,
    /// Time at which the forge reported this.
    pub refreshed: Moment,
}

impl Record for PullRequestStatus {
    const FORMAT: u32 = 1;
}

impl PullRequestStatus {
    /// Returns whether the request was merged with this commit as its head.
    pub fn is_merged_at(&self, tip: CommitId) -> bool {
        self.state == PullRequestState::Merged && self.head == Some(tip)
    }

    /// Returns the word for the state: `open`, `draft`, `closed` or `merged`.
    pub fn word(&self) -> String {
        match self.state {
            PullRequestState::Open if self.draft => "draft".to_owned(),
            state => state.to_string(),
        }
    }
}
