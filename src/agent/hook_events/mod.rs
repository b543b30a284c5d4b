//! Events from an agent's hooks, and the checks that have to pass before its turn ends.

pub(crate) mod activity;
pub(crate) mod stop_gate;
