//! When to look for what.

use super::Millis;

/// The time between two rounds of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intervals {
    /// Of judging goals.
    pub goals: Millis,
    /// Of missing disks.
    pub disks: Millis,
    /// Of missing brokers.
    pub brokers: Millis,
    /// Until a broker that is missed is looked for again, when nothing could be done about it.
    pub backoff: Millis,
}

/// What the moment is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The time.
    pub now: Millis,
    /// What is known: another number, other knowledge.
    pub generation: u64,
    /// Whether moves are being made.
    pub executing: bool,
    /// Whether anything has been seen yet.
    pub sighted: bool,
}

/// When each kind is looked for next. Goals are judged and disks missed only while no moves are made; and goals
/// only if something is known that was not known the last time.
#[derive(Debug, Clone)]
pub struct Timetable {
    intervals: Intervals,
    goals: Millis,
    disks: Millis,
    brokers: Millis,
    /// What was known when goals were judged, or could not be.
    judged: Option<u64>,
}

impl Timetable {
    /// Brokers are looked for at once, the rest after half of its interval.
    pub fn new(intervals: Intervals, now: Millis) -> Timetable {
        let Intervals { goals, disks, .. } = intervals;
        Timetable { intervals, goals: now + goals / 2, disks: now + disks / 2, brokers: now, judged: None }
    }

    /// Whether goals are to be judged.
    pub fn goals_due(&self, moment: Moment) -> bool {
        self.goals_at(moment).is_some_and(|at| at <= moment.now)
    }

    /// Whether disks are to be missed.
    pub fn disks_due(&self, moment: Moment) -> bool {
        !moment.executing && self.disks <= moment.now
    }

    /// Whether brokers are to be missed.
    pub fn brokers_due(&self, now: Millis) -> bool {
        self.brokers <= now
    }

    /// Goals were judged by what is known as `generation`.
    pub fn judged(&mut self, generation: u64, now: Millis) {
        self.judged = Some(generation);
        self.goals = now + self.intervals.goals;
    }

    /// Goals could not be judged: it is tried again as soon as more is known.
    pub fn not_judged(&mut self, generation: u64) {
        self.judged = Some(generation);
    }

    /// Disks were looked for.
    pub fn disks_looked_for(&mut self, now: Millis) {
        self.disks = now + self.intervals.disks;
    }

    /// Brokers were looked for.
    pub fn brokers_looked_for(&mut self, now: Millis) {
        self.brokers = now + self.intervals.brokers;
    }

    /// Brokers are to be looked for at this time, or before.
    pub fn brokers_by(&mut self, at: Millis) {
        self.brokers = self.brokers.min(at);
    }

    /// What is seen is not believed until then: neither brokers nor disks are looked for before.
    pub fn doubts_until(&mut self, at: Millis) {
        self.brokers = at;
        self.disks = self.disks.max(at);
    }

    /// Nothing could be done about a broker now.
    pub fn brokers_after_backoff(&mut self, now: Millis) {
        self.brokers_by(now + self.intervals.backoff);
    }

    /// When something is due if nothing else happens.
    pub fn next(&self, moment: Moment) -> Option<Millis> {
        let disks = Some(self.disks).filter(|_| moment.sighted && !moment.executing);
        let brokers = Some(self.brokers).filter(|_| moment.sighted);
        [self.goals_at(moment), disks, brokers].into_iter().flatten().min()
    }

    fn goals_at(&self, moment: Moment) -> Option<Millis> {
        (!moment.executing && self.judged != Some(moment.generation)).then_some(self.goals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(now: Millis) -> Moment {
        Moment { now, generation: 1, executing: false, sighted: true }
    }

    #[test]
    fn goals_are_judged_in_their_time_and_only_if_something_changed() {
        let mut timetable = Timetable::new(Intervals { goals: 100, disks: 1_000, brokers: 1_000, backoff: 50 }, 0);
        timetable.brokers_looked_for(0);
        assert!(!timetable.goals_due(at(49)) && timetable.goals_due(at(50)));
        assert_eq!(timetable.next(at(0)), Some(50));
        timetable.judged(1, 50);
        assert!(!timetable.goals_due(at(500)));
        assert_eq!(timetable.next(at(60)), Some(500), "the disks");
        let news = |now| Moment { generation: 2, ..at(now) };
        assert!(!timetable.goals_due(news(149)) && timetable.goals_due(news(150)));
        assert!(!timetable.goals_due(Moment { executing: true, ..news(150) }));
        timetable.not_judged(2);
        assert!(!timetable.goals_due(news(160)) && timetable.goals_due(Moment { generation: 3, ..at(160) }));
    }

    #[test]
    fn an_execution_leaves_only_brokers_to_be_missed() {
        let mut timetable = Timetable::new(Intervals { goals: 100, disks: 100, brokers: 70, backoff: 30 }, 0);
        let busy = |now| Moment { executing: true, ..at(now) };
        assert!(timetable.brokers_due(0) && !timetable.disks_due(busy(60)) && timetable.disks_due(at(60)));
        assert_eq!(timetable.next(Moment { sighted: false, ..busy(0) }), None);
        timetable.brokers_looked_for(0);
        assert_eq!(timetable.next(busy(0)), Some(70));
        timetable.brokers_after_backoff(0);
        assert_eq!(timetable.next(busy(0)), Some(30));
        timetable.brokers_by(40);
        assert_eq!(timetable.next(busy(0)), Some(30), "never later than before");
    }

    #[test]
    fn while_what_is_seen_is_not_believed_nothing_is_due() {
        let mut timetable = Timetable::new(Intervals { goals: 1_000, disks: 100, brokers: 70, backoff: 30 }, 0);
        let now = at(60);
        assert!(timetable.disks_due(now) && timetable.brokers_due(60));
        timetable.doubts_until(90);
        assert_eq!(timetable.next(now), Some(90), "or it would be looked again and again without a pause");
        timetable.disks_looked_for(90);
        timetable.doubts_until(120);
        assert!(!timetable.disks_due(at(189)) && timetable.disks_due(at(190)), "what is due later stays so");
    }
}
