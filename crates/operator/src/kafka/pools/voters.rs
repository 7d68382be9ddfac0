//! Who votes in the quorum of controllers.
//!
//! The quorum is static: every node has the list in its configuration, and it must be the same list for as long as the
//! cluster lives. So it is made once, and then taken from what the nodes were told. A list made anew from the pools that
//! are there would lack the controllers of a pool that is away; they would run on with the old one, and two lists can elect
//! two leaders.

use std::collections::BTreeMap;

use evenkeel_api::{Reason, labels};

use super::{Pool, Roles};
use crate::kafka::{
    config::{SERVER_CONFIG, VOTERS},
    listeners::CONTROL_PLANE,
    names::Names,
    problem::Remark,
    properties,
    seen::Live,
};

/// Controllers by id, and the pool of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Voters(BTreeMap<i32, String>);

impl FromIterator<(i32, String)> for Voters {
    fn from_iter<T: IntoIterator<Item = (i32, String)>>(all: T) -> Self {
        Self(all.into_iter().collect())
    }
}

impl Voters {
    /// What the nodes were told. Somebody may have changed the ConfigMap of one of them: what most of them say holds, and
    /// of two lists that equally many have the longer one, because a voter that is left out is what does harm.
    pub fn told(live: &Live, names: &Names) -> Self {
        let mut lists: BTreeMap<Self, usize> = BTreeMap::new();
        for (name, map) in live.of_kind("ConfigMap") {
            let of = map.pointer("/metadata/labels").and_then(|labels| labels.get(labels::POD_NAME)?.as_str());
            let file = map.get("data").and_then(|data| data.get(SERVER_CONFIG)?.as_str());
            if let Some(list) = file.filter(|_| of == Some(name)).and_then(|file| Self::in_file(file, names)) {
                *lists.entry(list).or_default() += 1;
            }
        }
        let most = lists.into_iter().max_by_key(|(list, files)| (*files, list.0.len()));
        most.map(|(list, _)| list).unwrap_or_default()
    }

    /// None if there is no such list, or one that is not ours.
    fn in_file(file: &str, names: &Names) -> Option<Self> {
        // Of the file this is one line, and there are many files.
        let line = file.lines().find(|line| line.strip_prefix(VOTERS).is_some_and(|rest| rest.starts_with('=')))?;
        let list = properties::read(line).remove(VOTERS)?;
        list.split(',').map(|voter| voter_of(voter, names)).collect()
    }

    /// As Kafka's setting wants it.
    pub fn text(&self, names: &Names) -> String {
        let one =
            |(id, pool): (&i32, &String)| format!("{id}@{}:{CONTROL_PLANE}", names.pod_host(&names.pod(pool, *id)));
        self.0.iter().map(one).collect::<Vec<_>>().join(",")
    }

    /// These and those others: nobody who votes is ever left out.
    #[must_use]
    pub fn and(mut self, others: impl IntoIterator<Item = (i32, String)>) -> Self {
        self.0.extend(others);
        self
    }

    /// Their ids.
    pub fn ids(&self) -> impl Iterator<Item = i32> + '_ {
        self.0.keys().copied()
    }

    /// A pool with those of its nodes that vote: they are not new, though nothing but the quorum remembers them. So a pool
    /// that was deleted by mistake can be made again, and is the same one.
    pub(super) fn recall(&self, mut pool: Pool) -> Pool {
        let own: Vec<i32> = self.0.iter().filter(|(_, of)| **of == pool.name).map(|(id, _)| *id).collect();
        if !own.is_empty() {
            pool.current.extend(own);
            pool.roles_before = pool.roles_before.or(Some(Roles { controller: true, ..pool.roles }));
        }
        pool
    }

    /// What to say of those whose pool is not there.
    pub(super) fn remark(&self, pools: &BTreeMap<String, Pool>) -> Option<Remark> {
        let mut away: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (id, pool) in self.0.iter().filter(|(_, pool)| !pools.contains_key(*pool)) {
            away.entry(pool).or_default().push(id.to_string());
        }
        let count: usize = away.values().map(Vec::len).sum();
        let told = away.iter().map(|(pool, ids)| format!("node pool {pool} ({})", ids.join(", ")));
        let told = told.collect::<Vec<_>>().join(" and ");
        let (all, needed) = (self.0.len(), self.0.len() / 2 + 1);
        let text = format!(
            "controllers are gone with their {told}, and still count, because the quorum is fixed when the cluster is made: \
             of {all} controllers {} are left, and {needed} must be up. Make the node pool again, with the same name, roles \
             and number of replicas: it gets the same ids",
            all - count
        );
        (count > 0).then(|| Remark::of_kafka(Reason::InvalidResourceException, text))
    }
}

/// One entry of the list, such as `3@c-controllers-3.c-kafka-brokers.ns.svc:9090`.
fn voter_of(entry: &str, names: &Names) -> Option<(i32, String)> {
    let (id, place) = entry.trim().split_once('@')?;
    let (host, _) = place.rsplit_once(':')?;
    let pod = host.strip_suffix(&names.pod_host(""))?;
    let pool = pod.strip_prefix(&names.pod_set(""))?.strip_suffix(&format!("-{id}"))?;
    Some((id.parse().ok()?, pool.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn names() -> Names {
        Names { cluster: "c".into(), namespace: "ns".into() }
    }

    fn voters(all: &[(i32, &str)]) -> Voters {
        all.iter().map(|(id, pool)| (*id, (*pool).to_owned())).collect()
    }

    /// ConfigMaps of nodes with these lists, by the nodes' names.
    fn live(files: &[(&str, &str)]) -> Live {
        let map = |(name, list): &(&str, &str)| {
            let file = format!("# a comment\ncontroller.listener.names=x\n{VOTERS}={list}\nnode.id=1\n");
            let metadata = json!({"name": name, "labels": {labels::POD_NAME: name}});
            let value: Value = json!({"metadata": metadata, "data": {SERVER_CONFIG: file}});
            (("ConfigMap".to_owned(), (*name).to_owned()), value)
        };
        Live { objects: files.iter().map(map).collect() }
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let all = voters(&[(3, "k"), (4, "k-two"), (10, "k")]);
        let text = all.text(&names());
        assert_eq!(
            text,
            "3@c-k-3.c-kafka-brokers.ns.svc:9090,4@c-k-two-4.c-kafka-brokers.ns.svc:9090,\
             10@c-k-10.c-kafka-brokers.ns.svc:9090"
        );
        assert_eq!(Voters::told(&live(&[("c-k-3", &text)]), &names()), all);
    }

    #[test]
    fn what_most_nodes_were_told_holds_and_of_equals_the_longer_list() {
        let [one, two] = [voters(&[(3, "k")]), voters(&[(3, "k"), (4, "k")])];
        let [short, long] = [one.text(&names()), two.text(&names())];
        let told = |files: &[(&str, &str)]| Voters::told(&live(files), &names());
        assert_eq!(told(&[("a", &short), ("b", &long), ("c", &short)]), one);
        assert_eq!(told(&[("a", &short), ("b", &long)]), two);
        assert_eq!(told(&[("a", &long), ("b", &short)]), two);
        assert_eq!(told(&[]), Voters::default());
        // What nobody of ours could have written counts for nothing.
        for foreign in ["", "x", "3@elsewhere:9090", "3@c-k-4.c-kafka-brokers.ns.svc:9090"] {
            assert_eq!(told(&[("a", foreign), ("b", &long)]), two, "{foreign}");
            assert_eq!(told(&[("a", foreign)]), Voters::default(), "{foreign}");
        }
    }

    #[test]
    fn the_configuration_of_something_else_is_none_of_theirs() {
        let mut all = live(&[("c-k-3", &voters(&[(3, "k")]).text(&names()))]);
        all.objects.values_mut().for_each(|map| map["metadata"]["labels"] = json!({}));
        assert_eq!(Voters::told(&all, &names()), Voters::default());
    }
}
