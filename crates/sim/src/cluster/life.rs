//! Brokers come, stop, crash, lose their session, return, and are unregistered.

use super::broker::{Broker, BrokerSpec, Process};
use super::registration::{Change, Election};
use super::topic::Progress;
use super::{Cluster, Event};
use crate::code::{Code, Refusal};
use crate::ids::{BrokerId, Millis, TopicPartition};

impl Cluster {
    /// A new broker starts; it is unfenced a moment later. A known id is started again as it was.
    pub fn add_broker(&mut self, spec: BrokerSpec) {
        let id = spec.id;
        self.brokers.entry(id).or_insert_with(|| Broker::new(spec));
        self.start_broker(id);
    }

    /// Starts a broker that is down. It registers anew, with its old directories; one that was killed is refused as a
    /// duplicate until the session of its last life is over, tries again until then, and serves nobody meanwhile.
    pub fn start_broker(&mut self, id: BrokerId) {
        let epoch = self.next_metadata_offset();
        let session_end = self.brokers.get(&id).and_then(|broker| self.session_end(broker));
        let Some(broker) = self.brokers.get_mut(&id) else { return };
        // Without a single directory that works a broker does not start.
        if broker.process != Process::Down || broker.dirs.iter().all(|dir| dir.failed) {
            return;
        }
        if let Some(session_ends) = session_end {
            if !std::mem::replace(&mut broker.waits_to_register, true) {
                self.at(session_ends, Event::Start(id));
            }
            return;
        }
        broker.waits_to_register = false;
        broker.process = Process::Running;
        broker.silent_since = None;
        let is_new = broker.epoch < 0;
        broker.epoch = epoch;
        self.process_changes += 1;
        // Of a broker that is not on record nobody knows that it ended well; a new one has nothing to lose.
        let crashed = !broker.stopped_cleanly || !broker.registered && !is_new;
        broker.stopped_cleanly = false;
        self.set_standing(id, true, true);
        if crashed {
            for tp in self.partitions_on(id) {
                self.alter(&tp.topic, tp.partition, |change| Some(leave_isr(change, id).after_unclean_shutdown(id)));
            }
        }
        self.at(self.now + self.options.start_time, Event::Unfence(id, epoch));
        self.schedule_report(id);
    }

    /// Stops a broker as SIGTERM does: its partitions are led elsewhere first, and it is fenced at once; unless its link is
    /// cut, and nobody hears that it wants to go.
    pub fn stop_broker(&mut self, id: BrokerId) {
        let Some(broker) = self.brokers.get_mut(&id) else { return };
        broker.waits_to_register = false;
        if broker.process == Process::Down {
            return;
        }
        broker.stopped_cleanly = true;
        if broker.process == Process::Running {
            // Fenced before it is gone: nothing written meanwhile is left on it alone.
            self.fence(id);
        }
        self.go_silent(id, Process::Down);
    }

    /// Kills a broker as SIGKILL does: it is fenced only when its session ends.
    pub fn crash_broker(&mut self, id: BrokerId) {
        let Some(broker) = self.brokers.get_mut(&id) else { return };
        broker.waits_to_register = false;
        if broker.process == Process::Down {
            return;
        }
        broker.stopped_cleanly = false;
        self.go_silent(id, Process::Down);
    }

    /// Cuts a broker's link: nobody reaches it, though its process runs on.
    pub fn isolate_broker(&mut self, id: BrokerId) {
        if self.brokers.get(&id).is_some_and(|broker| broker.process == Process::Running) {
            self.go_silent(id, Process::Isolated);
        }
    }

    /// Mends a cut link; the broker goes on with the epoch it had.
    pub fn reconnect_broker(&mut self, id: BrokerId) {
        let Some(broker) = self.brokers.get_mut(&id).filter(|broker| broker.process == Process::Isolated) else {
            return;
        };
        broker.process = Process::Running;
        broker.silent_since = None;
        self.process_changes += 1;
        let (epoch, fenced) = (broker.epoch, broker.fenced);
        if fenced {
            self.at(self.now + self.options.start_time, Event::Unfence(id, epoch));
        } else {
            // It was back before anybody missed it.
            self.speak_again(id);
        }
    }

    /// Whether the broker's process runs and can be reached.
    pub fn is_reachable(&self, id: BrokerId) -> bool {
        self.brokers.get(&id).is_some_and(Broker::is_running)
    }

    /// Whether the broker's process does not run.
    pub fn is_down(&self, id: BrokerId) -> bool {
        self.brokers.get(&id).is_none_or(|broker| broker.process == Process::Down)
    }

    /// Whether the controller still counts on a process of the broker that is gone.
    pub fn session_lasts(&self, id: BrokerId) -> bool {
        self.brokers.get(&id).and_then(|broker| self.session_end(broker)).is_some()
    }

    /// When the session of a process that is gone will be over.
    fn session_end(&self, broker: &Broker) -> Option<Millis> {
        let ends = broker.silent_since.filter(|_| broker.process == Process::Down)? + self.options.session_timeout;
        (broker.is_active() && ends > self.now).then_some(ends)
    }

    /// Whether the broker runs, can be reached, and may lead and follow.
    pub fn is_serving(&self, id: BrokerId) -> bool {
        self.brokers.get(&id).is_some_and(|broker| broker.is_running() && broker.is_active())
    }

    /// How often a broker's process has started, ended, or changed how it is reached.
    pub(crate) fn process_changes(&self) -> u64 {
        self.process_changes
    }

    /// The epoch that the broker got when it last started.
    pub fn broker_epoch(&self, id: BrokerId) -> Option<i64> {
        self.brokers.get(&id).map(|broker| broker.epoch)
    }

    /// All brokers that were ever there, registered or not.
    pub fn broker_ids(&self) -> Vec<BrokerId> {
        self.brokers.keys().copied().collect()
    }

    /// Takes a broker off the record. There is no safety check at all, as in Kafka: a running
    /// broker is refused as stale from now on, and replicas it held stay assigned to it.
    pub fn unregister_broker(&mut self, id: BrokerId) -> Result<(), Refusal> {
        if !self.brokers.get(&id).is_some_and(|broker| broker.registered) {
            return Err(Code::BrokerIdNotRegistered.because(format!("Broker ID {id} is not currently registered")));
        }
        self.next_metadata_offset();
        self.fence(id);
        self.set_standing(id, false, true);
        Ok(())
    }

    /// The process can no longer be heard.
    fn go_silent(&mut self, id: BrokerId, process: Process) {
        let Some(broker) = self.brokers.get_mut(&id) else { return };
        broker.process = process;
        // A process that ends behind a cut link was last heard of when the link was cut.
        let since = *broker.silent_since.get_or_insert(self.now);
        let active = broker.is_active();
        self.process_changes += 1;
        for tp in self.partitions_on(id) {
            self.stop_following(&tp, id);
        }
        if active {
            self.at(since + self.options.session_timeout, Event::SessionEnds(id, since));
        }
        self.choose_shown_controller();
    }

    pub(super) fn end_session(&mut self, id: BrokerId, since: Millis) {
        let missed = self.brokers.get(&id).is_some_and(|it| it.silent_since == Some(since) && it.is_active());
        if missed {
            self.fence(id);
        }
    }

    /// The controller no longer counts on the broker: it leads nothing and is in no ISR.
    pub(super) fn fence(&mut self, id: BrokerId) {
        let registered = self.brokers.get(&id).is_some_and(|broker| broker.registered);
        self.set_standing(id, registered, true);
        for tp in self.partitions_on(id) {
            self.alter(&tp.topic, tp.partition, |change| Some(leave_isr(change, id)));
            self.try_unclean(&tp);
        }
        self.choose_shown_controller();
    }

    /// The controller counts on the broker again.
    pub(super) fn unfence(&mut self, id: BrokerId) {
        self.set_standing(id, true, false);
        for tp in self.partitions_on(id) {
            // Whoever waits for a leader may have one now.
            let leaderless = self
                .topics
                .get(&tp.topic)
                .and_then(|topic| topic.partition(tp.partition))
                .is_some_and(|it| it.registration.leader.is_none());
            if leaderless {
                self.alter(&tp.topic, tp.partition, |change| Some(change));
                self.try_unclean(&tp);
            }
        }
        self.choose_shown_controller();
    }

    pub(super) fn try_unclean(&mut self, tp: &TopicPartition) {
        let allowed = self.topics.get(&tp.topic).is_some_and(|topic| {
            topic.rules.unclean && topic.partition(tp.partition).is_some_and(|it| it.registration.leader.is_none())
        });
        if allowed {
            self.alter(&tp.topic, tp.partition, |change| Some(change.election(Election::Unclean)));
        }
    }

    /// After a short silence a broker's leaders lead on, and its followers are as far behind as they are.
    fn speak_again(&mut self, id: BrokerId) {
        let now = self.now;
        for tp in self.partitions_on(id) {
            let found = self.topics.get_mut(&tp.topic).and_then(|topic| topic.with_history(tp.partition));
            let Some((history, partition)) = found else { continue };
            if partition.registration.leader != Some(id) {
                continue;
            }
            if let Some(replica) = partition.replica_mut(id) {
                replica.progress = Progress::Following;
            }
            partition.tape.set_silent(false, history, now);
            if let Some(broker) = self.brokers.get_mut(&id) {
                broker.behind.remove(&tp);
            }
        }
        self.choose_shown_controller();
    }

    fn set_standing(&mut self, id: BrokerId, registered: bool, fenced: bool) {
        let (now, oldest) = (self.now, self.oldest_view());
        let Some(broker) = self.brokers.get_mut(&id) else { return };
        let before = broker.standing();
        broker.registered = registered;
        broker.fenced = fenced;
        if before != broker.standing() {
            broker.past.retain(|(until, _)| *until >= oldest);
            broker.past.push((now, before));
            self.next_metadata_offset();
        }
    }

    /// Some live broker passes for the controller, and stays it while it lives.
    pub(super) fn choose_shown_controller(&mut self) {
        let fit = |broker: &Broker| broker.is_active() && broker.is_running();
        if self.shown_controller.is_some_and(|id| self.brokers.get(&id).is_some_and(fit)) {
            return;
        }
        let live: Vec<BrokerId> =
            self.brokers.values().filter(|broker| fit(broker)).map(|broker| broker.spec.id).collect();
        self.shown_controller = (!live.is_empty()).then(|| live[self.dice.below(live.len())]);
    }
}

/// Without `broker` in the ISR.
pub(super) fn leave_isr(change: Change<'_>, broker: BrokerId) -> Change<'_> {
    let isr = change.present_isr().iter().copied().filter(|it| *it != broker).collect();
    change.isr(isr)
}
