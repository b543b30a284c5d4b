//! Shell completion: scripts for each shell, and the candidates that the scripts request from this program.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::Args;
use clap_complete::CompleteEnv;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::Shells;

use super::{CommandContext, CommandResult, help_page};
use crate::agent::load_profiles;
use crate::diagnostics::Listener;
use crate::explain::Exit;
use crate::lane::Project;
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

/// The supported shells, by the names that clap_complete uses.
pub(super) const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

/// Environment variable by which a completion script requests candidates from this program.
const COMPLETE_VARIABLE: &str = "PROQ_COMPLETE";

/// Prints completion candidates and exits, if a shell's completion script started this process.
pub(super) fn serve_shell_completion() {
    CompleteEnv::with_factory(help_page::styled_command).var(COMPLETE_VARIABLE).bin("git-proq").complete();
}

pub(super) fn run(session: &CommandContext, args: &Completions) -> CommandResult {
    session.ui.print_text(&script(&args.shell));
    Ok(Exit::Success)
}

/// Returns the completion script of a shell, for both `git-proq` and `git proq`.
pub(super) fn script(shell: &str) -> String {
    let shells = Shells::builtins();
    let mut out = Vec::new();
    if let Some(completer) = shells.completer(shell) {
        // A write to memory does not fail.
        drop(completer.write_registration(COMPLETE_VARIABLE, "git_proq", "git-proq", "git-proq", &mut out));
    }
    let mut text = String::from_utf8_lossy(&out).into_owned();
    text.push_str(match shell {
        "bash" => BASH_GIT_SCRIPT,
        "fish" => FISH_GIT_SCRIPT,
        "zsh" => ZSH_GIT_SCRIPT,
        _ => "",
    });
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
    format!("{}\n", lines.join("\n"))
}

/// Completion of `git proq` in git's own bash completion, which calls `_git_proq`.
///
/// The line is in `words` and the word under the cursor is number `cword`. `proq` is number `__git_cmd_idx`,
/// which an older git does not set. Arguments between `git` and `proq` matter only if they change the folder.
const BASH_GIT_SCRIPT: &str = r#"
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

/// Completion of `git proq` in fish. Some versions of fish pass `git proq` on to `git-proq` already; a second
/// definition is harmless.
const FISH_GIT_SCRIPT: &str = r"
function __git_proq_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l at (contains --index -- proq $words)
    and set --erase words[1..$at]
    PROQ_COMPLETE=fish git-proq -- git-proq $words (commandline --current-token)
end
complete --keep-order --exclusive --command git --condition '__fish_git_using_command proq' --arguments '(__git_proq_complete)'
";

/// Completion of `git proq` in zsh, whose git completion calls `_git-proq` with `words` beginning at `proq`.
/// zsh also loads the file by that name at the first TAB, so the script must then complete at once.
const ZSH_GIT_SCRIPT: &str = r#"
_git-proq() {
    words[1]=git-proq
    _clap_dynamic_completer_git_proq
}

if [[ "$funcstack[1]" = "_git-proq" ]]; then
    _git-proq "$@"
fi
"#;

/// Completes the ids of batches, newest first.
pub(super) fn batch_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let batches =
        open_typed_project().map(|project| crate::swarm::batches(&project, false)).unwrap_or_default();
    let matching = batches.into_iter().rev().filter(|batch| batch.id.starts_with(typed.as_ref()));
    matching.map(|batch| CompletionCandidate::new(batch.id).help(Some(batch.summary.into()))).collect()
}

/// Completes the names of lanes that can land.
pub(super) fn lane_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let lanes = open_typed_project().and_then(|project| project.lanes().ok()).unwrap_or_default();
    lane_candidates(lanes.into_iter().map(LaneRecord::into_any), typed)
}

/// Completes the names of all lanes.
pub(super) fn any_lane_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let lanes = open_typed_project().and_then(|project| project.all_lanes().ok()).unwrap_or_default();
    lane_candidates(lanes.into_iter(), typed)
}

fn lane_candidates(lanes: impl Iterator<Item = AnyLane>, typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    lanes
        .filter(|lane| lane.name.starts_with(typed.as_ref()))
        .map(|lane| CompletionCandidate::new(lane.name).help(Some(lane.title.into())))
        .collect()
}

/// Completes the names of lanes that can land, and of groups.
pub(super) fn lane_and_group_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    group_names(typed).into_iter().chain(lane_names(typed)).collect()
}

/// Completes the names of all lanes, and of groups.
pub(super) fn any_lane_and_group_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    group_names(typed).into_iter().chain(any_lane_names(typed)).collect()
}

fn group_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let lanes = open_typed_project().and_then(|project| project.lanes().ok()).unwrap_or_default();
    let groups: BTreeMap<_, _> =
        lanes.into_iter().filter_map(|lane| Some((lane.group?, lane.title))).collect();
    let groups = groups.into_iter().filter(|(group, _)| group.starts_with(&*typed.to_string_lossy()));
    groups.map(|(group, title)| CompletionCandidate::new(group).help(Some(title.into()))).collect()
}

/// Completes the ids of snapshots, newest first.
pub(super) fn snap_ids(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(project) = open_typed_project() else { return Vec::new() };
    let typed = typed.to_string_lossy();
    let ids = project.snap_ids().unwrap_or_default();
    ids.into_iter()
        .rev()
        .filter(|id| id.starts_with(typed.as_ref()))
        .filter_map(|id| project.load_snap(&id).ok())
        .map(|snap| CompletionCandidate::new(snap.id).help(Some(snap.reason.into())))
        .collect()
}

/// Completes the names of known agents that are installed.
pub(super) fn agent_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Ok(dir) = std::env::current_dir() else { return Vec::new() };
    let typed = typed.to_string_lossy();
    let layers = Project::load_layers(None).unwrap_or_default();
    load_profiles(&layers)
        .unwrap_or_default()
        .into_iter()
        .filter(|(name, profile)| {
            name.starts_with(typed.as_ref())
                && crate::process::find_executable(&profile.program, &dir).is_ok()
        })
        .map(|(name, profile)| CompletionCandidate::new(name).help(Some(profile.about.into())))
        .collect()
}

/// Completes the names of the user's branches, without the branches of lanes.
pub(super) fn branch_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(project) = open_typed_project() else { return Vec::new() };
    let typed = typed.to_string_lossy();
    let refs = project.repo.refs_with_prefix("refs/heads/").unwrap_or_default();
    refs.iter()
        .filter_map(|(name, _)| name.strip_prefix("refs/heads/"))
        .filter(|name| name.starts_with(typed.as_ref()) && !project.is_managed_branch(name))
        .map(CompletionCandidate::new)
        .collect()
}

/// Opens the repository that the typed command line refers to: that of the shell's folder, or that of its
/// `-C` options.
fn open_typed_project() -> Option<Project> {
    let typed: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").collect();
    let typed_dirs = typed.windows(2).filter(|pair| pair[0] == "-C").map(|pair| PathBuf::from(&pair[1]));
    let dir = typed_dirs.fold(std::env::current_dir().ok()?, |dir, next| dir.join(next));
    Project::open(&dir, Listener::silent()).ok()
}
