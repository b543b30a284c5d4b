//! Locks between processes, waiting for them, and the landing queue.

pub mod change_watcher;
pub mod holder;
pub mod inotify;
pub mod lock;
pub mod lock_wait;
pub mod merge_queue;
