//! A supervisor, and what people call what is in it.

use crate::SupervisorState;
use mullion_supervisor::{DomainId, Family, JoinPolicy, Mechanism, Range, Subject, Supervisor};

/// The records of a host: who may touch which memory, and names for it. Each kind of domain enters what it has, and one
/// supervisor judges it all.
#[derive(Clone, Debug)]
pub struct Records<M, P = Family> {
    /// Who may do what. Its root is the host.
    pub supervisor: Supervisor<M, P>,
    names: Vec<(Subject, String)>,
    labels: Vec<(Range, String)>,
    ended: Vec<DomainId>,
}

impl<M: Mechanism, P: JoinPolicy> Records<M, P> {
    /// Records without names.
    pub fn new(supervisor: Supervisor<M, P>) -> Records<M, P> {
        Records {
            supervisor,
            names: Vec::new(),
            labels: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Gives a domain or a group a name.
    pub fn name(&mut self, subject: impl Into<Subject>, name: &str) {
        self.names.push((subject.into(), name.to_owned()));
    }

    /// Gives a piece of the space a name.
    pub fn label(&mut self, range: Range, name: &str) {
        self.labels.push((range, name.to_owned()));
    }

    /// Says that a domain has faulted or exited, and takes no calls.
    pub fn ended(&mut self, domain: DomainId) {
        self.ended.push(domain);
    }

    /// All of it, as `mullion map` reads it.
    pub fn state(&self) -> SupervisorState {
        let mut state = SupervisorState::from(&self.supervisor.snapshot());
        for (subject, name) in &self.names {
            state = state.name(*subject, name);
        }
        for (range, name) in &self.labels {
            state = state.label(*range, name);
        }
        for domain in &self.ended {
            state = state.ended(*domain);
        }
        state
    }
}
