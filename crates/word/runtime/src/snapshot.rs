//! What the supervisor knows, for pictures of a running host (`mullion map`).

use crate::host::Host;
use crate::world::world;
use mullion_supervisor::Snapshot;

impl Host {
    /// The state of the supervisor: domains by their numbers, and who may do what where. Copies all of it.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        world().supervisor().snapshot()
    }
}
