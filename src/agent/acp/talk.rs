//! Owns the conversation with an agent, as a matter of messages alone: what it says goes in, what is to be done comes out.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::leave::{Calls, Leave, choice};
use super::relay::Line;
use super::rpc::{self, Message, UNKNOWN_METHOD};
use crate::agent::profile::Permission;
use crate::agent::stream::Said;

/// The version of the protocol that is spoken here.
const VERSION: u64 = 1;

/// What an agent is to be told.
#[derive(Debug, Clone)]
pub(super) struct Brief {
    /// Where it works.
    pub(super) dir: PathBuf,
    /// The lane.
    pub(super) lane: String,
    /// The run's number.
    pub(super) attempt: u32,
    /// This program.
    pub(super) exe: PathBuf,
    /// The session to go on in.
    pub(super) session: Option<String>,
    /// What it is asked.
    pub(super) prompt: String,
    /// The same for one that does not know what was said before.
    pub(super) prompt_anew: Option<String>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Do {
    /// Write this to the agent.
    Tell(Value),
    /// Write this to the log.
    Say(Said),
    /// The agent has reacted to what it was told more.
    Heard,
    /// Its turn is over: it can be told more, or nothing.
    TurnOver,
    /// There is nothing more to say.
    Over,
}

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Begin,
    New,
    Load,
    Mode,
    Prompt,
}

impl Step {
    fn method(self) -> &'static str {
        match self {
            Step::Begin => "initialize",
            Step::New => "session/new",
            Step::Load => "session/load",
            Step::Mode => "session/set_mode",
            Step::Prompt => "session/prompt",
        }
    }
}

/// A conversation.
pub(super) struct Talk {
    brief: Brief,
    leave: Leave,
    calls: Calls,
    /// How many things were asked.
    count: u64,
    /// The one that has no reply yet.
    open: Option<Step>,
    session: Option<String>,
    /// Whether the session is a new one although another was to be gone on with.
    anew: bool,
    /// Whether the agent was told more and has not reacted.
    unheard: bool,
    cancelled: bool,
    over: bool,
}

impl Talk {
    pub(super) fn new(brief: Brief, leave: Leave) -> Talk {
        Talk {
            brief,
            leave,
            calls: Calls::default(),
            count: 0,
            open: None,
            session: None,
            anew: false,
            unheard: false,
            cancelled: false,
            over: false,
        }
    }

    /// The first words.
    pub(super) fn begin(&mut self) -> Vec<Do> {
        let client = json!({ "name": "git-proq", "title": "git-proq", "version": env!("CARGO_PKG_VERSION") });
        // Files and terminals are the agent's own matter, in its lane.
        let capabilities =
            json!({ "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false });
        self.ask(
            Step::Begin,
            &json!({ "protocolVersion": VERSION, "clientCapabilities": capabilities, "clientInfo": client }),
            None,
        )
    }

    /// Tells the agent more, its turn being over.
    pub(super) fn say_more(&mut self, text: &str) -> Vec<Do> {
        self.unheard = true;
        self.prompt(text, Some(text.to_owned()))
    }

    /// Asks the agent to end its turn.
    pub(super) fn cancel(&mut self) -> Vec<Do> {
        let at_work = self.open == Some(Step::Prompt) && !self.cancelled;
        self.cancelled = true;
        match &self.session {
            Some(session) if at_work => {
                vec![Do::Tell(rpc::notice("session/cancel", &json!({ "sessionId": session })))]
            }
            _ => self.end(),
        }
    }

    /// Whether it has ended in the words of both.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Ends the conversation, once.
    pub(super) fn end(&mut self) -> Vec<Do> {
        match std::mem::replace(&mut self.over, true) {
            true => Vec::new(),
            false => vec![Do::Say(Said::Ends), Do::Over],
        }
    }

    /// Hears a line of the agent's.
    pub(super) fn hear(&mut self, line: &Line) -> Vec<Do> {
        let Line::Whole(line) = line else {
            let text = "it wrote a line of more than 8 MiB, which was not looked at".to_owned();
            return vec![Do::Say(Said::Notes { text })];
        };
        match Message::read(line) {
            // Only the last thing that was asked can be open.
            Message::Reply(id, outcome) if id == self.count => match self.open.take() {
                Some(step) => self.reply(step, outcome),
                None => Vec::new(),
            },
            Message::Tells { method, params } if method == "session/update" => self.update(&params),
            Message::Asks { id, method, params } => {
                let mut out = self.reaction();
                out.extend(self.answer(&id, &method, &params));
                out
            }
            Message::Reply(..) | Message::Tells { .. } | Message::Noise => Vec::new(),
        }
    }

    fn ask(&mut self, step: Step, params: &Value, more: Option<String>) -> Vec<Do> {
        self.count += 1;
        self.open = Some(step);
        let method = step.method().to_owned();
        let session = self.brief.session.clone().filter(|_| step == Step::Load);
        let said = Said::Asks { id: self.count, method, session, more };
        vec![Do::Say(said), Do::Tell(rpc::request(self.count, step.method(), params))]
    }

    fn reply(&mut self, step: Step, outcome: Result<Value, Value>) -> Vec<Do> {
        match (step, outcome) {
            (Step::Begin, Ok(result)) => self.greeted(&result),
            (Step::New, Ok(result)) => match result["sessionId"].as_str() {
                Some(session) => {
                    self.session = Some(session.to_owned());
                    self.choose_mode(&result)
                }
                None => self.fail("it made a session without a name"),
            },
            (Step::Load, Ok(result)) => {
                self.session.clone_from(&self.brief.session);
                self.choose_mode(&result)
            }
            (Step::Load, Err(_)) => self.begin_anew("the session could not be loaded, so a new one begins"),
            (Step::Mode, _) => self.first_prompt(),
            (Step::Prompt, Ok(result)) => {
                let mut out = self.reaction();
                // Where a limit or a wish ended its turn, it has nothing more to say.
                let goes_on = matches!(
                    result["stopReason"].as_str(),
                    Some("end_turn" | "refusal" | "max_turn_requests")
                );
                out.extend(if goes_on && !self.cancelled { vec![Do::TurnOver] } else { self.end() });
                out
            }
            (Step::Prompt, Err(_)) => {
                let mut out = self.reaction();
                out.extend(self.end());
                out
            }
            (Step::Begin | Step::New, Err(_)) => self.end(),
        }
    }

    fn greeted(&mut self, result: &Value) -> Vec<Do> {
        if result["protocolVersion"].as_u64() != Some(VERSION) {
            let version = &result["protocolVersion"];
            return self.fail(&format!("it speaks version {version} of the protocol, and not {VERSION}"));
        }
        let can_load =
            result.pointer("/agentCapabilities/loadSession").and_then(Value::as_bool) == Some(true);
        match &self.brief.session {
            None => self.begin_session(),
            Some(_) if !can_load => self.begin_anew("it cannot go on in a session, so a new one begins"),
            Some(session) => {
                let params =
                    json!({ "sessionId": session, "cwd": self.brief.dir, "mcpServers": self.servers() });
                self.ask(Step::Load, &params, None)
            }
        }
    }

    fn begin_anew(&mut self, why: &str) -> Vec<Do> {
        self.anew = true;
        let mut out = vec![Do::Say(Said::Notes { text: why.to_owned() })];
        out.extend(self.begin_session());
        out
    }

    fn begin_session(&mut self) -> Vec<Do> {
        let params = json!({ "cwd": self.brief.dir, "mcpServers": self.servers() });
        self.ask(Step::New, &params, None)
    }

    /// Our own server, which knows by its variables whose it is.
    fn servers(&self) -> Value {
        let Brief { lane, attempt, exe, .. } = &self.brief;
        let env = json!([
            { "name": "PROQ_LANE", "value": lane },
            { "name": "PROQ_ATTEMPT", "value": attempt.to_string() },
        ]);
        json!([{ "name": "proq", "command": exe, "args": ["mcp"], "env": env }])
    }

    /// Brings it into a mode in which it asks for leave, where it offers one.
    fn choose_mode(&mut self, result: &Value) -> Vec<Do> {
        match (mode(&result["modes"], self.leave.level), &self.session) {
            (Some(mode), Some(session)) => {
                let params = json!({ "sessionId": session, "modeId": mode });
                self.ask(Step::Mode, &params, None)
            }
            _ => self.first_prompt(),
        }
    }

    fn first_prompt(&mut self) -> Vec<Do> {
        if self.cancelled {
            return self.end();
        }
        let anew = self.brief.prompt_anew.clone().filter(|_| self.anew);
        let text = anew.unwrap_or_else(|| self.brief.prompt.clone());
        self.prompt(&text, None)
    }

    fn prompt(&mut self, text: &str, more: Option<String>) -> Vec<Do> {
        let params = json!({ "sessionId": self.session, "prompt": [{ "type": "text", "text": text }] });
        self.ask(Step::Prompt, &params, more)
    }

    fn fail(&mut self, why: &str) -> Vec<Do> {
        let mut out = vec![Do::Say(Said::Fails { text: why.to_owned() })];
        out.extend(self.end());
        out
    }

    /// The agent does something about what it was told.
    fn reaction(&mut self) -> Vec<Do> {
        if std::mem::take(&mut self.unheard) { vec![Do::Heard] } else { Vec::new() }
    }

    fn update(&mut self, params: &Value) -> Vec<Do> {
        let update = &params["update"];
        match update["sessionUpdate"].as_str() {
            // They say nothing of a turn.
            Some(
                "available_commands_update"
                | "session_info_update"
                | "config_option_update"
                | "current_mode_update",
            )
            | None => return Vec::new(),
            Some("tool_call" | "tool_call_update") => {
                self.calls.learn(update);
            }
            Some(_) => {}
        }
        self.reaction()
    }

    fn answer(&mut self, id: &Value, method: &str, params: &Value) -> Vec<Do> {
        if method != "session/request_permission" {
            let why = format!("there is no {method} here");
            return vec![Do::Tell(rpc::refusal(id, UNKNOWN_METHOD, &why))];
        }
        let call = self.calls.learn(&params["toolCall"]);
        let refused = match self.cancelled {
            true => Some("its run is being stopped".to_owned()),
            false => self.leave.refusal(call),
        };
        let (tool, name) = (call.tool().to_owned(), call.id().to_owned());
        let option =
            choice(&params["options"], refused.is_none(), self.leave.level).filter(|_| !self.cancelled);
        let refused =
            refused.or_else(|| option.is_none().then(|| "it can be allowed for good only".to_owned()));
        let outcome = match option {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        };
        let said = refused.map(|why| Do::Say(Said::Refuses { call: name, tool, why }));
        let answer = Do::Tell(rpc::answer(id, &json!({ "outcome": outcome })));
        said.into_iter().chain([answer]).collect()
    }
}

/// The mode that fits a permission level: one that only looks, or one that asks. None where it is in that already, offers none,
/// or may do anything.
fn mode(modes: &Value, level: Permission) -> Option<String> {
    let offered = modes["availableModes"].as_array()?;
    let ids = offered.iter().filter_map(|mode| mode["id"].as_str());
    let current = modes["currentModeId"].as_str();
    // Some names are addresses of the protocol's own, with the word behind the '#'.
    let word = |id: &str| id.rsplit('#').next().unwrap_or_default().to_owned();
    let wanted: &[&str] = match level {
        Permission::Read => &["plan", "read-only"],
        Permission::Edit => &["default"],
        Permission::Full => &[],
    };
    let fits = |name: &&str| ids.clone().find(|id| word(id) == **name);
    let chosen = wanted.iter().find_map(fits)?;
    (current != Some(chosen)).then(|| chosen.to_owned())
}
