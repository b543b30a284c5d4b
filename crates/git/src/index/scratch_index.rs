//! Index files in a scratch folder: copies that keep git's race detection intact.

use std::fs::File;
use std::path::Path;
use std::time::SystemTime;

use crate::Error;

/// Name in a step's scratch folder of an index that git works on. Also the name of the copy of a new index
/// that only the lock file would hold otherwise.
pub(crate) const INDEX_NAME: &str = "index";

/// Copies an index with its modification time. Git compares that with the files' times to find entries that
/// could have changed in the same tick. A newer copy would report edited files as clean.
pub fn copy_with_mtime(from: &Path, to: &Path) -> Result<(), Error> {
    std::fs::copy(from, to).map_err(Error::io("copy the index to", to))?;
    let time = std::fs::metadata(from).and_then(|m| m.modified()).map_err(Error::io("inspect", from))?;
    File::options()
        .write(true)
        .open(to)
        .and_then(|f| f.set_modified(time))
        .map_err(Error::io("set the time of", to))
}

/// Removes a scratch index of git-proq that an earlier attempt may have left, and the lock of a git that was
/// killed while it used that index.
pub(crate) fn remove_scratch_index(index: &Path) {
    let mut lock = index.as_os_str().to_owned();
    lock.push(".lock");
    drop(std::fs::remove_file(index));
    drop(std::fs::remove_file(lock));
}

/// Returns the current time by the file system's clock in `dir`, which must be a scratch folder.
pub(crate) fn file_system_time(dir: &Path) -> Result<SystemTime, Error> {
    let file = dir.join("clock");
    drop(std::fs::remove_file(&file));
    let time = File::create_new(&file).and_then(|clock_file| clock_file.metadata()?.modified());
    time.map_err(Error::io("create", &file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_system_time_lies_between_file_times() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..200 {
            let new_file_time = |name: &str| {
                File::create_new(dir.path().join(format!("{name}{n}")))
                    .unwrap()
                    .metadata()
                    .unwrap()
                    .modified()
                    .unwrap()
            };
            let (before, time, after) =
                (new_file_time("before"), file_system_time(dir.path()).unwrap(), new_file_time("after"));
            assert!(before <= time && time <= after, "{n}: {before:?} {time:?} {after:?}");
        }
    }
}
