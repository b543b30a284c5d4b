//! Owns what lists and landings add about batches whose work is not on its base.

use crate::cli::Session;
use crate::lane::Project;
use crate::swarm::{self, Unlanded};

/// Names batches that nobody runs now, where their work is, and what can be done with them.
pub(in crate::cli) fn tell(session: &Session, project: &Project, all: &[Unlanded]) {
    for Unlanded { batch, state } in all {
        let (id, base, branch) = (&batch.id, &batch.base, &batch.branch);
        session.ui.say(format!("batch {id} {state}; what it landed on {branch} is not on {base} yet"));
        let mut land = format!("land it on {base}");
        if *state != swarm::OVER {
            session.ui.hint(format!("go on with it: git proq resume {id}"));
            land = format!("or land what it has on {base}");
        }
        session.ui.hint(swarm::how_to_land(project, batch, &land));
    }
}
