//! Owns which checks a landing on a branch has to pass. Those of the repository are in the `proq.toml` of the main checkout while
//! that has the branch checked out, so that an edit there counts at once; elsewhere they are in the one of the branch's last commit.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use super::{Error, Project, resolve_base};
use crate::config::{self, Layers, Settings};
use crate::git::{self, Oid, RepoPath};
use crate::regular_file::{self, Links, SETTINGS};
use crate::store::Record;
use crate::store::records::{BatchBranches, SettingsFile};

/// The file with the settings of a repository.
const FILE: &str = "proq.toml";

/// The checks of landings on one branch.
#[derive(Debug)]
pub(crate) struct LandingChecks<'p> {
    /// The settings, with the checks of the branch.
    pub(crate) layers: Cow<'p, Layers>,
    /// `verify.commands`.
    pub(crate) commands: Vec<String>,
    /// `verify.timeout`.
    pub(crate) timeout: Duration,
}

/// The settings with the checks of landings on the branch that a command acts on when none is named. Without one they are as they
/// lie in the main checkout.
///
/// # Errors
/// As for [`Project::checks_on`].
pub(crate) fn current_layers(project: &Project) -> Result<Cow<'_, Layers>, Error> {
    match resolve_base(project, None, None) {
        Ok(base) => project.layers_on(&base.branch),
        Err(_) => Ok(Cow::Borrowed(&project.layers)),
    }
}

impl Project {
    /// The checks that a landing on a branch has to pass.
    ///
    /// # Errors
    /// When the `proq.toml` of the branch cannot be read or used.
    pub(crate) fn checks_on(&self, branch: &str) -> Result<LandingChecks<'_>, Error> {
        let layers = self.layers_on(branch)?;
        let (commands, timeout) = match &layers {
            Cow::Borrowed(_) => (self.settings.verify_commands.clone(), self.settings.verify_timeout),
            Cow::Owned(layers) => {
                let settings = Settings::from_layers(layers);
                (settings.verify_commands, settings.verify_timeout)
            }
        };
        Ok(LandingChecks { layers, commands, timeout })
    }

    fn layers_on(&self, branch: &str) -> Result<Cow<'_, Layers>, Error> {
        let as_it_lies = Ok(Cow::Borrowed(&self.layers));
        let branch = self.base_of_batch(branch)?.unwrap_or_else(|| branch.to_owned());
        // A landing may have changed it since it was read. An edit since then does not count: an agent may have made it.
        if self.lies_as_read() && self.repo.main_branch()?.as_ref() == Some(&branch) {
            return as_it_lies;
        }
        let Some(tip) = self.repo.branch_tip(&branch)? else { return as_it_lies };
        let name = format!("{branch}:{FILE}");
        let text = self.settings_file_of(tip, Path::new(&name))?;
        // A file that no commit has is the user's own, whatever is checked out.
        if text.is_none() && self.layers.in_checkout().is_some() && !self.is_of_commit()? {
            return as_it_lies;
        }
        Ok(Cow::Owned(self.layers.with_checks_of(text.as_deref().map(|text| (Path::new(&name), text)))?))
    }

    /// Whether the main checkout has a `proq.toml`, and it is as it was when the settings were read.
    fn lies_as_read(&self) -> bool {
        let (Some(read), Some(main)) = (self.layers.in_checkout(), self.repo.main_worktree()) else {
            return false;
        };
        let now = regular_file::read_text(&main.join(FILE), SETTINGS, Links::Below(main));
        now.is_ok_and(|now| now == read)
    }

    /// The branch that a batch is for, where `branch` is the batch's own: what has landed there has still to land on that.
    fn base_of_batch(&self, branch: &str) -> Result<Option<String>, Error> {
        let id = branch.rsplit('/').next().and_then(|last| last.strip_prefix("batch-"));
        let Some(id) = id.filter(|_| self.is_own_branch(branch)) else { return Ok(None) };
        let batch = BatchBranches::find(&self.store.layout().batch_record(id))?;
        Ok(batch.filter(|batch| batch.branch == branch).map(|batch| batch.base))
    }

    /// The `proq.toml` of the main checkout, as these `layers` have it, and that of its commit.
    ///
    /// # Errors
    /// When the commit cannot be read.
    pub(crate) fn settings_file(&self, layers: &Layers) -> Result<SettingsFile, Error> {
        let Some(main) = self.repo.main_worktree() else { return Ok(SettingsFile::default()) };
        let branch = self.repo.main_branch()?;
        let committed = self.committed_settings(self.repo.head_of(main)?)?;
        let lies = layers.in_checkout().and_then(|text| self.id_of_text(text.as_bytes()));
        Ok(SettingsFile { branch, committed, lies })
    }

    /// Whether the main checkout's `proq.toml` says `now` what it said `then`, and for the same branch, or is the commit's, as it was
    /// then or since somebody committed it. No filter is asked, which could say anything.
    ///
    /// # Errors
    /// When a commit cannot be read.
    pub(crate) fn is_same_settings_file(
        &self,
        then: &SettingsFile,
        now: &SettingsFile,
    ) -> Result<bool, Error> {
        if now.lies == then.lies && now.branch == then.branch {
            return Ok(true);
        }
        if now.is_edited() || !then.is_edited() {
            return Ok(!now.is_edited());
        }
        let tip = then.branch.as_deref().map(|branch| self.repo.branch_tip(branch)).transpose()?.flatten();
        // It may have another name by now.
        let committed = if tip.is_some() { self.committed_settings(tip)? } else { now.committed };
        Ok(committed == then.lies)
    }

    /// The `proq.toml` of a commit, if that has one.
    fn committed_settings(&self, commit: Option<Oid>) -> Result<Option<Oid>, Error> {
        let side = commit.map(|commit| self.entry_of(commit)).transpose()?.flatten();
        let Some(side) = side.filter(|side| side.is_file()) else { return Ok(None) };
        Ok(self.repo.blob_within(side.oid, SETTINGS)?.and_then(|bytes| self.id_of_text(&bytes)))
    }

    fn id_of_text(&self, bytes: &[u8]) -> Option<Oid> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.repo.blob_id(text.replace("\r\n", "\n").as_bytes()),
            Err(_) => self.repo.blob_id(bytes),
        }
    }

    /// Whether the commit that the main checkout is on has a `proq.toml`.
    fn is_of_commit(&self) -> Result<bool, Error> {
        let Some(main) = self.repo.main_worktree() else { return Ok(false) };
        let Some(head) = self.repo.head_of(main)? else { return Ok(false) };
        Ok(self.entry_of(head)?.is_some())
    }

    fn entry_of(&self, commit: Oid) -> Result<Option<git::Side>, Error> {
        let only = std::iter::once(RepoPath::new(FILE.as_bytes())).collect();
        let found = git::tree_files(&self.repo, commit, &only)?;
        Ok(found.into_iter().next().map(|(_, side)| side))
    }

    /// The text of a commit's `proq.toml`, which errors call `name`; none when it has none.
    fn settings_file_of(&self, commit: Oid, name: &Path) -> Result<Option<String>, Error> {
        let Some(side) = self.entry_of(commit)? else { return Ok(None) };
        let unusable = |source| config::Error::Read { path: name.to_owned(), source };
        if !side.is_file() {
            return Err(unusable(regular_file::refused("it is no regular file")).into());
        }
        let bytes = self.repo.blob_within(side.oid, SETTINGS)?;
        let bytes = bytes.ok_or_else(|| unusable(regular_file::too_large(SETTINGS)))?;
        Ok(Some(regular_file::as_text(bytes).map_err(unusable)?))
    }
}
