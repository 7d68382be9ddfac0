//! Asks the engine what a decision wants to know, or to do, and hands on what it says.

use evenkeel_rest::body::OptimizationResult;
use evenkeel_rest::client::{Answer, Asks, Client, Error, Reply};
use evenkeel_rest::parameter::Substate;
use evenkeel_rest::request::{State, StopProposalExecution, UserTasks};
use tokio::time::Instant;
use uuid::Uuid;

use crate::access::{Access, connect};
use crate::figures::Figures;
use crate::rebalance::{Call, Heard, Planning};
use crate::seams::{ClusterRef, Context, EngineService};

/// One engine, as far as there is a way to it.
pub(super) struct Line<'a> {
    client: Result<Client<EngineService>, String>,
    /// Whether it understands parameters that are not in the original.
    is_ours: bool,
    figures: &'a Figures,
}

impl<'a> Line<'a> {
    /// To the engine of a cluster. Without access there is none, and every question finds nobody.
    pub(super) async fn open(
        context: &Context,
        access: Option<&(ClusterRef, Access)>,
        is_ours: bool,
        figures: &'a Figures,
    ) -> Self {
        let client = match access {
            Some((cluster, access)) => connect(context, cluster, access).await,
            None => Err("nobody knows how to reach it".to_owned()),
        };
        Self { client, is_ours, figures }
    }

    /// Makes a call, and takes in the reply.
    pub(super) async fn ask(&self, call: Call, heard: &mut Heard) {
        let began = Instant::now();
        let (name, label) = match call {
            Call::Propose(planning) => ("propose", labelled(self.plan(planning, None).await, |it| heard.proposed(it))),
            Call::Explain { request, task } => {
                ("explain", labelled(self.plan(request, Some(task)).await, |it| heard.explained(it)))
            }
            Call::Submit(planning) => ("submit", labelled(self.plan(planning, None).await, |it| heard.submitted(it))),
            Call::Follow { task, in_full } => {
                let asked =
                    UserTasks { user_task_ids: [task].into(), fetch_completed_task: in_full, ..UserTasks::default() };
                ("follow", labelled(self.send(&asked, None).await, |it| heard.followed(in_full, it)))
            }
            Call::ListTasks => {
                ("list-tasks", labelled(self.send(&UserTasks::default(), None).await, |it| heard.listed(it)))
            }
            Call::LookAtExecutor => {
                let substates = [Substate::Executor].into();
                let asked = State { substates, broker_progress: self.is_ours, ..State::default() };
                ("look-at-executor", labelled(self.send(&asked, None).await, |it| heard.looked(it)))
            }
            Call::Stop => {
                // What other tools began is none of our business.
                let asked = StopProposalExecution { stop_external_agent: false, ..StopProposalExecution::default() };
                ("stop", labelled(self.send(&asked, None).await, |it| heard.stopped(it)))
            }
        };
        self.figures.asked(name, label, began.elapsed());
    }

    async fn plan(&self, planning: Planning, task: Option<Uuid>) -> Reply<OptimizationResult> {
        match planning {
            Planning::Rebalance(asked) => self.send(&asked, task).await,
            Planning::AddBroker(asked) => self.send(&asked, task).await,
            Planning::RemoveBroker(asked) => self.send(&asked, task).await,
            Planning::RemoveDisks(asked) => self.send(&asked, task).await,
        }
    }

    async fn send<R: Asks>(&self, asked: &R, task: Option<Uuid>) -> Reply<R::Answer> {
        match (&self.client, task) {
            (Ok(client), None) => client.ask(asked).await,
            (Ok(client), Some(task)) => client.follow(asked, task).await,
            (Err(why), _) => {
                let source = why.clone().into();
                Reply { task: None, answer: Answer::Unreachable(Error::Connect { source }) }
            }
        }
    }
}

/// Hands a reply on; what it was, in one word.
fn labelled<T>(reply: Reply<T>, hear: impl FnOnce(Reply<T>)) -> &'static str {
    let label = reply.answer.label();
    hear(reply);
    label
}
