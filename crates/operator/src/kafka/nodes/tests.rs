use evenkeel_api::{NodeIdRanges, storage::Storage};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::json;

use super::*;
use crate::kafka::{pools::Origin, storage::Disks};

fn pool(name: &str, roles: Roles, current: &[i32], replicas: usize) -> Pool {
    let storage: Storage = serde_json::from_value(json!({"type": "ephemeral"})).unwrap();
    Pool {
        name: name.to_owned(),
        origin: Origin::NodePool,
        replicas,
        roles,
        roles_before: (!current.is_empty()).then_some(roles),
        disks: Disks::read(&storage).unwrap(),
        storage,
        resources: None,
        jvm_options: None,
        template: None,
        current: current.iter().copied().collect(),
        next_ids: NodeIdRanges::default(),
        remove_ids: NodeIdRanges::default(),
        owner: OwnerReference::default(),
    }
}

fn pools(all: impl IntoIterator<Item = Pool>) -> Pools {
    let all = all.into_iter().map(|pool| (pool.name.clone(), pool)).collect();
    Pools {
        all,
        taken: Ids::new(),
        unlabelled: Ids::new(),
        running: Default::default(),
        quorum_runs: false,
        voters: Default::default(),
        remarks: Vec::new(),
    }
}

fn ranges(text: &str) -> NodeIdRanges {
    text.parse().unwrap()
}

#[test]
fn a_new_cluster_counts_from_zero_and_is_no_scale_up() {
    let mut controllers = pool("controllers", Roles::CONTROLLER, &[], 3);
    controllers.next_ids = ranges("[100-199]");
    let found = assign(&pools([pool("brokers", Roles::BROKER, &[], 3), controllers]));
    assert_eq!(found.pools["brokers"].added, [0, 1, 2].into());
    assert_eq!(found.pools["controllers"].added, [100, 101, 102].into());
    assert_eq!((found.added_brokers(), found.desired_brokers()), (Ids::new(), [0, 1, 2].into()));
}

#[test]
fn gaps_are_filled_and_a_new_pool_is_a_scale_up() {
    let found = assign(&pools([
        pool("a", Roles::BOTH, &[0, 2, 3], 3),
        pool("b", Roles::BROKER, &[], 2),
        pool("c", Roles::CONTROLLER, &[], 1),
    ]));
    assert_eq!((found.pools["b"].added.clone(), found.added_brokers()), ([1, 4].into(), [1, 4].into()));
    assert_eq!(found.pools["c"].added, [5].into());
}

#[test]
fn an_id_whose_pod_still_runs_is_given_to_its_own_pool_or_to_nobody() {
    let grown = [pool("a", Roles::BROKER, &[0, 1, 2], 4), pool("b", Roles::BROKER, &[4], 2)];
    let mut seen = pools(grown);
    seen.running = [(3, "a"), (4, "b"), (5, "gone")].map(|(id, of)| (id, of.to_owned())).into();
    let found = assign(&seen);
    assert_eq!(found.pools["a"].added, [3].into(), "its pod has the same name, and waits for the end of the other");
    assert_eq!(found.pools["b"].added, [6].into());
    let mut chosen = pool("b", Roles::BROKER, &[4], 2);
    chosen.next_ids = ranges("[3, 5, 9]");
    seen.all = [("b".to_owned(), chosen)].into();
    assert_eq!(assign(&seen).pools["b"].added, [9].into(), "also where somebody chose");
}

#[test]
fn the_highest_goes_unless_somebody_chose() {
    let mut brokers = pool("a", Roles::BROKER, &[0, 1, 2, 3], 2);
    assert_eq!(assign(&pools([brokers.clone()])).removed_brokers(), [2, 3].into());
    brokers.remove_ids = ranges("[7, 1]");
    assert_eq!(assign(&pools([brokers])).removed_brokers(), [1, 3].into());
}

#[test]
fn an_id_that_goes_or_whose_pool_goes_is_not_given_away() {
    let mut two = pools([pool("a", Roles::BROKER, &[0, 1], 1), pool("b", Roles::BROKER, &[5], 2)]);
    two.taken = [2].into();
    let found = assign(&two);
    assert_eq!((found.pools["a"].removed.clone(), found.pools["b"].added.clone()), ([1].into(), [3].into()));
}

#[test]
fn controllers_that_go_are_no_brokers_that_go() {
    let found = assign(&pools([pool("a", Roles::CONTROLLER, &[0, 1, 2], 1), pool("b", Roles::BROKER, &[5, 6, 7], 2)]));
    assert_eq!(found.removed_brokers(), [7].into());
}

#[test]
fn who_stays_and_loses_the_role_used_to_be_a_broker() {
    let mut mixed = pool("a", Roles::BOTH, &[0, 1, 2], 2);
    mixed.roles = Roles::CONTROLLER;
    let all = pools([mixed, pool("b", Roles::BROKER, &[5], 1)]);
    let found = assign(&all);
    assert_eq!((found.used_to_be_brokers(), found.removed_brokers()), ([0, 1].into(), [2].into()));

    // In memory the role is kept, then the node too; the spec says what it said.
    let (kept, said) = all.without_role_loss("brokers hold data");
    assert_eq!((kept.all["a"].roles, said.len()), (Roles::BOTH, 1));
    let (kept, said) = kept.without_scale_down("broker 2 holds data");
    assert_eq!(assign(&kept).removed_brokers(), Ids::new());
    assert_eq!(
        said[0].condition.message.as_deref(),
        Some("node pool a, spec.replicas: 3 nodes are kept instead of 2, because broker 2 holds data")
    );
    assert_eq!(all.all["a"].replicas, 2);
}

#[test]
fn what_is_kept_is_kept_in_all_pools_and_only_where_brokers_were_to_go() {
    let all = pools([
        pool("a", Roles::BROKER, &[0, 1, 2], 2),
        pool("b", Roles::BROKER, &[3, 4], 1),
        pool("c", Roles::CONTROLLER, &[100, 101], 1),
        pool("d", Roles::BROKER, &[7], 3),
    ]);
    let (kept, said) = all.without_scale_down("x");
    let replicas: Vec<usize> = kept.all.values().map(|pool| pool.replicas).collect();
    assert_eq!((replicas, said.len()), (vec![3, 2, 1, 3], 2));
    let found = assign(&kept);
    assert_eq!((found.removed_brokers(), found.added_brokers()), (Ids::new(), [5, 6].into()));
}

/// Every distribution of four ids over three pools and nobody, all sizes, and some choices of ids.
#[test]
fn in_every_small_world_ids_are_kept_apart() {
    let choices: Vec<(NodeIdRanges, NodeIdRanges)> = ["[]", "[3]", "[9, 2-0]"]
        .into_iter()
        .flat_map(|next| ["[]", "[0]", "[3-1]"].map(|go| (next, go)))
        .map(|(next, go)| (ranges(next), ranges(go)))
        .collect();
    for world in 0..4_usize.pow(4) {
        let owner_of = |id: i32| world / 4_usize.pow(id.unsigned_abs()) % 4;
        let current = |pool: usize| -> Vec<i32> { (0..4).filter(|id| owner_of(*id) == pool).collect() };
        let owned: [Vec<i32>; 3] = [current(0), current(1), current(2)];
        for sizes in 0..4_usize.pow(3) {
            for (next, go) in &choices {
                let size = |pool: u32| sizes / 4_usize.pow(pool) % 4;
                let mut chosen = pool("b", Roles::BROKER, &owned[1], size(1));
                (chosen.next_ids, chosen.remove_ids) = (next.clone(), go.clone());
                let all = pools([
                    pool("a", Roles::BOTH, &owned[0], size(0)),
                    chosen,
                    pool("c", Roles::CONTROLLER, &owned[2], size(2)),
                ]);
                let found = assign(&all);
                check(&all, &found);
            }
        }
    }
}

fn check(before: &Pools, found: &Assignment) {
    let was: Ids = before.all.values().flat_map(|pool| &pool.current).copied().collect();
    let count: usize = found.pools.values().map(|pool| pool.desired.len()).sum();
    assert_eq!(count, found.desired().len(), "an id in two pools: {found:?}");
    let new: Ids = found.pools.values().flat_map(|pool| &pool.added).copied().collect();
    for (name, nodes) in &found.pools {
        let asked = &before.all[name];
        assert_eq!(nodes.desired.len(), asked.replicas, "{found:?}");
        assert!(nodes.added.is_empty() || nodes.removed.is_empty(), "{found:?}");
        assert!(nodes.added.is_disjoint(&was) && nodes.removed.is_subset(&nodes.current), "{found:?}");
        for id in &nodes.removed {
            let chosen = asked.remove_ids.contains(*id);
            let left_behind = nodes.desired.iter().any(|other| asked.remove_ids.contains(*other) || other > id);
            assert!(chosen || !left_behind, "{id}: {asked:?} {nodes:?}");
        }
        for id in nodes.added.iter().filter(|id| !asked.next_ids.contains(**id)) {
            assert!((0..*id).all(|lower| was.contains(&lower) || new.contains(&lower)), "{id}: {found:?}");
            assert!(asked.next_ids.iter().all(|next| was.contains(&next) || new.contains(&next)), "{id}: {found:?}");
        }
    }
    // Once recorded, nothing comes or goes any more.
    let mut after = before.clone();
    for (name, pool) in &mut after.all {
        pool.current.clone_from(&found.pools[name].desired);
    }
    let again = assign(&after);
    assert!(again.is_quiet() && again.desired() == found.desired());
}
