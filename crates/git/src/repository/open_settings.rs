//! Settings with which gitoxide opens a repository: exactly those that git would use.

use std::path::Path;

use crate::program::injected_config;

/// Settings section of gitoxide itself, which git does not read. gitoxide also takes it from files and from
/// git variables that git is started without: `GIT_NAMESPACE`, `GIT_SHALLOW_FILE`, `GIT_INDEX_FILE`.
const LIBRARY_SECTION: &str = "gitoxide";

/// Setting that gives gitoxide git's default location of replacement objects. It applies although git-proq
/// removes gitoxide's own section.
const REPLACE_REFS_OVERRIDE: &str = "gitoxide.objects.replaceRefBase=refs/replace/";

/// Returns options with which gitoxide opens a repository as git does without `GIT_NO_REPLACE_OBJECTS` and
/// `GIT_REPLACE_REF_BASE`.
pub(crate) fn git_open_options(options: gix::open::Options) -> gix::open::Options {
    let mut permissions = gix::open::Permissions::all();
    permissions.env.objects = gix::sec::Permission::Deny;
    options.permissions(permissions).config_overrides([REPLACE_REFS_OVERRIDE])
}

/// Opens the repository whose worktree is at `dir`, with the settings that git would use; none if gitoxide
/// cannot open it.
pub fn open(dir: &Path) -> Option<gix::Repository> {
    let mut gix = gix::open_opts(dir, git_open_options(gix::open::Options::default())).ok()?;
    apply_git_settings(&mut gix);
    Some(gix)
}

/// Returns whether a repository of format 0 has `extensions.relativeWorktrees`, which keeps gitoxide from opening
/// it.
pub(crate) fn has_relative_worktrees_in_format_0(common_dir: &Path) -> bool {
    let config =
        gix::config::File::from_path_no_includes(common_dir.join("config"), gix::config::Source::Local);
    let (mut format, mut is_set) = (String::new(), false);
    for section in config.iter().flat_map(gix::config::File::sections) {
        for (name, value) in section.body() {
            let section_name = section.header().name().to_string().to_lowercase();
            match (section_name.as_str(), name.to_lowercase().as_str()) {
                ("core", "repositoryformatversion") => format = value.to_string(),
                ("extensions", "relativeworktrees") => is_set = true,
                _ => {}
            }
        }
    }
    is_set && (format.is_empty() || format == "0")
}

/// Makes gitoxide use exactly git's settings: adds those of git's command line, and removes gitoxide's own
/// section.
pub(crate) fn apply_git_settings(gix: &mut gix::Repository) {
    let mut snapshot = gix.config_snapshot_mut();
    let sections = snapshot.sections_by_name(LIBRARY_SECTION).into_iter().flatten();
    let foreign_sections = sections.filter(|section| section.meta().source != gix::config::Source::Api);
    let ids: Vec<_> = foreign_sections.map(|section| section.id()).collect();
    for id in &ids {
        let _ = snapshot.remove_section_by_id(*id);
    }
    if ids.is_empty() {
        snapshot.forget();
    } else {
        // Fewer settings than before cannot introduce an invalid one.
        let _ = snapshot.commit();
    }
    add_from_command_line(gix);
}

/// Adds the settings of git's own command line (`git -c key=value proq`), which override all files. gitoxide
/// does not read them.
fn add_from_command_line(gix: &mut gix::Repository) {
    let Some(Ok(text)) = injected_config::user_config_parameters().map(std::ffi::OsString::into_string)
    else {
        return;
    };
    for setting in parse_config_parameters(&text) {
        let mut snapshot = gix.config_snapshot_mut();
        // Each setting is added separately, so that one that the library cannot read does not affect the
        // others.
        if snapshot.append_config([setting.as_str()], gix::config::Source::Cli).is_err() {
            snapshot.forget();
        }
    }
}

/// Parses `'key'='value' 'key=value' 'key'=`, each quoted as for a shell, into `key=value` (`key` alone is
/// true).
fn parse_config_parameters(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut current = String::new();
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => out.push(std::mem::take(&mut current)),
            '\\' if !quoted => current.extend(chars.next()),
            // `'key'=` without a value is a switch that is on.
            '=' if !quoted && chars.peek() != Some(&'\'') => {}
            c => current.push(c),
        }
    }
    out.push(current);
    out.retain(|word| !word.is_empty());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_command_line_settings_in_every_form() {
        let text = "'proq.a=1' 'proq.b'='it'\\''s  x=y' 'proq.c'= 'proq.d'='' 'proq.e'='!'";
        assert_eq!(
            parse_config_parameters(text),
            ["proq.a=1", "proq.b=it's  x=y", "proq.c", "proq.d=", "proq.e=!"]
        );
        assert_eq!(parse_config_parameters(""), [""; 0]);
    }
}
