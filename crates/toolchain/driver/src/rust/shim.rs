//! rustc's allocator shim. In the last step it makes an object in which the names that crates call
//! for memory lead to the chosen allocator. It writes no assembler text of that object, so this is
//! written here, from the object's names.

use crate::{DriverError, tools};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The shim's text, from the names in rustc's object.
pub(super) fn text(object: &Path) -> Result<String, DriverError> {
    let said = tools::step(Command::new("nm").arg("--format=posix").arg(object))?;
    from_names(&String::from_utf8_lossy(&said)).map_err(|name| DriverError::Step {
        command: format!("nm {}", object.display()),
        said: format!("rustc's allocator shim has an unknown part: {name}"),
    })
}

/// The text for what `nm` says; or a name that is not understood.
fn from_names(said: &str) -> Result<String, String> {
    let rows = said.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        Some((fields.next()?, fields.next()?))
    });
    let (wanted, defined): (Vec<_>, Vec<_>) = rows.partition(|(_, kind)| *kind == "U");
    let mut text = String::from("\t.att_syntax\n");
    for (name, kind) in defined {
        if !kind.eq_ignore_ascii_case("t") {
            return Err(name.to_owned());
        }
        let end = meaning(name).ok_or_else(|| name.to_owned())?;
        let body = if end == "no_alloc_shim_is_unstable_v2" {
            "ret".to_owned()
        } else {
            let ends = [format!("__rdl_{end}"), format!("__rg_{end}")];
            let leads_to = |(name, _): &&(&str, &str)| ends.iter().any(|end| name.ends_with(end));
            let target = wanted.iter().find(leads_to);
            let (target, _) = target.ok_or_else(|| name.to_owned())?;
            format!("jmp\t{target}@PLT")
        };
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\t.section\t.text.{name},\"ax\",@progbits\n\t.globl\t{name}\n\t.hidden\t{name}\n\
             \t.type\t{name},@function\n{name}:\n\t{body}\n\t.size\t{name}, .-{name}\n"
        );
    }
    text.push_str("\t.section\t.note.GNU-stack,\"\",@progbits\n");
    Ok(text)
}

/// `alloc` of `_RNvCs5fGHjzWXRav_7___rustc12___rust_alloc`.
fn meaning(name: &str) -> Option<&str> {
    name.split_once("___rustc")?
        .1
        .split_once("__rust_")
        .map(|(_, end)| end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_the_allocator() {
        let text = from_names(
            "_RNvCs5_7___rustc11___rdl_alloc U \n_RNvCs5_7___rustc12___rust_alloc T 0 5\n\
             _RNvCs5_7___rustc18___rdl_alloc_zeroed U \n_RNvCs5_7___rustc19___rust_alloc_zeroed T 0 5\n\
             _RNvCs5_7___rustc35___rust_no_alloc_shim_is_unstable_v2 T 0 1\n",
        )
        .unwrap();
        let bodies: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("\tjmp") || *line == "\tret")
            .collect();
        assert_eq!(
            bodies,
            [
                "\tjmp\t_RNvCs5_7___rustc11___rdl_alloc@PLT",
                "\tjmp\t_RNvCs5_7___rustc18___rdl_alloc_zeroed@PLT",
                "\tret"
            ]
        );
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for said in [
            "_RNvCs5_7___rustc12___rust_alloc T 0 5\n",
            "_RNvCs5_7___rustc12___rust_other T 0 5\nother U \n",
            "main T 0 5\n",
            "_RNvCs5_7___rustc12___rust_alloc D 0 5\n",
        ] {
            assert_eq!(
                from_names(said).unwrap_err(),
                said.split(' ').next().unwrap()
            );
        }
    }
}
