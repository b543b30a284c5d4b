//! Checks that a landing on a branch has to pass. While the main checkout is on that branch, they come from
//! its `proq.toml`, so that an edit applies at once. Otherwise they come from the `proq.toml` of the branch's
//! last commit.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use proq_base::config::layers::Layers;
use proq_base::config::settings::Settings;
use proq_base::regular_file::{LinkPolicy, MAX_SETTINGS_BYTES};
use proq_base::{config, regular_file};
use proq_git::history::tree_diff;
use proq_git::{BlobId, CommitId, RepoPath};
use proq_store::base::batch_id::BatchId;
use proq_store::base::record::Record;
use proq_store::records::batched::BatchBranches;
use proq_store::records::git_guard::SettingsFile;

use super::base::resolve as resolve_base;
use crate::lane::{Error, Project};

/// Name of a repository's settings file.
const SETTINGS_FILE_NAME: &str = "proq.toml";

/// Checks of landings on one branch.
#[derive(Debug)]
pub struct LandingChecks<'p> {
    /// Settings layers that the checks come from.
    pub layers: Cow<'p, Layers>,
    /// Value of `verify.commands`.
    pub commands: Vec<String>,
    /// Value of `verify.setup`.
    pub set_up: Vec<String>,
    /// Value of `verify.timeout`.
    pub timeout: Duration,
}

/// Returns the settings with the landing checks of the default base branch. Without such a branch, the
/// settings are those of the main checkout.
///
/// # Errors
/// See [`Project::landing_checks`].
pub fn default_base_layers(project: &Project) -> Result<Cow<'_, Layers>, Error> {
    match resolve_base(project, None, None) {
        Ok(base) => project.branch_layers(&base.branch),
        Err(_) => Ok(Cow::Borrowed(&project.layers)),
    }
}

impl Project {
    /// Returns the checks that a landing on `branch` has to pass.
    ///
    /// # Errors
    /// Fails when the `proq.toml` of the branch cannot be read or is invalid.
    pub fn landing_checks(&self, branch: &str) -> Result<LandingChecks<'_>, Error> {
        let layers = self.branch_layers(branch)?;
        let settings = match &layers {
            Cow::Borrowed(_) => Cow::Borrowed(&self.settings),
            Cow::Owned(layers) => Cow::Owned(Settings::from_layers(layers)),
        };
        let (commands, set_up) = (settings.verify_commands.clone(), settings.verify_set_up.clone());
        let timeout = settings.verify_timeout;
        drop(settings);
        Ok(LandingChecks { layers, commands, set_up, timeout })
    }

    /// Returns the settings layers with the checks of the `proq.toml` that is committed on `branch`, or for
    /// the branch of a batch on its base. Returns those of the main checkout where the branch is missing or
    /// the file is in no commit.
    fn branch_layers(&self, branch: &str) -> Result<Cow<'_, Layers>, Error> {
        let checkout_layers = Ok(Cow::Borrowed(&self.layers));
        let branch = self.batch_base(branch)?.unwrap_or_else(|| branch.to_owned());
        // A landing may have changed the file since it was read. A later edit does not count, because an
        // agent may have made it.
        if self.is_settings_file_unchanged() && self.repo.main_checkout_branch()?.as_ref() == Some(&branch) {
            return checkout_layers;
        }
        let Some(tip) = self.repo.branch_tip(&branch)? else { return checkout_layers };
        let name = format!("{branch}:{SETTINGS_FILE_NAME}");
        let text = self.committed_settings_text(tip, Path::new(&name))?;
        // A file that is in no commit belongs to the user, whichever branch is checked out.
        if text.is_none()
            && self.layers.checkout_settings_text().is_some()
            && !self.is_settings_file_committed()?
        {
            return checkout_layers;
        }
        Ok(Cow::Owned(self.layers.with_commit_checks(text.as_deref().map(|text| (Path::new(&name), text)))?))
    }

    /// Returns whether the main checkout has a `proq.toml` that is unchanged since the settings were read.
    fn is_settings_file_unchanged(&self) -> bool {
        let (Some(text_read), Some(main)) = (self.layers.checkout_settings_text(), self.repo.main_worktree())
        else {
            return false;
        };
        let current = regular_file::read_text(
            &main.join(SETTINGS_FILE_NAME),
            MAX_SETTINGS_BYTES,
            LinkPolicy::FollowBelow(main),
        );
        current.is_ok_and(|now| now == text_read)
    }

    /// Returns the base of a batch if `branch` is the branch of a batch: changes that landed on it have yet
    /// to land on that base.
    fn batch_base(&self, branch: &str) -> Result<Option<String>, Error> {
        let id = branch.rsplit('/').next().and_then(|last| last.strip_prefix("batch-"));
        let Some(id) = id.filter(|_| self.is_managed_branch(branch)) else { return Ok(None) };
        let batch = BatchBranches::load_if_exists(&self.store.layout().batch_record(&BatchId::new(id)))?;
        Ok(batch.filter(|batch| batch.branch == branch).map(|batch| batch.base))
    }

    /// Returns the state of the main checkout's `proq.toml`: its branch, the blob id in its commit, and the
    /// blob id of the text in `layers`.
    ///
    /// # Errors
    /// Fails when the commit cannot be read.
    pub(crate) fn settings_file_state(&self, layers: &Layers) -> Result<SettingsFile, Error> {
        let Some(main) = self.repo.main_worktree() else { return Ok(SettingsFile::default()) };
        let branch = self.repo.main_checkout_branch()?;
        let committed = self.committed_settings_id(self.repo.head_commit(main)?)?;
        let checkout_id = layers.checkout_settings_text().and_then(|text| self.text_blob_id(text.as_bytes()));
        Ok(SettingsFile { branch, committed, on_disk: checkout_id })
    }

    /// Returns whether the main checkout's `proq.toml` is the same as `before`: it has the same text for the
    /// same branch, or it is as committed, either in both states or because the earlier edit was committed
    /// since. No git filter runs, since a filter could return anything.
    ///
    /// # Errors
    /// Fails when a commit cannot be read.
    pub(crate) fn is_same_settings_file(
        &self,
        before: &SettingsFile,
        current: &SettingsFile,
    ) -> Result<bool, Error> {
        if current.on_disk == before.on_disk && current.branch == before.branch {
            return Ok(true);
        }
        if current.is_edited() || !before.is_edited() {
            return Ok(!current.is_edited());
        }
        let tip = before.branch.as_deref().map(|branch| self.repo.branch_tip(branch)).transpose()?.flatten();
        // The branch may have been renamed or deleted since.
        let committed = if tip.is_some() { self.committed_settings_id(tip)? } else { current.committed };
        Ok(committed == before.on_disk)
    }

    /// Returns the blob id of a commit's `proq.toml` with normalized line endings, or `None` if the commit
    /// has no such file.
    fn committed_settings_id(&self, commit: Option<CommitId>) -> Result<Option<BlobId>, Error> {
        let entry = commit.map(|commit| self.settings_file_entry(commit)).transpose()?.flatten();
        let Some(entry) = entry.filter(|side| side.is_file()) else { return Ok(None) };
        Ok(self
            .repo
            .fetch_small_blob(entry.blob(), MAX_SETTINGS_BYTES)?
            .and_then(|bytes| self.text_blob_id(&bytes)))
    }

    /// Returns the blob id of a text with its line endings normalized to LF; none when hashing fails.
    fn text_blob_id(&self, bytes: &[u8]) -> Option<BlobId> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.repo.blob_id(text.replace("\r\n", "\n").as_bytes()),
            Err(_) => self.repo.blob_id(bytes),
        }
    }

    /// Returns whether the commit of the main checkout has a `proq.toml`.
    fn is_settings_file_committed(&self) -> Result<bool, Error> {
        let Some(main) = self.repo.main_worktree() else { return Ok(false) };
        let Some(head) = self.repo.head_commit(main)? else { return Ok(false) };
        Ok(self.settings_file_entry(head)?.is_some())
    }

    /// Returns the tree entry of a commit's `proq.toml`; none when the commit has no such file.
    fn settings_file_entry(&self, commit: CommitId) -> Result<Option<tree_diff::TreeFile>, Error> {
        let paths = std::iter::once(RepoPath::new(SETTINGS_FILE_NAME.as_bytes())).collect();
        let files = tree_diff::tree_files(&self.repo, commit, &paths)?;
        Ok(files.into_iter().next().map(|(_, side)| side))
    }

    /// Returns the text of a commit's `proq.toml`, or `None` if it has none. Errors name the file `name`.
    fn committed_settings_text(&self, commit: CommitId, name: &Path) -> Result<Option<String>, Error> {
        let Some(entry) = self.settings_file_entry(commit)? else { return Ok(None) };
        let read_error = |source| config::Error::UnreadableFile { path: name.to_owned(), source };
        if !entry.is_file() {
            return Err(read_error(regular_file::invalid_input("it is no regular file")).into());
        }
        let bytes = self.repo.fetch_small_blob(entry.blob(), MAX_SETTINGS_BYTES)?;
        let bytes = bytes.ok_or_else(|| read_error(regular_file::too_large(MAX_SETTINGS_BYTES)))?;
        Ok(Some(regular_file::to_utf8_text(bytes).map_err(read_error)?))
    }
}
