//! `user_tasks` and progress as text.

use std::fmt::Write;

use super::{date, line, longest};
use crate::body::{Progress, UserTasks};

impl UserTasks {
    /// As text.
    pub fn text(&self) -> String {
        let client = longest(self.user_tasks.iter().map(|task| task.client_identity.as_str()), 20) + 2;
        let status = longest(self.user_tasks.iter().map(|task| task.status.name()), 10) + 2;
        let url = longest(self.user_tasks.iter().map(|task| task.request_url.as_str()), 20) + 2;
        let mut out = format!(
            "\n{:<38}{:<client$}{:<22}{:<status$}{:<url$}",
            "USER TASK ID", "CLIENT ADDRESS", "START TIME", "STATUS", "REQUEST URL"
        );
        for task in &self.user_tasks {
            let _ = write!(
                out,
                "\n{:<38}{:<client$}{:<22}{:<status$}{:<url$}",
                task.user_task_id,
                line(&task.client_identity),
                date(task.start_ms),
                task.status.name(),
                line(&task.request_url)
            );
            if let Some(response) = &task.original_response {
                let _ = write!(out, "\nOriginal response for task {}:\n{response}", task.user_task_id);
            }
        }
        out
    }
}

impl Progress {
    /// As text: the operation, then a line for each step.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for operation in &self.progress {
            let _ = writeln!(out, "{}:", operation.operation);
            for step in &operation.operation_progress {
                let _ = writeln!(
                    out,
                    "({:>6} ms) - ({:>3.1}%) {}: {}",
                    step.time_in_ms, step.completion_percentage.0, step.step, step.description
                );
            }
        }
        out
    }
}
