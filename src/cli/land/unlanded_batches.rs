//! Notes of lists and landings about batches whose work is not on their base.

use proq_lib::lane::Project;
use proq_lib::swarm::landing::batch_landing;
use proq_lib::swarm::landing::batch_landing::UnlandedBatch;
use proq_lib::types::BatchRecord;

use crate::cli::invocation::context::CommandContext;

/// Prints the batches that no scheduler runs now, the branch of their work, and the commands that continue or
/// land them.
pub(crate) fn print_unlanded_batches(context: &CommandContext, project: &Project, batches: &[UnlandedBatch]) {
    for unlanded in batches {
        let UnlandedBatch { batch: BatchRecord { id, base, branch, .. }, state_phrase: state, .. } = unlanded;
        context.ui.status(format!("batch {id} {state}; what it landed on {branch} is not on {base} yet"));
        let mut land_text = format!("land it on {base}");
        if *state != batch_landing::FINISHED_PHRASE {
            context.ui.hint(format!("go on with it: git proq resume {id}"));
            land_text = format!("or land what it has on {base}");
        }
        context.ui.hint(unlanded.landing_hint(project, &land_text));
    }
}
