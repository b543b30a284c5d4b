//! Library example: runs two lanes concurrently, then lands both.
//!
//!     cargo run --example land -- PATH-TO-REPOSITORY PATH-TO-GIT-PROQ

use git_proq::Proq;
use git_proq::ops::start::spawn::request::SpawnRequest;
use git_proq::types::LaneName;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: land PATH-TO-REPOSITORY PATH-TO-GIT-PROQ";
    let (repository, program) = (args.next().ok_or(usage)?, args.next().ok_or(usage)?);
    let proq = Proq::open(repository)?.with_program(program);
    for (name, script) in [("one", "echo 1 > one.txt"), ("two", "echo 2 > two.txt")] {
        let name = Some(LaneName::parse(name)?);
        let request = SpawnRequest { name, ..SpawnRequest::command(["sh", "-c", script]) };
        for spawned in proq.spawn(&request)?.lanes {
            spawned.into_started()?;
        }
    }
    for view in proq.list()?.views {
        for ended in proq.wait(&view.lane.name)?.waited {
            println!("{}: {}", ended.lane.name, ended.state);
        }
    }
    for lane in proq.merge_all()?.report.lanes {
        println!("{} {:?} on {}", lane.lane, lane.result, lane.onto);
    }
    Ok(())
}
