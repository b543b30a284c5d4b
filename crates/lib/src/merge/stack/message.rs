//! Commit messages of landings: they name the lane, its task, and the authors.

use proq_git::Repo;
use proq_git::merge::pick::CommitWithParents;
use proq_store::records::lane::LaneRecord;

use crate::merge::Error;

/// Maximum length of a subject line in characters, before lists truncate it.
const MAX_SUBJECT_CHARS: usize = 72;

/// Returns the message of a merge commit.
pub(crate) fn merge_message(lane: &LaneRecord) -> String {
    let mut text = format!("Merge lane {}", lane.name);
    if lane.name != lane.title.as_str() {
        text.push_str(": ");
        text.push_str(&lane.title);
    }
    if text.chars().count() > MAX_SUBJECT_CHARS {
        text = format!("Merge lane {}\n\n{}", lane.name, lane.title);
    }
    format!("{text}\n\n{}", trailers(lane, &[]))
}

/// Returns the message of one commit that replaces `commits`, oldest first. A single commit keeps its own
/// text. Otherwise the subject is the task, or the first subject, followed by all subjects. Authors other
/// than the user become co-authors.
pub(crate) fn squash_message(
    repo: &Repo,
    lane: &LaneRecord,
    commits: &[CommitWithParents],
) -> Result<String, Error> {
    let mut texts = Vec::new();
    for commit in commits.iter().filter(|c| c.parents.len() < 2) {
        texts.push(repo.commit_text(commit.id)?);
    }
    let (mut bodies, mut co_authors) = (Vec::new(), Vec::new());
    for text in &texts {
        let (body, body_authors) = split_co_authors(&text.message);
        bodies.push(body);
        for author in std::iter::once(text.author.clone()).chain(body_authors) {
            if !co_authors.contains(&author) {
                co_authors.push(author);
            }
        }
    }
    co_authors.retain(|author| Some(author) != repo.user_identity().as_ref());
    let text = match bodies.as_slice() {
        [body] => body.clone(),
        all_bodies => {
            let subject = |body: &String| body.lines().next().unwrap_or_default().to_owned();
            let subjects: Vec<String> = all_bodies.iter().map(subject).collect();
            let title = if lane.name == lane.title.as_str() { subjects.first() } else { Some(&lane.title) };
            let title = title.filter(|h| !h.is_empty()).map_or(lane.name.as_str(), String::as_str);
            format!("{title}\n\n* {}", subjects.join("\n* "))
        }
    };
    Ok(format!("{}\n\n{}", text.trim_end(), trailers(lane, &co_authors)))
}

/// Returns the trailers of a landing's commit: lane, agent and co-authors, one a line.
fn trailers(lane: &LaneRecord, co_authors: &[String]) -> String {
    let mut text = format!("Proq-Lane: {}\n", lane.name);
    if let Some(agent) = &lane.agent {
        text.push_str(&format!("Proq-Agent: {agent}\n"));
    }
    for author in co_authors {
        text.push_str(&format!("Co-authored-by: {author}\n"));
    }
    text
}

/// Returns a message without its co-author lines, and the co-authors.
fn split_co_authors(message: &str) -> (String, Vec<String>) {
    let co_author = |line: &str| {
        let (key, author) = line.split_once(": ")?;
        key.eq_ignore_ascii_case("co-authored-by").then(|| author.trim().to_owned())
    };
    let co_authors = message.lines().filter_map(co_author).collect();
    let other_lines: Vec<&str> = message.lines().filter(|line| co_author(line).is_none()).collect();
    (other_lines.join("\n").trim_end().to_owned(), co_authors)
}

#[cfg(test)]
mod tests {
    use super::split_co_authors;

    #[test]
    fn splits_co_authors_from_message() {
        let (text, co_authors) =
            split_co_authors("subject\n\nbody\n\nCo-Authored-By: A <a@b>\nco-authored-by: C <c@d>\n");
        assert_eq!(text, "subject\n\nbody");
        assert_eq!(co_authors, ["A <a@b>", "C <c@d>"]);
    }
}
