//! Library example: runs the tasks of a plan, each in a lane, and lands them on the current branch.
//!
//!     cargo run --example run_plan -- PATH-TO-REPOSITORY PATH-TO-GIT-PROQ PLAN-FILE

use git_proq::Proq;
use git_proq::ops::batches::named_plan::NamedPlan;
use git_proq::ops::batches::start::SwarmRequest;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("usage: run_plan PATH-TO-REPOSITORY PATH-TO-GIT-PROQ PLAN-FILE");
    let (repository, program, file) = (next()?, next()?, next()?);
    let plan = NamedPlan { sources: vec![file], dir: repository.clone().into(), ..NamedPlan::default() };
    let proq = Proq::open(repository)?.with_program(program);
    let batch = proq.swarm(&SwarmRequest { plan, auto_merge: true, ..SwarmRequest::default() })?.batch;
    let progress = proq.wait_for_batch(&batch.id)?;
    for task in progress.tasks {
        println!("{}: {}", task.name, task.state);
    }
    println!("{} of {} tasks landed on {}", progress.counts.landed, progress.counts.tasks, progress.base);
    Ok(())
}
