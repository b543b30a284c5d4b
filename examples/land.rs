//! Library example: runs two lanes concurrently, then lands both.
//!
//!     cargo run --example land -- PATH-TO-REPOSITORY PATH-TO-GIT-PROQ

use git_proq::{Proq, Spawn};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: land PATH-TO-REPOSITORY PATH-TO-GIT-PROQ";
    let (repository, program) = (args.next().ok_or(usage)?, args.next().ok_or(usage)?);
    let proq = Proq::open(repository)?.with_program(program);
    for (name, script) in [("one", "echo 1 > one.txt"), ("two", "echo 2 > two.txt")] {
        proq.spawn(&Spawn::command(["sh", "-c", script]).named(name))?;
    }
    for lane in proq.list()? {
        let ended = proq.wait(&lane.name)?;
        println!("{}: {}", ended.name, ended.state);
    }
    for lane in proq.merge_all()?.lanes {
        println!("{} {:?} on {}", lane.lane, lane.result, lane.onto);
    }
    Ok(())
}
