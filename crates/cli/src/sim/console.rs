//! Reads commands from standard input while the cluster runs. A prompt is drawn on a terminal only.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};

use evenkeel_sim::BrokerId;
use evenkeel_sim::serve::{Listener, World};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader};

use super::command::{Command, parse};
use super::{Args, deed, show};
use crate::printable;

/// Why no more commands come.
pub(super) enum Ending {
    /// Somebody said so.
    Quit,
    /// There is nothing left to read, and nobody at a terminal who closed it.
    InputOver,
}

/// Someone who obeys.
pub(super) struct Console {
    world: World,
    listener: Listener,
    args: Args,
    /// Names and keys of the calls that brokers serve.
    apis: BTreeMap<String, i16>,
}

impl Console {
    pub(super) fn new(world: World, listener: Listener, args: Args) -> Self {
        let apis = evenkeel_sim::broker::served().map(|(key, _, _)| (format!("{key:?}"), key as i16)).collect();
        Self { world, listener, args, apis }
    }

    /// Obeys until told to quit, or until there is nothing left to read.
    pub(super) async fn run(&self) -> io::Result<Ending> {
        let at_a_terminal = io::stdin().is_terminal();
        let mut input = BufReader::new(tokio::io::stdin());
        loop {
            if at_a_terminal {
                say("> ").await?;
            }
            let line = match next_line(&mut input).await {
                Ok(Some(line)) => line,
                Ok(None) if at_a_terminal => return Ok(Ending::Quit),
                Ok(None) => return Ok(Ending::InputOver),
                // Not text: the line is lost, the next may be better.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    say("that was not text; help lists the commands\n").await?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let answer = match parse(&line, &self.apis) {
                Ok(None) => continue,
                Ok(Some(Command::Quit)) => return Ok(Ending::Quit),
                Ok(Some(command)) => self.obey(command).await,
                Err(complaint) => Err(complaint.to_string()),
            };
            say(&answer.unwrap_or_else(|refusal| refusal + "\n")).await?;
        }
    }

    async fn obey(&self, command: Command) -> Result<String, String> {
        match command {
            Command::Add { id, rack } => self.add(id, rack).await,
            Command::LoseAnswer { broker, api_key } => {
                self.world.look(|cluster| deed::known(cluster, broker))?;
                self.world.lose_answer(broker, api_key);
                Ok("done\n".to_owned())
            }
            Command::Status => {
                let status = self.world.with(|cluster| deed::obey(cluster, &Command::Status))?;
                Ok(status + &show::left_out(self.world.left_out()))
            }
            other => self.world.with(|cluster| deed::obey(cluster, &other)),
        }
    }

    async fn add(&self, id: Option<BrokerId>, rack: Option<String>) -> Result<String, String> {
        let ids = self.world.look(|cluster| cluster.broker_ids());
        let next = next_free(&ids);
        let id = id.unwrap_or(BrokerId(next));
        if ids.contains(&id) {
            return Err(format!("there is a broker {id} already; the next free id is {next}"));
        }
        let port = self.args.port_of(id.0).map_err(|error| format!("{error:#}"))?;
        let opened = self.listener.open_tcp(id, port).await;
        let port = opened.map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
        let spec = self.args.spec(id, rack);
        let place = spec.rack.as_ref().map(|rack| format!(" in rack {rack}")).unwrap_or_default();
        self.world.with(|cluster| cluster.add_broker(spec));
        Ok(format!("broker {id} listens on 127.0.0.1:{port}{place}\n"))
    }
}

/// A longer line is none that a person types.
const LONGEST: usize = 64 * 1024;

/// The next line; nothing at the end of the input. One that is too long is read to its end and not kept, and as little
/// text as one that is none.
async fn next_line(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    loop {
        let come = input.fill_buf().await?;
        let end = come.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(come.len(), |at| at + 1);
        line.extend_from_slice(&come[..taken.min(LONGEST + 1 - line.len())]);
        input.consume(taken);
        if end.is_some() || taken == 0 {
            break;
        }
    }
    if line.is_empty() {
        return Ok(None);
    }
    if line.len() > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    String::from_utf8(line).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// The id after the greatest, or the least that is free if there is none greater. Ids come in order.
fn next_free(ids: &[BrokerId]) -> i32 {
    let after = ids.last().map_or(Some(0), |id| id.0.checked_add(1));
    after.unwrap_or_else(|| (0..).zip(ids).find(|(n, id)| *n != id.0).map_or(0, |(n, _)| n))
}

/// A reader that has gone is noticed elsewhere, and no error. One that is there and does not read holds up the console
/// and nothing else: brokers and signals have the other threads.
pub(super) async fn say(text: &str) -> io::Result<()> {
    let text = printable::lines(text).into_owned();
    let written = tokio::task::spawn_blocking(move || {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    });
    match written.await.map_err(io::Error::other)? {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_free_id_after_the_greatest_that_can_be() {
        let next = |ids: &[i32]| next_free(&ids.iter().copied().map(BrokerId).collect::<Vec<_>>());
        assert_eq!([next(&[]), next(&[0, 1, 5]), next(&[0, 1, i32::MAX]), next(&[i32::MAX])], [0, 6, 2, 0]);
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_not_kept() {
        let endless = [vec![b'x'; 3 * LONGEST], b"\nhelp\r\n\xff\n\nquit".to_vec()].concat();
        let mut input = BufReader::with_capacity(1_000, &endless[..]);
        let mut heard = Vec::new();
        loop {
            match next_line(&mut input).await {
                Ok(None) => break,
                line => heard.push(line.ok().flatten()),
            }
        }
        let said = |text: &str| Some(text.to_owned());
        assert_eq!(heard, [None, said("help\r\n"), None, said("\n"), said("quit")]);
    }
}
