//! Tmux windows of agents, and the process that starts an agent in its pane.

pub(crate) mod pane_process;
pub(crate) mod tmux_window;
