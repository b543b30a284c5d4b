//! Prompt for the agent that resolves a conflict.

use proq_git::{Repo, RepoPath};
use proq_store::records::conflict::ResolutionRecord;

use super::conflict_regions::{ConflictRegion, split_lines};
use super::resolution_check::{ConflictKind, ReferenceMerge, conflict_kind};
use crate::merge::Error;
use crate::merge::types::resolver::Allowance;

/// Maximum number of characters quoted of the lane's task.
const MAX_TASK_CHARS: usize = 12_000;
/// Maximum number of commits listed of each side.
const MAX_COMMITS_LISTED: usize = 20;
/// Maximum number of characters quoted of a commit's body.
const MAX_COMMIT_BODY_CHARS: usize = 400;
/// Maximum size in bytes of the section with all conflicts; the files contain the rest.
const MAX_CONFLICTS_BYTES: usize = 40_000;
/// Maximum number of characters quoted of one side of one conflict.
const MAX_SIDE_CHARS: usize = 4_000;

/// Returns the prompt for the agent that resolves a conflict. `checks` are the commands that a landing will
/// run.
pub fn build_prompt(
    repo: &Repo,
    resolution: &ResolutionRecord,
    reference: &ReferenceMerge,
    task: &str,
    checks: &[String],
    allowance: &Allowance,
) -> Result<String, Error> {
    let (lane, onto) = (&resolution.lane, &resolution.onto);
    let mut out = format!(
        "Resolve a merge conflict. You are in a git worktree where `{onto}` is being merged into lane `{lane}`. git could not merge {} automatically.\n",
        describe_file_count(resolution.paths.len())
    );
    let task = task.trim();
    if !task.is_empty() {
        out.push_str(&format!("\n# The task of the lane\n\n{}\n", truncate(task, MAX_TASK_CHARS)));
    }
    let names = resolution.conflicted_paths();
    out.push_str(&commits_section(
        repo,
        "Commits of the lane that touch these files (`HEAD`, \"ours\")",
        (resolution.lane_tip, resolution.onto_tip),
        &names,
    )?);
    let theirs = format!("Commits on `{onto}` that touch these files (\"theirs\")");
    out.push_str(&commits_section(repo, &theirs, (resolution.onto_tip, resolution.lane_tip), &names)?);
    out.push_str(&conflicts_section(repo, resolution, reference)?);
    out.push_str(&rules_section(resolution, allowance));
    if !checks.is_empty() {
        let lines: Vec<String> =
            checks.iter().map(|line| format!("- `{}`\n", truncate(line, MAX_SIDE_CHARS))).collect();
        out.push_str(&format!(
            "\nBefore the resolution is merged, these shell commands must succeed in the top-level folder of the repository:\n\n{}",
            lines.concat()
        ));
    }
    if !resolution.refusals.is_empty() {
        out.push_str("\n# Previous attempts\n\nEach was rejected and reverted; you start from the original conflict. Avoid these mistakes:\n\n");
        for (n, reason) in resolution.refusals.iter().enumerate() {
            out.push_str(&format!("{}. {}\n", n + 1, truncate(reason, MAX_SIDE_CHARS)));
        }
    }
    Ok(out)
}

/// Returns a number of files in words: `one file`, `3 files`.
fn describe_file_count(n: usize) -> String {
    if n == 1 { "one file".to_owned() } else { format!("{n} files") }
}

/// Returns the section with the commits of `tip` that `other` lacks and that touch these files.
fn commits_section(
    repo: &Repo,
    title: &str,
    (tip, other): (proq_git::CommitId, proq_git::CommitId),
    names: &[RepoPath],
) -> Result<String, Error> {
    let mut out = format!("\n# {title}\n\n");
    let touching_commits = repo.commits_touching(tip, other, names, MAX_COMMITS_LISTED)?;
    if touching_commits.is_empty() {
        out.push_str("No commit on this side only touches these files under their current names.\n");
    }
    for (id, subject, body) in touching_commits {
        out.push_str(&format!("- {id} {subject}\n"));
        for line in truncate(&body, MAX_COMMIT_BODY_CHARS).lines().filter(|l| !l.trim().is_empty()) {
            out.push_str(&format!("  {line}\n"));
        }
    }
    Ok(out)
}

/// Returns the section with git's messages and with the conflicts of each file.
fn conflicts_section(
    repo: &Repo,
    resolution: &ResolutionRecord,
    reference: &ReferenceMerge,
) -> Result<String, Error> {
    let mut out = String::from("\n# The conflicts\n\n");
    for message in &resolution.git_messages {
        out.push_str(&format!("- {message}\n"));
    }
    for path in &resolution.paths {
        let text = reference.conflicted_text(repo, &path.path)?;
        let marked = text.as_deref().and_then(|text| reference.parse_regions(text));
        let name = &path.path;
        if let ConflictKind::NotText(description) = conflict_kind(path, marked.is_some()) {
            out.push_str(&format!(
                "\n## {name}\n\nThe file {description}. Decide with `git add` or `git rm`.\n"
            ));
            continue;
        }
        out.push_str(&format!("\n## {name}\n"));
        for (n, region) in marked.iter().flat_map(|m| &m.regions).enumerate() {
            if out.len() > MAX_CONFLICTS_BYTES {
                out.push_str("\nThe remaining conflicts are in the file.\n");
                break;
            }
            out.push_str(&format!("\nConflict {}:\n{}", n + 1, quote_region(region, resolution)));
        }
    }
    Ok(out)
}

/// Quotes both sides of a conflict and their common ancestor.
fn quote_region(region: &ConflictRegion<'_>, resolution: &ResolutionRecord) -> String {
    let join_lines = |side_lines: &[&[u8]]| {
        let texts: Vec<_> = side_lines.iter().map(|line| String::from_utf8_lossy(line)).collect();
        texts.join("\n")
    };
    // This fence is longer than any that the quoted text is likely to contain.
    let quote_side = |title: &str, lines: &[&[u8]]| {
        format!("{title}\n~~~~~~~~\n{}\n~~~~~~~~\n", truncate(&join_lines(lines), MAX_SIDE_CHARS).trim_end())
    };
    let Some(base) = &region.base else { return "See the file.\n".to_owned() };
    let onto = &resolution.onto;
    [
        quote_side("the lane's side", &region.ours),
        quote_side("common ancestor", base),
        quote_side(&format!("the side of {onto}"), &region.theirs),
    ]
    .concat()
}

/// Returns the section about how to resolve the conflict and what may be changed.
fn rules_section(resolution: &ResolutionRecord, allowance: &Allowance) -> String {
    let names: Vec<String> = resolution.paths.iter().map(|p| format!("`{}`", p.path)).collect();
    let mut out = format!(
        "\n# What to do\n\n1. Read the conflicted files. git marks each conflict: `<<<<<<<` the lane's side, `=======`, \
         `>>>>>>>` the side of `{}`.\n2. Replace each conflict, including its markers, with text that does what both sides intended. Keep the work of both; never \
         drop a side.\n3. Change nothing else: no other file, no new file, and no line outside the markers in these files.\n4. Run `git add` on the resolved files. You need not commit. Do not abort the merge, switch branches, stash, rebase or \
         push.\n\nConflicted files: {}.\n\ngit-proq checks the result and rejects it if a marker is left, a side is dropped, or anything other than the conflicts differs from git's merge.\n",
        resolution.onto,
        names.join(", ")
    );
    if allowance.other_files {
        out.push_str("You may also change other files if the resolution requires it.\n");
    } else if !allowance.paths.is_empty() {
        let allowed: Vec<String> = allowance.paths.iter().map(|p| format!("`{p}`")).collect();
        out.push_str(&format!("You may change these files freely: {}.\n", allowed.join(", ")));
    }
    out
}

/// Returns the first `max_chars` characters of a text, with a note if it was truncated.
fn truncate(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => {
            let line_count = split_lines(&text.as_bytes()[..end]).len();
            format!("{}\n[… cut after {line_count} lines]", &text[..end])
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncates_long_text_with_note() {
        assert_eq!(truncate("ab", 2), "ab");
        assert_eq!(truncate("äb\nc", 3), "äb\n\n[… cut after 1 lines]");
    }
}
