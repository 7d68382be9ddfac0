//! The CRDs in `deploy/crds` are those that the types say.

use std::{collections::BTreeSet, env, fs, path::PathBuf};

use evenkeel_api::{crd::crd_yaml, crds, crds_yaml};

#[test]
fn the_committed_crds_are_fresh() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    let bless = env::var_os("EVENKEEL_BLESS").is_some();
    if bless {
        fs::create_dir_all(&folder).unwrap();
    }
    let mut expected = BTreeSet::new();
    for crd in crds() {
        let name = format!("{}.yaml", crd.spec.names.plural);
        let fresh = crd_yaml(&crd).unwrap();
        if bless {
            fs::write(folder.join(&name), &fresh).unwrap();
        }
        let committed = fs::read_to_string(folder.join(&name)).unwrap_or_default();
        assert!(
            committed == fresh,
            "deploy/crds/{name} is stale: run EVENKEEL_BLESS=1 cargo test -p evenkeel-api, and commit it"
        );
        expected.insert(name);
    }
    let present: BTreeSet<String> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(present, expected, "deploy/crds holds one file for each CRD and nothing else");
}

#[test]
fn the_printed_crds_are_the_same_objects() {
    let printed: Vec<serde_json::Value> = serde_saphyr::from_multiple(&crds_yaml().unwrap()).unwrap();
    let built: Vec<_> = crds().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
    assert_eq!(printed, built);
}
