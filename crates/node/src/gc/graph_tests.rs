//! The graph against a server of a few lines, over all small worlds.

use super::*;

/// A server with just enough rules: it carries out actions and tells what happened.
#[derive(Default)]
struct Server {
    objects: BTreeMap<Uid, Object>,
    events: Vec<Event>,
    versions: u32,
    /// How many actions it was asked for.
    actions: usize,
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
        self.actions += 1;
        let done = match &action {
            Action::Verify(_) => None,
            Action::Delete(judged, _)
                if self.objects.get(&judged.uid).is_some_and(|now| now.version != judged.version) =>
            {
                Some(Event::Recheck(judged.uid.clone()))
            }
            Action::Delete(object, _)
            | Action::RemoveOwners(object, _)
            | Action::StopBlocking(object)
            | Action::RemoveFinalizer(object, _) => Some(Event::Done(object.uid.clone())),
        };
        self.carry_out(action);
        self.events.extend(done);
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Verify(claim) => {
                let found = self.objects.get(&claim.uid).is_some_and(|object| object.at == claim.at);
                let finding = if found { Finding::Present } else { Finding::Absent };
                self.events.push(Event::Verified(claim, finding));
            }
            Action::Delete(judged, propagation) => match self.objects.get(&judged.uid) {
                Some(now) if now.version == judged.version => self.delete(&judged.uid, propagation),
                _ => (),
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
    for _ in 0..5000 {
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
fn nothing_is_decided_while_dependants_of_a_new_kind_are_not_yet_heard_of() {
    for propagation in [Propagation::Orphan, Propagation::Foreground] {
        let (mut graph, mut server) = world(vec![object("parent")]);
        graph.handle(Event::Unsynced);
        server.delete("parent", propagation);
        settle(&mut graph, &mut server);
        assert_eq!(left(&server), ["parent"], "it may have dependants");
        // It has one, which the first list of the new kind shows.
        server.write(owned("child", &[reference("parent", true)]));
        settle(&mut graph, &mut server);
        server.events.push(Event::Synced);
        settle(&mut graph, &mut server);
        let expected: &[&str] = if propagation == Propagation::Orphan { &["child"] } else { &[] };
        assert_eq!(left(&server), expected, "{propagation:?}");
        assert!(server.objects.values().all(|child| child.owners.is_empty()));
    }
}

#[test]
fn what_was_held_back_for_a_new_kind_is_made_up_for() {
    let (mut graph, mut server) = world(vec![object("parent"), owned("child", &[reference("parent", false)])]);
    graph.handle(Event::Unsynced);
    server.delete("parent", Propagation::Background);
    server.write(owned("stranger", &[reference("nobody", false)]));
    settle(&mut graph, &mut server);
    assert_eq!(left(&server), ["child", "stranger"]);
    server.events.push(Event::Synced);
    settle(&mut graph, &mut server);
    assert!(left(&server).is_empty());
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

/// Who went through all that was ever said whenever an owner comes or goes would take a billion steps.
#[test]
fn owners_that_are_gone_are_forgotten_each_by_itself() {
    const OWNERS: usize = 40_000;
    let mut graph = Graph::default();
    graph.handle(Event::Synced);
    let name = |what: &str, n: usize| format!("{what}-{n}");
    for n in 0..OWNERS {
        let child = owned(&name("child", n), &[reference(&name("parent", n), false)]);
        let actions = graph.handle(Event::Seen(child));
        let [Action::Verify(claim)] = actions.as_slice() else { panic!("{actions:?}") };
        let actions = graph.handle(Event::Verified(claim.clone(), Finding::Absent));
        assert!(matches!(actions.as_slice(), [Action::Delete(..)]), "{actions:?}");
    }
    for n in 0..OWNERS {
        graph.handle(Event::Gone(name("child", n)));
    }
    assert!(graph.claims.is_empty() && graph.objects.is_empty());
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

#[test]
fn a_dependant_that_could_not_be_let_go_is_tried_again() {
    let (mut graph, mut server) = world(vec![object("parent"), owned("child", &[reference("parent", false)])]);
    server.delete("parent", Propagation::Orphan);
    let [Event::Seen(parent)] = &server.events[..] else { panic!("{:?}", server.events) };
    let actions = graph.handle(Event::Seen(parent.clone()));
    assert!(matches!(actions.as_slice(), [Action::RemoveOwners(..)]), "{actions:?}");
    // Somebody else wrote in between: refused, and the newer version has the same owners.
    let child = Object { version: "later".into(), ..owned("child", &[reference("parent", false)]) };
    assert_eq!(graph.handle(Event::Seen(child)), []);
    assert_eq!(graph.handle(Event::Recheck("child".into())).len(), 1);
    server.events.clear();
    server.perform(actions[0].clone());
    settle(&mut graph, &mut server);
    assert_eq!(left(&server), ["child"]);
}

#[test]
fn the_number_of_actions_grows_with_the_number_of_dependants() {
    const MANY: usize = 150;
    for propagation in [Propagation::Background, Propagation::Foreground, Propagation::Orphan] {
        for blocks in [true, false] {
            let children = (0..MANY).map(|number| owned(&format!("child-{number}"), &[reference("parent", blocks)]));
            let (mut graph, mut server) = world(std::iter::once(object("parent")).chain(children).collect());
            server.delete("parent", propagation);
            settle(&mut graph, &mut server);
            let expected = if propagation == Propagation::Orphan { MANY } else { 0 };
            assert_eq!(left(&server).len(), expected);
            // One for each dependant, and one for the finalizer.
            assert!(server.actions <= MANY + 1, "{propagation:?} {blocks} {}", server.actions);
            assert!(graph.under_way.is_empty(), "{:?}", graph.under_way);
        }
    }
}

#[test]
fn while_an_action_is_under_way_no_other_is_begun_but_none_is_forgotten() {
    let owners = [reference("a", false), reference("b", false), reference("c", false)];
    let (mut graph, _) = world(vec![object("a"), object("b"), object("c"), owned("child", &owners)]);
    let actions = graph.handle(Event::Gone("a".into()));
    assert!(matches!(actions.as_slice(), [Action::RemoveOwners(_, lost)] if lost.len() == 1), "{actions:?}");
    assert_eq!(graph.handle(Event::Gone("b".into())), []);
    assert_eq!(graph.handle(Event::Seen(Object { version: "later".into(), ..owned("child", &owners[1..]) })), []);
    let actions = graph.handle(Event::Done("child".into()));
    assert!(matches!(actions.as_slice(), [Action::RemoveOwners(_, lost)] if lost.contains("b")), "{actions:?}");
}

#[test]
fn an_owner_that_a_later_list_does_not_show_is_asked_for_again() {
    let mut graph = Graph::default();
    graph.handle(Event::Synced);
    let actions = graph.handle(Event::Seen(owned("child", &[reference("parent", false)])));
    let [Action::Verify(claim)] = actions.as_slice() else { panic!("{actions:?}") };
    graph.handle(Event::Verified(claim.clone(), Finding::Present));
    assert_eq!(graph.handle(Event::Listed("g".into(), "Other".into())), []);
    assert_eq!(graph.handle(Event::Listed("g".into(), "K".into())), [Action::Verify(claim.clone())]);
    let actions = graph.handle(Event::Verified(claim.clone(), Finding::Absent));
    assert!(matches!(actions.as_slice(), [Action::Delete(_, Propagation::Background)]), "{actions:?}");
}

#[test]
fn an_answer_from_before_the_owner_went_does_not_bring_it_back() {
    let mut graph = Graph::default();
    graph.handle(Event::Synced);
    let actions = graph.handle(Event::Seen(owned("child", &[reference("parent", false)])));
    let [Action::Verify(claim)] = actions.as_slice() else { panic!("{actions:?}") };
    graph.handle(Event::Seen(object("parent")));
    assert_eq!(graph.handle(Event::Gone("parent".into())).len(), 1);
    graph.handle(Event::Verified(claim.clone(), Finding::Present));
    assert_eq!(graph.handle(Event::Recheck("child".into())).len(), 1);
}
