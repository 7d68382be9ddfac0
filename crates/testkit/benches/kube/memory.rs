//! What a server holds in memory: empty, and with many objects in it.

use anyhow::{Result, ensure};
use evenkeel_testkit::measure::{Cost, Measurement, Unit, grouped};
use tokio::time::sleep;

use crate::{contestant::Running, load, objects, sizes::Sizes};

/// Reads the memory of a fresh server, fills it, lets it rest, and reads again.
pub(crate) async fn measure(server: &Running, sizes: &Sizes) -> Result<Vec<Measurement>> {
    let empty = server.cost()?;
    let maps = load::fill(server, sizes).await?;
    sleep(sizes.rest).await;
    let parts = server.costs()?;

    // After reading, because counting makes garbage, too.
    let count = objects::count(&maps).await?;
    ensure!(count == sizes.stored, "{} objects were written, and {count} are there", sizes.stored);

    let full: Cost = parts.iter().map(|(_, cost)| *cost).sum();
    let what = format!("resident memory, {} objects", grouped(sizes.stored));
    let mut measured = vec![
        Measurement::new("resident memory, empty", Unit::Mebibytes, mebibytes(empty.memory.resident)),
        Measurement::new(&what, Unit::Mebibytes, mebibytes(full.memory.resident)),
        Measurement::new(format!("{what}, without mapped files"), Unit::Mebibytes, mebibytes(full.memory.anonymous)),
    ];
    if parts.len() > 1 {
        measured.extend(parts.iter().map(|(role, cost)| {
            Measurement::new(format!("{what}, {role} alone"), Unit::Mebibytes, mebibytes(cost.memory.resident))
        }));
    }
    Ok(measured)
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
