//! Repository on a forge, by the address of a remote, and the program that speaks to its forge.

use proq_base::config::choices::ForgeChoice;
use proq_store::records::pull_request::ForgeProgram;

use crate::lane::Project;

/// Repository on a forge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgeRepository {
    /// Host name, with the port of a web address.
    pub host: String,
    /// Path of the repository below the host, such as `acme/shop`.
    pub path: String,
}

impl ForgeRepository {
    /// Parses the address of a remote; none for a local path.
    #[must_use]
    pub fn from_url(url: &str) -> Option<ForgeRepository> {
        let (host, path) = match url.split_once("://") {
            Some((scheme @ ("http" | "https" | "ssh" | "git" | "git+ssh"), rest)) => {
                let (authority, path) = rest.split_once('/')?;
                let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
                let is_web = scheme.starts_with("http");
                (if is_web { host } else { host.split(':').next().unwrap_or(host) }, path)
            }
            Some(_) => return None,
            // `git@host:path`, unless a slash comes first, as in a local path.
            None => {
                let (authority, path) = url.split_once(':').filter(|(host, _)| !host.contains('/'))?;
                (authority.rsplit_once('@').map_or(authority, |(_, host)| host), path)
            }
        };
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let is_repository = !host.is_empty() && path.contains('/');
        is_repository.then(|| ForgeRepository { host: host.to_lowercase(), path: path.to_owned() })
    }

    /// Returns the repository of a remote; none if its address is that of no forge.
    #[must_use]
    pub fn of_remote(project: &Project, remote: &str) -> Option<ForgeRepository> {
        ForgeRepository::from_url(&project.repo.remote_url(remote)?)
    }

    /// Returns the owner of the repository: a user, an organization, or a group.
    #[must_use]
    pub fn owner(&self) -> &str {
        self.path.rsplit_once('/').map_or(self.path.as_str(), |(owner, _)| owner)
    }

    /// Returns whether `url` is the web address of issue `number` of the repository. The host may have another
    /// port there, and forges ignore the case of names.
    pub(super) fn has_issue_address(&self, url: &str, number: u64) -> bool {
        let without_port = |host: &str| host.split(':').next().unwrap_or(host).to_lowercase();
        let address = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let Some((host, path)) = address.and_then(|address| address.split_once('/')) else { return false };
        let pages =
            [format!("issues/{number}"), format!("-/issues/{number}"), format!("-/work_items/{number}")];
        without_port(host) == without_port(&self.host)
            && pages.iter().any(|page| path.eq_ignore_ascii_case(&format!("{}/{page}", self.path)))
    }

    /// Returns the repository as the program's option `--repo` takes it.
    #[must_use]
    pub fn argument(&self, program: ForgeProgram) -> String {
        match program {
            ForgeProgram::Gh => format!("{}/{}", self.host, self.path),
            ForgeProgram::Glab => format!("https://{}/{}", self.host, self.path),
        }
    }
}

/// Returns the program that speaks to the forge of a repository: that of `merge.pr_command`, or else that of
/// its host; none for an unknown host.
#[must_use]
pub fn choose_program(project: &Project, repository: Option<&ForgeRepository>) -> Option<ForgeProgram> {
    let host = repository.map(|repository| repository.host.as_str()).unwrap_or_default();
    match project.settings.forge_choice {
        ForgeChoice::Gh => Some(ForgeProgram::Gh),
        ForgeChoice::Glab => Some(ForgeProgram::Glab),
        ForgeChoice::Auto if host.contains("github") => Some(ForgeProgram::Gh),
        ForgeChoice::Auto if host.contains("gitlab") => Some(ForgeProgram::Glab),
        ForgeChoice::Auto => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_addresses_of_remotes() {
        let parse = |url: &str| ForgeRepository::from_url(url).map(|found| (found.host, found.path));
        let found = |host: &str, path: &str| Some((host.to_owned(), path.to_owned()));
        for url in [
            "git@github.com:acme/shop.git",
            "https://github.com/acme/shop",
            "https://user:token@GitHub.com/acme/shop.git/",
            "ssh://git@github.com:22/acme/shop.git",
        ] {
            assert_eq!(parse(url), found("github.com", "acme/shop"), "{url}");
        }
        assert_eq!(parse("https://git.x.org:8443/a/b/c.git"), found("git.x.org:8443", "a/b/c"));
        for url in ["/srv/shop.git", "../shop:x/y", "file:///srv/acme/shop", "github.com", "C:shop"] {
            assert_eq!(parse(url), None, "{url}");
        }
        let nested = ForgeRepository::from_url("git@gitlab.com:a/b/c.git").unwrap();
        assert_eq!((nested.owner(), nested.argument(ForgeProgram::Gh).as_str()), ("a/b", "gitlab.com/a/b/c"));
        assert_eq!(nested.argument(ForgeProgram::Glab), "https://gitlab.com/a/b/c");
    }

    #[test]
    fn recognizes_addresses_of_own_issues_only() {
        let repository = ForgeRepository::from_url("ssh://git@git.x.org:2222/acme/shop.git").unwrap();
        for (url, is_own) in [
            ("https://git.x.org/acme/shop/issues/5", true),
            ("https://git.x.org:8443/Acme/Shop/-/issues/5", true),
            ("http://git.x.org/acme/shop/-/work_items/5", true),
            ("https://git.x.org/acme/shop/issues/55", false),
            ("https://git.x.org/acme/shop/pull/5", false),
            ("https://git.x.org/acme/shop/more/-/issues/5", false),
            ("https://git.x.org/other/shop/issues/5", false),
            ("https://git.x.org.evil/acme/shop/issues/5", false),
            ("https://git.x.org@evil/acme/shop/issues/5", false),
            ("git.x.org/acme/shop/issues/5", false),
        ] {
            assert_eq!(repository.has_issue_address(url, 5), is_own, "{url}");
        }
    }
}
