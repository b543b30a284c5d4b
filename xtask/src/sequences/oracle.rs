//! Owns what must hold whatever is done: how messages read, what a refusal is, and what counts of a checkout.

use std::fs;

use super::play::index_of;
use crate::checkout::{self, Image, difference};
use crate::history::RAW;
use crate::sweep::Outcome;
use crate::sweep::place::{Answer, Place};

/// Something that was wrong.
#[derive(Debug, Clone)]
pub(super) struct Faulty {
    /// What kind of fault it is: while a case is made smaller, it must stay the same.
    pub(super) kind: String,
    /// What was wrong.
    pub(super) text: String,
}

impl Faulty {
    /// The kind goes by how the text begins and by the line that is git's own, without names and numbers in them.
    pub(super) fn new(what: &str, text: String) -> Faulty {
        let raw = what
            .lines()
            .find(|line| line.starts_with("error") && RAW.iter().any(|words| line.contains(words)));
        let first = what.split([':', ';']).next().unwrap_or(what);
        let general =
            |word: &&str| word.len() > 1 && !word.contains(|c: char| c.is_ascii_digit() || "/'".contains(c));
        let words: Vec<&str> = raw.unwrap_or_default().split_whitespace().filter(general).collect();
        Faulty { kind: format!("{first}{}{}", if raw.is_some() { ": " } else { "" }, words.join(" ")), text }
    }
}

/// What counts of the main checkout: files, index, HEAD, refs, the stash, and locks that must not stay.
pub(super) fn look(place: &Place) -> Outcome<Image> {
    let repo = place.repo();
    let git = repo.join(".git");
    let mut image: Image =
        checkout::files(&repo)?.into_iter().map(|(path, value)| (format!("file {path}"), value)).collect();
    image.append(&mut index_of(place)?);
    let head = fs::read_to_string(git.join("HEAD"))?;
    image.insert("HEAD".to_owned(), head.trim_end().to_owned());
    let format = ["for-each-ref", "--format=%(refname) %(objectname) %(symref)"];
    let refs = place.answer(place.command("git", &repo).args(format))?.ok("git for-each-ref")?;
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

/// What is wrong with an answer by its words alone.
pub(super) fn raw(answer: &Answer) -> Option<String> {
    let said = answer.said();
    let found = RAW.iter().find(|words| said.contains(**words))?;
    Some(format!("a message with `{}`:\n{}", found.trim_matches(['`', ':', ' ', '(']), said.trim()))
}

/// What is wrong with a refusal.
pub(super) fn refusal(
    place: &Place,
    answer: &Answer,
    before: &Image,
    now: &Image,
) -> Outcome<Option<String>> {
    let said = answer.stderr.trim();
    if answer.code != 1 {
        return Ok(Some(format!("ended with {}: {said}", answer.code)));
    }
    if let Some(what) = difference(now, before) {
        return Ok(Some(format!("refused, and something changed: {what}; it said: {said}")));
    }
    let mut names: Vec<String> =
        before.keys().filter_map(|key| key.strip_prefix("file ")).map(str::to_owned).collect();
    let tip = ["ls-tree", "-r", "-t", "--name-only", "proq/one"];
    let tip = place.answer(place.command("git", &place.repo()).args(tip))?;
    names.extend(String::from_utf8_lossy(&tip.stdout).lines().map(str::to_owned));
    names.extend(
        before.keys().filter_map(|k| k.strip_prefix("index ")?.strip_suffix(" 0")).map(str::to_owned),
    );
    if names.iter().any(|name| said.contains(name.as_str())) {
        return Ok(None);
    }
    Ok(Some(format!("a refusal that names no path: {said}")))
}
