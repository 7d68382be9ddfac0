//! `docs/rest.md` is what the declarations say.

use std::path::Path;
use std::{env, fs};

#[test]
fn the_committed_page_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rest.md");
    let page = evenkeel_rest::docs::page();
    if env::var_os("EVENKEEL_BLESS").is_some() {
        fs::write(&path, &page).expect("docs/rest.md can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == page, "docs/rest.md is stale: run `cargo xtask generate`, and commit it");
}
