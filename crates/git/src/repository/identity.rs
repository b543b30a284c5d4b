//! Author and committer of a new commit, determined in process where git would surely take the same;
//! otherwise git decides, which supports more sources.

use std::sync::OnceLock;

use gix::actor::{Signature, SignatureRef};
use gix::bstr::{BString, ByteSlice};
use jiff::tz::TimeZone;

use crate::{Error, Repo};

/// Characters that git strips from both ends of a name ("crud" in git's source).
const CRUD: &[u8] = b".,:;<>\"\\'";

/// Name and email address of a user, without a time.
struct Identity {
    name: BString,
    email: BString,
}

impl Identity {
    fn as_ref(&self) -> SignatureRef<'_> {
        SignatureRef { name: self.name.as_bstr(), email: self.email.as_bstr(), time: "" }
    }
}

impl Repo {
    /// Returns author and committer as `git commit-tree` would take them now. Returns `None` if only git can
    /// decide: no identity is configured, git would clean a name, or a date or encoding is of an unsupported
    /// kind.
    pub(crate) fn author_and_committer(&self) -> Option<(Signature, Signature)> {
        let (author, committer) =
            (configured_identity(&self.gix, "author")?, configured_identity(&self.gix, "committer")?);
        self.signatures_with_time(author.as_ref(), committer.as_ref())
    }

    /// Returns the committer as git would write it now in the worktree that was opened as `local`; `None` in the
    /// cases of [`Repo::author_and_committer`].
    pub(crate) fn committer(&self, local: &gix::Repository) -> Option<Signature> {
        let committer = configured_identity(local, "committer")?;
        self.signatures_with_time(committer.as_ref(), committer.as_ref()).map(|(_, committer)| committer)
    }

    /// Returns the author identity of the user as `Name <address>`; `None` if no identity is configured.
    pub fn user_identity(&self) -> Option<String> {
        let author = configured_identity(&self.gix, "author")?;
        Some(format!("{} <{}>", author.name, author.email))
    }

    /// Returns the committer identity of the user as `Name <address>`, as git determines it.
    ///
    /// # Errors
    /// Fails if git knows no identity.
    pub fn committer_identity(&self) -> Result<String, Error> {
        let text = self.git().args(["var", "GIT_COMMITTER_IDENT"]).run()?.trimmed_stdout();
        Ok(text.rsplit_once('>').map_or_else(|| text.clone(), |(identity, _)| format!("{identity}>")))
    }

    /// Returns whether git has a committer for new commits: one is configured, or git can derive one from the
    /// system.
    pub fn has_committer(&self) -> bool {
        configured_identity(&self.gix, "committer").is_some() || self.committer_identity().is_ok()
    }

    /// Returns author and committer with this name and address, and the times that the user's own signatures
    /// would have.
    pub(crate) fn signatures_with_name(&self, name: &str, email: &str) -> Option<(Signature, Signature)> {
        let identity = SignatureRef { name: name.into(), email: email.into(), time: "" };
        self.signatures_with_time(identity, identity)
    }

    fn signatures_with_time(
        &self,
        author: SignatureRef<'_>,
        committer: SignatureRef<'_>,
    ) -> Option<(Signature, Signature)> {
        let encoding = self.setting_text("i18n.commitEncoding");
        if encoding.is_some_and(|name| !name.eq_ignore_ascii_case("utf-8")) {
            return None;
        }
        let to_signature = |identity: SignatureRef<'_>, variable| {
            let is_verbatim = is_stored_unchanged(identity.name) && is_stored_unchanged(identity.email);
            let time = commit_time(variable)?;
            is_verbatim.then(|| Signature {
                name: identity.name.to_owned(),
                email: identity.email.to_owned(),
                time,
            })
        };
        Some((to_signature(author, "GIT_AUTHOR_DATE")?, to_signature(committer, "GIT_COMMITTER_DATE")?))
    }
}

/// Returns the name and address from the environment or the settings of `local` for a role, `author` or
/// `committer`. gix has the same lookup, but also determines the time, for which it first reads all names of time
/// zones.
fn configured_identity(local: &gix::Repository, role: &str) -> Option<Identity> {
    let settings = local.config_snapshot();
    let find_value = |key: &str| {
        let variable = format!("GIT_{role}_{key}").to_uppercase();
        let from_env = std::env::var_os(variable).map(|text| BString::from(text.into_encoded_bytes()));
        let from_setting = |section: &str| settings.string(format!("{section}.{key}").as_str());
        let found = from_env.or_else(|| from_setting(role)).or_else(|| from_setting("user"));
        found.filter(|text| !text.is_empty())
    };
    Some(Identity { name: find_value("name")?, email: find_value("email")? })
}

/// Returns the time in the environment variable, or the current time if it is unset.
fn commit_time(variable: &str) -> Option<gix::date::Time> {
    match std::env::var_os(variable) {
        None => Some(clamp_to_epoch(local_now().unwrap_or_else(gix::date::Time::now_local_or_utc))),
        Some(text) => gix::date::parse(text.to_str()?, None).ok(),
    }
}

/// Clamps a commit time to 1970 or later: git has no earlier times, and `git fsck` reports such a commit as
/// broken.
fn clamp_to_epoch(now: gix::date::Time) -> gix::date::Time {
    gix::date::Time { seconds: now.seconds.max(0), ..now }
}

/// Returns the current time in the time zone of the machine; `None` if `TZ` names another zone, or no file
/// defines the zone.
fn local_now() -> Option<gix::date::Time> {
    static LOCAL_ZONE: OnceLock<Option<TimeZone>> = OnceLock::new();
    if std::env::var_os("TZ").is_some() {
        return None;
    }
    let read_zone = || TimeZone::tzif("", &std::fs::read("/etc/localtime").ok()?).ok();
    let zone = LOCAL_ZONE.get_or_init(read_zone).as_ref()?;
    let now = jiff::Timestamp::now();
    Some(gix::date::Time { seconds: now.as_second(), offset: zone.to_offset(now).seconds() })
}

/// Returns whether git would store a name or address unchanged.
fn is_stored_unchanged(text: &[u8]) -> bool {
    let is_crud = |byte: Option<&u8>| byte.is_none_or(|b| *b <= b' ' || CRUD.contains(b));
    let is_forbidden = |b: &u8| b"<>\n\0".contains(b);
    !is_crud(text.first())
        && !is_crud(text.last())
        && !text.iter().any(is_forbidden)
        && std::str::from_utf8(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{clamp_to_epoch, is_stored_unchanged, local_now};

    #[test]
    fn local_zone_matches_date_command() {
        let ours = local_now();
        let theirs = std::process::Command::new("date").arg("+%z").output().unwrap().stdout;
        let theirs: i32 = String::from_utf8(theirs).unwrap().trim().parse().unwrap();
        let seconds = theirs / 100 * 3600 + theirs % 100 * 60;
        assert!(ours.is_none_or(|time| time.offset == seconds), "{ours:?} and {seconds}");
    }

    #[test]
    fn clamps_times_before_1970() {
        let clamped = |seconds| clamp_to_epoch(gix::date::Time { seconds, offset: -3600 }).seconds;
        assert_eq!([clamped(-86_400), clamped(0), clamped(1_700_000_000)], [0, 0, 1_700_000_000]);
    }

    #[test]
    fn leaves_names_with_crud_to_git() {
        for name in ["Ann Author", "a@b.c", "Øre", "J. R. Doe", "O'Neil"] {
            assert!(is_stored_unchanged(name.as_bytes()), "{name}");
        }
        for name in ["", " ", "Ann ", "Ann.", "\"Ann\"", "A<b", "A\nB", "'x"] {
            assert!(!is_stored_unchanged(name.as_bytes()), "{name}");
        }
        assert!(!is_stored_unchanged(b"\xff"));
    }
}
