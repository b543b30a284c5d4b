//! Owns what an agent is told that is to resolve a conflict.

use super::Error;
use super::proof::{Kind, Leave, Reference, kind_of};
use super::regions::{Region, lines};
use crate::git::{Repo, RepoPath};
use crate::store::records::ResolveRecord;

/// How much of the lane's task is quoted.
const TASK: usize = 12_000;
/// How many commits of each side are named.
const COMMITS: usize = 20;
/// How much of a commit's body is quoted.
const BODY: usize = 400;
/// How much of all conflicts together is quoted; the files themselves have the rest.
const CONFLICTS: usize = 40_000;
/// How much of one side of one conflict is quoted.
const SIDE: usize = 4_000;

/// Writes the prompt. `checks` are the commands that a landing will ask.
pub(super) fn write(
    repo: &Repo,
    open: &ResolveRecord,
    reference: &Reference,
    task: &str,
    checks: &[String],
    leave: &Leave,
) -> Result<String, Error> {
    let (lane, onto) = (&open.lane, &open.onto);
    let mut out = format!(
        "Resolve a merge conflict. You are in a git worktree in which `{onto}` is being merged into the work of lane \
         `{lane}`; git could not merge {} by itself.\n",
        files(open.paths.len())
    );
    let task = task.trim();
    if !task.is_empty() {
        out.push_str(&format!("\n# What the lane was made for\n\n{}\n", cut(task, TASK)));
    }
    let names = open.names();
    out.push_str(&commits(repo, "What the lane did (`HEAD`, \"ours\")", (open.tip, open.base), &names)?);
    let theirs = format!("What happened on `{onto}` (\"theirs\")");
    out.push_str(&commits(repo, &theirs, (open.base, open.tip), &names)?);
    out.push_str(&conflicts(repo, open, reference)?);
    out.push_str(&rules(open, leave));
    if !checks.is_empty() {
        let lines: Vec<String> = checks.iter().map(|line| format!("- `{}`\n", cut(line, SIDE))).collect();
        out.push_str(&format!(
            "\nBefore it lands, these shell commands must succeed with it, at the top of the repository:\n\n{}",
            lines.concat()
        ));
    }
    if !open.refusals.is_empty() {
        out.push_str("\n# Former tries\n\nEach was refused and undone; you start afresh. Avoid this:\n\n");
        for (n, why) in open.refusals.iter().enumerate() {
            out.push_str(&format!("{}. {}\n", n + 1, cut(why, SIDE)));
        }
    }
    Ok(out)
}

fn files(n: usize) -> String {
    if n == 1 { "one file".to_owned() } else { format!("{n} files") }
}

fn commits(
    repo: &Repo,
    title: &str,
    (tip, other): (crate::git::Oid, crate::git::Oid),
    names: &[RepoPath],
) -> Result<String, Error> {
    let mut out = format!("\n# {title}\n\n");
    let found = repo.commits_on(tip, other, names, COMMITS)?;
    if found.is_empty() {
        out.push_str("No commit of its own touches these files by their names of now.\n");
    }
    for (id, subject, body) in found {
        out.push_str(&format!("- {id} {subject}\n"));
        for line in cut(&body, BODY).lines().filter(|l| !l.trim().is_empty()) {
            out.push_str(&format!("  {line}\n"));
        }
    }
    Ok(out)
}

fn conflicts(repo: &Repo, open: &ResolveRecord, reference: &Reference) -> Result<String, Error> {
    let mut out = String::from("\n# The conflicts\n\n");
    for message in &open.messages {
        out.push_str(&format!("- {message}\n"));
    }
    for path in &open.paths {
        let text = reference.text(repo, &path.path)?;
        let marked = text.as_deref().and_then(|text| reference.marked(text));
        let name = &path.path;
        if let Kind::Other(what) = kind_of(path, marked.is_some()) {
            out.push_str(&format!("\n## {name}\n\nIt {what}. Decide it with `git add` or `git rm`.\n"));
            continue;
        }
        out.push_str(&format!("\n## {name}\n"));
        for (n, region) in marked.iter().flat_map(|m| &m.regions).enumerate() {
            if out.len() > CONFLICTS {
                out.push_str("\nThe rest is in the file.\n");
                break;
            }
            out.push_str(&format!("\nConflict {}:\n{}", n + 1, shown(region, open)));
        }
    }
    Ok(out)
}

fn shown(region: &Region<'_>, open: &ResolveRecord) -> String {
    let text = |part: &[&[u8]]| {
        let all: Vec<_> = part.iter().map(|line| String::from_utf8_lossy(line)).collect();
        all.join("\n")
    };
    // Longer than any fence that the quoted text could hold by chance.
    let part = |title: &str, lines: &[&[u8]]| {
        format!("{title}\n~~~~~~~~\n{}\n~~~~~~~~\n", cut(&text(lines), SIDE).trim_end())
    };
    let Some(base) = &region.base else { return "See the file.\n".to_owned() };
    let onto = &open.onto;
    [
        part("the lane has", &region.ours),
        part("both come from", base),
        part(&format!("{onto} has"), &region.theirs),
    ]
    .concat()
}

fn rules(open: &ResolveRecord, leave: &Leave) -> String {
    let names: Vec<String> = open.paths.iter().map(|p| format!("`{}`", p.path)).collect();
    let mut out = format!(
        "\n# What to do\n\n\
         1. Read the conflicted files here. git has marked each conflict: `<<<<<<<` the lane's side, `=======`, \
         `>>>>>>>` the side of `{}`.\n\
         2. Replace each conflict, markers included, by what both sides intend together. Keep the work of both; never \
         drop a side.\n\
         3. Change nothing else: no other file, no new file, and in these files no line outside of the markers.\n\
         4. `git add` what is resolved. You need not commit. Do not abort the merge, switch branches, stash, rebase or \
         push.\n\n\
         The files in conflict: {}.\n\n\
         The result is checked: it is refused when a marker is left, when a side is dropped, or when anything beside the \
         conflict differs from what git merged.\n",
        open.onto,
        names.join(", ")
    );
    if leave.others {
        out.push_str("You may change other files too where the resolution needs it.\n");
    } else if !leave.paths.is_empty() {
        let more: Vec<String> = leave.paths.iter().map(|p| format!("`{p}`")).collect();
        out.push_str(&format!("You may change these freely: {}.\n", more.join(", ")));
    }
    out
}

/// The beginning of a text, with a word that there is more.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => {
            let whole = lines(&text.as_bytes()[..at]).len();
            format!("{}\n[… cut after {whole} lines]", &text[..at])
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        assert_eq!(cut("ab", 2), "ab");
        assert_eq!(cut("äb\nc", 3), "äb\n\n[… cut after 1 lines]");
    }
}
