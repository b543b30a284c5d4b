//! The `proq.toml` that counts: that of the user's own checkout, also while the main checkout shows a lane.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use proq_base::config::layers::{Layers, RepositoryFile};
use proq_base::explain::shell_quote;
use proq_base::hint;
use proq_base::hint::Hint;
use proq_base::regular_file::{LinkPolicy, MAX_SETTINGS_BYTES};
use proq_base::{config, regular_file};
use proq_git::base::head::Head;
use proq_git::history::tree_diff;
use proq_git::history::tree_diff::TreeFile;
use proq_git::repository::objects::TempObjectStore;
use proq_git::{CommitId, Oid, Repo, RepoPath, TreeId};
use proq_store::base::record::Record;
use proq_store::paths::layout::Layout;
use proq_store::records::preview::PreviewRecord;
use proq_store::records::snapshot::SnapshotRecord;

use crate::errors::Error;

/// Name of a repository's settings file.
pub(crate) const SETTINGS_FILE_NAME: &str = "proq.toml";

/// Maximum number of symbolic links from the settings file to the file that has the settings.
const MAX_LINKS: usize = 8;

/// Maximum length of the target of a symbolic link, in bytes.
const MAX_TARGET_BYTES: u64 = 4096;

/// Reason why a link of the user is not followed during a preview, as the end of a sentence.
const MAY_BE_OF_LANE: &str = "it is a link, and during the preview it leads to a file of the lane";

/// Reason why a link is not followed, as the end of a sentence.
const OUTSIDE: &str = "it is a link that is outside of the repository";

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
        let was_ignored = preview.ignored.contains(&settings_path());
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
        let (trees, revision): (Vec<Oid>, String) = match &self.parked {
            None => (vec![self.commit.into()], self.revision()),
            Some(SnapshotRecord { id, snapshot, parked_files_snapshot, .. }) => {
                if snapshot.ignored.iter().any(|file| file.path.to_string() == SETTINGS_FILE_NAME) {
                    let folder =
                        Layout::new(repo.common_dir()).snapshot(parked_files_snapshot.as_ref().unwrap_or(id));
                    return Ok(RepositoryFile::OnDisk(Layout::parked_files_in(&folder)));
                }
                let untracked = snapshot.untracked_tree.map(Oid::from);
                let is_tracked = settings_entry(repo, snapshot.work_tree.into())?.is_some();
                let suffix = if untracked.is_some() && !is_tracked { "^3" } else { "" };
                let trees = std::iter::once(snapshot.work_tree.into()).chain(untracked).collect();
                (trees, format!("{}{suffix}", snapshot.commit))
            }
        };
        let name: PathBuf = format!("{revision}:{SETTINGS_FILE_NAME}").into();
        let (found, name) = match find_settings(repo, &trees, settings_path(), &name)? {
            FoundSettings::Missing
                if self.was_ignored && settings_entry(repo, self.lane_tip.into())?.is_none() =>
            {
                // A link that stayed where it was may lead to a file of the lane there.
                let file = main.join(SETTINGS_FILE_NAME);
                let Ok(target) = std::fs::read_link(&file) else {
                    return Ok(RepositoryFile::OnDisk(main.to_owned()));
                };
                match resolve_link(&settings_path(), target.as_os_str().as_bytes()) {
                    Some(path) => (find_settings(repo, &trees, path, &file)?, file),
                    None => (FoundSettings::NoFile(OUTSIDE), file),
                }
            }
            found => (found, name),
        };
        let text = match found {
            FoundSettings::Text(text) => Some(text),
            FoundSettings::LinkTo(path) => self.ignored_text(repo, main, &path, &name)?,
            FoundSettings::Missing | FoundSettings::NoFile(_) => None,
        };
        Ok(text.map_or(RepositoryFile::Missing, |text| RepositoryFile::Committed { name, text }))
    }

    /// Returns the content of the user's file at `path`, to which a link leads, and which is in no tree: one that
    /// git ignores stays where it is during a preview. None without such a file.
    ///
    /// # Errors
    /// Fails if the lane has something there, or a link on the way, so that the file may be the lane's.
    fn ignored_text(
        &self,
        repo: &Repo,
        main: &Path,
        path: &RepoPath,
        name: &Path,
    ) -> Result<Option<String>, Error> {
        let read_error = |source| config::Error::UnreadableFile { path: name.to_owned(), source };
        let file = path.to_fs_path(main);
        let real = main.canonicalize().ok().map(|main| path.to_fs_path(&main));
        match file.canonicalize() {
            Err(_) => return Ok(None),
            Ok(found) if Some(&found) != real.as_ref() => {
                return Err(read_error(regular_file::invalid_input(MAY_BE_OF_LANE)).into());
            }
            Ok(_) => {}
        }
        if tree_diff::tree_entry(repo, self.lane_tip.into(), path)?.is_some() {
            return Err(read_error(regular_file::invalid_input(MAY_BE_OF_LANE)).into());
        }
        let text = regular_file::read_text(&file, MAX_SETTINGS_BYTES, LinkPolicy::Refuse);
        Ok(Some(text.map_err(read_error)?))
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
/// the branch of another preview. It is also one on another branch whose commit has the lane's file.
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
    if lane_text.is_some() && checkout_text(main) == lane_text {
        return Ok(true);
    }
    // On another branch of the lane's commit, such as that of `git switch -c`, an edited file is the lane's as well.
    if head.as_ref() == Some(&preview.previous_head) {
        return Ok(false);
    }
    let Some(commit) = repo.head_commit(main)? else { return Ok(false) };
    let lane_entry = settings_entry(repo, preview.tip.into())?;
    Ok(lane_entry.is_some()
        && settings_entry(repo, commit.into())? == lane_entry
        && settings_entry(repo, preview.previous_commit.into())? != lane_entry)
}

/// Returns the content of the settings file in the checkout at `top`; none if there is none that can be read.
pub(crate) fn checkout_text(top: &Path) -> Option<String> {
    let path = top.join(SETTINGS_FILE_NAME);
    regular_file::read_text(&path, MAX_SETTINGS_BYTES, LinkPolicy::FollowBelow(top)).ok()
}

/// Returns the path of the settings file in a repository.
fn settings_path() -> RepoPath {
    RepoPath::new(SETTINGS_FILE_NAME.as_bytes())
}

/// Returns the entry of the settings file in a tree or in the tree of a commit, also where it is a folder; none
/// without such an entry.
pub(crate) fn settings_entry(repo: &Repo, treeish: Oid) -> Result<Option<TreeFile>, Error> {
    Ok(tree_diff::tree_entry(repo, treeish, &settings_path())?)
}

/// Settings file of a commit, with symbolic links followed as on disk.
enum FoundSettings {
    /// Content of the file.
    Text(String),
    /// There is no such file.
    Missing,
    /// It is a folder, a submodule, or a link to such or out of the repository; with the reason, as the end of a
    /// sentence.
    NoFile(&'static str),
    /// It is a link to this path, where the commit has nothing.
    LinkTo(RepoPath),
}

/// Finds the settings file, or the file at `path` to which it is a link, in the first of some trees, or trees of
/// commits, that has it. Errors name it `name`.
fn find_settings(repo: &Repo, trees: &[Oid], path: RepoPath, name: &Path) -> Result<FoundSettings, Error> {
    let mut path = path;
    for _ in 0..=MAX_LINKS {
        let mut entries = trees.iter().map(|tree| tree_diff::tree_entry(repo, *tree, &path));
        let entry = entries.find_map(Result::transpose).transpose()?;
        let Some(entry) = entry else {
            let is_link = path != settings_path();
            return Ok(if is_link { FoundSettings::LinkTo(path) } else { FoundSettings::Missing });
        };
        if entry.is_file() {
            let content = repo.fetch_small_blob(entry.blob(), MAX_SETTINGS_BYTES)?;
            return Ok(FoundSettings::Text(file_text(entry, content, name)?));
        }
        if !entry.is_link() {
            return Ok(FoundSettings::NoFile(kind_text(entry)));
        }
        let target = repo.fetch_small_blob(entry.blob(), MAX_TARGET_BYTES)?;
        let Some(next) = target.and_then(|target| resolve_link(&path, &target)) else {
            return Ok(FoundSettings::NoFile(OUTSIDE));
        };
        path = next;
    }
    Ok(FoundSettings::NoFile("it is a link to too many links"))
}

/// Returns the path to which a symbolic link leads; none if that is outside of the repository.
fn resolve_link(link: &RepoPath, target: &[u8]) -> Option<RepoPath> {
    if target.starts_with(b"/") {
        return None;
    }
    let mut names: Vec<&[u8]> = link.as_bytes().split(|byte| *byte == b'/').collect();
    names.pop();
    for name in target.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    (!names.is_empty()).then(|| RepoPath::new(names.join(&b'/')))
}

/// Returns the content of the settings file in a tree or in the tree of a commit; none without such a file. A
/// symbolic link is followed. Errors name the file `name`.
///
/// # Errors
/// Fails if git cannot read the tree, and where the settings file is no file, or a link to none in the tree.
pub(crate) fn settings_text(repo: &Repo, treeish: Oid, name: &Path) -> Result<Option<String>, Error> {
    let reason = match find_settings(repo, &[treeish], settings_path(), name)? {
        FoundSettings::Text(text) => return Ok(Some(text)),
        FoundSettings::Missing => return Ok(None),
        FoundSettings::NoFile(reason) => reason,
        FoundSettings::LinkTo(_) => "it is a link to a file that is in no commit",
    };
    let source = regular_file::invalid_input(reason);
    Err(config::Error::UnreadableFile { path: name.to_owned(), source }.into())
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
    let (entry, old, content) = match temp_objects {
        None => {
            let (entry, old) = (settings_entry(repo, tree.into())?, settings_entry(repo, before.into())?);
            let file = entry.filter(|entry| entry.is_file() && Some(*entry) != old);
            let content =
                file.map(|file| repo.fetch_small_blob(file.blob(), MAX_SETTINGS_BYTES)).transpose()?;
            (entry, old, content.flatten())
        }
        Some(objects) => {
            let file =
                |tree| tree_diff::top_file(repo, tree, SETTINGS_FILE_NAME, MAX_SETTINGS_BYTES, objects);
            let (found, old) = (file(tree)?, file(before)?.map(|old| old.entry));
            let entry = found.as_ref().map(|found| found.entry);
            (entry, old, found.and_then(|found| found.content))
        }
    };
    let Some(entry) = entry.filter(|entry| Some(*entry) != old) else { return Ok(None) };
    let checked =
        file_text(entry, content, name).and_then(|text| Ok(Layers::check_repository_text(name, &text)?));
    match checked {
        Ok(()) => Ok(None),
        Err(Error::Config(config::Error::UnreadableFile { source, .. })) => Ok(Some(source.to_string())),
        Err(Error::Config(error)) => {
            let reason = error.summary();
            // The caller names the file.
            let file = format!("cannot read {SETTINGS_FILE_NAME}: it is not valid TOML: ");
            Ok(Some(reason.strip_prefix(&file).map_or(reason.clone(), str::to_owned)))
        }
        Err(error) => Err(error),
    }
}

/// Returns why a lane is refused whose settings file is not valid because of `error`, with the command that shows
/// the file.
pub(crate) fn invalid_settings_refusal(branch: &str, error: &str) -> (String, Hint) {
    let hint = hint!("see the file: git show {}", shell_quote(&format!("{branch}:{SETTINGS_FILE_NAME}")));
    (format!("its proq.toml is not valid: {error}"), hint)
}

/// Describes an entry that is no regular file.
fn kind_text(entry: TreeFile) -> &'static str {
    match entry.mode & 0o170_000 {
        0o040_000 => "it is a folder, not a regular file",
        0o120_000 => "it is a link, not a regular file",
        0o160_000 => "it is a submodule, not a regular file",
        _ => "it is no regular file",
    }
}

/// Converts an entry and its content, none for a file that is too large, to the text of a settings file.
fn file_text(entry: TreeFile, content: Option<Vec<u8>>, name: &Path) -> Result<String, Error> {
    let read_error = |source| config::Error::UnreadableFile { path: name.to_owned(), source };
    if !entry.is_file() {
        return Err(read_error(regular_file::invalid_input(kind_text(entry))).into());
    }
    let bytes = content.ok_or_else(|| read_error(regular_file::too_large(MAX_SETTINGS_BYTES)))?;
    Ok(regular_file::to_utf8_text(bytes).map_err(read_error)?)
}
