//! What can be judged when all code has been seen: whose points are whose, where bodies are, where branches go, and labels.

use super::{Check, Pass, violation};
use crate::sequence::{Operand, View};
use crate::stats::Stats;
use crate::{Facts, Gate, Refused, Report};
use mullion_decoder::decode::NONE;
use mullion_decoder::row::Kind;
use mullion_word_abi as abi;
use mullion_word_rules::Rule;
use std::ops::Range;

impl Pass<'_> {
    /// Each check must have points of its own.
    pub(super) fn owners(&mut self, report: &mut Report) {
        let claim = |check: &Check| (check.cold, check.jump, check.at);
        let mut claims: Vec<_> = self.checks.iter().map(claim).collect();
        claims.sort_unstable();
        let mut broken = Vec::new();
        // To run into points is to come to the check's first instruction: whatever relies on what is in front of
        // that forbids it.
        for fall in std::mem::take(&mut self.falls) {
            let claim = claims
                .binary_search_by_key(&fall, |claim| claim.0)
                .ok()
                .and_then(|found| claims.get(found));
            let place = claim.and_then(|(_, _, check)| {
                let mut codes = self.codes.iter();
                codes.find_map(|code| Some((code, code.view.position(i64::from(*check))?)))
            });
            let open = place.is_some_and(|(code, position)| !code.marks.is_closed(position));
            if !open {
                broken.push(fall);
            }
        }
        let mut points = self.points.iter().copied().peekable();
        let mut owned = None;
        for (cold, jump, _) in claims {
            // Points in front of it belong to nobody.
            while let Some(orphan) = points.next_if(|at| *at < cold) {
                broken.push(orphan);
            }
            let own = points.next_if_eq(&cold).is_some();
            if !own || owned == Some(cold) {
                broken.push(jump);
            }
            owned = Some(cold);
        }
        broken.extend(points);
        broken.sort_unstable();
        for at in broken {
            let place = self
                .codes
                .iter()
                .find_map(|code| Some((&code.view, code.view.position(i64::from(at))?)));
            if let Some((view, position)) = place {
                report.add(|| violation(view, position, Rule::ColdOwner));
            }
        }
        report.next_phase();
    }

    /// Where a call goes to the body behind a gate, each gate has its body there.
    pub(super) fn bodies(&self, report: &mut Report) {
        let elsewhere = |gate: &&Gate| gate.address + abi::GATE_TO_BODY != gate.body;
        let Some(gate) = self
            .gates
            .iter()
            .find(elsewhere)
            .filter(|_| !self.near.is_empty())
        else {
            return;
        };
        let mut codes = self.codes.iter();
        let place =
            codes.find_map(|code| Some((&code.view, code.view.position(gate.address as i64)?)));
        if let Some((view, position)) = place {
            report.add(|| violation(view, position, Rule::GateBody));
        }
        report.next_phase();
    }

    /// Branches to where none may go.
    pub(super) fn branches(&self, report: &mut Report) {
        if !self.codes.iter().any(|code| code.marks.has_conflict()) {
            return;
        }
        let mut checks: Vec<(u32, u32)> = self.checks.iter().map(|c| (c.at, c.end)).collect();
        checks.sort_unstable();
        // Checks' own jumps go to their points.
        let own = |at: u32| {
            let behind = checks.partition_point(|(start, _)| *start <= at);
            let last = behind.checked_sub(1).and_then(|last| checks.get(last));
            last.is_some_and(|(_, end)| at < *end)
        };
        for code in &self.codes {
            let mut position = 0;
            while let Some(start) = code.marks.next_start(position) {
                position = start + 1;
                if own(code.view.at(start)) {
                    continue;
                }
                let Some(target) = leads_to(&code.view, start) else {
                    continue;
                };
                let place = self
                    .codes
                    .iter()
                    .find_map(|code| Some((&code.marks, code.view.position(target)?)));
                if let Some((marks, position)) = place
                    && marks.is_conflict(position)
                {
                    let rule = match marks.is_start(position) {
                        true => Rule::BranchSequence,
                        false => Rule::BranchTarget,
                    };
                    report.add(|| violation(&code.view, start, rule));
                }
            }
        }
        report.next_phase();
    }

    /// Occurrences of the label that are no label instruction.
    pub(super) fn labels(&self, report: &mut Report) {
        let label = abi::LABEL.to_le_bytes();
        for code in &self.codes {
            let bytes = code.view.bytes;
            let tail = |cut: usize| label.get(cut..);
            if (1..label.len()).any(|cut| tail(cut).is_some_and(|tail| bytes.starts_with(tail))) {
                report.add(|| violation(&code.view, 0, Rule::LabelFragment));
            }
            for found in mullion_decoder::label::occurrences(bytes, label) {
                let nop = found.checked_sub(abi::LABEL_NOP.len() - label.len());
                let proper = nop.is_some_and(|start| {
                    code.marks.is_start(start) && code.view.rest(start).starts_with(&abi::LABEL_NOP)
                });
                if !proper {
                    report.add(|| violation(&code.view, found, Rule::LabelStray));
                }
            }
        }
        report.next_phase();
    }

    pub(super) fn finish(self) -> (Facts, Stats) {
        let mut refused = Vec::with_capacity(self.checks.len());
        let mut ranges = self.ranges;
        for check in self.checks {
            if check.relied != 0 {
                ranges.push(check.looked..check.relied);
            }
            let Operand {
                base,
                index,
                scale,
                displacement,
            } = check.operand;
            refused.push(Refused {
                trap: u64::from(check.trap),
                check: u64::from(check.jump),
                access: (check.relied != 0).then_some(u64::from(check.first)),
                base: (base < NONE).then_some(base),
                index: (index < NONE).then_some(index),
                scale: 1 << scale,
                displacement,
                read: check.read,
                write: check.write,
                writes: check.writes,
            });
        }
        refused.sort_unstable_by_key(|refused| refused.trap);
        ranges.sort_unstable_by_key(|range| range.start);
        let mut checked: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
        for Range { start, end } in ranges {
            match checked.last_mut() {
                Some(last) if u64::from(start) <= last.end => last.end = last.end.max(end.into()),
                _ => checked.push(start.into()..end.into()),
            }
        }
        let mut gates = self.gates;
        gates.sort_unstable_by_key(|gate| gate.address);
        let facts = Facts {
            gates,
            checked,
            refused,
        };
        (facts, self.stats)
    }
}

/// Where the direct branch, or the gate, at `position` goes.
fn leads_to(view: &View, position: usize) -> Option<i64> {
    if let Some((body, _)) = view.gate(position) {
        return Some(body);
    }
    let instruction = view.decode(position).ok()?;
    let direct = matches!(
        instruction.row.kind,
        Kind::Conditional | Kind::Jump | Kind::Call
    );
    direct.then(|| instruction.branch(view.rest(position), view.at(position)))
}
