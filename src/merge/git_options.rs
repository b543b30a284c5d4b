//! Owns what git's own settings say about merges into a base: they are honoured, or refused by name before anything moves.

use super::Error;
use crate::explain::quoted_path;
use crate::git::Repo;
use crate::store::records::{LaneRecord, Strategy};

/// Options of `git merge` with which the same lands as without them.
const WITHOUT_EFFECT: &[&str] = &[
    "--no-ff",
    "--ff",
    "--commit",
    "--edit",
    "-e",
    "--no-edit",
    "--stat",
    "--no-stat",
    "-n",
    "--summary",
    "--no-summary",
    "--compact-summary",
    "--no-log",
    "--no-squash",
    "--no-signoff",
    "--quiet",
    "-q",
    "--verbose",
    "-v",
    "--progress",
    "--no-progress",
    "--autostash",
    "--no-autostash",
    "--verify",
    "--rerere-autoupdate",
    "--no-rerere-autoupdate",
];

/// Whether lanes land on a base only with a good signature: by `merge.verifySignatures`, or by the base's own options.
///
/// # Errors
/// [`Error::MergeOption`] when the base has an option that a landing does not take. A rebase goes by none of them.
pub(super) fn verifies_signatures(repo: &Repo, base: &str, strategy: Strategy) -> Result<bool, Error> {
    let mut verifies = repo.setting_bool("merge.verifySignatures") == Some(true);
    if strategy == Strategy::Rebase {
        return Ok(verifies);
    }
    for option in repo.merge_options(base).unwrap_or_default().split_whitespace() {
        match option.trim_matches(['"', '\'']) {
            "--verify-signatures" => verifies = true,
            "--no-verify-signatures" => verifies = false,
            known if WITHOUT_EFFECT.contains(&known) => {}
            option => {
                return Err(Error::MergeOption { base: base.to_owned(), option: option.to_owned() });
            }
        }
    }
    Ok(verifies)
}

/// What helps a lane whose tip has no good signature.
pub(super) fn without_signature(lane: &LaneRecord) -> Vec<String> {
    vec![format!("sign it: git -C {} commit --amend --no-edit -S", quoted_path(&lane.path))]
}
