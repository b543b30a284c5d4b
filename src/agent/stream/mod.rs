//! Owns what agents print: one parser per dialect, one kind of event, and what a run came to. No input, output or clock.

mod acp;
mod aider;
mod claude;
mod codex;
mod copilot;
mod event;
mod gemini;
mod json;
mod lift;
mod lines;
mod midway;
mod opencode;
mod parser;
mod pi;
mod plain;
mod price;
mod qwen;
mod reader;
mod said;
mod summary;
mod tally;
#[cfg(test)]
mod tests;
mod trouble;

pub(crate) use event::Event;
pub(super) use json::LONGEST_TEXT;
pub(crate) use json::read as read_bounded;
pub(crate) use lift::Lift;
pub(crate) use lines::{LONGEST_LINE, Line, Lines};
pub(crate) use midway::Context;
pub(crate) use price::{Price, Prices};
pub(crate) use reader::{Dialect, Reader};
pub(crate) use said::{OURS, Said};
pub(crate) use summary::{Class, Exit, Summary};
pub(super) use tally::is_session;
pub(crate) use tally::{Progress, Refusal};
pub(crate) use trouble::Trouble;

pub(crate) use crate::store::records::{Cost, SessionTotals, Tokens};
