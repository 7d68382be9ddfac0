//! From a [`Snapshot`] to its canonical text: one cluster, one sequence of bytes.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use evenkeel_balancer::cluster::{BrokerState, Cluster, DiskState, PartitionView, ReplicaSpec, Resource};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::words::{encode, is_plain};
use crate::{Error, MAGIC, STANDARD_STREAM, Snapshot, TOTALS, VERSION};

/// The fastest: on columns of random digits the usual level takes six times as long and gains an eighth.
const LEVEL: Compression = Compression::fast();

/// Writes `snapshot` to the file at `path`: compressed if the name ends in `.gz`; `-` is standard output.
pub fn write_path(path: &Path, snapshot: &Snapshot) -> Result<(), Error> {
    write_file(path, |out| write(snapshot, out))
        .map_err(|source| Error::Write { file: path.display().to_string(), source })
}

/// Lets `fill` write the file at `path`, whatever is to be in it: compressed if the name ends in `.gz`; `-` is standard
/// output. Under its name it is there as a whole or not at all; what was there before stays if it cannot be written.
pub fn write_file<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    if path.as_os_str() == STANDARD_STREAM {
        return fill(&mut io::stdout().lock());
    }
    // Pipes, devices and what is only a name for an open file cannot be replaced.
    if path.starts_with("/dev") || (path.exists() && !path.is_file()) {
        return fill_file(File::create(path)?, path, fill);
    }
    // Behind a link it is the file that is replaced, not the link.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let draft = draft_of(&target);
    // Where nothing can be put beside it, it is written in its place.
    let Ok(file) = File::create(&draft) else { return fill_file(File::create(path)?, path, fill) };
    // Who may read what was there may read what comes.
    let kept = target.metadata().map_or(Ok(()), |known| file.set_permissions(known.permissions()));
    let filled = kept.map_err(E::from).and_then(|()| fill_file(file, path, fill));
    let outcome = filled.and_then(|()| fs::rename(&draft, &target).map_err(E::from));
    if outcome.is_err() {
        // The error itself is what is told.
        let _ = fs::remove_file(&draft);
    }
    outcome
}

/// Where a file is written before it gets its name: beside it, so that it only has to be renamed.
fn draft_of(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}

fn fill_file<E: From<io::Error>>(
    mut file: File,
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
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
        if !is_plain(key) || key.contains('=') || TOTALS.contains(&key.as_str()) {
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
        broker.spec(cluster).capacity.iter().try_for_each(|capacity| write!(out, " {capacity}"))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A full disk in the middle of it.
    #[test]
    fn a_file_that_could_not_be_written_leaves_the_old_one_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["plan.json", "plan.gz"] {
            let path = folder.path().join(name);
            let full = |out: &mut dyn Write| {
                out.write_all(b"half of i")?;
                Err(io::Error::from(io::ErrorKind::StorageFull))
            };
            assert!(write_file(&path, full).is_err());
            assert!(!path.exists(), "{name}");
            fs::write(&path, "what was there").unwrap();
            assert!(write_file(&path, full).is_err());
            assert_eq!(fs::read_to_string(&path).unwrap(), "what was there");
            fs::remove_file(&path).unwrap();
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let path = folder.path().join("plan.json");
        write_file(&path, |out: &mut dyn Write| out.write_all(b"whole")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
