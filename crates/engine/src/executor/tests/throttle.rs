//! Throttles that are refused, or that cannot be lifted.

use super::*;

fn throttled() -> Play {
    Play::new(&[&[1, 0], &[0, 1]], &[(0, &[1, 2]), (1, &[3, 1])]).with(|order| {
        order.throttle = Some(5 * MB);
        order.repairs = true;
    })
}

#[test]
fn nothing_moves_without_the_throttle_that_was_asked_for() {
    let mut play = throttled();
    play.refuses_throttles = true;
    assert_eq!(play.run(), Ending::Incomplete);
    assert_eq!(play.execution.refusal(), Some("no"));
    assert!(play.ends().iter().all(|stage| *stage == Stage::Ended(End::Aborted(Why::Refused))), "{:?}", play.ends());
    assert_eq!(play.begun, BTreeMap::new());
    play.assert_at_rest();
}

#[test]
fn a_broker_that_is_down_at_the_end_is_rid_of_its_rate_when_it_returns() {
    let mut play = throttled();
    play.run_for(2_000);
    play.execution.stop();
    play.cluster.suffer(&Fault::Crash(evenkeel_sim::BrokerId(0)));
    for _ in 0..10 {
        assert_eq!(play.step(None).ending, None);
    }
    play.cluster.suffer(&Fault::Return(evenkeel_sim::BrokerId(0)));
    assert_eq!(play.run(), Ending::Stopped);
    play.assert_at_rest();
}

#[test]
fn a_broker_that_does_not_return_is_not_waited_for_for_ever() {
    let mut play = throttled();
    play.run_for(2_000);
    play.execution.stop();
    play.cluster.suffer(&Fault::Crash(evenkeel_sim::BrokerId(0)));
    let mut left = None;
    for _ in 0..200 {
        let step = play.step(None);
        left = left.or(step.left);
        if step.ending.is_some() {
            break;
        }
        play.cluster.tick(250);
    }
    let left = left.expect("it is told what is left");
    assert_eq!((left.brokers, left.topics), ([BrokerId(0)].into(), BTreeMap::new()));
}
