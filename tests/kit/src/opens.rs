//! Counts of how often files are opened.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::path::PathBuf;

use rustix::fs::inotify;
use rustix::fs::inotify::{CreateFlags, ReadFlags, WatchFlags};

/// Counts how often each file in `dirs` is opened while `act` runs, wherever the folders move. The paths are those
/// before `act`.
pub fn count_opens(dirs: &[PathBuf], act: impl FnOnce()) -> BTreeMap<PathBuf, usize> {
    let watcher = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
    // Without the events between them, the kernel would merge two openings into one event.
    let flags = WatchFlags::OPEN | WatchFlags::ACCESS | WatchFlags::CLOSE;
    let watch = |dir: &PathBuf| (inotify::add_watch(&watcher, dir, flags).unwrap(), dir.clone());
    let dirs: BTreeMap<i32, PathBuf> = dirs.iter().map(watch).collect();
    act();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(&watcher, &mut buffer);
    let mut opens = BTreeMap::new();
    while let Ok(event) = reader.next() {
        let (Some(dir), Some(name)) = (dirs.get(&event.wd()), event.file_name()) else { continue };
        if event.events().contains(ReadFlags::OPEN) && !event.events().contains(ReadFlags::ISDIR) {
            *opens.entry(dir.join(name.to_str().unwrap())).or_default() += 1;
        }
    }
    opens
}
