//! The pools of a cluster: KafkaNodePools, or the two that a Kafka with `spec.kafka.replicas` has without naming them.
//!
//! [`Pools::read`] gathers everything that is wrong before anybody acts, so that one look at the condition mends all
//! of it. What is merely ignored becomes a [`Remark`].

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_api::{
    FreeForm, Kafka, KafkaNodePool, NodeIdRanges, Reason, StrimziPodSet,
    annotations::{self, InvalidAnnotation},
    labels,
    node_pool::ProcessRole,
    storage::Storage,
    workload::{JvmOptions, Resources},
};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};

use super::{
    names::Names,
    problem::{Problem, Remark},
    storage::{Disks, Wrong},
};

mod implicit;
mod memory;
mod refusals;
mod voters;

pub use implicit::{BROKERS as IMPLICIT_BROKERS, CONTROLLERS as IMPLICIT_CONTROLLERS};
pub use memory::{finds_racks, ids_of_pod_set, pods_of_pod_set, pool_of_pod};
pub use voters::Voters;

/// What a node does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Roles {
    /// It takes part in the metadata quorum.
    pub controller: bool,
    /// It keeps partitions.
    pub broker: bool,
}

impl Roles {
    /// Only a broker.
    pub const BROKER: Self = Self { controller: false, broker: true };
    /// Only a controller.
    pub const CONTROLLER: Self = Self { controller: true, broker: false };
    /// Both.
    pub const BOTH: Self = Self { controller: true, broker: true };

    /// The roles in a list. None if it lists none.
    pub fn of(list: &[ProcessRole]) -> Option<Self> {
        let has = |role| list.contains(&role);
        let roles = Self { controller: has(ProcessRole::Controller), broker: has(ProcessRole::Broker) };
        (roles != Self::default()).then_some(roles)
    }

    /// The same as a list, for a pool's status.
    pub fn list(self) -> Vec<ProcessRole> {
        let all = [(self.controller, ProcessRole::Controller), (self.broker, ProcessRole::Broker)];
        all.into_iter().filter_map(|(has, role)| has.then_some(role)).collect()
    }

    /// As Kafka's `process.roles` wants it, and as people read it.
    pub fn text(self) -> &'static str {
        match (self.controller, self.broker) {
            (true, true) => "broker,controller",
            (true, false) => "controller",
            (false, _) => "broker",
        }
    }
}

/// Where a pool comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A KafkaNodePool. Its status is the memory of its ids, with the list of pods in its StrimziPodSet.
    NodePool,
    /// The Kafka itself. Its StrimziPodSet is the memory of its ids.
    Kafka,
}

/// Nodes that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Where it comes from.
    pub origin: Origin,
    /// How many nodes there should be.
    pub replicas: usize,
    /// What they should do.
    pub roles: Roles,
    /// What they did when that was last recorded. None: the pool is new.
    pub roles_before: Option<Roles>,
    /// Their disks.
    pub disks: Disks,
    /// The same as it was written, for the memory of it.
    pub storage: Storage,
    /// CPU and memory.
    pub resources: Option<Resources>,
    /// Options of the virtual machine.
    pub jvm_options: Option<JvmOptions>,
    /// Labels, annotations and pod settings.
    pub template: Option<FreeForm>,
    /// Ids of the nodes as last recorded.
    pub current: BTreeSet<i32>,
    /// Ids for the next new nodes, if they were chosen.
    pub next_ids: NodeIdRanges,
    /// Nodes to remove first, if they were chosen.
    pub remove_ids: NodeIdRanges,
    /// What its objects go with.
    pub owner: OwnerReference,
}

impl Pool {
    /// Whether its nodes were brokers when that was last recorded.
    pub fn was_broker(&self) -> bool {
        self.roles_before.is_some_and(|roles| roles.broker)
    }

    /// Something wrong with a field of this pool; `field` is relative to the pool's spec.
    pub fn problem(&self, field: &str, text: impl Into<String>) -> Problem {
        match self.origin {
            Origin::NodePool => Problem::of_pool(&self.name, format!("spec.{field}"), text),
            Origin::Kafka => Problem::of_kafka(format!("spec.kafka.{field}"), text),
        }
    }
}

/// All pools of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Pools {
    /// By name.
    pub all: BTreeMap<String, Pool>,
    /// Ids that belong to none of these pools and are not free yet: their pool is going, or they vote.
    pub taken: BTreeSet<i32>,
    /// Those of them that are brokers, and run on though their pool has lost its label.
    pub unlabelled: BTreeSet<i32>,
    /// Ids of pods that are there, and whose they are: also of such that are listed nowhere any more and only take their
    /// time to end.
    pub running: BTreeMap<i32, String>,
    /// Whether there are controllers already, so that the quorum can no longer change.
    pub quorum_runs: bool,
    /// Who votes, as the nodes were told. Nobody, while the quorum can still change.
    pub voters: Voters,
    /// What is worth saying about them.
    pub remarks: Vec<Remark>,
}

impl Pools {
    /// Reads the pools of a Kafka, from all KafkaNodePools and StrimziPodSets of its namespace; those of other
    /// clusters are passed over. `told` is who votes, as its nodes were told. All that is wrong, if anything is.
    pub fn read(
        kafka: &Kafka,
        node_pools: &[KafkaNodePool],
        pod_sets: &[StrimziPodSet],
        told: &Voters,
    ) -> Result<Self, Vec<Problem>> {
        let names = Names::of(kafka);
        let pod_sets: Vec<&StrimziPodSet> =
            pod_sets.iter().filter(|set| belongs(set.labels().get(labels::CLUSTER), &names)).collect();
        let (own, foreign): (Vec<_>, Vec<_>) =
            node_pools.iter().partition(|pool| belongs(pool.labels().get(labels::CLUSTER), &names));
        let (going, staying): (Vec<_>, Vec<_>) =
            own.into_iter().partition(|pool| pool.meta().deletion_timestamp.is_some());
        // The quorum stands with the first record of the cluster, even should somebody delete the controllers' list.
        let quorum_runs = kafka.status.as_ref().is_some_and(|status| status.cluster_id.is_some())
            || pod_sets.iter().any(|set| memory::has_controllers(set));
        let voters = if quorum_runs { told.clone() } else { Voters::default() };

        let mut reading = Reading::default();
        let unlabelled = reading.unlabelled(&names, &foreign, &pod_sets);
        let read: Vec<Pool> = if staying.is_empty() {
            match refusals::of_pools_that_are_away(kafka, &pod_sets, &going) {
                Some(problem) => {
                    reading.problems.push(problem);
                    Vec::new()
                }
                None => reading.implicit(kafka, &names, &pod_sets),
            }
        } else {
            refusals::of_mixture(&pod_sets, &staying, &mut reading.problems);
            refusals::of_controllers_that_are_away(&names, &pod_sets, &staying, &mut reading.problems);
            let set_of = |pool: &KafkaNodePool| {
                let name = names.pod_set(&pool.name_any());
                pod_sets.iter().find(|set| set.name_any() == name).copied()
            };
            staying.iter().filter_map(|pool| reading.node_pool(kafka, pool, set_of(pool))).collect()
        };
        let read = read.into_iter().map(|pool| voters.recall(pool));
        let all: BTreeMap<String, Pool> = read.map(|pool| (pool.name.clone(), pool)).collect();
        reading.remarks.extend(voters.remark(&all));

        let own: BTreeSet<i32> = all.values().flat_map(|pool| &pool.current).copied().collect();
        let gone = going.iter().flat_map(|pool| pool.status.iter().flat_map(|status| &status.node_ids)).copied();
        let seen = gone.chain(pod_sets.iter().flat_map(|set| ids_of_pod_set(set))).chain(voters.ids());
        let taken = seen.filter(|id| !own.contains(id)).collect();
        let remarks = reading.remarks;
        let pools = Self { all, taken, unlabelled, running: BTreeMap::new(), quorum_runs, voters, remarks };

        let mut problems = reading.problems;
        refusals::of_pools(kafka, &pools, &mut problems);
        for pool in pools.all.values() {
            let set = pod_sets.iter().find(|set| set.name_any() == names.pod_set(&pool.name));
            refusals::of_storage(kafka, pool, set.copied(), &mut problems);
        }
        problems.sort();
        problems.dedup();
        if problems.is_empty() { Ok(pools) } else { Err(problems) }
    }

    /// The same, knowing who runs.
    #[must_use]
    pub fn beside(self, pods: &[Pod]) -> Self {
        Self { running: pods.iter().filter_map(memory::pool_of_pod).collect(), ..self }
    }

    /// The pools without these, which are gone though that is not on record. Nobody else gets their ids before it is.
    #[must_use]
    pub fn without(&self, gone: &BTreeSet<i32>) -> Self {
        let mut pools = self.clone();
        pools.all.values_mut().for_each(|pool| pool.current.retain(|id| !gone.contains(id)));
        pools.taken.extend(gone);
        pools
    }

    /// The pools with as many nodes as there are wherever brokers were to go, and what to say about it. Nothing of
    /// this is written into anybody's spec.
    #[must_use]
    pub fn without_scale_down(&self, why: &str) -> (Self, Vec<Remark>) {
        self.changed(|pool| {
            let kept = pool.current.len();
            if !pool.was_broker() || pool.replicas >= kept {
                return None;
            }
            let wanted = std::mem::replace(&mut pool.replicas, kept);
            Some(("replicas", format!("{kept} nodes are kept instead of {wanted}, because {why}")))
        })
    }

    /// The pools with the roles that they had wherever the broker role was to go, and what to say about it.
    #[must_use]
    pub fn without_role_loss(&self, why: &str) -> (Self, Vec<Remark>) {
        self.changed(|pool| {
            let kept = pool.roles_before.filter(|before| before.broker && !pool.roles.broker)?;
            pool.roles = kept;
            Some(("roles", format!("the roles {} are kept, because {why}", kept.text())))
        })
    }

    /// `change` says which field was passed over, and what is done instead.
    fn changed(&self, change: impl Fn(&mut Pool) -> Option<(&'static str, String)>) -> (Self, Vec<Remark>) {
        let mut pools = self.clone();
        let said = pools.all.values_mut().filter_map(|pool| {
            let (field, text) = change(pool)?;
            let reason = Reason::ScaleDownPreventionCheck;
            Some(match pool.origin {
                Origin::NodePool => Remark::of_pool(&pool.name, reason, format!("spec.{field}: {text}")),
                Origin::Kafka => Remark::of_kafka(reason, format!("spec.kafka.{field}: {text}")),
            })
        });
        let remarks = said.collect();
        (pools, remarks)
    }

    /// How many nodes with the broker role are asked for, or there all the same.
    pub fn brokers(&self) -> usize {
        let asked: usize = self.all.values().filter(|pool| pool.roles.broker).map(|pool| pool.replicas).sum();
        asked + self.unlabelled.len()
    }
}

/// What comes out while pools are read.
#[derive(Default)]
struct Reading {
    problems: Vec<Problem>,
    remarks: Vec<Remark>,
}

impl Reading {
    fn node_pool(&mut self, kafka: &Kafka, pool: &KafkaNodePool, set: Option<&StrimziPodSet>) -> Option<Pool> {
        let (name, spec) = (pool.name_any(), &pool.spec);
        let roles = Roles::of(&spec.roles);
        if roles.is_none() {
            let text = "names no role: write `broker`, `controller` or both";
            self.problems.push(Problem::of_pool(&name, "spec.roles", text));
        }
        let status = pool.status.clone().unwrap_or_default();
        // Who goes is taken off the status first and off the list of pods then, and is there until both are done. A status can
        // also get lost, in a restored backup for example: nodes that run are not new for that.
        let listed = set.map(ids_of_pod_set).unwrap_or_default();
        let current: BTreeSet<i32> = status.node_ids.into_iter().chain(listed).collect();
        let described = set.and_then(memory::roles_of_pod_set).filter(|roles| *roles != Roles::default());
        let roles_before = described.or_else(|| Roles::of(&status.roles));
        let disks = self.disks(&spec.storage, |field, text| Problem::of_pool(&name, format!("spec.{field}"), text));
        let next_ids = self.ids(&name, annotations::next_node_ids(pool.annotations()));
        let remove_ids = self.ids(&name, annotations::remove_node_ids(pool.annotations()));
        let shared = kafka.spec.kafka.as_ref();
        Some(Pool {
            origin: Origin::NodePool,
            // A negative number is refused by the definition; where it is not, it means none.
            replicas: usize::try_from(spec.replicas).unwrap_or_default(),
            roles: roles?,
            // Ids without roles were written by somebody who keeps no roles: they are what the spec says.
            roles_before: roles_before.or(roles).filter(|_| !current.is_empty()),
            disks: disks?,
            storage: spec.storage.clone(),
            resources: spec.resources.clone().or_else(|| shared?.resources.clone()),
            jvm_options: spec.jvm_options.clone().or_else(|| shared?.jvm_options.clone()),
            template: spec.template.clone().or_else(|| shared?.template.clone()),
            current,
            next_ids,
            remove_ids,
            owner: owner(pool),
            name,
        })
    }

    /// Brokers whose pool is there without the label of the cluster. They run on with their data, and nobody looks after them;
    /// pools of controllers are refused instead.
    fn unlabelled(&mut self, names: &Names, foreign: &[&KafkaNodePool], pod_sets: &[&StrimziPodSet]) -> BTreeSet<i32> {
        let mut all = BTreeSet::new();
        for pool in foreign.iter().filter(|pool| pool.meta().deletion_timestamp.is_none()) {
            let (name, uid) = (pool.name_any(), pool.uid());
            let is_its_own = |set: &StrimziPodSet| {
                let owners = set.owner_references();
                set.name_any() == names.pod_set(&name) && owners.iter().any(|owner| Some(&owner.uid) == uid.as_ref())
            };
            let Some(set) = pod_sets.iter().find(|set| is_its_own(set)) else { continue };
            let ids = ids_of_pod_set(set);
            if ids.is_empty() || memory::has_controllers(set) {
                continue;
            }
            let listed: Vec<String> = ids.iter().map(i32::to_string).collect();
            let text = format!(
                "KafkaNodePool {name} has lost its label strimzi.io/cluster: {}. Its brokers ({}) run on with their data, and \
                 nothing is changed about them any more. Give it the label again",
                names.cluster,
                listed.join(", ")
            );
            self.remarks.push(Remark::of_kafka(Reason::InvalidResourceException, text));
            all.extend(ids);
        }
        all
    }

    fn disks(&mut self, storage: &Storage, problem: impl Fn(String, String) -> Problem) -> Option<Disks> {
        let at = |(field, text): Wrong| problem(format!("storage.{field}"), text);
        Disks::read(storage).map_err(|wrong| self.problems.extend(wrong.into_iter().map(at))).ok()
    }

    /// A list that nobody can read is ignored, and its author is told.
    fn ids(&mut self, pool: &str, read: Result<Option<NodeIdRanges>, InvalidAnnotation>) -> NodeIdRanges {
        match read {
            Ok(ids) => ids.unwrap_or_default(),
            Err(invalid) => {
                let text = format!("{invalid}. It is ignored");
                self.remarks.push(Remark::of_pool(pool, Reason::InvalidAnnotation, text));
                NodeIdRanges::default()
            }
        }
    }
}

fn belongs(cluster: Option<&String>, names: &Names) -> bool {
    cluster.is_some_and(|cluster| *cluster == names.cluster)
}

/// What makes an object go with its owner. No owner waits for it, so no right to its finalizers is needed.
pub fn owner<K: Resource<DynamicType = ()>>(object: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        controller: Some(false),
        block_owner_deletion: Some(false),
    }
}

#[cfg(test)]
mod tests;
