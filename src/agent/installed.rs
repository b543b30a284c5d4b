//! Owns which agents are installed, and in which versions.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::profile::Profile;
use crate::process::{Ended, Hearing, Start, find};
use crate::store::{Moment, Record, now};

/// How long a program may take to say its version. Python and Node from a cold disk take more than ten seconds.
const LIMIT: Duration = Duration::from_secs(30);
/// How long a program that does not end has after it was asked to.
const GRACE: Duration = Duration::from_millis(200);
/// After this it is asked again: a wrapper may lead to another version by now, and be the same file.
const KEPT: Duration = Duration::from_hours(24);
/// After this a program that said no version is asked again: it may only have been slow.
const KEPT_SILENT: Duration = Duration::from_mins(10);
/// How much of what a program says is read.
const LONGEST: usize = 4096;

/// An agent's program as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installed {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its version, if it says one.
    pub(crate) version: Option<String>,
}

/// Looks for the programs of profiles, in their order, and asks those that are there for their versions, all at once.
/// Relative paths begin at `dir`.
pub(crate) fn installed(profiles: &[&Profile], dir: &Path) -> Vec<Option<Installed>> {
    let file = cache_file();
    let known = file.as_ref().and_then(|f| Known::find(f).ok().flatten()).unwrap_or_default();
    let found: Vec<Option<Seen>> = std::thread::scope(|scope| {
        let asked: Vec<_> = profiles
            .iter()
            .map(|profile| {
                let known = &known;
                scope.spawn(move || look(profile, dir, known))
            })
            .collect();
        asked.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    });
    let new = |seen: &&Seen| !known.program.contains(seen);
    let news: Vec<Seen> = found.iter().flatten().filter(new).cloned().collect();
    if let Some(file) = file.filter(|_| !news.is_empty()) {
        let mut program = known.program;
        program.retain(|old| !news.iter().any(|new| new.path == old.path && new.args == old.args));
        program.extend(news);
        // A cache: without it each is asked again.
        drop(Known { program }.note(&file));
    }
    found.into_iter().map(|seen| seen.map(|s| Installed { path: s.path, version: s.version })).collect()
}

/// What programs said.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Known {
    program: Vec<Seen>,
}

impl Record for Known {
    const FORMAT: u32 = 1;
}

/// What one program said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    path: PathBuf,
    args: Vec<String>,
    /// What changes when another file takes its place. Package managers give files old times, so the time of the last
    /// change of the entry itself counts too.
    stamp: String,
    at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

fn look(profile: &Profile, dir: &Path, known: &Known) -> Option<Seen> {
    let path = find(&profile.program, dir).ok()?;
    let meta = path.metadata().ok()?;
    let stamp = format!("{} {} {} {}", meta.size(), meta.ino(), meta.mtime(), meta.ctime());
    let args = profile.version.clone();
    let same = |seen: &&Seen| seen.path == path && seen.args == args && seen.stamp == stamp;
    if let Some(seen) = known.program.iter().find(same)
        && !seen.at.is_older_than(if seen.version.is_some() { KEPT } else { KEPT_SILENT })
    {
        return Some(seen.clone());
    }
    let said = if args.is_empty() { None } else { ask(&path, &args) };
    Some(Seen { version: said.as_deref().and_then(version_in), path, args, stamp, at: now() })
}

/// What a program says when it is started with these arguments, if it ends in time.
fn ask(path: &Path, args: &[String]) -> Option<String> {
    // Not in anybody's checkout: what it is going to do there is not known yet.
    let start = Start::new(path, Path::new("/")).args(args);
    let heard = start.hear(Vec::new(), Hearing { limit: LIMIT, grace: GRACE, most: LONGEST }, &|| false);
    heard.ended.is_ok_and(Ended::is_success).then_some(heard.words)
}

/// The first word that looks like a version: `2.1.329` of `2.1.329 (Claude Code)`.
fn version_in(said: &str) -> Option<String> {
    let words = said.split(|c: char| c.is_whitespace() || "(),;\"'".contains(c));
    let mut trimmed = words.map(|word| word.trim_start_matches('v').trim_end_matches('.'));
    let version = trimmed.find(|word| {
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-+".contains(c);
        word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.') && word.chars().all(plain)
    });
    version.map(ToOwned::to_owned)
}

fn cache_file() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = cache.or_else(|| std::env::home_dir().map(|home| home.join(".cache")))?;
    Some(cache.join("git-proq/agents.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_agents_say() {
        let all = [
            ("2.1.329 (Claude Code)\n", Some("2.1.329")),
            ("codex-cli 0.169.0\n", Some("0.169.0")),
            ("GitHub Copilot CLI 1.0.102.\nRun 'copilot update' to check for updates.\n", Some("1.0.102")),
            ("aider 0.86.2\n", Some("0.86.2")),
            ("v1.2.3-beta.1\n", Some("1.2.3-beta.1")),
            ("something else\n", None),
        ];
        for (said, version) in all {
            assert_eq!(version_in(said).as_deref(), version, "{said}");
        }
    }

    #[test]
    fn a_program_that_hangs_or_fails_says_nothing() {
        let sh = Path::new("/bin/sh");
        let ask = |script: &str| ask(sh, &["-c".to_owned(), script.to_owned()]);
        assert_eq!(ask("echo 1.2.3").as_deref(), Some("1.2.3"));
        assert_eq!(ask("echo 1.2.3; exit 1"), None);
        assert_eq!(ask("sleep 600 & echo 4.5.6").as_deref(), Some("4.5.6"));
    }
}
