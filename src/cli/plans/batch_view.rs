//! Live view of a batch on a terminal: a line per lane, and the handling of Ctrl-C.

use std::io::BufRead;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use proq_base::hint;
use proq_base::interrupt::CtrlC;
use proq_base::terminal_text;
use proq_lib::lane::Project;
use proq_lib::swarm::batch::control_request::ControlRequestKind;
use proq_lib::swarm::run::control_requests::submit_requests;
use proq_lib::swarm::status::progress::BatchProgress;
use proq_lib::types::BatchId;
use proq_lib::watch::watcher::{Watch, WatchOutcome};

use super::batch_event_lines::BatchReplay;
use super::text_parts::{clause, count_texts, dollars};
use crate::cli::invocation::confirm::print_question;
use crate::cli::invocation::context::CommandContext;
use crate::cli::invocation::failure::Failure;
use crate::cli::runs::lane_bars::{LaneBars, REDRAW_INTERVAL};

/// Minimum time between two drawings while changes follow each other.
const MIN_REDRAW_INTERVAL: Duration = Duration::from_millis(500);

/// Shows a batch until it is over or paused, or until the user leaves the view. Returns whether it ended.
pub(crate) fn show_until_end_or_detach(
    context: &CommandContext,
    project: &Project,
    replay: &mut BatchReplay,
    watch: &mut Watch<'_>,
) -> Result<bool, Failure> {
    let (screen, mut has_prompted) = (BatchScreen::new(), false);
    let mut ctrl_c = CtrlC::listen();
    loop {
        if !replay.print_new_lines(project, watch, &mut |line| drop(screen.bars.println(line)))? {
            screen.clear();
            return Ok(true);
        }
        let id = replay.follower.batch.id().clone();
        let BatchReplay { follower, state, log_summary } = &*replay;
        let progress = BatchProgress::from_state(project, &follower.batch, state, log_summary, true);
        screen.draw(&progress);
        let drawn_at = Instant::now();
        if ctrl_c.take() {
            let prompt = || prompt_interrupt_choice(&id, watch, &mut ctrl_c);
            if !handle_interrupt(context, project, &screen, &id, prompt, &mut has_prompted)? {
                return Ok(false);
            }
        }
        let outcome = watch.wait((!progress.lanes.is_empty()).then_some(REDRAW_INTERVAL))?;
        // The release of the scheduler's lock ends the view at once.
        if matches!(outcome, WatchOutcome::Changed { free_locks, .. } if free_locks.is_empty()) {
            watch.pause(MIN_REDRAW_INTERVAL.saturating_sub(drawn_at.elapsed()))?;
        }
    }
}

/// Handles a Ctrl-C: the first one prompts the user, the second one aborts the batch. Returns whether the
/// view stays open; otherwise it is cleared.
fn handle_interrupt(
    context: &CommandContext,
    project: &Project,
    screen: &BatchScreen,
    id: &BatchId,
    prompt: impl FnOnce() -> Result<InterruptChoice, Failure>,
    has_prompted: &mut bool,
) -> Result<bool, Failure> {
    if std::mem::replace(has_prompted, true) {
        submit_requests(project, id, vec![ControlRequestKind::Abort { hard: false }])?;
        drop(screen.bars.println(format!("batch {id} is being aborted")));
        return Ok(true);
    }
    match screen.bars.suspend(prompt)? {
        InterruptChoice::Abort => {
            submit_requests(project, id, vec![ControlRequestKind::Abort { hard: false }])?;
            return Ok(true);
        }
        InterruptChoice::Detach => {
            // The bars take with them what is printed while they are drawn.
            screen.clear();
            context.ui.hint(hint!("it continues; follow it again: git proq batch resume {id}"));
            return Ok(false);
        }
        InterruptChoice::Pause => submit_requests(project, id, vec![ControlRequestKind::Pause])?,
        InterruptChoice::Continue => {}
    }
    *has_prompted = false;
    Ok(true)
}

enum InterruptChoice {
    Pause,
    Abort,
    Detach,
    Continue,
}

/// Prompts for the action of the first Ctrl-C. Another Ctrl-C during the prompt aborts the batch.
fn prompt_interrupt_choice(
    id: &BatchId,
    watch: &Watch<'_>,
    ctrl_c: &mut CtrlC,
) -> Result<InterruptChoice, Failure> {
    print_question(&format!(
        "\nbatch {id}: [p]ause it, [l]eave it running, or continue watching? Ctrl-C aborts it. [p/l/N] "
    ));
    while !watch.wait_for_input(&std::io::stdin())? {
        if ctrl_c.take() {
            return Ok(InterruptChoice::Abort);
        }
    }
    let mut line = String::new();
    drop(std::io::stdin().lock().read_line(&mut line));
    Ok(match line.trim() {
        "p" | "P" | "pause" | "y" => InterruptChoice::Pause,
        "l" | "L" | "leave" => InterruptChoice::Detach,
        _ => InterruptChoice::Continue,
    })
}

/// Progress bars of the view: a summary bar, and a line per active lane.
struct BatchScreen {
    bars: MultiProgress,
    summary_bar: ProgressBar,
    lane_bars: LaneBars,
}

impl BatchScreen {
    fn new() -> BatchScreen {
        let bars = MultiProgress::new();
        let summary_bar = bars.add(ProgressBar::new(0));
        if let Ok(style) = ProgressStyle::with_template("{bar:24.green/dim} {pos}/{len} {wide_msg}") {
            summary_bar.set_style(style.progress_chars("━━─"));
        }
        BatchScreen { lane_bars: LaneBars::below(bars.clone()), bars, summary_bar }
    }

    fn draw(&self, progress: &BatchProgress) {
        let counts = progress.counts;
        self.summary_bar.set_length(counts.tasks as u64);
        self.summary_bar.set_position((counts.landed + counts.done_before) as u64);
        let parts = count_texts([
            (counts.waiting, "waiting"),
            (counts.failed, "failed"),
            (counts.skipped, "skipped"),
        ]);
        let parts: Vec<String> = parts.into_iter().chain(progress.cost.map(dollars)).collect();
        let plan = match progress.summary.as_str() {
            "" => format!("batch {}", progress.batch),
            summary => summary.to_owned(),
        };
        let message = format!("{plan}: {}{}", progress.state, clause(", ", &parts.join(", "), ""));
        self.summary_bar.set_message(terminal_text::escape_line(&message));
        self.lane_bars.draw(&progress.lanes);
    }

    fn clear(&self) {
        self.summary_bar.finish_and_clear();
        self.lane_bars.clear();
    }
}
