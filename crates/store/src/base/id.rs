//! Ids of the store's entries and temporary files: time, process id and counter.

use std::sync::atomic::{AtomicU32, Ordering};

use super::clock::{Moment, now};

/// Returns an id that sorts by time and that no other process creates: time, process id, counter.
pub fn new_id() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{}-{count}", now().to_compact(), std::process::id())
}

/// Parses the process id from an id of the form `time-process-count`.
pub fn pid_from_id(id: &str) -> Option<u32> {
    parse_id(id).map(|(_, process)| process)
}

/// Parses the creation time from an id of the form `time-process-count`.
pub fn id_created_at(id: &str) -> Option<Moment> {
    parse_id(id).map(|(at, _)| at)
}

/// Parses the creation time and the process id from an id. Text before the time is ignored.
fn parse_id(id: &str) -> Option<(Moment, u32)> {
    let mut parts = id.rsplitn(3, '-');
    parts.next()?.parse::<u32>().ok()?;
    let process = parts.next()?.parse().ok()?;
    let prefix = parts.next()?;
    let time = prefix.get(prefix.len().checked_sub("20260102-030405".len())?..)?;
    Some((Moment::from_compact(time)?, process))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_names_its_process() {
        assert_eq!(pid_from_id(".lane.toml.20260102-030405-123-0"), Some(123));
        assert_eq!(pid_from_id(&new_id()), Some(std::process::id()));
        let created_at = id_created_at(&format!("some-lane-{}", new_id())).unwrap();
        assert!(now().duration_since(created_at).as_secs() < 60);
        for text in ["", ".gitignore", "lane-1-2", "20260102-030405-x-0", "a-b-c"] {
            assert_eq!(pid_from_id(text), None, "{text}");
        }
    }
}
