//! The lanes that a command waits for, live on a terminal.

use std::sync::mpsc;
use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;

use indicatif::MultiProgress;
use proq_base::diagnostics::Listener;
use proq_base::lane_name::LaneName;
use proq_lib::lane::Project;
use proq_lib::swarm::status::progress::LaneProgress;

use super::lane_bars::{LaneBars, REDRAW_INTERVAL};
use crate::cli::invocation::context::CommandContext;
use crate::cli::terminal::ui;

/// Live view of lanes while their agents run. It leaves nothing on the screen.
pub(crate) struct WaitView {
    screen: MultiProgress,
    /// Ends the thread that draws when it is dropped; none without a view.
    thread: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl WaitView {
    /// Starts the view of these lanes. Without a terminal, or if the output is JSON or quiet, nothing is shown.
    pub(crate) fn start(context: &CommandContext, names: Vec<LaneName>) -> WaitView {
        let screen = MultiProgress::new();
        let can_move_cursor = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        let is_shown = ui::stderr_is_terminal() && can_move_cursor && !context.ui.json && !context.ui.quiet;
        let (stop, stopped) = mpsc::channel();
        let (dir, bars_screen) = (context.dir.clone(), screen.clone());
        let draw = move || {
            let Ok(project) = Project::open(&dir, Listener::silent()) else { return };
            let bars = LaneBars::below(bars_screen);
            loop {
                let lanes = names.iter().filter_map(|name| project.find_any_lane(name.as_str()).ok());
                let running = lanes.filter_map(|lane| LaneProgress::of_running_lane(&project, &lane));
                bars.draw(&running.collect::<Vec<_>>());
                if stopped.recv_timeout(REDRAW_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return bars.clear();
                }
            }
        };
        let thread = is_shown.then(|| (stop, std::thread::spawn(draw)));
        WaitView { screen, thread }
    }

    /// Prints something by `print` while the view is hidden.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        self.screen.suspend(print);
    }
}

impl Drop for WaitView {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            drop(stop);
            drop(thread.join());
        }
    }
}
