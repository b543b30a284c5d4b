//! Spans on standard error while the program runs, with their durations.

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::fmt::time::uptime;
use tracing_subscriber::prelude::*;

use super::ui::Ui;

/// Name of the environment variable with the filter of spans.
const FILTER_VARIABLE: &str = "PROQ_LOG";

/// Prints each span that ends from now on, with its duration, if `PROQ_LOG` or `-vv` requests it. The variable is
/// a filter in the form of `RUST_LOG`: a level, or `TARGET=LEVEL` separated by commas. `verbose` is the number of
/// times that `-v` was given.
pub(crate) fn start_if_requested(ui: Ui, verbose: u8) {
    let requested = std::env::var(FILTER_VARIABLE).ok().filter(|filter| !filter.is_empty());
    let Some(filter) = requested.or_else(|| (verbose > 1).then(|| "debug".to_owned())) else { return };
    let targets: Targets = match filter.parse() {
        Ok(targets) => targets,
        Err(e) => return ui.warn(format!("{FILTER_VARIABLE} is no filter: {e}")),
    };
    let printer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_span_events(FmtSpan::CLOSE)
        .with_target(false)
        .with_timer(uptime());
    tracing_subscriber::registry().with(printer.with_filter(targets)).init();
}
