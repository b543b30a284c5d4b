//! Owns holding what is said of the dialects while a run lasts to what was recorded of them.

use super::{Dialect, RECORDED, stream};
use crate::agent::stream::midway::Context;
use crate::agent::stream::{Event, Progress, Reader, SessionTotals};

/// What is known of a recorded run before it says that it has ended.
fn before_the_end(dialect: Dialect, bytes: &[u8]) -> Progress {
    let mut reader = Reader::new(dialect, &SessionTotals::default());
    let mut known = Progress::default();
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let mut events = Vec::new();
        reader.feed(line, &mut events);
        if reader.is_over() || events.iter().any(|event| matches!(event, Event::Result { .. })) {
            break;
        }
        known = reader.progress().clone();
    }
    known
}

#[test]
fn what_is_told_midway_is_in_the_recordings_before_their_end() {
    for (agent, dialect) in RECORDED {
        // Of those that speak the protocol, this one says all that can be said by it.
        let mut bytes = stream(agent, if *dialect == Dialect::Acp { "opencode" } else { "ok" });
        if *dialect == Dialect::Aider {
            // The recording is of a model without a price.
            bytes.extend(b"Tokens: 1.2k sent, 50 received. Cost: $0.01 message, $0.02 session.\n");
        }
        let known = before_the_end(*dialect, &bytes);
        // By the protocol tokens are said with the end of a turn.
        let tells_tokens = !known.tokens.is_none() && *dialect != Dialect::Acp;
        assert_eq!(dialect.tells_tokens_midway(), tells_tokens, "{agent}: {known:?}");
        assert_eq!(dialect.tells_cost_midway(), known.cost.is_some(), "{agent}: {known:?}");
        let context = dialect.tells_context() == Context::Midway;
        // What copilot says of that comes with tools that its recordings have none of.
        if *dialect != Dialect::Copilot {
            assert_eq!(context, known.context_percent().is_some(), "{agent}: {known:?}");
        }
        if dialect.names_its_model() {
            assert!(known.model.is_some(), "{agent}: {known:?}");
        }
    }
}

#[test]
fn claude_tells_the_size_of_its_context_with_its_first_result() {
    let bytes = stream("claude", "ok");
    assert_eq!(before_the_end(Dialect::Claude, &bytes).context_percent(), None);
    let mut reader = Reader::new(Dialect::Claude, &SessionTotals::default());
    reader.feed(&bytes, &mut Vec::new());
    assert!(reader.progress().context_percent().is_some());
    assert_eq!(Dialect::Claude.tells_context(), Context::AfterATurn);
}
