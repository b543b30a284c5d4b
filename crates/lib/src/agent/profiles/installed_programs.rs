//! Detection of installed agent programs and their versions.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::find_executable::find_executable;
use proq_base::process::limited_process::ExitOutcome;
use proq_base::process::run_captured::CaptureOptions;
use proq_store::base::clock::{Moment, now};
use proq_store::base::record::Record;
use serde::{Deserialize, Serialize};

use super::profile::Profile;

/// Time limit for a program to print its version. Python and Node take more than ten seconds from a cold
/// disk.
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);
/// Grace period between the stop signal to a program and its kill.
const STOP_GRACE: Duration = Duration::from_millis(200);
/// Age at which a cached version is queried again: a wrapper script may start another version now and be the
/// same file.
const CACHE_TTL: Duration = Duration::from_hours(24);
/// Age at which a program that printed no version is queried again: it may only have been slow.
const NO_VERSION_CACHE_TTL: Duration = Duration::from_mins(10);
/// Maximum number of bytes of a program's output that are read.
const MAX_OUTPUT_BYTES: usize = 4096;

/// Program of an agent that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledProgram {
    /// Path of the program.
    pub path: PathBuf,
    /// Version, if the program prints one.
    pub version: Option<String>,
}

/// Finds the installed programs of profiles, in the order of `profiles`, and queries the versions of all
/// programs in parallel. Relative paths start at `dir`.
pub fn find_installed(profiles: &[&Profile], dir: &Path) -> Vec<Option<InstalledProgram>> {
    let cache_path = cache_file();
    let cache = VersionCache::load_or_default(cache_path.as_deref());
    let entries: Vec<Option<CachedVersion>> = std::thread::scope(|scope| {
        let threads: Vec<_> = profiles
            .iter()
            .map(|profile| {
                let cache = &cache;
                scope.spawn(move || probe_program(profile, dir, cache))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    });
    let is_new = |entry: &&CachedVersion| !cache.program.contains(entry);
    let new_entries: Vec<CachedVersion> = entries.iter().flatten().filter(is_new).cloned().collect();
    if let Some(cache_path) = cache_path.filter(|_| !new_entries.is_empty()) {
        let mut program = cache.program;
        program.retain(|old| !new_entries.iter().any(|new| new.path == old.path && new.args == old.args));
        program.extend(new_entries);
        // Only a cache: without it each program is queried again.
        drop(VersionCache { program }.save_unsynced(&cache_path));
    }
    entries
        .into_iter()
        .map(|entry| entry.map(|s| InstalledProgram { path: s.path, version: s.version }))
        .collect()
}

/// Finds the installed program of a profile, with its version only if that was queried before. No program is
/// started. A relative path starts at `dir`.
pub fn find_installed_without_start(profile: &Profile, dir: &Path) -> Option<InstalledProgram> {
    let program = locate_program(profile, dir)?;
    let cache = VersionCache::load_or_default(cache_file().as_deref());
    let version = cache.program.iter().find(|entry| program.is_same(entry))?.version.clone();
    Some(InstalledProgram { path: program.path, version })
}

/// Cache of program versions, a file that all repositories share.
#[derive(Debug, Default, Serialize, Deserialize)]
struct VersionCache {
    program: Vec<CachedVersion>,
}

impl Record for VersionCache {
    const FORMAT: u32 = 1;
}

impl VersionCache {
    /// Loads the cache; empty if there is no file or it cannot be read.
    fn load_or_default(path: Option<&Path>) -> VersionCache {
        path.and_then(|path| VersionCache::load_if_exists(path).ok().flatten()).unwrap_or_default()
    }
}

/// Cached version of one program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CachedVersion {
    path: PathBuf,
    args: Vec<String>,
    /// Fingerprint that differs when another file replaces the program. It includes the ctime, because
    /// package managers give files old mtimes.
    #[serde(rename = "stamp")]
    fingerprint: String,
    #[serde(rename = "at")]
    checked_at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

impl CachedVersion {
    /// Returns whether both are about the same, unchanged program.
    fn is_same(&self, other: &CachedVersion) -> bool {
        (&self.path, &self.args, &self.fingerprint) == (&other.path, &other.args, &other.fingerprint)
    }
}

/// Finds the program of a profile, without its version. None when it is not installed.
fn locate_program(profile: &Profile, dir: &Path) -> Option<CachedVersion> {
    let path = find_executable(&profile.program, dir).ok()?;
    let meta = path.metadata().ok()?;
    let fingerprint = format!("{} {} {} {}", meta.size(), meta.ino(), meta.mtime(), meta.ctime());
    let args = profile.version_args.clone();
    Some(CachedVersion { path, args, fingerprint, checked_at: now(), version: None })
}

/// Finds the program of a profile, with its version from the cache or else from the program itself. None when
/// it is not installed.
fn probe_program(profile: &Profile, dir: &Path, cache: &VersionCache) -> Option<CachedVersion> {
    let program = locate_program(profile, dir)?;
    if let Some(entry) = cache.program.iter().find(|entry| program.is_same(entry))
        && !entry.checked_at.is_older_than(if entry.version.is_some() {
            CACHE_TTL
        } else {
            NO_VERSION_CACHE_TTL
        })
    {
        return Some(entry.clone());
    }
    let output = (!program.args.is_empty()).then(|| read_version_output(&program.path, &program.args));
    Some(CachedVersion { version: output.flatten().as_deref().and_then(find_version), ..program })
}

/// Returns the output of a program that is started with these arguments, if it succeeds in time.
fn read_version_output(path: &Path, args: &[String]) -> Option<String> {
    // Not in a checkout, because git-proq does not know yet what the program does there.
    let start = CommandBuilder::new(path, Path::new("/")).args(args);
    let result = start.run_captured(
        Vec::new(),
        CaptureOptions { limit: VERSION_TIMEOUT, grace: STOP_GRACE, max_output_bytes: MAX_OUTPUT_BYTES },
        &|| false,
    );
    result.outcome.is_ok_and(ExitOutcome::is_success).then_some(result.output)
}

/// Returns the first word that has the form of a version: `2.1.329` of `2.1.329 (Claude Code)`.
fn find_version(output: &str) -> Option<String> {
    let words = output.split(|c: char| c.is_whitespace() || "(),;\"'".contains(c));
    let mut trimmed = words.map(|word| word.trim_start_matches('v').trim_end_matches('.'));
    let version = trimmed.find(|word| {
        let is_version_char = |c: char| c.is_ascii_alphanumeric() || ".-+".contains(c);
        word.starts_with(|c: char| c.is_ascii_digit())
            && word.contains('.')
            && word.chars().all(is_version_char)
    });
    version.map(ToOwned::to_owned)
}

/// Returns the path of the version cache in the user's cache folder; none without a home folder.
fn cache_file() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = cache.or_else(|| std::env::home_dir().map(|home| home.join(".cache")))?;
    Some(cache.join("git-proq/agents.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_versions_in_agent_output() {
        let all = [
            ("2.1.329 (Claude Code)\n", Some("2.1.329")),
            ("codex-cli 0.169.0\n", Some("0.169.0")),
            ("GitHub Copilot CLI 1.0.102.\nRun 'copilot update' to check for updates.\n", Some("1.0.102")),
            ("aider 0.86.2\n", Some("0.86.2")),
            ("v1.2.3-beta.1\n", Some("1.2.3-beta.1")),
            ("something else\n", None),
        ];
        for (output, version) in all {
            assert_eq!(find_version(output).as_deref(), version, "{output}");
        }
    }

    #[test]
    fn ignores_output_of_failed_programs() {
        let sh = Path::new("/bin/sh");
        let run_script = |script: &str| read_version_output(sh, &["-c".to_owned(), script.to_owned()]);
        assert_eq!(run_script("echo 1.2.3").as_deref(), Some("1.2.3"));
        assert_eq!(run_script("echo 1.2.3; exit 1"), None);
        assert_eq!(run_script("sleep 600 & echo 4.5.6").as_deref(), Some("4.5.6"));
    }
}
