//! Git's own settings for merges into a base: honored, or refused by name before anything moves.

use proq_base::explain::shell_quote_path;
use proq_base::hint;
use proq_base::hint::Hint;
use proq_git::Repo;
use proq_store::records::lane::{LaneRecord, MergeStrategy};

use crate::merge::Error;

/// Options of `git merge` that do not change what lands.
const IGNORED_OPTIONS: &[&str] = &[
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

/// Returns whether lanes land on a base only with a good signature: by `merge.verifySignatures`, or by the
/// base's own merge options.
///
/// # Errors
/// [`Error::UnsupportedMergeOption`] when the base has an option that a landing does not support. A rebase
/// ignores merge options.
pub(crate) fn requires_signatures(repo: &Repo, base: &str, strategy: MergeStrategy) -> Result<bool, Error> {
    let mut required = repo.setting_bool("merge.verifySignatures") == Some(true);
    if strategy == MergeStrategy::Rebase {
        return Ok(required);
    }
    for option in repo.merge_options(base).unwrap_or_default().split_whitespace() {
        match option.trim_matches(['"', '\'']) {
            "--verify-signatures" => required = true,
            "--no-verify-signatures" => required = false,
            known if IGNORED_OPTIONS.contains(&known) => {}
            option => {
                return Err(Error::UnsupportedMergeOption {
                    base: base.to_owned(),
                    option: option.to_owned(),
                });
            }
        }
    }
    Ok(required)
}

/// Returns hints for a lane whose tip has no good signature.
pub(crate) fn missing_signature_hints(lane: &LaneRecord) -> Vec<Hint> {
    vec![hint!("sign it: git -C {} commit --amend --no-edit -S", shell_quote_path(&lane.path))]
}
