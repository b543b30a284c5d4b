//! Owns what makes a terminal tell of an event: bell, title, and the sequences for notices. Who writes it there has that
//! terminal; it is never somebody else's.

use std::path::Path;

use super::Event;
use super::notify::{finds_desktop, title};
use crate::config::{Desktop, Notify};

/// So much of a message goes to a terminal.
const LENGTH: usize = 200;

/// What to write to the terminal of this process at an event; empty when nothing is wanted.
pub(crate) fn signal(notify: &Notify, event: &Event, dir: &Path) -> String {
    if !notify.wants(&event.name.text(), event.state.as_deref()) {
        return String::new();
    }
    let desktop = match notify.desktop {
        Desktop::Auto if finds_desktop(notify, dir) => Desktop::Off,
        Desktop::Auto => understood(&|name| std::env::var(name).unwrap_or_default()),
        other => other,
    };
    let inside_tmux = std::env::var_os("TMUX").is_some();
    sequences(notify, desktop, event, inside_tmux)
}

fn sequences(notify: &Notify, desktop: Desktop, event: &Event, inside_tmux: bool) -> String {
    let (title, text) = (plain(&title(event)), plain(&event.message));
    let mut out = String::new();
    if notify.title {
        out.push_str(&format!("\x1b]2;{text}\x07"));
    }
    let notice = match desktop {
        Desktop::Osc9 => format!("\x1b]9;{text}\x07"),
        Desktop::Osc777 => format!("\x1b]777;notify;{};{text}\x07", title.replace(';', ",")),
        Desktop::Off | Desktop::Auto | Desktop::NotifySend => String::new(),
    };
    match (notice.as_str(), inside_tmux) {
        ("", _) => {}
        // It hands on only what is wrapped, and only with its option allow-passthrough.
        (notice, true) => out.push_str(&format!("\x1bPtmux;{}\x1b\\", notice.replace('\x1b', "\x1b\x1b"))),
        (notice, false) => out.push_str(notice),
    }
    if notify.bell {
        out.push('\x07');
    }
    out
}

/// The sequence that a terminal is known to understand.
fn understood(env: &dyn Fn(&str) -> String) -> Desktop {
    match (env("TERM_PROGRAM").as_str(), env("TERM").as_str()) {
        ("iTerm.app" | "WezTerm" | "ghostty" | "WarpTerminal", _) => Desktop::Osc9,
        (_, term) if term.starts_with("foot") || term.starts_with("rxvt") => Desktop::Osc777,
        (_, "xterm-kitty" | "xterm-ghostty") => Desktop::Osc9,
        _ => Desktop::Off,
    }
}

/// Text that ends no sequence and begins none.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Name;

    fn all() -> Notify {
        Notify { bell: true, title: true, events: vec!["run.ended".to_owned()], ..Notify::default() }
    }

    #[test]
    fn a_terminal_is_told_as_it_understands_it() {
        let mut event = Event::now(Name::RunEnded, "");
        // A log may hold what no event of today's program does.
        event.message = "lane 'a;b': \x1b]0;evil\x07done".to_owned();
        event.lane = Some("a;b".to_owned());
        let said = |desktop, tmux| sequences(&all(), desktop, &event, tmux);
        let title = "\x1b]2;lane 'a;b': ]0;evildone\x07";
        assert_eq!(said(Desktop::Off, false), format!("{title}\x07"));
        assert_eq!(said(Desktop::Osc9, false), format!("{title}\x1b]9;lane 'a;b': ]0;evildone\x07\x07"));
        assert_eq!(
            said(Desktop::Osc777, false),
            format!("{title}\x1b]777;notify;git proq: a,b;lane 'a;b': ]0;evildone\x07\x07")
        );
        assert_eq!(
            said(Desktop::Osc9, true),
            format!("{title}\x1bPtmux;\x1b\x1b]9;lane 'a;b': ]0;evildone\x07\x1b\\\x07")
        );
    }

    #[test]
    fn only_events_that_are_wanted_are_told() {
        let quiet = Event::now(Name::RunStarted, "started");
        assert_eq!(signal(&all(), &quiet, Path::new("/")), "");
        let loud = Event::now(Name::RunEnded, "ended");
        assert!(signal(&all(), &loud, Path::new("/")).ends_with('\x07'));
        assert_eq!(signal(&Notify { bell: false, title: false, ..all() }, &loud, Path::new("/")), "");
    }

    #[test]
    fn the_sequence_goes_by_the_terminal() {
        let by = |program: &str, term: &str| {
            understood(&|name| if name == "TERM" { term.to_owned() } else { program.to_owned() })
        };
        assert_eq!(by("WezTerm", "xterm-256color"), Desktop::Osc9);
        assert_eq!(by("", "foot-extra"), Desktop::Osc777);
        assert_eq!(by("", "xterm-256color"), Desktop::Off);
    }
}
