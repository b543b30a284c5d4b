//! Description of the repository for a planning agent, of bounded size: its conventions, its files, its
//! recent commits.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proq_git as git;
use proq_git::history::tree_diff;
use proq_git::{CommitId, Repo, RepoPath};

/// Files with the conventions of a repository; the first that exists is quoted in the prompt.
const CONVENTION_FILES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md"];
/// Maximum length of the quoted conventions, in bytes.
const MAX_CONVENTIONS_BYTES: usize = 16 * 1024;
/// Maximum length of the file list, in bytes.
const MAX_FILE_LIST_BYTES: usize = 12 * 1024;
/// Maximum number of recent commits that are listed.
const MAX_LOG_COMMITS: usize = 30;
/// Maximum length of the list of recent commits, in bytes.
const MAX_LOG_BYTES: usize = 4 * 1024;

/// Describes the repository at `commit` for a prompt, in Markdown.
pub(super) fn describe_repository(repo: &Repo, commit: CommitId) -> Result<String, git::Error> {
    let files = tree_diff::tree_paths(repo, commit)?;
    let mut out = String::new();
    for name in CONVENTION_FILES {
        let path = RepoPath::new(name.as_bytes());
        if !files.contains(&path) {
            continue;
        }
        let convention_file = tree_diff::tree_files(repo, commit, &std::iter::once(path).collect())?;
        let text = convention_file
            .first()
            .filter(|(_, side)| side.is_file())
            .and_then(|(_, side)| repo.blob(side.blob()).ok());
        if let Some(text) = text {
            let text = String::from_utf8_lossy(&text).into_owned();
            push_section(
                &mut out,
                &format!("{name}, the conventions of this repository"),
                &text,
                MAX_CONVENTIONS_BYTES,
            );
            break;
        }
    }
    push_section(&mut out, "Files", &file_list(&files), MAX_FILE_LIST_BYTES);
    let log: Vec<String> = repo.recent_commit_lines(commit, MAX_LOG_COMMITS)?;
    push_section(&mut out, "Latest commits, newest first", &log.join("\n"), MAX_LOG_BYTES);
    Ok(out)
}

/// Appends a Markdown section with `text` in a code fence that the text cannot close, cut to `max_bytes`.
pub(super) fn push_section(out: &mut String, title: &str, text: &str, max_bytes: usize) {
    let text = text.trim_end();
    let end = (0..=max_bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let delimiter = code_fence(&text[..end]);
    let _ = writeln!(out, "## {title}\n\n{delimiter}\n{}\n{delimiter}", &text[..end]);
    if end < text.len() {
        let _ = writeln!(
            out,
            "\n({} more bytes are not shown; read the rest in the repository.)",
            text.len() - end
        );
    }
    out.push('\n');
}

/// Returns a code fence longer than any run of backquotes in a text.
fn code_fence(text: &str) -> String {
    let longest_run = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(longest_run.max(2) + 1)
}

/// Lists the files. If the list is too long, lists folders with the number of files below each, as deep as
/// the limit allows.
fn file_list(files: &[RepoPath]) -> String {
    let names: Vec<String> = files.iter().map(ToString::to_string).collect();
    let full_list = names.join("\n");
    if full_list.len() <= MAX_FILE_LIST_BYTES {
        return full_list;
    }
    let mut listing = String::new();
    for depth in 1.. {
        let mut folders: BTreeMap<String, usize> = BTreeMap::new();
        for name in &names {
            let components: Vec<&str> = name.split('/').collect();
            let key = match components.len() > depth {
                true => format!("{}/", components[..depth].join("/")),
                false => name.clone(),
            };
            *folders.entry(key).or_default() += 1;
        }
        let render = |(name, count): (&String, &usize)| match name.ends_with('/') {
            true => format!("{name} ({count} files)\n"),
            false => format!("{name}\n"),
        };
        let candidate: String = folders.iter().map(render).collect();
        if depth > 1 && candidate.len() > MAX_FILE_LIST_BYTES || candidate == listing {
            break;
        }
        listing = candidate;
    }
    listing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(count: usize) -> Vec<RepoPath> {
        (0..count).map(|n| RepoPath::new(format!("src/part-{}/file-{n}.rs", n % 40).as_bytes())).collect()
    }

    #[test]
    fn lists_folders_when_files_are_many() {
        assert_eq!(file_list(&paths(2)), "src/part-0/file-0.rs\nsrc/part-1/file-1.rs");
        let listing = file_list(&paths(20_000));
        assert!(listing.starts_with("src/part-0/ (500 files)\nsrc/part-1/ (500 files)\n"), "{listing}");
        assert!(listing.len() <= MAX_FILE_LIST_BYTES);
    }

    #[test]
    fn truncates_section_and_keeps_it_fenced() {
        let mut out = String::new();
        push_section(&mut out, "T", "a\n````\nüü", 8);
        assert_eq!(
            out,
            "## T\n\n`````\na\n````\n\n`````\n\n(4 more bytes are not shown; read the rest in the repository.)\n\n"
        );
    }
}
