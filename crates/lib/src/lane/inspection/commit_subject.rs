//! Subject lines of the commits that git-proq makes of a lane's work.

use proq_store::records::lane::{AnyLane, COMMAND_AGENT, LaneRecord};

use crate::project::Project;

/// Maximum length of a subject line in characters, before lists truncate it.
const MAX_SUBJECT_CHARS: usize = 72;

/// Programs that take code in an argument.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "fish", "ksh", "zsh"];

/// Returns whether a subject line is longer than lists show it.
pub(crate) fn exceeds_subject(text: &str) -> bool {
    text.chars().count() > MAX_SUBJECT_CHARS
}

/// Returns the title of a lane for commit messages: its name where the title is code for a shell.
pub(crate) fn commit_title<P>(lane: &LaneRecord<P>) -> &str {
    if lane.agent.as_deref() == Some(COMMAND_AGENT) && is_shell_code(&lane.title) {
        lane.name.as_str()
    } else {
        &lane.title
    }
}

/// Returns the title of a lane for a list to choose from. Where it is code for a shell, the subject of the last
/// commit that the lane has made is returned instead, if there is one.
pub fn title_to_choose_by(project: &Project, lane: &AnyLane) -> String {
    let last_subject = || {
        let tip = project.repo.branch_tip(lane.branch()?).ok()??;
        (tip != lane.start).then(|| project.repo.commit_subject(tip).ok())?
    };
    let is_code = commit_title(lane) != lane.title;
    is_code.then(last_subject).flatten().unwrap_or_else(|| lane.title.clone())
}

/// Returns the title of a lane for commit messages, cut at a word after at most 72 characters.
pub(crate) fn commit_subject<P>(lane: &LaneRecord<P>) -> String {
    cut_subject(commit_title(lane))
}

/// Returns the message of a commit of uncommitted work, with the lane's title as its subject and with `note` below
/// it.
pub(crate) fn commit_message<P>(lane: &LaneRecord<P>, note: &str) -> String {
    let title = commit_title(lane);
    let subject = match lane.name == title {
        true => format!("{title}: uncommitted changes"),
        false => commit_subject(lane),
    };
    let full_title = if subject.starts_with(title) { String::new() } else { format!("{title}\n\n") };
    format!("{subject}\n\n{full_title}{note}\n")
}

/// Returns whether a command line passes code to a shell, as in `sh -c CODE`.
fn is_shell_code(command_line: &str) -> bool {
    let mut words = command_line.split(' ');
    let shell = words.next().and_then(|program| program.rsplit('/').next());
    let option = words.next().and_then(|word| word.strip_prefix('-'));
    shell.is_some_and(|shell| SHELLS.contains(&shell)) && option.is_some_and(|flags| flags.contains('c'))
}

fn cut_subject(title: &str) -> String {
    if !exceeds_subject(title) {
        return title.to_owned();
    }
    let start: String = title.chars().take(MAX_SUBJECT_CHARS - 1).collect();
    let words = start.rsplit_once(' ').map_or(start.as_str(), |(words, _)| words);
    format!("{}…", words.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_code_for_a_shell() {
        assert!(is_shell_code("sh -c echo x") && is_shell_code("/bin/bash -ec 'echo x'"));
        for line in ["sh build.sh", "cargo fix -c", "Add sh -c", "sh", ""] {
            assert!(!is_shell_code(line), "{line}");
        }
    }

    #[test]
    fn cuts_long_subject_at_a_word() {
        assert_eq!(cut_subject("Add payments"), "Add payments");
        let cut = cut_subject(&"word ".repeat(30));
        assert!(cut.chars().count() <= MAX_SUBJECT_CHARS && cut.ends_with("word…"), "{cut}");
        assert_eq!(cut_subject(&"x".repeat(100)).chars().count(), MAX_SUBJECT_CHARS);
    }
}
