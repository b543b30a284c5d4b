//! Locks between processes, waiting for them, and the landing queue.

pub(crate) mod change_watcher;
pub(crate) mod holder;
pub(crate) mod lock;
pub(crate) mod lock_wait;
pub(crate) mod merge_queue;
pub(crate) mod wait_many;
