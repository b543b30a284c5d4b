//! Canonical form of journals: the values that differ between runs are replaced by fixed ones, and back.

use std::cmp::Reverse;

use proq_store::locks::holder::terminal_session_id;
use proq_test_kit::Sandbox;

/// Path that stands for the sandbox's folder.
const ROOT: &str = "/golden";

/// A kind of value that differs between runs: the texts before it, and the numbers that stand for it.
struct Kind {
    prefixes: &'static [&'static str],
    is_text: bool,
    first_number: u32,
}

/// No process, port or session of a test has one of these numbers.
const KINDS: &[Kind] = &[
    // Ids begin with the time. The name of a batch's lane also ends with one.
    Kind {
        prefixes: &["20260102-030405-", "20260102-030405-20260102-030405-", "\"pid\":"],
        is_text: false,
        first_number: 7_000_001,
    },
    Kind { prefixes: &["\"session\":"], is_text: false, first_number: 8_000_001 },
    Kind { prefixes: &["nport = "], is_text: false, first_number: 60_001 },
    Kind { prefixes: &["\"host\":\"", "\"token\":\""], is_text: true, first_number: 1 },
];

/// Values of one run, in the order in which they first appear, as pairs of actual and canonical text.
pub struct RunValues {
    root: String,
    values: Vec<(usize, String, String)>,
}

impl RunValues {
    /// Returns the canonical form of the journals of one run, and the values that it had.
    pub fn canonicalize(sandbox: &Sandbox, journals: &str) -> (String, RunValues) {
        let mut run = RunValues { root: sandbox.root().display().to_string(), values: Vec::new() };
        let journals = without_unknown_sessions(without_newer_keys(journals)).replace(&run.root, ROOT);
        let text = replace_values(&journals, |kind, actual| {
            let known = run.values.iter().find(|(k, value, _)| *k == kind && value == actual);
            if let Some((.., canonical)) = known {
                return canonical.clone();
            }
            let count = run.values.iter().filter(|(k, ..)| *k == kind).count();
            let number = KINDS[kind].first_number + u32::try_from(count).unwrap();
            let canonical = if KINDS[kind].is_text { format!("golden-{number}") } else { number.to_string() };
            run.values.push((kind, actual.to_owned(), canonical.clone()));
            canonical
        });
        (text, run)
    }

    /// Returns a golden text as this run would have written it.
    pub fn materialize(&self, golden: &str) -> String {
        let text = replace_values(golden, |kind, canonical| {
            let known = self.values.iter().find(|(k, _, value)| *k == kind && value == canonical);
            known.map_or_else(|| canonical.to_owned(), |(_, actual, _)| actual.clone())
        });
        text.replace(ROOT, &self.root)
    }
}

/// Removes the sessions where this process does not know its own, as in a container whose session began outside
/// of it. Its supervisors have sessions of their own, so that the numbers would not be those of golden journals.
pub fn without_unknown_sessions(mut journals: String) -> String {
    const KEY: &str = ",\"session\":";
    while terminal_session_id().is_none()
        && let Some(at) = journals.find(KEY)
    {
        let value = at + KEY.len();
        let end = journals[value..].find(|c: char| !c.is_ascii_digit()).unwrap();
        journals.replace_range(at..value + end, "");
    }
    journals
}

/// Returns the golden text with the serial numbers in ids that `journals` have, in the order in which they first
/// appear: a process also uses up numbers for ids that are in no journal, and how many those are may change.
pub fn with_serials_of(golden: &str, journals: &str) -> String {
    let serials = |text: &str| {
        let mut found: Vec<String> = Vec::new();
        map_serials(text, |serial| {
            if !found.iter().any(|known| known == serial) {
                found.push(serial.to_owned());
            }
            String::new()
        });
        found
    };
    let (from, to) = (serials(golden), serials(journals));
    map_serials(golden, |serial| {
        let at = from.iter().position(|known| known == serial).unwrap();
        to.get(at).map_or_else(|| serial.to_owned(), Clone::clone)
    })
}

/// Replaces the part after the time of each id: the number that stands for the process, and a serial number.
fn map_serials(text: &str, mut map: impl FnMut(&str) -> String) -> String {
    const PREFIX: &str = "20260102-030405-70";
    let mut parts = text.split(PREFIX);
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(part.len());
        out.push_str(PREFIX);
        out.push_str(&map(&part[..end]));
        out.push_str(&part[end..]);
    }
    out
}

/// Removes what older versions did not write: the origin of an operation, and the states of a lane's run and of
/// its landing.
fn without_newer_keys(journals: &str) -> String {
    let mut out = journals.to_owned();
    for (key, end) in [(",\"via\":\"", "\""), (r#"\nrun = \""#, r#"\""#), (r#"\nlanding = \""#, r#"\""#)] {
        while let Some(at) = out.find(key) {
            let value = at + key.len();
            let after = value + out[value..].find(end).unwrap() + end.len();
            out.replace_range(at..after, "");
        }
    }
    out
}

/// Replaces each value that follows a prefix of its kind.
fn replace_values(text: &str, mut replace: impl FnMut(usize, &str) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    loop {
        let prefixes =
            KINDS.iter().enumerate().flat_map(|(n, kind)| kind.prefixes.iter().map(move |p| (n, p)));
        let found =
            prefixes.filter_map(|(kind, prefix)| Some((rest.find(prefix)?, Reverse(prefix.len()), kind)));
        let Some((at, Reverse(len), kind)) = found.min() else { return out + rest };
        let start = at + len;
        let is_end = |c: char| if KINDS[kind].is_text { c == '"' } else { !c.is_ascii_digit() };
        let end = rest[start..].find(is_end).map_or(rest.len(), |len| start + len);
        out.push_str(&rest[..start]);
        out.push_str(&replace(kind, &rest[start..end]));
        rest = &rest[end..];
    }
}
