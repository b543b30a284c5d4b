//! Owns what a run of a lane's task is told: the user's own words, what is attached to them, and the lane's rules.

use super::Error;
use super::job::{Job, Mode};
use super::profile::Permission;
use crate::config::Autocommit;
use crate::lane::{self, Project};
use crate::store::records::LaneRecord;

/// What a run is told.
#[derive(Debug)]
pub(super) struct Told {
    /// The lane's rules, where the agent takes them apart from the prompt.
    pub(super) rules: Option<String>,
    /// The prompt.
    pub(super) prompt: String,
}

/// Builds what a run in a lane is told: the lane's task, or what was `said` in its place. `checks` are the commands that its
/// landing will ask.
pub(super) fn tell(
    project: &Project,
    lane: &LaneRecord,
    job: &Job,
    checks: &[String],
    said: Option<&str>,
) -> Result<Told, Error> {
    let prompt = if let Some(text) = said {
        text.to_owned()
    } else {
        let path = project.store.layout().task(&lane.name);
        let task = std::fs::read_to_string(&path).map_err(lane::Error::io("read", &path))?;
        task + &attachments(project, lane)?
    };
    if job.profile().bare {
        return Ok(Told { rules: None, prompt });
    }
    let rules = rules(project, lane, job, checks);
    if job.profile().capabilities.reads_system_prompt {
        return Ok(Told { rules: Some(rules), prompt });
    }
    if job.resume.is_some() {
        // They stand in the conversation already.
        return Ok(Told { rules: None, prompt });
    }
    Ok(Told { rules: None, prompt: format!("{}\n\n{rules}", prompt.trim_end()) })
}

/// The files that were given along, by name.
pub(super) fn attachments(project: &Project, lane: &LaneRecord) -> Result<String, Error> {
    let names = lane::attachments(project, &lane.name)?;
    if names.is_empty() {
        return Ok(String::new());
    }
    let lines: Vec<String> = names.iter().map(|path| format!("- {}\n", path.display())).collect();
    Ok(format!("\n\nThese files belong to the task; read them where they are:\n\n{}", lines.concat()))
}

fn rules(project: &Project, lane: &LaneRecord, job: &Job, checks: &[String]) -> String {
    let settings = &project.settings;
    let (name, branch, base, dir) = (&lane.name, &lane.branch, &lane.base, lane.path.display());
    let mut out = format!(
        "# Rules of this lane\n\nYou work in lane `{name}`: a git worktree of its own at {dir}, on branch `{branch}`, \
         which is to land on `{base}`. Others work in other worktrees of this repository at the same time. Nobody can \
         answer questions: decide, and say at the end what you decided.\n\n"
    );
    let mut rule = |text: String| out.push_str(&format!("- {text}\n"));
    rule(
        "Stay in this worktree. Leave other worktrees and branches, the stash and git's settings alone."
            .to_owned(),
    );
    if !lane.scope.is_empty() {
        let globs: Vec<String> = lane.scope.iter().map(|glob| format!("`{glob}`")).collect();
        rule(format!(
            "The task is expected to touch {} and nothing else. Where it cannot be done without other files, change as \
             little of them as possible, and say so.",
            globs.join(", ")
        ));
    }
    match (job.mode, job.permission) {
        (Mode::Build, Permission::Read) => rule("Look only. Change no file and commit nothing.".to_owned()),
        (Mode::Build, _) => {
            let left = match settings.autocommit {
                Autocommit::Never => "What is not committed will not land.",
                _ => "What you cannot commit yourself is committed for you when you are done.",
            };
            rule(format!("Commit your work here, on this branch, one thing in each commit. {left}"));
            if !settings.commit_style.trim().is_empty() {
                rule(format!("Commit messages: {}", settings.commit_style.trim()));
            }
        }
    }
    if settings.context_warn.is_some() {
        rule(
            "Look now and then whether the file exists that the variable `PROQ_WRAP_UP` names. Once it does, your context is \
             nearly full: finish what you are at, commit it, say what is left to do, and end."
                .to_owned(),
        );
    }
    rule(if settings.agent_push {
        format!("You may push `{branch}`, and no other branch; never by force.")
    } else {
        "Do not push.".to_owned()
    });
    rule(report_by(job).to_owned());
    if !checks.is_empty() {
        let lines: Vec<String> = checks.iter().map(|line| format!("- `{line}`\n")).collect();
        out.push_str(&format!(
            "\nIt lands only when these commands succeed with it, at the top of the worktree. Run them before you end:\n\n{}",
            lines.concat()
        ));
    }
    if !settings.prompt_append.trim().is_empty() {
        out.push_str(&format!("\n{}\n", settings.prompt_append.trim()));
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
