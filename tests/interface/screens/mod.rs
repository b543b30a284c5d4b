//! Screens of commands on terminals of different widths.

mod prose;
mod widths;
