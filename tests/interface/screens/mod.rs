//! Screens of commands on terminals of different widths.

mod widths;
