//! Watching what is shown: one inotify descriptor that reports what has changed, so that no follower polls.

mod folder_watch;
mod stat_loop;
pub mod subject;
mod target;
#[cfg(test)]
mod tests;
pub mod watcher;
