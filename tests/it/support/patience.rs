//! Owns waiting for what is certain to come, with an end: what never comes makes a test red, and does not hang it.

use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// More than anything takes on the slowest machine.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Looks until something is there, for at most so long: then `what` says what never came, and how it is instead.
#[track_caller]
pub fn wait_within<T>(most: Duration, what: impl Fn() -> String, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        let look_began = Instant::now();
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < most, "it never came: {}", what());
        // What is waited for needs the processor, and so do other tests: looking without a break keeps a whole one busy, the more so
        // where a look starts a program. Nothing depends on how long the break is.
        let pause = look_began.elapsed() * 2;
        std::thread::sleep(pause.clamp(Duration::from_millis(1), Duration::from_millis(50)));
    }
}

/// Looks until something is there.
#[track_caller]
pub fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait_within(PATIENCE, || what.to_owned(), look)
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
