//! Tmux windows of agents, and the process that starts an agent in its pane.

pub mod pane_process;
pub mod tmux_window;
