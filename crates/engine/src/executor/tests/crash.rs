//! The process dies between any two deeds, and the next one goes on: same end, nothing twice.

use super::*;

const LISTS: [&[i32]; 4] = [&[1, 0], &[0, 1], &[1, 0], &[0, 1]];
const MOVES: [(i32, &[i32]); 4] = [(0, &[2, 3]), (1, &[3, 1]), (2, &[0, 1]), (3, &[2, 0])];

fn throttled() -> Play {
    Play::new(&LISTS, &MOVES).with(|order| {
        order.throttle = Some(5 * MB);
        order.limits.in_cluster = 2;
    })
}

/// Runs to the end; the process dies once, at deed `deed` of the step with number `at`.
fn dying(mut play: Play, at: usize, deed: usize, stop_at: Option<usize>) -> Option<(Play, Ending)> {
    let mut died = false;
    for number in 0..4 * 3_600 {
        if stop_at == Some(number) {
            play.execution.stop();
        }
        let step = play.step((number == at).then_some(deed));
        died |= number == at;
        // Whoever dies at the very end has to find out again that it is over.
        if let Some(ending) = step.ending.filter(|_| number != at) {
            return died.then_some((play, ending));
        }
        play.cluster.tick(250);
    }
    panic!("not over after an hour");
}

#[test]
fn a_death_anywhere_changes_nothing_about_the_end() {
    for deed in 0..4 {
        let mut deaths = 0;
        while let Some((play, ending)) = dying(throttled(), deaths, deed, None) {
            let what = format!("died at deed {deed} of step {deaths}");
            assert_eq!(ending, Ending::Completed, "{what}");
            for (partition, wanted) in MOVES {
                assert_eq!(play.replicas(partition), wanted, "{what}");
                assert_eq!(play.leader(partition), Some(wanted[0]), "{what}");
            }
            assert!(play.begun.values().all(|times| *times == 1), "{what}: {:?}", play.begun);
            play.assert_at_rest();
            deaths += 1;
        }
        assert!(deaths > 20, "only {deaths} places to die at");
    }
}

#[test]
fn a_death_while_stopping_changes_nothing_about_the_end() {
    for deed in 0..4 {
        for at in 6..30 {
            let Some((play, ending)) = dying(throttled(), at, deed, Some(8)) else { continue };
            let what = format!("died at deed {deed} of step {at}");
            assert_eq!(ending, Ending::Stopped, "{what}");
            for (partition, replicas) in (0..).zip(LISTS) {
                let now = play.replicas(partition);
                let (_, wanted) = MOVES[partition as usize];
                assert!(now == replicas || now == wanted, "{what}: {now:?}");
            }
            play.assert_at_rest();
        }
    }
}

#[test]
fn a_death_anywhere_does_not_forget_the_directory_of_the_plan() {
    for (path, deed) in [("/d0", 0), ("/d0", 1), ("/d0", 2), ("/d1", 0), ("/d1", 1), ("/d1", 2)] {
        let fresh = || {
            Play::new(&[&[0, 1]], &[(0, &[0, 3])]).with(|order| {
                order.moves[0].dirs = vec![DirMove { broker: BrokerId(3), from: None, to: path.to_owned() }];
            })
        };
        let mut deaths = 0;
        while let Some((play, ending)) = dying(fresh(), deaths, deed, None) {
            let what = format!("died at deed {deed} of step {deaths}");
            assert_eq!(ending, Ending::Completed, "{what}");
            assert_eq!(play.look().dirs[&(BrokerId(3), TopicPartition::new("t", 0))].dir, path, "{what}");
            deaths += 1;
        }
        assert!(deaths > 2, "only {deaths} places to die at");
    }
}
