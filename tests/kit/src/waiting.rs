//! Waiting for what is certain to happen, with a limit: a test fails instead of hanging.

use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// More than any step takes on the slowest machine.
pub const WAIT_LIMIT: Duration = Duration::from_mins(1);

/// Polls until `poll` returns a value, for at most `limit`. After that it panics with `describe`, which names
/// what is missing and the current state.
#[track_caller]
pub fn wait_within<T>(
    limit: Duration,
    describe: impl Fn() -> String,
    mut poll: impl FnMut() -> Option<T>,
) -> T {
    let started = Instant::now();
    loop {
        let poll_started = Instant::now();
        if let Some(found) = poll() {
            return found;
        }
        assert!(started.elapsed() < limit, "it never came: {}", describe());
        // The awaited process needs the processor, and so do other tests. Polling without a pause keeps one
        // processor busy, above all where a poll starts a program. Nothing depends on the length of the
        // pause.
        let pause = poll_started.elapsed() * 2;
        std::thread::sleep(pause.clamp(Duration::from_millis(1), Duration::from_millis(50)));
    }
}

/// Polls until `poll` returns a value.
#[track_caller]
pub fn wait_for<T>(description: &str, poll: impl FnMut() -> Option<T>) -> T {
    wait_within(WAIT_LIMIT, || description.to_owned(), poll)
}

/// Waits until a condition holds.
#[track_caller]
pub fn wait_until(description: &str, mut condition: impl FnMut() -> bool) {
    wait_for(description, || condition().then_some(()));
}

/// Waits until no process holds a lock file. A missing file counts as free.
#[track_caller]
pub fn wait_until_unlocked(lock: &Path) {
    let Ok(file) = File::open(lock) else { return };
    wait_until(&lock.display().to_string(), || match file.try_lock_shared() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(e)) => panic!("{e}"),
    });
}

/// Child process that is killed when its test ends, also when the test fails.
pub struct KilledOnDrop(pub Child);

impl KilledOnDrop {
    /// Waits for the process to exit and returns its exit code.
    #[track_caller]
    pub fn exit_code(&mut self) -> Option<i32> {
        wait_for("its end", || self.0.try_wait().unwrap()).code()
    }
}

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // The process may have exited already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Lines that a program writes, as they arrive.
pub struct OutputLines(Receiver<String>);

impl OutputLines {
    /// Reads the lines of a stream in a thread.
    pub fn read_from(output: impl Read + Send + 'static) -> OutputLines {
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        OutputLines(receiver)
    }

    /// Waits for the next line.
    #[track_caller]
    pub fn next(&self) -> String {
        self.0.recv_timeout(WAIT_LIMIT).unwrap()
    }
}

/// Returns how often the threads of a process have gone to sleep.
pub fn voluntary_switches(pid: &str) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let thread_switches = |task: std::io::Result<std::fs::DirEntry>| -> u64 {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        line.trim().parse().unwrap()
    };
    tasks.map(thread_switches).sum()
}

/// Asserts that these processes sleep without polling: in some span of time none of them wakes. The first
/// spans may include remaining work; a polling process wakes in each.
#[track_caller]
pub fn assert_no_wakeups(pids: &[String]) {
    let all = || pids.iter().map(|pid| voluntary_switches(pid)).collect::<Vec<u64>>();
    let spans = std::iter::repeat_with(|| {
        let before = all();
        std::thread::sleep(Duration::from_secs(2));
        all().iter().zip(before).map(|(now, before)| now - before).sum::<u64>()
    });
    let woken: Vec<u64> = spans.take(6).take_while(|woken| *woken > 0).collect();
    assert!(woken.len() < 6, "woken in spans of two seconds: {woken:?}");
}
