//! Library example: lands existing lanes in the order in which they are named.
//!
//!     cargo run --example in_order -- PATH-TO-REPOSITORY LANE...

use git_proq::Proq;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let proq = Proq::open(args.next().ok_or("usage: in_order PATH-TO-REPOSITORY LANE...")?)?;
    let lanes: Vec<String> = args.collect();
    for lane in proq.merge(&lanes)?.report.lanes {
        println!("{} {:?} on {}", lane.lane, lane.result, lane.onto);
    }
    Ok(())
}
