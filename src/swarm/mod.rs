//! Owns batches: a plan of dependent tasks, run with several agents.

#[cfg_attr(not(test), expect(dead_code, unused_imports, reason = "nothing runs a batch yet; the tests do"))]
mod schedule;
