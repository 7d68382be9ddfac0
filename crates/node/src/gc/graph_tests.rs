//! The graph against a server of a few lines, over all small worlds.

use super::*;

/// A server with just enough rules: it carries out actions and tells what happened.
#[derive(Default)]
struct Server {
    objects: BTreeMap<Uid, Object>,
    events: Vec<Event>,
    versions: u32,
}

impl Server {
    fn write(&mut self, mut object: Object) {
        self.versions += 1;
        object.version = self.versions.to_string();
        let held = object.foreground || object.orphan;
        if object.deleting && !held {
            self.objects.remove(&object.uid);
            self.events.push(Event::Gone(object.uid));
        } else {
            self.objects.insert(object.uid.clone(), object.clone());
            self.events.push(Event::Seen(object));
        }
    }

    fn delete(&mut self, uid: &str, propagation: Propagation) {
        let Some(mut object) = self.objects.get(uid).cloned() else { return };
        object.deleting = true;
        object.foreground = propagation == Propagation::Foreground;
        object.orphan = propagation == Propagation::Orphan;
        self.write(object);
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Verify(claim) => {
                let found = self.objects.get(&claim.uid).is_some_and(|object| object.at == claim.at);
                let finding = if found { Finding::Present } else { Finding::Absent };
                self.events.push(Event::Verified(claim, finding));
            }
            Action::Delete(judged, propagation) => match self.objects.get(&judged.uid) {
                Some(now) if now.version == judged.version => self.delete(&judged.uid, propagation),
                Some(_) => self.events.push(Event::Recheck(judged.uid)),
                None => (),
            },
            Action::RemoveOwners(object, owners) => {
                self.edit(&object.uid, |object| object.owners.retain(|owner| !owners.contains(&owner.uid)));
            }
            Action::StopBlocking(object) => {
                self.edit(&object.uid, |object| object.owners.iter_mut().for_each(|owner| owner.blocks = false));
            }
            Action::RemoveFinalizer(object, FOREGROUND) => self.edit(&object.uid, |object| object.foreground = false),
            Action::RemoveFinalizer(object, _) => self.edit(&object.uid, |object| object.orphan = false),
        }
    }

    fn edit(&mut self, uid: &str, change: impl FnOnce(&mut Object)) {
        let Some(mut object) = self.objects.get(uid).cloned() else { return };
        change(&mut object);
        if object != self.objects[uid] {
            self.write(object);
        }
    }
}

/// Lets server and graph talk until both are silent.
fn settle(graph: &mut Graph, server: &mut Server) {
    for _ in 0..500 {
        if server.events.is_empty() {
            return;
        }
        let event = server.events.remove(0);
        for action in graph.handle(event) {
            server.perform(action);
        }
    }
    panic!("it never settles: {server:?}", server = server.objects.keys());
}

fn object(name: &str) -> Object {
    let at = Coordinates { group: "g".into(), kind: "K".into(), namespace: Some("ns".into()), name: name.into() };
    Object {
        uid: name.into(),
        at,
        version: String::new(),
        owners: Vec::new(),
        deleting: false,
        foreground: false,
        orphan: false,
    }
}

fn reference(name: &str, blocks: bool) -> Owner {
    Owner { group: "g".into(), kind: "K".into(), name: name.into(), uid: name.into(), blocks }
}

fn owned(name: &str, owners: &[Owner]) -> Object {
    Object { owners: owners.to_vec(), ..object(name) }
}

/// A settled world of these objects.
fn world(objects: Vec<Object>) -> (Graph, Server) {
    let (mut graph, mut server) = (Graph::default(), Server::default());
    for object in objects {
        server.write(object);
    }
    server.events.push(Event::Synced);
    settle(&mut graph, &mut server);
    (graph, server)
}

fn left(server: &Server) -> Vec<&str> {
    server.objects.keys().map(String::as_str).collect()
}

/// All ways in which three objects may own each other: nine digits would be loops too, six are edges to the others.
fn all_small_worlds() -> impl Iterator<Item = Vec<Object>> {
    const EDGES: [(usize, usize); 6] = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];
    const NAMES: [&str; 3] = ["a", "b", "c"];
    (0..3_u32.pow(6)).map(|choice| {
        let mut objects: Vec<_> = NAMES.iter().map(|name| object(name)).collect();
        for (position, (from, to)) in EDGES.iter().enumerate() {
            match choice / 3_u32.pow(u32::try_from(position).unwrap()) % 3 {
                0 => (),
                kind => objects[*from].owners.push(reference(NAMES[*to], kind == 2)),
            }
        }
        objects
    })
}

/// Who is left of `a`, `b` and `c` after `a` was deleted, worked out without any events.
fn survivors(objects: &[Object], propagation: Propagation) -> BTreeSet<&str> {
    let mut alive = BTreeSet::from(["b", "c"]);
    if propagation == Propagation::Orphan {
        return alive;
    }
    // Those without a living owner follow, and those that this leaves without one.
    loop {
        let abandoned = |object: &&Object| {
            let lives = |owner: &Owner| alive.contains(owner.uid.as_str());
            alive.contains(object.uid.as_str()) && !object.owners.is_empty() && !object.owners.iter().any(lives)
        };
        match objects.iter().find(abandoned) {
            Some(object) => drop(alive.remove(object.uid.as_str())),
            None => return alive,
        }
    }
}

#[test]
fn in_every_small_world_exactly_the_ownerless_dependants_go() {
    for objects in all_small_worlds() {
        for propagation in [Propagation::Background, Propagation::Foreground, Propagation::Orphan] {
            let (mut graph, mut server) = world(objects.clone());
            assert_eq!(left(&server).len(), 3, "nothing goes while everything is there: {objects:?}");
            server.delete("a", propagation);
            settle(&mut graph, &mut server);

            let expected = survivors(&objects, propagation);
            let seen: BTreeSet<&str> = left(&server).into_iter().collect();
            assert_eq!(seen, expected, "{propagation:?} {objects:?}");
            let dangling = |object: &Object| object.owners.iter().any(|owner| !seen.contains(owner.uid.as_str()));
            assert!(
                !server.objects.values().any(dangling),
                "no reference to what is gone is left: {:?}",
                server.objects
            );
            assert!(graph.claims.is_empty(), "nothing is remembered for ever: {:?}", graph.claims);
        }
    }
}

#[test]
fn until_everything_was_listed_nothing_is_done() {
    let mut graph = Graph::default();
    assert_eq!(graph.handle(Event::Seen(owned("child", &[reference("nobody", false)]))), []);
    assert_eq!(graph.handle(Event::Seen(Object { deleting: true, orphan: true, ..object("parent") })), []);
    let actions = graph.handle(Event::Synced);
    assert!(matches!(actions.as_slice(), [Action::Verify(_), Action::RemoveFinalizer(_, ORPHAN)]), "{actions:?}");
}

#[test]
fn an_owner_never_seen_is_asked_for_once_and_believed() {
    let mut graph = Graph::default();
    graph.handle(Event::Synced);
    let actions = graph.handle(Event::Seen(owned("child", &[reference("parent", false)])));
    let [Action::Verify(claim)] = actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!(graph.handle(Event::Seen(owned("sibling", &[reference("parent", false)]))), []);
    assert_eq!(graph.handle(Event::Verified(claim.clone(), Finding::Present)), []);
    assert_eq!(graph.handle(Event::Recheck("child".into())), []);
}

#[test]
fn an_owner_of_an_unknown_kind_is_asked_for_again_when_kinds_change() {
    let mut graph = Graph::default();
    graph.handle(Event::Synced);
    let actions = graph.handle(Event::Seen(owned("child", &[reference("parent", false)])));
    let [Action::Verify(claim)] = actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!(graph.handle(Event::Verified(claim.clone(), Finding::Unresolvable)), []);
    assert_eq!(graph.handle(Event::KindsChanged), [Action::Verify(claim.clone())]);
    let actions = graph.handle(Event::Verified(claim.clone(), Finding::Absent));
    assert!(matches!(actions.as_slice(), [Action::Delete(_, Propagation::Background)]), "{actions:?}");
}

#[test]
fn an_owner_in_another_namespace_or_of_another_name_is_none() {
    let mut elsewhere = object("parent");
    elsewhere.at.namespace = Some("elsewhere".into());
    let renamed = Owner { name: "other".into(), ..reference("same", false) };
    let objects = vec![elsewhere, object("same"), owned("a", &[reference("parent", false)]), owned("b", &[renamed])];
    let (_, server) = world(objects);
    assert_eq!(left(&server), ["parent", "same"]);
}

#[test]
fn a_cluster_scoped_owner_serves_every_namespace() {
    let mut parent = object("parent");
    parent.at.namespace = None;
    let (_, server) = world(vec![parent, owned("child", &[reference("parent", false)])]);
    assert_eq!(left(&server), ["child", "parent"]);
}

#[test]
fn a_dependant_that_changed_meanwhile_is_judged_again() {
    let (mut graph, mut server) = world(vec![object("parent"), owned("child", &[reference("parent", false)])]);
    server.delete("parent", Propagation::Background);
    // Somebody adopts the child before the graph hears of anything.
    server.write(owned("child", &[]));
    settle(&mut graph, &mut server);
    assert_eq!(left(&server), ["child"]);
}

#[test]
fn a_held_dependant_holds_its_foreground_owner() {
    let mut child = owned("child", &[reference("parent", true)]);
    child.orphan = true; // any finalizer of the child's own would do
    let (mut graph, mut server) = world(vec![object("parent"), child]);
    // The child's finalizer is in the way until the graph has let go of the child's own (absent) dependants.
    server.delete("parent", Propagation::Foreground);
    settle(&mut graph, &mut server);
    assert!(left(&server).is_empty());
}
