//! The command line: discovery, settings, doctor, hostile input, the demo, MCP, and the library.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod command_line;
mod commit_graph;
mod config;
mod config_commands;
mod demo;
mod discovery;
mod doctor;
mod doctor_disk;
mod doctor_operations;
mod doctor_saved_state;
mod hostile_input;
mod hostile_values;
mod invalid_input;
mod json_schema;
mod library;
mod man_and_completions;
mod mcp;
mod missing_index;
mod ownership;
mod ref_policy;
mod screens;
mod shared_repository;
mod shell_init;
mod shells;
mod status;
mod symbolic_branches;
