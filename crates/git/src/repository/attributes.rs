//! Attribute files that can apply to a path, and matching of their patterns.

use std::collections::BTreeSet;
use std::path::PathBuf;

use gix::bstr::{BStr, ByteSlice};
use gix::glob::Pattern;
use gix::glob::pattern::Case;
use gix::glob::wildmatch::Mode;

use crate::{Repo, RepoPath};

/// File of the attributes that git reads for all users.
const SYSTEM_ATTRIBUTES: &str = "/etc/gitattributes";

/// Pattern of a line in an attribute file; `None` for a pattern that cannot be parsed here, which matches all
/// paths.
pub(crate) type AttributePattern = Option<Pattern>;

/// Returns the paths of the attribute files that belong to no tree: of the system, of the repository and of
/// the user.
pub(crate) fn attribute_files_outside_tree(repo: &Repo) -> Vec<PathBuf> {
    let user = repo.gix.config_snapshot().trusted_path("core.attributesFile").ok().flatten();
    // git resolves the path against its working directory, which is the top of a checkout.
    let user = user.map(|path| repo.command_dir().join(path));
    let user = user.or_else(|| {
        let config_home = std::env::var_os("XDG_CONFIG_HOME").filter(|v| !v.is_empty()).map(PathBuf::from);
        Some(config_home.or_else(|| Some(std::env::home_dir()?.join(".config")))?.join("git/attributes"))
    });
    let mut out = vec![PathBuf::from(SYSTEM_ATTRIBUTES), repo.common_dir().join("info/attributes")];
    out.extend(user);
    out
}

/// Returns the paths of `.gitattributes` files that can apply to `paths`.
pub(crate) fn attribute_paths_for<'p>(paths: impl Iterator<Item = &'p RepoPath>) -> BTreeSet<RepoPath> {
    let mut all = BTreeSet::from([RepoPath::new(".gitattributes")]);
    for path in paths {
        all.extend(path.parents().map(|up| up.join(b".gitattributes")));
    }
    all
}

/// Returns whether the pattern of any rule matches `path`, ignoring case.
pub(crate) fn any_rule_matches(rules: &[AttributePattern], path: &[u8]) -> bool {
    let name = path.rfind_byte(b'/').map(|at| at + 1);
    rules.iter().any(|rule| match rule {
        None => true,
        Some(pattern) => pattern.matches_repo_relative_path(
            BStr::new(path),
            name,
            Some(false),
            Case::Fold,
            Mode::NO_MATCH_SLASH_LITERAL,
        ),
    })
}
