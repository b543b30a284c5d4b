//! Checks that a landing on a branch has to pass. While the main checkout is on that branch, they come from
//! its `proq.toml`, so that an edit applies at once. Otherwise they come from the `proq.toml` of the branch's
//! last commit.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use proq_base::config::layers::Layers;
use proq_base::config::settings::Settings;
use proq_base::regular_file::MAX_SETTINGS_BYTES;
use proq_git::{BlobId, CommitId};
use proq_store::base::batch_id::BatchId;
use proq_store::base::record::Record;
use proq_store::records::batched::BatchBranches;
use proq_store::records::git_guard::SettingsFile;

use super::base::resolve as resolve_base;
use crate::lane::{Error, Project};
use crate::project::repository_file;
use crate::project::repository_file::{PreviewOrigin, SETTINGS_FILE_NAME};

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
        let text = match repository_file::settings_text(&self.repo, tip.into(), Path::new(&name)) {
            Ok(text) => text,
            // What is no file has no checks, in the main checkout either.
            Err(Error::Config(_)) if self.has_no_file_of_settings(tip)? => None,
            Err(e) => return Err(e),
        };
        // A file that is in no commit belongs to the user, whichever branch is checked out.
        if text.is_none()
            && self.layers.checkout_settings_text().is_some()
            && !self.is_settings_file_committed()?
        {
            return checkout_layers;
        }
        Ok(Cow::Owned(self.layers.with_commit_checks(text.as_deref().map(|text| (Path::new(&name), text)))?))
    }

    /// Returns whether the `proq.toml` of a commit is no regular file, and the main checkout has none that can be
    /// read.
    fn has_no_file_of_settings(&self, commit: CommitId) -> Result<bool, Error> {
        let entry = repository_file::settings_entry(&self.repo, commit.into())?;
        Ok(entry.is_some_and(|entry| !entry.is_file()) && self.layers.checkout_settings_text().is_none())
    }

    /// Returns whether the main checkout has a `proq.toml` that is unchanged since the settings were read.
    fn is_settings_file_unchanged(&self) -> bool {
        let (Some(text_read), Some(main)) = (self.layers.checkout_settings_text(), self.repo.main_worktree())
        else {
            return false;
        };
        repository_file::checkout_text(main).is_some_and(|now| now == text_read)
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
    /// blob id of the text in `layers`. During a preview, that is the state before it.
    ///
    /// # Errors
    /// Fails when the commit cannot be read.
    pub(crate) fn settings_file_state(&self, layers: &Layers) -> Result<SettingsFile, Error> {
        let Some(main) = self.repo.main_worktree() else { return Ok(SettingsFile::default()) };
        let (branch, commit) = match PreviewOrigin::find(&self.repo)? {
            Some(origin) => (origin.branch, Some(origin.commit)),
            None => (self.repo.main_checkout_branch()?, self.repo.head_commit(main)?),
        };
        let committed = self.committed_settings_id(commit)?;
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
        let read_entry = |commit: CommitId| repository_file::settings_entry(&self.repo, commit.into());
        let entry = commit.map(read_entry).transpose()?.flatten();
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

    /// Returns whether the commit of the main checkout has a `proq.toml`; during a preview, the one before it.
    fn is_settings_file_committed(&self) -> Result<bool, Error> {
        let Some(main) = self.repo.main_worktree() else { return Ok(false) };
        let commit = match PreviewOrigin::find(&self.repo)? {
            Some(origin) => Some(origin.commit),
            None => self.repo.head_commit(main)?,
        };
        let Some(commit) = commit else { return Ok(false) };
        Ok(repository_file::settings_entry(&self.repo, commit.into())?.is_some())
    }
}
