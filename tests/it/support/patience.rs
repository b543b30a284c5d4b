//! Owns waiting for what is certain to come, with an end: what never comes makes a test red, and does not hang it.

use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// More than anything takes on the slowest machine.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Looks until something is there.
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        let look_began = Instant::now();
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "it never came: {what}");
        rest_after(look_began.elapsed());
    }
}

/// Leaves the processor to what is waited for: looking without a break keeps a whole one busy, and there are other tests. Longer
/// after a look that starts a program. Nothing depends on how long it is.
fn rest_after(look: Duration) {
    std::thread::sleep((look * 2).clamp(Duration::from_millis(1), Duration::from_millis(50)));
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

/// A program that is ended with its test, also where that fails.
pub struct Beside(pub Child);

impl Beside {
    /// Its exit code, once it has ended.
    #[track_caller]
    pub fn code(&mut self) -> Option<i32> {
        wait_for("its end", || self.0.try_wait().unwrap()).code()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The lines that a program writes, as they come.
pub struct Lines(Receiver<String>);

impl Lines {
    /// Those of its output.
    pub fn of(output: impl Read + Send + 'static) -> Lines {
        let (tell, hear) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Lines(hear)
    }

    /// The next one.
    #[track_caller]
    pub fn next(&self) -> String {
        self.0.recv_timeout(PATIENCE).unwrap()
    }
}
