//! Paths of a lane's set-up, and the list of files that were copied into the lane.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use proq_base::copy::FileStamp;
use proq_base::lane_name::LaneName;
use proq_git::RepoPath;

use crate::Error;
use crate::base::atomic::write_unsynced;
use crate::paths::layout::Layout;

impl Layout {
    /// Returns the path of the record of a lane that is being created.
    pub fn set_up_record(&self, name: &LaneName) -> PathBuf {
        Layout::set_up_record_in(&self.lane(name))
    }

    /// Returns the path of the record of a lane that is being created, by the lane's folder.
    pub fn set_up_record_in(lane_folder: &Path) -> PathBuf {
        lane_folder.join("set-up.toml")
    }

    /// Returns the path of the output of a lane's set-up commands.
    pub fn set_up_log(&self, name: &LaneName) -> PathBuf {
        Layout::set_up_log_in(&self.lane(name))
    }

    /// Returns the path of the output of set-up commands in a lane's folder, which may be that of a removed
    /// lane.
    pub fn set_up_log_in(lane_folder: &Path) -> PathBuf {
        lane_folder.join("set-up.log")
    }

    /// Returns the path of the output of set-up commands that failed, so that the lane was not created.
    pub fn failed_set_up_log(&self, name: &LaneName) -> PathBuf {
        self.root().join(format!("set-up/{name}.log"))
    }

    /// Returns the path of a lane's environment file: the lane's names and ports, one on each line.
    pub fn lane_env_file(&self, name: &LaneName) -> PathBuf {
        self.lane(name).join("env")
    }

    /// Returns the path of the list of files that were copied into a lane.
    pub(crate) fn copied_files_list(&self, name: &LaneName) -> PathBuf {
        self.lane(name).join("copies")
    }

    /// Saves the list of files that were copied into a lane, with the stamp of each. Without the list, none
    /// of the files counts as unchanged.
    ///
    /// # Errors
    /// Fails when the list cannot be written.
    pub fn save_copied_files(&self, name: &LaneName, copies: &[(RepoPath, FileStamp)]) -> Result<(), Error> {
        let mut text = Vec::new();
        for (path, FileStamp { size, mtime_seconds: seconds, mtime_nanos: nanos }) in copies {
            let _in_memory = write!(text, "{size} {seconds} {nanos} ");
            text.extend_from_slice(path.as_bytes());
            text.push(0);
        }
        write_unsynced(&self.copied_files_list(name), &text)
    }

    /// Loads the list of files that were copied into a lane. An unreadable list counts as empty.
    pub fn load_copied_files(&self, name: &LaneName) -> Vec<(RepoPath, FileStamp)> {
        let text = proq_base::regular_file::read_store_file(self.copied_files_list(name)).unwrap_or_default();
        text.split(|b| *b == 0).filter_map(parse_copied_file).collect()
    }
}

/// Parses `SIZE SECONDS NANOS PATH`; none for a malformed line.
fn parse_copied_file(line: &[u8]) -> Option<(RepoPath, FileStamp)> {
    let mut parts = line.splitn(4, |b| *b == b' ');
    let mut number = || OsStr::from_bytes(parts.next()?).to_str()?.parse::<i64>().ok();
    let (size, seconds, nanos) = (number()?, number()?, number()?);
    let stamp = FileStamp { size: u64::try_from(size).ok()?, mtime_seconds: seconds, mtime_nanos: nanos };
    Some((RepoPath::new(parts.next()?), stamp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_files_round_trip() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        let stamp = FileStamp { size: 3, mtime_seconds: -1, mtime_nanos: 999_999_999 };
        let all = [(RepoPath::new("a b/\nc \u{fc}"), stamp), (RepoPath::new(b"\xff".to_vec()), stamp)];
        let lane = LaneName::parse("x").unwrap();
        assert_eq!(layout.load_copied_files(&lane), []);
        layout.save_copied_files(&lane, &all).unwrap();
        assert_eq!(layout.load_copied_files(&lane), all);
    }
}
