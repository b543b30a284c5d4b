//! Ports of a lane, and the record of a lane that is being created.

use serde::{Deserialize, Serialize};

use crate::base::record::Record;

/// Ten consecutive ports for the servers of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ports {
    /// First port.
    pub first: u16,
}

/// Number of ports in a lane.
pub const PORTS_PER_LANE: u16 = 10;

/// Environment variables with the ports, in order.
pub(crate) const PORT_VARIABLES: [&str; PORTS_PER_LANE as usize] = [
    "PROQ_PORT",
    "PROQ_PORT_1",
    "PROQ_PORT_2",
    "PROQ_PORT_3",
    "PROQ_PORT_4",
    "PROQ_PORT_5",
    "PROQ_PORT_6",
    "PROQ_PORT_7",
    "PROQ_PORT_8",
    "PROQ_PORT_9",
];

impl Ports {
    /// Returns all ports, in order.
    pub fn all(self) -> impl Iterator<Item = u16> {
        self.first..=self.last()
    }

    /// Returns the last port.
    pub fn last(self) -> u16 {
        self.first.saturating_add(PORTS_PER_LANE - 1)
    }

    /// Returns whether two lanes would have a port in common.
    pub fn overlaps(self, other: Ports) -> bool {
        self.first.abs_diff(other.first) < PORTS_PER_LANE
    }

    /// Returns the environment variables with the ports.
    pub fn variables(self) -> impl Iterator<Item = (&'static str, String)> {
        PORT_VARIABLES.into_iter().zip(self.all().map(|port| port.to_string()))
    }
}

/// Lane that is being created and has no lane record yet: its ports and its set-up process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetUpRecord {
    /// Ports reserved for the lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "port")]
    pub ports: Option<Ports>,
    /// Process mark of all processes that the set-up commands start.
    #[serde(rename = "mark", default, skip_serializing_if = "Option::is_none")]
    pub process_mark: Option<String>,
    /// Process id of the current set-up command, which is also the id of its process group.
    #[serde(rename = "pid", default, skip_serializing_if = "Option::is_none")]
    pub command_pid: Option<u32>,
    /// Start time of the current set-up command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "birth")]
    pub command_start_time: Option<String>,
}

impl Record for SetUpRecord {
    const FORMAT: u32 = 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_has_a_private_variable() {
        let ports = Ports { first: 20_010 };
        let all: Vec<(&str, String)> = ports.variables().collect();
        assert_eq!((&all[0], &all[9]), (&("PROQ_PORT", "20010".into()), &("PROQ_PORT_9", "20019".into())));
        assert!(
            PORT_VARIABLES.iter().all(|name| proq_base::process::strays::RUN_CONTEXT_VARS.contains(name))
        );
        assert!(ports.overlaps(Ports { first: 20_019 }) && !ports.overlaps(Ports { first: 20_020 }));
        assert!(ports.overlaps(Ports { first: 20_001 }) && !ports.overlaps(Ports { first: 20_000 }));
    }
}
