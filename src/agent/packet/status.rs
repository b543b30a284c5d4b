//! Owns what STATUS.md says: the steps of a task and their boxes; and making one of a task that has none.

use crate::harmless;
use crate::markdown::{self, Line};

/// How far somebody has come with a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// Its steps that have boxes, in order.
    pub(crate) steps: Vec<Step>,
}

/// One step of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// Its number, by which it is called.
    pub(crate) number: u32,
    /// What it is about; empty where it has no heading of its own.
    pub(crate) title: String,
    /// How many of its boxes are ticked.
    pub(crate) done: usize,
    /// How many it has.
    pub(crate) of: usize,
}

impl Step {
    /// Whether nothing is left of it.
    pub(crate) fn is_done(&self) -> bool {
        self.done >= self.of
    }
}

impl Status {
    /// Reads one: headings `### Step N: …` with boxes below them. Boxes that no step has count where no step has any.
    pub(crate) fn read(text: &str) -> Status {
        let mut steps: Vec<Step> = Vec::new();
        let mut all = Step { number: 1, ..Step::default() };
        let mut in_step = false;
        for line in markdown::lines(text) {
            if let Some(heading) = line.heading() {
                // A heading within a step does not end it.
                if heading.level <= 3 {
                    let named = step_of(heading.text);
                    in_step = named.is_some();
                    steps.extend(named.map(|(number, title)| Step { number, title, ..Step::default() }));
                }
            }
            let Some(ticked) = line.item().and_then(|item| item.ticked) else { continue };
            let own = steps.last_mut().filter(|_| in_step);
            for step in [Some(&mut all), own].into_iter().flatten() {
                step.of += 1;
                step.done += usize::from(ticked);
            }
        }
        number(&mut steps);
        steps.retain(|step| step.of > 0);
        if steps.is_empty() && all.of > 0 {
            steps.push(all);
        }
        Status { steps }
    }

    /// How many boxes are ticked.
    pub(crate) fn done(&self) -> usize {
        self.steps.iter().map(|step| step.done).sum()
    }

    /// How many there are.
    pub(crate) fn of(&self) -> usize {
        self.steps.iter().map(|step| step.of).sum()
    }

    /// The step of this number.
    pub(crate) fn step(&self, number: u32) -> Option<&Step> {
        self.steps.iter().find(|step| step.number == number)
    }

    /// The first step that is not done.
    pub(crate) fn open(&self) -> Option<&Step> {
        self.steps.iter().find(|step| !step.is_done())
    }
}

/// The number and title of a step's heading. One without a number has none that a number could be mistaken for.
fn step_of(heading: &str) -> Option<(u32, String)> {
    let rest = heading.get(..5).filter(|word| word.eq_ignore_ascii_case("step ")).map(|_| &heading[5..])?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let title = rest[digits..].trim_start_matches([' ', ':', '-', '—', '–', '.', ')']);
    Some((rest[..digits].parse().unwrap_or(u32::MAX), harmless::line(title.trim())))
}

/// Numbers steps as they stand, unless they are numbered upwards.
fn number(steps: &mut [Step]) {
    let rises = steps.windows(2).all(|pair| pair[0].number < pair[1].number);
    if !rises || steps.last().is_some_and(|step| step.number == u32::MAX) {
        for (step, number) in steps.iter_mut().zip(1..) {
            step.number = number;
        }
    }
}

/// Makes one of what a task says: its steps with their boxes; else of the first there is of boxes, items of its lists, and its
/// title, with one box for each.
pub(crate) fn made(title: &str, prompt: &str) -> String {
    let mut out = format!(
        "# Status: {}\n\nA box is ticked when what it says is done and committed. Notes stand below their step.\n",
        harmless::line(title)
    );
    let boxes = |lines: &[(bool, String)]| -> String {
        let line =
            |(ticked, text): &(bool, String)| format!("- [{}] {text}\n", if *ticked { 'x' } else { ' ' });
        lines.iter().map(line).collect::<Vec<_>>().concat()
    };
    let found = Found::of(prompt);
    for (heading, step) in &found.steps {
        let own = if step.boxes.is_empty() { &step.items } else { &step.boxes };
        let alone = [(false, heading.clone())];
        let own = if own.is_empty() { &alone[..] } else { own };
        out.push_str(&format!("\n### {heading}\n\n{}", boxes(own)));
    }
    if found.steps.is_empty() {
        let all = if found.all.boxes.is_empty() { &found.all.items } else { &found.all.boxes };
        let alone = [(false, harmless::line(title))];
        let all = if all.is_empty() { &alone[..] } else { all };
        out.push_str(&format!("\n### Step 1: {}\n\n{}", harmless::line(title), boxes(all)));
    }
    out
}

/// Whether a task says nothing that boxes can be made of, so that its title is the only one.
pub(crate) fn has_one_box(prompt: &str) -> bool {
    let found = Found::of(prompt);
    found.steps.is_empty() && found.all.boxes.is_empty() && found.all.items.is_empty()
}

/// Ticks the first box that is open.
pub(crate) fn tick(text: &str) -> String {
    text.replacen("- [ ]", "- [x]", 1)
}

/// Lines of a task that boxes can be made of.
#[derive(Debug, Default)]
struct Lines {
    boxes: Vec<(bool, String)>,
    items: Vec<(bool, String)>,
}

impl Lines {
    fn add(&mut self, line: Line<'_>) {
        let Some(item) = line.item().filter(|item| !item.text.is_empty()) else { return };
        let text = harmless::line(item.text);
        match item.ticked {
            Some(ticked) => self.boxes.push((ticked, text)),
            None if item.indent == 0 => self.items.push((false, text)),
            None => {}
        }
    }
}

/// What a task says of its steps.
#[derive(Debug, Default)]
struct Found {
    /// Each with its heading.
    steps: Vec<(String, Lines)>,
    /// What stands in no step.
    all: Lines,
}

impl Found {
    fn of(prompt: &str) -> Found {
        let mut out = Found::default();
        let (mut in_step, mut is_work) = (false, true);
        for line in markdown::lines(prompt) {
            if let Some(heading) = line.heading().filter(|heading| heading.level <= 3) {
                in_step = step_of(heading.text).is_some();
                // What these list is nothing to be done.
                is_work = !["dependencies", "file scope"].contains(&heading.text.to_lowercase().as_str());
                let text = harmless::line(heading.text);
                if in_step {
                    out.steps.push((text, Lines::default()));
                }
                continue;
            }
            match out.steps.last_mut().filter(|_| in_step) {
                Some((_, step)) => step.add(line),
                None if is_work => out.all.add(line),
                None => {}
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<(u32, String, usize, usize)> {
        let steps = Status::read(text).steps.into_iter();
        steps.map(|step| (step.number, step.title, step.done, step.of)).collect()
    }

    #[test]
    fn boxes_belong_to_the_step_above_them() {
        let text = "# S\n- [x] no step's\n### Step 0: Look\n- [x] a\n#### more\n- [ ] b\n### Notes\n- [ ] none\n\
                    ### Step 2 — Do\n* [X] c\n```\n- [ ] code\n```\n### Step 3: empty\n";
        assert_eq!(told(text), [(0, "Look".into(), 1, 2), (2, "Do".into(), 1, 1)]);
        let status = Status::read(text);
        assert_eq!((status.done(), status.of(), status.open().map(|step| step.number)), (2, 3, Some(0)));
        assert_eq!(told("- [x] a\n- [ ] b"), [(1, String::new(), 1, 2)]);
        assert_eq!(told("no box\n### Step 1: x"), []);
    }

    #[test]
    fn steps_that_are_not_numbered_upwards_are_numbered_anew() {
        for text in [
            "### Step 2\n- [ ] a\n### Step 2\n- [ ] b",
            "### Step x: y\n- [ ] a\n### Step 99999999999\n- [ ] b",
        ] {
            let numbers: Vec<u32> = told(text).into_iter().map(|step| step.0).collect();
            assert_eq!(numbers, [1, 2], "{text}");
        }
        assert_eq!(told("### Step é\u{1b}[2J\n- [ ] a"), [(1, "é\\u{1b}[2J".into(), 0, 1)]);
    }

    #[test]
    fn one_is_made_of_steps_of_boxes_of_items_or_of_a_title() {
        let made = |prompt: &str| {
            let text = made("Refunds", prompt);
            text.split_once("step.\n").unwrap().1.to_owned()
        };
        let steps = "# T\n## File Scope\n- `src/`\n### Step 1: A\n- [ ] a\n- note\n### Step 2: B\n- b\n  - deeper\n### Step 3: C\n";
        assert_eq!(
            made(steps),
            "\n### Step 1: A\n\n- [ ] a\n\n### Step 2: B\n\n- [ ] b\n\n### Step 3: C\n\n- [ ] Step 3: C\n"
        );
        let boxes = "# T\n## Dependencies\n- **None**\n## Done when\n- [ ] x\n- [x] y\n- z\n";
        assert_eq!(made(boxes), "\n### Step 1: Refunds\n\n- [ ] x\n- [x] y\n");
        assert_eq!(made("# T\n- z\n1. w\n"), "\n### Step 1: Refunds\n\n- [ ] z\n- [ ] w\n");
        assert_eq!(made("just do it"), "\n### Step 1: Refunds\n\n- [ ] Refunds\n");
    }

    #[test]
    fn what_is_made_reads_back() {
        let step = |n| format!("### Step {n}: s\n- [x] {n}\n- [ ] `b`\n");
        let long = (0..1000).map(step).collect::<Vec<_>>().concat();
        let status = Status::read(&made("x", &long));
        assert_eq!((status.steps.len(), status.done(), status.of()), (1000, 1000, 2000));
    }
}
