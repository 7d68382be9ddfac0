//! `evenkeel crd`

use std::process::Command;

#[test]
fn crd_prints_the_definitions_and_nothing_else() {
    let output = Command::new(env!("CARGO_BIN_EXE_evenkeel")).arg("crd").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), evenkeel_api::crds_yaml().unwrap());
}
