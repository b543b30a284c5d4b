//! Environment file of a lane, with its names and ports: one file next to the lane's record, and a copy in
//! the lane's worktree if `lane.env` is set.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;
use proq_git::status::included_files;
use proq_git::{Repo, RepoPath};
use proq_store::base::atomic::{write_in_existing_dir, write_unsynced};
use proq_store::locks::lock::LockName;
use proq_store::records::lane::AnyLane;
use proq_store::records::ports::Ports;

use crate::lane::worktree::lanes_folder;
use crate::lane::{Error, Project};

/// Values for the environment variables of one lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneEnv<'a> {
    /// Name of the lane.
    pub name: &'a LaneName,
    /// Branch of the lane; `None` if it has no branch of its own.
    pub branch: Option<&'a str>,
    /// Branch that the lane lands on.
    pub base: &'a str,
    /// Range of ports reserved for the lane; `None` if it has none.
    pub ports: Option<Ports>,
    /// Worktree of the lane; `None` if it has no worktree of its own.
    pub dir: Option<&'a Path>,
}

impl LaneEnv<'_> {
    /// Returns the variables of the lane, for the environment of programs and for the file.
    pub fn variables(&self, repo: &Repo) -> Vec<(&'static str, OsString)> {
        let mut all: Vec<(&'static str, OsString)> = vec![("PROQ_LANE", self.name.as_str().into())];
        all.extend(self.branch.map(|branch| ("PROQ_BRANCH", branch.into())));
        all.push(("PROQ_BASE", self.base.into()));
        all.push(("PROQ_ROOT", repo.command_dir().into()));
        let ports = self.ports.into_iter().flat_map(Ports::variables);
        all.extend(ports.map(|(name, value)| (name, value.into())));
        all
    }

    /// Returns the text of the environment file, one `NAME=value` a line.
    fn render_env_file(&self, repo: &Repo) -> Vec<u8> {
        let mut text = Vec::new();
        for (name, value) in self.variables(repo) {
            text.extend_from_slice(name.as_bytes());
            text.push(b'=');
            text.extend(quote_value(&value));
            text.push(b'\n');
        }
        text
    }
}

/// Quotes a value for shells and readers of such files, unless all of its characters are safe without quotes.
fn quote_value(value: &OsStr) -> Vec<u8> {
    let bytes = value.as_bytes();
    let is_unquoted = |b: &u8| b.is_ascii_alphanumeric() || b"_-./:@%+,=".contains(b);
    if bytes.iter().all(is_unquoted) {
        return bytes.to_vec();
    }
    if !bytes.contains(&b'\'') {
        return [b"'", bytes, b"'"].concat();
    }
    let mut out = b"\"".to_vec();
    for byte in bytes {
        if b"\"\\$`".contains(byte) {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
    out
}

/// Writes the environment files of a new lane. A failure to write one is a warning.
pub(crate) fn write_env_files(project: &Project, lane_env: &LaneEnv<'_>) {
    let text = lane_env.render_env_file(&project.repo);
    let file = project.store.layout().lane_env_file(lane_env.name);
    // [`refresh_env_file`] writes the file again before each use if it is missing or outdated.
    if let Err(e) = write_unsynced(&file, &text) {
        project.listener.warn(format!("cannot save the lane's names and ports: {e}"));
    }
    let wanted = project.settings.set_up.env_file.as_deref().zip(lane_env.dir);
    if let Some((name, dir)) = wanted
        && let Err(reason) = write_env_file_in_lane(project, name, dir, &text)
    {
        project.listener.warn(format!("cannot write lane.env '{name}': {reason}"));
    }
}

/// Writes the environment file `name` into the lane's worktree `dir`, readable only by the user, and makes
/// git ignore it.
///
/// # Errors
/// The reason as a clause, such as a file that exists already.
fn write_env_file_in_lane(project: &Project, name: &str, dir: &Path, text: &[u8]) -> Result<(), String> {
    let path = RepoPath::new(name);
    let file = path.to_fs_path(dir);
    if file.symlink_metadata().is_ok() {
        return Err("the lane has a file with this name".to_owned());
    }
    let is_real_dir = |up: &RepoPath| up.to_fs_path(dir).symlink_metadata().is_ok_and(|meta| meta.is_dir());
    if let Some(folder) = path.parents().find(|up| !is_real_dir(up)) {
        return Err(format!("the lane has no folder '{folder}'"));
    }
    exclude_path(project, dir, &path).map_err(|e| e.to_string())?;
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
    opened.and_then(|mut file| file.write_all(text)).map_err(|e| e.to_string())
}

/// Makes git ignore a path of a worktree, if it does not already. Git has one exclude file for all worktrees.
pub(crate) fn exclude_path(project: &Project, dir: &Path, path: &RepoPath) -> Result<(), Error> {
    if included_files::is_ignored(&project.repo, dir, path)? {
        return Ok(());
    }
    let _lock = project.store.locks().acquire(&LockName::WorktreeList)?;
    lanes_folder::add_to_info_exclude(&project.repo, &included_files::exact_exclude_line(path))
}

/// Writes the lane's environment file if it is outdated, and returns its path; `None` if that fails. The copy
/// in the lane is renewed too, unless it was changed there.
pub(crate) fn refresh_env_file(project: &Project, lane: &AnyLane) -> Option<PathBuf> {
    let has_branch = lane.branch().is_some();
    let lane_env = LaneEnv {
        name: &lane.name,
        branch: lane.branch(),
        base: &lane.base,
        ports: lane.ports,
        dir: has_branch.then_some(lane.path.as_path()),
    };
    let file = project.store.layout().lane_env_file(&lane.name);
    let (current, previous) = (lane_env.render_env_file(&project.repo), std::fs::read(&file).ok());
    if previous.as_ref() == Some(&current) {
        return Some(file);
    }
    if let (Some(name), Some(dir), Some(previous)) =
        (&project.settings.set_up.env_file, lane_env.dir, previous)
    {
        let lane_file = RepoPath::new(name.as_str()).to_fs_path(dir);
        let is_unchanged = lane_file.symlink_metadata().is_ok_and(|meta| meta.is_file())
            && std::fs::read(&lane_file).is_ok_and(|text| text == previous);
        if is_unchanged && let Err(e) = write_in_existing_dir(&lane_file, &current) {
            project.listener.warn(format!("lane.env: {e}"));
        }
    }
    write_in_existing_dir(&file, &current).map(|()| file).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_values_only_where_needed() {
        let text = |value: &str| String::from_utf8(quote_value(OsStr::new(value))).unwrap();
        assert_eq!(text("proq/x-1"), "proq/x-1");
        assert_eq!(text("/a b/$HOME"), "'/a b/$HOME'");
        assert_eq!(text("it's $1"), "\"it's \\$1\"");
        let value = "it's `$x` \"\\ all\nof it";
        let shell = std::process::Command::new("sh")
            .args(["-c", &format!("X={}; printf %s \"$X\"", text(value))])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(shell.stdout).unwrap(), value);
    }
}
