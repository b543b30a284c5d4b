//! Content of STATUS.md: the steps of a task and their boxes, and the creation of a STATUS.md for a task
//! without one.

use proq_base::markdown::Line;
use proq_base::{markdown, terminal_text};

/// Progress of a task, parsed from its STATUS.md.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskProgress {
    /// Steps that have boxes, in order.
    pub steps: Vec<TaskStep>,
}

/// Step of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskStep {
    /// Number of the step, which identifies it.
    pub number: u32,
    /// Title of the step; empty if it has no heading.
    pub title: String,
    /// Number of ticked boxes.
    pub boxes_ticked: usize,
    /// Number of boxes.
    pub boxes_total: usize,
}

impl TaskStep {
    /// Returns whether all boxes of the step are ticked.
    pub fn is_done(&self) -> bool {
        self.boxes_ticked >= self.boxes_total
    }
}

impl TaskProgress {
    /// Parses a status: headings `### Step N: …` with boxes below them. Boxes outside of all steps count only
    /// when no step has any.
    pub fn parse(text: &str) -> TaskProgress {
        let mut steps: Vec<TaskStep> = Vec::new();
        let mut all_boxes = TaskStep { number: 1, ..TaskStep::default() };
        let mut in_step = false;
        for line in markdown::lines_outside_code(text) {
            if let Some(heading) = line.heading() {
                // A heading of level 4 or deeper does not end a step.
                if heading.level <= 3 {
                    let parsed = parse_step_heading(heading.text);
                    in_step = parsed.is_some();
                    steps.extend(parsed.map(|(number, title)| TaskStep {
                        number,
                        title,
                        ..TaskStep::default()
                    }));
                }
            }
            let Some(ticked) = line.item().and_then(|item| item.ticked) else { continue };
            let current_step = steps.last_mut().filter(|_| in_step);
            for step in [Some(&mut all_boxes), current_step].into_iter().flatten() {
                step.boxes_total += 1;
                step.boxes_ticked += usize::from(ticked);
            }
        }
        ensure_ascending_numbers(&mut steps);
        steps.retain(|step| step.boxes_total > 0);
        if steps.is_empty() && all_boxes.boxes_total > 0 {
            steps.push(all_boxes);
        }
        TaskProgress { steps }
    }

    /// Returns the number of ticked boxes.
    pub fn boxes_ticked(&self) -> usize {
        self.steps.iter().map(|step| step.boxes_ticked).sum()
    }

    /// Returns the number of boxes.
    pub fn boxes_total(&self) -> usize {
        self.steps.iter().map(|step| step.boxes_total).sum()
    }

    /// Returns the step with this number.
    pub fn step(&self, number: u32) -> Option<&TaskStep> {
        self.steps.iter().find(|step| step.number == number)
    }

    /// Returns the first step that is not done.
    pub fn first_open_step(&self) -> Option<&TaskStep> {
        self.steps.iter().find(|step| !step.is_done())
    }
}

/// Parses the number and title from the heading of a step. `None` for another heading. A heading without a
/// valid number gets `u32::MAX`.
fn parse_step_heading(heading: &str) -> Option<(u32, String)> {
    let after_prefix =
        heading.get(..5).filter(|word| word.eq_ignore_ascii_case("step ")).map(|_| &heading[5..])?;
    let digits = after_prefix.bytes().take_while(u8::is_ascii_digit).count();
    let title = after_prefix[digits..].trim_start_matches([' ', ':', '-', '—', '–', '.', ')']);
    Some((after_prefix[..digits].parse().unwrap_or(u32::MAX), terminal_text::escape_line(title.trim())))
}

/// Numbers the steps in order, unless their numbers are valid and ascending.
fn ensure_ascending_numbers(steps: &mut [TaskStep]) {
    let is_ascending = steps.windows(2).all(|pair| pair[0].number < pair[1].number);
    if !is_ascending || steps.last().is_some_and(|step| step.number == u32::MAX) {
        for (step, number) in steps.iter_mut().zip(1..) {
            step.number = number;
        }
    }
}

/// Builds the text of a STATUS.md from a task: its steps with their boxes. A task without steps gets one step
/// with its boxes, else one box per list item, else one box with its title.
pub fn build_status_text(title: &str, prompt: &str) -> String {
    let mut out = format!(
        "# Status: {}\n\nA box is ticked when what it says is done and committed. Notes stand below their step.\n",
        terminal_text::escape_line(title)
    );
    let render_boxes = |lines: &[(bool, String)]| -> String {
        let line =
            |(ticked, text): &(bool, String)| format!("- [{}] {text}\n", if *ticked { 'x' } else { ' ' });
        lines.iter().map(line).collect::<Vec<_>>().concat()
    };
    let outline = TaskOutline::parse(prompt);
    for (heading, step) in &outline.steps {
        let step_boxes = if step.boxes.is_empty() { &step.unboxed_items } else { &step.boxes };
        let heading_box = [(false, heading.clone())];
        let step_boxes = if step_boxes.is_empty() { &heading_box[..] } else { step_boxes };
        out.push_str(&format!("\n### {heading}\n\n{}", render_boxes(step_boxes)));
    }
    if outline.steps.is_empty() {
        let task_boxes = if outline.outside_steps.boxes.is_empty() {
            &outline.outside_steps.unboxed_items
        } else {
            &outline.outside_steps.boxes
        };
        let title_box = [(false, terminal_text::escape_line(title))];
        let task_boxes = if task_boxes.is_empty() { &title_box[..] } else { task_boxes };
        out.push_str(&format!(
            "\n### Step 1: {}\n\n{}",
            terminal_text::escape_line(title),
            render_boxes(task_boxes)
        ));
    }
    out
}

/// Returns whether a task has no steps, boxes or list items, so that its STATUS.md gets a single box with its
/// title.
pub fn has_only_title_box(prompt: &str) -> bool {
    let outline = TaskOutline::parse(prompt);
    outline.steps.is_empty()
        && outline.outside_steps.boxes.is_empty()
        && outline.outside_steps.unboxed_items.is_empty()
}

/// Returns the text with its first unticked box ticked.
pub fn tick_first_box(text: &str) -> String {
    text.replacen("- [ ]", "- [x]", 1)
}

/// Boxes and list items of a task, from which the boxes of STATUS.md are built.
#[derive(Debug, Default)]
struct BoxCandidates {
    /// Checkboxes: whether each is ticked, and its text.
    boxes: Vec<(bool, String)>,
    /// Top-level list items without a checkbox: always `false` for not ticked, and the text.
    unboxed_items: Vec<(bool, String)>,
}

impl BoxCandidates {
    /// Adds the checkbox or the top-level list item of a line. Any other line is ignored.
    fn add_line(&mut self, line: Line<'_>) {
        let Some(item) = line.item().filter(|item| !item.text.is_empty()) else { return };
        let text = terminal_text::escape_line(item.text);
        match item.ticked {
            Some(ticked) => self.boxes.push((ticked, text)),
            None if item.indent == 0 => self.unboxed_items.push((false, text)),
            None => {}
        }
    }
}

/// Steps and boxes in the text of a task.
#[derive(Debug, Default)]
struct TaskOutline {
    /// Steps, each as its heading with its boxes and list items.
    steps: Vec<(String, BoxCandidates)>,
    /// Boxes and list items outside of all steps.
    outside_steps: BoxCandidates,
}

impl TaskOutline {
    /// Parses a task's prompt. Lists below the headings `Dependencies` and `File scope` are left out.
    fn parse(prompt: &str) -> TaskOutline {
        let mut out = TaskOutline::default();
        let (mut in_step, mut is_work) = (false, true);
        for line in markdown::lines_outside_code(prompt) {
            if let Some(heading) = line.heading().filter(|heading| heading.level <= 3) {
                in_step = parse_step_heading(heading.text).is_some();
                // The lists below these headings are no work to do.
                is_work = !["dependencies", "file scope"].contains(&heading.text.to_lowercase().as_str());
                let text = terminal_text::escape_line(heading.text);
                if in_step {
                    out.steps.push((text, BoxCandidates::default()));
                }
                continue;
            }
            match out.steps.last_mut().filter(|_| in_step) {
                Some((_, step)) => step.add_line(line),
                None if is_work => out.outside_steps.add_line(line),
                None => {}
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_steps(text: &str) -> Vec<(u32, String, usize, usize)> {
        let steps = TaskProgress::parse(text).steps.into_iter();
        steps.map(|step| (step.number, step.title, step.boxes_ticked, step.boxes_total)).collect()
    }

    #[test]
    fn assigns_boxes_to_the_step_above() {
        let text = "# S\n- [x] no step's\n### Step 0: Look\n- [x] a\n#### more\n- [ ] b\n### Notes\n- [ ] none\n\
                    ### Step 2 — Do\n* [X] c\n```\n- [ ] code\n```\n### Step 3: empty\n";
        assert_eq!(parse_steps(text), [(0, "Look".into(), 1, 2), (2, "Do".into(), 1, 1)]);
        let status = TaskProgress::parse(text);
        assert_eq!(
            (status.boxes_ticked(), status.boxes_total(), status.first_open_step().map(|step| step.number)),
            (2, 3, Some(0))
        );
        assert_eq!(parse_steps("- [x] a\n- [ ] b"), [(1, String::new(), 1, 2)]);
        assert_eq!(parse_steps("no box\n### Step 1: x"), []);
    }

    #[test]
    fn numbers_steps_in_order_unless_ascending() {
        for text in [
            "### Step 2\n- [ ] a\n### Step 2\n- [ ] b",
            "### Step x: y\n- [ ] a\n### Step 99999999999\n- [ ] b",
        ] {
            let numbers: Vec<u32> = parse_steps(text).into_iter().map(|step| step.0).collect();
            assert_eq!(numbers, [1, 2], "{text}");
        }
        assert_eq!(parse_steps("### Step é\u{1b}[2J\n- [ ] a"), [(1, "é\\u{1b}[2J".into(), 0, 1)]);
    }

    #[test]
    fn builds_boxes_from_steps_boxes_items_or_title() {
        let build = |prompt: &str| {
            let text = build_status_text("Refunds", prompt);
            text.split_once("step.\n").unwrap().1.to_owned()
        };
        let steps = "# T\n## File Scope\n- `src/`\n### Step 1: A\n- [ ] a\n- note\n### Step 2: B\n- b\n  - deeper\n### Step 3: C\n";
        assert_eq!(
            build(steps),
            "\n### Step 1: A\n\n- [ ] a\n\n### Step 2: B\n\n- [ ] b\n\n### Step 3: C\n\n- [ ] Step 3: C\n"
        );
        let boxes = "# T\n## Dependencies\n- **None**\n## Done when\n- [ ] x\n- [x] y\n- z\n";
        assert_eq!(build(boxes), "\n### Step 1: Refunds\n\n- [ ] x\n- [x] y\n");
        assert_eq!(build("# T\n- z\n1. w\n"), "\n### Step 1: Refunds\n\n- [ ] z\n- [ ] w\n");
        assert_eq!(build("just do it"), "\n### Step 1: Refunds\n\n- [ ] Refunds\n");
    }

    #[test]
    fn built_status_text_parses_back() {
        let step = |n| format!("### Step {n}: s\n- [x] {n}\n- [ ] `b`\n");
        let long = (0..1000).map(step).collect::<Vec<_>>().concat();
        let status = TaskProgress::parse(&build_status_text("x", &long));
        assert_eq!((status.steps.len(), status.boxes_ticked(), status.boxes_total()), (1000, 1000, 2000));
    }
}
