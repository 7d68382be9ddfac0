use expect_test::{Expect, expect};

use super::*;

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn refused(question: Question, what_if: WhatIf, code: Expect) {
    code.assert_eq(&question.parse(&what_if).unwrap_err().to_string());
}

#[test]
fn bad_values_are_refused_in_one_line() {
    let none = WhatIf::default;
    refused(
        Question { goals: text("RackAwareGoal,DiskUsageGoal"), ..Question::default() },
        none(),
        expect!["--goals: there is no goal `DiskUsageGoal`; did you mean `DiskUsageDistributionGoal`?"],
    );
    refused(
        Question { goals: text("RakcAwareGoal"), ..Question::default() },
        none(),
        expect!["--goals: there is no goal `RakcAwareGoal`; did you mean `RackAwareGoal`?"],
    );
    refused(
        Question { goals: text("foo"), ..Question::default() },
        none(),
        expect![
            "--goals: there is no goal `foo`; there are RackAwareGoal, RackAwareDistributionGoal, MinTopicLeadersPerBrokerGoal, ReplicaCapacityGoal, DiskCapacityGoal, NetworkInboundCapacityGoal, NetworkOutboundCapacityGoal, CpuCapacityGoal, ReplicaDistributionGoal, PotentialNwOutGoal, DiskUsageDistributionGoal, NetworkInboundUsageDistributionGoal, NetworkOutboundUsageDistributionGoal, CpuUsageDistributionGoal, TopicReplicaDistributionGoal, LeaderReplicaDistributionGoal, LeaderBytesInDistributionGoal, PreferredLeaderElectionGoal, IntraBrokerDiskCapacityGoal, IntraBrokerDiskUsageDistributionGoal"
        ],
    );
    refused(
        Question { goals: text("RackAwareGoal,rackawaregoal"), ..Question::default() },
        none(),
        expect!["--goals RackAwareGoal,rackawaregoal: RackAwareGoal is listed twice"],
    );
    refused(
        Question { exclude_topics: text("a(b"), ..Question::default() },
        none(),
        expect!["--exclude-topics a(b: unclosed group"],
    );
    refused(
        Question { max_data: text("500"), ..Question::default() },
        none(),
        expect!["--max-data 500: not a size with its unit, such as 500MB or 1.5TB"],
    );
    refused(
        Question { throttle: text("fast"), ..Question::default() },
        none(),
        expect!["--throttle fast: not a rate with its unit, such as 50MB/s"],
    );
    refused(
        Question { destination_brokers: text("1,x"), ..Question::default() },
        none(),
        expect!["--destination-brokers x: not a broker's id, which is a number from 0"],
    );
    let mode = Some(Mode::RemoveDisks);
    refused(
        Question { mode, disks: text("1"), ..Question::default() },
        none(),
        expect!["--disks 1: not a broker and its log directory, such as 1:/data/a"],
    );
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let mode = Some(Mode::Demote);
    refused(Question { mode, ..Question::default() }, WhatIf::default(), expect!["--mode demote needs --brokers"]);
    refused(
        Question { brokers: text("1"), ..Question::default() },
        WhatIf::default(),
        expect!["--mode rebalance does not take --brokers"],
    );
    refused(
        Question {
            max_replicas_per_broker: Some(7),
            set: vec!["max.replicas.per.broker=7".to_owned()],
            ..Question::default()
        },
        WhatIf::default(),
        expect!["--max-replicas-per-broker and --set max.replicas.per.broker say the same: give one of them"],
    );
    let gone = WhatIf { remove_broker: vec!["3".to_owned()], ..WhatIf::default() };
    refused(
        Question { mode, brokers: text("1"), ..Question::default() },
        gone,
        expect!["--remove-broker asks for --mode remove-brokers and does not go with --mode demote"],
    );
}

#[test]
fn a_thing_and_its_opposite_are_refused() {
    let adds = |id: &str| WhatIf { add_broker: vec![id.to_owned()], ..WhatIf::default() };
    refused(
        Question::default(),
        WhatIf { remove_broker: vec!["100".to_owned()], ..adds("100:a") },
        expect!["--add-broker 100: the broker cannot be removed at the same time"],
    );
    refused(
        Question { mode: Some(Mode::RemoveBrokers), brokers: text("1,100"), ..Question::default() },
        adds("100"),
        expect!["--add-broker 100: the broker cannot be removed at the same time"],
    );
}

#[test]
fn added_brokers_are_those_to_add() {
    let new = WhatIf { add_broker: vec!["100".to_owned(), "101:b".to_owned()], ..WhatIf::default() };
    let mode = Some(Mode::AddBrokers);
    let asked = Question { mode, ..Question::default() }.parse(&new).unwrap();
    assert_eq!(asked.request.operation, Operation::AddBrokers([BrokerId(100), BrokerId(101)].into()));
    let asked = Question { mode, brokers: text("1"), ..Question::default() }.parse(&new).unwrap();
    let all = [BrokerId(1), BrokerId(100), BrokerId(101)];
    assert_eq!(asked.request.operation, Operation::AddBrokers(all.into()));
}

#[test]
fn removed_brokers_join_those_named() {
    let gone = WhatIf { remove_broker: vec!["3".to_owned()], ..WhatIf::default() };
    let mode = Some(Mode::RemoveBrokers);
    let asked = Question { mode, brokers: text("1"), ..Question::default() }.parse(&gone).unwrap();
    assert_eq!(asked.request.operation, Operation::RemoveBrokers([BrokerId(1), BrokerId(3)].into()));
}
