//! What an image's compilation record says, for `mullion inspect`.

use super::admission::record_of;
use mullion_trust::module_type::Verification;
use mullion_trust::record::VerifiedRecord;
use mullion_trust::{Policy, Sha256Digest};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// A record beside an image. Whether its signers may sign is for `mullion admit`.
#[derive(Serialize)]
pub(super) struct Provenance {
    /// Why the record says nothing about this image.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    module_type: String,
    signers: Vec<String>,
    tools: Vec<String>,
    flags: Vec<String>,
    /// What will become of the code when it is loaded under the policy given.
    #[serde(skip_serializing_if = "Option::is_none")]
    verification: Option<&'static str>,
}

impl Provenance {
    /// Reads the record of `image`, if there is one.
    pub(super) fn read(image: &Path, bytes: &[u8], policy: Option<&Policy>) -> Option<Self> {
        let text = mullion_trust::text::read(record_of(image)).ok()?;
        let mut found = Provenance {
            problem: None,
            module_type: String::new(),
            signers: Vec::new(),
            tools: Vec::new(),
            flags: Vec::new(),
            verification: None,
        };
        let mut work = mullion_trust::keynote::Work::unbounded();
        let opened = VerifiedRecord::open(&text, &mut work).ok()?;
        let record = match opened {
            Ok(record) => record,
            Err(error) => {
                found.problem = Some(error.to_string());
                return Some(found);
            }
        };
        if !record.is_about(&Sha256Digest::of(bytes)) {
            found.problem = Some("it is about another image".to_owned());
        }
        let compilation = record.compilation();
        found.module_type = compilation.module_type.id.clone();
        found.signers = record.signers().iter().map(ToString::to_string).collect();
        let tools = compilation.tools.iter();
        found.tools = tools
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        found.flags = compilation.flags.clone();
        found.verification = policy.map(|policy| verification(policy, &found.module_type));
        Some(found)
    }

    pub(super) fn write(&self, out: &mut String) -> std::fmt::Result {
        if let Some(problem) = &self.problem {
            writeln!(out, "\nrecord     proves nothing: {problem}")?;
            return Ok(());
        }
        writeln!(out, "\nrecord     of type {}", self.module_type)?;
        for signer in &self.signers {
            writeln!(out, "  signed by {signer}")?;
        }
        for tool in &self.tools {
            writeln!(out, "  made with {tool}")?;
        }
        if !self.flags.is_empty() {
            writeln!(out, "  flags {}", self.flags.join(" "))?;
        }
        if let Some(verification) = self.verification {
            writeln!(out, "  when loaded: {verification}")?;
        }
        Ok(())
    }
}

fn verification(policy: &Policy, id: &str) -> &'static str {
    match policy.module_type(id) {
        None => "refused: the policy knows no such type",
        Some(found) if found.verification == Verification::Required => "the code is verified",
        Some(_) if policy.trusts_type(id) => {
            "THE CODE IS NOT VERIFIED: type and policy trust the compiler"
        }
        Some(_) => "refused: the type wants its code unverified, and the policy does not trust it",
    }
}
