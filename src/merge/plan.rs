//! Owns what a landing is about to try, for a person to read before anything moves.

use serde::Serialize;

use super::collect::Collected;
use crate::store::records::Strategy;

/// What a landing is about to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// How lanes land.
    pub(crate) strategy: Strategy,
    /// The lanes that were asked for, and what will become of them.
    pub(crate) lanes: Vec<Line>,
}

/// One lane of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    /// The lane.
    pub(crate) lane: String,
    /// The branch it lands on.
    pub(crate) onto: String,
    /// Its own commits and the files that they change; none when it is not to land.
    pub(crate) size: Option<(usize, usize)>,
    /// Why it is not to land.
    pub(crate) why: Option<String>,
}

impl Plan {
    pub(super) fn of(strategy: Strategy, collected: &Collected) -> Plan {
        let lands = collected.ready.iter().map(|c| Line {
            lane: c.lane.name.clone(),
            onto: c.onto.clone(),
            size: Some((c.commits, c.files)),
            why: None,
        });
        let not = collected.decided.iter().map(|o| Line {
            lane: o.lane.clone(),
            onto: o.onto.clone(),
            size: None,
            why: Some(o.message.clone().unwrap_or_else(|| format!("all of it is on {} already", o.onto))),
        });
        Plan { strategy, lanes: lands.chain(not).collect() }
    }
}
