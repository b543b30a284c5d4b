//! Notes of lists and landings about batches whose work is not on their base.

use proq_lib::board::next_steps::batch_steps;
use proq_lib::lane::Project;
use proq_lib::swarm::landing::batch_landing::UnlandedBatch;

use crate::cli::invocation::context::CommandContext;

/// Prints how far the batches are that no scheduler runs now.
pub(crate) fn print_unlanded_batches(context: &CommandContext, batches: &[UnlandedBatch]) {
    for unlanded in batches {
        context.ui.status(unlanded.describe());
    }
}

/// Prints the commands that continue or land these batches.
pub(crate) fn print_batch_steps(context: &CommandContext, project: &Project, batches: &[UnlandedBatch]) {
    for step in batch_steps(project, batches) {
        context.ui.hint(step);
    }
}
