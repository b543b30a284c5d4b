//! Owns the form of a lane's ports: ten in a row, by the first of them.

use serde::{Deserialize, Serialize};

/// Ten ports in a row that servers of one lane are to listen at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Ports {
    /// The first of them.
    pub(crate) first: u16,
}

/// How many there are.
pub(crate) const COUNT: u16 = 10;

/// What programs find them under, in order.
pub(crate) const VARIABLES: [&str; COUNT as usize] = [
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
    /// All of them.
    pub(crate) fn all(self) -> impl Iterator<Item = u16> {
        self.first..=self.last()
    }

    /// The last of them.
    pub(crate) fn last(self) -> u16 {
        self.first.saturating_add(COUNT - 1)
    }

    /// Whether any of them is one of the others.
    pub(crate) fn meets(self, other: Ports) -> bool {
        self.first.abs_diff(other.first) < COUNT
    }

    /// The variables that name them, with their values.
    pub(crate) fn variables(self) -> impl Iterator<Item = (&'static str, String)> {
        VARIABLES.into_iter().zip(self.all().map(|port| port.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_variable_that_nothing_else_inherits() {
        let ports = Ports { first: 20_010 };
        let all: Vec<(&str, String)> = ports.variables().collect();
        assert_eq!((&all[0], &all[9]), (&("PROQ_PORT", "20010".into()), &("PROQ_PORT_9", "20019".into())));
        assert!(VARIABLES.iter().all(|name| crate::process::OF_A_RUN.contains(name)));
        assert!(ports.meets(Ports { first: 20_019 }) && !ports.meets(Ports { first: 20_020 }));
        assert!(ports.meets(Ports { first: 20_001 }) && !ports.meets(Ports { first: 20_000 }));
    }
}
