//! Tests that the mid-run capabilities of each dialect match its recorded streams.

use proq_base::usage::SessionTotals;

use super::{RECORDED_AGENTS, recorded_stream};
use crate::base::event::StreamEvent;
use crate::base::progress::Progress;
use crate::live_reporting::ContextReporting;
use crate::reader::{Dialect, OutputReader};

/// Returns the progress of a recorded run just before its stream reports the end of the run.
fn progress_before_result(dialect: Dialect, bytes: &[u8]) -> Progress {
    let mut reader = OutputReader::new(dialect, &SessionTotals::default());
    let mut progress = Progress::default();
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let mut events = Vec::new();
        reader.feed_stdout(line, &mut events);
        if reader.has_reported_end() || events.iter().any(|event| matches!(event, StreamEvent::Result { .. }))
        {
            break;
        }
        progress = reader.progress().clone();
    }
    progress
}

#[test]
fn mid_run_capabilities_match_recordings() {
    for (agent, dialect) in RECORDED_AGENTS {
        // Of the agents that use the Agent Client Protocol, opencode sends everything that the protocol can
        // carry.
        let mut bytes = recorded_stream(agent, if *dialect == Dialect::Acp { "opencode" } else { "ok" });
        if *dialect == Dialect::Aider {
            // The recording was made with a model that has no price.
            bytes.extend(b"Tokens: 1.2k sent, 50 received. Cost: $0.01 message, $0.02 session.\n");
        }
        let progress = progress_before_result(*dialect, &bytes);
        // The protocol reports tokens with the end of a turn.
        let reports_tokens = !progress.tokens.is_zero() && *dialect != Dialect::Acp;
        assert_eq!(dialect.reports_tokens_live(), reports_tokens, "{agent}: {progress:?}");
        assert_eq!(dialect.reports_cost_live(), progress.cost.is_some(), "{agent}: {progress:?}");
        let reports_context = dialect.context_reporting() == ContextReporting::WhileRunning;
        // Copilot reports its context along with tool calls that its `ok` recording does not contain.
        if *dialect != Dialect::Copilot {
            assert_eq!(reports_context, progress.context_percent().is_some(), "{agent}: {progress:?}");
        }
        if dialect.reports_model() {
            assert!(progress.model.is_some(), "{agent}: {progress:?}");
        }
    }
}

#[test]
fn claude_reports_context_size_with_first_result() {
    let bytes = recorded_stream("claude", "ok");
    assert_eq!(progress_before_result(Dialect::Claude, &bytes).context_percent(), None);
    let mut reader = OutputReader::new(Dialect::Claude, &SessionTotals::default());
    reader.feed_stdout(&bytes, &mut Vec::new());
    assert!(reader.progress().context_percent().is_some());
    assert_eq!(Dialect::Claude.context_reporting(), ContextReporting::AfterFirstTurn);
}
