//! Formats of setting values: validating them, and parsing those that are more than text.

use std::time::Duration;

use super::lane_location::is_lane_location;
use crate::money::NanoDollars;

/// Format that the value of a setting must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueFormat {
    /// One of the listed words.
    OneOf(&'static [&'static str]),
    /// An unsigned integer with a unit.
    Count(Unit),
    /// The first part of a branch name.
    BranchPrefix,
    /// Shell command lines, one per line.
    Commands,
    /// A folder: an absolute path, or one below the home folder (`~/`).
    Folder,
    /// An agent or any other program; empty for none.
    AgentOrProgram,
    /// One word that is not an option; empty for none.
    Word,
    /// Any text.
    Text,
    /// US dollars, with up to nine decimals.
    Dollars,
    /// A duration in minutes, or with a unit: `90s`, `5m`, `2h`.
    TimeSpan,
    /// Names of events, or `NAME:STATE`, separated by spaces or commas.
    EventNames,
    /// A sound file or a shell command line; empty for none.
    SoundOrCommand,
    /// An HTTP URL, which is kept secret; empty for none.
    SecretUrl,
    /// A relative path of a folder in the repository.
    RepoFolder,
    /// Area names with a folder of the repository each: `NAME=FOLDER`, one per line.
    AreaFolders,
    /// The first and the last port of a range; empty for none.
    PortRange,
    /// File patterns as in `.gitignore`, one per line.
    Patterns,
    /// A relative path of a file in the worktree; empty for none.
    WorktreeFile,
    /// A name of letters, digits, `.`, `_` and `-`, at most 64 bytes; empty for none.
    ShortName,
    /// A path pattern with the lane's name in its last component.
    LaneLocation,
}

/// Unit of a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// 1024 bytes.
    Kibibytes,
    /// 1024 kibibytes.
    Mebibytes,
    /// Seconds.
    Seconds,
    /// Days of 24 hours.
    Days,
    /// Any other unit: the plural of what is counted.
    Other(&'static str),
}

impl Unit {
    /// Returns the word or abbreviation that is shown after a count.
    fn word(self) -> &'static str {
        match self {
            Unit::Kibibytes => "KiB",
            Unit::Mebibytes => "MiB",
            Unit::Seconds => "seconds",
            Unit::Days => "days",
            Unit::Other(word) => word,
        }
    }

    /// Returns the size of the unit: in bytes for a size, in seconds for a time, else 1.
    pub(super) const fn size(self) -> u64 {
        match self {
            Unit::Kibibytes => 1024,
            Unit::Mebibytes => 1024 * 1024,
            Unit::Days => 24 * 60 * 60,
            Unit::Seconds | Unit::Other(_) => 1,
        }
    }
}

impl ValueFormat {
    /// Describes the format, for tables and errors.
    pub fn describe(self) -> String {
        match self {
            ValueFormat::OneOf(words) => format!("one of: {}", words.join(", ")),
            ValueFormat::Count(unit) => format!("a whole number of {}", unit.word()),
            ValueFormat::BranchPrefix => "the beginning of a branch name, as in proq or lanes".to_owned(),
            ValueFormat::Commands => "a list of shell command lines".to_owned(),
            ValueFormat::Folder => "a folder, as /PATH or ~/PATH".to_owned(),
            ValueFormat::AgentOrProgram => "an agent, or a program".to_owned(),
            ValueFormat::Word => "a name".to_owned(),
            ValueFormat::Text => "a text".to_owned(),
            ValueFormat::Dollars => "US dollars, as in 2.50".to_owned(),
            ValueFormat::TimeSpan => "a time, as in 30m, 90s or 2h".to_owned(),
            ValueFormat::EventNames => "names of events, or NAME:STATE, with spaces between".to_owned(),
            ValueFormat::SoundOrCommand => "a file of sound, or a shell command line".to_owned(),
            ValueFormat::SecretUrl => "an address that begins with https:// or http://".to_owned(),
            ValueFormat::RepoFolder => "a folder of the repository, as in docs/tasks".to_owned(),
            ValueFormat::AreaFolders => "a list of NAME=FOLDER, each a folder of the repository".to_owned(),
            ValueFormat::PortRange => {
                "the first and the last of ten ports or more, none below 1024, as in 20000-31999".to_owned()
            }
            ValueFormat::Patterns => "a list of patterns as in .gitignore".to_owned(),
            ValueFormat::WorktreeFile => "a file of the lane, as in .env.proq".to_owned(),
            ValueFormat::ShortName => "a name of letters, digits, '.', '_' and '-'".to_owned(),
            ValueFormat::LaneLocation => {
                "a path with {lane} once, in its last part, as in ../{repo}.{lane}".to_owned()
            }
        }
    }

    /// Returns whether a value has this format.
    pub fn accepts(self, value: &str) -> bool {
        match self {
            ValueFormat::OneOf(words) => words.contains(&value),
            ValueFormat::Count(_) => value.parse::<u32>().is_ok(),
            ValueFormat::BranchPrefix => is_branch_prefix(value),
            ValueFormat::Commands => !value.contains(|c: char| c.is_control() && c != '\n' && c != '\t'),
            ValueFormat::Folder => {
                (value.starts_with('/') || value.starts_with("~/")) && !value.contains('\0')
            }
            ValueFormat::AgentOrProgram | ValueFormat::Word => {
                !value.starts_with('-') && !value.contains(char::is_control)
            }
            ValueFormat::Text => !value.contains('\0'),
            ValueFormat::Dollars => NanoDollars::parse(value).is_some(),
            ValueFormat::TimeSpan => parse_duration(value).is_some(),
            ValueFormat::EventNames => value.chars().all(|c| c.is_ascii_lowercase() || ".-:, ".contains(c)),
            ValueFormat::SoundOrCommand => !value.contains(char::is_control),
            ValueFormat::SecretUrl => value.is_empty() || is_http_url(value),
            ValueFormat::RepoFolder => is_repo_path(value),
            ValueFormat::AreaFolders => value.lines().all(|line| parse_area(line).is_some()),
            ValueFormat::PortRange => value.is_empty() || parse_port_range(value).is_some(),
            ValueFormat::Patterns => !value.contains(|c: char| c.is_control() && c != '\n' && c != '\t'),
            ValueFormat::WorktreeFile => value.is_empty() || is_worktree_file(value),
            ValueFormat::ShortName => value.is_empty() || is_short_name(value),
            ValueFormat::LaneLocation => is_lane_location(value),
        }
    }
}

/// Parses a duration: a number of minutes, or of the unit `s`, `m` or `h` that follows it.
pub fn parse_duration(text: &str) -> Option<Duration> {
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

/// Number of ports that each lane gets. An assertion in `lane::worktree::ports` of `proq-lib`, which
/// allocates them, checks this number.
pub const LANE_PORT_COUNT: u16 = 10;

/// Parses a port range `FIRST-LAST`. Returns none if it is too small for one lane or includes privileged
/// ports (below 1024).
pub(crate) fn parse_port_range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-')?;
    let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
    ((1024..=last).contains(&first) && last - first + 1 >= LANE_PORT_COUNT).then_some((first, last))
}

/// Returns whether a value is a relative path that stays in the repository.
fn is_repo_path(value: &str) -> bool {
    !value.is_empty()
        && !value.starts_with('/')
        && !value.contains(char::is_control)
        && value.split('/').all(|component| component != "..")
}

/// Returns whether a value is the path of a file that git-proq may create in a worktree: no component is
/// `.git`.
fn is_worktree_file(value: &str) -> bool {
    let is_dot_git = |component: &str| component.eq_ignore_ascii_case(".git");
    is_repo_path(value)
        && !value.ends_with('/')
        && value
            .split('/')
            .all(|component| !component.is_empty() && component != "." && !is_dot_git(component))
}

/// Returns whether a value is short and simple enough to be part of a file name.
fn is_short_name(value: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    value.len() <= 64
        && value.starts_with(|c: char| c.is_ascii_alphanumeric())
        && value.chars().all(is_allowed)
}

/// Parses a line `NAME=FOLDER` into the area's name and folder.
pub(crate) fn parse_area(line: &str) -> Option<(&str, &str)> {
    let (name, folder) = line.split_once('=')?;
    let (name, folder) = (name.trim(), folder.trim());
    (is_short_name(name) && is_repo_path(folder)).then_some((name, folder))
}

/// Returns whether a value is an HTTP URL with a host.
fn is_http_url(value: &str) -> bool {
    let after_scheme = value.strip_prefix("https://").or_else(|| value.strip_prefix("http://"));
    after_scheme.is_some_and(|host_and_path| !host_and_path.is_empty() && !host_and_path.starts_with('/'))
        && !value.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Returns whether git would accept `prefix/x` as a branch name (see `git check-ref-format`).
#[expect(clippy::case_sensitive_file_extension_comparisons, reason = "git's lock files are lower-case")]
fn is_branch_prefix(prefix: &str) -> bool {
    let is_valid_component = |p: &str| !p.is_empty() && !p.starts_with('.') && !p.ends_with(".lock");
    let is_forbidden = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    !prefix.starts_with('-')
        && !prefix.contains("..")
        && !prefix.contains("@{")
        && !prefix.contains(is_forbidden)
        && prefix.split('/').all(is_valid_component)
}

/// Returns the non-empty lines of a text, trimmed.
pub(super) fn non_empty_lines(text: &str) -> Vec<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(ToOwned::to_owned).collect()
}

/// Returns a URL with only its scheme and host, since the other parts may be secret.
pub fn mask_url(url: &str) -> String {
    let Some((scheme, address)) = url.split_once("://") else { return String::new() };
    let host = address.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}/…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_secret_parts_of_url() {
        assert_eq!(mask_url("https://hooks.example.com/services/T0/B0/xyz"), "https://hooks.example.com/…");
        assert_eq!(mask_url("https://user:pass@example.com:8443?token=1"), "https://example.com:8443/…");
        assert_eq!(mask_url(""), "");
    }
}
