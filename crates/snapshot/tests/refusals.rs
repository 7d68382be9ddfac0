//! What is wrong with a file is said in one line: the file, the line, the reason.

use std::io::{self, Read, Write};

use evenkeel_snapshot::{Error, Snapshot, read, read_path, write, write_path};
use expect_test::{Expect, expect};

const GOOD: &str = "\
evenkeel-snapshot v1 brokers=3 topics=2 partitions=3 replicas=5 disks=2 moves=1 name=small
unknown cpu
broker 0 a h0 ALIVE 100 300 200 300
disk 0 /d%201 ALIVE 150
disk 0 /d2 DEAD 150
broker 1 b h1 DEAD 0 0 0 0
broker 2 h2 h2 BAD_DISKS 100.5 300 200 300
p T1 0 0,1 0 0,2,3,4@0 0,2,0,4
p T1 1 2,0 1 0,2,0,4! 0,2,5,4@1
p T2 0 2 0 0,0,0,0
move T1 0 2
";

fn parse(text: &[u8]) -> Result<Snapshot, Error> {
    read("x", text, Some(text.len() as u64), |_| {})
}

fn refused(text: impl AsRef<[u8]>) -> String {
    let error = parse(text.as_ref()).expect_err("it must be refused");
    assert!(!error.remedy().is_empty());
    error.to_string()
}

/// The complaint about the good file with one piece of it replaced.
fn replaced(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    refused(GOOD.replacen(from, to, 1))
}

fn text(snapshot: &Snapshot) -> String {
    let mut text = Vec::new();
    write(snapshot, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

#[test]
fn the_canonical_form_is_written_as_it_was_read() {
    assert_eq!(text(&parse(GOOD.as_bytes()).unwrap()), GOOD);
}

#[test]
fn other_spellings_become_canonical() {
    let other = GOOD
        .replace(
            "evenkeel-snapshot v1 brokers=3 topics=2 partitions=3 replicas=5 disks=2 moves=1",
            "evenkeel-snapshot v1 disks=2 moves=1 partitions=3 brokers=3",
        )
        .replace("DEAD 0 0 0 0", "DEAD -1.0 -1.0 -1.0 -1.0")
        .replace("broker 2 h2 h2", "broker 2 - h2")
        .replace("0,2,5,4@1", "3.0E-1,2.0,+5,4@1!")
        .replace("0,0,0,0", "-0,0.0,0e9,0");
    assert_eq!(text(&parse(other.as_bytes()).unwrap()), GOOD);
}

#[test]
fn the_order_of_disks_does_not_matter() {
    let other = GOOD.replacen(
        "disk 0 /d%201 ALIVE 150\ndisk 0 /d2 DEAD 150",
        "disk 0 /d2 DEAD 150\ndisk 0 /d%201 ALIVE 150",
        1,
    );
    assert_ne!(other, GOOD);
    assert_eq!(text(&parse(other.as_bytes()).unwrap()), GOOD);
}

#[test]
fn a_file_cut_at_the_end_of_a_line_is_refused_though_its_header_says_the_least() {
    let least = GOOD.replacen("topics=2 ", "", 1).replacen("replicas=5 ", "", 1);
    assert!(parse(least.as_bytes()).is_ok());
    for end in least.match_indices('\n').map(|(at, _)| at + 1).filter(|end| *end < least.len()) {
        refused(&least[..end]);
    }
}

#[test]
fn each_complaint_names_the_line_and_the_reason() {
    let complaints = [
        refused(""),
        refused("hello world\n"),
        refused([0xff, 0xfe, 0, 1, b'\n']),
        replaced(" v1 ", " v2 "),
        replaced("brokers=3", "brokers=four"),
        replaced("name=small", "name=small name=large"),
        replaced("name=small", "small"),
        replaced("name=small", "na%6De=small"),
        replaced("name=small", "-=small"),
        replaced("name=small", "na\tme=small"),
        replaced("replicas=5", "replicas=6"),
        replaced("topics=2", "topics=3"),
        replaced("unknown cpu", "unknown memory"),
        replaced("unknown cpu", "unknown"),
        replaced("broker 1 b", "broker 0 b"),
        replaced("broker 1 b h1", "broker 1 b h0"),
        replaced("ALIVE 100", "ALIVE 0"),
        replaced("ALIVE 100", "ALIVE NaN"),
        replaced("ALIVE 100", "ALIVE 1e-200"),
        replaced("ALIVE 100", "AWAKE 100"),
        replaced("BAD_DISKS 100.5 300", "BAD_DISKS 100.5"),
        replaced("broker 0", "broker -1"),
        replaced("disk 0 /d2", "disk 9 /d2"),
        replaced("/d2", "/d%201"),
        replaced("DEAD 150", "DEAD 0"),
        replaced("DEAD 150", "DEAD 1e-200"),
        replaced("h2 h2", "h2 h%2"),
        replaced("p T1 0", "q T1 0"),
        replaced("p T1 0 0,1", "p T1 0 0,7"),
        replaced("p T1 0 0,1", "p T1 0 0,0"),
        replaced("p T1 0 0,1", "p T1 0 0,"),
        replaced("p T1 0 0,1 0", "p T1 0 0,1 2"),
        replaced("p T1 1", "p T1 0"),
        replaced("p T1 1", "p - 1"),
        replaced("0,2,3,4@0", "NaN,2,3,4@0"),
        replaced("0,2,3,4@0", "0.1,-2,3,4@0"),
        replaced("0,2,3,4@0", "0.1,2,3,4@2"),
        replaced("0,2,3,4@0", "0.1,2,3"),
        replaced("@0 0,2,0,4", "@0 0.05+1,2,0,4"),
        replaced("0,2,3,4@0", "0.1,2,1+3,4@0"),
        replaced("0,2,3,4@0", "0.1+-2,2,3,4@0"),
        replaced("p T2 0 2 0 0,0,0,0", "p T2 0 2 0"),
        replaced("p T2 0 2 0 0,0,0,0", "p T2 0 2 0 0,0,0,0 0,0,0,0"),
        replaced("p T2 0 2 0 0,0,0,0", "p T2"),
        replaced("p T2 0", "\np T2 0"),
        replaced("p T2 0", "broker 5 a h5 ALIVE 1 1 1 1\np T2 0"),
        replaced("move T1 0 2\n", "move T1 0 2\np T3 0 2 0 0,0,0,0\n"),
        replaced("move T1 0 2", "move T1 0 8"),
        replaced("move T1 0 2", "move T9 0 2"),
        replaced("move T1 0 2", "move T1 0 0"),
        replaced("move T1 0 2", "move T1 1 2"),
        replaced("move T1 0 2\n", "move T1 0 2\n\0\0\0"),
        replaced("move T1 0 2\n", "move T1 0 2"),
        refused("evenkeel-snapshot v1 brokers=0 partitions=0\n"),
        replaced("brokers=3 ", ""),
        replaced("partitions=3 ", ""),
        replaced("disks=2 ", ""),
        replaced("moves=1 ", ""),
        refused([GOOD.as_bytes(), b"p T\xc3( 0 0 0 0,0,0,0\n"].concat()),
        refused(format!("evenkeel-snapshot v1\n{}", "x".repeat(2 << 20))),
    ];
    expect![[r#"
        x:1: the file is empty
        x:1: not a snapshot: the first line begins with `hello`, not with `evenkeel-snapshot`
        x:1: not a snapshot: the first line begins with `��\0\u{1}`, not with `evenkeel-snapshot`
        x:1: version `v2` of the format is not known; this program reads v1
        x:1: a header entry is `brokers=four`, it must be a whole number
        x:1: the header says `name` twice
        x:1: a header entry is `small`, it must be key=value
        x:1: a header entry is `na%6De=small`, it must be key=value, the key neither `-` nor with % or a control character in it
        x:1: a header entry is `-=small`, it must be key=value, the key neither `-` nor with % or a control character in it
        x:1: a header entry is `na\tme=small`, it must be key=value, the key neither `-` nor with % or a control character in it
        x:11: the header announces 6 replicas, there are 5: the file was cut off or edited
        x:11: the header announces 3 topics, there are 2: the file was cut off or edited
        x:2: the resource is `memory`, it must be cpu, networkInbound, networkOutbound or disk
        x:2: unknown has 0 fields, it needs 1 to 4
        x:6: broker 0 is listed twice
        x:6: host `h0` is in rack `a` and in rack `b`
        x:3: broker 0: cpu capacity is 0, it must be a positive number
        x:3: broker 0: cpu capacity is NaN, it must be a positive number
        x:3: broker 0: cpu capacity is 1e-200, it must be at least 0.000001
        x:3: the state is `AWAKE`, it must be ALIVE, NEW, DEAD, DEMOTED or BAD_DISKS
        x:7: broker has 7 fields, it needs 8
        x:3: a broker's id is `-1`, it must be a whole number from 0 to 2147483647
        x:5: broker 9 is not listed above
        x:5: broker 0: disk `/d 1` is listed twice
        x:5: broker 0: disk `/d2` needs a positive capacity
        x:5: broker 0: disk `/d2` needs a capacity of at least 0.000001
        x:7: the host is `h%2`, it must be a name without spaces, with %XX for bytes that cannot stand there
        x:8: `q` is no kind of record; there are unknown, broker, disk, p and move
        x:8: T1-0: broker 7 is not listed
        x:8: T1-0: two replicas on broker 0
        x:8: a broker's id is ``, it must be a whole number from 0 to 2147483647
        x:8: T1-0: the leader is replica 2 of 2
        x:9: T1-0: is listed twice
        x:9: the topic is `-`, it must be a name
        x:8: T1-0: cpu load NaN on broker 0, it must be a number that is not negative
        x:8: T1-0: networkInbound load -2 on broker 0, it must be a number that is not negative
        x:8: T1-0: broker 0 has no disk 2
        x:8: a load is `0.1,2,3`, it must be cpu,in,out,disk in numbers, then @ and the disk's position if disks are listed, then ! if offline
        x:8: a load is `0.05+1,2,0,4`, it must be cpu,in,out,disk in numbers, then @ and the disk's position if disks are listed, then ! if offline
        x:8: a load is `0.1,2,1+3,4@0`, it must be cpu,in,out,disk in numbers, then @ and the disk's position if disks are listed, then ! if offline
        x:8: T1-0: leading costs -2 cpu, it must be a number that is not negative
        x:10: p has 4 fields, it needs 5 for 1 replicas
        x:10: p has 6 fields, it needs 5 for 1 replicas
        x:10: p has 1 fields, it needs at least 5
        x:10: `` is no kind of record; there are unknown, broker, disk, p and move
        x:10: broker after partitions: the order is brokers and disks, then partitions, then moves
        x:12: p after moves: the order is brokers and disks, then partitions, then moves
        x:11: broker 8 is not listed above
        x:11: T9-0: is said to be moving, but is not listed
        x:11: `T1-0` has a replica on broker 0 already, so none is on its way there
        x:11: `T1-1` has a replica on broker 2 already, so none is on its way there
        x:12: the file ends in the middle: it was cut off
        x:11: the file ends in the middle: it was cut off
        x:1: there is no broker that is alive
        x:1: the header does not say how many brokers there are, as in brokers=3
        x:1: the header does not say how many partitions there are, as in partitions=3
        x:1: the header does not say how many disks there are, as in disks=3
        x:1: the header does not say how many moves there are, as in moves=3
        x:12: not UTF-8 from byte 4 of the line on
        x:2: longer than 1048576 bytes
    "#]].assert_eq(&(complaints.join("\n") + "\n"));
}

#[test]
fn a_file_cut_off_anywhere_is_refused() {
    for length in 0..GOOD.len() {
        refused(&GOOD.as_bytes()[..length]);
    }
    let packed = packed(GOOD.as_bytes());
    for length in 0..packed.len() {
        refused(&packed[..length]);
    }
    assert_eq!(refused(&packed[..packed.len() - 3]), "x:12: the file ends in the middle: it was cut off");
}

#[test]
fn damaged_compressed_data_are_refused() {
    let good = packed(GOOD.as_bytes());
    let mut wrong_sum = good.clone();
    let sum = wrong_sum.len() - 8;
    wrong_sum[sum] ^= 1;
    let garbage = [&good[..2], b"garbage that goes on"].concat();
    let complaints = [
        refused(wrong_sum),
        refused([&good[..], b"garbage"].concat()),
        // Not a letter of text comes out of these, and yet they are not empty.
        refused(garbage),
        refused(&good[..2]),
        refused(&good[..12]),
    ];
    let expected: Expect = expect![[r#"
        x:12: the compressed data are damaged: corrupt gzip stream does not have a matching checksum
        x:12: the file ends in the middle: it was cut off
        x:1: the compressed data are damaged: invalid gzip header
        x:1: the file ends in the middle: it was cut off
        x:1: the file ends in the middle: it was cut off
    "#]];
    expected.assert_eq(&(complaints.join("\n") + "\n"));
}

#[test]
fn parts_that_were_compressed_apart_are_one_file() {
    let (one, other) = GOOD.as_bytes().split_at(100);
    assert_eq!(parse(&[packed(one), packed(other)].concat()).unwrap(), parse(GOOD.as_bytes()).unwrap());
}

#[test]
fn a_name_that_ends_in_gz_is_compressed_and_found_out_by_its_content() {
    let directory = tempfile::tempdir().unwrap();
    let snapshot = parse(GOOD.as_bytes()).unwrap();
    let (plain, gz) = (directory.path().join("plain"), directory.path().join("packed.gz"));
    write_path(&plain, &snapshot).unwrap();
    write_path(&gz, &snapshot).unwrap();
    assert_eq!(std::fs::read(&plain).unwrap(), GOOD.as_bytes());
    assert_eq!(std::fs::read(&gz).unwrap()[..2], [0x1f, 0x8b]);
    std::fs::rename(&gz, directory.path().join("other")).unwrap();
    let mut heard = Vec::new();
    let again = read_path(&directory.path().join("other"), |progress| heard.push(progress)).unwrap();
    assert_eq!(again, snapshot);
    let last = heard.last().unwrap();
    assert_eq!(Some(last.read), last.total);
    assert!(heard.is_sorted_by_key(|progress| progress.read));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = read_path("/nowhere/x.gz".as_ref(), |_| {}).unwrap_err();
    assert_eq!(error.to_string(), "/nowhere/x.gz: could not be opened");
}

#[test]
fn a_failing_medium_is_not_called_a_bad_file() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is on fire"))
        }
    }
    let error = read("x", GOOD.as_bytes()[..150].chain(Failing), None, |_| {}).unwrap_err();
    assert!(matches!(error, Error::Read { .. }), "{error}");
    assert!(error.to_string().starts_with("x:"), "{error}");
}

#[test]
fn a_note_that_would_break_the_header_is_not_written() {
    let mut snapshot = parse(GOOD.as_bytes()).unwrap();
    for key in ["", "two words", "a=b", "brokers"] {
        snapshot.notes = [(key.to_owned(), String::new())].into();
        assert!(write(&snapshot, io::sink()).is_err(), "{key}");
    }
    snapshot.notes = [("from".to_owned(), "the north = cold".to_owned())].into();
    assert_eq!(parse(text(&snapshot).as_bytes()).unwrap(), snapshot);
}
