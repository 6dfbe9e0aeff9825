//! Which names a process may bind and look up: its parent decides when it makes it.

/// Which names a process may bind and look up, by the beginnings of paths.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rights {
    bind: Vec<Box<str>>,
    look_up: Vec<Box<str>>,
}

impl Rights {
    /// To every name.
    pub fn all() -> Rights {
        Rights::none().bind("/").look_up("/")
    }

    /// To none.
    pub const fn none() -> Rights {
        Rights {
            bind: Vec::new(),
            look_up: Vec::new(),
        }
    }

    /// To bind `prefix` itself and names below it, too.
    pub fn bind(mut self, prefix: &str) -> Rights {
        self.bind.push(prefix.into());
        self
    }

    /// To look up `prefix` itself and names below it, too.
    pub fn look_up(mut self, prefix: &str) -> Rights {
        self.look_up.push(prefix.into());
        self
    }

    /// Whether they cover binding this name.
    pub fn may_bind(&self, path: &str) -> bool {
        covers(&self.bind, path)
    }

    /// Whether they cover looking up this name.
    pub fn may_look_up(&self, path: &str) -> bool {
        covers(&self.look_up, path)
    }

    /// Of what is wanted, as much as is covered here.
    pub(crate) fn narrowed(&self, wanted: &Rights) -> Rights {
        let both = |mine: &[Box<str>], wanted: &[Box<str>]| {
            wanted
                .iter()
                .filter(|prefix| covers(mine, prefix))
                .cloned()
                .collect()
        };
        Rights {
            bind: both(&self.bind, &wanted.bind),
            look_up: both(&self.look_up, &wanted.look_up),
        }
    }
}

fn covers(prefixes: &[Box<str>], path: &str) -> bool {
    prefixes.iter().any(|prefix| {
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        path.strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_between_parts() {
        let prefixes = [Box::from("/net"), Box::from("/disk/")];
        for inside in ["/net", "/net/tcp", "/disk", "/disk/0"] {
            assert!(covers(&prefixes, inside), "{inside}");
        }
        for outside in ["/network", "/", "", "/dis", "net", "//net"] {
            assert!(!covers(&prefixes, outside), "{outside}");
        }
        assert!(covers(&[Box::from("/")], "/anything"));
    }

    #[test]
    fn nobody_gets_more_than_the_parent_has() {
        let parent = Rights::none().bind("/a").look_up("/");
        let wanted = Rights::none().bind("/").bind("/a/b").look_up("/c");
        assert_eq!(
            parent.narrowed(&wanted),
            Rights::none().bind("/a/b").look_up("/c")
        );
    }
}
