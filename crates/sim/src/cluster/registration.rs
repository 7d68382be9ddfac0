//! What the controller has on record of a partition, and how one change leads to the next record.
//!
//! [`Change::build`] holds the rules that surprise people: when a reassignment is complete, when
//! the leader epoch grows, who is elected. Everything that alters a partition goes through it.

use crate::ids::BrokerId;

/// One partition as the controller knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// All replicas; during a reassignment the target first, then those to be removed.
    pub replicas: Vec<BrokerId>,
    /// The replicas in sync: in creation order first, ascending after a leader changed it.
    pub isr: Vec<BrokerId>,
    /// Who leads, if anybody does.
    pub leader: Option<BrokerId>,
    /// Grows with each change of leader, and when replicas are taken away.
    pub leader_epoch: i32,
    /// Grows with every change.
    pub partition_epoch: i32,
    /// Replicas that a reassignment adds, ascending.
    pub adding: Vec<BrokerId>,
    /// Replicas that a reassignment removes, ascending.
    pub removing: Vec<BrokerId>,
    /// Replicas out of sync that may still lead without loss, while the ISR is below its minimum.
    pub eligible: Vec<BrokerId>,
    /// Who led last, kept while nobody does.
    pub last_known_leader: Option<BrokerId>,
}

impl Registration {
    /// A partition as it is born.
    pub(crate) fn new(replicas: Vec<BrokerId>, isr: Vec<BrokerId>) -> Self {
        let leader = isr.first().copied();
        Self { replicas, isr, leader, ..Self::default() }
    }

    /// Whether a reassignment is under way.
    pub fn is_moving(&self) -> bool {
        !self.adding.is_empty() || !self.removing.is_empty()
    }
}

/// How much an election may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Election {
    /// The present leader stays if it can.
    Online,
    /// The first replica leads if it can.
    Preferred,
    /// As `Online`, and a replica out of sync is better than none.
    Unclean,
}

/// A wanted change of one partition.
pub(crate) struct Change<'a> {
    before: &'a Registration,
    after: Registration,
    election: Election,
    /// min.insync.replicas, as far as it can be reached.
    min_isr: usize,
    /// Whether eligible leader replicas are kept.
    keep_eligible: bool,
    /// A replica whose last shutdown may have lost data: no longer eligible.
    unclean_shutdown: Option<BrokerId>,
}

impl<'a> Change<'a> {
    pub(crate) fn of(before: &'a Registration, min_isr: usize, keep_eligible: bool) -> Self {
        Self {
            before,
            after: before.clone(),
            election: Election::Online,
            min_isr,
            keep_eligible,
            unclean_shutdown: None,
        }
    }

    pub(crate) fn present_isr(&self) -> &[BrokerId] {
        &self.before.isr
    }

    pub(crate) fn isr(mut self, isr: Vec<BrokerId>) -> Self {
        self.after.isr = isr;
        self
    }

    pub(crate) fn election(mut self, election: Election) -> Self {
        self.election = election;
        self
    }

    pub(crate) fn after_unclean_shutdown(mut self, broker: BrokerId) -> Self {
        self.unclean_shutdown = Some(broker);
        self
    }

    /// Towards `target`. What a running move was adding or removing is kept where the new target
    /// adds or removes nothing itself; this is why a replaced move can hang.
    pub(crate) fn reassign(mut self, target: &[BrokerId]) -> Self {
        let removing = difference(&self.before.replicas, target);
        let adding = difference(target, &self.before.replicas);
        self.after.replicas = target.iter().chain(&removing).copied().collect();
        if !adding.is_empty() {
            self.after.adding = adding;
        }
        if !removing.is_empty() {
            self.after.removing = removing;
        }
        self
    }

    /// Back to the replicas there were; their order is not remembered by anybody. `None` if nothing
    /// but added replicas could lead: going back may lose data then, and needs `unclean`.
    pub(crate) fn cancel(mut self, unclean: bool) -> Option<Self> {
        let replicas = without(&self.before.replicas, &self.before.adding);
        let mut isr = without(&self.before.isr, &self.before.adding);
        if isr.is_empty() {
            isr.extend(replicas.first().filter(|_| unclean));
        }
        self.after.replicas = replicas;
        self.after.isr = isr;
        self.after.adding.clear();
        self.after.removing.clear();
        (!self.after.isr.is_empty()).then_some(self)
    }

    /// The next record, or `None` if nothing changes.
    pub(crate) fn build(mut self, may_lead: impl Fn(BrokerId) -> bool) -> Option<Registration> {
        self.complete_the_move();
        self.keep_the_eligible();
        let unclean = self.elect(may_lead);
        if unclean || !self.keep_eligible {
            self.after.eligible.clear();
        }
        if self.after.isr.is_empty() && !self.keep_eligible {
            // Without eligible replicas the last one in sync stays on record as such.
            self.after.isr.clone_from(&self.before.isr);
        }
        if self.after.leader.is_none() && self.before.leader.is_some() {
            self.after.last_known_leader = self.before.leader;
        } else if self.after.leader.is_some() {
            self.after.last_known_leader = None;
        }
        let replica_taken_away = self.before.replicas.iter().any(|broker| !self.after.replicas.contains(broker));
        if self.after.leader != self.before.leader || replica_taken_away {
            self.after.leader_epoch += 1;
        }
        (self.after != *self.before).then(|| {
            self.after.partition_epoch += 1;
            self.after
        })
    }

    /// With something to add, a move ends when all of that is in sync; with nothing to add, when
    /// the whole target is. A replica both added and removed is never in what remains in sync.
    fn complete_the_move(&mut self) {
        let after = &mut self.after;
        if !after.is_moving() {
            return;
        }
        let isr = without(&after.isr, &after.removing);
        let replicas = without(&after.replicas, &after.removing);
        let awaited = if after.adding.is_empty() { &replicas } else { &after.adding };
        if isr.is_empty() || replicas.is_empty() || awaited.iter().any(|broker| !isr.contains(broker)) {
            return;
        }
        after.isr = isr;
        after.replicas = replicas;
        after.adding.clear();
        after.removing.clear();
    }

    fn keep_the_eligible(&mut self) {
        let after = &mut self.after;
        if after.isr.len() >= self.min_isr {
            after.eligible.clear();
            return;
        }
        for broker in &self.before.isr {
            if !after.eligible.contains(broker) {
                after.eligible.push(*broker);
            }
        }
        let (isr, replicas, unclean) = (&after.isr, &after.replicas, self.unclean_shutdown);
        after.eligible.retain(|broker| !isr.contains(broker) && replicas.contains(broker) && Some(*broker) != unclean);
    }

    /// Chooses the leader; true if data may have been lost by it.
    fn elect(&mut self, may_lead: impl Fn(BrokerId) -> bool) -> bool {
        let after = &self.after;
        let fit = |broker: BrokerId| {
            let known = after.isr.contains(&broker) || (after.isr.is_empty() && after.eligible.contains(&broker));
            known && may_lead(broker)
        };
        let first = after.replicas.first().copied().filter(|_| self.election == Election::Preferred);
        let present = self.before.leader.filter(|leader| after.replicas.contains(leader));
        let clean = first.into_iter().chain(present).chain(after.replicas.iter().copied()).find(|broker| fit(*broker));
        if let Some(leader) = clean {
            if after.isr.is_empty() {
                self.after.isr = vec![leader];
                self.after.eligible.retain(|broker| *broker != leader);
            }
            self.after.leader = Some(leader);
            return false;
        }
        let nothing_else = after.isr.is_empty() && after.eligible.is_empty();
        let last_known = self.before.last_known_leader.filter(|leader| {
            self.keep_eligible && nothing_else && after.replicas.contains(leader) && may_lead(*leader)
        });
        let any = (self.election == Election::Unclean)
            .then(|| after.replicas.iter().copied().find(|broker| may_lead(*broker)))
            .flatten();
        self.after.leader = last_known.or(any);
        if let Some(leader) = self.after.leader {
            self.after.isr = vec![leader];
        }
        self.after.leader.is_some()
    }
}

/// What is in `a` and not in `b`, ascending.
fn difference(a: &[BrokerId], b: &[BrokerId]) -> Vec<BrokerId> {
    let mut only: Vec<BrokerId> = without(a, b);
    only.sort_unstable();
    only
}

fn without(list: &[BrokerId], taken: &[BrokerId]) -> Vec<BrokerId> {
    list.iter().copied().filter(|broker| !taken.contains(broker)).collect()
}
