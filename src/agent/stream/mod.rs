//! Agents' output: one parser per dialect, one type of event, and the summary of a run. This module has no
//! I/O and no clock.

mod acp;
mod aider;
mod claude;
mod client_line;
mod codex;
mod collector;
mod copilot;
mod event;
mod failure_kind;
mod gemini;
mod json;
mod limit_reset;
mod lines;
mod live_reporting;
mod opencode;
mod parser;
mod pi;
mod price;
mod qwen;
mod reader;
mod run_end;
mod summary;
#[cfg(test)]
mod tests;
mod text_output;

pub(crate) use client_line::{CLIENT_LINE_PREFIX, ClientLine};
pub(crate) use collector::{Progress, Refusal, is_session_id};
pub(crate) use event::StreamEvent;
pub(crate) use failure_kind::FailureKind;
pub(crate) use json::{MAX_TEXT_BYTES, parse_bounded};
pub(crate) use limit_reset::LimitReset;
pub(crate) use lines::{Line, LineSplitter, MAX_LINE_BYTES};
pub(crate) use live_reporting::ContextReporting;
pub(crate) use price::{Price, Prices};
pub(crate) use reader::{Dialect, OutputReader};
pub(crate) use run_end::{Exit, ExitClass};
pub(crate) use summary::Summary;

pub(crate) use crate::usage::{Cost, SessionTotals, Tokens};
