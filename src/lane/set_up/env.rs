//! Owns the file with a lane's names and ports: one beside its record, and a copy in the lane itself where that is wanted.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::git::{self, RepoPath};
use crate::lane::{Error, Project, place};
use crate::store::records::{AnyLane, Ports};
use crate::store::{LockName, write_cache, write_there};

/// Whose it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whose<'a> {
    /// The lane.
    pub(super) name: &'a str,
    /// Its branch; none when it has none of its own.
    pub(super) branch: Option<&'a str>,
    /// Where it lands.
    pub(super) base: &'a str,
    /// Its ports.
    pub(super) port: Option<Ports>,
    /// Its own worktree.
    pub(super) dir: Option<&'a Path>,
}

impl Whose<'_> {
    /// What programs find in their environment of it, and in the file.
    pub(super) fn variables(&self, project: &Project) -> Vec<(&'static str, OsString)> {
        let mut all: Vec<(&'static str, OsString)> = vec![("PROQ_LANE", self.name.into())];
        all.extend(self.branch.map(|branch| ("PROQ_BRANCH", branch.into())));
        all.push(("PROQ_BASE", self.base.into()));
        all.push(("PROQ_ROOT", project.repo.home().into()));
        let ports = self.port.into_iter().flat_map(Ports::variables);
        all.extend(ports.map(|(name, value)| (name, value.into())));
        all
    }

    fn text(&self, project: &Project) -> Vec<u8> {
        let mut text = Vec::new();
        for (name, value) in self.variables(project) {
            text.extend_from_slice(name.as_bytes());
            text.push(b'=');
            text.extend(quoted(&value));
            text.push(b'\n');
        }
        text
    }
}

/// A value as shells and readers of such files take it: as it is where it is plain, else in quotes.
fn quoted(value: &OsStr) -> Vec<u8> {
    let bytes = value.as_bytes();
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_-./:@%+,=".contains(b);
    if bytes.iter().all(plain) {
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

/// Writes the files of a new lane. What keeps the one in the lane from being written is said.
pub(super) fn write_new(project: &Project, whose: &Whose<'_>) {
    let text = whose.text(project);
    let file = project.store.layout().lane_env(whose.name);
    // Whoever hands it on makes it anew where it is not as it should be.
    if let Err(e) = write_cache(&file, &text) {
        project.listener.warn(format!("the lane's names and ports were not written down: {e}"));
    }
    let wanted = project.settings.set_up.env.as_deref().zip(whose.dir);
    if let Some((name, dir)) = wanted
        && let Err(why) = put_in_lane(project, name, dir, &text)
    {
        project.listener.warn(format!("lane.env: '{name}' was not written: {why}"));
    }
}

fn put_in_lane(project: &Project, name: &str, dir: &Path, text: &[u8]) -> Result<(), String> {
    let path = RepoPath::new(name);
    let file = path.under(dir);
    if file.symlink_metadata().is_ok() {
        return Err("the lane has a file of that name".to_owned());
    }
    let real = |up: &RepoPath| up.under(dir).symlink_metadata().is_ok_and(|meta| meta.is_dir());
    if let Some(folder) = path.parents().find(|up| !real(up)) {
        return Err(format!("the lane has no folder '{folder}'"));
    }
    keep_out(project, dir, &path).map_err(|e| e.to_string())?;
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
    made.and_then(|mut file| file.write_all(text)).map_err(|e| e.to_string())
}

/// Has git ignore one path of a worktree, if it does not yet. That file of git's is one for all worktrees.
pub(super) fn keep_out(project: &Project, dir: &Path, path: &RepoPath) -> Result<(), Error> {
    if git::is_ignored(&project.repo, dir, path)? {
        return Ok(());
    }
    let _lock = project.store.locks().take(&LockName::Worktrees)?;
    place::exclude_everywhere(project, &git::exclude_line(path))
}

/// The file with a lane's names and ports, as they are now. One in the lane follows, unless somebody has changed it.
pub(crate) fn env_file(project: &Project, lane: &AnyLane) -> Option<PathBuf> {
    let own = lane.branch().is_some();
    let whose = Whose {
        name: &lane.name,
        branch: lane.branch(),
        base: &lane.base,
        port: lane.port,
        dir: own.then_some(lane.path.as_path()),
    };
    let file = project.store.layout().lane_env(&lane.name);
    let (now, before) = (whose.text(project), std::fs::read(&file).ok());
    if before.as_ref() == Some(&now) {
        return Some(file);
    }
    if let (Some(name), Some(dir), Some(before)) = (&project.settings.set_up.env, whose.dir, before) {
        let place = RepoPath::new(name.as_str()).under(dir);
        let is_ours = place.symlink_metadata().is_ok_and(|meta| meta.is_file())
            && std::fs::read(&place).is_ok_and(|text| text == before);
        if is_ours && let Err(e) = write_there(&place, &now) {
            project.listener.warn(format!("lane.env: {e}"));
        }
    }
    write_there(&file, &now).map(|()| file).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_where_they_have_to_be() {
        let text = |value: &str| String::from_utf8(quoted(OsStr::new(value))).unwrap();
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
