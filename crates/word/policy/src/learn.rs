//! From what a module did without leave to the policy that it would have needed, for a person to cut down.

use crate::file::File;
use crate::lower::Interface;
use mullion_word_runtime::{Note, Want};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Something that was done, where it was done first, and how often.
#[derive(Clone, Debug)]
struct Seen {
    times: u64,
    /// In the module's file; 0 if it is not known.
    instruction: u64,
    export: String,
    /// What memory it was.
    object: String,
}

/// What a module that learns has done.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    calls: BTreeMap<String, Seen>,
    /// Accesses and arguments, by place and kind.
    memory: BTreeMap<(u64, String), Seen>,
    /// Arguments of exports behind which accesses were, with what was done and how far behind.
    lent: BTreeMap<(String, usize), (bool, u64)>,
}

/// An access so far behind an argument is taken for one by that argument.
const REACH: u64 = 4096;

impl Learned {
    /// Takes a note of the run time. `name` is what the host's policies call the function, if the note is of a call.
    pub fn note(&mut self, note: &Note<'_>, name: Option<&str>) {
        let instruction = match note.want {
            // What is told of a call is what is behind it.
            Want::Call { .. } => note.instruction.saturating_sub(1),
            _ => note.instruction,
        };
        let fresh = |object| Seen {
            times: 0,
            instruction,
            export: note.export.to_owned(),
            object,
        };
        let kind = |write| if write { "writes" } else { "reads" };
        let what = match note.want {
            Want::Call { function, .. } => {
                let name = name.unwrap_or(function).to_owned();
                self.calls
                    .entry(name)
                    .or_insert_with(|| fresh(String::new()))
                    .times += 1;
                return;
            }
            Want::Access { bytes, write, .. } => format!("{} {bytes} bytes", kind(write)),
            Want::Argument {
                function,
                argument,
                bytes,
                write,
                ..
            } => format!(
                "argument {argument} of {function}, which {} {bytes} bytes",
                kind(write)
            ),
            Want::Free { function, .. } => format!("{function} of a block that was not given"),
            Want::Callback {
                function, argument, ..
            } => format!("argument {argument} of {function}, a function that it may not call"),
        };
        // Whose it is is asked once for a place: that takes locks.
        let seen = self.memory.entry((note.instruction, what));
        let object = || {
            let object = note.object();
            match note.field(&object) {
                Some(field) => format!("{object}, {field}"),
                None => object.to_string(),
            }
        };
        seen.or_insert_with(|| fresh(object())).times += 1;
        self.lend(note);
    }

    /// An access near behind an argument of the export's call may be allowed by lending that.
    fn lend(&mut self, note: &Note<'_>) {
        let (
            Want::Access {
                address,
                bytes,
                write,
            },
            Some(arguments),
        ) = (note.want, note.arguments)
        else {
            return;
        };
        let distances = arguments.iter().map(|at| address.wrapping_sub(*at));
        let nearest = distances.enumerate().min_by_key(|(_, distance)| *distance);
        let Some((argument, distance)) = nearest.filter(|(_, distance)| *distance < REACH) else {
            return;
        };
        if note.export.is_empty() {
            return;
        }
        let lent = self.lent.entry((note.export.to_owned(), argument));
        let (writes, most) = lent.or_default();
        *writes |= write;
        *most = (*most).max(distance.saturating_add(bytes));
    }

    /// The policy that this run would have needed besides `base`, as text. `place` says what line of the source an
    /// instruction is of.
    pub fn policy(
        &self,
        base: &File,
        interface: &Interface,
        place: &mut dyn FnMut(u64) -> Option<String>,
    ) -> String {
        let mut file = base.clone();
        let mut left = String::new();
        let mut describe = |seen: &Seen| {
            let times = match seen.times {
                1 => "once".to_owned(),
                times => format!("{times} times"),
            };
            let by = match seen.export.as_str() {
                "" => String::new(),
                export => format!(", in a call of {export}"),
            };
            let at = match place(seen.instruction) {
                Some(place) => format!(", first at {place}"),
                None if seen.instruction != 0 => format!(", first at {:#x}", seen.instruction),
                None => String::new(),
            };
            format!("{times}{by}{at}")
        };
        for (name, seen) in &self.calls {
            let reason = describe(seen);
            if interface.call(name).is_none() {
                // Writing to a string cannot fail.
                let _ = writeln!(
                    left,
                    "#   call of {name}, which the host does not describe: {reason}"
                );
                continue;
            }
            file.allow.push(name.clone());
            file.reasons.insert(name.clone(), reason);
        }
        for ((_, what), seen) in &self.memory {
            let reason = describe(seen);
            let _ = writeln!(left, "#   {what}, {}: {reason}", seen.object);
        }
        if !self.lent.is_empty() {
            left.push_str("# Some of it was near behind arguments. If the host means to lend those for the call, these lines allow it:\n");
        }
        let mut export = "";
        for ((name, argument), (write, bytes)) in &self.lent {
            let effect = if *write { "inout" } else { "in" };
            let begin = match export == name {
                true => ", ".to_owned(),
                false if export.is_empty() => format!("#   export.{name}.effects = ["),
                false => format!("]\n#   export.{name}.effects = ["),
            };
            let _ = write!(left, "{begin}\"{effect}({argument}, {bytes})\"");
            export = name;
        }
        if !export.is_empty() {
            left.push_str("]\n");
        }
        let mut text = "# Learnt from a run in which nothing was refused. Cut it down before it is enforced.\n".to_owned();
        if !left.is_empty() {
            text.push_str("# No line of `allow` gives what follows. It needs a grant of the host, or it is a fault of the module:\n");
            text.push_str(&left.replace(|c: char| c.is_control() && c != '\n', "?"));
        }
        text.push_str(&file.to_string());
        text
    }
}
