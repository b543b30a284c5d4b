//! Number of an operation in the operation log.

use super::number::record_number;

record_number! {
    /// Number of an operation in the operation log, from 1. As the number of the last operation it is
    /// [`OperationNumber::NONE`], which is zero, if there is none.
    OperationNumber, u64, "operation"
}
