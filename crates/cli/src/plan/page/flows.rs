//! How much data goes from which broker to which, as a table in which more is darker.
//!
//! A replica's way is told from the broker it leaves to the one it comes to; Kafka copies it from the leader,
//! wherever that is. With more brokers than fit, racks stand in for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::super::report::{BrokerLine, Changes};
use super::super::units::megabytes;
use super::html::text;

/// A table of more rows than this is no picture any more.
const MOST_ROWS: usize = 40;

/// Data in MB, by sender and receiver.
pub(super) struct Flows {
    of: &'static str,
    between: BTreeMap<(Place, Place), f64>,
}

/// A broker, or a rack where there are too many brokers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Broker(i32),
    Rack(String),
}

impl Place {
    fn name(&self) -> String {
        match self {
            Place::Broker(id) => id.to_string(),
            Place::Rack(name) => name.clone(),
        }
    }
}

impl Flows {
    pub(super) fn of(changes: &Changes<'_>, brokers: &[BrokerLine<'_>]) -> Flows {
        let mut between: BTreeMap<(i32, i32), f64> = BTreeMap::new();
        for change in changes.all {
            let share = change.megabytes / change.moves.len().max(1) as f64;
            for (from, to) in &change.moves {
                *between.entry((from.0, to.0)).or_default() += share;
            }
        }
        let ends: BTreeSet<i32> = between.keys().flat_map(|(from, to)| [*from, *to]).collect();
        if ends.len() <= MOST_ROWS {
            let named = |((from, to), data)| ((Place::Broker(from), Place::Broker(to)), data);
            return Flows { of: "broker", between: between.into_iter().map(named).collect() };
        }
        let racks: BTreeMap<i32, &str> = brokers.iter().map(|line| (line.broker, line.rack)).collect();
        let rack = |broker: i32| Place::Rack(racks.get(&broker).copied().unwrap_or_default().to_owned());
        let mut by_rack: BTreeMap<(Place, Place), f64> = BTreeMap::new();
        for ((from, to), data) in between {
            *by_rack.entry((rack(from), rack(to))).or_default() += data;
        }
        Flows { of: "rack", between: by_rack }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.between.is_empty()
    }

    pub(super) fn render(&self) -> String {
        let senders: BTreeSet<&Place> = self.between.keys().map(|(from, _)| from).collect();
        let receivers: BTreeSet<&Place> = self.between.keys().map(|(_, to)| to).collect();
        let most = self.between.values().copied().fold(0.0, f64::max);
        let mut table = format!("<p>By {}: rows send, columns receive.</p>\n<div class=\"wide\">", self.of);
        table.push_str("<table class=\"flows\">\n<tr><th></th>");
        for to in &receivers {
            let _ = write!(table, "<th>{}</th>", text(&to.name()));
        }
        table.push_str("<th>sends</th></tr>\n");
        for from in senders {
            let _ = write!(table, "<tr><th>{}</th>", text(&from.name()));
            let mut sum = 0.0;
            for to in &receivers {
                let key = (from.clone(), (*to).clone());
                match self.between.get(&key) {
                    None => table.push_str("<td></td>"),
                    Some(data) => {
                        sum += data;
                        let depth = if most > 0.0 { data / most } else { 0.0 };
                        let said = megabytes(*data);
                        let _ = write!(table, "<td style=\"--depth:{depth:.3}\">{said}</td>");
                    }
                }
            }
            let _ = writeln!(table, "<td class=\"sum\">{}</td></tr>", megabytes(sum));
        }
        table.push_str("<tr><th>receives</th>");
        for to in &receivers {
            let sum: f64 = self.between.iter().filter(|((_, at), _)| at == *to).map(|(_, data)| data).sum();
            let _ = write!(table, "<td class=\"sum\">{}</td>", megabytes(sum));
        }
        table.push_str("<td></td></tr>\n</table></div>\n");
        table
    }
}
