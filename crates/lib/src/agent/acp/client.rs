//! Client side of the Agent Client Protocol as a state machine without I/O: it takes the agent's output lines
//! and returns the actions to perform.

use std::path::PathBuf;

use proq_base::lane_name::LaneName;
use proq_store::base::run_number::RunNumber;
use proq_stream::base::client_line::ClientLine;
use serde_json::{Value, json};

use super::relay::RelayedLine;
use super::rpc;
use super::rpc::{METHOD_NOT_FOUND, RpcMessage};
use super::tool_policy::{RecentCalls, ToolPolicy, choose_option};
use crate::agent::profiles::profile::permission::Permission;

/// Supported version of the Agent Client Protocol.
const PROTOCOL_VERSION: u64 = 1;

/// Settings of one conversation over the Agent Client Protocol: working directory, lane, run, session and
/// prompts.
#[derive(Debug, Clone)]
pub(super) struct ClientConfig {
    /// Directory that the agent works in.
    pub(super) dir: PathBuf,
    /// Name of the lane.
    pub(super) lane: LaneName,
    /// Number of the run.
    pub(super) run_number: RunNumber,
    /// Path of the git-proq program.
    pub(super) program_path: PathBuf,
    /// Session to resume; none to create a new session.
    pub(super) session: Option<String>,
    /// The first prompt.
    pub(super) prompt: String,
    /// Prompt that replaces `prompt` when the earlier session cannot be resumed, so that a new one is
    /// created.
    pub(super) restart_prompt: Option<String>,
}

/// Action that the driver must perform for the client.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// Send this message to the agent.
    Send(Value),
    /// Write this entry to the run's log.
    Log(ClientLine),
    /// Record that the messages sent last were delivered, since the agent has reacted to them.
    ConfirmDelivery,
    /// Send the next messages or finish, since the agent's turn has finished.
    ContinueAfterTurn,
    /// Close the agent's input, since the conversation has finished.
    CloseInput,
}

/// Kind of a request to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    Initialize,
    NewSession,
    LoadSession,
    SetMode,
    Prompt,
}

impl RequestKind {
    fn method(self) -> &'static str {
        match self {
            RequestKind::Initialize => "initialize",
            RequestKind::NewSession => "session/new",
            RequestKind::LoadSession => "session/load",
            RequestKind::SetMode => "session/set_mode",
            RequestKind::Prompt => "session/prompt",
        }
    }
}

/// State machine of the client in one conversation over the Agent Client Protocol.
pub(super) struct Client {
    config: ClientConfig,
    policy: ToolPolicy,
    calls: RecentCalls,
    /// Number of requests that were sent; also the id of the last one.
    request_count: u64,
    /// The request that has no response yet.
    pending_request: Option<RequestKind>,
    session: Option<String>,
    /// Whether a new session was created because the earlier one could not be resumed.
    is_replacement_session: bool,
    /// Whether the agent was sent messages and has not reacted to them.
    awaits_reaction: bool,
    is_cancelled: bool,
    is_finished: bool,
}

impl Client {
    pub(super) fn new(config: ClientConfig, policy: ToolPolicy) -> Client {
        Client {
            config,
            policy,
            calls: RecentCalls::default(),
            request_count: 0,
            pending_request: None,
            session: None,
            is_replacement_session: false,
            awaits_reaction: false,
            is_cancelled: false,
            is_finished: false,
        }
    }

    /// Returns the actions that log and send the first request of the protocol, `initialize`.
    pub(super) fn initialize(&mut self) -> Vec<Action> {
        let client_info =
            json!({ "name": "git-proq", "title": "git-proq", "version": env!("CARGO_PKG_VERSION") });
        // The client offers neither files nor terminals: the agent uses its own, in its lane.
        let capabilities =
            json!({ "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false });
        self.send_request(RequestKind::Initialize, &json!({ "protocolVersion": PROTOCOL_VERSION, "clientCapabilities": capabilities, "clientInfo": client_info }), None)
    }

    /// Returns the actions that send the agent a further message after its turn has finished.
    pub(super) fn send_message(&mut self, text: &str) -> Vec<Action> {
        self.awaits_reaction = true;
        self.send_prompt(text, Some(text.to_owned()))
    }

    /// Returns the actions that cancel the agent's current turn. Without one, returns the actions that finish
    /// the conversation.
    pub(super) fn cancel(&mut self) -> Vec<Action> {
        let is_prompt_pending = self.pending_request == Some(RequestKind::Prompt) && !self.is_cancelled;
        self.is_cancelled = true;
        match &self.session {
            Some(session) if is_prompt_pending => {
                vec![Action::Send(rpc::notification("session/cancel", &json!({ "sessionId": session })))]
            }
            _ => self.finish(),
        }
    }

    /// Returns whether the client has finished the conversation. An exit of the agent before that does not
    /// count.
    pub(super) fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Returns the actions that log the end of the conversation and close the agent's input; none when it is
    /// already finished.
    pub(super) fn finish(&mut self) -> Vec<Action> {
        match std::mem::replace(&mut self.is_finished, true) {
            true => Vec::new(),
            false => vec![Action::Log(ClientLine::NoMoreRequests), Action::CloseInput],
        }
    }

    /// Processes a line of the agent's output and returns the resulting actions.
    pub(super) fn receive_line(&mut self, line: &RelayedLine) -> Vec<Action> {
        let RelayedLine::Complete(line) = line else {
            let text = "it wrote a line of more than 8 MiB, which was not looked at".to_owned();
            return vec![Action::Log(ClientLine::Note { text })];
        };
        match RpcMessage::parse(line) {
            // Only the last request can be pending.
            RpcMessage::Response(id, response) if id == self.request_count => {
                match self.pending_request.take() {
                    Some(kind) => self.handle_response(kind, response),
                    None => Vec::new(),
                }
            }
            RpcMessage::Notification { method, params } if method == "session/update" => {
                self.handle_update(&params)
            }
            RpcMessage::Request { id, method, params } => {
                let mut out = self.take_delivery_confirmation();
                out.extend(self.answer_request(&id, &method, &params));
                out
            }
            RpcMessage::Response(..) | RpcMessage::Notification { .. } | RpcMessage::Invalid => Vec::new(),
        }
    }

    fn send_request(&mut self, kind: RequestKind, params: &Value, message: Option<String>) -> Vec<Action> {
        self.request_count += 1;
        self.pending_request = Some(kind);
        let method = kind.method().to_owned();
        let session = self.config.session.clone().filter(|_| kind == RequestKind::LoadSession);
        let entry = ClientLine::Request { id: self.request_count, method, session, message };
        vec![Action::Log(entry), Action::Send(rpc::request(self.request_count, kind.method(), params))]
    }

    fn handle_response(&mut self, kind: RequestKind, response: Result<Value, Value>) -> Vec<Action> {
        match (kind, response) {
            (RequestKind::Initialize, Ok(result)) => self.handle_initialized(&result),
            (RequestKind::NewSession, Ok(result)) => match result["sessionId"].as_str() {
                Some(session) => {
                    self.session = Some(session.to_owned());
                    self.set_mode(&result)
                }
                None => self.fail("it made a session without a name"),
            },
            (RequestKind::LoadSession, Ok(result)) => {
                self.session.clone_from(&self.config.session);
                self.set_mode(&result)
            }
            (RequestKind::LoadSession, Err(_)) => {
                self.replace_session("the session could not be loaded, so a new one begins")
            }
            (RequestKind::SetMode, _) => self.send_task(),
            (RequestKind::Prompt, Ok(result)) => {
                let mut out = self.take_delivery_confirmation();
                // An agent whose turn was ended by a limit or by a cancellation gets no further prompt.
                let can_continue = matches!(
                    result["stopReason"].as_str(),
                    Some("end_turn" | "refusal" | "max_turn_requests")
                );
                out.extend(if can_continue && !self.is_cancelled {
                    vec![Action::ContinueAfterTurn]
                } else {
                    self.finish()
                });
                out
            }
            (RequestKind::Prompt, Err(_)) => {
                let mut out = self.take_delivery_confirmation();
                out.extend(self.finish());
                out
            }
            (RequestKind::Initialize | RequestKind::NewSession, Err(_)) => self.finish(),
        }
    }

    fn handle_initialized(&mut self, result: &Value) -> Vec<Action> {
        if result["protocolVersion"].as_u64() != Some(PROTOCOL_VERSION) {
            let version = &result["protocolVersion"];
            return self
                .fail(&format!("it speaks version {version} of the protocol, and not {PROTOCOL_VERSION}"));
        }
        let can_load =
            result.pointer("/agentCapabilities/loadSession").and_then(Value::as_bool) == Some(true);
        match &self.config.session {
            None => self.request_new_session(),
            Some(_) if !can_load => self.replace_session("it cannot go on in a session, so a new one begins"),
            Some(session) => {
                let params =
                    json!({ "sessionId": session, "cwd": self.config.dir, "mcpServers": self.mcp_servers() });
                self.send_request(RequestKind::LoadSession, &params, None)
            }
        }
    }

    fn replace_session(&mut self, reason: &str) -> Vec<Action> {
        self.is_replacement_session = true;
        let mut out = vec![Action::Log(ClientLine::Note { text: reason.to_owned() })];
        out.extend(self.request_new_session());
        out
    }

    fn request_new_session(&mut self) -> Vec<Action> {
        let params = json!({ "cwd": self.config.dir, "mcpServers": self.mcp_servers() });
        self.send_request(RequestKind::NewSession, &params, None)
    }

    /// Returns the list of MCP servers for a session: the server of git-proq, whose variables name the lane
    /// and the run.
    fn mcp_servers(&self) -> Value {
        let ClientConfig { lane, run_number, program_path, .. } = &self.config;
        let env = json!([
            { "name": "PROQ_LANE", "value": lane },
            { "name": "PROQ_ATTEMPT", "value": run_number.to_string() },
        ]);
        json!([{ "name": "proq", "command": program_path, "args": ["mcp"], "env": env }])
    }

    /// Selects a mode in which the agent requests permission, if the agent offers one; otherwise sends the
    /// task.
    fn set_mode(&mut self, result: &Value) -> Vec<Action> {
        match (select_mode(&result["modes"], self.policy.level), &self.session) {
            (Some(mode), Some(session)) => {
                let params = json!({ "sessionId": session, "modeId": mode });
                self.send_request(RequestKind::SetMode, &params, None)
            }
            _ => self.send_task(),
        }
    }

    fn send_task(&mut self) -> Vec<Action> {
        if self.is_cancelled {
            return self.finish();
        }
        let restart_prompt = self.config.restart_prompt.clone().filter(|_| self.is_replacement_session);
        let text = restart_prompt.unwrap_or_else(|| self.config.prompt.clone());
        self.send_prompt(&text, None)
    }

    fn send_prompt(&mut self, text: &str, message: Option<String>) -> Vec<Action> {
        let params = json!({ "sessionId": self.session, "prompt": [{ "type": "text", "text": text }] });
        self.send_request(RequestKind::Prompt, &params, message)
    }

    fn fail(&mut self, reason: &str) -> Vec<Action> {
        let mut out = vec![Action::Log(ClientLine::Failure { text: reason.to_owned() })];
        out.extend(self.finish());
        out
    }

    /// Returns [`Action::ConfirmDelivery`] at the agent's first reaction to the messages sent last, and
    /// nothing at later calls.
    fn take_delivery_confirmation(&mut self) -> Vec<Action> {
        if std::mem::take(&mut self.awaits_reaction) { vec![Action::ConfirmDelivery] } else { Vec::new() }
    }

    fn handle_update(&mut self, params: &Value) -> Vec<Action> {
        let update = &params["update"];
        match update["sessionUpdate"].as_str() {
            // These updates do not belong to a turn.
            Some(
                "available_commands_update"
                | "session_info_update"
                | "config_option_update"
                | "current_mode_update",
            )
            | None => return Vec::new(),
            Some("tool_call" | "tool_call_update") => {
                self.calls.record_update(update);
            }
            Some(_) => {}
        }
        self.take_delivery_confirmation()
    }

    fn answer_request(&mut self, id: &Value, method: &str, params: &Value) -> Vec<Action> {
        if method != "session/request_permission" {
            let message = format!("there is no {method} here");
            return vec![Action::Send(rpc::error_response(id, METHOD_NOT_FOUND, &message))];
        }
        let call = self.calls.record_update(&params["toolCall"]);
        let policy_refusal = match self.is_cancelled {
            true => Some("its run is being stopped".to_owned()),
            false => self.policy.refusal(call),
        };
        let (tool, call_id) = (call.tool_label().to_owned(), call.id().to_owned());
        let option = choose_option(&params["options"], policy_refusal.is_none(), self.policy.level)
            .filter(|_| !self.is_cancelled);
        let refusal =
            policy_refusal.or_else(|| option.is_none().then(|| "it can be allowed for good only".to_owned()));
        let outcome = match option {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        };
        let log_entry =
            refusal.map(|reason| Action::Log(ClientLine::ToolRefused { call: call_id, tool, reason }));
        let response = Action::Send(rpc::response(id, &json!({ "outcome": outcome })));
        log_entry.into_iter().chain([response]).collect()
    }
}

/// Returns the mode that suits a permission level: one that is read-only, or one that requests permission.
/// None when the agent is already in that mode, offers none, or may do anything.
fn select_mode(modes: &Value, level: Permission) -> Option<String> {
    let offered = modes["availableModes"].as_array()?;
    let ids = offered.iter().filter_map(|mode| mode["id"].as_str());
    let current = modes["currentModeId"].as_str();
    // Some ids are URIs of the protocol, with the mode's name after the '#'.
    let short_id = |id: &str| id.rsplit('#').next().unwrap_or_default().to_owned();
    let preferred: &[&str] = match level {
        Permission::Read => &["plan", "read-only"],
        Permission::Edit => &["default"],
        Permission::Full => &[],
    };
    let find_mode = |name: &&str| ids.clone().find(|id| short_id(id) == **name);
    let chosen = preferred.iter().find_map(find_mode)?;
    (current != Some(chosen)).then(|| chosen.to_owned())
}
