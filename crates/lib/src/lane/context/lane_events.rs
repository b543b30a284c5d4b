//! Events of lanes that operations emit.

use proq_store::records::lane::LaneRecord;

use crate::event::log;
use crate::operation::journaled_operation::Operation;

impl Operation<'_> {
    /// Emits an event after the operation has succeeded.
    pub fn emit<P: Clone + 'static>(
        &self,
        event: log::EventName,
        lane: Option<&LaneRecord<P>>,
        message: impl Into<String>,
    ) {
        let (lane, message) = (lane.cloned(), message.into());
        self.defer(move |project| project.emit(event, lane.as_ref(), message));
    }
}
