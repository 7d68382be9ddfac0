//! From a [`Snapshot`] to its canonical text: one cluster, one sequence of bytes.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use evenkeel_balancer::cluster::{BrokerState, Cluster, DiskState, PartitionView, ReplicaSpec, Resource};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::words::encode;
use crate::{Error, MAGIC, STANDARD_STREAM, Snapshot, TOTALS, VERSION};

/// The fastest: on columns of random digits the usual level takes six times as long and gains an eighth.
const LEVEL: Compression = Compression::fast();

/// Writes `snapshot` to the file at `path`: compressed if the name ends in `.gz`; `-` is standard output.
pub fn write_path(path: &Path, snapshot: &Snapshot) -> Result<(), Error> {
    write_file(path, |out| write(snapshot, out))
        .map_err(|source| Error::Write { file: path.display().to_string(), source })
}

/// Lets `fill` write the file at `path`, whatever is to be in it: compressed if the name ends in `.gz`; `-` is standard
/// output.
pub fn write_file<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    if path.as_os_str() == STANDARD_STREAM {
        return fill(&mut io::stdout().lock());
    }
    let mut file = File::create(path)?;
    if path.extension().is_some_and(|extension| extension == "gz") {
        let mut packed = GzEncoder::new(file, LEVEL);
        fill(&mut packed)?;
        packed.finish()?;
        return Ok(());
    }
    fill(&mut file)
}

/// Writes the text of `snapshot` to `out`.
pub fn write(snapshot: &Snapshot, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(128 * 1024, out);
    let cluster = &snapshot.cluster;
    header(snapshot, &mut out)?;
    if cluster.unknown().iter().next().is_some() {
        write!(out, "unknown")?;
        cluster.unknown().iter().try_for_each(|resource| write!(out, " {}", resource.name()))?;
        writeln!(out)?;
    }
    brokers(cluster, &mut out)?;
    cluster.partitions().try_for_each(|view| partition(cluster, view, &mut out))?;
    for pending in cluster.pending_moves() {
        writeln!(out, "move {} {} {}", encode(&pending.topic), pending.partition, pending.to)?;
    }
    out.flush()
}

fn header(snapshot: &Snapshot, out: &mut impl Write) -> io::Result<()> {
    let cluster = &snapshot.cluster;
    write!(out, "{MAGIC} {VERSION} brokers={} topics={}", cluster.brokers().len(), cluster.topics().len())?;
    write!(out, " partitions={} replicas={}", cluster.partition_count(), cluster.replica_count())?;
    // Few clusters have these, so only they mention them.
    let disks = cluster.brokers().iter().map(|broker| broker.disks.len()).sum();
    for (key, count) in [("disks", disks), ("moves", cluster.pending_moves().len())] {
        if count > 0 {
            write!(out, " {key}={count}")?;
        }
    }
    for (key, value) in &snapshot.notes {
        if key.is_empty() || key.contains('=') || encode(key) != *key || TOTALS.contains(&key.as_str()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{key:?} cannot be the key of a note")));
        }
        write!(out, " {key}={}", encode(value))?;
    }
    writeln!(out)
}

fn brokers(cluster: &Cluster, out: &mut impl Write) -> io::Result<()> {
    for broker in cluster.brokers() {
        let (rack, host) = (encode(&cluster.racks()[broker.rack]), encode(&cluster.hosts()[broker.host]));
        write!(out, "broker {} {rack} {host} {}", broker.id, broker_state(broker.state))?;
        broker.capacity.iter().try_for_each(|capacity| write!(out, " {capacity}"))?;
        writeln!(out)?;
        for disk in &broker.disks {
            let (name, state) = (encode(&disk.name), disk_state(disk.state));
            writeln!(out, "disk {} {name} {state} {}", broker.id, disk.capacity)?;
        }
    }
    Ok(())
}

fn partition(cluster: &Cluster, view: PartitionView<'_>, out: &mut impl Write) -> io::Result<()> {
    write!(out, "p {} {} ", encode(view.topic()), view.number())?;
    for (position, replica) in view.replicas().enumerate() {
        let separator = if position == 0 { "" } else { "," };
        write!(out, "{separator}{}", replica.broker)?;
    }
    write!(out, " {}", view.leader())?;
    let as_usual = view.splits_as_usual();
    for (position, (replica, following)) in view.replicas().zip(view.following()).enumerate() {
        let in_parts = position == view.leader() && !as_usual;
        let load = if in_parts { following.load } else { replica.load };
        // Adding zero makes the negative zero positive: they are equal, so they must look it.
        let [cpu, nw_in, nw_out, disk] = Resource::ALL.map(|resource| load.of(resource) + 0.0);
        if in_parts {
            let leading = view.leading();
            write!(out, " {cpu}+{},{nw_in},{nw_out}+{},{disk}", leading.cpu + 0.0, leading.nw_out + 0.0)?;
        } else {
            write!(out, " {cpu},{nw_in},{nw_out},{disk}")?;
        }
        if let Some(disk) = replica.disk {
            write!(out, "@{disk}")?;
        }
        if replica.offline && !is_implied(cluster, &replica) {
            write!(out, "!")?;
        }
    }
    writeln!(out)
}

/// Whether the replica is offline without saying so: its broker is dead, or its disk.
fn is_implied(cluster: &Cluster, replica: &ReplicaSpec) -> bool {
    cluster.broker(replica.broker).is_some_and(|broker| {
        let disk = replica.disk.and_then(|disk| broker.disks.get(disk));
        !broker.is_alive() || disk.is_some_and(|disk| disk.state == DiskState::Dead)
    })
}

fn broker_state(state: BrokerState) -> &'static str {
    match state {
        BrokerState::Alive => "ALIVE",
        BrokerState::New => "NEW",
        BrokerState::Dead => "DEAD",
        BrokerState::Demoted => "DEMOTED",
        BrokerState::BadDisks => "BAD_DISKS",
    }
}

fn disk_state(state: DiskState) -> &'static str {
    match state {
        DiskState::Alive => "ALIVE",
        DiskState::Dead => "DEAD",
        DiskState::Removed => "REMOVED",
    }
}
