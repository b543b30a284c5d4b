//! Terminal notifications of an event: bell, title, and escape sequences for notices. A process writes them
//! only to its own terminal.

use std::path::Path;

use proq_base::config::choices::DesktopNotifier;
use proq_base::config::settings::NotifySettings;

use super::log::Event;
use super::notify::{has_desktop_notifier, notice_title};

/// Maximum length of a message in an escape sequence, in characters.
const MAX_MESSAGE_CHARS: usize = 200;

/// Returns the sequences to write to the terminal of this process at an event; empty when none are enabled.
pub fn terminal_sequences(notify: &NotifySettings, event: &Event, dir: &Path) -> String {
    if !notify.notifies_about(&event.name.to_text(), event.state.as_deref()) {
        return String::new();
    }
    let desktop = match notify.desktop {
        DesktopNotifier::Auto if has_desktop_notifier(notify, dir) => DesktopNotifier::Off,
        DesktopNotifier::Auto => supported_notice(&|name| std::env::var(name).unwrap_or_default()),
        other => other,
    };
    let inside_tmux = std::env::var_os("TMUX").is_some();
    build_sequences(notify, desktop, event, inside_tmux)
}

/// Returns the escape sequences for title and notice at an event; empty when none are enabled. `inside_tmux`
/// wraps the notice for tmux.
fn build_sequences(
    notify: &NotifySettings,
    desktop: DesktopNotifier,
    event: &Event,
    inside_tmux: bool,
) -> String {
    let (title, text) = (strip_controls(&notice_title(event)), strip_controls(&event.message));
    let mut out = String::new();
    if notify.title {
        out.push_str(&format!("\x1b]2;{text}\x07"));
    }
    let notice = match desktop {
        DesktopNotifier::Osc9 => format!("\x1b]9;{text}\x07"),
        DesktopNotifier::Osc777 => format!("\x1b]777;notify;{};{text}\x07", title.replace(';', ",")),
        DesktopNotifier::Off | DesktopNotifier::Auto | DesktopNotifier::NotifySend => String::new(),
    };
    match (notice.as_str(), inside_tmux) {
        ("", _) => {}
        // tmux only forwards wrapped sequences, and only with its option allow-passthrough.
        (notice, true) => out.push_str(&format!("\x1bPtmux;{}\x1b\\", notice.replace('\x1b', "\x1b\x1b"))),
        (notice, false) => out.push_str(notice),
    }
    if notify.bell {
        out.push('\x07');
    }
    out
}

/// Returns the notice sequence that the terminal is known to support.
fn supported_notice(env: &dyn Fn(&str) -> String) -> DesktopNotifier {
    match (env("TERM_PROGRAM").as_str(), env("TERM").as_str()) {
        ("iTerm.app" | "WezTerm" | "ghostty" | "WarpTerminal", _) => DesktopNotifier::Osc9,
        (_, term) if term.starts_with("foot") || term.starts_with("rxvt") => DesktopNotifier::Osc777,
        (_, "xterm-kitty" | "xterm-ghostty") => DesktopNotifier::Osc9,
        _ => DesktopNotifier::Off,
    }
}

/// Removes control characters, so that the text can neither end nor start a sequence.
fn strip_controls(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::log::EventName;

    fn all_enabled() -> NotifySettings {
        NotifySettings {
            bell: true,
            title: true,
            events: vec!["run.ended".to_owned()],
            ..NotifySettings::default()
        }
    }

    #[test]
    fn sequences_match_the_terminal() {
        let mut event = Event::new(EventName::RunEnded, "");
        // A log may contain characters that today's program never writes to an event.
        event.message = "lane 'a;b': \x1b]0;evil\x07done".to_owned();
        event.lane = Some("a;b".to_owned());
        let output = |desktop, tmux| build_sequences(&all_enabled(), desktop, &event, tmux);
        let title = "\x1b]2;lane 'a;b': ]0;evildone\x07";
        assert_eq!(output(DesktopNotifier::Off, false), format!("{title}\x07"));
        assert_eq!(
            output(DesktopNotifier::Osc9, false),
            format!("{title}\x1b]9;lane 'a;b': ]0;evildone\x07\x07")
        );
        assert_eq!(
            output(DesktopNotifier::Osc777, false),
            format!("{title}\x1b]777;notify;git proq: a,b;lane 'a;b': ]0;evildone\x07\x07")
        );
        assert_eq!(
            output(DesktopNotifier::Osc9, true),
            format!("{title}\x1bPtmux;\x1b\x1b]9;lane 'a;b': ]0;evildone\x07\x1b\\\x07")
        );
    }

    #[test]
    fn only_wanted_events_give_sequences() {
        let quiet = Event::new(EventName::RunStarted, "started");
        assert_eq!(terminal_sequences(&all_enabled(), &quiet, Path::new("/")), "");
        let loud = Event::new(EventName::RunEnded, "ended");
        assert!(terminal_sequences(&all_enabled(), &loud, Path::new("/")).ends_with('\x07'));
        assert_eq!(
            terminal_sequences(
                &NotifySettings { bell: false, title: false, ..all_enabled() },
                &loud,
                Path::new("/")
            ),
            ""
        );
    }

    #[test]
    fn notice_kind_follows_terminal() {
        let detect = |program: &str, term: &str| {
            supported_notice(&|name| if name == "TERM" { term.to_owned() } else { program.to_owned() })
        };
        assert_eq!(detect("WezTerm", "xterm-256color"), DesktopNotifier::Osc9);
        assert_eq!(detect("", "foot-extra"), DesktopNotifier::Osc777);
        assert_eq!(detect("", "xterm-256color"), DesktopNotifier::Off);
    }
}
