//! Rules that hold after every command: how messages read, what a refusal may do, and what of a checkout is
//! compared.

use std::fs;

use super::runner::index_image;
use crate::checkout::{self, Image, difference};
use crate::history::FORBIDDEN_OUTPUT;
use crate::sweep::Outcome;
use crate::sweep::fixture::{CommandOutput, Fixture};

/// Fault of a case.
#[derive(Debug, Clone)]
pub(super) struct CaseFault {
    /// Kind of the fault; it must stay the same while a case is minimized.
    pub(super) kind: String,
    /// Description of the fault.
    pub(super) text: String,
}

impl CaseFault {
    /// Derives the kind from the start of the text and from the line that is git's own, without names and
    /// numbers.
    pub(super) fn new(what: &str, text: String) -> CaseFault {
        let raw = what.lines().find(|line| {
            line.starts_with("error") && FORBIDDEN_OUTPUT.iter().any(|words| line.contains(words))
        });
        let first = what.split([':', ';']).next().unwrap_or(what);
        let general =
            |word: &&str| word.len() > 1 && !word.contains(|c: char| c.is_ascii_digit() || "/'".contains(c));
        let words: Vec<&str> = raw.unwrap_or_default().split_whitespace().filter(general).collect();
        CaseFault {
            kind: format!("{first}{}{}", if raw.is_some() { ": " } else { "" }, words.join(" ")),
            text,
        }
    }
}

/// Returns the compared state of the main checkout: files, index, HEAD, refs, the stash, and locks that must
/// not stay.
pub(super) fn read_checkout(fixture: &Fixture) -> Outcome<Image> {
    let repo = fixture.repo();
    let git = repo.join(".git");
    let mut image: Image =
        checkout::files(&repo)?.into_iter().map(|(path, value)| (format!("file {path}"), value)).collect();
    image.append(&mut index_image(fixture)?);
    let head = fs::read_to_string(git.join("HEAD"))?;
    image.insert("HEAD".to_owned(), head.trim_end().to_owned());
    let format = ["for-each-ref", "--format=%(refname) %(objectname) %(symref)"];
    let refs = fixture.output(fixture.command("git", &repo).args(format))?.ok("git for-each-ref")?;
    for line in String::from_utf8_lossy(&refs).lines() {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        if !name.starts_with("refs/proq/") {
            image.insert(format!("ref {name}"), value.to_owned());
        }
    }
    image.insert("stash".to_owned(), fs::read_to_string(git.join("logs/refs/stash")).unwrap_or_default());
    for name in ["index.lock", "HEAD.lock", "MERGE_HEAD"].into_iter().filter(|name| git.join(name).exists()) {
        image.insert(format!("left behind {name}"), String::new());
    }
    Ok(image)
}

/// Describes a forbidden text in an answer.
pub(super) fn forbidden_output(answer: &CommandOutput) -> Option<String> {
    let output = answer.all_output();
    let found = FORBIDDEN_OUTPUT.iter().find(|words| output.contains(**words))?;
    Some(format!("a message with `{}`:\n{}", found.trim_matches(['`', ':', ' ', '(']), output.trim()))
}

/// Describes what is wrong with a refusal.
pub(super) fn refusal_fault(
    fixture: &Fixture,
    answer: &CommandOutput,
    before: &Image,
    now: &Image,
) -> Outcome<Option<String>> {
    let stderr = answer.stderr.trim();
    if answer.code != 1 {
        return Ok(Some(format!("ended with {}: {stderr}", answer.code)));
    }
    if let Some(what) = difference(now, before) {
        return Ok(Some(format!("refused, and something changed: {what}; it said: {stderr}")));
    }
    let mut names: Vec<String> =
        before.keys().filter_map(|key| key.strip_prefix("file ")).map(str::to_owned).collect();
    let tip = ["ls-tree", "-r", "-t", "--name-only", "proq/one"];
    let tip = fixture.output(fixture.command("git", &fixture.repo()).args(tip))?;
    names.extend(String::from_utf8_lossy(&tip.stdout).lines().map(str::to_owned));
    names.extend(
        before.keys().filter_map(|k| k.strip_prefix("index ")?.strip_suffix(" 0")).map(str::to_owned),
    );
    if names.iter().any(|name| stderr.contains(name.as_str())) {
        return Ok(None);
    }
    Ok(Some(format!("a refusal that names no path: {stderr}")))
}
