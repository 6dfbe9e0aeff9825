//! The state as JSON: what `mullion map` reads. `docs/supervisor.md` describes each field.

use mullion_supervisor::{Level, Permission, Snapshot, Subject};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The version of the format that this crate writes and reads.
pub const VERSION: u32 = 1;

/// A whole state, as claimed by a file: nothing about it has been checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SupervisorState {
    /// [`VERSION`].
    pub mullion_state: u32,
    /// What to write above the picture.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The addresses that are shared out.
    pub space: Space,
    /// The living domains.
    pub domains: Vec<DrawnDomain>,
    /// The living groups; the global one, number 0, may be left out if nothing is granted to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<DrawnGroup>,
    /// The whole space in order of address, without gaps.
    pub regions: Vec<Region>,
    /// Names for pieces of the space, for the reader only. They may overlap.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
}

/// A piece of the address space, in bytes, the end exclusive; both are multiples of four. In JSON numbers
/// or strings such as `"0x1000"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Space {
    /// The first byte.
    pub start: ByteAddress,
    /// The byte behind the last one.
    pub end: ByteAddress,
}

/// A living domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawnDomain {
    /// Its number; 0 is the supervisor.
    pub id: u32,
    /// The number of its parent; none for the supervisor alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    /// What people call it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Whether it takes no calls: it has faulted, or exited.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
}

/// A living group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawnGroup {
    /// Its number; 0 is the global group, whose members are all domains and are not listed.
    pub id: u32,
    /// The domain that made or inherited it.
    pub creator: u32,
    /// The domains that have joined it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<u32>,
    /// What people call it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// Words with the same owner and the same grants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// The first byte.
    pub start: ByteAddress,
    /// The byte behind the last one.
    pub end: ByteAddress,
    /// The number of the owner.
    pub owner: u32,
    /// What was granted, to each domain or group at most once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<DrawnGrant>,
}

/// What a domain or a group was granted: exactly one of `domain` and `group` is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawnGrant {
    /// The domain that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<u32>,
    /// The group that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// What it allows.
    pub access: AccessKind,
    /// The destination of a switch gate, and only of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u32>,
    /// How much of it may be passed on.
    #[serde(default)]
    pub export: ExportLevel,
}

/// A permission without the destination of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names of `Permission`")]
pub enum AccessKind {
    Read,
    ReadWrite,
    ExecuteRead,
    SwitchGate,
    ReturnGate,
}

/// How much may be passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names of `Level`")]
pub enum ExportLevel {
    #[default]
    None,
    Read,
    Full,
}

/// A name for a piece of the space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// The first byte.
    pub start: ByteAddress,
    /// The byte behind the last one.
    pub end: ByteAddress,
    /// The name.
    pub name: String,
}

/// A byte address, at most 2^64; written as a string in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteAddress(pub u128);

impl fmt::Display for ByteAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Serialize for ByteAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ByteAddress, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = ByteAddress;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a byte address, as a number or as a string such as \"0x1000\"")
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<ByteAddress, E> {
                Ok(ByteAddress(value.into()))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ByteAddress, E> {
                let parsed = match text.strip_prefix("0x") {
                    Some(digits) => u128::from_str_radix(digits, 16),
                    None => text.parse(),
                };
                let unexpected = serde::de::Unexpected::Str(text);
                parsed
                    .map(ByteAddress)
                    .map_err(|_| E::invalid_value(unexpected, &self))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// The address of a word, or of the end of the space.
fn address(word: u64) -> ByteAddress {
    ByteAddress(u128::from(word) * 4)
}

impl From<&Snapshot> for SupervisorState {
    /// The state without names: who knows them adds them, see [`SupervisorState::name`] and [`SupervisorState::label`].
    fn from(snapshot: &Snapshot) -> SupervisorState {
        let domains = snapshot.domains.iter().map(|domain| DrawnDomain {
            id: domain.id.get(),
            parent: domain.parent.map(|parent| parent.get()),
            name: String::new(),
            ended: false,
        });
        let groups = snapshot.groups.iter().map(|group| DrawnGroup {
            id: group.id.get(),
            creator: group.creator.get(),
            members: group.members.iter().map(|member| member.get()).collect(),
            name: String::new(),
        });
        let regions = snapshot.regions.iter().map(|(range, holding)| Region {
            start: address(range.start()),
            end: address(range.end()),
            owner: holding.owner.get(),
            grants: holding
                .grants
                .iter()
                .filter_map(|(subject, held)| grant(*subject, held))
                .collect(),
        });
        let space = snapshot.space;
        SupervisorState {
            mullion_state: VERSION,
            title: String::new(),
            space: Space {
                start: address(space.start()),
                end: address(space.end()),
            },
            domains: domains.collect(),
            groups: groups.collect(),
            regions: regions.collect(),
            labels: Vec::new(),
        }
    }
}

fn grant(subject: Subject, held: &mullion_supervisor::Grant) -> Option<DrawnGrant> {
    let (domain, group) = match subject {
        Subject::Domain(domain) => (Some(domain.get()), None),
        Subject::Group(group) => (None, Some(group.get())),
    };
    let (access, to) = match held.access {
        Permission::None => return None,
        Permission::Read => (AccessKind::Read, None),
        Permission::ReadWrite => (AccessKind::ReadWrite, None),
        Permission::ExecuteRead => (AccessKind::ExecuteRead, None),
        Permission::SwitchGate { to } => (AccessKind::SwitchGate, Some(to.get())),
        Permission::ReturnGate => (AccessKind::ReturnGate, None),
    };
    let export = match held.export {
        Level::None => ExportLevel::None,
        Level::Read => ExportLevel::Read,
        Level::Full => ExportLevel::Full,
    };
    Some(DrawnGrant {
        domain,
        group,
        access,
        to,
        export,
    })
}

impl SupervisorState {
    /// Gives a domain or a group its name; unknown ones are passed over.
    pub fn name(mut self, subject: impl Into<Subject>, name: &str) -> SupervisorState {
        match subject.into() {
            Subject::Domain(id) => {
                let named = self
                    .domains
                    .iter_mut()
                    .filter(|domain| domain.id == id.get());
                named.for_each(|domain| domain.name = name.to_owned());
            }
            Subject::Group(id) => {
                let named = self.groups.iter_mut().filter(|group| group.id == id.get());
                named.for_each(|group| group.name = name.to_owned());
            }
        }
        self
    }

    /// Says that a domain takes no calls; an unknown one is passed over.
    pub fn ended(mut self, id: mullion_supervisor::DomainId) -> SupervisorState {
        let ended = self
            .domains
            .iter_mut()
            .filter(|domain| domain.id == id.get());
        ended.for_each(|domain| domain.ended = true);
        self
    }

    /// Gives a piece of the space a name.
    pub fn label(mut self, range: mullion_supervisor::Range, name: &str) -> SupervisorState {
        let (start, end) = (address(range.start()), address(range.end()));
        self.labels.push(Label {
            start,
            end,
            name: name.to_owned(),
        });
        self
    }

    /// Sets the title.
    pub fn title(mut self, title: &str) -> SupervisorState {
        title.clone_into(&mut self.title);
        self
    }

    /// As JSON, a region a line, so that versions can be compared.
    pub fn to_json(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        let mut fields = Vec::new();
        for name in [
            "mullion_state",
            "title",
            "space",
            "domains",
            "groups",
            "regions",
            "labels",
        ] {
            match value.get(name) {
                None => {}
                Some(serde_json::Value::Array(items)) => {
                    let lines: Vec<String> =
                        items.iter().map(|item| format!("    {item}")).collect();
                    fields.push(format!("  \"{name}\": [\n{}\n  ]", lines.join(",\n")));
                }
                Some(item) => fields.push(format!("  \"{name}\": {item}")),
            }
        }
        format!("{{\n{}\n}}\n", fields.join(",\n"))
    }
}
