//! Owns what a run of a lane's task is told: the user's own words, what is attached to them, and the lane's rules.

use super::Error;
use super::job::Job;
use super::profile::Permission;
use super::talk::last_talk;
use crate::config::Autocommit;
use crate::lane::{self, Project};
use crate::store::records::{AnyLane, Purpose};

/// What a run is told.
#[derive(Debug)]
pub(super) struct Told {
    /// The lane's rules, where the agent takes them apart from the prompt.
    pub(super) rules: Option<String>,
    /// The prompt.
    pub(super) prompt: String,
}

/// Builds what a run in a lane is told: the lane's task, or what was `said` in its place. `checks` are the commands that its
/// landing will ask. The agent takes no prompt for a command of its own.
pub(super) fn tell(
    project: &Project,
    lane: &AnyLane,
    job: &Job,
    checks: &[String],
    said: Option<&str>,
) -> Result<Told, Error> {
    let told = compose(project, lane, job, checks, said)?;
    Ok(Told { prompt: job.profile().as_prompt(told.prompt), ..told })
}

fn compose(
    project: &Project,
    lane: &AnyLane,
    job: &Job,
    checks: &[String],
    said: Option<&str>,
) -> Result<Told, Error> {
    let prompt = if let Some(text) = said {
        text.to_owned()
    } else {
        let path = project.store.layout().task(&lane.name);
        let task = crate::regular_file::record_text(&path).map_err(lane::Error::io("read", &path))?;
        task + &attachments(project, &lane.name)?
    };
    if job.profile().bare {
        return Ok(Told { rules: None, prompt });
    }
    let rules = match (lane.purpose(), lane.commits_to()) {
        (Some(purpose), None) => rules_of_looking(project, lane, job, purpose),
        (_, branch) => rules(project, lane, job, checks, branch.unwrap_or_default()),
    };
    if job.profile().capabilities.reads_system_prompt {
        return Ok(Told { rules: Some(rules), prompt });
    }
    if job.resume.is_some() {
        // They stand in the conversation already, but for who can answer: a window has a person, and a run without one has nobody.
        let before = last_talk(project, lane, job.talk)?;
        let prompt = match before.is_some_and(|run| run.interactive != job.in_window) {
            true => format!("{}\n\nFrom now on: {}\n", prompt.trim_end(), questions(job.in_window)),
            false => prompt,
        };
        return Ok(Told { rules: None, prompt });
    }
    Ok(Told { rules: None, prompt: format!("{}\n\n{rules}", prompt.trim_end()) })
}

/// The files that were given along, by name.
pub(super) fn attachments(project: &Project, lane: &str) -> Result<String, Error> {
    let names = lane::attachments(project, lane)?;
    if names.is_empty() {
        return Ok(String::new());
    }
    let lines = lane::named_files(&names);
    Ok(format!("\n\nThese files belong to the task; read them where they are:\n\n{lines}"))
}

fn rules(project: &Project, lane: &AnyLane, job: &Job, checks: &[String], branch: &str) -> String {
    let settings = &project.settings;
    let mut out = where_it_works(lane, branch, job.in_window);
    let mut rule = |text: String| out.push_str(&format!("- {text}\n"));
    if lane.works_in_place() {
        rule(format!(
            "Stay on `{branch}`. Commit nothing that you have not changed yourself, and take nothing back that is not yours: no \
             `git add --all`, `git commit --all`, `git stash`, `git reset --hard`, `git clean` or `git checkout .`."
        ));
    }
    rule(
        "Stay in this worktree. Leave other worktrees and branches, the stash and git's settings alone."
            .to_owned(),
    );
    if let Some(parts) = project.repo.cut_of(&lane.path) {
        let parts: Vec<String> = parts.iter().map(|part| format!(", `{part}`")).collect();
        rule(format!(
            "Only a part of the repository is checked out here: the files at the top{}. `git ls-files` names all files, \
             `git sparse-checkout add FOLDER` brings a folder.",
            parts.concat()
        ));
    }
    if !lane.scope.is_empty() {
        let globs: Vec<String> = lane.scope.iter().map(|glob| format!("`{glob}`")).collect();
        rule(format!(
            "The task is expected to touch {} and nothing else. Where it cannot be done without other files, change as \
             little of them as possible, and say so.",
            globs.join(", ")
        ));
    }
    rule(how_to_commit(project, lane, job));
    if !settings.commit_style.trim().is_empty() && job.permission != Permission::Read {
        rule(format!("Commit messages: {}", settings.commit_style.trim()));
    }
    rule(
        "Check now and then whether the file exists that the variable `PROQ_WRAP_UP` names. Once it does, finish the step you are \
         at, commit it, say what is left to do, and end."
            .to_owned(),
    );
    rule(if settings.agent_push {
        format!("You may push `{branch}`, and no other branch; never by force.")
    } else {
        "Do not push.".to_owned()
    });
    rule(report_by(job).to_owned());
    if !checks.is_empty() {
        let lines: Vec<String> = checks.iter().map(|line| format!("- `{line}`\n")).collect();
        out.push_str(&format!(
            "\n{} these commands succeed with it, at the top of the worktree. Run them before you end:\n\n{}",
            if lane.works_in_place() { "It is well done when" } else { "It lands only when" },
            lines.concat()
        ));
    }
    if !settings.prompt_append.trim().is_empty() {
        out.push_str(&format!("\n{}\n", settings.prompt_append.trim()));
    }
    out
}

/// Where a run works, and beside whom.
fn where_it_works(lane: &AnyLane, branch: &str, in_window: bool) -> String {
    let (name, base, dir) = (&lane.name, &lane.base, lane.path.display());
    let place = if lane.works_in_place() {
        format!(
            "# Rules of this run\n\nYou work in the main checkout of a git repository at {dir}, on branch `{branch}` (this run is \
             called `{name}`). People may have changes there that are not committed, and work there at the same time; others work in \
             other worktrees."
        )
    } else {
        format!(
            "# Rules of this lane\n\nYou work in lane `{name}`: a git worktree of its own at {dir}, on branch `{branch}`, \
             which is to land on `{base}`. Others work in other worktrees of this repository at the same time."
        )
    };
    format!("{place} {}\n\n", questions(in_window))
}

/// Whether an agent may ask.
fn questions(in_window: bool) -> &'static str {
    match in_window {
        true => "The person who started you can answer questions here: ask where you cannot decide.",
        false => "Nobody can answer questions: decide, and say at the end what you decided.",
    }
}

fn how_to_commit(project: &Project, lane: &AnyLane, job: &Job) -> String {
    if job.permission == Permission::Read {
        return "Look only. Change no file and commit nothing.".to_owned();
    }
    let left = match project.settings.autocommit {
        Autocommit::Never if lane.works_in_place() => "",
        Autocommit::Never => " What is not committed will not land.",
        _ => " What you cannot commit yourself is committed for you when you are done.",
    };
    format!("Commit your work here, on this branch, one thing in each commit.{left}")
}

/// What a run is told that comes to what it says.
fn rules_of_looking(project: &Project, lane: &AnyLane, job: &Job, purpose: Purpose) -> String {
    let (name, base, dir) = (&lane.name, &lane.base, lane.path.display());
    let last = match purpose {
        Purpose::Answer | Purpose::InPlace => {
            "Your last message is the answer, and the only thing that is kept. Make it complete and plain; name the files \
             and lines that show it. Where you were told in which form to answer, that form counts."
        }
        Purpose::Plan => {
            "Your last message is the plan, and the only thing that is kept: write it into no file. Name the steps in their \
             order, the files that each changes, how one sees that it is done, and what is not clear yet. Where you were told in \
             which form to answer, that form counts."
        }
    };
    let place = if lane.looks_apart() {
        format!(
            "in a worktree that is there for you alone and goes when you end: {dir}, at `{base}` ({})",
            lane.start.short()
        )
    } else {
        format!(
            "where it is checked out: {dir}, on `{base}` when this was asked. People work there at the same time"
        )
    };
    let mut out = format!(
        "# Rules of this run\n\nYou look at a git repository (mode `{purpose}`, called `{name}`), {place}. Nobody can \
         answer questions: decide, and say at the end what you assumed.\n\n- Look only. Change no file, commit nothing, and leave \
         branches, the stash and git's settings alone.\n- {last}\n- {}\n",
        report_by(job)
    );
    if !project.settings.prompt_append.trim().is_empty() {
        out.push_str(&format!("\n{}\n", project.settings.prompt_append.trim()));
    }
    out
}

fn report_by(job: &Job) -> &'static str {
    if job.profile().capabilities.mcp {
        "The tool `read_task` of the MCP server `proq` gives you this task again. Report with `update_task` what you found \
         out, and what only a person can do. Without that server, `git proq task read` and `git proq task update` do the \
         same."
    } else {
        "`git proq task read` gives you this task again. Report with `git proq task update` what you found out, and what \
         only a person can do."
    }
}
