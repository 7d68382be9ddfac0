//! Every state of a pod with an init container and two others, under every wish.

use serde_json::{Value, json};

use super::*;

fn pod(spec: Value) -> Pod {
    let mut all = json!({"initContainers": [{"name": "init"}], "containers": [{"name": "a"}, {"name": "b"}]});
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": all})).unwrap()
}

fn time() -> Time {
    Time(jiff::Timestamp::UNIX_EPOCH)
}

/// All lives that a container can have, by a letter: waiting, due, starting, running, serving, done, failed.
fn lives(now: Instant) -> [(char, Life); 7] {
    let ended = |code| Life::Ended(Ended { exit: Exit { code, message: String::new() }, since: None, at: time() });
    let waiting = |due| Life::Waiting { reason: "CrashLoopBackOff", message: String::new(), due };
    [
        ('w', waiting(now + Duration::from_secs(5))),
        ('d', waiting(now)),
        ('s', Life::Starting),
        ('r', Life::Running { since: time(), ready: false }),
        ('R', Life::Running { since: time(), ready: true }),
        ('e', ended(0)),
        ('f', ended(1)),
    ]
}

fn each(check: impl Fn([char; 3], &BTreeMap<String, State>, Instant)) {
    let now = Instant::now();
    for (init, of_init) in lives(now) {
        for (a, of_a) in lives(now) {
            for (b, of_b) in lives(now) {
                let named = [("init", &of_init), ("a", &of_a), ("b", &of_b)];
                let states =
                    named.map(|(name, life)| (name.to_owned(), State { life: life.clone(), ..State::new(0, now) }));
                check([init, a, b], &states.into(), now);
            }
        }
    }
}

fn launches(acts: &[Act]) -> Vec<&str> {
    let launch = |act: &Act| match act {
        Act::Launch(name) => name.clone(),
        other => panic!("{other:?}"),
    };
    let names: Vec<String> = acts.iter().map(launch).collect();
    ["init", "a", "b"].into_iter().filter(|name| names.iter().any(|launched| launched == name)).collect()
}

#[test]
fn what_is_due_is_launched_and_init_containers_come_first() {
    each(|[init, a, b], containers, now| {
        let pod = pod(json!({}));
        let (acts, wake) = decide(&Seen { pod: &pod, containers, resolved: true, ending: None, now });
        let expected: Vec<&str> = match init {
            'd' => vec!["init"],
            'e' => [('a', a), ('b', b)]
                .iter()
                .filter(|(_, life)| *life == 'd')
                .map(|(name, _)| if *name == 'a' { "a" } else { "b" })
                .collect(),
            _ => vec![],
        };
        assert_eq!(launches(&acts), expected, "{init}{a}{b}");
        let waits = init == 'w' || (init == 'e' && (a == 'w' || b == 'w'));
        assert_eq!(wake.is_some(), waits, "{init}{a}{b}");
        let (acts, wake) = decide(&Seen { pod: &pod, containers, resolved: false, ending: None, now });
        assert_eq!((acts, wake), (vec![], None), "nothing is launched while something is missing");
    });
}

#[test]
fn what_ends_is_asked_once_and_then_told_and_then_removed() {
    each(|letters, containers, now| {
        let pod = pod(json!({}));
        let alive: Vec<&str> = ["init", "a", "b"]
            .into_iter()
            .zip(letters)
            .filter(|(_, letter)| matches!(letter, 's' | 'r' | 'R'))
            .map(|(name, _)| name)
            .collect();
        for (grace, how) in [(10, Stop::Politely), (0, Stop::Now)] {
            for remove in [true, false] {
                let deadline = now + Duration::from_secs(grace);
                let ending = Some(Ending { deadline, remove });
                let (acts, wake) = decide(&Seen { pod: &pod, containers, resolved: true, ending, now });
                if alive.is_empty() {
                    assert_eq!(acts, [if remove { Act::Remove } else { Act::Done }]);
                    continue;
                }
                let mut names: Vec<_> = acts
                    .iter()
                    .map(|act| match act {
                        Act::Stop(name, asked) if *asked == how => name.as_str(),
                        other => panic!("{other:?}"),
                    })
                    .collect();
                names.sort_by_key(|name| (*name != "init", name.to_string()));
                assert_eq!(names, alive);
                assert_eq!(wake, (how == Stop::Politely).then_some(deadline));
                // Asked once, a container is not asked again as politely, but is told when the time has come.
                let mut asked = containers.clone();
                asked.values_mut().for_each(|state| state.asked(Stop::Politely));
                let (again, _) = decide(&Seen { pod: &pod, containers: &asked, resolved: true, ending, now });
                assert_eq!(again.len(), if how == Stop::Now { alive.len() } else { 0 });
            }
        }
    });
}

#[test]
fn the_deed_of_the_rack_container_is_the_nodes() {
    let rack = json!([{"name": "rack", "command": ["evenkeel", "rack", "--label", "l", "--to", "/x"]}]);
    let pod = pod(json!({"initContainers": rack}));
    let now = Instant::now();
    let containers = [("rack".to_owned(), State::new(0, now))].into();
    let (acts, _) = decide(&Seen { pod: &pod, containers: &containers, resolved: true, ending: None, now });
    assert_eq!(acts, [Act::Deed("rack".into())]);
}

fn due_in(state: &State, now: Instant) -> u64 {
    match &state.life {
        Life::Waiting { due, .. } => due.duration_since(now).as_secs(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn restarts_wait_twice_as_long_every_time_until_the_container_was_well() {
    let mut now = Instant::now();
    let mut state = State::new(0, now);
    let mut crash = |ran: u64| {
        state.starts(now);
        state.runs(time());
        now += Duration::from_secs(ran);
        state.ended(Exit::failure(""), Policy::Always, "p_ns(u)", "a", time(), now);
        let wait = due_in(&state, now);
        now += Duration::from_secs(wait);
        (wait, state.restarts)
    };
    let waits: Vec<_> = (0..8).map(|_| crash(1)).collect();
    assert_eq!(waits, [(0, 0), (10, 1), (20, 2), (40, 3), (80, 4), (160, 5), (300, 6), (300, 7)]);
    assert_eq!(crash(600), (0, 8));
    assert_eq!(crash(1), (10, 9));
}

#[test]
fn starts_that_fail_are_tried_again_soon_and_are_no_restarts() {
    let now = Instant::now();
    let mut state = State::new(0, now);
    let error = LaunchError::Start("no port".into());
    let waits: Vec<_> = (0..10)
        .map(|_| {
            state.starts(now);
            state.failed(&error, now);
            due_in(&state, now)
        })
        .collect();
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
    assert_eq!(state.restarts, 0);
    let Life::Waiting { reason, message, .. } = &state.life else { panic!() };
    assert_eq!((*reason, message.as_str()), ("RunContainerError", "the program did not start: no port"));
    state.starts(now);
    state.runs(time());
    state.ended(Exit::failure(""), Policy::Always, "p", "a", time(), now);
    state.starts(now);
    state.failed(&error, now);
    state.starts(now);
    assert_eq!(state.restarts, 1, "one end, one restart, however many tries it took");
}

#[test]
fn who_is_restarted_depends_on_the_policy_and_on_having_been_asked_to_end() {
    let now = Instant::now();
    for (policy, code, again) in [
        (Policy::Always, 0, true),
        (Policy::Always, 1, true),
        (Policy::OnFailure, 0, false),
        (Policy::OnFailure, 1, true),
        (Policy::Never, 1, false),
    ] {
        for asked in [false, true] {
            let mut state = State::new(0, now);
            state.starts(now);
            state.runs(time());
            if asked {
                state.asked(Stop::Politely);
            }
            state.ended(Exit { code, message: String::new() }, policy, "p", "a", time(), now);
            assert_eq!(state.end().is_none(), again && !asked, "{policy:?} {code} {asked}");
        }
    }
    assert_eq!(Policy::of(&pod(json!({})), false), Policy::Always);
    assert_eq!(Policy::of(&pod(json!({})), true), Policy::OnFailure);
    assert_eq!(Policy::of(&pod(json!({"restartPolicy": "Never"})), true), Policy::Never);
}
