//! Library example: runs a scripted agent in a lane, shows and previews the lane, lands it, and takes that back.
//!
//!     cargo run --example first_steps -- PATH-TO-REPOSITORY PATH-TO-GIT-PROQ

use std::path::Path;

use git_proq::Proq;
use git_proq::ops::start::spawn::request::SpawnRequest;
use git_proq::types::LaneName;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: first_steps PATH-TO-REPOSITORY PATH-TO-GIT-PROQ";
    let (repository, program) = (args.next().ok_or(usage)?, args.next().ok_or(usage)?);
    let print_checkout = |moment: &str| {
        let state = if Path::new(&repository).join("payments.txt").exists() { "has" } else { "lacks" };
        println!("{moment}: the checkout {state} payments.txt");
    };
    let proq = Proq::open(&repository)?.with_program(program);
    let name = Some(LaneName::parse("payments")?);
    let agent = SpawnRequest::command(["sh", "-c", "echo card > payments.txt"]);
    for spawned in proq.spawn(&SpawnRequest { name, ..agent })?.lanes {
        proq.wait(&spawned.into_started()?.name)?;
    }
    if let Some(view) = proq.show("payments")?.view {
        let commits = view.distance.map_or(0, |distance| distance.ahead);
        println!("{} is {}, {commits} ahead of {}", view.lane.name, view.state(), view.lane.base);
    }
    proq.preview("payments")?;
    print_checkout("preview");
    proq.preview_back()?;
    print_checkout("back");
    for lane in proq.merge(&["payments"])?.report.lanes {
        println!("{} {:?} on {}", lane.lane, lane.result, lane.onto);
    }
    print_checkout("merge");
    proq.undo()?;
    print_checkout("undo");
    proq.redo()?;
    print_checkout("redo");
    Ok(())
}
