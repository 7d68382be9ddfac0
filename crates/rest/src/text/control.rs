//! Short answers as text.

use super::map;
use crate::body::{AdminAnswer, ErrorBody, Message, Permissions};

impl Message {
    /// As text: the message and nothing else.
    pub fn text(&self) -> String {
        self.message.clone()
    }
}

impl ErrorBody {
    /// As text: the message and nothing else.
    pub fn text(&self) -> String {
        self.error_message.clone()
    }
}

impl Permissions {
    /// As text: the roles and nothing else.
    pub fn text(&self) -> String {
        self.roles.join(",")
    }
}

impl AdminAnswer {
    /// As text.
    pub fn text(&self) -> String {
        let mut parts = Vec::new();
        if !self.self_healing_enabled_after.is_empty() {
            parts.push(format!(
                "selfHealingEnabledBefore: {}, selfHealingEnabledAfter: {}",
                map(&self.self_healing_enabled_before),
                map(&self.self_healing_enabled_after)
            ));
        }
        if !self.concurrency_adjuster_enabled_after.is_empty() {
            parts.push(format!(
                "concurrencyAdjusterEnabledBefore: {}, concurrencyAdjusterEnabledAfter: {}",
                map(&self.concurrency_adjuster_enabled_before),
                map(&self.concurrency_adjuster_enabled_after)
            ));
        }
        let texts = [
            ("ongoingConcurrencyChangeRequest", &self.ongoing_concurrency_change_request),
            ("dropRecentBrokersRequest", &self.drop_recent_brokers_request),
            ("minIsrBasedConcurrencyAdjustmentRequest", &self.min_isr_based_concurrency_adjustment_request),
        ];
        parts.extend(texts.iter().filter_map(|(name, text)| text.as_ref().map(|text| format!("{name}: {text}"))));
        format!("{{\n{}\n}}", parts.join("\n"))
    }
}
