//! Owns what a planning agent is told of the repository, within bounds: its conventions, its files, what was done lately.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::Error;
use crate::git::{self, Oid, RepoPath};
use crate::lane::Project;

/// Where people write down how work is done in a repository; the first that is there is told.
const CONVENTIONS: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md"];
/// So much of that is told.
const LONGEST_CONVENTIONS: usize = 16 * 1024;
/// So much of the list of files.
const LONGEST_TREE: usize = 12 * 1024;
/// So many commits are named.
const COMMITS: usize = 30;
/// So much of what they say.
const LONGEST_LOG: usize = 4 * 1024;

/// What there is to say of the repository at a commit.
pub(super) fn of(project: &Project, at: Oid) -> Result<String, Error> {
    let repo = &project.repo;
    let files = git::files_of(repo, at)?;
    let mut out = String::new();
    for name in CONVENTIONS {
        let path = RepoPath::new(name.as_bytes());
        if !files.contains(&path) {
            continue;
        }
        let found = git::tree_files(repo, at, &std::iter::once(path).collect())?;
        let text =
            found.first().filter(|(_, side)| side.is_file()).and_then(|(_, side)| repo.blob(side.oid).ok());
        if let Some(text) = text {
            let text = String::from_utf8_lossy(&text).into_owned();
            section(
                &mut out,
                &format!("{name}, which says how work is done here"),
                &text,
                LONGEST_CONVENTIONS,
            );
            break;
        }
    }
    section(&mut out, "Files", &tree(&files), LONGEST_TREE);
    let log: Vec<String> = repo.newest(at, COMMITS)?;
    section(&mut out, "The last commits, newest first", &log.join("\n"), LONGEST_LOG);
    Ok(out)
}

/// A section with a text in it, whatever that says, as far as it goes.
pub(super) fn section(out: &mut String, title: &str, text: &str, most: usize) {
    let text = text.trim_end();
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let fence = fence(&text[..end]);
    let _ = writeln!(out, "## {title}\n\n{fence}\n{}\n{fence}", &text[..end]);
    if end < text.len() {
        let _ =
            writeln!(out, "\n({} more bytes are not shown; read the rest where it is.)", text.len() - end);
    }
    out.push('\n');
}

/// A fence that does not stand in a text.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

/// The files; where they are too many for that, the folders with the number of files below each, as deep as there is room.
fn tree(files: &[RepoPath]) -> String {
    let names: Vec<String> = files.iter().map(ToString::to_string).collect();
    let all = names.join("\n");
    if all.len() <= LONGEST_TREE {
        return all;
    }
    let mut best = String::new();
    for depth in 1.. {
        let mut folders: BTreeMap<String, usize> = BTreeMap::new();
        for name in &names {
            let parts: Vec<&str> = name.split('/').collect();
            let key = match parts.len() > depth {
                true => format!("{}/", parts[..depth].join("/")),
                false => name.clone(),
            };
            *folders.entry(key).or_default() += 1;
        }
        let line = |(name, count): (&String, &usize)| match name.ends_with('/') {
            true => format!("{name} ({count} files)\n"),
            false => format!("{name}\n"),
        };
        let next: String = folders.iter().map(line).collect();
        if depth > 1 && next.len() > LONGEST_TREE || next == best {
            break;
        }
        best = next;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(count: usize) -> Vec<RepoPath> {
        (0..count).map(|n| RepoPath::new(format!("src/part-{}/file-{n}.rs", n % 40).as_bytes())).collect()
    }

    #[test]
    fn many_files_are_told_as_folders() {
        assert_eq!(tree(&paths(2)), "src/part-0/file-0.rs\nsrc/part-1/file-1.rs");
        let many = tree(&paths(20_000));
        assert!(many.starts_with("src/part-0/ (500 files)\nsrc/part-1/ (500 files)\n"), "{many}");
        assert!(many.len() <= LONGEST_TREE);
    }

    #[test]
    fn a_section_ends_where_it_has_to_and_nothing_gets_out_of_it() {
        let mut out = String::new();
        section(&mut out, "T", "a\n````\nüü", 8);
        assert_eq!(
            out,
            "## T\n\n`````\na\n````\n\n`````\n\n(4 more bytes are not shown; read the rest where it is.)\n\n"
        );
    }
}
