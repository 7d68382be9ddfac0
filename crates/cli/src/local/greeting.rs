//! What `evenkeel local` prints: how to look in, and what to try.

use std::io::{self, Write};
use std::time::Duration;

use super::example::{CLUSTER, Scale};
use super::stack::Stack;
use crate::kube::greeting::quoted;

/// As soon as the API is there: the line to paste comes first.
pub(super) fn begin(stack: &Stack, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "export KUBECONFIG={}", quoted(stack.kubeconfig()))?;
    writeln!(out)?;
    writeln!(out, "A Kubernetes API is at {}; ctrl-c stops everything. A Kafka cluster is coming up …", stack.url())?;
    out.flush()
}

/// When the cluster is ready: after how long, and where clients find it.
pub(super) fn ready(after: Duration, bootstrap: &str, out: &mut impl Write) -> io::Result<()> {
    let seconds = after.as_secs_f64();
    writeln!(
        out,
        "The Kafka cluster `{CLUSTER}` was ready after {seconds:.1} s. Kafka clients reach it at {bootstrap}"
    )?;
    out.flush()
}

/// What to try, for somebody who was left alone with it.
pub(super) fn invite(scale: Scale, out: &mut impl Write) -> io::Result<()> {
    writeln!(out)?;
    writeln!(out, "Paste the first line into another terminal, then try:")?;
    writeln!(out)?;
    writeln!(out, "  kubectl get kafka,kafkanodepool,strimzipodset,pod")?;
    writeln!(out, "  kubectl scale kafkanodepool/quay --replicas={}", scale.brokers() + 1)?;
    writeln!(out, "  kubectl get events --watch")?;
    writeln!(out, "  kubectl logs deployment/{CLUSTER}-cruise-control")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One more than there are: fewer would be another story.
    #[test]
    fn every_scale_is_invited_to_grow() {
        for (scale, more) in [(Scale::Small, 4), (Scale::Medium, 31)] {
            let mut told = Vec::new();
            invite(scale, &mut told).unwrap();
            let told = String::from_utf8(told).unwrap();
            assert!(told.contains(&format!("kubectl scale kafkanodepool/quay --replicas={more}\n")), "{told}");
        }
    }
}
