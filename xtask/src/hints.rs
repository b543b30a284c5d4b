//! `cargo xtask hints`: which hints of the source no test has seen and followed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod templates;

use templates::{Template, templates_below};

/// List the hints that no test follows
///
/// Reads what the tests recorded in DIR (PROQ_TEST_HINTS=DIR cargo test). A hint is followed when a test printed it and then ran
/// its command, which the command line accepted. tests/fixtures/hints.toml has the exceptions. Ends with 1 when a hint is neither
/// followed nor an exception.
#[derive(Debug, Clone, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Folder with the record of all tests
    #[arg(long, value_name = "DIR")]
    check: PathBuf,
    /// Print the lines for tests/fixtures/hints.toml instead
    #[arg(long)]
    list: bool,
    /// Leave out hints of tests that this machine cannot run, by what they need [can be repeated]
    #[arg(long, value_name = "NEED")]
    unmet: Vec<String>,
}

/// Exit codes of a command that could not do what its hint promises: wrong usage, a bug, no such program.
const USELESS_EXITS: [i64; 4] = [2, 70, 126, 127];

/// Hints without a test, by template: exceptions with a reason, and those that are to get one.
#[derive(Default)]
struct Exceptions {
    /// Templates that no test can follow.
    cannot: BTreeSet<String>,
    /// Templates that are not yet reached by a test.
    not_yet: BTreeSet<String>,
    /// Templates that tests follow in some runs only: at a certain timing, or on another machine.
    in_some_runs: BTreeSet<String>,
    /// Templates that need more than every machine has, also where this one has it.
    demanding: BTreeSet<String>,
}

/// What tests did with the hints of one template.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Reached {
    is_printed: bool,
    is_run: bool,
}

pub(crate) fn main(args: &Args) -> ExitCode {
    match check(args) {
        Ok(Findings { problems, notes }) => {
            for line in problems.iter().chain(&notes) {
                println!("{line}");
            }
            if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What the comparison found, one line each.
#[derive(Debug, Default, PartialEq)]
struct Findings {
    /// Hints that are not followed, and exceptions for a hint that does not exist.
    problems: Vec<String>,
    /// Exceptions that this run did not need. Another git may need them, so they are no problem.
    notes: Vec<String>,
}

/// Compares the hints of the source with the record.
fn check(args: &Args) -> Result<Findings, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let templates = templates_below(&root)?;
    let reached = read_record(&args.check, &templates)?;
    let exceptions = read_exceptions(&root.join("tests/fixtures/hints.toml"), &args.unmet)?;
    Ok(compare(&templates, &reached, &exceptions, args.list))
}

/// Compares templates, record and exceptions.
fn compare(
    templates: &[Template],
    reached: &BTreeMap<&str, Reached>,
    exceptions: &Exceptions,
    is_listing: bool,
) -> Findings {
    let Findings { mut problems, mut notes } = Findings::default();
    for template in templates {
        let key = template.key.as_str();
        let Reached { is_printed, is_run } = reached.get(key).copied().unwrap_or_default();
        let is_followed = is_run || (is_printed && !template.has_command());
        if exceptions.in_some_runs.contains(key) {
            continue;
        }
        let is_excepted = exceptions.cannot.contains(key) || exceptions.not_yet.contains(key);
        let place = template.place.display();
        match (is_followed, is_excepted) {
            (false, false) if is_listing => problems.push(format!("  {},", toml::Value::from(key))),
            (false, false) if is_printed => problems.push(format!("{place}: no test runs the hint '{key}'")),
            (false, false) => problems.push(format!("{place}: no test prints the hint '{key}'")),
            (true, true) => notes.push(format!("hints.toml: a test follows '{key}'; remove it")),
            _ => {}
        }
    }
    let known: BTreeSet<&str> = templates.iter().map(|template| template.key.as_str()).collect();
    let all = exceptions.cannot.iter().chain(&exceptions.not_yet).chain(&exceptions.in_some_runs);
    let all = all.chain(exceptions.demanding.difference(&exceptions.in_some_runs));
    let unknown = all.filter(|key| !known.contains(key.as_str()));
    problems.extend(unknown.map(|key| format!("hints.toml: no hint is '{key}'; remove it")));
    Findings { problems, notes }
}

/// Reads the record of all test programs: what they did with each template.
fn read_record<'t>(dir: &Path, templates: &'t [Template]) -> Result<BTreeMap<&'t str, Reached>, String> {
    let fail = |error: std::io::Error| format!("cannot read {}: {error}", dir.display());
    let mut out: BTreeMap<&str, Reached> = BTreeMap::new();
    for entry in std::fs::read_dir(dir).map_err(fail)? {
        let text = std::fs::read_to_string(entry.map_err(fail)?.path()).map_err(fail)?;
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
            let hint = line["hint"].as_str().unwrap_or_default();
            let matching = templates.iter().filter(|template| template.matches(hint));
            let Some(template) = matching.max_by_key(|template| template.literal_len()) else { continue };
            let reached = out.entry(&template.key).or_default();
            reached.is_printed = true;
            reached.is_run |= line["exit"].as_i64().is_some_and(|exit| !USELESS_EXITS.contains(&exit));
        }
    }
    Ok(out)
}

/// Reads the exceptions. Each of those that cannot be followed has a reason. `unmet` has the needs of tests
/// that could not run.
fn read_exceptions(path: &Path, unmet: &[String]) -> Result<Exceptions, String> {
    let fail = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| fail(&error))?;
    let table: toml::Table = text.parse().map_err(|error| fail(&error))?;
    let mut out = Exceptions::default();
    for (section, templates) in
        [("cannot_be_followed", &mut out.cannot), ("depends_on_timing", &mut out.in_some_runs)]
    {
        for (template, reason) in table[section].as_table().into_iter().flatten() {
            if reason.as_str().is_none_or(str::is_empty) {
                return Err(fail(&format!("'{template}' has no reason")));
            }
            templates.insert(template.clone());
        }
    }
    for (template, need) in table["needs"].as_table().into_iter().flatten() {
        out.demanding.insert(template.clone());
        if unmet.iter().any(|unmet| need.as_str() == Some(unmet)) {
            out.in_some_runs.insert(template.clone());
        }
    }
    let not_yet = table["not_yet_reached_by_a_test"].as_array().into_iter().flatten();
    out.not_yet = not_yet.filter_map(|template| template.as_str().map(str::to_owned)).collect();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares two hints of a source, for what tests did with the first one.
    fn findings(reached: Reached, exceptions: &[&str]) -> Findings {
        let source = r#"fn f() { hint!("show it: git proq show {name}"); hint!("type more") }"#;
        let templates = templates::templates_in(source, Path::new("a.rs")).unwrap();
        let type_more = Reached { is_printed: true, is_run: false };
        let record = BTreeMap::from([(templates[0].key.as_str(), reached), ("type more", type_more)]);
        let cannot = exceptions.iter().map(|&template| template.to_owned()).collect();
        compare(&templates, &record, &Exceptions { cannot, ..Exceptions::default() }, false)
    }

    #[test]
    fn refuses_hints_without_test_and_unknown_exceptions() {
        let printed = Reached { is_printed: true, is_run: false };
        let run = Reached { is_printed: true, is_run: true };
        let show = "show it: git proq show {}";
        let problems = |reached, exceptions: &[&str]| findings(reached, exceptions).problems;
        assert_eq!(findings(run, &[]), Findings::default());
        assert_eq!(findings(printed, &[show]), Findings::default());
        assert_eq!(problems(printed, &[]), [format!("a.rs: no test runs the hint '{show}'")]);
        assert_eq!(problems(Reached::default(), &[]), [format!("a.rs: no test prints the hint '{show}'")]);
        let Findings { problems, notes } = findings(run, &[show, "gone"]);
        assert_eq!(problems, ["hints.toml: no hint is 'gone'; remove it"]);
        assert_eq!(notes, [format!("hints.toml: a test follows '{show}'; remove it")]);
    }

    #[test]
    fn excuses_hints_whose_tests_cannot_run_here() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/hints.toml");
        let of = |unmet: &[&str]| {
            let unmet: Vec<String> = unmet.iter().map(|&need| need.to_owned()).collect();
            read_exceptions(&path, &unmet).unwrap().in_some_runs
        };
        let upgrade = "upgrade git to 2.46 or newer";
        assert!(!of(&["needs root"]).contains(upgrade) && of(&["needs git 2.46"]).contains(upgrade));
        assert!(of(&["needs root"]).len() > of(&[]).len());
    }
}
