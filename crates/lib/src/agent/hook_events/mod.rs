//! Events from an agent's hooks, and the checks that have to pass before its turn ends.

pub mod activity;
pub mod stop_gate;
