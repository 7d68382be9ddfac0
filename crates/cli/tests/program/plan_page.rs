//! `evenkeel plan --report`, looked at by a real browser: Debian's Chromium, or whatever `EVENKEEL_BROWSER` names.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// A name that would be markup if it were not escaped, and a cluster in which T-0 breaks its racks.
const SNAPSHOT: &str = "\
evenkeel-snapshot v1 brokers=3 partitions=3
broker 0 a<script>document.title='broken'</script> h0 ALIVE 100 300000 200000 300000
broker 1 a<script>document.title='broken'</script> h1 ALIVE 100 300000 200000 300000
broker 2 b h2 ALIVE 100 300000 200000 300000
p orders 0 0,1 0 8,9000,12000,20000 1,9000,0,20000
p orders 1 0,1 0 8,9000,12000,20000 1,9000,0,20000
p parcels 0 0,1 0 8,9000,12000,20000 1,9000,0,20000
";

/// Put behind the page's own script: types into the filter, and tells in the title what is to be seen then.
const PROBE: &str = "\
<script>
const visible = () => Array.from(document.querySelectorAll('#changes tbody tr')).filter((row) => row.offsetHeight > 0);
const all = visible().length;
const input = document.getElementById('filter');
input.value = 'PARCELS';
input.dispatchEvent(new Event('input'));
const bars = Array.from(document.querySelectorAll('.bars i.after')).filter((bar) => bar.offsetWidth > 1).length;
const shown = (place) => Array.from(document.querySelectorAll(place)).filter((it) => it.offsetHeight > 0);
const light = (colour) => colour.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
const contrast = (it) => Math.abs(light(getComputedStyle(it).color) - light(getComputedStyle(document.body).backgroundColor));
document.title = JSON.stringify({
  goals: shown('#goals tbody tr').filter((row) => row.textContent.includes('RackAwareGoal')).length,
  flows: shown('#flows td').filter((cell) => /[1-9]/.test(cell.textContent)).length,
  reasons: shown('#changes tbody tr').filter((row) => row.textContent.includes('RackAwareGoal')).length,
  legible: shown('h1, h2, th, td').every((it) => contrast(it) > 150),
  all, filtered: visible().length, said: document.getElementById('shown').textContent,
  bars: bars > 0, fits: document.documentElement.scrollWidth <= window.innerWidth,
  dark: matchMedia('(prefers-color-scheme: dark)').matches,
  paper: getComputedStyle(document.body).backgroundColor,
  fetched: performance.getEntriesByType('resource').length,
});
</script>
</body>";

fn browser() -> Option<String> {
    let named = std::env::var("EVENKEEL_BROWSER").ok();
    let found = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    named.or_else(|| {
        ["chromium", "chromium-browser", "google-chrome"].iter().find(|name| found(name)).map(|name| (*name).to_owned())
    })
}

/// What the probe put into the title of the page, as the browser shows it.
fn seen(browser: &str, page: &Path, profile: &TempDir, scheme: &str) -> serde_json::Value {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1000,800", "--dump-dom"])
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts");
    let page = String::from_utf8_lossy(&output.stdout);
    let title = page.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>")).map(|(title, _)| title);
    let title = title.unwrap_or_else(|| panic!("no page: {page}\n{}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(title).unwrap_or_else(|error| panic!("{error}: the probe did not run to its end: {title}"))
}

#[test]
fn a_browser_shows_the_page() {
    let Some(browser) = browser() else {
        assert!(std::env::var_os("CI").is_none(), "CI has Chromium, and nothing skips unseen there");
        // Nobody reads it if it cannot be written.
        let _ = writeln!(std::io::stderr(), "skipped: no Chromium here; EVENKEEL_BROWSER names another");
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let (snapshot, page) = (place.path().join("snapshot"), place.path().join("plan.html"));
    std::fs::write(&snapshot, SNAPSHOT).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(["plan", "--goals", "RackAwareGoal", "--snapshot"])
        .arg(&snapshot)
        .arg("--report")
        .arg(&page)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("RackAwareGoal"), "the tables are printed as ever");
    let probed = std::fs::read_to_string(&page).unwrap().replace("</body>", PROBE);
    std::fs::write(&page, probed).unwrap();
    let mut papers = Vec::new();
    for (scheme, dark) in [("0", true), ("1", false)] {
        let seen = seen(&browser, &page, &tempfile::tempdir().unwrap(), scheme);
        assert_eq!(seen["dark"], dark);
        assert_eq!((&seen["all"], &seen["filtered"]), (&3.into(), &1.into()), "{seen}");
        assert_eq!(seen["said"], "1 of 3");
        assert_eq!((&seen["bars"], &seen["fits"]), (&true.into(), &true.into()), "{seen}");
        assert_eq!(seen["fetched"], 0);
        assert_eq!((&seen["goals"], &seen["reasons"]), (&1.into(), &1.into()), "{seen}");
        assert!(seen["flows"].as_u64() > Some(0) && seen["legible"] == true, "{seen}");
        papers.push(seen["paper"].clone());
    }
    assert_ne!(papers[0], papers[1], "dark is not light");
}
