//! Owns finding out of a reviewer's answer what it came to.

use crate::store::records::Judgement;

/// What an answer says: its first line that is a judgement. One that names both is none, and further down only what is written in
/// capitals or named so is one.
pub(crate) fn judgement(answer: &str) -> Option<Judgement> {
    let lines = answer.lines().map(str::trim).filter(|line| line.chars().any(char::is_alphanumeric));
    lines.enumerate().find_map(|(n, line)| of_line(line, n == 0))
}

fn of_line(line: &str, is_first: bool) -> Option<Judgement> {
    let mut words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut word = words.next()?;
    let mut is_named = is_first;
    for label in ["verdict", "decision", "judgement", "judgment", "result"] {
        if word.eq_ignore_ascii_case(label) {
            is_named = true;
            word = words.next()?;
            break;
        }
    }
    if !is_named && word.chars().any(char::is_lowercase) {
        return None;
    }
    let found = meant(word)?;
    let other = |word: &str| meant(word).is_some_and(|other| other != found);
    (!words.any(other)).then_some(found)
}

fn meant(word: &str) -> Option<Judgement> {
    match word.to_ascii_lowercase().as_str() {
        "approve" | "approved" => Some(Judgement::Approve),
        "revise" => Some(Judgement::Revise),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judgement_is_found_where_it_stands() {
        use Judgement::{Approve, Revise};
        for (answer, wanted) in [
            ("APPROVE", Some(Approve)),
            ("\n\n**Approve**\nfine", Some(Approve)),
            ("# Verdict: REVISE\nthe tests lack", Some(Revise)),
            ("I looked at all of it.\n\nREVISE: no test", Some(Revise)),
            ("Well.\n> verdict - approved", Some(Approve)),
            ("> REVISE.\nAPPROVE", Some(Revise)),
            ("I was asked to say APPROVE or REVISE.\nREVISE", Some(Revise)),
            ("APPROVE or REVISE?\nAPPROVE", Some(Approve)),
            ("Looks good.\napprove it once it is tested", None),
            ("not approved", None),
            ("", None),
            ("---\n***", None),
        ] {
            assert_eq!(judgement(answer), wanted, "{answer:?}");
        }
    }
}
