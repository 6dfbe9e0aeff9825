//! The trace's numbers and the supervisor's, both ways.
//!
//! A trace chooses the numbers of its domains, groups and threads. The supervisor counts its own. Requests go
//! in with the trace's numbers replaced by the supervisor's; refusals come out with them put back.

use mullion_supervisor::{DomainId, Error, GroupId, Permission, Subject, ThreadId};
use std::collections::HashMap;

/// Which number of the trace is which of the supervisor.
#[derive(Debug)]
pub(super) struct Numbers {
    domains: HashMap<u32, DomainId>,
    groups: HashMap<u32, GroupId>,
    /// The other way.
    traced_domains: HashMap<DomainId, u32>,
    traced_groups: HashMap<GroupId, u32>,
    traced_threads: HashMap<ThreadId, u32>,
}

impl Numbers {
    /// What every trace begins with: domain 0, and group 0 of everybody.
    pub(super) fn new() -> Self {
        let mut numbers = Numbers {
            domains: HashMap::new(),
            groups: HashMap::new(),
            traced_domains: HashMap::new(),
            traced_groups: HashMap::new(),
            traced_threads: HashMap::new(),
        };
        numbers.add_domain(0, DomainId::SUPERVISOR);
        numbers.add_group(0, GroupId::GLOBAL);
        numbers
    }

    /// Notes a new domain.
    pub(super) fn add_domain(&mut self, traced: u32, domain: DomainId) {
        self.domains.insert(traced, domain);
        self.traced_domains.insert(domain, traced);
    }

    /// Notes a new group.
    pub(super) fn add_group(&mut self, traced: u32, group: GroupId) {
        self.groups.insert(traced, group);
        self.traced_groups.insert(group, traced);
    }

    /// Notes a new thread. Its number may be given to another one when it has ended.
    pub(super) fn add_thread(&mut self, traced: u32, thread: ThreadId) {
        self.traced_threads.insert(thread, traced);
    }

    /// How many domains the trace has made, and domain 0.
    pub(super) fn domain_count(&self) -> usize {
        self.domains.len()
    }

    /// The supervisor's number of a domain of the trace.
    pub(super) fn domain(&self, traced: u32) -> Option<DomainId> {
        self.domains.get(&traced).copied()
    }

    /// The supervisor's number of a group of the trace.
    pub(super) fn group(&self, traced: u32) -> Option<GroupId> {
        self.groups.get(&traced).copied()
    }

    /// The trace's number of a domain. Every domain but the first comes from a request of the trace.
    pub(super) fn traced_domain(&self, domain: DomainId) -> u32 {
        let traced = self.traced_domains.get(&domain).copied();
        traced.unwrap_or(domain.get())
    }

    /// A permission as the trace would write it.
    pub(super) fn traced_permission(&self, permission: Permission) -> Permission {
        match permission {
            Permission::SwitchGate { to } => Permission::SwitchGate { to: self.back(to) },
            other => other,
        }
    }

    /// The supervisor's reason, with the trace's numbers in it.
    pub(super) fn traced_error(&self, error: Error) -> Error {
        let mut error = error;
        match &mut error {
            Error::UnknownDomain { domain }
            | Error::DeletedDomain { domain }
            | Error::TargetIsCaller { caller: domain }
            | Error::NoCaller { domain }
            | Error::TargetOwns { target: domain, .. } => *domain = self.back(*domain),
            Error::UnknownGroup { group } => *group = self.back_group(*group),
            Error::NotOwner { caller, owner, .. } => {
                *caller = self.back(*caller);
                *owner = self.back(*owner);
            }
            Error::AboveOwn {
                caller,
                asked,
                held,
                ..
            } => {
                *caller = self.back(*caller);
                *asked = self.traced_permission(*asked);
                *held = self.traced_permission(*held);
            }
            Error::AboveExport { caller, asked, .. } => {
                *caller = self.back(*caller);
                *asked = self.traced_permission(*asked);
            }
            Error::WouldLower {
                target,
                asked,
                held,
                ..
            } => {
                *target = self.back_subject(*target);
                *asked = self.traced_permission(*asked);
                *held = self.traced_permission(*held);
            }
            Error::Shared { holder, .. } => *holder = self.back_subject(*holder),
            Error::HeldThroughGroup {
                domain,
                group,
                asked,
                held,
                ..
            } => {
                *domain = self.back(*domain);
                *group = self.back_group(*group);
                *asked = self.traced_permission(*asked);
                *held = self.traced_permission(*held);
            }
            Error::ForeignGate { caller, to, .. } => {
                *caller = self.back(*caller);
                *to = self.back(*to);
            }
            Error::NotAncestor { caller, target } => {
                *caller = self.back(*caller);
                *target = self.back(*target);
            }
            Error::JoinRefused { domain, group }
            | Error::AlreadyMember { domain, group }
            | Error::NotMember { domain, group } => {
                *domain = self.back(*domain);
                *group = self.back_group(*group);
            }
            Error::NotCreator {
                caller,
                creator,
                group,
            } => {
                *caller = self.back(*caller);
                *creator = self.back(*creator);
                *group = self.back_group(*group);
            }
            Error::StackMemory { caller, held, .. } => {
                *caller = self.back(*caller);
                *held = self.traced_permission(*held);
            }
            Error::OutsideStack { thread, .. }
            | Error::EarlierFrame { thread, .. }
            | Error::StackPointer { thread, .. }
            | Error::NothingToReturn { thread }
            | Error::WrongReturn { thread, .. } => *thread = self.back_thread(*thread),
            Error::NotExecutable { domain, held, .. }
            | Error::NotReturnGate { domain, held, .. } => {
                *domain = self.back(*domain);
                *held = self.traced_permission(*held);
            }
            // The others name neither a domain nor a group nor a thread; a test below looks at all of them.
            _ => {}
        }
        error
    }

    fn back(&self, domain: DomainId) -> DomainId {
        DomainId::new(self.traced_domain(domain))
    }

    fn back_group(&self, group: GroupId) -> GroupId {
        let traced = self.traced_groups.get(&group).copied();
        GroupId::new(traced.unwrap_or(group.get()))
    }

    fn back_subject(&self, subject: Subject) -> Subject {
        match subject {
            Subject::Domain(domain) => Subject::Domain(self.back(domain)),
            Subject::Group(group) => Subject::Group(self.back_group(group)),
        }
    }

    fn back_thread(&self, thread: ThreadId) -> ThreadId {
        let traced = self.traced_threads.get(&thread).copied();
        ThreadId::new(traced.unwrap_or(thread.get()))
    }
}

#[cfg(test)]
mod tests {
    /// The variants of the supervisor's errors, each with its fields.
    fn variants(text: &str) -> Vec<(String, String)> {
        let begin = text.find("pub enum Error {").expect("there is one");
        let body = &text[begin..];
        let body = &body[..body.find("\n}\n").expect("it ends")];
        let mut variants: Vec<(String, String)> = Vec::new();
        for line in body.lines().skip(1) {
            let name = line.strip_prefix("    ").unwrap_or("");
            if name.starts_with(char::is_uppercase) {
                let end = name.find(|c: char| !c.is_alphanumeric());
                let name = &name[..end.unwrap_or(name.len())];
                variants.push((name.to_owned(), String::new()));
            }
            if let Some((_, fields)) = variants.last_mut() {
                fields.push_str(line);
            }
        }
        variants
    }

    #[test]
    fn every_error_that_names_something_is_put_back() {
        let manifest = env!("CARGO_MANIFEST_DIR");
        let read = |path: &str| std::fs::read_to_string(format!("{manifest}/{path}")).unwrap();
        let errors = variants(&read("../refusal/src/error.rs"));
        assert!(errors.len() > 30, "{errors:?}");
        let own = read("src/mondrix/machine/numbers.rs");
        for (name, fields) in errors {
            let kinds = ["DomainId", "GroupId", "ThreadId", "Subject", "Permission"];
            if kinds.iter().any(|kind| fields.contains(kind)) {
                let arm = format!("Error::{name} ");
                assert!(own.contains(&arm), "{name} is not put back: {fields}");
            }
        }
    }
}
