//! The `proq.toml` that counts: that of the user's own checkout, also while the main checkout shows a lane.

use std::path::{Path, PathBuf};

use proq_base::config::layers::{Layers, RepositoryFile};
use proq_base::regular_file::{LinkPolicy, MAX_SETTINGS_BYTES};
use proq_base::{config, regular_file};
use proq_git::base::head::Head;
use proq_git::history::tree_diff;
use proq_git::history::tree_diff::{TopFile, TreeFile};
use proq_git::repository::objects::TempObjectStore;
use proq_git::{CommitId, Oid, Repo, RepoPath, TreeId};
use proq_store::base::record::Record;
use proq_store::paths::layout::Layout;
use proq_store::records::preview::PreviewRecord;
use proq_store::records::snapshot::SnapshotRecord;

use crate::errors::Error;

/// Name of a repository's settings file.
pub(crate) const SETTINGS_FILE_NAME: &str = "proq.toml";

/// State of the main checkout before the preview that it shows.
#[derive(Debug)]
pub(crate) struct PreviewOrigin {
    /// Branch that was checked out; none for a detached HEAD.
    pub(crate) branch: Option<String>,
    /// Commit that was checked out.
    pub(crate) commit: CommitId,
    /// The user's uncommitted changes of that time; none if there were none.
    parked: Option<SnapshotRecord>,
    /// Whether git ignored the settings file, so that it stayed where it was.
    was_ignored: bool,
    /// Commit of the lane that is shown.
    lane_tip: CommitId,
}

impl PreviewOrigin {
    /// Returns the state before the preview that the main checkout shows. None without a preview, or where the
    /// user has switched away by hand.
    ///
    /// # Errors
    /// Fails if the record of the preview or of its snapshot cannot be read.
    pub(crate) fn find(repo: &Repo) -> Result<Option<PreviewOrigin>, Error> {
        let layout = Layout::new(repo.common_dir());
        let (Some(main), Some(preview)) =
            (repo.main_worktree(), PreviewRecord::load_if_exists(&layout.preview_record())?)
        else {
            return Ok(None);
        };
        if !is_shown(repo, main, &preview)? {
            return Ok(None);
        }
        let load = |id: &String| SnapshotRecord::load_if_exists(&layout.snapshot_record(id));
        let parked = preview.parked_snapshot.as_ref().map(load).transpose()?.flatten();
        let branch = match &preview.previous_head {
            Head::Branch(branch) => Some(repo.resolve_symbolic_branch(branch)),
            Head::Detached(_) => None,
        };
        let was_ignored = preview.ignored.contains(&RepoPath::new(SETTINGS_FILE_NAME.as_bytes()));
        Ok(Some(PreviewOrigin {
            branch,
            commit: preview.previous_commit,
            parked,
            was_ignored,
            lane_tip: preview.tip,
        }))
    }

    /// Returns the settings file that the main checkout had then, with the user's uncommitted edits.
    fn settings_file(&self, repo: &Repo, main: &Path) -> Result<RepositoryFile, Error> {
        let committed = |treeish: Oid, revision: String| {
            let name: PathBuf = format!("{revision}:{SETTINGS_FILE_NAME}").into();
            let text = settings_text(repo, treeish, &name)?;
            Ok::<_, Error>(text.map(|text| RepositoryFile::Committed { name, text }))
        };
        let file = match &self.parked {
            None => committed(self.commit.into(), self.revision())?,
            Some(SnapshotRecord { id, snapshot, parked_files_snapshot, .. }) => {
                if snapshot.ignored.iter().any(|file| file.path.to_string() == SETTINGS_FILE_NAME) {
                    let folder =
                        Layout::new(repo.common_dir()).snapshot(parked_files_snapshot.as_ref().unwrap_or(id));
                    return Ok(RepositoryFile::OnDisk(Layout::parked_files_in(&folder)));
                }
                let revision = snapshot.commit.to_string();
                match (committed(snapshot.work_tree.into(), revision.clone())?, snapshot.untracked_tree) {
                    (None, Some(untracked)) => committed(untracked.into(), format!("{revision}^3"))?,
                    (tracked, _) => tracked,
                }
            }
        };
        let is_still_there = || Ok::<_, Error>(settings_entry(repo, self.lane_tip.into())?.is_none());
        match file {
            Some(file) => Ok(file),
            None if self.was_ignored && is_still_there()? => Ok(RepositoryFile::OnDisk(main.to_owned())),
            None => Ok(RepositoryFile::Missing),
        }
    }

    /// Returns the name of the commit in messages: its branch if that is still there.
    fn revision(&self) -> String {
        self.branch.clone().unwrap_or_else(|| self.commit.to_string())
    }
}

/// Returns the settings file of the repository that counts. It is never that of a lane that the main checkout
/// shows.
///
/// # Errors
/// Fails if the user's own file cannot be found because a record of the preview is unreadable.
pub(crate) fn repository_file(repo: &Repo) -> Result<RepositoryFile, Error> {
    let Some(main) = repo.main_worktree() else { return Ok(RepositoryFile::Missing) };
    match PreviewOrigin::find(repo)? {
        Some(origin) => origin.settings_file(repo, main),
        None => Ok(RepositoryFile::OnDisk(main.to_owned())),
    }
}

/// Returns whether the settings file on disk may be that of a lane. Besides a checkout on the preview's branch,
/// that is one which just moves there or to another preview: its file is the lane's already, or HEAD is on
/// the branch of another preview.
fn is_shown(repo: &Repo, main: &Path, preview: &PreviewRecord) -> Result<bool, Error> {
    let head = repo.main_head();
    if let Some(Head::Branch(branch)) = &head
        && (*branch == preview.branch || branch.ends_with("-preview"))
        && head.as_ref() != Some(&preview.previous_head)
    {
        return Ok(true);
    }
    let name: PathBuf = format!("{}:{SETTINGS_FILE_NAME}", preview.tip).into();
    let lane_text = settings_text(repo, preview.tip.into(), &name).ok().flatten();
    Ok(lane_text.is_some() && checkout_text(main) == lane_text)
}

/// Returns the content of the settings file in the checkout at `top`; none if there is none that can be read.
pub(crate) fn checkout_text(top: &Path) -> Option<String> {
    let path = top.join(SETTINGS_FILE_NAME);
    regular_file::read_text(&path, MAX_SETTINGS_BYTES, LinkPolicy::FollowBelow(top)).ok()
}

/// Returns the entry of the settings file in a tree or in the tree of a commit; none without such a file.
pub(crate) fn settings_entry(repo: &Repo, treeish: Oid) -> Result<Option<TreeFile>, Error> {
    let paths = std::iter::once(RepoPath::new(SETTINGS_FILE_NAME.as_bytes())).collect();
    let files = tree_diff::tree_files(repo, treeish, &paths)?;
    Ok(files.into_iter().next().map(|(_, side)| side))
}

/// Returns the content of the settings file in a tree or in the tree of a commit; none without such a file.
/// Errors name the file `name`.
pub(crate) fn settings_text(repo: &Repo, treeish: Oid, name: &Path) -> Result<Option<String>, Error> {
    let Some(entry) = settings_entry(repo, treeish)? else { return Ok(None) };
    let is_file = entry.is_file();
    let content = if is_file { repo.fetch_small_blob(entry.blob(), MAX_SETTINGS_BYTES)? } else { None };
    file_text(entry, content, name).map(Some)
}

/// Returns why the settings file of a tree, such as what a lane would land, is not valid. None if it is valid,
/// there is none, or it is the same as in the tree `before`. The trees may exist only in `temp_objects`.
///
/// # Errors
/// Fails if git cannot read the trees.
pub(crate) fn new_settings_error(
    repo: &Repo,
    before: TreeId,
    tree: TreeId,
    temp_objects: Option<&TempObjectStore>,
) -> Result<Option<String>, Error> {
    let name = Path::new(SETTINGS_FILE_NAME);
    let text = match temp_objects {
        None => {
            let entry = settings_entry(repo, tree.into())?;
            if entry.is_none() || entry == settings_entry(repo, before.into())? {
                return Ok(None);
            }
            settings_text(repo, tree.into(), name)
        }
        Some(objects) => {
            let file =
                |tree| tree_diff::top_file(repo, tree, SETTINGS_FILE_NAME, MAX_SETTINGS_BYTES, objects);
            let Some(TopFile { entry, content }) = file(tree)? else { return Ok(None) };
            if file(before)?.is_some_and(|old| old.entry == entry) {
                return Ok(None);
            }
            file_text(entry, content, name).map(Some)
        }
    };
    let checked =
        text.and_then(|text| Ok(text.map_or(Ok(()), |text| Layers::check_repository_text(name, &text))?));
    match checked {
        Ok(()) => Ok(None),
        Err(Error::Config(error)) => {
            let reason = error.summary();
            // The caller names the file.
            let file = format!("cannot read {SETTINGS_FILE_NAME}: it is not valid TOML: ");
            Ok(Some(reason.strip_prefix(&file).map_or(reason.clone(), str::to_owned)))
        }
        Err(error) => Err(error),
    }
}

/// Converts an entry and its content, none for a file that is too large, to the text of a settings file.
fn file_text(entry: TreeFile, content: Option<Vec<u8>>, name: &Path) -> Result<String, Error> {
    let read_error = |source| config::Error::UnreadableFile { path: name.to_owned(), source };
    if !entry.is_file() {
        return Err(read_error(regular_file::invalid_input("it is no regular file")).into());
    }
    let bytes = content.ok_or_else(|| read_error(regular_file::too_large(MAX_SETTINGS_BYTES)))?;
    Ok(regular_file::to_utf8_text(bytes).map_err(read_error)?)
}
