//! Live lines of running lanes on a terminal, one per lane.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use console::measure_text_width;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use proq_base::lane_name::LaneName;
use proq_base::terminal_text;
use proq_lib::swarm::status::progress::LaneProgress;

use crate::cli::terminal::table::cut_name;
use crate::cli::terminal::ui;

/// Interval at which lanes are redrawn while they run: their lines show elapsed times.
pub(crate) const REDRAW_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum width of a name in a line.
const MAX_NAME_WIDTH: usize = 24;

/// Lines of running lanes below what else a screen shows.
pub(crate) struct LaneBars {
    screen: MultiProgress,
    bars: RefCell<BTreeMap<LaneName, ProgressBar>>,
}

impl LaneBars {
    /// Creates the lines, still none, below the bars of `screen`.
    pub(crate) fn below(screen: MultiProgress) -> LaneBars {
        LaneBars { screen, bars: RefCell::default() }
    }

    /// Draws a line for each lane; lines of other lanes are removed.
    pub(crate) fn draw(&self, lanes: &[LaneProgress]) {
        let mut bars = self.bars.borrow_mut();
        bars.retain(|name, bar| {
            let is_active = lanes.iter().any(|lane| lane.name == *name);
            if !is_active {
                bar.finish_and_clear();
                self.screen.remove(bar);
            }
            is_active
        });
        for lane in lanes {
            let bar = bars.entry(lane.name.clone()).or_insert_with(|| self.add_bar());
            bar.set_message(terminal_text::escape_line(&lane_text(lane)));
        }
    }

    /// Removes everything that the screen shows.
    pub(crate) fn clear(&self) {
        self.bars.borrow().values().for_each(ProgressBar::finish_and_clear);
        drop(self.screen.clear());
    }

    fn add_bar(&self) -> ProgressBar {
        let bar = self.screen.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(REDRAW_INTERVAL);
        bar
    }
}

/// Formats the line of a lane: its task or name, state, elapsed time, cost and current activity.
fn lane_text(lane: &LaneProgress) -> String {
    let activity = ui::strip_control_chars(lane.activity.as_deref().unwrap_or_default());
    let cost = lane.cost.map(|cost| format!("  ${:.2}", cost.to_dollars())).unwrap_or_default();
    let boxes = lane.boxes.map(|boxes| format!(" {}/{}", boxes.done, boxes.total)).unwrap_or_default();
    let (elapsed, state) = (ui::short_duration(lane.elapsed), format!("{}{boxes}", lane.state));
    let (label, name) = match lane.task.as_str() {
        "" => (lane.name.as_str(), String::new()),
        task => (task, format!("  {}", lane.name)),
    };
    let label = cut_name(label, MAX_NAME_WIDTH);
    let pad = MAX_NAME_WIDTH.saturating_sub(measure_text_width(&label));
    let activity = if activity.is_empty() { activity } else { format!("  {activity}") };
    format!("{label}{:pad$} {state:<13} {elapsed:>4}{cost}{name}{activity}", "")
}
