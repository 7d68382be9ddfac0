//! Carries one run to its end: look, decide, record, do; again as long as it takes.
//!
//! While Kafka cannot be reached nothing is decided, and it goes on by itself once it can. A newer
//! engine that has taken the journal over ends this one's part at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use evenkeel_kafka::{BrokerId, Client, Error};
use tokio::sync::watch;

use super::{
    Adjustment, End, Ending, Execution, Hold, Leftover, Limits, Progress, Share, Sight, Slowness, Stage, Step, Task,
    Throttling,
    eyes::Eyes,
    hands::Deeds,
    slow::SlowTasks,
    task::{Kind, Why},
};
use crate::{
    aside::aside,
    clock::WallClock,
    journal::{self, Journal, Run},
    said::chain,
    tasks::UserTask,
};

/// How soon an end is noticed and its place taken by the next.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The pause after something could not be done: others go on meanwhile, so it is short.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(2);
/// The longest pause while Kafka cannot be reached.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How a run stands, for whoever wants to know.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// What is worked on; `None` before the first look and once all is over.
    pub phase: Option<Kind>,
    /// How far it is.
    pub progress: Progress,
    /// How far each broker is that receives something.
    pub brokers: Arc<BTreeMap<BrokerId, Share>>,
    /// Each task and where it stands.
    pub tasks: Arc<Vec<Task>>,
    /// What may be under way at once; `None` before the first look.
    pub limits: Option<Limits>,
    /// Whether it is being stopped.
    pub stopping: bool,
    /// Why nothing new begins, if so.
    pub hold: Option<Hold>,
    /// How many tasks take longer than they should.
    pub slow: usize,
    /// What could not be done of late, or why nothing at all happens while Kafka cannot be reached.
    pub trouble: Option<String>,
}

/// What a runner needs.
#[derive(Debug)]
pub struct Runner {
    /// The cluster.
    pub client: Client,
    /// Where intents go before they are acted on.
    pub journal: Journal,
    /// The time.
    pub clock: WallClock,
    /// Which moves are slow.
    pub slowness: Slowness,
    /// What runs before this one left of their throttles, and what this one leaves of its own.
    pub leftover: Arc<Leftover>,
    /// Turns true when somebody asks for a stop.
    pub stop: watch::Receiver<bool>,
    /// Gets new limits.
    pub adjust: watch::Receiver<Adjustment>,
    /// The user task that asked for it, as it is on record: its end goes on record with the run's.
    pub task: Option<UserTask>,
    /// Gets how it stands.
    pub report: watch::Sender<Report>,
}

/// What a look comes to, and how far it shows everything to be.
struct Decided {
    step: Step,
    progress: Progress,
    brokers: BTreeMap<BrokerId, Share>,
    /// How far throttling was before it, and whether it was being stopped.
    before: (Throttling, bool),
}

impl Runner {
    /// Carries `run` on from where `execution` stands. An error means that this process must not go
    /// on, for another one does.
    pub async fn carry_out(mut self, run: &Run, mut execution: Execution) -> Result<Ending, Error> {
        let mut eyes = Eyes::new(self.client.clone());
        let mut pause = LOOK_EVERY;
        let mut unrecorded = BTreeSet::new();
        let mut slow = SlowTasks::default();
        loop {
            if *self.stop.borrow_and_update() {
                execution.stop();
            }
            execution.adjust(&self.adjust.borrow_and_update());
            let stepped = match eyes.look(&execution, &self.clock).await {
                Ok(sight) => {
                    let decided;
                    (execution, decided) = decide(execution, sight).await;
                    self.step(run, &mut execution, decided, &mut unrecorded, &mut slow).await
                }
                Err(error) => Err(error),
            };
            match stepped {
                Ok(Some(ending)) => return Ok(ending),
                Ok(None) if self.report.borrow().trouble.is_some() => pause = PAUSE_AFTER_FAILURE,
                Ok(None) => pause = LOOK_EVERY,
                Err(error @ Error::Fenced { .. }) => return Err(error),
                Err(error) => {
                    self.note(Some(chain(&error)));
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                // A stop does not wait. Nobody who could ask for one any more is no reason to hurry.
                Ok(()) = self.stop.changed() => {}
                Ok(()) = self.adjust.changed() => {}
            }
        }
    }

    async fn step(
        &mut self,
        run: &Run,
        execution: &mut Execution,
        decided: Decided,
        unrecorded: &mut BTreeSet<usize>,
        slow: &mut SlowTasks,
    ) -> Result<Option<Ending>, Error> {
        let Decided { step, progress, brokers, before } = decided;
        let adjusted = self.report.borrow().limits.as_ref().is_none_or(|told| told != execution.limits());
        unrecorded.extend(&step.changed);
        say_what_went_wrong(execution, &step.changed);
        if let Some(ending) = step.ending {
            let last_words = self.last_words(run, execution, ending);
            if let Some(left) = &step.left {
                self.leftover.add(left, last_words).await?;
                let (brokers, topics) = (&left.brokers, left.topics.keys().collect::<Vec<_>>());
                tracing::error!(?brokers, ?topics, rate = left.rate, "a throttle is left that nobody could lift");
            } else {
                self.journal.append(last_words).await?;
            }
            self.tell(execution, progress, brokers, None, 0);
            self.note(execution.refusal().map(str::to_owned));
            return Ok(Some(ending));
        }
        // The intent is on record before the deed. That a throttle is wanted is in the order itself; that it was looked
        // for and is being set is not.
        let eventful = !unrecorded.is_empty() || !step.actions.is_empty();
        if eventful || adjusted || before != (execution.throttling(), execution.is_stopping()) {
            self.journal.append(run.stepped(execution, unrecorded)).await?;
            unrecorded.clear();
        }
        let slow = self.slow_tasks(execution, slow);
        self.tell(execution, progress, brokers, step.hold, slow);
        let leftover = self.leftover.known().brokers;
        let deeds = Deeds::of(&self.client, &step.actions, execution, &leftover).await;
        unrecorded.extend(deeds.changed);
        self.note(deeds.trouble);
        Ok(None)
    }

    /// That the run is over, and how its task has ended: one step, so that neither is known without the other.
    fn last_words(&self, run: &Run, execution: &Execution, ending: Ending) -> Vec<journal::Entry> {
        let mut entries = run.over(execution);
        if let (Some(id), Some(task)) = (run.task, &self.task) {
            entries.extend(journal::task(id, &task.executed(ending == Ending::Completed, self.clock.now())));
        }
        entries
    }

    /// Tells what is wrong, each time that changes.
    fn note(&self, trouble: Option<String>) {
        let changed = self.report.send_if_modified(|report| {
            let changed = report.trouble != trouble;
            report.trouble.clone_from(&trouble);
            changed
        });
        match trouble {
            Some(trouble) if changed => tracing::warn!(trouble, "the execution is in trouble"),
            None if changed => tracing::info!("the execution goes on"),
            _ => {}
        }
    }

    fn tell(
        &self,
        execution: &Execution,
        progress: Progress,
        brokers: BTreeMap<BrokerId, Share>,
        hold: Option<Hold>,
        slow: usize,
    ) {
        let (told, held, trouble) = {
            let report = self.report.borrow();
            (Arc::clone(&report.tasks), report.hold.clone(), report.trouble.clone())
        };
        match &hold {
            now if *now == held => {}
            Some(hold) => tracing::warn!(%hold, "nothing new begins"),
            None => tracing::info!("nothing holds the execution up any longer"),
        }
        let unchanged = told.as_slice() == execution.tasks();
        self.report.send_replace(Report {
            phase: execution.phase(),
            progress,
            brokers: Arc::new(brokers),
            tasks: if unchanged { told } else { Arc::new(execution.tasks().to_vec()) },
            limits: Some(execution.limits().clone()),
            stopping: execution.is_stopping(),
            hold,
            slow,
            trouble,
        });
    }

    /// How many tasks are slow; those who read the log hear of them now and then.
    fn slow_tasks(&self, execution: &Execution, slow: &mut SlowTasks) -> usize {
        /// So many are named.
        const NAMED: usize = 10;
        let (slow, due) = slow.look(execution, &self.slowness, self.clock.now());
        if due {
            let partition = |index: &usize| execution.order().moves[execution.tasks()[*index].of].partition.to_string();
            let some: Vec<String> = slow.iter().take(NAMED).map(partition).collect();
            tracing::warn!(tasks = slow.len(), some = some.join(", "), "moves take longer than they should");
        }
        slow.len()
    }
}

/// Decides off the threads that answer: with many moves that takes a moment.
async fn decide(mut execution: Execution, sight: Sight) -> (Execution, Decided) {
    aside(move || {
        let before = (execution.throttling(), execution.is_stopping());
        let step = execution.step(&sight);
        let (progress, brokers) = (execution.progress(&sight), execution.by_broker(&sight));
        (execution, Decided { step, progress, brokers, before })
    })
    .await
}

/// Says of tasks that have just changed what did not go as wanted. That somebody asked for a stop need not be said of
/// each.
fn say_what_went_wrong(execution: &Execution, changed: &BTreeSet<usize>) {
    for task in changed.iter().filter_map(|index| execution.tasks().get(*index)) {
        let mv = &execution.order().moves[task.of];
        let (partition, kind) = (&mv.partition, task.kind);
        match task.stage {
            Stage::Aborting { why, .. } if why != Why::Stopped => {
                tracing::warn!(%partition, ?kind, to = ?mv.new, ?why, "a move is taken back");
            }
            Stage::Ended(End::Aborted(why) | End::Dead(why)) if why != Why::Stopped => {
                tracing::warn!(%partition, ?kind, to = ?mv.new, ?why, "a move has ended without having been made");
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::executor::Order;

    /// On one thread whoever decides there keeps everybody else from being heard.
    #[tokio::test]
    async fn others_are_heard_while_it_is_decided() {
        let heard = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&heard);
        tokio::spawn(async move { other.store(true, Ordering::SeqCst) });
        let nothing = Execution::new(Order::of(Vec::new(), BTreeSet::new()));
        let (_, decided) = decide(nothing, Sight::default()).await;
        assert_eq!(decided.step.ending, Some(Ending::Completed));
        assert!(heard.load(Ordering::SeqCst));
    }
}
