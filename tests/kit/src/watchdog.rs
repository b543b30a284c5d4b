//! Watchdog for tests that do not end: it reports which test hangs, and which processes run.

use std::io::Write;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// Many times what the longest test takes on the slowest machine.
const TEST_TIME_LIMIT: Duration = Duration::from_mins(10);

/// Watches the test of this thread until it is dropped.
pub struct Watchdog(#[expect(dead_code, reason = "the other end hears when it is dropped")] Sender<()>);

impl Watchdog {
    /// Ends all tests of this process, with exit code 101, once the test of this thread has run for ten
    /// minutes. Writes its name and all running processes to standard error.
    pub fn new() -> Watchdog {
        let (guard, finished) = mpsc::channel();
        let name = std::thread::current().name().unwrap_or("a test").to_owned();
        std::thread::spawn(move || {
            if finished.recv_timeout(TEST_TIME_LIMIT) == Err(RecvTimeoutError::Timeout) {
                abort_tests(&name);
            }
        });
        Watchdog(guard)
    }
}

/// Reports the running processes and exits.
fn abort_tests(name: &str) {
    let processes = Command::new("ps").args(["-e", "-o", "pid,ppid,stat,etime,wchan,args"]).output();
    let all = processes.map(|out| String::from_utf8_lossy(&out.stdout).into_owned()).unwrap_or_default();
    // Kernel threads have no arguments; `ps` shows their names in brackets.
    let shown: Vec<&str> = all.lines().filter(|line| !line.trim_end().ends_with(']')).collect();
    let text = format!(
        "{name} has not ended for {} s; this runs:\n{}\n",
        TEST_TIME_LIMIT.as_secs(),
        shown.join("\n")
    );
    // Not by a macro: the test harness holds back what macros print until the test has ended.
    drop(std::io::stderr().write_all(text.as_bytes()));
    std::process::exit(101);
}
