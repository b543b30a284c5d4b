//! Owns completion: scripts for each shell, and the answers that the scripts ask this program for.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::Args;
use clap_complete::CompleteEnv;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::Shells;

use super::{Done, Session, groups};
use crate::agent::profiles;
use crate::explain::Exit;
use crate::lane::Project;
use crate::note::Listener;
use crate::store::records::{AnyLane, LaneRecord};

/// Print a completion script
///
/// `git proq setup` installs those for bash, fish and zsh. The other shells read theirs from their own start-up files:
/// put what is printed into $PROFILE (PowerShell) or ~/.config/elvish/rc.elv (elvish).
///
/// Example:
///     git proq completions powershell >> $PROFILE
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Completions {
    /// The shell it is for
    #[arg(value_name = "SHELL", value_parser = SHELLS)]
    pub(crate) shell: String,
}

/// The shells, as their scripts are called.
pub(super) const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

/// The variable by which a script asks this program.
const ASK: &str = "PROQ_COMPLETE";

/// Answers a shell's question and ends, if this start is one.
pub(super) fn answer_shell() {
    CompleteEnv::with_factory(groups::command).var(ASK).bin("git-proq").complete();
}

pub(super) fn run(session: &Session, args: &Completions) -> Done {
    session.ui.text(&script(&args.shell));
    Ok(Exit::Done)
}

/// The completion script of a shell, for `git-proq` and for `git proq`.
pub(super) fn script(shell: &str) -> String {
    let shells = Shells::builtins();
    let mut out = Vec::new();
    if let Some(completer) = shells.completer(shell) {
        // Writing to memory does not fail.
        drop(completer.write_registration(ASK, "git_proq", "git-proq", "git-proq", &mut out));
    }
    let mut text = String::from_utf8_lossy(&out).into_owned();
    text.push_str(match shell {
        "bash" => BASH_GIT,
        "fish" => FISH_GIT,
        "zsh" => ZSH_GIT,
        _ => "",
    });
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
    format!("{}\n", lines.join("\n"))
}

/// git's own bash completion calls `_git_proq` for `git proq`: the line is in `words`, the word under the cursor is
/// number `cword`, and `proq` is number `__git_cmd_idx`, which an older git does not say. What stands between `git` and
/// `proq` matters only where it changes the folder.
const BASH_GIT: &str = r#"
_git_proq() {
    local IFS=$'\013' at=${__git_cmd_idx-}
    if [[ -z $at ]]; then
        at=1
        while [[ $at -lt $cword && ${words[at]} != proq ]]; do
            at=$((at + 1))
        done
    fi
    # git asks for no space after a completed word; here every one is a word of its own.
    compopt +o nospace 2>/dev/null
    COMPREPLY=( $( \
        _CLAP_IFS="$IFS" \
        _CLAP_COMPLETE_INDEX="$((cword - at + ${#__git_C_args[@]}))" \
        _CLAP_COMPLETE_COMP_TYPE="${COMP_TYPE:-9}" \
        _CLAP_COMPLETE_SPACE=false \
        PROQ_COMPLETE="bash" \
        git-proq -- git-proq "${__git_C_args[@]}" "${words[@]:$((at + 1))}" \
    ) )
}
"#;

/// fish passes `git proq` on to `git-proq` by itself, but not in every version; saying it twice does no harm.
const FISH_GIT: &str = r"
function __git_proq_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l at (contains --index -- proq $words)
    and set --erase words[1..$at]
    PROQ_COMPLETE=fish git-proq -- git-proq $words (commandline --current-token)
end
complete --keep-order --exclusive --command git --condition '__fish_git_using_command proq' --arguments '(__git_proq_complete)'
";

/// zsh's completion of git calls `_git-proq` with `words` beginning at `proq`. Its file is also loaded by that name at
/// the first TAB, when it has to answer at once.
const ZSH_GIT: &str = r#"
_git-proq() {
    words[1]=git-proq
    _clap_dynamic_completer_git_proq
}

if [[ "$funcstack[1]" = "_git-proq" ]]; then
    _git-proq "$@"
fi
"#;

/// Names of batches that begin with what was typed, the youngest first.
pub(super) fn batch_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let batches = here().map(|project| crate::swarm::batches(&project, false)).unwrap_or_default();
    let fitting = batches.into_iter().rev().filter(|batch| batch.id.starts_with(typed.as_ref()));
    fitting.map(|batch| CompletionCandidate::new(batch.id).help(Some(batch.summary.into()))).collect()
}

/// Names of lanes that can land and begin with what was typed.
pub(super) fn lane_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let lanes = here().and_then(|project| project.lanes().ok()).unwrap_or_default();
    names(lanes.into_iter().map(LaneRecord::any), typed)
}

/// The same of all lanes.
pub(super) fn any_lane_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let lanes = here().and_then(|project| project.every_lane().ok()).unwrap_or_default();
    names(lanes.into_iter(), typed)
}

fn names(lanes: impl Iterator<Item = AnyLane>, typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    lanes
        .filter(|lane| lane.name.starts_with(typed.as_ref()))
        .map(|lane| CompletionCandidate::new(lane.name).help(Some(lane.title.into())))
        .collect()
}

/// Names of lanes that can land, and of groups.
pub(super) fn lane_and_group_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    group_names(typed).into_iter().chain(lane_names(typed)).collect()
}

/// Names of all lanes, and of groups.
pub(super) fn any_lane_and_group_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    group_names(typed).into_iter().chain(any_lane_names(typed)).collect()
}

fn group_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let lanes = here().and_then(|project| project.lanes().ok()).unwrap_or_default();
    let groups: BTreeMap<_, _> =
        lanes.into_iter().filter_map(|lane| Some((lane.group?, lane.title))).collect();
    let groups = groups.into_iter().filter(|(group, _)| group.starts_with(&*typed.to_string_lossy()));
    groups.map(|(group, title)| CompletionCandidate::new(group).help(Some(title.into()))).collect()
}

/// Ids of snapshots that begin with what was typed, newest first.
pub(super) fn snap_ids(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(project) = here() else { return Vec::new() };
    let typed = typed.to_string_lossy();
    let ids = project.snap_ids().unwrap_or_default();
    ids.into_iter()
        .rev()
        .filter(|id| id.starts_with(typed.as_ref()))
        .filter_map(|id| project.snap(&id).ok())
        .map(|snap| CompletionCandidate::new(snap.id).help(Some(snap.why.into())))
        .collect()
}

/// Names of known agents that are installed.
pub(super) fn agent_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Ok(dir) = std::env::current_dir() else { return Vec::new() };
    let typed = typed.to_string_lossy();
    let layers = Project::layers_of(None).unwrap_or_default();
    profiles(&layers)
        .unwrap_or_default()
        .into_iter()
        .filter(|(name, profile)| {
            name.starts_with(typed.as_ref()) && crate::process::find(&profile.program, &dir).is_ok()
        })
        .map(|(name, profile)| CompletionCandidate::new(name).help(Some(profile.about.into())))
        .collect()
}

/// Names of the user's own branches.
pub(super) fn branch_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(project) = here() else { return Vec::new() };
    let typed = typed.to_string_lossy();
    let refs = project.repo.refs_below("refs/heads/").unwrap_or_default();
    refs.iter()
        .filter_map(|(name, _)| name.strip_prefix("refs/heads/"))
        .filter(|name| name.starts_with(typed.as_ref()) && !project.is_own_branch(name))
        .map(CompletionCandidate::new)
        .collect()
}

/// The repository that the command line to complete is about: where the shell is, or where its last `-C` says.
fn here() -> Option<Project> {
    let typed: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").collect();
    let named = typed.windows(2).filter(|pair| pair[0] == "-C").map(|pair| PathBuf::from(&pair[1]));
    let dir = named.fold(std::env::current_dir().ok()?, |dir, next| dir.join(next));
    Project::open(&dir, Listener::silent()).ok()
}
