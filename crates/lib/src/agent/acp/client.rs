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
    pub(super) work_dir: PathBuf,
    /// Name of the lane.
    pub(super) lane: LaneName,
    /// Number of the run.
    pub(super) run_number: RunNumber,
    /// Path of the git-proq program.
    pub(super) git_proq_path: PathBuf,
    /// Session to resume; none to create a new session.
    pub(super) session_to_resume: Option<String>,
    /// The first prompt.
    pub(super) prompt: String,
    /// Prompt that replaces `prompt` when the earlier session cannot be resumed, so that a new one is
    /// created.
    pub(super) restart_prompt: Option<String>,
}

/// Action that the driver must perform for the client.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ClientAction {
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
    /// Tool calls that the agent has described.
    calls: RecentCalls,
    /// Number of requests that were sent; also the id of the last one.
    request_count: u64,
    /// The request that has no response yet.
    pending_request: Option<RequestKind>,
    /// Id of the current session; none before it is created or loaded.
    session: Option<String>,
    /// Whether a new session was created because the earlier one could not be resumed.
    is_replacement_session: bool,
    /// Whether the agent was sent messages and has not reacted to them.
    awaits_reaction: bool,
    /// Whether the driver has cancelled the current turn or the conversation.
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
    pub(super) fn initialize(&mut self) -> Vec<ClientAction> {
        let client_info =
            json!({ "name": "git-proq", "title": "git-proq", "version": env!("CARGO_PKG_VERSION") });
        // The client offers neither files nor terminals: the agent uses its own, in its lane.
        let capabilities =
            json!({ "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false });
        self.send_request(
            RequestKind::Initialize,
            &json!({ "protocolVersion": PROTOCOL_VERSION, "clientCapabilities": capabilities, "clientInfo": client_info }),
            None,
        )
    }

    /// Returns the actions that send the agent a further message after its turn has finished.
    pub(super) fn send_message(&mut self, text: &str) -> Vec<ClientAction> {
        self.awaits_reaction = true;
        self.send_prompt(text, Some(text.to_owned()))
    }

    /// Returns the actions that cancel the agent's current turn. Without one, returns the actions that finish
    /// the conversation.
    pub(super) fn cancel(&mut self) -> Vec<ClientAction> {
        let is_prompt_pending = self.pending_request == Some(RequestKind::Prompt) && !self.is_cancelled;
        self.is_cancelled = true;
        match &self.session {
            Some(session) if is_prompt_pending => {
                vec![ClientAction::Send(rpc::notification(
                    "session/cancel",
                    &json!({ "sessionId": session }),
                ))]
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
    pub(super) fn finish(&mut self) -> Vec<ClientAction> {
        match std::mem::replace(&mut self.is_finished, true) {
            true => Vec::new(),
            false => vec![ClientAction::Log(ClientLine::NoMoreRequests), ClientAction::CloseInput],
        }
    }

    /// Processes a line of the agent's output and returns the resulting actions.
    pub(super) fn receive_line(&mut self, line: &RelayedLine) -> Vec<ClientAction> {
        let RelayedLine::Complete(line) = line else {
            let text = "it wrote a line of more than 8 MiB, which was ignored".to_owned();
            return vec![ClientAction::Log(ClientLine::Note { text })];
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

    /// Returns the actions that log and send a request. `message` is the user's message in it, for the log.
    fn send_request(
        &mut self,
        kind: RequestKind,
        params: &Value,
        message: Option<String>,
    ) -> Vec<ClientAction> {
        self.request_count += 1;
        self.pending_request = Some(kind);
        let method = kind.method().to_owned();
        let session = self.config.session_to_resume.clone().filter(|_| kind == RequestKind::LoadSession);
        let entry = ClientLine::Request { id: self.request_count, method, session, message };
        vec![
            ClientAction::Log(entry),
            ClientAction::Send(rpc::request(self.request_count, kind.method(), params)),
        ]
    }

    fn handle_response(&mut self, kind: RequestKind, response: Result<Value, Value>) -> Vec<ClientAction> {
        match (kind, response) {
            (RequestKind::Initialize, Ok(result)) => self.handle_initialized(&result),
            (RequestKind::NewSession, Ok(result)) => match result["sessionId"].as_str() {
                Some(session) => {
                    self.session = Some(session.to_owned());
                    self.set_mode_or_send_task(&result)
                }
                None => self.fail("it created a session without a name"),
            },
            (RequestKind::LoadSession, Ok(result)) => {
                self.session.clone_from(&self.config.session_to_resume);
                self.set_mode_or_send_task(&result)
            }
            (RequestKind::LoadSession, Err(_)) => {
                self.replace_session("the session could not be loaded, so a new one is started")
            }
            (RequestKind::SetMode, _) => self.send_first_prompt(),
            (RequestKind::Prompt, Ok(result)) => {
                let mut out = self.take_delivery_confirmation();
                // An agent whose turn was ended by a limit or by a cancellation gets no further prompt.
                let can_continue = matches!(
                    result["stopReason"].as_str(),
                    Some("end_turn" | "refusal" | "max_turn_requests")
                );
                out.extend(if can_continue && !self.is_cancelled {
                    vec![ClientAction::ContinueAfterTurn]
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

    fn handle_initialized(&mut self, result: &Value) -> Vec<ClientAction> {
        if result["protocolVersion"].as_u64() != Some(PROTOCOL_VERSION) {
            let version = &result["protocolVersion"];
            return self
                .fail(&format!("it speaks version {version} of the protocol, and not {PROTOCOL_VERSION}"));
        }
        let can_load =
            result.pointer("/agentCapabilities/loadSession").and_then(Value::as_bool) == Some(true);
        match &self.config.session_to_resume {
            None => self.request_new_session(),
            Some(_) if !can_load => {
                self.replace_session("it cannot resume a session, so a new one is started")
            }
            Some(session) => {
                let params = json!({ "sessionId": session, "cwd": self.config.work_dir, "mcpServers": self.mcp_servers() });
                self.send_request(RequestKind::LoadSession, &params, None)
            }
        }
    }

    fn replace_session(&mut self, reason: &str) -> Vec<ClientAction> {
        self.is_replacement_session = true;
        let mut out = vec![ClientAction::Log(ClientLine::Note { text: reason.to_owned() })];
        out.extend(self.request_new_session());
        out
    }

    fn request_new_session(&mut self) -> Vec<ClientAction> {
        let params = json!({ "cwd": self.config.work_dir, "mcpServers": self.mcp_servers() });
        self.send_request(RequestKind::NewSession, &params, None)
    }

    /// Returns the list of MCP servers for a session: the server of git-proq, whose variables name the lane
    /// and the run.
    fn mcp_servers(&self) -> Value {
        let ClientConfig { lane, run_number, git_proq_path: program_path, .. } = &self.config;
        let env = json!([
            { "name": "PROQ_LANE", "value": lane },
            { "name": "PROQ_ATTEMPT", "value": run_number.to_string() },
        ]);
        json!([{ "name": "proq", "command": program_path, "args": ["mcp"], "env": env }])
    }

    /// Selects a mode in which the agent requests permission, if the agent offers one; otherwise sends the
    /// task.
    fn set_mode_or_send_task(&mut self, result: &Value) -> Vec<ClientAction> {
        match (select_mode(&result["modes"], self.policy.level), &self.session) {
            (Some(mode), Some(session)) => {
                let params = json!({ "sessionId": session, "modeId": mode });
                self.send_request(RequestKind::SetMode, &params, None)
            }
            _ => self.send_first_prompt(),
        }
    }

    /// Returns the actions that send the first prompt; those that finish the conversation after a
    /// cancellation.
    fn send_first_prompt(&mut self) -> Vec<ClientAction> {
        if self.is_cancelled {
            return self.finish();
        }
        let restart_prompt = self.config.restart_prompt.clone().filter(|_| self.is_replacement_session);
        let text = restart_prompt.unwrap_or_else(|| self.config.prompt.clone());
        self.send_prompt(&text, None)
    }

    /// Returns the actions that send a prompt. `message` is the user's message in it, for the log.
    fn send_prompt(&mut self, text: &str, message: Option<String>) -> Vec<ClientAction> {
        let params = json!({ "sessionId": self.session, "prompt": [{ "type": "text", "text": text }] });
        self.send_request(RequestKind::Prompt, &params, message)
    }

    /// Returns the actions that log a failure and finish the conversation.
    fn fail(&mut self, reason: &str) -> Vec<ClientAction> {
        let mut out = vec![ClientAction::Log(ClientLine::Failure { text: reason.to_owned() })];
        out.extend(self.finish());
        out
    }

    /// Returns [`ClientAction::ConfirmDelivery`] at the agent's first reaction to the messages sent last, and
    /// nothing at later calls.
    fn take_delivery_confirmation(&mut self) -> Vec<ClientAction> {
        if std::mem::take(&mut self.awaits_reaction) {
            vec![ClientAction::ConfirmDelivery]
        } else {
            Vec::new()
        }
    }

    /// Processes a `session/update` of the agent, which may be its reaction to the messages sent last.
    fn handle_update(&mut self, params: &Value) -> Vec<ClientAction> {
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

    /// Returns the actions that answer a request of the agent: a permission request by the tool policy, any
    /// other with an error.
    fn answer_request(&mut self, id: &Value, method: &str, params: &Value) -> Vec<ClientAction> {
        if method != "session/request_permission" {
            let message = format!("there is no {method} here");
            return vec![ClientAction::Send(rpc::error_response(id, METHOD_NOT_FOUND, &message))];
        }
        let call = self.calls.record_update(&params["toolCall"]);
        let policy_refusal = match self.is_cancelled {
            true => Some("its run is being stopped".to_owned()),
            false => self.policy.refusal_reason(call),
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
            refusal.map(|reason| ClientAction::Log(ClientLine::ToolRefused { call_id, tool, reason }));
        let response = ClientAction::Send(rpc::response(id, &json!({ "outcome": outcome })));
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
