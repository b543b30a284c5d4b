//! Verification of a commit's signature, as the user's git settings require it.

use crate::{CommitId, Error, Repo};

impl Repo {
    /// Returns why git does not accept the signature of a commit; none when git accepts it. As for `git
    /// merge`, the key needs at least marginal trust, unless `gpg.minTrustLevel` sets another level. Without
    /// that setting, `git verify-commit` alone would require no trust.
    pub fn signature_problem(&self, commit: CommitId) -> Result<Option<String>, Error> {
        let mut command = self.git();
        if self.gix.config_snapshot().string("gpg.minTrustLevel").is_none() {
            command = command.args(["-c", "gpg.minTrustLevel=marginal"]);
        }
        let out = command.arg("verify-commit").arg(commit.to_string()).accept_exit_codes(&[1]).run()?;
        if out.code == 0 {
            return Ok(None);
        }
        Ok(Some(format!(
            "its commit {} has no valid signature, which merge.verifySignatures requires",
            commit.short()
        )))
    }

    /// Returns the options of `git merge` for a branch from `branch.NAME.mergeOptions`, as they are written
    /// there.
    pub fn merge_options(&self, branch: &str) -> Option<String> {
        let key = format!("branch.{branch}.mergeOptions");
        self.gix.config_snapshot().string(key.as_str()).map(|value| value.to_string())
    }
}
