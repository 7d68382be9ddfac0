//! What a person types while the simulated cluster runs: a line in, a command or a complaint out.

use std::collections::BTreeMap;
use std::str::SplitWhitespace;

use evenkeel_sim::BrokerId;

use crate::plan::units;

/// One line, understood.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Command {
    Help,
    Status,
    Topics,
    Moves,
    Quit,
    Add { id: Option<BrokerId>, rack: Option<String> },
    Stop(BrokerId),
    Kill(BrokerId),
    Start(BrokerId),
    Remove(BrokerId),
    LoseRack(String),
    SlowDisk { broker: BrokerId, dir: Dir, pace: f64 },
    FullDisk { broker: BrokerId, dir: Dir },
    FailDir { broker: BrokerId, dir: Dir },
    MendDir { broker: BrokerId, dir: Dir },
    SlowLink { broker: BrokerId, pace: f64 },
    Cut(BrokerId),
    Mend(BrokerId),
    Stale { broker: BrokerId, seconds: i64 },
    LoseAnswer { broker: BrokerId, api_key: i16 },
    ChangeController,
    Move { topic: String, partition: i32, to: Vec<BrokerId> },
    Cancel { topic: String, partition: i32 },
    Create { topic: String, partitions: i32, factor: i16, bytes_in: f64 },
    Delete(String),
    Load { topic: String, bytes_in: f64 },
    Swing { topic: String, swing: f64 },
    Hot { topic: String, partition: i32, times: f64 },
}

/// A log directory of a broker, as a person names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Dir {
    /// Counted from 0, as `status` lists them.
    Number(usize),
    /// By its path.
    Path(String),
}

/// Why a line means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Complaint {
    /// No such word.
    #[error("there is no command {word}{}; help lists them", hint(.like))]
    Unknown {
        word: String,
        /// The nearest there is.
        like: Option<&'static str>,
    },
    /// Something is missing, or there is too much.
    #[error("{what}; it goes: {usage}")]
    Words { what: String, usage: &'static str },
}

fn hint(like: &Option<&'static str>) -> String {
    like.map(|like| format!(", did you mean {like}?")).unwrap_or_default()
}

/// Every command: how it goes, and what it does. Also the text of `help`.
pub(super) const USAGES: [(&str, &str); 28] = [
    ("status", "brokers, their disks, and copies under way"),
    ("topics", "topics, their sizes and rates"),
    ("moves", "reassignments under way"),
    ("add [BROKER] [RACK]", "a new broker; the next free id and rack if none is given"),
    ("stop BROKER", "as SIGTERM does: leaders go elsewhere first"),
    ("kill BROKER", "as SIGKILL does: noticed when its session times out"),
    ("start BROKER", "start it again, with its old disks"),
    ("remove BROKER", "unregister it; Kafka does not ask whether it holds replicas"),
    ("lose-rack RACK", "kill every broker of a rack"),
    ("slow-disk BROKER DIR PERCENT", "what is left of a disk's speed; 100 mends it; DIR is a number or a path"),
    ("full-disk BROKER DIR", "a disk fills up, and its directory fails"),
    ("fail-dir BROKER DIR", "a directory fails"),
    ("mend-dir BROKER DIR", "it works again, after a restart of the broker"),
    ("slow-link BROKER PERCENT", "what is left of a link's speed; 100 mends it"),
    ("cut BROKER", "nobody reaches the broker, though it runs"),
    ("mend BROKER", "everybody reaches it again"),
    ("stale BROKER SECONDS", "its metadata stands still for so long"),
    ("lose-answer BROKER API", "its next answer to such a call is lost, after it has acted; API is a name or a key"),
    ("change-controller", "another broker passes for the controller"),
    ("move TOPIC PARTITION BROKERS", "somebody else's reassignment, to brokers such as 3,1,2"),
    ("cancel TOPIC PARTITION", "call a reassignment off"),
    ("create TOPIC PARTITIONS FACTOR [RATE]", "a new topic, with so much written to it, such as 5MB/s"),
    ("delete TOPIC", "delete a topic"),
    ("load TOPIC RATE", "change what is written to a topic, such as 5MB/s or 0"),
    ("swing TOPIC PERCENT", "how far a day's peak and trough lie from that"),
    ("hot TOPIC PARTITION TIMES", "a partition gets so many times what the topic's others get; 1 ends it"),
    ("help", "this list"),
    ("quit", "end the cluster"),
];

/// Understands one line; an empty one and a comment mean nothing.
pub(super) fn parse(line: &str, apis: &BTreeMap<String, i16>) -> Result<Option<Command>, Complaint> {
    let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
    let Some(verb) = words.next() else { return Ok(None) };
    let usage = USAGES.iter().map(|(usage, _)| *usage).find(|usage| verb_of(usage) == verb);
    let Some(usage) = usage else {
        return Err(Complaint::Unknown { word: verb.to_owned(), like: nearest(verb) });
    };
    let mut rest = Words { words, usage };
    let command = rest.command(verb, apis)?;
    rest.end()?;
    Ok(Some(command))
}

fn verb_of(usage: &'static str) -> &'static str {
    usage.split(' ').next().unwrap_or(usage)
}

/// The command that shares the longest beginning with a word, or that it is a part of.
fn nearest(word: &str) -> Option<&'static str> {
    let shared = |verb: &str| verb.bytes().zip(word.bytes()).take_while(|(a, b)| a == b).count();
    let verbs = || USAGES.iter().map(|(usage, _)| verb_of(usage));
    let contains = verbs().find(|verb| word.len() > 2 && (verb.contains(word) || word.contains(verb)));
    contains.or_else(|| verbs().max_by_key(|verb| shared(verb)).filter(|verb| shared(verb) > 1))
}

/// What follows the verb.
struct Words<'a> {
    words: SplitWhitespace<'a>,
    usage: &'static str,
}

impl<'a> Words<'a> {
    fn command(&mut self, verb: &str, apis: &BTreeMap<String, i16>) -> Result<Command, Complaint> {
        Ok(match verb {
            "status" => Command::Status,
            "topics" => Command::Topics,
            "moves" => Command::Moves,
            "add" => self.add()?,
            "stop" => Command::Stop(self.broker()?),
            "kill" => Command::Kill(self.broker()?),
            "start" => Command::Start(self.broker()?),
            "remove" => Command::Remove(self.broker()?),
            "lose-rack" => Command::LoseRack(self.word("a rack")?.to_owned()),
            "slow-disk" => Command::SlowDisk { broker: self.broker()?, dir: self.dir()?, pace: self.percent()? },
            "full-disk" => Command::FullDisk { broker: self.broker()?, dir: self.dir()? },
            "fail-dir" => Command::FailDir { broker: self.broker()?, dir: self.dir()? },
            "mend-dir" => Command::MendDir { broker: self.broker()?, dir: self.dir()? },
            "slow-link" => Command::SlowLink { broker: self.broker()?, pace: self.percent()? },
            "cut" => Command::Cut(self.broker()?),
            "mend" => Command::Mend(self.broker()?),
            "stale" => {
                let (broker, seconds) = (self.broker()?, self.number("seconds", 1..=86_400)?);
                Command::Stale { broker, seconds }
            }
            "lose-answer" => Command::LoseAnswer { broker: self.broker()?, api_key: self.api(apis)? },
            "change-controller" => Command::ChangeController,
            "move" => Command::Move { topic: self.topic()?, partition: self.partition()?, to: self.brokers()? },
            "cancel" => Command::Cancel { topic: self.topic()?, partition: self.partition()? },
            "create" => {
                let (topic, partitions) = (self.topic()?, self.number("partitions", 1..=100_000)? as i32);
                let factor = self.number("a replication factor", 1..=100)? as i16;
                let bytes_in = self.words.next().map_or(Ok(0.0), |word| self.rate_of(word))?;
                Command::Create { topic, partitions, factor, bytes_in }
            }
            "delete" => Command::Delete(self.topic()?),
            "load" => {
                let (topic, rate) = (self.topic()?, self.word("a rate")?);
                Command::Load { topic, bytes_in: self.rate_of(rate)? }
            }
            "swing" => Command::Swing { topic: self.topic()?, swing: self.percent()? },
            "hot" => Command::Hot { topic: self.topic()?, partition: self.partition()?, times: self.times()? },
            "quit" => Command::Quit,
            _ => Command::Help,
        })
    }

    fn add(&mut self) -> Result<Command, Complaint> {
        let Some(first) = self.words.next() else { return Ok(Command::Add { id: None, rack: None }) };
        let rack = self.words.next().map(str::to_owned);
        match (first.parse::<i32>(), rack) {
            (Ok(id), rack) if id >= 0 => Ok(Command::Add { id: Some(BrokerId(id)), rack }),
            (Err(_), None) if !first.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(Command::Add { id: None, rack: Some(first.to_owned()) })
            }
            _ => Err(self.complain(format!("{first} is not a broker's id"))),
        }
    }

    fn complain(&self, what: String) -> Complaint {
        Complaint::Words { what, usage: self.usage }
    }

    fn word(&mut self, what: &str) -> Result<&'a str, Complaint> {
        self.words.next().ok_or_else(|| self.complain(format!("{what} is missing")))
    }

    fn end(&mut self) -> Result<(), Complaint> {
        match self.words.next() {
            Some(extra) => Err(self.complain(format!("{extra} is one word too many"))),
            None => Ok(()),
        }
    }

    fn number(&mut self, what: &str, within: std::ops::RangeInclusive<i64>) -> Result<i64, Complaint> {
        let word = self.word(what)?;
        let (least, most) = (within.start(), within.end());
        word.parse().ok().filter(|number| within.contains(number)).ok_or_else(|| {
            self.complain(format!("{word} is not {what}, which would be a number from {least} to {most}"))
        })
    }

    fn broker(&mut self) -> Result<BrokerId, Complaint> {
        self.number("a broker", 0..=i64::from(i32::MAX)).map(|id| BrokerId(id as i32))
    }

    fn brokers(&mut self) -> Result<Vec<BrokerId>, Complaint> {
        let word = self.word("a list of brokers")?;
        let ids: Option<Vec<BrokerId>> = word.split(',').map(|id| id.parse().ok().map(BrokerId)).collect();
        ids.ok_or_else(|| self.complain(format!("{word} is not a list of brokers, such as 3,1,2")))
    }

    fn dir(&mut self) -> Result<Dir, Complaint> {
        let word = self.word("a directory")?;
        match word.parse() {
            Ok(number) => Ok(Dir::Number(number)),
            Err(_) if word.starts_with('/') => Ok(Dir::Path(word.to_owned())),
            Err(_) => Err(self.complain(format!("{word} is not a directory, which would be a number or a path"))),
        }
    }

    fn partition(&mut self) -> Result<i32, Complaint> {
        self.number("a partition", 0..=i64::from(i32::MAX)).map(|partition| partition as i32)
    }

    fn topic(&mut self) -> Result<String, Complaint> {
        self.word("a topic").map(str::to_owned)
    }

    fn percent(&mut self) -> Result<f64, Complaint> {
        let word = self.word("a percentage")?;
        part(word).ok_or_else(|| self.complain(format!("{word} is not a percentage from 0 to 100")))
    }

    fn times(&mut self) -> Result<f64, Complaint> {
        let word = self.word("a number")?;
        times(word).ok_or_else(|| self.complain(format!("{word} is not a number from 1 to 1000")))
    }

    fn rate_of(&self, word: &str) -> Result<f64, Complaint> {
        bytes_per_second(word).ok_or_else(|| self.complain(format!("{word} is not a rate, such as 5MB/s or 0")))
    }

    fn api(&mut self, apis: &BTreeMap<String, i16>) -> Result<i16, Complaint> {
        let word = self.word("a call")?;
        let by_name = apis.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, key)| *key);
        let by_key = || word.parse::<i16>().ok().filter(|key| apis.values().any(|known| known == key));
        by_name.or_else(by_key).ok_or_else(|| {
            self.complain(format!("{word} is none of the calls that are served, such as AlterPartitionReassignments"))
        })
    }
}

/// No cluster takes in a petabyte a second, and what comes of much more cannot be counted.
const FASTEST: f64 = 1024.0 * 1024.0 * 1024.0 * 1024.0 * 1024.0;

/// A rate in bytes per second: `5MB/s`, or 0.
pub(super) fn bytes_per_second(text: &str) -> Option<f64> {
    if text == "0" {
        return Some(0.0);
    }
    units::rate(text).map(|kilobytes| kilobytes * 1024.0).filter(|rate| *rate <= FASTEST)
}

/// A percentage as a part of 1: `50` and `50%` are a half.
pub(super) fn part(text: &str) -> Option<f64> {
    let percent = text.trim_end_matches('%').parse::<f64>().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

/// How many times the usual: `10` or `10x`.
pub(super) fn times(text: &str) -> Option<f64> {
    text.trim_end_matches('x').parse::<f64>().ok().filter(|times| (1.0..=1_000.0).contains(times))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apis() -> BTreeMap<String, i16> {
        BTreeMap::from([("AlterPartitionReassignments".to_owned(), 45), ("Metadata".to_owned(), 3)])
    }

    fn understood(line: &str) -> Command {
        parse(line, &apis()).expect("understood").expect("a command")
    }

    fn complaint(line: &str) -> String {
        parse(line, &apis()).expect_err("not understood").to_string()
    }

    #[test]
    fn every_usage_is_understood_when_it_is_followed() {
        for (usage, _) in USAGES {
            let line = usage
                .replace("[BROKER] [RACK]", "7 b")
                .replace("BROKERS", "3,1")
                .replace("BROKER", "1")
                .replace("DIR", "0")
                .replace("PERCENT", "10%")
                .replace("TIMES", "10x")
                .replace("SECONDS", "30")
                .replace("API", "metadata")
                .replace("TOPIC", "t")
                .replace("PARTITIONS", "4")
                .replace("PARTITION", "0")
                .replace("FACTOR [RATE]", "3 5MB/s")
                .replace("RATE", "5MB/s")
                .replace("RACK", "b");
            assert!(parse(&line, &apis()).is_ok_and(|it| it.is_some()), "{line}");
        }
    }

    #[test]
    fn words_become_values() {
        let b = BrokerId;
        assert_eq!(understood("  kill   3  # now"), Command::Kill(b(3)));
        assert_eq!(
            understood("slow-disk 1 0 2.5"),
            Command::SlowDisk { broker: b(1), dir: Dir::Number(0), pace: 0.025 }
        );
        let dir = Dir::Path("/data/d1".to_owned());
        assert_eq!(understood("fail-dir 0 /data/d1"), Command::FailDir { broker: b(0), dir });
        assert_eq!(understood("swing t 50%"), Command::Swing { topic: "t".to_owned(), swing: 0.5 });
        assert_eq!(understood("hot t 3 10x"), Command::Hot { topic: "t".to_owned(), partition: 3, times: 10.0 });
        assert_eq!(understood("add"), Command::Add { id: None, rack: None });
        assert_eq!(understood("add east"), Command::Add { id: None, rack: Some("east".to_owned()) });
        assert_eq!(understood("add 9"), Command::Add { id: Some(b(9)), rack: None });
        assert_eq!(understood("lose-answer 1 45"), Command::LoseAnswer { broker: b(1), api_key: 45 });
        let to = vec![b(3), b(1)];
        assert_eq!(understood("move t 4 3,1"), Command::Move { topic: "t".to_owned(), partition: 4, to });
        let topic = || "t".to_owned();
        assert_eq!(understood("load t 0"), Command::Load { topic: topic(), bytes_in: 0.0 });
        assert_eq!(understood("load t 2KB/s"), Command::Load { topic: topic(), bytes_in: 2_048.0 });
        assert_eq!(understood("load t 2KB"), Command::Load { topic: topic(), bytes_in: 2_048.0 });
        for nothing in ["", "   ", "# a remark"] {
            assert_eq!(parse(nothing, &apis()), Ok(None));
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line_with_what_would_be_right() {
        assert_eq!(complaint("reboot 1"), "there is no command reboot, did you mean remove?; help lists them");
        assert_eq!(complaint("slow 1 2"), "there is no command slow, did you mean slow-disk?; help lists them");
        assert_eq!(complaint("x"), "there is no command x; help lists them");
        assert_eq!(complaint("kill"), "a broker is missing; it goes: kill BROKER");
        assert_eq!(complaint("kill 1 2"), "2 is one word too many; it goes: kill BROKER");
        assert_eq!(
            complaint("kill first"),
            "first is not a broker, which would be a number from 0 to 2147483647; it goes: kill BROKER"
        );
        assert_eq!(
            complaint("slow-link 1 fast"),
            "fast is not a percentage from 0 to 100; it goes: slow-link BROKER PERCENT"
        );
        for bad in [
            "slow-link 1 101",
            "slow-link 1 NaN",
            "stale 1 0",
            "move t 0 a,b",
            "move t -1 1",
            "load t 5",
            "load t 1025TB/s",
            "swing t 101",
            "hot t 0 0.5",
            "hot t 0 NaN",
            "fail-dir 0 d1",
            "create t 0 1",
            "lose-answer 1 Nope",
            "lose-answer 1 99",
            "add -1",
            "add 2147483648",
            "quit now",
            "add x y z",
        ] {
            assert_eq!(complaint(bad).lines().count(), 1, "{bad}");
        }
    }
}
