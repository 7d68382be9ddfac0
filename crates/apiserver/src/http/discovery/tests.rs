use super::*;
use crate::http::fixture::thing;

fn version(name: &str, served: bool) -> Version {
    Version { name: name.into(), served, storage: false, ..thing().versions[0].clone() }
}

fn registry() -> Registry {
    let mut registry = Registry::default();
    let mut many = thing();
    many.versions =
        ["v1alpha1", "v2beta2", "v1", "v10", "v2", "odd", "v2beta10"].map(|name| version(name, true)).into();
    many.versions.push(version("v99", false));
    registry.insert(many);
    let mut other = thing();
    other.plural = "gadgets".into();
    registry.insert(other);
    let mut early = thing();
    early.group = "apps".into();
    registry.insert(early);
    registry
}

#[test]
fn versions_are_ordered_by_stability_then_number_and_unserved_ones_are_hidden() {
    let group = group(&registry(), "example.io").expect("the group");
    let versions: Vec<&str> =
        group["versions"].as_array().expect("versions").iter().filter_map(|v| v["version"].as_str()).collect();
    assert_eq!(versions, ["v10", "v2", "v1", "v2beta10", "v2beta2", "v1alpha1", "odd"]);
    assert_eq!(group["preferredVersion"]["groupVersion"], "example.io/v10");
    assert_eq!((&group["kind"], &group["apiVersion"]), (&json!("APIGroup"), &json!("v1")));
}

#[test]
fn compiled_in_groups_come_first() {
    let list = group_list(&registry());
    let names: Vec<&str> =
        list["groups"].as_array().expect("groups").iter().filter_map(|g| g["name"].as_str()).collect();
    assert_eq!(names, ["apps", "example.io"]);
    assert_eq!(group(&registry(), "nobody.io"), None);
    assert_eq!(group(&registry(), ""), None);
}

#[test]
fn a_resource_list_names_subresources_short_names_and_categories() {
    let list = resource_list(&registry(), &GroupVersion::new("example.io", "v1")).expect("a list");
    assert_eq!(list["groupVersion"], "example.io/v1");
    let names: Vec<&str> =
        list["resources"].as_array().expect("resources").iter().filter_map(|r| r["name"].as_str()).collect();
    assert_eq!(names, ["gadgets", "gadgets/status", "gadgets/scale", "things", "things/status", "things/scale"]);
    assert_eq!(list["resources"][3]["shortNames"], json!(["th"]));
    assert_eq!(list["resources"][5]["kind"], "Scale");
    assert_eq!(list["resources"][5]["group"], "autoscaling");
    assert_eq!(resource_list(&registry(), &GroupVersion::new("example.io", "v99")), None);
}

#[test]
fn aggregated_discovery_splits_the_core_group_from_the_others() {
    let all = aggregated(&registry(), false, "apidiscovery.k8s.io/v2");
    assert_eq!(all["apiVersion"], "apidiscovery.k8s.io/v2");
    assert_eq!(all["items"][1]["metadata"]["name"], "example.io");
    let resource = &all["items"][1]["versions"][2]["resources"][1];
    assert_eq!(resource["responseKind"], json!({"group": "example.io", "version": "v1", "kind": "Thing"}));
    assert_eq!(resource["scope"], "Namespaced");
    assert_eq!(resource["subresources"][1]["responseKind"]["group"], "autoscaling");
    assert_eq!(aggregated(&registry(), true, "x")["items"], json!([]));
}
