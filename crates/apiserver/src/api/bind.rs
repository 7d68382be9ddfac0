//! The binding of a pod to a node: the one way to write where it runs.

use serde_json::{Value, json};

use super::admit::whole_seconds;
use super::{Api, Moment, Target};
use crate::object::{Object, child_map};
use crate::refusal::Refusal;

impl Api {
    /// Binds a pod to a node, once, and notes that it is scheduled. A pod's node is not among what an update may change.
    pub fn bind(
        &mut self,
        pods: &Target,
        name: &str,
        uid: Option<&str>,
        node: &str,
        moment: Moment,
    ) -> Result<(), Refusal> {
        let (key, stored) = self.find(pods, name)?;
        let mut pod = stored.parse();
        let conflict = |why: String| Err(Refusal::conflict("", "pods/binding", name, why));
        if let Some(uid) = uid.filter(|uid| *uid != pod.meta("uid")) {
            let found = pod.meta("uid");
            return conflict(format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"));
        }
        if pod.is_terminating() {
            return conflict(format!("pod {name} is being deleted, cannot be assigned to a host"));
        }
        match pod.at(&["spec", "nodeName"]).and_then(Value::as_str).unwrap_or_default() {
            "" => (),
            there => return conflict(format!("pod {name} is already assigned to node \"{there}\"")),
        }
        child_map(&mut pod, "spec").insert("nodeName".into(), node.into());
        let scheduled = json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": whole_seconds(moment),
        });
        let status = child_map(&mut pod, "status");
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        if let Value::Array(conditions) = conditions {
            conditions.retain(|condition| condition.get("type") != Some(&json!("PodScheduled")));
            conditions.push(scheduled);
        }
        self.put(pods, key, &mut pod).map(drop)
    }
}
