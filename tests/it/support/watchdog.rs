//! Owns the look at tests that do not end: without it nobody would see which one hangs, and on what.

use std::io::Write;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// Many times what the longest test takes on the slowest machine.
const LONGEST: Duration = Duration::from_mins(10);

/// The test of this thread is looked at for as long as this is there.
pub struct Watchdog(#[expect(dead_code, reason = "the other end hears when it is dropped")] Sender<()>);

impl Watchdog {
    /// Ends all tests of this process, with exit code 101, once the test of this thread has not ended for ten minutes. Its name and
    /// all that runs then are on standard error.
    pub fn new() -> Watchdog {
        let (test, over) = mpsc::channel();
        let name = std::thread::current().name().unwrap_or("a test").to_owned();
        std::thread::spawn(move || {
            if over.recv_timeout(LONGEST) == Err(RecvTimeoutError::Timeout) {
                end(&name);
            }
        });
        Watchdog(test)
    }
}

/// Says what runs, and ends this process.
fn end(name: &str) {
    let all = Command::new("ps").args(["-e", "-o", "pid,ppid,stat,etime,wchan,args"]).output();
    let all = all.map(|out| String::from_utf8_lossy(&out.stdout).into_owned()).unwrap_or_default();
    // The kernel's own have no arguments, but names in brackets.
    let shown: Vec<&str> = all.lines().filter(|line| !line.trim_end().ends_with(']')).collect();
    let text =
        format!("{name} has not ended for {} s; this runs:\n{}\n", LONGEST.as_secs(), shown.join("\n"));
    // Not by a macro: what those print is kept until the test has ended.
    drop(std::io::stderr().write_all(text.as_bytes()));
    std::process::exit(101);
}
