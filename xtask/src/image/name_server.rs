//! A name server that knows one name: what a cluster's DNS is to the program in its image.

use std::{
    io::{Error, ErrorKind},
    net::{Ipv4Addr, UdpSocket},
    thread,
};

use anyhow::{Context, Result, bail};

/// An address of this machine that nobody else listens on. Who resolves names asks port 53 and no other.
pub(super) const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 53, 53, 53);
/// The name, which stands in no file.
pub(super) const NAME: &str = "broker.evenkeel.test";
/// Where in a message the question begins.
const HEADER: usize = 12;
/// The type of a question for IPv4 addresses.
const A: [u8; 2] = [0, 1];

/// Answers until this process ends. False where this user may not listen on that port, which is an error in CI.
pub(super) fn start() -> Result<bool> {
    let socket = match UdpSocket::bind((ADDRESS, 53)) {
        Ok(socket) => socket,
        Err(error) if may_be_skipped(&error) => return Ok(false),
        Err(error) => bail!(Error::new(error.kind(), format!("could not listen on {ADDRESS}:53: {error}"))),
    };
    thread::Builder::new().spawn(move || serve(&socket)).context("could not start a thread")?;
    Ok(true)
}

fn may_be_skipped(error: &Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied && std::env::var_os("CI").is_none()
}

fn serve(socket: &UdpSocket) {
    let mut question = [0; 512];
    while let Ok((length, from)) = socket.recv_from(&mut question) {
        if let Some(answer) = answer(&question[..length]) {
            // Who does not get it asks again.
            let _ = socket.send_to(&answer, from);
        }
    }
}

/// 127.0.0.1 for the name, and for every other question that there is nothing of the kind.
fn answer(question: &[u8]) -> Option<Vec<u8>> {
    let asked = question.get(HEADER..)?;
    let end = asked.iter().position(|byte| *byte == 0)? + 1;
    let (asked_name, kind) = (asked.get(..end - 1)?, asked.get(end..end + 2)?);
    let is_known = asked_name.eq_ignore_ascii_case(&in_labels(NAME));
    let records = u8::from(is_known && kind == A);
    // An answer with authority, of one question; 3: there is no such name.
    let header = [0x84, if is_known { 0 } else { 3 }, 0, 1, 0, records, 0, 0, 0, 0];
    let mut answer = [question.get(..2)?, &header[..], asked.get(..end + 4)?].concat();
    if records == 1 {
        // The name as it stands in the question, an address of the Internet, good for a minute, four bytes long.
        answer.extend([0xc0, HEADER as u8, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
    }
    Some(answer)
}

/// A name as it stands in a message, but for the 0 that ends it.
fn in_labels(name: &str) -> Vec<u8> {
    name.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &str, kind: u8) -> Vec<u8> {
        [&[7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], &in_labels(name), &[0, 0, kind, 0, 1]].concat()
    }

    #[test]
    fn the_name_has_one_address_and_others_have_none() {
        let known = answer(&asked(NAME, 1)).unwrap();
        assert_eq!((&known[..2], known[3], known[7]), (&[7, 9][..], 0, 1));
        assert!(known.ends_with(&[127, 0, 0, 1]));
        let six = answer(&asked(NAME, 28)).unwrap();
        assert_eq!((six[3], six[7]), (0, 0), "it has no address of IPv6");
        assert_eq!(answer(&asked("other.test", 1)).unwrap()[3], 3);
        assert_eq!(answer(&[0; 5]), None);
    }
}
