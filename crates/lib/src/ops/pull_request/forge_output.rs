//! What the programs of forges print about requests and issues, as JSON.

use proq_git::CommitId;
use proq_store::base::clock::now;
use proq_store::records::pull_request::{PullRequestState, PullRequestStatus, RemoteChecks};
use serde::Deserialize;

/// Request as a forge reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReportedRequest {
    pub url: String,
    pub status: PullRequestStatus,
    /// Owner of the repository that the request's branch is in; none if it is not reported.
    pub head_owner: Option<String>,
}

/// Issue as a forge reports it.
#[derive(Debug, Deserialize)]
pub(super) struct ReportedIssue {
    #[serde(alias = "iid")]
    pub number: u64,
    pub title: String,
    #[serde(default, alias = "description")]
    pub body: Option<String>,
    #[serde(alias = "web_url")]
    pub url: String,
}

/// Fields of a request that `gh` prints with `--json`.
pub(super) const GH_FIELDS: &str =
    "number,state,url,statusCheckRollup,headRefOid,mergeCommit,mergedAt,isDraft,headRepositoryOwner";

/// Request as `gh` prints it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GhRequest {
    number: u64,
    state: String,
    url: String,
    #[serde(default)]
    status_check_rollup: Option<Vec<GhCheck>>,
    #[serde(default)]
    head_ref_oid: Option<String>,
    #[serde(default)]
    merge_commit: Option<GhCommit>,
    #[serde(default)]
    merged_at: Option<String>,
    #[serde(default)]
    is_draft: bool,
    #[serde(default)]
    head_repository_owner: Option<GhOwner>,
}

/// Check run or commit status as `gh` prints it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GhCheck {
    /// State of a check run: `COMPLETED` once it has ended.
    status: Option<String>,
    /// Result of a check run, empty while it runs.
    conclusion: Option<String>,
    /// State of a commit status.
    state: Option<String>,
}

#[derive(Debug, Deserialize)]
struct GhCommit {
    oid: String,
}

#[derive(Debug, Deserialize)]
struct GhOwner {
    login: String,
}

impl GhCheck {
    fn result(&self) -> RemoteChecks {
        let is_over = self.status.as_deref().is_none_or(|status| status == "COMPLETED");
        let word = self.conclusion.as_deref().filter(|word| !word.is_empty()).or(self.state.as_deref());
        match word.unwrap_or_default() {
            _ if !is_over => RemoteChecks::Pending,
            "SUCCESS" | "NEUTRAL" | "SKIPPED" => RemoteChecks::Passed,
            "" | "PENDING" | "EXPECTED" => RemoteChecks::Pending,
            _ => RemoteChecks::Failed,
        }
    }
}

impl GhRequest {
    pub(super) fn report(self) -> Option<ReportedRequest> {
        let results: Vec<RemoteChecks> =
            self.status_check_rollup.unwrap_or_default().iter().map(GhCheck::result).collect();
        let has = |result: RemoteChecks| results.contains(&result);
        let checks = match results.as_slice() {
            [] => None,
            _ if has(RemoteChecks::Failed) => Some(RemoteChecks::Failed),
            _ if has(RemoteChecks::Pending) => Some(RemoteChecks::Pending),
            _ => Some(RemoteChecks::Passed),
        };
        let status = PullRequestStatus {
            number: self.number,
            state: parse_state(&self.state)?,
            draft: self.is_draft,
            checks,
            head: self.head_ref_oid.as_deref().and_then(parse_commit),
            merge_commit: self.merge_commit.as_ref().and_then(|commit| parse_commit(&commit.oid)),
            merged_at: self.merged_at,
            refreshed: now(),
        };
        let head_owner = self.head_repository_owner.map(|owner| owner.login);
        Some(ReportedRequest { url: self.url, status, head_owner })
    }
}

/// Merge request as `glab` prints it, which is what the interface of GitLab returns.
#[derive(Debug, Deserialize)]
pub(super) struct GlabRequest {
    iid: u64,
    state: String,
    web_url: String,
    #[serde(default)]
    draft: bool,
    #[serde(default)]
    sha: Option<String>,
    #[serde(default)]
    merge_commit_sha: Option<String>,
    #[serde(default)]
    squash_commit_sha: Option<String>,
    #[serde(default)]
    merged_at: Option<String>,
    #[serde(default)]
    head_pipeline: Option<GlabPipeline>,
    #[serde(default)]
    pipeline: Option<GlabPipeline>,
}

#[derive(Debug, Deserialize)]
struct GlabPipeline {
    #[serde(default)]
    status: String,
}

impl GlabRequest {
    pub(super) fn report(self) -> Option<ReportedRequest> {
        let pipeline = self.head_pipeline.or(self.pipeline);
        let checks = match pipeline.as_ref().map(|pipeline| pipeline.status.as_str()) {
            None | Some("" | "skipped") => None,
            Some("success") => Some(RemoteChecks::Passed),
            Some("failed" | "canceled" | "canceling") => Some(RemoteChecks::Failed),
            Some(_) => Some(RemoteChecks::Pending),
        };
        let merge_commit = self.merge_commit_sha.or(self.squash_commit_sha);
        let status = PullRequestStatus {
            number: self.iid,
            state: parse_state(&self.state)?,
            draft: self.draft,
            checks,
            head: self.sha.as_deref().and_then(parse_commit),
            merge_commit: merge_commit.as_deref().and_then(parse_commit),
            merged_at: self.merged_at,
            refreshed: now(),
        };
        Some(ReportedRequest { url: self.web_url, status, head_owner: None })
    }
}

/// Parses the state of a request, in the words of both forges.
fn parse_state(word: &str) -> Option<PullRequestState> {
    match word.to_lowercase().as_str() {
        // A merge request is locked while it is being merged.
        "open" | "opened" | "locked" => Some(PullRequestState::Open),
        "closed" => Some(PullRequestState::Closed),
        "merged" => Some(PullRequestState::Merged),
        _ => None,
    }
}

fn parse_commit(hex: &str) -> Option<CommitId> {
    CommitId::from_hex(hex.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gh(checks: &str) -> Option<RemoteChecks> {
        let json = format!(r#"{{"number":7,"state":"OPEN","url":"u","statusCheckRollup":{checks}}}"#);
        serde_json::from_str::<GhRequest>(&json).unwrap().report().unwrap().status.checks
    }

    #[test]
    fn summarizes_checks_of_both_forges() {
        assert_eq!((gh("[]"), gh("null")), (None, None));
        let passed = r#"{"__typename":"CheckRun","status":"COMPLETED","conclusion":"SUCCESS"}"#;
        let skipped = r#"{"__typename":"CheckRun","status":"COMPLETED","conclusion":"SKIPPED"}"#;
        let running = r#"{"__typename":"CheckRun","status":"IN_PROGRESS","conclusion":""}"#;
        let failed = r#"{"__typename":"StatusContext","state":"FAILURE"}"#;
        assert_eq!(gh(&format!("[{passed},{skipped}]")), Some(RemoteChecks::Passed));
        assert_eq!(gh(&format!("[{passed},{running}]")), Some(RemoteChecks::Pending));
        assert_eq!(gh(&format!("[{running},{failed}]")), Some(RemoteChecks::Failed));
        for (status, checks) in [
            ("success", Some(RemoteChecks::Passed)),
            ("manual", Some(RemoteChecks::Pending)),
            ("canceled", Some(RemoteChecks::Failed)),
            ("skipped", None),
        ] {
            let json = format!(
                r#"{{"iid":7,"state":"locked","web_url":"u","head_pipeline":{{"status":"{status}"}}}}"#
            );
            let request = serde_json::from_str::<GlabRequest>(&json).unwrap().report().unwrap();
            assert_eq!((request.status.checks, request.status.state), (checks, PullRequestState::Open));
        }
    }
}
