//! Owns asking git whether a commit is signed as the user's settings want it.

use super::{Error, Oid, Repo};

impl Repo {
    /// Why the signature of a commit does not count, by git's own check; none where it does. As for `git merge`, its key has to be
    /// trusted at least marginally where `gpg.minTrustLevel` does not say otherwise; `git verify-commit` asks for no trust then.
    pub(crate) fn lacks_signature(&self, commit: Oid) -> Result<Option<String>, Error> {
        let mut call = self.git();
        if self.gix.config_snapshot().string("gpg.minTrustLevel").is_none() {
            call = call.args(["-c", "gpg.minTrustLevel=marginal"]);
        }
        let out = call.arg("verify-commit").arg(commit.to_string()).accept(&[1]).run()?;
        if out.code == 0 {
            return Ok(None);
        }
        Ok(Some(format!(
            "its commit {} has no good signature, which merge.verifySignatures asks for",
            commit.short()
        )))
    }

    /// The options that `git merge` takes on a branch from `branch.NAME.mergeOptions`, as they are written there.
    pub(crate) fn merge_options(&self, branch: &str) -> Option<String> {
        let key = format!("branch.{branch}.mergeOptions");
        self.gix.config_snapshot().string(key.as_str()).map(|value| value.to_string())
    }
}
