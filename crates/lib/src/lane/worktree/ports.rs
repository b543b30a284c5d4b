//! Ports of a lane for servers that its agent starts: recorded in the lane's record, not shared with other
//! lanes, and free again when the lane is removed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use proq_base::config::value_format::LANE_PORT_COUNT;
use proq_base::lane_name::LaneName;
use proq_store::Store;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::AnyLane;
use proq_store::records::ports::{PORTS_PER_LANE as PORT_COUNT, Ports, SetUpRecord};

use crate::lane::{Error, Project};

// The port range of a setting is divided into blocks of the size that a record has.
const _: () = assert!(LANE_PORT_COUNT == PORT_COUNT);

/// Maximum time for a local listener to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(200);

/// Chooses ports for a lane that has none: a block that no other lane of the repository has and that nobody
/// listens on now. Returns `None` if there is no such block, or the setting turns ports off.
///
/// The search starts at a position derived from repository and name. Lanes created at the same moment and
/// lanes of other repositories therefore rarely collide, and a name mostly gets the same ports again.
pub(crate) fn choose_ports(project: &Project, name: &LaneName) -> Option<Ports> {
    find_free_block(project, Some(name), &ports_of_other_lanes(&project.store, Some(name)), 0)
}

/// Ensures that a lane has ports before a run. Its recorded ports are retained unless another lane has them
/// by now, as may happen to a restored lane. Returns the updated lane.
///
/// # Errors
/// Fails when the lane's record cannot be read or written.
pub(crate) fn ensure_ports(project: &Project, lane: &AnyLane) -> Result<AnyLane, Error> {
    let store_lock = project.store.locks().acquire(&LockName::Store)?;
    let others = ports_of_other_lanes(&project.store, Some(&lane.name));
    let current = AnyLane::load(&project.store.layout().lane_record(&lane.name))?;
    let is_unclaimed = |block: Ports| others.iter().all(|other| !block.overlaps(*other));
    let ports = current
        .ports
        .filter(|block| is_unclaimed(*block))
        .or_else(|| find_free_block(project, Some(&lane.name), &others, 0));
    if ports == current.ports {
        return Ok(current);
    }
    project.update_lane_locked(&lane.name, &store_lock, |record| record.ports = ports)
}

/// Returns ports that belong to no lane, for processes that run next to the lanes. Each `index` gets a
/// different block.
pub(crate) fn extra_ports(project: &Project, index: usize) -> Option<Ports> {
    find_free_block(project, None, &ports_of_other_lanes(&project.store, None), index)
}

/// Returns the ports of all lanes but `name`, including lanes that are being created.
fn ports_of_other_lanes(store: &Store, name: Option<&LaneName>) -> Vec<Ports> {
    let layout = store.layout();
    let mut others = Layout::entry_names(&layout.lanes());
    others.retain(|other| name.is_none_or(|name| name.as_str() != other));
    let lane_ports = |other: String| match AnyLane::load_if_exists(&layout.record_of_lane_entry(&other)) {
        Ok(Some(lane)) => lane.ports,
        // The lane is being created, or its record is unreadable and it cannot run.
        Ok(None) | Err(_) => reserved_ports(&Layout::set_up_record_in(&layout.lanes().join(&other))),
    };
    others.into_iter().filter_map(lane_ports).collect()
}

/// Returns a free block of ports that overlaps none of `others`, after leaving out `skip` unclaimed blocks.
/// The search starts at a position derived from repository and `name`. None when there is none, or ports are
/// off.
fn find_free_block(
    project: &Project,
    name: Option<&LaneName>,
    others: &[Ports],
    skip: usize,
) -> Option<Ports> {
    let (from, to) = project.settings.port_range?;
    let blocks = (to - from + 1) / PORT_COUNT;
    let mut hasher = DefaultHasher::new();
    (project.repo.common_dir(), name.map_or("", LaneName::as_str)).hash(&mut hasher);
    let start = hasher.finish().checked_rem(u64::from(blocks))?;
    let start = u16::try_from(start).ok()?;
    let block_at = |n: u16| Ports { first: from + (start + n) % blocks * PORT_COUNT };
    let unclaimed =
        (0..blocks).map(block_at).filter(|ports| others.iter().all(|other| !ports.overlaps(*other)));
    unclaimed.skip(skip).find(|ports| ports.all().all(is_free))
}

/// Returns whether nobody listens on a local port.
fn is_free(port: u16) -> bool {
    let local = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let is_bound = local.iter().any(|address| {
        TcpListener::bind((*address, port))
            .is_err_and(|e| matches!(e.kind(), ErrorKind::AddrInUse | ErrorKind::PermissionDenied))
    });
    // On some systems a listener on all addresses does not prevent a bind to one of them.
    !is_bound && TcpStream::connect_timeout(&SocketAddr::new(local[0], port), CONNECT_TIMEOUT).is_err()
}

/// Returns the ports that are reserved for a lane without a record yet, by its set-up record.
pub(crate) fn reserved_ports(set_up_record: &Path) -> Option<Ports> {
    SetUpRecord::load_if_exists(set_up_record).ok().flatten()?.ports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_with_listener_is_not_free() {
        for address in ["127.0.0.1:0", "0.0.0.0:0"] {
            let listener = TcpListener::bind(address).unwrap();
            assert!(!is_free(listener.local_addr().unwrap().port()), "{address}");
        }
    }
}
