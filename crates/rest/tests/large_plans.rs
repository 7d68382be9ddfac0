//! The plan of another Cruise Control for a large cluster has hundreds of thousands of proposals. Whoever reads it needs
//! memory for the answer and for what is shown of it, not for all of them.
//!
//! One test, in a process of its own: it looks at the most that the process ever had in memory.
#![cfg(target_os = "linux")]

use std::fmt::Write;

use evenkeel_rest::body::{KEPT, OptimizationResult, UserTasks};
use evenkeel_rest::client::{Answer, classify};

const MIB: usize = 1 << 20;
/// Of a plan.
const SIZE: usize = 12 * MIB;

#[test]
fn of_a_large_plan_only_what_is_shown_is_kept() {
    let mut body = String::with_capacity(2 * SIZE);
    write_plan(&mut body, "\"");
    let before = peak();
    let Answer::Ready(plan) = classify::<OptimizationResult>(200, "", body.as_bytes()) else { panic!("ready") };
    let grown = peak() - before;
    assert!(grown < SIZE / 4, "{grown} bytes more for a plan of {}", body.len());
    is_what_was_sent(&plan);

    // A task's answer is a text in a text: it has to be unescaped as a whole, and no more than that.
    let mut body_of_tasks = String::with_capacity(2 * SIZE);
    body_of_tasks.push_str(r#"{"userTasks":[{"Status":"Completed","ClientIdentity":"[::1]","UserTaskId":"7","#);
    body_of_tasks.push_str(r#""RequestURL":"POST /kafkacruisecontrol/rebalance","StartMs":"1","originalResponse":""#);
    write_plan(&mut body_of_tasks, "\\\"");
    body_of_tasks.push_str(r#""}],"version":1}"#);
    let before = peak();
    let Answer::Ready(tasks) = classify::<UserTasks>(200, "", body_of_tasks.as_bytes()) else { panic!("ready") };
    let grown = peak() - before;
    assert!(grown < SIZE + SIZE / 2, "{grown} bytes more for a task of {}", body_of_tasks.len());
    let [task] = tasks.user_tasks.as_slice() else { panic!("{} tasks", tasks.user_tasks.len()) };
    assert!(task.original_response.as_ref().is_some_and(|text| text.len() < MIB), "all of it is kept");
    is_what_was_sent(&task.optimization_result().expect("a plan"));
    // Until here: what is given back may be used again, which would not be seen.
    drop((body, body_of_tasks));
}

/// A plan as the original writes it, with a number that is none. `q` is a quotation mark.
fn write_plan(text: &mut String, q: &str) {
    write!(
        text,
        "{{{q}summary{q}:{{{q}numReplicaMovements{q}:7,{q}onDemandBalancednessScoreBefore{q}:NaN}},{q}proposals{q}:["
    )
    .expect("room");
    for n in 0.. {
        let (old, new) = (n % 50, n % 50 + 1);
        write!(text, "{{{q}oldLeader{q}:{old},{q}oldReplicas{q}:[{old},60,61],{q}topicPartition{q}:").expect("room");
        write!(text, "{{{q}hash{q}:{n},{q}partition{q}:{n},{q}topic{q}:{q}t{q}}},").expect("room");
        write!(text, "{q}newReplicas{q}:[{new},60,61]}}").expect("room");
        if text.len() > SIZE {
            break;
        }
        text.push(',');
    }
    write!(text, "],{q}goalSummary{q}:[],{q}version{q}:1}}").expect("room");
}

fn is_what_was_sent(plan: &OptimizationResult) {
    assert_eq!(plan.summary.num_replica_movements, 7);
    assert!(plan.summary.on_demand_balancedness_score_before.0.is_nan());
    let proposals = plan.proposals.as_ref().expect("proposals");
    assert_eq!(proposals.len(), KEPT);
    assert_eq!(proposals[0].new_replicas, [1, 60, 61], "of those without a size the first by name");
}

/// The most that this process ever had in memory, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kibibytes: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kibibytes << 10
}
