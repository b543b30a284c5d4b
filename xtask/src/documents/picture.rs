//! Picture of a terminal in which commands run: an SVG that shows one command after the other.

use std::fmt::Write;

/// Columns and rows of the terminal; longer lines widen it.
const SIZE: (usize, usize) = (80, 24);

/// Command that is not in the picture: the order of its output depends on the second of each commit.
const LEFT_OUT: &str = "$ git log --oneline --graph";

/// Width and height of a cell, and the margin, in pixels.
const CELL: (f64, f64, f64) = (8.4, 19.0, 14.0);

/// Seconds that a command is shown, and that each line of its output adds.
const SECONDS: (f64, f64) = (1.2, 0.22);

/// Seconds that the end is shown before the picture begins again.
const LAST_SECONDS: f64 = 5.0;

const HEAD: &str = "text{font:14px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#cdd6f4;\
white-space:pre}.b{font-weight:bold}.d{fill:#7f849c}.c1{fill:#f38ba8}.c2{fill:#a6e3a1}.c3{fill:#f9e2af}\
.c4{fill:#89b4fa}.c5{fill:#cba6f7}.c6{fill:#94e2d5}";

/// Returns output without the sequences that color it.
pub(crate) fn without_colors(text: &str) -> String {
    spans(text).into_iter().map(|(_, text)| text).collect()
}

/// Splits output into parts with the classes of their style.
fn spans(text: &str) -> Vec<(String, &str)> {
    let mut parts = text.split("\x1b[");
    let mut out = vec![(String::new(), parts.next().unwrap_or_default())];
    let mut classes: Vec<String> = Vec::new();
    for part in parts {
        let (codes, rest) = part.split_once('m').unwrap_or((part, ""));
        for code in codes.split(';') {
            match code.as_bytes() {
                [b'1'] => classes.push("b".to_owned()),
                [b'2'] => classes.push("d".to_owned()),
                [b'3' | b'9', color @ b'1'..=b'6'] => classes.push(format!("c{}", char::from(*color))),
                _ => classes.clear(),
            }
        }
        out.push((classes.join(" "), rest));
    }
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns the lines of output as contents of SVG text elements.
fn svg_lines(output: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    for (classes, text) in spans(output) {
        for (n, part) in text.split('\n').enumerate() {
            if n > 0 {
                out.push(String::new());
            }
            let Some(line) = out.last_mut().filter(|_| !part.is_empty()) else { continue };
            *line += &match classes.as_str() {
                "" => escaped(part),
                _ => format!("<tspan class=\"{classes}\">{}</tspan>", escaped(part)),
            };
        }
    }
    out.pop_if(|last| last.is_empty());
    out
}

/// Returns output without the command that is left out.
fn shown(output: &str) -> String {
    let mut is_left_out = false;
    let lines = output.split_inclusive('\n').filter(|line| {
        let plain = without_colors(line);
        is_left_out = plain.trim_end() == LEFT_OUT || is_left_out && plain.starts_with("  ");
        !is_left_out
    });
    lines.collect()
}

/// Returns the numbers of the lines with which the commands begin, a heading above a command included.
fn starts(output: &str) -> Vec<usize> {
    let plain = without_colors(output);
    let lines: Vec<&str> = plain.lines().collect();
    let mut out: Vec<usize> = Vec::new();
    for at in (0..lines.len()).filter(|at| lines[*at].starts_with("$ ")) {
        let above = lines[..at].iter().rev().take_while(|l| !l.starts_with("$ ") && !l.starts_with("  "));
        out.push(at - above.count());
    }
    out
}

/// Returns the picture of a session: its commands appear one after the other, with their output, and the
/// terminal scrolls. `output` has each command on a line that begins with `$ `; lines of output are indented.
pub(crate) fn svg(output: &str) -> String {
    let output = &shown(output);
    let longest = without_colors(output).lines().map(|line| line.chars().count()).max();
    let ((columns, rows), (cell_width, cell_height, margin)) = (SIZE, CELL);
    let pixels = |cells: usize, size: f64| f64::from(u32::try_from(cells).unwrap_or(u32::MAX)) * size;
    let columns = columns.max(longest.unwrap_or_default());
    let (width, height) =
        (pixels(columns, cell_width) + 2.0 * margin, pixels(rows, cell_height) + 2.0 * margin);
    let lines = svg_lines(output);
    let starts = starts(output);
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([lines.len()]).collect();
    let lengths = starts.iter().zip(&ends).map(|(start, end)| SECONDS.0 + pixels(end - start, SECONDS.1));
    let lengths: Vec<f64> = lengths.collect();
    let total = lengths.iter().sum::<f64>() + LAST_SECONDS;
    let (mut scroll, mut shown, mut groups) = (String::new(), String::new(), String::new());
    let mut begin = 0.0;
    for (n, (start, end)) in starts.iter().zip(&ends).enumerate() {
        let percent = 100.0 * begin / total;
        let offset = pixels(end.saturating_sub(rows), cell_height);
        let _ = write!(scroll, "{percent:.2}%{{transform:translateY(-{offset:.0}px)}}");
        let _ = writeln!(
            shown,
            "@keyframes k{n}{{0%{{opacity:0}}{percent:.2}%,100%{{opacity:1}}}}.k{n}{{animation-name:k{n}}}"
        );
        let _ = writeln!(groups, "<g class=\"k k{n}\">");
        for (row, line) in lines.iter().enumerate().take(*end).skip(*start).filter(|(_, l)| !l.is_empty()) {
            let y = pixels(row, cell_height) + margin + 14.0;
            let _ = writeln!(groups, "<text x=\"{margin}\" y=\"{y:.0}\">{line}</text>");
        }
        groups += "</g>\n";
        begin += lengths[n];
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" xml:space=\"preserve\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\">\n\
         <title>git proq demo</title>\n<style>\n{HEAD}\n\
         .k,.s{{animation:s {total:.1}s step-end infinite}}\n@keyframes s{{{scroll}}}\n{shown}\
         @media (prefers-reduced-motion){{.k,.s{{animation:none}}}}\n</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1e1e2e\"/>\n\
         <clipPath id=\"screen\"><rect x=\"0\" y=\"{margin}\" width=\"100%\" height=\"{:.0}\"/></clipPath>\n\
         <g clip-path=\"url(#screen)\"><g class=\"s\">\n{groups}</g></g>\n</svg>\n",
        pixels(rows, cell_height)
    )
}
