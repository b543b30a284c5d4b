//! Owns finding and ending what an agent's tools left running: they flee to sessions of their own, so their group is not enough.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::group::pid;

/// The variable that marks whatever a run starts; it is inherited.
pub(crate) const MARK: &str = "PROQ_RUN";

/// The variables that tell a run, a hook or a check what they are for. What is started on behalf of nobody in particular has none of
/// them: it would take itself for a part of that.
pub(crate) const OF_A_RUN: &[&str] = &[
    "PROQ_ATTEMPT",
    "PROQ_BASE",
    "PROQ_BATCH",
    "PROQ_BRANCH",
    "PROQ_ENV_FILE",
    "PROQ_EVENT",
    "PROQ_EVENT_N",
    "PROQ_LANE",
    "PROQ_LANES",
    "PROQ_MESSAGE",
    "PROQ_OTHER",
    "PROQ_PORT",
    "PROQ_PORT_1",
    "PROQ_PORT_2",
    "PROQ_PORT_3",
    "PROQ_PORT_4",
    "PROQ_PORT_5",
    "PROQ_PORT_6",
    "PROQ_PORT_7",
    "PROQ_PORT_8",
    "PROQ_PORT_9",
    "PROQ_PROGRAM",
    "PROQ_REPO",
    "PROQ_ROOT",
    "PROQ_STATE",
    "PROQ_TASK",
    "PROQ_TASK_ATTEMPT",
    "PROQ_TASK_FILE",
    "PROQ_WRAP_UP",
];

/// How long a process is looked at again that is becoming another program.
const PATIENCE: Duration = Duration::from_secs(2);

/// Makes orphans of this process's descendants its own children, where the system can: whoever flees its parents is then
/// still found below this process.
pub(crate) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    // Without it they are found by their mark.
    let _not_there = rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1));
}

/// Ends every process that has `mark` as its [`MARK`], or is below one, or below this process without any mark: TERM, `grace`, KILL. Returns how many
/// there were. Where processes cannot be listed (no `/proc`), nobody is found.
pub(crate) fn end_strays(mark: &str, grace: Duration) -> usize {
    end(mark, grace, Some(std::process::id()))
}

/// The same for a run that another process had started: whoever has the mark, or is below one that has, and is not this process.
pub(crate) fn end_marked(mark: &str, grace: Duration) {
    let _how_many = end(mark, grace, None);
}

/// Ends a run's processes. Unmarked ones below `top`, which is this process if anybody, are the run's too.
fn end(mark: &str, grace: Duration, top: Option<u32>) -> usize {
    let collect = || top.map_or((), |_| collect());
    collect();
    let many = strays(mark, top).len();
    for (signal, patience) in [(Signal::TERM, grace), (Signal::KILL, Duration::from_secs(5))] {
        let since = Instant::now();
        let mut asked: Vec<u32> = Vec::new();
        loop {
            collect();
            let left = strays(mark, top);
            if left.is_empty() {
                return many;
            }
            for number in left {
                // Each is asked once; one that was started meanwhile, too.
                if !asked.contains(&number)
                    && let Some(id) = pid(number)
                {
                    // One that is gone already needs no signal.
                    let _gone = kill_process(id, signal);
                    let _gone = kill_process(id, Signal::CONT);
                    asked.push(number);
                }
            }
            if since.elapsed() >= patience {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    many
}

/// Collects orphans that have ended. The children that this process waits for itself must have been waited for.
fn collect() {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    while let Ok(Some(_)) = waitid(WaitId::All, options) {}
}

/// The processes that are a run's. Those that have ended already are left out.
fn strays(mark: &str, top: Option<u32>) -> Vec<u32> {
    let me = std::process::id();
    let mut seen: BTreeMap<u32, Seen> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(number) = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
        let Some(parent) = parent_of(number).filter(|_| number != me) else { continue };
        seen.insert(number, Seen { parent, marked: is_marked(number, mark) });
    }
    seen.keys().copied().filter(|number| belongs(*number, top, &seen)).collect()
}

/// What is seen of a process.
struct Seen {
    parent: u32,
    /// Whether it has this run's mark, or another's. None without any.
    marked: Option<bool>,
}

/// Whether a process is this run's: by the mark that it has, or that the next one above it has. What has none, up to `top`, has
/// thrown it away. An agent may start lanes of its own: they have marks of their own.
fn belongs(mut number: u32, top: Option<u32>, seen: &BTreeMap<u32, Seen>) -> bool {
    // As deep as there are processes, whatever changes meanwhile.
    for _ in 0..=seen.len() {
        match seen.get(&number) {
            Some(Seen { marked: Some(ours), .. }) => return *ours,
            Some(Seen { parent, .. }) => number = *parent,
            None => return Some(number) == top,
        }
    }
    false
}

/// The parent of a process that has not ended.
fn parent_of(number: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name in brackets may hold anything; state and parent follow it.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    match words.next() {
        Some("Z" | "X") | None => None,
        Some(_) => words.next()?.parse().ok(),
    }
}

/// Whether a process has the mark; none when it has no mark at all.
fn is_marked(number: u32, mark: &str) -> Option<bool> {
    let read = || std::fs::read(format!("/proc/{number}/environ")).ok();
    let mut environ = read()?;
    // Between two programs, in the middle of exec(2), a process has no variables yet. Whose it is shows in a moment.
    let since = Instant::now();
    while environ.is_empty() && is_in_exec(number) && since.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
        environ = read()?;
    }
    let mut values =
        environ.split(|b| *b == 0).filter_map(|var| var.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="));
    values.next().map(|value| value == mark.as_bytes())
}

/// Whether a process has no place for variables yet; one that has none of them has a place. Threads of the kernel, which never
/// have one, name no program.
fn is_in_exec(number: u32) -> bool {
    let end_of_variables = |stat: String| {
        let (_, rest) = stat.rsplit_once(')')?;
        rest.split_whitespace().nth(48).map(ToOwned::to_owned)
    };
    let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).ok();
    stat.and_then(end_of_variables).is_some_and(|end| end == "0")
        && std::fs::read_link(format!("/proc/{number}/exe")).is_ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Start;
    use super::*;

    fn start(script: &str, mark: &str) -> std::process::Child {
        let start = Start::new(Path::new("/bin/sh"), Path::new("/")).args(["-c", script]).env(MARK, mark);
        start.spawn_in_group().unwrap()
    }

    fn wait_until(is_so: impl Fn() -> bool) {
        let begin = Instant::now();
        while !is_so() {
            assert!(begin.elapsed() < Duration::from_mins(1));
            std::thread::yield_now();
        }
    }

    #[test]
    fn lanes_that_an_agent_started_are_not_its_strays() {
        let at = |parent, marked| Seen { parent, marked };
        // 1 is the supervisor; 2 the agent; 3 its tool; 4 has no mark; 5 another run's supervisor, 6 its agent's tool.
        let seen = BTreeMap::from([
            (2, at(1, Some(true))),
            (3, at(9, Some(true))),
            (4, at(1, None)),
            (5, at(1, Some(false))),
            (6, at(5, None)),
            (7, at(8, None)),
            (8, at(7, None)),
        ]);
        let ours: Vec<u32> = seen.keys().copied().filter(|number| belongs(*number, Some(1), &seen)).collect();
        assert_eq!(ours, [2, 3, 4]);
    }

    #[test]
    fn one_without_any_variables_is_not_waited_for() {
        let mut command = std::process::Command::new("/bin/sleep");
        let mut child = command.arg("600").env_clear().spawn().unwrap();
        // It has become what it was told to by then.
        wait_until(|| std::fs::read(format!("/proc/{}/environ", child.id())).unwrap().is_empty());
        wait_until(|| !is_in_exec(child.id()));
        assert_eq!(is_marked(child.id(), "any"), None);
        assert!(!is_in_exec(2), "that is one of the kernel's");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn one_in_a_session_of_its_own_is_known_by_its_mark() {
        let mark = format!("test-{}", std::process::id());
        // It says its number once it has left; its parent is gone by then.
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = format!(
            "setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600' & exit 0",
            file.display()
        );
        start(&script, &mark).wait().unwrap();
        wait_until(|| file.exists());
        let number: u32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        // Nothing is known of it in the moment in which it becomes what it calls.
        wait_until(|| std::fs::read(format!("/proc/{number}/cmdline")).unwrap().starts_with(b"sleep\0"));
        wait_until(|| is_marked(number, &mark).is_some());
        assert_eq!((is_marked(number, &mark), is_marked(number, "another")), (Some(true), Some(false)));
        assert!(parent_of(number).is_some());
        let id = pid(number).unwrap();
        kill_process(id, Signal::KILL).unwrap();
        wait_until(|| parent_of(number).is_none());
    }
}
