//! Owns the forms that values of settings have, and reading those that are more than words.

use std::time::Duration;

use super::checkouts::is_location;

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A whole number in this unit.
    Count(&'static str),
    /// The first part of a branch's name.
    Prefix,
    /// Shell command lines, one on each line.
    Commands,
    /// A folder: an absolute path, or one below the home folder.
    Folder,
    /// An agent or any other program; empty for none.
    Agent,
    /// One word that is no option; empty for none.
    Word,
    /// Any text.
    Text,
    /// US dollars, with up to nine decimals.
    Dollars,
    /// A time in minutes, or with a unit: `90s`, `5m`, `2h`.
    Time,
    /// Names of events.
    Events,
    /// A file of sound or a shell command line; empty for none.
    Sound,
    /// An address of the web, which is a secret; empty for none.
    Secret,
    /// A folder of the repository.
    Inside,
    /// Names with a folder of the repository each, one on each line.
    Areas,
    /// The first and the last of some ports; empty for none.
    Ports,
    /// Patterns of files as in `.gitignore`, one on each line.
    Patterns,
    /// A file of the worktree; empty for none.
    NewFile,
    /// A name of letters, digits and a few signs; empty for none.
    Name,
    /// A path with the lane's name in its last part.
    Location,
}

impl Form {
    /// The form in words, for tables and errors.
    pub(crate) fn describe(self) -> String {
        match self {
            Form::OneOf(words) => format!("one of: {}", words.join(", ")),
            Form::Count(unit) => format!("a whole number of {unit}"),
            Form::Prefix => "the beginning of a branch name, as in proq or lanes".to_owned(),
            Form::Commands => "a list of shell command lines".to_owned(),
            Form::Folder => "a folder, as /PATH or ~/PATH".to_owned(),
            Form::Agent => "an agent, or a program".to_owned(),
            Form::Word => "a name".to_owned(),
            Form::Text => "a text".to_owned(),
            Form::Dollars => "US dollars, as in 2.50".to_owned(),
            Form::Time => "a time, as in 30m, 90s or 2h".to_owned(),
            Form::Events => "names of events, or NAME:STATE, with spaces between".to_owned(),
            Form::Sound => "a file of sound, or a shell command line".to_owned(),
            Form::Secret => "an address that begins with https:// or http://".to_owned(),
            Form::Inside => "a folder of the repository, as in docs/tasks".to_owned(),
            Form::Areas => "a list of NAME=FOLDER, each a folder of the repository".to_owned(),
            Form::Ports => {
                "the first and the last of ten ports or more, none below 1024, as in 20000-31999".to_owned()
            }
            Form::Patterns => "a list of patterns as in .gitignore".to_owned(),
            Form::NewFile => "a file of the lane, as in .env.proq".to_owned(),
            Form::Name => "a name of letters, digits, '.', '_' and '-'".to_owned(),
            Form::Location => "a path with {lane} once, in its last part, as in ../{repo}.{lane}".to_owned(),
        }
    }

    /// Whether a value has this form.
    pub(crate) fn accepts(self, value: &str) -> bool {
        match self {
            Form::OneOf(words) => words.contains(&value),
            Form::Count(_) => value.parse::<u32>().is_ok(),
            Form::Prefix => begins_branch(value),
            Form::Commands => !value.contains(|c: char| c.is_control() && c != '\n' && c != '\t'),
            Form::Folder => (value.starts_with('/') || value.starts_with("~/")) && !value.contains('\0'),
            Form::Agent | Form::Word => !value.starts_with('-') && !value.contains(char::is_control),
            Form::Text => !value.contains('\0'),
            Form::Dollars => nano_dollars(value).is_some(),
            Form::Time => time(value).is_some(),
            Form::Events => value.chars().all(|c| c.is_ascii_lowercase() || ".-:, ".contains(c)),
            Form::Sound => !value.contains(char::is_control),
            Form::Secret => value.is_empty() || is_address(value),
            Form::Inside => is_inside(value),
            Form::Areas => value.lines().all(|line| area(line).is_some()),
            Form::Ports => value.is_empty() || ports(value).is_some(),
            Form::Patterns => !value.contains(|c: char| c.is_control() && c != '\n' && c != '\t'),
            Form::NewFile => value.is_empty() || is_new_file(value),
            Form::Name => value.is_empty() || is_name(value),
            Form::Location => is_location(value),
        }
    }
}

/// A time: a whole number of minutes, or of the unit behind it.
pub(crate) fn time(text: &str) -> Option<Duration> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) => (
            number,
            match text.as_bytes().last() {
                Some(b's') => 1,
                Some(b'h') => 60 * 60,
                _ => 60,
            },
        ),
        None => (text, 60),
    };
    Some(Duration::from_secs(u64::from(number.parse::<u32>().ok()?) * unit))
}

/// An amount of US dollars, in 1e-9 USD: digits, and up to nine more behind a point.
pub(crate) fn nano_dollars(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 9 {
        return None;
    }
    let part: u64 = format!("{part:0<9}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part)
}

/// An amount in 1e-9 USD as it is written: no digit of it is lost.
pub(crate) fn dollars(nanos: u64) -> String {
    let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// How many ports a lane has, as whoever gives them out sees to.
pub(crate) const PORTS_OF_A_LANE: u16 = 10;

/// The first and the last of some ports: enough for one lane, and none that needs more rights than a user has.
pub(crate) fn ports(text: &str) -> Option<(u16, u16)> {
    let (from, to) = text.split_once('-')?;
    let (from, to): (u16, u16) = (from.parse().ok()?, to.parse().ok()?);
    ((1024..=to).contains(&from) && to - from + 1 >= PORTS_OF_A_LANE).then_some((from, to))
}

/// Whether a value is a path that stays in the repository.
fn is_inside(value: &str) -> bool {
    !value.is_empty()
        && !value.starts_with('/')
        && !value.contains(char::is_control)
        && value.split('/').all(|part| part != "..")
}

/// Whether a value is a file that may be made in a worktree.
fn is_new_file(value: &str) -> bool {
    let is_git = |part: &str| part.eq_ignore_ascii_case(".git");
    is_inside(value)
        && !value.ends_with('/')
        && value.split('/').all(|part| !part.is_empty() && part != "." && !is_git(part))
}

/// Whether a value is short and plain enough to be part of a file's name.
fn is_name(value: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    value.len() <= 64 && value.starts_with(|c: char| c.is_ascii_alphanumeric()) && value.chars().all(fits)
}

/// An area and its folder.
pub(crate) fn area(line: &str) -> Option<(&str, &str)> {
    let (name, folder) = line.split_once('=')?;
    let (name, folder) = (name.trim(), folder.trim());
    (is_name(name) && is_inside(folder)).then_some((name, folder))
}

/// Whether a value is an address with a host.
fn is_address(value: &str) -> bool {
    let rest = value.strip_prefix("https://").or_else(|| value.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        && !value.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Whether git would take `text/x` for a branch's name (see `git check-ref-format`).
#[expect(clippy::case_sensitive_file_extension_comparisons, reason = "git's lock files are lower-case")]
fn begins_branch(text: &str) -> bool {
    let part = |p: &str| !p.is_empty() && !p.starts_with('.') && !p.ends_with(".lock");
    let bad = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    !text.starts_with('-')
        && !text.contains("..")
        && !text.contains("@{")
        && !text.contains(bad)
        && text.split('/').all(part)
}
