//! Owns telling people of events where no terminal is needed: notices of the desktop, and sounds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Event;
use super::dispatch::Sink;
use super::hook::{self, About, Hook};
use crate::config::{Desktop, Notify};
use crate::process;
use crate::store::Store;

/// How long showing a notice or playing a sound may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Programs that play a file of sound, with what they are told beside it.
const PLAYERS: &[(&str, &[&str])] = &[
    ("paplay", &[]),
    ("pw-play", &[]),
    ("afplay", &[]),
    ("ffplay", &["-nodisp", "-autoexit", "-loglevel", "quiet"]),
    ("aplay", &["-q"]),
];

/// What shows a notice on other desktops.
const NOTIFY_SEND: &str = "notify-send";

/// What shows a notice on macOS: text and title are its arguments, never part of the script.
const SCRIPT: &str =
    "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";

/// The desktop and the loudspeaker.
pub(super) struct Local {
    /// What is wanted.
    pub(super) notify: Notify,
    /// Where their programs run.
    pub(super) home: PathBuf,
}

impl Local {
    /// Whether there is anything to do for it.
    pub(super) fn is_on(notify: &Notify) -> bool {
        notify.sound.is_some() || matches!(notify.desktop, Desktop::Auto | Desktop::NotifySend)
    }

    /// What shows an event.
    fn notice(&self, event: &Event) -> Option<Hook> {
        let (title, text) = (title(event), event.message.clone());
        if self.notify.desktop != Desktop::NotifySend && !finds_desktop(&self.notify, &self.home) {
            return None;
        }
        let (name, program) = self.find_notifier()?;
        if name == NOTIFY_SEND {
            // What looks like markup is text.
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            return Some(Hook::Program(program, vec!["--".to_owned(), title, text]));
        }
        Some(Hook::Program(program, vec!["-e".to_owned(), SCRIPT.to_owned(), title, text]))
    }

    /// The name and the path of the program that shows notices here.
    fn find_notifier(&self) -> Option<(&'static str, PathBuf)> {
        let found = |name| Some((name, process::find(name, &self.home).ok()?));
        [NOTIFY_SEND, "osascript"].into_iter().find_map(found)
    }

    /// What makes the sound.
    fn sound(&self) -> Option<Hook> {
        let sound = self.notify.sound.as_ref()?;
        let file = match (sound.strip_prefix("~/"), std::env::home_dir()) {
            (Some(below), Some(home)) => home.join(below),
            _ => PathBuf::from(sound),
        };
        if !file.is_file() {
            return Some(Hook::Line(sound.into()));
        }
        let player = |(name, args): &(&str, &[&str])| {
            let mut args: Vec<String> = args.iter().map(ToString::to_string).collect();
            args.push(file.display().to_string());
            Some(Hook::Program(process::find(name, &self.home).ok()?, args))
        };
        PLAYERS.iter().find_map(player)
    }
}

impl Sink for Local {
    fn name(&self) -> &'static str {
        "notify"
    }

    fn take(&self, store: &Store, event: &Event) {
        if !self.notify.wants(&event.name.text(), event.state.as_deref()) {
            return;
        }
        let at = format!("{} {}", event.n, event.name.text());
        let about = About::event(store, event, &self.home);
        for (what, found) in [("desktop", self.notice(event)), ("sound", self.sound())] {
            let Some(program) = found else {
                let asked = if what == "sound" {
                    self.notify.sound.is_some()
                } else {
                    self.notify.desktop == Desktop::NotifySend
                };
                if asked {
                    hook::log(store, &at, what, "no program for it was found", "");
                }
                continue;
            };
            let ran = hook::run(&program, &about, LIMIT, &|| false);
            hook::log(store, &at, what, &ran.end(), ran.words());
        }
    }
}

/// The settings that ask for a notice or a sound for which no program is installed, each with what is looked for.
pub(crate) fn without_program(notify: &Notify, home: &Path) -> Vec<(&'static str, String)> {
    let local = Local { notify: notify.clone(), home: home.to_owned() };
    let mut out = Vec::new();
    if notify.desktop == Desktop::NotifySend && local.find_notifier().is_none() {
        out.push(("notify.desktop", "notify-send or osascript".to_owned()));
    }
    if notify.sound.is_some() && local.sound().is_none() {
        let players: Vec<&str> = PLAYERS.iter().map(|(name, _)| *name).collect();
        out.push(("notify.sound", format!("one of {}", players.join(", "))));
    }
    out
}

/// The title of a notice.
pub(super) fn title(event: &Event) -> String {
    event.lane.as_ref().map_or_else(|| "git proq".to_owned(), |lane| format!("git proq: {lane}"))
}

/// Whether `auto` means a program that shows notices, rather than the terminal: there is one, and a desktop to show them on.
pub(super) fn finds_desktop(notify: &Notify, dir: &Path) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let desktop = ["DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"].into_iter().any(set);
    notify.desktop == Desktop::Auto
        && (desktop && process::find(NOTIFY_SEND, dir).is_ok() || process::find("osascript", dir).is_ok())
}
