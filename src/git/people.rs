//! Owns whose name a new commit carries, where that is plain to read; else git decides, which knows more ways.

use gix::actor::{Signature, SignatureRef};

use super::Repo;

/// What git strips from both ends of a name.
const CRUD: &[u8] = b".,:;<>\"\\'";

impl Repo {
    /// Author and committer, as `git commit-tree` would take them now. None where only git can tell: nobody is
    /// configured, a name would have to be cleaned, a date or an encoding is of a kind of its own.
    pub(super) fn people(&self) -> Option<(Signature, Signature)> {
        let (author, committer) = (self.gix.author()?.ok()?, self.gix.committer()?.ok()?);
        self.stamp(author, committer)
    }

    /// The user, as an author is written: `Name <address>`. None when nobody is configured.
    pub(crate) fn user(&self) -> Option<String> {
        let author = self.gix.author()?.ok()?;
        Some(format!("{} <{}>", author.name, author.email))
    }

    /// Both with this name and address, and the time that the user's own would have.
    pub(super) fn people_named(&self, name: &str, email: &str) -> Option<(Signature, Signature)> {
        let named = SignatureRef { name: name.into(), email: email.into(), time: "" };
        self.stamp(named, named)
    }

    fn stamp(&self, author: SignatureRef<'_>, committer: SignatureRef<'_>) -> Option<(Signature, Signature)> {
        let encoding = self.setting_text("i18n.commitEncoding");
        if encoding.is_some_and(|name| !name.eq_ignore_ascii_case("utf-8")) {
            return None;
        }
        let sign = |who: SignatureRef<'_>, variable| {
            let plain = is_plain(who.name) && is_plain(who.email);
            let time = time(variable)?;
            plain.then(|| Signature { name: who.name.to_owned(), email: who.email.to_owned(), time })
        };
        Some((sign(author, "GIT_AUTHOR_DATE")?, sign(committer, "GIT_COMMITTER_DATE")?))
    }
}

/// Now, or what the variable says.
fn time(variable: &str) -> Option<gix::date::Time> {
    match std::env::var_os(variable) {
        None => Some(gix::date::Time::now_local_or_utc()),
        Some(text) => gix::date::parse(text.to_str()?, None).ok(),
    }
}

/// Whether git would take a name as it is.
fn is_plain(text: &[u8]) -> bool {
    let crud = |byte: Option<&u8>| byte.is_none_or(|b| *b <= b' ' || CRUD.contains(b));
    let bad = |b: &u8| b"<>\n\0".contains(b);
    !crud(text.first()) && !crud(text.last()) && !text.iter().any(bad) && std::str::from_utf8(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn names_that_git_would_clean_are_left_to_git() {
        for name in ["Ann Author", "a@b.c", "Øre", "J. R. Doe", "O'Neil"] {
            assert!(is_plain(name.as_bytes()), "{name}");
        }
        for name in ["", " ", "Ann ", "Ann.", "\"Ann\"", "A<b", "A\nB", "'x"] {
            assert!(!is_plain(name.as_bytes()), "{name}");
        }
        assert!(!is_plain(b"\xff"));
    }
}
