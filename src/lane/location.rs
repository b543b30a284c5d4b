//! Owns where lanes' worktrees lie: the setting `lane.location`, and places that it may not name.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use super::{Error, Name, Project};
use crate::config::INSIDE;
use crate::explain::{Exit, Explain};
use crate::git::WorktreeList;

/// What stands for the lane's name.
const LANE: &str = "{lane}";
/// What stands for the name of the main checkout's folder.
const REPO: &str = "{repo}";

/// A place for lanes that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LocationError {
    /// It lies in a git directory.
    #[error("lane.location leads to {}, which is in a git directory; nothing was made", folder.display())]
    InGitDirectory {
        /// The folder that lanes would lie in.
        folder: PathBuf,
    },
    /// It lies in a checkout, where git would take lanes for files of its own.
    #[error("lane.location leads to {}, which is in the checkout {}; nothing was made", folder.display(), checkout.display())]
    InCheckout {
        /// The folder that lanes would lie in.
        folder: PathBuf,
        /// The top of the checkout.
        checkout: PathBuf,
    },
    /// Nobody knows where the home folder is.
    #[error("lane.location begins with ~, and there is no home folder; nothing was made")]
    NoHome,
}

impl Explain for LocationError {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        vec![
            "beside the main checkout: git config proq.lane.location '../{repo}.{lane}'".into(),
            format!("or in it, where git leaves it alone: git config proq.lane.location '{INSIDE}'").into(),
        ]
    }

    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// A folder that lanes lie in, and what their folders there are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    folder: PathBuf,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Location {
    /// The one in the main checkout, which git leaves alone.
    fn inside(project: &Project) -> Location {
        Location { folder: project.lanes_dir(), before: Vec::new(), after: Vec::new() }
    }

    /// The one that the setting names, whether it can be used or not.
    fn of(project: &Project) -> Result<Location, LocationError> {
        let text = project.settings.checkouts.location.as_str();
        if text == INSIDE {
            return Ok(Location::inside(project));
        }
        let text = filled(text.as_bytes(), &name_of_repo(project));
        let (above, last) = match text.iter().rposition(|b| *b == b'/') {
            Some(at) => (&text[..=at], &text[at + 1..]),
            None => (&[][..], &text[..]),
        };
        let at = find(last, LANE.as_bytes()).unwrap_or(last.len());
        let after = last.get(at + LANE.len()..).unwrap_or_default();
        let folder = match above.strip_prefix(b"~/") {
            Some(below) => std::env::home_dir().ok_or(LocationError::NoHome)?.join(OsStr::from_bytes(below)),
            None => project.repo.home().join(OsStr::from_bytes(above)),
        };
        Ok(Location { folder: real(&folder), before: last[..at].to_owned(), after: after.to_owned() })
    }

    /// Where the lane of this name lies.
    pub(super) fn place_of(&self, name: &Name) -> PathBuf {
        let name = [&self.before, name.as_str().as_bytes(), &self.after].concat();
        self.folder.join(OsString::from_vec(name))
    }

    /// The folder that they lie in.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The name of the lane that would lie there.
    fn name_of(&self, place: &Path) -> Option<Name> {
        let last = place.file_name().filter(|_| place.parent() == Some(&self.folder))?.as_bytes();
        let name = last.strip_prefix(&self.before[..])?.strip_suffix(&self.after[..])?;
        Name::parse(std::str::from_utf8(name).ok()?).ok()
    }

    /// Refuses a place where lanes would be taken for something else, or something else for lanes.
    fn require_usable(&self, project: &Project) -> Result<(), Error> {
        let folder = self.folder.clone();
        if *self == Location::inside(project) {
            return Ok(());
        }
        let is_git = |part: Component<'_>| part.as_os_str() == ".git";
        if folder.starts_with(project.repo.common_dir()) || folder.components().any(is_git) {
            return Err(LocationError::InGitDirectory { folder }.into());
        }
        let worktrees = WorktreeList::read(&project.repo)?;
        let own = worktrees.iter().filter(|w| !w.bare).map(|w| w.path.as_path());
        // One that the main checkout lies in as well, such as a home folder that is a repository, has it anyway.
        let home = project.repo.home();
        let others = folder.ancestors().filter(|dir| !home.starts_with(dir) && is_checkout(dir));
        match own.chain(others).find(|dir| folder.starts_with(dir)) {
            Some(dir) => Err(LocationError::InCheckout { checkout: dir.to_owned(), folder }.into()),
            None => Ok(()),
        }
    }
}

impl Project {
    /// Where new lanes lie, as far as that can be used.
    ///
    /// # Errors
    /// [`LocationError`], before anything was made.
    pub(super) fn require_location(&self) -> Result<Location, Error> {
        let location = self.location()?;
        location.require_usable(self)?;
        Ok(location)
    }

    /// Where new lanes lie.
    pub(crate) fn location(&self) -> Result<Location, Error> {
        Ok(Location::of(self)?)
    }

    /// The name of the lane that a worktree is, going by where it lies, or was. Elsewhere than in the main checkout people have
    /// worktrees of their own: there it has to be on the branch of such a lane, too.
    pub(crate) fn name_at(&self, place: &Path, branch: Option<&str>) -> Option<Name> {
        Location::inside(self).name_of(place).or_else(|| {
            let name = Location::of(self).ok()?.name_of(place)?;
            (branch == Some(self.branch_of(&name).as_str())).then_some(name)
        })
    }

    /// Whether the worktree whose top is `dir` is a lane's, or one that is half-made or half-removed.
    pub(crate) fn is_on_lanes_ground(&self, dir: &Path) -> Result<bool, Error> {
        if dir.starts_with(self.lanes_dir()) || self.lane_at(dir)?.is_some() {
            return Ok(true);
        }
        let worktrees = WorktreeList::read(&self.repo)?;
        let here = worktrees.at(dir).filter(|here| here.path != self.repo.home());
        Ok(here.is_some_and(|here| self.name_at(dir, here.branch.as_deref()).is_some()))
    }
}

fn is_checkout(dir: &Path) -> bool {
    dir.join(".git").symlink_metadata().is_ok()
}

/// The text with the repository's name in it.
fn filled(text: &[u8], repo: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = find(rest, REPO.as_bytes()) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(repo);
        rest = &rest[at + REPO.len()..];
    }
    out.extend_from_slice(rest);
    out
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|part| part == what)
}

/// The name of the main checkout's folder; that of a bare repository without its ending.
fn name_of_repo(project: &Project) -> Vec<u8> {
    let home = project.repo.home();
    let own = match project.repo.main_worktree() {
        Some(main) => main.file_name(),
        None => home.file_stem().filter(|stem| !stem.as_bytes().starts_with(b".")),
    };
    own.or_else(|| home.parent()?.file_name()).unwrap_or_default().as_bytes().to_owned()
}

/// A path without links and `..`, as far as there is anything. What is not there yet is made as it is written.
fn real(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            part => {
                out.push(part);
                out = out.canonicalize().unwrap_or(out);
            }
        }
    }
    out
}
