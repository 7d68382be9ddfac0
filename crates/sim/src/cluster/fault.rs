//! What can go wrong, as values: a story lists them, and the cluster suffers them.

use super::Cluster;
use super::broker::Process;
use super::life::leave_isr;
use super::reassign::Reassignment;
use super::topics::NewTopic;
use crate::ids::{BrokerId, Millis, TopicPartition};

/// A fault, or its end.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// A broker's process is killed.
    Crash(BrokerId),
    /// It is stopped in good order.
    Stop(BrokerId),
    /// It is started again.
    Return(BrokerId),
    /// Every broker of a rack is killed.
    RackLost(String),
    /// A disk reads and writes at this part of its speed; 1 mends it.
    SlowDisk(BrokerId, usize, f64),
    /// A disk fills up: the directory fails.
    FullDisk(BrokerId, usize),
    /// A directory fails.
    FailedDir(BrokerId, usize),
    /// A failed directory works again, after a restart of the broker.
    MendedDir(BrokerId, usize),
    /// A link carries this part of its bandwidth; 1 mends it.
    SlowLink(BrokerId, f64),
    /// Nobody reaches the broker.
    CutLink(BrokerId),
    /// The link is mended.
    MendedLink(BrokerId),
    /// A broker's metadata stands still for so long.
    StaleMetadata(BrokerId, Millis),
    /// Another broker passes for the controller.
    ControllerChange,
    /// Somebody else moves a partition.
    ForeignReassignment(Reassignment),
    /// Somebody deletes a topic.
    TopicDeleted(String),
    /// Somebody makes one.
    TopicCreated(Box<NewTopic>),
}

impl Cluster {
    /// Makes it happen now.
    pub fn suffer(&mut self, fault: &Fault) {
        match fault {
            Fault::Crash(id) => self.crash_broker(*id),
            Fault::Stop(id) => self.stop_broker(*id),
            Fault::Return(id) => self.start_broker(*id),
            Fault::RackLost(rack) => {
                let here = self.brokers.values().filter(|broker| broker.spec.rack.as_ref() == Some(rack));
                let ids: Vec<BrokerId> = here.map(|broker| broker.spec.id).collect();
                ids.into_iter().for_each(|id| self.crash_broker(id));
            }
            Fault::SlowDisk(id, dir, pace) => {
                if let Some(dir) = self.brokers.get_mut(id).and_then(|broker| broker.dirs.get_mut(*dir)) {
                    dir.pace = pace.clamp(0.0, 1.0);
                }
                self.slow_followers_fall_behind();
            }
            Fault::FullDisk(id, dir) | Fault::FailedDir(id, dir) => self.fail_dir(*id, *dir),
            Fault::MendedDir(id, dir) => self.mend_dir(*id, *dir),
            Fault::SlowLink(id, pace) => {
                if let Some(broker) = self.brokers.get_mut(id) {
                    broker.pace = pace.clamp(0.0, 1.0);
                }
                self.slow_followers_fall_behind();
            }
            Fault::CutLink(id) => self.isolate_broker(*id),
            Fault::MendedLink(id) => self.reconnect_broker(*id),
            Fault::StaleMetadata(id, millis) => {
                let (frozen_at, until) = (self.view_time(*id), self.now + millis);
                if let Some(broker) = self.brokers.get_mut(id) {
                    broker.stale = Some((frozen_at, until));
                }
            }
            Fault::ControllerChange => {
                let former = self.shown_controller;
                let fit = self.brokers.values().filter(|broker| broker.is_active() && broker.is_running());
                let fit: Vec<BrokerId> = fit.map(|broker| broker.spec.id).collect();
                // The next by id, and after the last the first: never the former, unless there is no other.
                let next = fit.iter().find(|id| Some(**id) > former).or(fit.first());
                self.shown_controller = next.copied();
            }
            Fault::ForeignReassignment(line) => {
                // A refusal is the other's affair.
                drop(self.alter_reassignments(std::slice::from_ref(line), true));
            }
            Fault::TopicDeleted(name) => drop(self.delete_topic(name)),
            Fault::TopicCreated(topic) => drop(self.create_topic(topic, false)),
        }
    }

    /// A directory fails: its replicas leave the ISR; the broker lives on with its others, and
    /// stops when it has none left.
    pub(super) fn fail_dir(&mut self, id: BrokerId, dir: usize) {
        let Some(broker) = self.brokers.get_mut(&id) else { return };
        let Some(it) = broker.dirs.get_mut(dir).filter(|it| !it.failed) else { return };
        it.failed = true;
        if broker.process == Process::Down {
            return;
        }
        if broker.dirs.iter().all(|dir| dir.failed) {
            self.crash_broker(id);
            return;
        }
        for tp in self.partitions_on(id) {
            let Some(replica) = self
                .topics
                .get_mut(&tp.topic)
                .and_then(|it| it.partition_mut(tp.partition))
                .and_then(|it| it.replica_mut(id))
            else {
                continue;
            };
            if let Some(future) = replica.future.take_if(|future| future.dir == dir || replica.dir == dir)
                && let Some(broker) = self.brokers.get_mut(&id)
            {
                broker.dirs[future.dir].logs -= 1;
                broker.dir_moves.remove(&tp);
            }
            if replica.dir == dir {
                self.lose_replica(&tp, id);
                self.try_unclean(&tp);
            }
        }
    }

    fn lose_replica(&mut self, tp: &TopicPartition, id: BrokerId) {
        self.stop_following(tp, id);
        self.alter(&tp.topic, tp.partition, |change| Some(leave_isr(change, id)));
    }

    /// The disk is well again; what was on it is read when the broker starts anew.
    fn mend_dir(&mut self, id: BrokerId, dir: usize) {
        let Some(broker) = self.brokers.get_mut(&id) else { return };
        let Some(it) = broker.dirs.get_mut(dir) else { return };
        it.failed = false;
        if broker.process == Process::Running {
            self.stop_broker(id);
        }
        self.start_broker(id);
    }
}
