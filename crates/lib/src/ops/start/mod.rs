//! Start of agents: new lanes, further runs, and a task given to another agent.

pub mod launch_checks;
pub mod redispatch;
pub mod run;
pub mod spawn;
pub mod spawn_guest;
