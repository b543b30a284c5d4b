//! Owns which ports a lane has for servers of its own: they stand in its record, nobody else has them, and they are free again when
//! the lane is gone.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::set_up::reserved_ports;
use super::{Error, Project};
use crate::config::PORTS_OF_A_LANE;
use crate::store::records::{AnyLane, PORT_COUNT, Ports};
use crate::store::{LockName, Record};

// A range that a setting may have holds the ports of one lane, as a record has them.
const _: () = assert!(PORTS_OF_A_LANE == PORT_COUNT);

/// How long somebody who listens may take to answer a call from the same machine.
const ANSWER: Duration = Duration::from_millis(200);

/// Ports for a lane that has none: those that no other lane of the repository has, and nobody listens at now. None when there are
/// no such, or none are wanted.
///
/// The search begins at a place that repository and name decide. So lanes that are made at the same moment, and lanes of other
/// repositories, hardly ever meet, and a name mostly gets the same again.
pub(super) fn choose(project: &Project, name: &str) -> Option<Ports> {
    search(project, name, &of_others(project, name), 0)
}

/// Has a lane that is about to have a run keep its ports, or get some: one that came back may find them given away. The lane as it
/// is then.
///
/// # Errors
/// When its record cannot be read or written.
pub(crate) fn keep_ports(project: &Project, lane: &AnyLane) -> Result<AnyLane, Error> {
    let store = project.store.locks().take(&LockName::Store)?;
    let others = of_others(project, &lane.name);
    let now = AnyLane::load(&project.store.layout().lane_record(&lane.name))?;
    let alone = |own: Ports| others.iter().all(|other| !own.meets(*other));
    let ports = now.port.filter(|own| alone(*own)).or_else(|| search(project, &lane.name, &others, 0));
    if ports == now.port {
        return Ok(now);
    }
    project.update_lane_held(&lane.name, &store, |record| record.port = ports)
}

/// Ports for what runs beside the lanes, by number: no lane's.
pub(crate) fn ports_beside(project: &Project, number: usize) -> Option<Ports> {
    search(project, "", &of_others(project, ""), number)
}

/// What the other lanes have, those that are being made too.
fn of_others(project: &Project, name: &str) -> Vec<Ports> {
    let layout = project.store.layout();
    let others = layout.names_in("lanes").into_iter().filter(|other| other != name);
    let ports = |other: String| match AnyLane::find(&layout.lane_record(&other)) {
        Ok(Some(lane)) => lane.port,
        // It is just being made, or cannot run.
        Ok(None) | Err(_) => reserved_ports(project, &other),
    };
    others.filter_map(ports).collect()
}

fn search(project: &Project, name: &str, others: &[Ports], skip: usize) -> Option<Ports> {
    let (from, to) = project.settings.ports?;
    let blocks = (to - from + 1) / PORT_COUNT;
    let mut hasher = DefaultHasher::new();
    (project.repo.common_dir(), name).hash(&mut hasher);
    let start = hasher.finish().checked_rem(u64::from(blocks))?;
    let start = u16::try_from(start).ok()?;
    let block = |n: u16| Ports { first: from + (start + n) % blocks * PORT_COUNT };
    let unclaimed = (0..blocks).map(block).filter(|ports| others.iter().all(|other| !ports.meets(*other)));
    unclaimed.skip(skip).find(|ports| ports.all().all(is_free))
}

/// Whether nobody listens at a port. This machine alone is asked.
fn is_free(port: u16) -> bool {
    let local = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let taken = local.iter().any(|address| {
        TcpListener::bind((*address, port))
            .is_err_and(|e| matches!(e.kind(), ErrorKind::AddrInUse | ErrorKind::PermissionDenied))
    });
    // Who listens at all addresses does not keep everybody from one of them, on some systems.
    !taken && TcpStream::connect_timeout(&SocketAddr::new(local[0], port), ANSWER).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_at_which_somebody_listens_is_not_free() {
        for address in ["127.0.0.1:0", "0.0.0.0:0"] {
            let listener = TcpListener::bind(address).unwrap();
            assert!(!is_free(listener.local_addr().unwrap().port()), "{address}");
        }
    }
}
