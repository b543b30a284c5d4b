//! Parser for the verdict in a reviewer's answer.

use proq_store::records::task_loop::ReviewVerdict;

/// Returns the verdict in a reviewer's answer: that of the first line that starts with a verdict. A line that
/// contains both verdicts is skipped. After the first line, a verdict must be in capitals or follow a label
/// such as "verdict".
pub(crate) fn parse_verdict(answer: &str) -> Option<ReviewVerdict> {
    let lines = answer.lines().map(str::trim).filter(|line| line.chars().any(char::is_alphanumeric));
    lines.enumerate().find_map(|(n, line)| parse_line(line, n == 0))
}

fn parse_line(line: &str, is_first: bool) -> Option<ReviewVerdict> {
    let mut words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut word = words.next()?;
    let mut accepts_lowercase = is_first;
    for label in ["verdict", "decision", "judgement", "judgment", "result"] {
        if word.eq_ignore_ascii_case(label) {
            accepts_lowercase = true;
            word = words.next()?;
            break;
        }
    }
    if !accepts_lowercase && word.chars().any(char::is_lowercase) {
        return None;
    }
    let verdict = verdict_of_word(word)?;
    let contradicts = |word: &str| verdict_of_word(word).is_some_and(|other| other != verdict);
    (!words.any(contradicts)).then_some(verdict)
}

fn verdict_of_word(word: &str) -> Option<ReviewVerdict> {
    match word.to_ascii_lowercase().as_str() {
        "approve" | "approved" => Some(ReviewVerdict::Approve),
        "revise" => Some(ReviewVerdict::Revise),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_verdict_of_an_answer() {
        use ReviewVerdict::{Approve, Revise};
        for (answer, expected) in [
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
            assert_eq!(parse_verdict(answer), expected, "{answer:?}");
        }
    }
}
