//! Owns waiting for what is certain to come, with an end: what never comes makes a test red, and does not hang it.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

/// More than anything takes on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks until something is there.
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "it never came: {what}");
        std::thread::yield_now();
    }
}

/// Waits until something is so.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}

/// Waits until nobody holds a lock file. One that is not there is held by nobody.
#[track_caller]
pub fn wait_until_free(lock: &Path) {
    let Ok(file) = File::open(lock) else { return };
    wait_until(&lock.display().to_string(), || match file.try_lock_shared() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(e)) => panic!("{e}"),
    });
}
