//! Library example: discards lanes after saving their uncommitted and unlanded work.
//!
//!     cargo run --example throw_away -- PATH-TO-REPOSITORY LANE...

use git_proq::Proq;
use git_proq::ops::remove::discard::DiscardRequest;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let proq = Proq::open(args.next().ok_or("usage: throw_away PATH-TO-REPOSITORY LANE...")?)?;
    let lanes = args.map(|name| proq.project.find_any_lane(&name)).collect::<Result<_, _>>()?;
    for removal in proq.discard(&DiscardRequest { lanes, force: true })?.lanes {
        match removal.error {
            None => println!("{}: gone", removal.lane),
            Some(e) => println!("{}: kept, {e}", removal.lane),
        }
    }
    Ok(())
}
