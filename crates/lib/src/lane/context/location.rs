//! Location of lanes' worktrees: the setting `lane.location`, and the paths that it must not lead to.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use proq_base::config::lane_location::DEFAULT_LANE_LOCATION;
use proq_base::lane_name::LaneName;
use proq_git::Repo;
use proq_git::worktrees::worktree::WorktreeList;

use crate::errors::location_error::LocationError;
use crate::lane::{Error, Project};

/// Placeholder for the lane's name.
const LANE_PLACEHOLDER: &str = "{lane}";
/// Placeholder for the name of the main checkout's folder.
const REPO_PLACEHOLDER: &str = "{repo}";

/// Folder that contains lanes' worktrees, and the naming scheme of the worktree folders in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneLocation {
    folder: PathBuf,
    name_prefix: Vec<u8>,
    name_suffix: Vec<u8>,
}

impl LaneLocation {
    /// Returns the default location: the folder for worktrees in the main checkout, which git ignores.
    fn main_checkout_default(project: &Project) -> LaneLocation {
        LaneLocation { folder: project.lanes_dir(), name_prefix: Vec::new(), name_suffix: Vec::new() }
    }

    /// Returns the location of the setting `lane.location`, without checking whether it can be used.
    fn from_settings(project: &Project) -> Result<LaneLocation, LocationError> {
        let text = project.settings.lane_checkout.location.as_str();
        if text == DEFAULT_LANE_LOCATION {
            return Ok(LaneLocation::main_checkout_default(project));
        }
        let text = expand_repo_placeholder(text.as_bytes(), &repo_folder_name(&project.repo));
        let (parent_part, name_pattern) = match text.iter().rposition(|b| *b == b'/') {
            Some(slash_at) => (&text[..=slash_at], &text[slash_at + 1..]),
            None => (&[][..], &text[..]),
        };
        let placeholder_at =
            find_bytes(name_pattern, LANE_PLACEHOLDER.as_bytes()).unwrap_or(name_pattern.len());
        let name_suffix = name_pattern.get(placeholder_at + LANE_PLACEHOLDER.len()..).unwrap_or_default();
        let folder = match parent_part.strip_prefix(b"~/") {
            Some(home_relative) => {
                std::env::home_dir().ok_or(LocationError::NoHome)?.join(OsStr::from_bytes(home_relative))
            }
            None => project.repo.command_dir().join(OsStr::from_bytes(parent_part)),
        };
        Ok(LaneLocation {
            folder: resolve_existing_prefix(&folder),
            name_prefix: name_pattern[..placeholder_at].to_owned(),
            name_suffix: name_suffix.to_owned(),
        })
    }

    /// Returns the worktree path of the lane `name`.
    pub fn worktree_path(&self, name: &LaneName) -> PathBuf {
        let name = [&self.name_prefix, name.as_str().as_bytes(), &self.name_suffix].concat();
        self.folder.join(OsString::from_vec(name))
    }

    /// Returns the folder that contains the worktrees.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the name of the lane whose worktree would be at `path`.
    fn parse_lane_name(&self, path: &Path) -> Option<LaneName> {
        let folder_name = path.file_name().filter(|_| path.parent() == Some(&self.folder))?.as_bytes();
        let name = folder_name.strip_prefix(&self.name_prefix[..])?.strip_suffix(&self.name_suffix[..])?;
        LaneName::parse(std::str::from_utf8(name).ok()?).ok()
    }

    /// Refuses a location where a checkout or git directory would contain the lanes.
    fn require_usable(&self, project: &Project) -> Result<(), Error> {
        let folder = self.folder.clone();
        if *self == LaneLocation::main_checkout_default(project) {
            return Ok(());
        }
        let is_dot_git = |component: Component<'_>| component.as_os_str() == ".git";
        if folder.starts_with(project.repo.common_dir()) || folder.components().any(is_dot_git) {
            return Err(LocationError::InGitDirectory { folder }.into());
        }
        let worktrees = WorktreeList::read(&project.repo)?;
        let worktree_dirs = worktrees.iter().filter(|w| !w.bare).map(|w| w.path.as_path());
        // A checkout that also contains the main checkout, such as a home folder that is a repository, has
        // that problem already.
        let repo_dir = project.repo.command_dir();
        let enclosing_checkouts =
            folder.ancestors().filter(|dir| !repo_dir.starts_with(dir) && is_checkout(dir));
        match worktree_dirs.chain(enclosing_checkouts).find(|dir| folder.starts_with(dir)) {
            Some(dir) => Err(LocationError::InCheckout { checkout: dir.to_owned(), folder }.into()),
            None => Ok(()),
        }
    }
}

impl Project {
    /// Returns the location of new lanes, if it can be used.
    ///
    /// # Errors
    /// [`LocationError`], before anything was created.
    pub(crate) fn require_location(&self) -> Result<LaneLocation, Error> {
        let location = self.location()?;
        location.require_usable(self)?;
        Ok(location)
    }

    /// Returns the location of new lanes, without checking whether it can be used.
    pub fn location(&self) -> Result<LaneLocation, Error> {
        Ok(LaneLocation::from_settings(self)?)
    }

    /// Returns the name of the lane whose worktree is or was at `path`. In the location that `lane.location`
    /// sets, users may have worktrees of their own, so a worktree there must also be on that lane's branch.
    pub(crate) fn lane_name_at(&self, path: &Path, branch: Option<&str>) -> Option<LaneName> {
        LaneLocation::main_checkout_default(self).parse_lane_name(path).or_else(|| {
            let name = LaneLocation::from_settings(self).ok()?.parse_lane_name(path)?;
            (branch == Some(self.lane_branch(&name).as_str())).then_some(name)
        })
    }

    /// Returns whether the worktree with the top folder `dir` belongs to a lane, including one that was only
    /// partly created or removed.
    pub fn is_lane_worktree_dir(&self, dir: &Path) -> Result<bool, Error> {
        if dir.starts_with(self.lanes_dir()) || self.owned_lane_at(dir)?.is_some() {
            return Ok(true);
        }
        let worktrees = WorktreeList::read(&self.repo)?;
        let worktree = worktrees.with_top_folder(dir).filter(|here| here.path != self.repo.command_dir());
        Ok(worktree.is_some_and(|here| self.lane_name_at(dir, here.branch.as_deref()).is_some()))
    }
}

/// Returns whether a folder has a `.git`, as the top of a checkout or worktree.
fn is_checkout(dir: &Path) -> bool {
    dir.join(".git").symlink_metadata().is_ok()
}

/// Replaces the placeholder `{repo}` in `text` by the repository's name.
fn expand_repo_placeholder(text: &[u8], repo: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut remaining = text;
    while let Some(placeholder_at) = find_bytes(remaining, REPO_PLACEHOLDER.as_bytes()) {
        out.extend_from_slice(&remaining[..placeholder_at]);
        out.extend_from_slice(repo);
        remaining = &remaining[placeholder_at + REPO_PLACEHOLDER.len()..];
    }
    out.extend_from_slice(remaining);
    out
}

/// Returns the offset of the first `needle` in `text`; `needle` is not empty.
fn find_bytes(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|window| window == needle)
}

/// Returns the name of the main checkout's folder, or for a bare repository its folder's name without the
/// extension.
fn repo_folder_name(repo: &Repo) -> Vec<u8> {
    let repo_dir = repo.command_dir();
    let folder_name = match repo.main_worktree() {
        Some(main) => main.file_name(),
        None => repo_dir.file_stem().filter(|stem| !stem.as_bytes().starts_with(b".")),
    };
    folder_name.or_else(|| repo_dir.parent()?.file_name()).unwrap_or_default().as_bytes().to_owned()
}

/// Resolves symbolic links and `..` in the part of a path that exists. The rest is appended as written.
fn resolve_existing_prefix(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            component => {
                out.push(component);
                out = out.canonicalize().unwrap_or(out);
            }
        }
    }
    out
}
