//! `user_tasks`.

use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use super::OptimizationResult;
use crate::json::{self, Version};
use crate::parameter::TaskStatus;

/// The answer of `user_tasks`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserTasks {
    /// The tasks asked for. None means that the server does not know them: it may have forgotten.
    pub user_tasks: Vec<UserTask>,
    /// Always 1.
    pub version: Version,
}

/// Who asked for what, and how it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserTask {
    /// How it stands.
    #[serde(rename = "Status")]
    pub status: TaskStatus,
    /// The client's address.
    #[serde(rename = "ClientIdentity")]
    pub client_identity: String,
    /// Method, path and query; nothing is escaped.
    #[serde(rename = "RequestURL")]
    pub request_url: String,
    /// Its id.
    #[serde(rename = "UserTaskId")]
    pub user_task_id: String,
    /// When it came, in milliseconds since 1970, as text.
    #[serde(rename = "StartMs", with = "millis_as_text")]
    pub start_ms: i64,
    /// What was answered, as text: only if asked for, and never while it is active. Of a task that failed it is the name
    /// of the status. Of a large one that is read as much is kept as is [read of a plan](super::KEPT).
    #[serde(
        rename = "originalResponse",
        default,
        deserialize_with = "response",
        skip_serializing_if = "Option::is_none"
    )]
    pub original_response: Option<String>,
}

/// A response in bytes that is kept as it is. A plan with all that clients show of it is mostly smaller.
const LARGE: usize = 1 << 20;
/// In characters: what is kept of a large one that is no plan, and only good for a message.
const BEGINNING: usize = 1 << 16;

impl UserTask {
    /// The plan that was answered. A task that was stopped or failed while being carried out still has one; one that
    /// failed before has none.
    pub fn optimization_result(&self) -> Option<OptimizationResult> {
        json::from_slice(self.original_response.as_deref()?.as_bytes()).ok()
    }
}

fn response<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::<Response>::deserialize(deserializer).map(|read| read.map(|Response(text)| text))
}

/// Looks at the text where serde_json has it: a string of it would be one more copy.
struct Response(String);

impl<'de> Deserialize<'de> for Response {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Response;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a response as text")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Response, E> {
                Ok(Response(kept(text)))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

fn kept(text: &str) -> String {
    if text.len() <= LARGE {
        return text.to_owned();
    }
    match json::from_slice::<OptimizationResult>(text.as_bytes()) {
        Ok(plan) => json::to_string(&plan),
        Err(_) => text.chars().take(BEGINNING).collect(),
    }
}

mod millis_as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(value: &i64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
