//! `evenkeel plan`, as a program.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const BROKERS: &str = "\
broker 0 a h0 ALIVE 100 300000 200000 300000
broker 1 a h1 ALIVE 100 300000 200000 300000
broker 2 b h2 ALIVE 100 300000 200000 300000
";

/// Both replicas of T-0 are in rack a.
const PARTITIONS: &str = "\
p T 0 0,1 0 8,9000,12000,20000 1,9000,0,20000
p T 1 0,2 0 8,9000,12000,20000 1,9000,0,20000
";

fn run(arguments: &[&str], snapshot: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(["plan", "--snapshot", "-"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // What is refused before the snapshot is read leaves a pipe that nobody reads.
    let _ = child.stdin.take().unwrap().write_all(snapshot.as_bytes());
    child.wait_with_output().unwrap()
}

fn small() -> String {
    format!("evenkeel-snapshot v1 brokers=3 partitions=2\n{BROKERS}{PARTITIONS}")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).unwrap()
}

/// Nothing on standard output, one line on standard error.
fn refused(arguments: &[&str], snapshot: &str, code: i32, says: &str) {
    let output = run(arguments, snapshot);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert_eq!(text(&output.stdout), "");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains(says), "{said}");
}

#[test]
fn a_plan_is_printed_in_every_format() {
    let goals = ["--goals", "RackAwareGoal"];
    let print = |format: &[&str]| {
        let output = run(&[&goals[..], format].concat(), &small());
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "");
        text(&output.stdout)
    };
    assert!(print(&[]).contains("RackAwareGoal  hard  FIXED"));
    assert!(print(&["--output", "json"]).contains("\"dataToMoveMB\": 20000.0"));
    assert!(print(&["--output", "yaml"]).contains("mode: rebalance"));
    assert!(print(&["--output", "snapshot"]).starts_with("evenkeel-snapshot v1 brokers=3"));
    let there: serde_json::Value = serde_json::from_str(&print(&["--output", "reassignment"])).unwrap();
    let back: serde_json::Value = serde_json::from_str(&print(&["--output", "reassignment", "--rollback"])).unwrap();
    assert_eq!(back["partitions"][0]["replicas"], serde_json::json!([0, 1]));
    assert_eq!(there["partitions"][0]["topic"], "T");
    assert_ne!(there["partitions"][0]["replicas"], back["partitions"][0]["replicas"]);
}

/// 2 to the power of 32 is one more than fits into the number that work is dealt out by.
#[test]
fn any_number_of_threads_will_do() {
    let with = |threads: &str| {
        let output = run(&["--threads", threads, "--output", "json"], &small());
        assert!(output.status.success(), "{threads}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    assert_eq!(with("4294967296"), with("1"));
}

#[test]
fn the_answer_can_go_to_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("plan.json");
    let output = run(&["--goals", "RackAwareGoal", "--output", "json", "-o", path.to_str().unwrap()], &small());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(report["summary"]["replicaMoves"], 1);
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    refused(&[], &small().replace("brokers=3", "brokers=4"), 2, "evenkeel: -:6: ");
    refused(&[], "not a snapshot\n", 2, "evenkeel: -:1: ");
    refused(&["--goals", "RackAwarGoal"], &small(), 2, "did you mean `RackAwareGoal`?");
    refused(&["--exclude-topics", "a(b"], &small(), 2, "--exclude-topics a(b: unclosed group");
    refused(&["--mode", "remove-brokers", "--brokers", "9"], &small(), 2, "broker 9 is not part of the cluster");
    refused(&["--exclude-brokers-for-leadership", "9"], &small(), 2, "broker 9 is not part of the cluster");
    refused(&["--exclude-brokers-for-replica-moves", "9"], &small(), 2, "broker 9 is not part of the cluster");
    refused(&["--destination-brokers", "9"], &small(), 2, "broker 9 is not part of the cluster");
    let demoted = small().replacen("h2 ALIVE", "h2 DEMOTED", 1);
    let added = ["--mode", "add-brokers", "--brokers", "2"];
    refused(&added, &demoted, 2, "--brokers 2: the broker is demoted, and would lead again if it were new");
    let dead = small().replacen("h1 ALIVE", "h1 DEAD", 1);
    refused(&["--destination-brokers", "1"], &dead, 2, "--destination-brokers 1: the broker is dead");
    refused(
        &["--remove-broker", "1", "--destination-brokers", "1"],
        &small(),
        2,
        "broker 1 is to be removed, and yet a destination",
    );
    refused(&["--set", "disk.threshold=2"], &small(), 2, "did you mean `disk.balance.threshold`?");
    let two = ["--max-replicas-per-broker", "7", "--set", "max.replicas.per.broker=5"];
    refused(&two, &small(), 2, "--max-replicas-per-broker and --set max.replicas.per.broker say the same");
    refused(&["--skip-urp-demotion"], &small(), 2, "--skip-urp-demotion goes with --mode demote only");
    refused(&["--disk-bandwidth", "much"], &small(), 2, "--disk-bandwidth much: not a rate");
    refused(&["--lose-rack", "q"], &small(), 2, "there are a, b");
    refused(&["--rollback"], &small(), 2, "--output reassignment");
    refused(&["--goals", "DiskUsageGoal"], &small(), 2, "did you mean `DiskUsageDistributionGoal`?");
    let unmeasured = format!("evenkeel-snapshot v1 brokers=3 partitions=2\nunknown cpu\n{BROKERS}{PARTITIONS}");
    refused(&["--goals", "CpuCapacityGoal"], &unmeasured, 2, "cpu not measured");
}

/// Numbers that nobody measured are neither told nor kept to, whatever the snapshot says of them.
#[test]
fn data_that_nobody_measured_is_not_told_as_a_number() {
    let unknown = small().replacen("broker 0", "unknown disk\nbroker 0", 1);
    refused(&["--max-data", "1GB"], &unknown, 2, "--max-data cannot be kept: nobody measured how large replicas are");
    let output = run(&["--goals", "RackAwareGoal", "--output", "json"], &unknown);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let summary = &report["summary"];
    assert_eq!(summary["replicaMoves"], 1);
    for number in ["dataToMoveMB", "intraBrokerDataToMoveMB", "leastDataToMoveMB", "dataRatio"] {
        assert!(summary[number].is_null(), "{number}: {summary}");
    }
    assert!(summary["minutes"]["expected"].is_null() && summary["minutes"]["oneByOne"].is_null(), "{summary}");
    assert!(report["changes"][0]["dataToMoveMB"].is_null());
    let table = text(&run(&["--goals", "RackAwareGoal"], &unknown).stdout);
    assert!(table.contains("data         not known: nobody measured how large replicas are"), "{table}");
}

#[test]
fn a_snapshot_that_cannot_be_says_where_and_what() {
    for (good, bad, says) in [
        ("v1 brokers", "v1 a%b=1 brokers", "evenkeel: -:1: a header entry is `a%b=1`"),
        ("p T 0 0,1 0", "p T 0 0,7 0", "evenkeel: -:5: T-0: broker 7 is not listed"),
        ("p T 0 0,1 0", "p T 0 0,0 0", "evenkeel: -:5: T-0: two replicas on broker 0"),
        ("p T 1", "p T 0", "evenkeel: -:6: T-0: is listed twice"),
        ("8,9000", "NaN,9000", "evenkeel: -:5: T-0: cpu load NaN on broker 0"),
        ("8,9000", "8,-9000", "evenkeel: -:5: T-0: networkInbound load -9000 on broker 0"),
        ("h0 ALIVE 100", "h0 ALIVE 0", "evenkeel: -:2: broker 0: cpu capacity is 0"),
        ("h1 ALIVE 100", "h1 DEAD -5", "evenkeel: -:3: broker 1: cpu capacity is -5"),
        ("h1 ALIVE 100", "h1 DEAD NaN", "evenkeel: -:3: broker 1: cpu capacity is NaN"),
        ("broker 2 b h2", "broker 2 b h1", "evenkeel: -:4: host `h1` is in rack `a` and in rack `b`"),
        ("1,9000,0,20000\n", "1,9000,0", "evenkeel: -:5: "),
    ] {
        refused(&[], &small().replacen(good, bad, 1), 2, says);
    }
}

#[test]
fn the_cluster_after_a_plan_is_planned_for_again_without_a_change() {
    // The replicas of each partition weigh differently, and leadership changes hands.
    let partitions: String = (0..24)
        .map(|number| {
            let (size, follower) = (1000 + 137 * number, 500 + 311 * (number % 5));
            format!(
                "p T {number} {},2 0 {}.7,{size},{size},{size} 0.3,{follower},0,{follower}\n",
                number % 2,
                number % 4
            )
        })
        .collect();
    let snapshot = format!("evenkeel-snapshot v1 brokers=3 partitions=24\n{BROKERS}{partitions}");
    let goals = ["--goals", "LeaderBytesInDistributionGoal", "--output"];
    let output = run(&[&goals[..], &["snapshot"]].concat(), &snapshot);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let after = text(&output.stdout);
    assert!(after.contains('+'), "no leader is told in parts:\n{after}");
    let again = run(&[&goals[..], &["json"]].concat(), &after);
    assert!(again.status.success(), "{}", text(&again.stderr));
    let report: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!((&report["summary"]["replicaMoves"], &report["summary"]["leaderMoves"]), (&0.into(), &0.into()));
}

#[test]
fn a_hard_goal_that_cannot_be_satisfied_is_exit_code_3() {
    // Two replicas, and only rack a is left.
    refused(&["--goals", "RackAwareGoal", "--lose-rack", "b"], &small(), 3, "[RackAwareGoal]");
}

/// Three brokers without racks, and three replicas of everything: in the rack of one of them a fourth broker could take
/// from that one only.
#[test]
fn a_fourth_broker_relieves_all_three_where_there_are_no_racks() {
    let brokers = BROKERS.replace(" a h", " - h").replace(" b h", " - h");
    let partitions: String =
        (0..12).map(|number| format!("p T {number} 0,1,2 0 1,10,10,10 1,10,0,10 1,10,0,10\n")).collect();
    let snapshot = format!("evenkeel-snapshot v1 brokers=3 partitions=12\n{brokers}{partitions}");
    let goals = "RackAwareGoal,ReplicaDistributionGoal";
    let output = run(&["--add-broker", "9", "--goals", goals, "--output", "json"], &snapshot);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["goals"][1]["status"], "FIXED", "{report:#}");
    assert_eq!(report["brokers"][3]["rack"], "what-if-9");
}

#[test]
fn what_if_questions_change_the_cluster_before_it_is_planned() {
    let ask = |arguments: &[&str]| -> serde_json::Value {
        let output = run(&[&["--output", "json", "--goals", "RackAwareGoal"], arguments].concat(), &small());
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let added = ask(&["--add-broker", "7:c"]);
    assert_eq!(added["brokers"][3]["rack"], "c");
    assert_eq!(added["brokers"][3]["state"], "NEW");
    assert_eq!(added["whatIf"]["addBrokers"], serde_json::json!(["7:c"]));
    let removed = ask(&["--remove-broker", "1"]);
    assert_eq!(removed["mode"], "remove-brokers");
    assert_eq!(removed["brokers"][1]["after"]["replicas"], 0);
}

fn report(arguments: &[&str], snapshot: &str) -> serde_json::Value {
    let output = run(&[&["--output", "json"], arguments].concat(), snapshot);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Two brokers with two disks each; one of broker 0 holds everything that is there.
const JBOD: &str = "\
evenkeel-snapshot v1 brokers=2 partitions=4 disks=4
broker 0 a h0 ALIVE 100 300000 200000 200000
disk 0 /d1 ALIVE 100000
disk 0 /d2 ALIVE 100000
broker 1 b h1 ALIVE 100 300000 200000 200000
disk 1 /d1 ALIVE 100000
disk 1 /d2 ALIVE 100000
p T 0 0 0 1,100,100,20000@0
p T 1 0 0 1,100,100,20000@0
p T 2 0 0 1,100,100,20000@0
p T 3 0 0 1,100,100,20000@0
";

#[test]
fn disks_are_told_before_and_after_with_the_time_between_them() {
    let told = report(&["--mode", "rebalance-disks", "--disk-bandwidth", "100MB/s"], JBOD);
    assert_eq!(told["summary"]["diskMoves"], 2);
    // 40,000 MB at 100 MB/s.
    assert!((told["summary"]["minutes"]["betweenDisks"].as_f64().unwrap() - 400.0 / 60.0).abs() < 1e-6);
    let first = &told["disks"][0];
    assert_eq!((&first["broker"], &first["directory"]), (&0.into(), &"/d1".into()));
    assert_eq!((&first["before"]["percent"], &first["after"]["percent"]), (&80.0.into(), &40.0.into()));
    let table = run(&["--mode", "rebalance-disks", "--disk-bandwidth", "100MB/s"], JBOD);
    let table = text(&table.stdout);
    assert!(table.contains("on disks     39.1 GB in 6 min 40 s"), "{table}");
    assert!(table.contains("0:/d1  4 → 2"), "{table}");
    let unknown = report(&["--mode", "rebalance-disks"], JBOD);
    assert!(unknown["summary"]["minutes"]["betweenDisks"].is_null());
}

#[test]
fn replicas_that_come_from_other_brokers_do_not_change_disks() {
    let goals = ["--goals", "ReplicaCapacityGoal,IntraBrokerDiskCapacityGoal"];
    let told = report(&[&goals[..], &["--mode", "remove-brokers", "--brokers", "0"]].concat(), JBOD);
    assert_eq!((&told["summary"]["replicaMoves"], &told["summary"]["diskMoves"]), (&4.into(), &0.into()));
    assert_eq!(told["changes"][0]["disks"][0]["from"], "");
    assert_eq!(told["changes"][0]["moves"], serde_json::json!([{"from": 0, "to": 1}]));
}

#[test]
fn what_must_leave_says_so_in_every_format() {
    let goals = ["--goals", "RackAwareGoal,ReplicaDistributionGoal"];
    let says = |arguments: &[&str], snapshot: &str, cause: &str, words: &str| {
        let arguments = [&goals[..], arguments].concat();
        let reason = &report(&arguments, snapshot)["changes"][0]["reasons"][0];
        assert_eq!((&reason["cause"], &reason["goal"]), (&cause.into(), &serde_json::Value::Null));
        assert!(reason["gain"].is_null());
        let yaml = text(&run(&[&arguments[..], &["--output", "yaml"]].concat(), snapshot).stdout);
        assert!(yaml.contains(&format!("cause: {cause}")), "{yaml}");
        let table = text(&run(&arguments, snapshot).stdout);
        assert!(table.contains(words), "{table}");
    };
    let apart = small().replacen("p T 0 0,1", "p T 0 0,2", 1);
    says(&["--remove-broker", "2"], &apart.replacen("1 a h1", "1 b h1", 1), "removed", "broker 2 is to be emptied");
    let dead = apart.replacen("1 a h1", "1 b h1", 1).replacen("h2 ALIVE", "h2 DEAD", 1);
    says(&[], &dead, "offline", "offline: broker 2 is dead");
    let failed = apart.replacen("1 a h1", "1 b h1", 1).replacen("h2 ALIVE", "h2 BAD_DISKS", 1);
    let failed = failed.replacen("1,9000,0,20000", "1,9000,0,20000!", 1);
    let words = "offline: the replica on broker 2 is, though the broker is up";
    says(&["--mode", "fix-offline"], &failed, "offline", words);
}

#[test]
fn the_least_data_and_the_ratio_to_it_are_told() {
    let goals = ["--goals", "ReplicaCapacityGoal", "--remove-broker", "2"];
    let told = report(&goals, &small());
    assert_eq!((&told["summary"]["leastDataToMoveMB"], &told["summary"]["dataRatio"]), (&20000.0.into(), &1.0.into()));
    assert!(text(&run(&goals, &small()).stdout).contains("less than 19.5 GB, this one has 1.00 times that"));
}

#[test]
fn settings_and_demotion_are_within_reach() {
    let tight = ["--goals", "DiskUsageDistributionGoal", "--set"];
    let moves =
        |value: &str| report(&[&tight[..], &[value]].concat(), JBOD)["summary"]["replicaMoves"].as_u64().unwrap();
    assert!(moves("disk.balance.threshold=1.1") > 0);
    assert_eq!(moves("disk.balance.threshold=9"), 0);
    let demote = ["--mode", "demote", "--brokers", "0,1"];
    let changed = |flag: &[&str]| report(&[&demote[..], flag].concat(), &small())["summary"]["changes"].clone();
    assert_eq!(changed(&[]), 1);
    let demote_follower = ["--mode", "demote", "--brokers", "1"];
    let lists =
        small().replacen("p T 0 0,1 0 8,9000,12000,20000 1", "p T 0 0,1,2 0 8,9000,12000,20000 1,9000,0,20000 1", 1);
    assert_eq!(report(&demote_follower, &lists)["summary"]["changes"], 1);
    let left_alone = report(&[&demote_follower[..], &["--exclude-follower-demotion"]].concat(), &lists);
    assert_eq!(left_alone["summary"]["changes"], 0);
}

/// What the plan makes of the cluster.
fn after(arguments: &[&str], snapshot: &str) -> String {
    let output = run(&[&["--output", "snapshot"], arguments].concat(), snapshot);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn the_cluster_after_a_plan_is_in_the_state_that_was_asked_for() {
    let named = small().replacen("partitions=2", "partitions=2 name=blue", 1);
    let removed = after(&["--goals", "ReplicaCapacityGoal", "--remove-broker", "2"], &named);
    assert!(removed.contains("broker 2 b h2 DEAD 100 "), "{removed}");
    assert!(removed.lines().next().unwrap().ends_with(" name=blue"), "{removed}");
    // Whoever asks on need not say again that nothing goes there.
    let again = report(&["--goals", "ReplicaDistributionGoal"], &removed);
    assert_eq!((&again["brokers"][2]["state"], &again["brokers"][2]["after"]["replicas"]), (&"DEAD".into(), &0.into()));
    let demoted = after(&["--mode", "demote", "--brokers", "0"], &small());
    assert!(demoted.contains("broker 0 a h0 DEMOTED"), "{demoted}");
    let light = JBOD.replace("20000@0", "10000@0");
    let emptied = after(&["--mode", "remove-disks", "--disks", "0:/d1"], &light);
    assert!(emptied.contains("disk 0 /d1 REMOVED 100000\ndisk 0 /d2 ALIVE"), "{emptied}");
    assert_eq!(report(&["--mode", "rebalance-disks"], &emptied)["summary"]["diskMoves"], 0);
    let added = after(&["--mode", "add-brokers", "--brokers", "1", "--goals", "ReplicaDistributionGoal"], &small());
    assert!(added.contains("broker 1 a h1 NEW"), "{added}");
    // What was only moved about is what it was.
    let balanced = after(&["--goals", "RackAwareGoal"], &small());
    assert_eq!(balanced.lines().filter(|line| line.contains(" ALIVE ")).count(), 3);
}

/// What is still on a broker when the budget is spent is not lost: whoever asks on, budget by budget, empties it.
#[test]
fn a_broker_that_a_budget_leaves_with_data_is_not_dead_yet() {
    let only_replicas = "p T 0 0 0 8,9000,12000,20000\np T 1 0 0 8,9000,12000,20000\n";
    let snapshot = format!("evenkeel-snapshot v1 brokers=3 partitions=2\n{BROKERS}{only_replicas}");
    let removal = ["--goals", "ReplicaCapacityGoal", "--remove-broker", "0", "--max-moves", "1"];
    let once = after(&removal, &snapshot);
    assert!(once.contains("broker 0 a h0 ALIVE"), "{once}");
    let told = report(&removal, &once);
    let (moved, lost) = (&told["summary"]["dataToMoveMB"], &told["summary"]["lost"]["partitions"]);
    assert_eq!((moved, lost), (&20_000.0.into(), &0.into()), "{told}");
    let twice = after(&removal, &once);
    assert!(twice.contains("broker 0 a h0 DEAD"), "{twice}");
}

#[test]
fn an_added_broker_need_not_be_named_twice() {
    let told = report(&["--mode", "add-brokers", "--add-broker", "100:c", "--goals", "RackAwareGoal"], &small());
    assert_eq!((&told["mode"], &told["brokers"][3]["after"]["replicas"]), (&"add-brokers".into(), &1.into()));
}

#[test]
fn a_dash_is_standard_output_and_gz_is_compressed() {
    let directory = tempfile::tempdir().unwrap();
    let here = |arguments: &[&str]| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(["plan", "--snapshot", "-", "--goals", "RackAwareGoal"])
            .args(arguments)
            .current_dir(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(small().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        output.stdout
    };
    for format in ["table", "json", "yaml", "reassignment", "snapshot"] {
        let plain = here(&["--output", format]);
        assert!(!plain.is_empty());
        assert_eq!(here(&["--output", format, "-o", "-"]), plain, "{format}");
        assert_eq!(here(&["--output", format, "-o", "x.gz"]), b"");
        let packed = std::fs::read(directory.path().join("x.gz")).unwrap();
        assert_eq!(packed[..2], [0x1f, 0x8b], "{format}");
        let mut unpacked = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut unpacked).unwrap();
        assert_eq!(unpacked, plain, "{format}");
    }
    let files: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["x.gz"]);
}

#[test]
fn nothing_in_a_name_reaches_the_terminal_as_a_command() {
    let hostile = "T%1B[31m%00%0Aevil";
    let snapshot = small().replace("p T ", &format!("p {hostile} ")).replace(" a h", " a%1B[2J h").replacen(
        "partitions=2",
        "partitions=2 name=%1B]0;owned%07",
        1,
    );
    let is_plain = |text: &str| !text.chars().any(|c| c.is_control() && c != '\n');
    let table = text(&run(&["--goals", "RackAwareGoal"], &snapshot).stdout);
    assert!(is_plain(&table), "{table:?}");
    assert!(table.contains(r"T\u{1b}[31m\u{0}\nevil-0") && table.contains(r"rack a\u{1b}[2J"), "{table}");
    let yaml = text(&run(&["--goals", "RackAwareGoal", "--output", "yaml"], &snapshot).stdout);
    assert!(is_plain(&yaml), "{yaml:?}");
    let page = text(&run(&["--goals", "RackAwareGoal", "--output", "html"], &snapshot).stdout);
    assert!(is_plain(&page), "{page:?}");
    assert!(page.contains(r"T\u{1b}[31m\u{0}\nevil-0") && page.contains(r"<h1>\u{1b}]0;owned\u{7}</h1>"), "{page}");
    for (snapshot, arguments) in [
        (snapshot.replacen("0,1", "0,7", 1), &[][..]),
        (snapshot.replacen("1,9000,0,20000\n", "1,-9000,0,20000\n", 1), &[]),
        (snapshot.clone(), &["--lose-rack", "\u{1b}[31m"]),
        (snapshot.clone(), &["--goals", "a\u{1b}[31m"]),
        (snapshot.clone(), &["--mode", "\u{1b}[31m"]),
    ] {
        let output = run(arguments, &snapshot);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(is_plain(&said) && said.lines().count() == 1, "{said:?}");
    }
}

#[test]
fn a_command_line_that_cannot_be_read_is_one_line_too() {
    refused(&["--brokrs", "1"], "", 2, "a similar argument exists: '--brokers'; evenkeel plan --help tells more");
    refused(&["--mode", "rebalence"], "", 2, "[possible values: rebalance, add-brokers, ");
    refused(&["--max-moves", "many"], "", 2, "invalid value 'many' for '--max-moves <N>'");
    // What says how a running cluster is recorded says nothing about one in a file.
    for option in ["--command-config", "--capacity", "--seconds"] {
        let output = run(&[option, "1"], &small());
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains("cannot be used with") && said.contains(option), "{said}");
    }
    let nothing = Command::new(env!("CARGO_BIN_EXE_evenkeel")).arg("plan").output().unwrap();
    assert_eq!(nothing.status.code(), Some(2));
    assert_eq!(
        text(&nothing.stderr),
        "evenkeel: the following required arguments were not provided: --snapshot <FILE>; evenkeel plan --help tells \
         more\n"
    );
    let help = Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(["plan", "--help"]).output().unwrap();
    assert!(help.status.success() && text(&help.stdout).contains("--snapshot <FILE>"));
}

#[test]
fn what_cannot_be_done_is_told_with_the_options_that_were_typed() {
    let goals = ["--goals", "ReplicaCapacityGoal", "--max-replicas-per-broker", "1"];
    let restricted = ["--exclude-topics", "T", "--exclude-brokers-for-leadership", "1,2", "--destination-brokers", "2"];
    let output = run(&[&goals[..], &restricted].concat(), &small());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let options = "In the way may be --max-replicas-per-broker 1, --destination-brokers 2, \
                   --exclude-brokers-for-leadership 1,2, --exclude-topics (1 of 1 topics).\n";
    assert!(said.starts_with("evenkeel: [ReplicaCapacityGoal] ") && said.ends_with(options), "{said}");
    for word in ["||", "parameter", "endpoint", "destination_broker_ids", "excluded_topics"] {
        assert!(!said.contains(word), "{said}");
    }
    let says = |arguments: &[&str], options: &str| {
        let output = run(arguments, &small());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.ends_with(&format!("In the way may be {options}.\n")), "{said}");
    };
    says(&goals, "--max-replicas-per-broker 1");
    let little = ["--goals", "DiskCapacityGoal", "--set", "disk.capacity.threshold=0"];
    says(&little, "--set disk.capacity.threshold=0");
    let racks = |more: [&'static str; 2]| [&["--goals", "RackAwareGoal"][..], &more].concat();
    says(&racks(["--lose-rack", "b"]), "--lose-rack b");
    says(&racks(["--remove-broker", "2"]), "--remove-broker 2");
    says(&[&racks(["--brokers", "2"])[..], &["--mode", "remove-brokers"]].concat(), "--brokers 2");
    // What was not asked for is not in the way: a partition of 20,000 MB fits on no broker that may hold 8,000.
    let output = run(&["--goals", "DiskCapacityGoal"], &small().replace("200000 300000", "200000 10000"));
    assert!(!text(&output.stderr).contains("In the way") && output.status.code() == Some(3));
}

#[test]
fn contradictions_are_refused() {
    refused(&["--add-broker", "100", "--remove-broker", "100"], &small(), 2, "--add-broker 100: the broker cannot be");
    let added = ["--mode", "add-brokers", "--brokers", "2", "--exclude-brokers-for-replica-moves", "2"];
    refused(&added, &small(), 2, "broker 2 is to be added, and yet excluded from replica moves");
    let added = ["--add-broker", "50", "--exclude-brokers-for-replica-moves", "50"];
    refused(&added, &small(), 2, "--add-broker 50: the broker is excluded for replica moves, so it would stay empty");
    let added = ["--add-broker", "50", "--destination-brokers", "2"];
    refused(
        &added,
        &small(),
        2,
        "--add-broker 50: the broker is none of --destination-brokers, so it would stay empty",
    );
    let added = ["--mode", "add-brokers", "--brokers", "1", "--destination-brokers", "2"];
    refused(&added, &small(), 2, "--brokers 1: the broker is to be added, and yet none of --destination-brokers");
    for mode in [&["demote", "--brokers", "0"][..], &["remove-disks", "--disks", "0:/d1"], &["rebalance-disks"]] {
        let added = [&["--add-broker", "50", "--mode"], mode].concat();
        refused(&added, JBOD, 2, "--add-broker 50: nothing moves from broker to broker in this mode");
    }
    let everybody = ["--mode", "remove-brokers", "--brokers", "0,1,2"];
    refused(&everybody, &small(), 2, "no broker is left to take replicas: all are dead or to be removed");
    refused(&["--goals", "foo"], &small(), 2, "there is no goal `foo`; there are RackAwareGoal, ");
    refused(&["--report", "-"], &small(), 2, "--report and -o both write -");
    refused(&["--report", "/tmp/x", "-o", "/tmp/x"], &small(), 2, "--report and -o both write /tmp/x");
    let there = small().replacen("partitions=2", "partitions=2 moves=1", 1) + "move T 0 0\n";
    refused(&[], &there, 2, "-:7: `T-0` has a replica on broker 0 already");
}

/// However it is spelled, and whichever of the two writes it.
#[test]
fn what_is_read_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let cluster = directory.path().join("cluster.txt");
    std::fs::write(&cluster, small()).unwrap();
    std::os::unix::fs::symlink(&cluster, directory.path().join("link")).unwrap();
    for (arguments, output) in [
        (["-o", "cluster.txt"], "-o"),
        (["-o", "./cluster.txt"], "-o"),
        (["-o", "link"], "-o"),
        (["--report", "cluster.txt"], "--report"),
    ] {
        let told = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(["plan", "--snapshot", cluster.to_str().unwrap(), "--goals", "RackAwareGoal"])
            .args(arguments)
            .current_dir(&directory)
            .output()
            .unwrap();
        let said = text(&told.stderr);
        assert_eq!((told.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(
            said.contains(&format!("{output} would overwrite")) && said.contains("which --snapshot reads"),
            "{said}"
        );
        assert_eq!(std::fs::read_to_string(&cluster).unwrap(), small());
    }
    let same = ["--report", "new.html", "-o", "./new.html"];
    let told = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(["plan", "--snapshot", cluster.to_str().unwrap()])
        .args(same)
        .current_dir(&directory)
        .output()
        .unwrap();
    assert!(text(&told.stderr).contains("--report and -o both write ./new.html"), "{}", text(&told.stderr));
}

/// Where Kafka chooses the log directory nobody knows it, and none counts as empty that may hold something.
#[test]
fn a_directory_that_may_hold_what_a_plan_moved_there_is_not_called_empty() {
    let moved = after(&["--goals", "DiskUsageDistributionGoal"], JBOD);
    assert!(moved.lines().any(|line| line.starts_with("p T") && !line.contains('@')), "{moved}");
    let words =
        "broker 1: nobody knows in which log directory 2 of its replicas lie, and one that is to be removed may";
    refused(&["--mode", "remove-disks", "--disks", "1:/d1"], &moved, 2, words);
    let told = report(&["--mode", "rebalance-disks"], &moved);
    assert_eq!(told["summary"]["onUnknownDisks"], 2);
    let table = text(&run(&["--mode", "rebalance-disks"], &moved).stdout);
    assert!(table.contains("not judged   2 replicas of which nobody knows the log directory\n"), "{table}");
    // A plan that names directories is another matter.
    let named = after(&["--goals", "DiskUsageDistributionGoal,IntraBrokerDiskCapacityGoal"], JBOD);
    assert!(named.lines().all(|line| !line.starts_with("p T") || line.contains('@')), "{named}");
    let emptied = report(&["--mode", "remove-disks", "--disks", "1:/d1"], &named);
    assert_eq!(emptied["summary"]["onUnknownDisks"], 0);
}

/// T-0 was in rack a alone.
#[test]
fn data_that_nobody_has_is_told_as_lost_and_not_as_copied() {
    let goals = ["--goals", "ReplicaCapacityGoal", "--lose-rack", "a"];
    let spread = small().replacen("broker 2 b h2", "broker 3 c h3 ALIVE 100 300000 200000 300000\nbroker 2 b h2", 1);
    let spread = spread.replacen("brokers=3", "brokers=4", 1);
    let told = report(&goals, &spread);
    let summary = &told["summary"];
    assert_eq!(summary["lost"], serde_json::json!({"partitions": 1, "dataMB": 20000.0}));
    // Of T-1 broker 2 has a copy.
    assert_eq!((&summary["replicaMoves"], &summary["dataToMoveMB"]), (&3.into(), &20000.0.into()));
    for change in told["changes"].as_array().unwrap() {
        let is_lost = change["partition"] == 0;
        assert_eq!((&change["lost"], change["dataToMoveMB"] == 0.0), (&is_lost.into(), is_lost), "{change}");
        assert_eq!(change["why"].as_str().unwrap().contains("no replica lives"), is_lost, "{change}");
    }
    let table = text(&run(&goals, &spread).stdout);
    assert!(table.contains("lost         1 partition, 19.5 GB: no replica is left on a broker that lives"), "{table}");
    let page = text(&run(&[&goals[..], &["--output", "html"]].concat(), &spread).stdout);
    assert!(page.contains("<p>Lost: 1 partition, 19.5 GB: "), "{page}");
    // To name those that are dead brings nothing back, and who is dead is not merely to be emptied.
    let named = report(&[&goals[..], &["--mode", "remove-brokers", "--brokers", "0,1"]].concat(), &spread);
    assert_eq!((&named["mode"], &named["summary"]["lost"]), (&"remove-brokers".into(), &summary["lost"]));
    assert_eq!(named["changes"], told["changes"]);
    let whole = report(&["--goals", "ReplicaCapacityGoal"], &spread);
    assert_eq!(whole["summary"]["lost"], serde_json::json!({"partitions": 0, "dataMB": 0.0}));
}

#[test]
fn a_broker_that_a_budget_does_not_empty_is_named_with_what_it_holds() {
    let apart = small().replacen("p T 0 0,1", "p T 0 0,2", 1);
    let goals = ["--goals", "ReplicaCapacityGoal", "--remove-broker", "2"];
    let part = [&goals[..], &["--max-data", "20GB"]].concat();
    let left = serde_json::json!([{"broker": 2, "replicas": 1, "dataMB": 20000.0}]);
    assert_eq!(report(&part, &apart)["summary"]["notEmptied"], left);
    let table = text(&run(&part, &apart).stdout);
    assert!(table.contains("not empty    broker 2 still holds 1 replica, 19.5 GB\n"), "{table}");
    let page = text(&run(&[&part[..], &["--output", "html"]].concat(), &apart).stdout);
    assert!(page.contains("<p>Not empty afterwards: broker 2 still holds 1 replica, 19.5 GB.</p>"), "{page}");
    assert_eq!(report(&goals, &apart)["summary"]["notEmptied"], serde_json::json!([]));
}

/// Cruise Control's users write such patterns. One that takes for ever is given up.
#[test]
fn topics_are_excluded_by_patterns_that_look_ahead() {
    let moves = |pattern: &str| {
        let goals = ["--goals", "ReplicaDistributionGoal", "--exclude-topics", pattern];
        report(&goals, JBOD)["summary"]["replicaMoves"].as_u64().unwrap()
    };
    assert!(moves("(?!T).*") > 0);
    assert_eq!(moves("^(?!U).*"), 0);
    let long = JBOD.replace("p T ", &format!("p {} ", "a".repeat(200)));
    let says = "the pattern of topics takes too many steps on topic aaa";
    refused(&["--exclude-topics", r"(?!b)((a*)*)*\2c"], &long, 2, says);
}

/// Whoever carries a removal out must be able to switch the broker off.
#[test]
fn excluded_topics_leave_a_broker_that_is_removed() {
    let removal = ["--goals", "ReplicaCapacityGoal", "--exclude-topics", "T", "--remove-broker", "2"];
    let told = report(&removal, &small());
    assert_eq!((&told["brokers"][2]["after"]["replicas"], &told["summary"]["replicaMoves"]), (&0.into(), &1.into()));
}

/// The same answer as from the planner: a broker that is named is meant.
#[test]
fn destinations_override_exclusions_and_the_rule_of_new_brokers() {
    let moves = |arguments: &[&str], snapshot: &str| {
        let goals = ["--goals", "RackAwareGoal", "--destination-brokers"];
        report(&[&goals[..], arguments].concat(), snapshot)["changes"][0]["moves"].clone()
    };
    let to_broker_2 = moves(&["2"], &small());
    assert_eq!(to_broker_2[0]["to"], 2);
    assert_eq!(moves(&["2", "--exclude-brokers-for-replica-moves", "2"], &small()), to_broker_2);
    assert_eq!(moves(&["2"], &small().replacen("h1 ALIVE", "h1 NEW", 1)), to_broker_2);
    assert_eq!(moves(&["1,2", "--mode", "add-brokers", "--brokers", "1"], &small()), to_broker_2);
}

#[test]
fn a_time_that_nobody_knows_is_not_told_as_none() {
    let table = |arguments: &[&str]| text(&run(arguments, JBOD).stdout);
    let disks = table(&["--mode", "rebalance-disks"]);
    assert!(disks.contains("on disks     39.1 GB; --disk-bandwidth would tell how long that takes\n"), "{disks}");
    assert!(!disks.contains("\ntime ") && !disks.contains(" 0 s"), "{disks}");
    let demoted = text(&run(&["--mode", "demote", "--brokers", "0"], &small()).stdout);
    assert!(demoted.contains("time         10 s expected\n"), "{demoted}");
}

#[test]
fn the_snapshot_in_the_documentation_can_be_planned_for() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/snapshot.md")).unwrap();
    let example = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let told = report(&[], example);
    // T1-1 is offline on broker 2; what T1-0 has on the dead broker is being copied to another already.
    assert_eq!((&told["cluster"]["name"], &told["summary"]["replicaMoves"]), (&"small".into(), &1.into()));
    assert_eq!(after(&["--max-moves", "0"], example), example, "it is in canonical form");
}

/// The rack mates' other rack has a broker, but only the new one may take a replica, and that is in their rack.
#[test]
fn that_only_new_brokers_get_replicas_is_told_where_it_is_in_the_way() {
    let snapshot = "evenkeel-snapshot v1 brokers=4 partitions=1\n\
                    broker 0 b h0 NEW 100 1000 1000 1000\n\
                    broker 1 a h1 ALIVE 100 1000 1000 1000\n\
                    broker 2 b h2 ALIVE 100 1000 1000 1000\n\
                    broker 3 b h3 ALIVE 100 1000 1000 1000\n\
                    p T 0 2,3 0 1,1,1,1 1,1,0,1\n";
    let output = run(&["--goals", "RackAwareGoal"], snapshot);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let words = "Add at least 1 broker to a rack other than [b], besides those that are new. In the way may be that only \
                 new brokers get replicas, which are 0 (--destination-brokers that names old ones, too, lifts that).\n";
    assert!(said.ends_with(words), "{said}");
}

/// Two of these partitions are too much for any one disk: the broker that is asked for helps only together with an old one.
#[test]
fn the_way_out_of_a_refusal_is_told_and_leads_out() {
    let replicas = "50,150000,100000,150000 50,150000,100000,150000";
    let partitions = format!("p T1 0 1,0 1 {replicas}\np T2 0 1,0 1 {replicas}\n");
    let snapshot = format!("evenkeel-snapshot v1 brokers=3 partitions=2\n{BROKERS}{partitions}");
    refused(&[], &snapshot, 3, "Add at least 1 broker for disk.");
    refused(&["--add-broker", "7"], &snapshot, 3, "Add at least 1 broker for disk, besides those that are new.");
    refused(&["--add-broker", "7"], &snapshot, 3, "(--destination-brokers that names old ones, too, lifts that)");
    let told = report(&["--add-broker", "7", "--destination-brokers", "0,1,2,7"], &snapshot);
    assert_eq!(told["brokers"][3]["after"]["replicas"], 1, "{told:#}");
}
