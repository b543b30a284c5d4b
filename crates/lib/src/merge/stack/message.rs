//! Commit messages of landings: the subject and body of a lane's work, and trailers with the lane and the authors.

use std::sync::atomic::{AtomicBool, Ordering};

use proq_base::config::settings::MessageSettings;
use proq_base::diagnostics::Listener;
use proq_git::Repo;
use proq_git::merge::pick::CommitWithParents;
use proq_store::records::lane::{COMMAND_AGENT, LaneRecord};

use super::message_template::expand;
use crate::lane::inspection::commit_subject::{commit_subject, commit_title, exceeds_subject};
use crate::merge::Error;
use crate::merge::types::options::LandingOptions;

/// Source of the message of the commit by which a lane lands.
pub(crate) struct LaneMessage<'a> {
    /// Repository of the lane.
    pub repo: &'a Repo,
    /// Receiver of warnings.
    pub listener: &'a Listener,
    /// Templates and trailers.
    pub settings: &'a MessageSettings,
    /// Options of the landing, which may have the full message.
    pub options: &'a LandingOptions,
    /// Branch that the lane lands on.
    pub onto: &'a str,
    /// Record of the lane.
    pub lane: &'a LaneRecord,
    /// Returns the lane's commits that the base lacks, oldest first.
    pub(crate) commits: &'a dyn Fn() -> Result<Vec<CommitWithParents>, Error>,
}

/// Subject and body of a message, without trailers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct MessageParts {
    subject: String,
    body: String,
    /// Authors of the lane's commits other than the user, as `Name <address>`.
    co_authors: Vec<String>,
}

impl LaneMessage<'_> {
    /// Returns the message of a merge commit.
    ///
    /// # Errors
    /// [`Error::UnknownPlaceholder`], and errors of git.
    pub(crate) fn for_merge(&self) -> Result<String, Error> {
        let (name, title) = (&self.lane.name, commit_title(self.lane));
        let mut parts = MessageParts { subject: format!("Merge lane {name}"), ..MessageParts::default() };
        if name != title {
            let subject = format!("{}: {title}", parts.subject);
            if exceeds_subject(&subject) {
                title.clone_into(&mut parts.body);
            } else {
                parts.subject = subject;
            }
        }
        self.format(&parts)
    }

    /// Returns the message of one commit that replaces the lane's commits. A single commit keeps its own text.
    /// Otherwise the subject is the task, or the first subject, followed by all subjects. Authors other than
    /// the user become co-authors.
    ///
    /// # Errors
    /// As [`LaneMessage::for_merge`].
    pub(crate) fn for_squash(&self) -> Result<String, Error> {
        let (mut bodies, mut co_authors) = (Vec::new(), Vec::new());
        for commit in self.plain_commits()? {
            let text = self.repo.commit_text(commit.id)?;
            let (body, body_authors) = split_co_authors(&text.message);
            bodies.push(body);
            for author in std::iter::once(text.author).chain(body_authors) {
                if !co_authors.contains(&author) {
                    co_authors.push(author);
                }
            }
        }
        co_authors.retain(|author| Some(author) != self.repo.user_identity().as_ref());
        let (subject, body) = match bodies.as_slice() {
            [text] => split_subject(text),
            all => {
                let subjects: Vec<String> = all.iter().map(|text| split_subject(text).0).collect();
                let first = subjects.first().filter(|first| !first.is_empty());
                let title = match (self.lane.name == commit_title(self.lane), first) {
                    (true, Some(first)) => first.clone(),
                    _ => commit_subject(self.lane),
                };
                (title, list_subjects(&subjects))
            }
        };
        self.format(&MessageParts { subject, body, co_authors })
    }

    /// Returns the lane's commits that are no merges.
    fn plain_commits(&self) -> Result<Vec<CommitWithParents>, Error> {
        let mut commits = (self.commits)()?;
        commits.retain(|commit| commit.parents.len() < 2);
        Ok(commits)
    }

    /// Returns the full message: that of the options, or else the parts in the templates, with trailers.
    fn format(&self, parts: &MessageParts) -> Result<String, Error> {
        if let Some(text) = self.options.messages.get(&self.lane.name) {
            return Ok(text.clone());
        }
        let settings = self.settings;
        let value = |name: &str| self.placeholder_value(name, parts);
        let usual_subject = || match first_line(&parts.subject) {
            subject if subject.is_empty() => commit_subject(self.lane),
            subject => subject,
        };
        let subject = match settings.subject.as_str() {
            "" => usual_subject(),
            template => match first_line(&expand("merge.subject", template, &value)?) {
                subject if subject.is_empty() => {
                    self.warn_empty("merge.subject");
                    usual_subject()
                }
                subject => subject,
            },
        };
        let with_subject = MessageParts { subject, ..parts.clone() };
        let value = |name: &str| self.placeholder_value(name, &with_subject);
        let usual_text = || expand("merge.message", "{subject}\n\n{body}", &value);
        let text = match settings.message.as_str() {
            "" => usual_text()?,
            template => match expand("merge.message", template, &value)? {
                text if text.trim().is_empty() => {
                    self.warn_empty("merge.message");
                    usual_text()?
                }
                text => text,
            },
        };
        self.append_trailers(&text, &parts.co_authors)
    }

    /// Warns that a template gives no text for this lane, once: a landing builds its commits more than once.
    fn warn_empty(&self, setting: &str) {
        static IS_WARNED: AtomicBool = AtomicBool::new(false);
        if !IS_WARNED.swap(true, Ordering::Relaxed) {
            let lane = &self.lane.name;
            self.listener.warn(format!("{setting} is empty for '{lane}': the usual text is used"));
        }
    }

    /// Returns the value of a placeholder; empty if the lane has none.
    fn placeholder_value(&self, name: &str, parts: &MessageParts) -> Result<String, Error> {
        Ok(match name {
            "agent" => self.agent().unwrap_or_default().to_owned(),
            "base" => self.onto.to_owned(),
            "body" => parts.body.clone(),
            "commits" => {
                let subject =
                    |commit: CommitWithParents| Ok::<_, Error>(self.repo.commit_subject(commit.id)?);
                let subjects: Result<Vec<_>, _> = self.plain_commits()?.into_iter().map(subject).collect();
                list_subjects(&subjects?)
            }
            "lane" => self.lane.name.to_string(),
            "subject" => parts.subject.clone(),
            _ => commit_title(self.lane).to_owned(),
        })
    }

    /// Returns the agent of the lane; none for a command.
    fn agent(&self) -> Option<&str> {
        self.lane.agent.as_deref().filter(|agent| *agent != COMMAND_AGENT)
    }

    /// Returns a message with the trailers of the lane: lane and agent, co-authors, sign-off. Trailers at the end
    /// of the message stay in one block with them.
    ///
    /// # Errors
    /// Fails when a sign-off is requested and git knows no identity.
    pub(crate) fn append_trailers(&self, message: &str, co_authors: &[String]) -> Result<String, Error> {
        let settings = self.settings;
        let mut trailers = Vec::new();
        if settings.trailers {
            trailers.push(format!("Proq-Lane: {}", self.lane.name));
            trailers.extend(self.lane.agent.as_ref().map(|agent| format!("Proq-Agent: {agent}")));
        }
        trailers.extend(co_authors.iter().map(|author| format!("Co-authored-by: {author}")));
        if let (Some(agent), false) = (self.agent(), settings.co_author.is_empty()) {
            let trailer = format!("Co-authored-by: {}", settings.co_author.replace("{agent}", agent));
            trailers.retain(|known| *known != trailer);
            trailers.push(trailer);
        }
        trailers.extend(sign_off_line(self.repo, self.options, settings)?);
        let text = message.trim_end();
        trailers.retain(|trailer| !text.lines().any(|line| line == trailer));
        if trailers.is_empty() {
            return Ok(format!("{text}\n"));
        }
        let separator = if ends_with_trailers(text) { "\n" } else { "\n\n" };
        Ok(format!("{text}{separator}{}\n", trailers.join("\n")))
    }
}

/// Returns the trailer that signs commits off, if options or settings request it.
///
/// # Errors
/// Fails when git knows no identity.
pub(crate) fn sign_off_line(
    repo: &Repo,
    options: &LandingOptions,
    settings: &MessageSettings,
) -> Result<Option<String>, Error> {
    if !options.signoff && !settings.signoff {
        return Ok(None);
    }
    Ok(Some(format!("Signed-off-by: {}", repo.committer_identity()?)))
}

/// Returns the subjects as a list, one a line.
fn list_subjects(subjects: &[String]) -> String {
    if subjects.is_empty() { String::new() } else { format!("* {}", subjects.join("\n* ")) }
}

/// Returns the first line that is not empty.
fn first_line(text: &str) -> String {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

/// Splits a message into its first line and the text below.
fn split_subject(text: &str) -> (String, String) {
    let (subject, body) = text.split_once('\n').unwrap_or((text, ""));
    (subject.to_owned(), body.trim_start_matches('\n').trim_end().to_owned())
}

/// Returns whether the last paragraph of a message, below its subject, consists of trailers.
fn ends_with_trailers(text: &str) -> bool {
    let is_trailer = |line: &str| {
        line.split_once(": ").is_some_and(|(key, _)| {
            key.contains('-') && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        })
    };
    text.rsplit_once("\n\n").is_some_and(|(_, last)| last.lines().all(is_trailer))
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
    use super::*;

    #[test]
    fn splits_co_authors_from_message() {
        let (text, co_authors) =
            split_co_authors("subject\n\nbody\n\nCo-Authored-By: A <a@b>\nco-authored-by: C <c@d>\n");
        assert_eq!(text, "subject\n\nbody");
        assert_eq!(co_authors, ["A <a@b>", "C <c@d>"]);
    }

    #[test]
    fn recognizes_trailers_at_the_end() {
        assert!(ends_with_trailers("subject\n\nbody\n\nSigned-off-by: A <a@b>\nProq-Lane: x"));
        for text in ["subject", "subject\n\nbody", "subject\n\nNote: it works", "Signed-off-by: A <a@b>"] {
            assert!(!ends_with_trailers(text), "{text}");
        }
    }
}
