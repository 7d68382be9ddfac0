//! Checks that are made of other checks.

use super::outcome::Outcome;
use super::{Given, check_all};
use crate::schema::Checks;

pub(super) fn check_junctors<'t>(checks: &Checks, given: Given<'_, 't>, outcome: &mut Outcome<'t>) {
    outcome.applied += 2;
    if !checks.any_of.is_empty() {
        let mut best: Option<Outcome<'_>> = None;
        for schema in &checks.any_of {
            let one = check_all(schema, given);
            let good = !one.failed;
            if good || best.as_ref().is_none_or(|best| one.applied > best.applied) {
                best = Some(one);
            }
            if good {
                break;
            }
        }
        if best.as_ref().is_some_and(|best| best.failed) {
            outcome.fail_junctor(given.path, "must validate at least one schema (anyOf)");
        }
        best.into_iter().for_each(|best| outcome.merge(best));
    }
    if !checks.exactly_one_of.is_empty() {
        check_one_of(checks, given, outcome);
    }
    if !checks.all_of.is_empty() {
        let mut good = 0;
        for schema in &checks.all_of {
            let one = check_all(schema, given);
            good += usize::from(!one.failed);
            outcome.merge(one);
        }
        if good < checks.all_of.len() {
            let none = if good == 0 { ". None validated" } else { "" };
            outcome.fail_junctor(given.path, &format!("must validate all the schemas (allOf){none}"));
        }
    }
    if checks.not.as_ref().is_some_and(|schema| !check_all(schema, given).failed) {
        outcome.fail_junctor(given.path, "must not validate the schema (not)");
    }
}

fn check_one_of<'t>(checks: &Checks, given: Given<'_, 't>, outcome: &mut Outcome<'t>) {
    let mut good = Vec::new();
    let mut best: Option<Outcome<'_>> = None;
    for schema in &checks.exactly_one_of {
        let one = check_all(schema, given);
        if !one.failed {
            good.push(one);
        } else if best.as_ref().is_none_or(|best| one.applied > best.applied) {
            best = Some(one);
        }
    }
    match good.len() {
        1 => outcome.merge(good.remove(0)),
        0 => {
            outcome.fail_junctor(given.path, "must validate one and only one schema (oneOf). Found none valid");
            best.into_iter().for_each(|best| outcome.merge(best));
        }
        many => {
            let says = format!("must validate one and only one schema (oneOf). Found {many} valid alternatives");
            outcome.fail_junctor(given.path, &says);
        }
    }
}
