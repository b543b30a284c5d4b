//! Owns the view of a batch on a terminal: a line for each lane, and what Ctrl-C means there.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::mpsc;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::super::{Failure, Session, ui};
use super::follow::{Follow, GLANCE, Going};
use super::wish;
use crate::lane::Project;
use crate::swarm::{LaneAt, Picture, WishKind};
use crate::{harmless, interrupt};

/// How often lanes are looked at.
const LANES: u32 = 5;

/// Shows a batch until it is over or paused.
pub(super) fn show(session: &Session, project: &Project, at: &mut Follow) -> Result<(), Failure> {
    let screen = Screen::new();
    let (mut count, mut asked) = (0_u32, false);
    loop {
        let going = at.look(project, &mut |line| drop(screen.all.println(line)))?;
        if let Going::Ended = going {
            screen.clear();
            return Ok(());
        }
        if count.is_multiple_of(LANES) {
            let (reader, id) = (&at.reader, at.reader.batch.id());
            let picture = Picture::by(project, &reader.batch, &reader.state, &reader.known, true);
            screen.draw(&picture, id);
        }
        count = count.wrapping_add(1);
        if interrupt::signal() != 0 {
            interrupt::forget();
            let id = at.reader.batch.id().to_owned();
            if !act_on_interrupt(session, project, &screen, &id, &mut asked)? {
                screen.clear();
                return Ok(());
            }
        }
        std::thread::sleep(GLANCE);
    }
}

/// What the first Ctrl-C asks, and the second does. Says whether the view stays.
fn act_on_interrupt(
    session: &Session,
    project: &Project,
    screen: &Screen,
    id: &str,
    asked: &mut bool,
) -> Result<bool, Failure> {
    if std::mem::replace(asked, true) {
        wish(project, id, WishKind::Abort { hard: false })?;
        drop(screen.all.println(format!("batch {id} is being aborted")));
        return Ok(true);
    }
    let answer = screen.all.suspend(|| ask(id));
    match answer {
        Answer::Pause => {
            wish(project, id, WishKind::Pause)?;
            *asked = false;
            Ok(true)
        }
        Answer::Abort => {
            wish(project, id, WishKind::Abort { hard: false })?;
            Ok(true)
        }
        Answer::Leave => {
            session.ui.hint(format!("it goes on; follow it again: git proq resume {id}"));
            Ok(false)
        }
        Answer::GoOn => {
            *asked = false;
            Ok(true)
        }
    }
}

enum Answer {
    Pause,
    Abort,
    Leave,
    GoOn,
}

/// Asks what the first Ctrl-C means. Another one is an answer, too.
fn ask(id: &str) -> Answer {
    super::super::ui::part(&format!(
        "\nbatch {id}: [p]ause it, [l]eave it to itself, or go on looking? Ctrl-C aborts it. [p/l/N] "
    ));
    let (tell, hear) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        drop(std::io::stdin().lock().read_line(&mut line));
        drop(tell.send(line));
    });
    loop {
        if interrupt::signal() != 0 {
            interrupt::forget();
            return Answer::Abort;
        }
        if let Ok(line) = hear.recv_timeout(GLANCE) {
            return match line.trim() {
                "p" | "P" | "pause" | "y" => Answer::Pause,
                "l" | "L" | "leave" => Answer::Leave,
                _ => Answer::GoOn,
            };
        }
    }
}

/// What is drawn.
struct Screen {
    all: MultiProgress,
    head: ProgressBar,
    lanes: std::cell::RefCell<BTreeMap<String, ProgressBar>>,
}

impl Screen {
    fn new() -> Screen {
        let all = MultiProgress::new();
        let head = all.add(ProgressBar::new(0));
        if let Ok(style) = ProgressStyle::with_template("{bar:24.green/dim} {pos}/{len} {wide_msg}") {
            head.set_style(style.progress_chars("━━─"));
        }
        Screen { all, head, lanes: std::cell::RefCell::default() }
    }

    fn draw(&self, picture: &Picture, id: &str) {
        let counts = picture.counts;
        self.head.set_length(counts.tasks as u64);
        self.head.set_position((counts.landed + counts.before) as u64);
        let cost = picture.cost_usd.map(|usd| format!(", ${usd:.2}")).unwrap_or_default();
        let parts = [("waiting", counts.waiting), ("failed", counts.failed), ("skipped", counts.skipped)];
        let parts: Vec<String> =
            parts.iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{n} {what}")).collect();
        let more = if parts.is_empty() { String::new() } else { format!(", {}", parts.join(", ")) };
        self.head.set_message(harmless::line(&format!("batch {id} {}{more}{cost}", picture.state)));
        let mut lanes = self.lanes.borrow_mut();
        lanes.retain(|name, bar| {
            let there = picture.lanes.iter().any(|lane| lane.name == *name);
            if !there {
                bar.finish_and_clear();
                self.all.remove(bar);
            }
            there
        });
        for lane in &picture.lanes {
            let bar = lanes.entry(lane.name.clone()).or_insert_with(|| self.line());
            bar.set_message(harmless::line(&line(lane)));
        }
    }

    fn line(&self) -> ProgressBar {
        let bar = self.all.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    }

    fn clear(&self) {
        self.lanes.borrow().values().for_each(ProgressBar::finish_and_clear);
        self.head.finish_and_clear();
        drop(self.all.clear());
    }
}

/// One lane: what it is at, for how long, and what that has cost.
fn line(lane: &LaneAt) -> String {
    let step = lane.step.as_ref().map(|step| format!("  {}", ui::printable(step))).unwrap_or_default();
    let cost = lane.cost_usd.map(|usd| format!("  ${usd:.2}")).unwrap_or_default();
    let time = ui::span(Duration::from_secs(lane.seconds));
    let state = format!(
        "{}{}",
        lane.state,
        lane.boxes.map(|boxes| format!(" {}/{}", boxes.done, boxes.of)).unwrap_or_default()
    );
    format!("{:<24} {state:<13} {time:>4}{cost}  {}{step}", lane.task, lane.name)
}
