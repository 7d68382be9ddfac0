//! `evenkeel local`

use std::process::{Command, Output};

fn evenkeel(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(arguments).output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_tour_keeps_its_promises() {
    let output = evenkeel(&["local", "--tour"]);
    let (told, complaints) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{told}\n{complaints}");
    assert!(told.lines().any(|line| line.starts_with("All ") && line.ends_with(" chapters were kept.")), "{told}");
    assert!(!told.contains('✗') && !told.contains('\u{1b}'), "plain lines for a pipe: {told}");
}

#[test]
fn a_chapter_that_there_is_not_is_refused_in_one_line() {
    let output = evenkeel(&["local", "--tour", "--chapter", "99"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stderr), "evenkeel: --chapter 99: there are chapters 1 to 3\n");
    assert_eq!(text(&output.stdout), "");
}
