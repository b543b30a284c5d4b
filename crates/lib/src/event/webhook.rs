//! Webhook delivery of events: a POST of JSON, retried when it fails. Only this file uses the HTTP library.

use std::time::Duration;

use proq_base::config::settings::NotifySettings;
use proq_base::config::value_format::mask_url;
use proq_store::Store;
use serde_json::{Value, json};

use super::hook;
use super::hook::event_json;
use super::log::Event;
use super::sink::Sink;

/// Timeout of one attempt.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Delays before the attempts that follow the first one.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// Format of the request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PayloadFormat {
    /// JSON of the event.
    Event,
    /// `{"text": …}`, for Slack and compatible services.
    Text,
}

/// Sink that posts events to an address.
pub(super) struct WebhookSink {
    notify: NotifySettings,
    url: String,
    /// Format of the request body, by the kind of service.
    payload_format: PayloadFormat,
    /// Name of the repository's folder, because one address may receive events of many repositories.
    repository: String,
}

impl WebhookSink {
    /// Returns the webhooks in the settings.
    pub(super) fn from_settings(notify: &NotifySettings, repository: &str) -> Vec<WebhookSink> {
        let addresses = [(&notify.webhook, PayloadFormat::Event), (&notify.slack, PayloadFormat::Text)];
        let post = |(url, body): (&Option<String>, PayloadFormat)| {
            let (url, repository) = (url.clone()?, repository.to_owned());
            Some(WebhookSink { notify: notify.clone(), url, payload_format: body, repository })
        };
        addresses.into_iter().filter_map(post).collect()
    }

    /// Returns the JSON of the request body for an event.
    fn payload(&self, event: &Event) -> Value {
        match self.payload_format {
            PayloadFormat::Event => {
                let mut json = event_json(event);
                json["repository"] = self.repository.as_str().into();
                json
            }
            PayloadFormat::Text => {
                let text = event.message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                json!({ "text": format!("{}: {text}", self.repository) })
            }
        }
    }
}

impl Sink for WebhookSink {
    fn name(&self) -> &'static str {
        match self.payload_format {
            PayloadFormat::Event => "webhook",
            PayloadFormat::Text => "slack",
        }
    }

    fn deliver(&self, store: &Store, event: &Event) {
        if !self.notify.notifies_about(&event.name.to_text(), event.state.as_deref()) {
            return;
        }
        let payload = self.payload(event).to_string();
        let mut delays = RETRY_DELAYS.iter();
        let mut attempts = 1;
        let outcome = loop {
            match send(&self.url, &payload) {
                Ok(()) => break "delivered".to_owned(),
                Err(SendError { reason: why, is_retryable: true }) => {
                    let Some(delay) = delays.next() else { break format!("given up: {why}") };
                    std::thread::sleep(*delay);
                    attempts += 1;
                }
                Err(SendError { reason: why, .. }) => break format!("given up: {why}"),
            }
        };
        let attempts_note = if attempts == 1 { String::new() } else { format!(" (try {attempts})") };
        let event_label = format!("{} {}", event.n, event.name.to_text());
        let sink_label = format!("{} {}", self.name(), mask_url(&self.url));
        hook::log(store, &event_label, &sink_label, &format!("{outcome}{attempts_note}"), "");
    }
}

/// Reason of a failed delivery, and whether another attempt may succeed.
struct SendError {
    reason: String,
    is_retryable: bool,
}

/// Posts `payload` to `url` once.
///
/// # Errors
/// The reason never contains the address, which is a secret.
fn send(url: &str, payload: &str) -> Result<(), SendError> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(REQUEST_TIMEOUT))
        .http_status_as_error(false)
        .max_redirects(0)
        .user_agent(concat!("git-proq/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let result = agent.post(url).header("Content-Type", "application/json").send(payload);
    // The address is a secret, and the library's messages may contain it.
    let reason = match result {
        Ok(response) if response.status().is_success() => return Ok(()),
        Ok(response) => {
            let code = response.status().as_u16();
            return Err(SendError {
                reason: format!("status {code}"),
                is_retryable: code >= 500 || [408, 429].contains(&code),
            });
        }
        Err(ureq::Error::Timeout(_)) => format!("no answer within {} s", REQUEST_TIMEOUT.as_secs()),
        Err(ureq::Error::HostNotFound) => "there is no such host".to_owned(),
        Err(ureq::Error::Io(e)) => e.to_string(),
        Err(ureq::Error::Rustls(e)) => format!("no secure connection: {e}"),
        Err(_) => "it could not be sent".to_owned(),
    };
    Err(SendError { reason, is_retryable: true })
}
