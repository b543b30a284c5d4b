//! Owns telling another machine of events: a POST of JSON, tried again when it fails. The only file that names the HTTP
//! library.

use std::time::Duration;

use serde_json::{Value, json};

use super::Event;
use super::dispatch::Sink;
use super::hook::{self, as_json};
use crate::config::{Notify, masked};
use crate::store::Store;

/// How long one try may take.
const LIMIT: Duration = Duration::from_secs(10);

/// How long to wait before the tries that follow the first one.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// The event.
    Event,
    /// `{"text": …}`, which Slack and what imitates it understand.
    Text,
}

/// An address that is told of events.
pub(super) struct Post {
    notify: Notify,
    url: String,
    body: Body,
    /// The repository's folder, by name: one address may be told by many.
    repository: String,
}

impl Post {
    /// Those that are set.
    pub(super) fn all(notify: &Notify, repository: &str) -> Vec<Post> {
        let addresses = [(&notify.webhook, Body::Event), (&notify.slack, Body::Text)];
        let post = |(url, body): (&Option<String>, Body)| {
            let (url, repository) = (url.clone()?, repository.to_owned());
            Some(Post { notify: notify.clone(), url, body, repository })
        };
        addresses.into_iter().filter_map(post).collect()
    }

    fn text(&self, event: &Event) -> Value {
        match self.body {
            Body::Event => {
                let mut json = as_json(event);
                json["repository"] = self.repository.as_str().into();
                json
            }
            Body::Text => {
                let text = event.message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                json!({ "text": format!("{}: {text}", self.repository) })
            }
        }
    }
}

impl Sink for Post {
    fn name(&self) -> &'static str {
        match self.body {
            Body::Event => "webhook",
            Body::Text => "slack",
        }
    }

    fn take(&self, store: &Store, event: &Event) {
        if !self.notify.wants(&event.name.text(), event.state.as_deref()) {
            return;
        }
        let text = self.text(event).to_string();
        let mut pauses = PAUSES.iter();
        let mut tries = 1;
        let came_of_it = loop {
            match send(&self.url, &text) {
                Ok(()) => break "delivered".to_owned(),
                Err(Failed { why, again: true }) => {
                    let Some(pause) = pauses.next() else { break format!("given up: {why}") };
                    std::thread::sleep(*pause);
                    tries += 1;
                }
                Err(Failed { why, .. }) => break format!("given up: {why}"),
            }
        };
        let tries = if tries == 1 { String::new() } else { format!(" (try {tries})") };
        let at = format!("{} {}", event.n, event.name.text());
        let what = format!("{} {}", self.name(), masked(&self.url));
        hook::log(store, &at, &what, &format!("{came_of_it}{tries}"), "");
    }
}

/// Why something was not delivered, and whether another try may help.
struct Failed {
    why: String,
    again: bool,
}

fn send(url: &str, text: &str) -> Result<(), Failed> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(LIMIT))
        .http_status_as_error(false)
        .max_redirects(0)
        .user_agent(concat!("git-proq/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let sent = agent.post(url).header("Content-Type", "application/json").send(text);
    // The address is a secret, and the library's own words may hold it.
    let why = match sent {
        Ok(answer) if answer.status().is_success() => return Ok(()),
        Ok(answer) => {
            let code = answer.status().as_u16();
            return Err(Failed {
                why: format!("status {code}"),
                again: code >= 500 || [408, 429].contains(&code),
            });
        }
        Err(ureq::Error::Timeout(_)) => format!("no answer within {} s", LIMIT.as_secs()),
        Err(ureq::Error::HostNotFound) => "there is no such host".to_owned(),
        Err(ureq::Error::Io(e)) => e.to_string(),
        Err(ureq::Error::Rustls(e)) => format!("no secure connection: {e}"),
        Err(_) => "it could not be sent".to_owned(),
    };
    Err(Failed { why, again: true })
}
