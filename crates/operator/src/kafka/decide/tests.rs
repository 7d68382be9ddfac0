//! Whole decisions, carried out in a world without machines: three pools of brokers that grow and shrink at random, data
//! that comes and goes, and an operator that may die after any of its writes.

mod world;

use self::world::{Dice, World};

/// What must hold whatever happens is asserted by the world at every write. In the end, with all data gone and nobody dying
/// any more, the cluster is what the spec says.
#[test]
fn a_hundred_random_lives_lose_no_data_and_end_as_the_spec_says() {
    for seed in 0..100 {
        let mut dice = Dice::new(seed);
        let mut world = World::new(seed);
        for _ in 0..12 {
            match dice.below(7) {
                0 | 1 => world.scale(&mut dice),
                2 => world.put_data(&mut dice),
                3 => world.drop_data(&mut dice),
                4 => world.pass(6),
                5 => world.configure(dice.below(9)),
                _ => world.rebalances_go_on(&mut dice),
            }
            world.look(Some(dice.below(40)));
            world.machines();
        }
        world.settle();
    }
}

/// What leads up to the look at which the operator dies, and what must hold when the next one has had its time.
struct Story {
    name: &'static str,
    begin: fn(&mut World),
    end: fn(&mut World),
}

const STORIES: [Story; 5] = [
    Story {
        name: "creation",
        begin: |_| {},
        end: |world| {
            world.settle();
            assert_eq!(world.added(), [0; 0], "a new cluster is no addition, however many pools it has");
        },
    },
    Story {
        name: "scale-up",
        begin: |world| {
            world.settle();
            world.hold();
            world.want("b", 3);
        },
        end: |world| {
            world.look_often();
            assert_eq!(world.added(), [4], "what was added is remembered");
            assert_eq!(world.brokers(), [0, 1, 2, 3, 4].into());
        },
    },
    Story {
        name: "blocked scale-down",
        begin: |world| {
            world.settle();
            world.put_on("kept-0", &[1, 2]);
            world.hold();
            world.want("b", 1);
        },
        end: |world| {
            world.look_often();
            assert_eq!(world.brokers(), [0, 1, 2, 3].into(), "it holds data");
        },
    },
    Story {
        name: "roll",
        begin: |world| {
            world.settle();
            world.put_on("kept-0", &[1, 2]);
            world.configure(5);
        },
        end: World::settle,
    },
    Story {
        name: "drain",
        begin: |world| {
            world.settle();
            world.put_on("moved-0", &[1, 2]);
            world.want("b", 1);
        },
        end: World::settle,
    },
];

/// How many looks of a story an operator may have had before it dies: a creation, and a drain from the wish to the broker that
/// Kafka has forgotten, are over by then.
const LOOKS: usize = 10;

/// One operator dies after each of its writes in each of its looks in turn; something happens to the next one, which then ends
/// what was begun.
fn deaths(then: impl Fn(&mut World)) {
    for Story { name, begin, end } in STORIES {
        let mut deaths = 0;
        for looks in 0..LOOKS {
            for death in 0.. {
                let mut world = World::new(death as u64);
                begin(&mut world);
                (0..looks).for_each(|_| world.round());
                let writes = world.look(Some(death));
                world.machines();
                then(&mut world);
                end(&mut world);
                if writes <= death {
                    deaths += death;
                    break;
                }
            }
        }
        assert!(deaths > 3, "{name} writes more often than {deaths} times");
    }
}

#[test]
fn whoever_dies_at_any_write_of_any_look_is_followed_by_one_who_ends_it() {
    deaths(|_| {});
}

/// Who was sent away stays away, though nobody can be asked whether it held anything: what is on record says so.
#[test]
fn whoever_dies_is_followed_by_one_who_brings_nobody_back_while_kafka_is_out_of_reach() {
    deaths(World::look_while_kafka_is_away);
}

/// An empty broker is looked at twice before it goes: that is nothing to look up from. That it got data in between is.
#[test]
fn what_every_removal_goes_through_is_not_told_and_what_stands_in_its_way_is() {
    let mut world = World::new(1);
    world.settle();
    world.hold();
    world.want("b", 1);
    world.told();
    world.look_often();
    assert_eq!((world.told(), world.brokers()), (Vec::new(), [0, 1, 3].into()), "it was empty");

    world.want("b", 2);
    world.settle();
    world.want("b", 1);
    world.look(None);
    world.told();
    world.put_on("late-0", &[1, 2, 3]);
    world.look(None);
    assert_eq!(world.told(), ["ScaleDownPreventionCheck"], "it was seen empty once");
    world.put_on("late-1", &[2, 3]);
    world.look(None);
    assert_eq!(world.told(), [""; 0], "it holds more, and that is no news");
    assert_eq!(world.brokers(), [0, 1, 2, 3].into());
}

/// Whoever asks a pod set for it has each of its pods restarted, and once, wherever an operator dies on the way.
#[test]
fn restarts_that_are_asked_for_are_made_once() {
    for looks in 0..4 {
        for death in 0..4 {
            let mut world = World::new(death as u64);
            world.settle();
            world.put_on("kept-0", &[1, 2]);
            world.ask_for_restarts("b");
            let before = world.uids();
            (0..looks).for_each(|_| world.round());
            world.look(Some(death));
            world.machines();
            world.settle();
            let after = world.uids();
            let changed: Vec<&str> = before
                .iter()
                .filter(|(name, uid)| after.get(*name) != Some(uid))
                .map(|(name, _)| name.as_str())
                .collect();
            assert_eq!(changed, ["w-b-1", "w-b-2"]);
            assert_eq!(world.restarts(), 2, "after {looks} looks, at write {death}");
        }
    }
}

/// A broker went, and the operator died before that was on record. That another one has to stay does not bring it back, which
/// the world would complain of.
#[test]
fn whoever_went_does_not_come_back_because_another_one_stays() {
    for death in 0..12 {
        let mut world = World::new(death as u64);
        world.settle();
        world.hold();
        world.want("b", 1);
        world.look(None);
        world.pass(6);
        world.look(Some(death));
        world.machines();
        world.machines();
        world.put_on("kept-0", &[0, 3]);
        world.want("c", 0);
        world.look_often();
        assert!(world.brokers().is_superset(&[0, 1, 3].into()), "at write {death}: {:?}", world.brokers());
    }
}

/// Nodes with two lists of voters could elect two leaders. A pool of controllers loses its label, or is deleted, in front of an
/// operator that dies at any of its writes: all nodes keep the list that they were made with, and nobody is restarted.
#[test]
fn the_list_of_voters_is_what_it_was_whatever_becomes_of_a_pool_of_controllers() {
    for death in 0..6 {
        let mut world = World::new(death as u64);
        world.add_controllers("l", 2);
        world.settle();
        let made = world.voters();
        let list = made.keys().next().unwrap().clone();
        assert_eq!((made.len(), list.split(',').count()), (1, 3), "{made:?}");
        world.told();

        world.label("l", false);
        world.look(Some(death));
        world.look_often();
        assert_eq!((world.voters(), world.restarts()), (made.clone(), 0));
        let told = world.told();
        assert!(!told.is_empty() && told.iter().all(|it| it == "NotReady"), "{told:?}");
        world.label("l", true);
        world.settle();
        assert_eq!((world.voters(), world.restarts()), (made.clone(), 0));
        world.told();

        let pods = world.uids();
        world.delete("l");
        world.look(Some(death));
        world.collect_garbage();
        world.look(Some(death));
        world.look_often();
        world.want("b", 3);
        world.settle();
        assert!(world.told().contains(&"InvalidResourceException".to_owned()), "it is said");
        assert_eq!(world.voters().keys().collect::<Vec<_>>(), [&list]);
        assert_eq!(world.restarts(), 0);

        world.add_controllers("l", 2);
        world.settle();
        assert_eq!((world.voters().len(), world.restarts()), (1, 0));
        assert!(pods.keys().all(|name| world.uids().contains_key(name)), "with the same names");
    }
}

/// Its brokers run on with their data, whatever else is asked for meanwhile, and are the same ones when it is back.
#[test]
fn brokers_whose_pool_loses_its_label_stay_and_are_spoken_of() {
    for death in 0..6 {
        let mut world = World::new(death as u64);
        world.settle();
        world.put_on("kept-0", &[1, 2]);
        let before = world.uids();
        world.told();
        world.label("b", false);
        world.look(Some(death));
        world.look_often();
        assert_eq!((world.uids(), world.brokers(), world.restarts()), (before.clone(), [0, 1, 2, 3].into(), 0));
        // Whoever dies has told it before it was on record, and the next one tells it, too.
        let told = world.told();
        assert!(!told.is_empty() && told.iter().all(|it| it == "InvalidResourceException"), "{told:?}");
        assert!(world.warned()[0].starts_with("KafkaNodePool b has lost its label strimzi.io/cluster: w."));
        world.want("a", 2);
        world.look_often();
        assert_eq!(world.brokers(), [0, 1, 2, 3, 4].into(), "nobody gets their ids");
        world.label("b", true);
        world.settle();
        assert_eq!(world.warned(), [""; 0]);
        assert!(before.iter().all(|(name, uid)| world.uids().get(name) == Some(uid)), "nobody was restarted");
    }
}

/// At rest a cluster is looked at seldom, so nothing may be waited for, and nothing may be due by the clock.
#[test]
fn a_cluster_is_at_rest_only_if_all_of_it_is_there_and_nothing_is_awaited() {
    let settled = || {
        let mut world = World::new(1);
        world.settle();
        assert!(world.rests());
        world
    };
    type Disturb = fn(&mut World);
    let disturbances: [(&str, Disturb); 5] = [
        ("a new broker is on its way, and nobody knows for how long", |world| {
            world.crowd_out("w-a-4");
            world.want("a", 2);
        }),
        ("an engine is on its way", |world| world.lose("w-cruise-control-x")),
        ("a broker is away", |world| world.lose("w-b-1")),
        ("brokers with data are to go", |world| {
            world.put_on("kept-0", &[1, 2]);
            world.want("b", 1);
        }),
        ("nobody looks after a pool", |world| world.label("c", false)),
    ];
    for (what, disturb) in disturbances {
        let mut world = settled();
        disturb(&mut world);
        for _ in 0..8 {
            assert!(!world.rests(), "{what}");
            world.machines();
            world.pass(6);
        }
    }
}

#[test]
fn an_engine_that_does_not_come_up_is_said_after_a_while() {
    let mut world = World::new(1);
    world.crowd_out("w-cruise-control-x");
    world.look_often();
    assert_eq!(world.warned(), [""; 0], "it may yet come");
    world.pass(300);
    world.look(None);
    let said = "Cruise Control has not been ready for more than 5 minutes: it has no pod. Until it is, nothing is rebalanced. \
                Look at Deployment w-cruise-control, and at its pod and its log";
    assert_eq!(world.warned(), [said]);
    // The next operator has forgotten since when, and finds it on record.
    world.forget();
    world.look(None);
    assert_eq!(world.warned(), [said]);
    world.make_room();
    world.look_often();
    assert_eq!(world.warned(), [""; 0]);
}

/// Somebody writes another list into the files of some nodes, or takes a voter out: all get the right one back.
#[test]
fn a_list_of_voters_that_somebody_changed_is_put_right() {
    let mut world = World::new(1);
    world.add_controllers("l", 2);
    world.settle();
    let made = world.voters();
    let list = made.keys().next().unwrap().clone();
    let shorter = list.rsplit_once(',').unwrap().0.to_owned();
    let longer = format!("{list},{}", list.split(',').next().unwrap().replace("100", "109"));
    for (wrong, nodes) in [(&longer, 3), (&shorter, 3), (&shorter, 7), (&String::new(), 7)] {
        world.tell_voters(wrong, nodes);
        world.look(None);
        assert_eq!(world.voters(), made, "{nodes} nodes with {wrong}");
    }
    assert_eq!(world.restarts(), 0);
}

/// One node never finds a place, so the cluster was never complete. Its others have had data for long when it is given one more.
#[test]
fn a_broker_that_joins_a_cluster_which_never_was_complete_is_remembered() {
    let mut world = World::new(1);
    world.crowd_out("w-b-2");
    world.hold();
    world.look_often();
    assert_eq!(world.added(), [0; 0], "while it is made nobody joins it");
    world.put_on("orders-0", &[0, 1]);
    world.want("b", 3);
    world.look_often();
    assert_eq!((world.added(), world.brokers()), (vec![4], [0, 1, 2, 3, 4].into()));
    world.make_room();
    world.look_often();
    assert_eq!(world.added(), [4], "whoever was asked for from the beginning is no addition");
}

/// Looks at clusters share a few places. One that is waited for in vain leaves its place to others for as long.
#[test]
fn a_cluster_that_does_not_answer_is_looked_at_no_more_than_half_of_the_time() {
    let mut world = World::new(1);
    world.settle();
    let pauses = [0, 1, 10, 30].map(|seconds| world.pause_after_silence(seconds).as_secs());
    assert_eq!(pauses, [2, 2, 10, 30]);
}
