//! Operations of commands: all changes of the work are in effect at the end, or none.

use proq_store::operations::operation_entry::OperationHeader;

use super::journaled_operation::Operation;
use crate::errors::Error;
use crate::project::Project;

/// Runs `work` as an operation. If it succeeds, the operation is added to the operation log. If it fails, all
/// its changes are reverted.
pub fn operate<'p, T, E: From<Error>>(
    project: &'p Project,
    kind: &str,
    work: impl FnOnce(&Operation<'p>) -> Result<T, E>,
) -> Result<T, E> {
    operate_with_header(
        project,
        OperationHeader { command_group: project.undo_group.clone(), ..OperationHeader::new(kind) },
        work,
    )
}

/// Runs `work` as an operation with the given journal header.
pub(crate) fn operate_with_header<'p, T, E: From<Error>>(
    project: &'p Project,
    header: OperationHeader,
    work: impl FnOnce(&Operation<'p>) -> Result<T, E>,
) -> Result<T, E> {
    project.repo.require_writable().map_err(Error::from)?;
    let op = Operation::new(project, header, None);
    match work(&op) {
        Ok(output) => match op.finish(false) {
            Ok(_) => {
                let actions = op.deferred_actions.take();
                drop(op);
                for action in actions {
                    action(project);
                }
                Ok(output)
            }
            Err(e) => {
                op.revert_and_end();
                Err(e.into())
            }
        },
        Err(e) => {
            op.revert_and_end();
            Err(e)
        }
    }
}
