//! Parts of documents that repeat what the program prints. They stand between two invisible comments.

/// Documents with generated parts, by their paths in the repository.
pub(crate) const PAGES: [&str; 3] = ["README.md", "docs/guide/commands.md", "docs/guide/settings.md"];

/// Path of the picture of the demo.
pub(crate) const PICTURE: &str = "docs/demo.svg";

/// Commands of the demo whose output is the transcript of the README.
const SHOWN_COMMANDS: [&str; 4] =
    ["git proq list", "git proq preview add-payments", "git proq preview --back", "git proq merge --all"];

/// Output of the program that documents repeat.
pub(crate) struct Printed {
    /// Output of `git proq man`.
    pub(crate) man_page: String,
    /// Output of `git proq config list --json`.
    pub(crate) settings: serde_json::Value,
    /// Output of `git proq demo`, without colors.
    pub(crate) demo: String,
}

/// Returns a page with its generated parts written again.
///
/// # Errors
/// Fails for a part without an end, or of a name that is not known, and for a demo without a command that the
/// transcript shows.
pub(crate) fn with_new_parts(page: &str, printed: &Printed) -> Result<String, String> {
    let mut parts = page.split("<!-- generated: ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(" -->\n").ok_or("a comment does not end")?;
        let (_, after) =
            rest.split_once("<!-- end -->").ok_or_else(|| format!("the part {name} has no end"))?;
        let new = match name {
            "commands" => commands(&printed.man_page),
            "exit codes" => exit_codes(&printed.man_page),
            "settings" => settings(&printed.settings),
            "demo" => transcript(&printed.demo)?,
            _ => return Err(format!("there is no part {name}")),
        };
        out += &format!("<!-- generated: {name} -->\n\n{}\n\n<!-- end -->{after}", new.trim());
    }
    Ok(out)
}

/// Replaces the words that differ between runs, so that texts can be compared: commits, folders, ages, and
/// the widths of columns.
pub(crate) fn mask(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "./-_".contains(c);
    let mut out = String::new();
    for word in text.split_inclusive(|c| !is_part(c)) {
        let bare = word.trim_end_matches(|c| !is_part(c));
        let is_commit = (7..=8).contains(&bare.len()) && bare.bytes().all(|b| b.is_ascii_hexdigit());
        let is_age = bare.strip_suffix('s').is_some_and(|n| n.parse::<u32>().is_ok());
        match bare.split_once("/shop/") {
            Some((_, below)) => out.extend(["SHOP/", below]),
            None if is_commit => out += "COMMIT",
            None if is_age => out += "AGE",
            None => out += bare,
        }
        let separator = &word[bare.len()..];
        if separator != " " || !out.ends_with(' ') {
            out += separator;
        }
    }
    out
}

/// Returns text of a man page without the marks of roff.
fn plain(line: &str) -> String {
    let marks = [("\\fB", ""), ("\\fR", ""), ("\\-", "-"), ("\\(aq", "'"), ("\\(ga", "`"), ("\\&", "")];
    marks.iter().fold(line.to_owned(), |line, (mark, text)| line.replace(mark, text))
}

/// Returns the lines of a section of a man page.
fn section<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let (_, rest) = page.split_once(&format!("\n.SH {name}\n")).unwrap_or_default();
    rest.lines().take_while(|line| !line.starts_with(".SH ")).collect()
}

fn commands(man_page: &str) -> String {
    let mut out = String::new();
    let lines = section(man_page, "COMMANDS");
    for (at, line) in lines.iter().enumerate() {
        if let Some(group) = line.strip_prefix(".SS ") {
            out += &format!("\n**{}**\n\n| command | what it does |\n|---|---|\n", plain(group));
        } else if let Some(name) = plain(line).strip_prefix("git-proq-").and_then(|l| l.strip_suffix("(1)")) {
            let about = lines.get(at + 1).map(|line| plain(line)).unwrap_or_default();
            out += &format!("| `{name}` | {} |\n", about.replace('|', "\\|"));
        }
    }
    out
}

fn exit_codes(man_page: &str) -> String {
    let lines = section(man_page, "EXIT STATUS");
    let rows = lines.windows(2).filter_map(|pair| Some((pair[0].strip_prefix(".B ")?, plain(pair[1]))));
    let rows = rows.map(|(code, meaning)| format!("| {code} | {meaning} |\n"));
    format!("| code | meaning |\n|---|---|\n{}", rows.collect::<String>())
}

fn settings(answer: &serde_json::Value) -> String {
    let mut out = String::new();
    let mut group = String::new();
    for setting in answer["settings"].as_array().into_iter().flatten() {
        let text = |key: &str| setting[key].as_str().unwrap_or_default();
        let (prefix, _) = text("key").split_once('.').unwrap_or_default();
        if prefix != group {
            prefix.clone_into(&mut group);
            out += &format!(
                "\n## {prefix}\n\n| setting | default | values | what it does |\n|---|---|---|---|\n"
            );
        }
        let default = match text("default") {
            "" => "none".to_owned(),
            default => format!("`{default}`"),
        };
        let only_you = if setting["by_repository"] == true { "" } else { " (you)" };
        let (key, form, about) = (text("key"), text("form"), text("about").replace('|', "\\|"));
        out += &format!("| `{key}`{only_you} | {default} | {form} | {about} |\n");
    }
    out
}

fn transcript(demo: &str) -> Result<String, String> {
    let mut steps: Vec<String> = Vec::new();
    for command in SHOWN_COMMANDS {
        let mut lines = demo.lines().skip_while(|line| line.strip_prefix("$ ") != Some(command));
        let head = lines.next().ok_or_else(|| format!("the demo does not run {command}"))?;
        let output = lines.take_while(|line| line.starts_with("  ")).map(str::to_owned);
        steps.extend([head.to_owned()].into_iter().chain(output));
    }
    Ok(format!("```text\n{}\n```", steps.join("\n")))
}
