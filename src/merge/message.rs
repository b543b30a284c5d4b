//! Owns the messages of landings: they name the lane, its task, and who wrote what landed.

use super::Error;
use crate::git::{Ancestry, Repo};
use crate::store::records::LaneRecord;

/// How long a first line may be before lists cut it.
const WIDTH: usize = 72;

/// The message of a merge commit.
pub(super) fn of_merge(lane: &LaneRecord) -> String {
    let mut text = format!("Merge lane {}", lane.name);
    if lane.title != lane.name {
        text.push_str(": ");
        text.push_str(&lane.title);
    }
    if text.chars().count() > WIDTH {
        text = format!("Merge lane {}\n\n{}", lane.name, lane.title);
    }
    format!("{text}\n\n{}", trailers(lane, &[]))
}

/// The message of one commit that stands for several, oldest first: the task, or the first subject, and below it all
/// subjects; a single commit's own text. Authors other than the user are named, as co-authors.
pub(super) fn of_squash(repo: &Repo, lane: &LaneRecord, commits: &[Ancestry]) -> Result<String, Error> {
    let mut texts = Vec::new();
    for commit in commits.iter().filter(|c| c.parents.len() < 2) {
        texts.push(repo.text_of(commit.id)?);
    }
    let (mut bodies, mut people) = (Vec::new(), Vec::new());
    for text in &texts {
        let (body, named) = split_co_authors(&text.message);
        bodies.push(body);
        for who in std::iter::once(text.author.clone()).chain(named) {
            if !people.contains(&who) {
                people.push(who);
            }
        }
    }
    people.retain(|who| Some(who) != repo.user().as_ref());
    let text = match bodies.as_slice() {
        [one] => one.clone(),
        many => {
            let subject = |body: &String| body.lines().next().unwrap_or_default().to_owned();
            let subjects: Vec<String> = many.iter().map(subject).collect();
            let head = if lane.title == lane.name { subjects.first() } else { Some(&lane.title) };
            let head = head.filter(|h| !h.is_empty()).unwrap_or(&lane.name);
            format!("{head}\n\n* {}", subjects.join("\n* "))
        }
    };
    Ok(format!("{}\n\n{}", text.trim_end(), trailers(lane, &people)))
}

fn trailers(lane: &LaneRecord, people: &[String]) -> String {
    let mut text = format!("Proq-Lane: {}\n", lane.name);
    if let Some(agent) = &lane.agent {
        text.push_str(&format!("Proq-Agent: {agent}\n"));
    }
    for who in people {
        text.push_str(&format!("Co-authored-by: {who}\n"));
    }
    text
}

/// A message without its lines that name co-authors, and those.
fn split_co_authors(message: &str) -> (String, Vec<String>) {
    let named = |line: &str| {
        let (key, who) = line.split_once(": ")?;
        key.eq_ignore_ascii_case("co-authored-by").then(|| who.trim().to_owned())
    };
    let people = message.lines().filter_map(named).collect();
    let rest: Vec<&str> = message.lines().filter(|line| named(line).is_none()).collect();
    (rest.join("\n").trim_end().to_owned(), people)
}

#[cfg(test)]
mod tests {
    use super::split_co_authors;

    #[test]
    fn co_authors_are_taken_out_of_a_message() {
        let (text, people) =
            split_co_authors("subject\n\nbody\n\nCo-Authored-By: A <a@b>\nco-authored-by: C <c@d>\n");
        assert_eq!(text, "subject\n\nbody");
        assert_eq!(people, ["A <a@b>", "C <c@d>"]);
    }
}
