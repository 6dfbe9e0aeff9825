//! The word wall keeps its table's address in the `%gs` base of each thread, and windows keep theirs there. In one process each
//! would make the other one's checks say anything. So both claim the same page, and the second one is refused.
//!
//! The page is the first of those that the word wall needs to be empty (`docs/word.md`, "Closed addresses").

use libc::c_void;
use mullion_abi::OTHER_WALL;
use mullion_report::error::Error;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

const PAGE: usize = 4096;

#[expect(
    clippy::disallowed_methods,
    reason = "the page is mapped without access, and stays so"
)]
/// Claims the page for windows, for the life of the process. The caller sees to it that one thread at a time does.
pub(crate) fn exclude() -> Result<(), Error> {
    static IS_OURS: AtomicBool = AtomicBool::new(false);
    if IS_OURS.load(Ordering::Relaxed) {
        return Ok(());
    }
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: `MAP_FIXED_NOREPLACE` replaces nothing, and the page has no access. A kernel older than 4.17 takes it as a wish.
    let found = unsafe {
        let at = OTHER_WALL as *mut c_void;
        libc::mmap(at, PAGE, libc::PROT_NONE, flags, -1, 0)
    };
    if found as u64 == OTHER_WALL {
        IS_OURS.store(true, Ordering::Relaxed);
        return Ok(());
    }
    if found == libc::MAP_FAILED {
        let source = io::Error::last_os_error();
        if source.raw_os_error() != Some(libc::EEXIST) {
            let what = "cannot claim the page that keeps the word wall out of this process";
            return Err(Error::System { what, source });
        }
    } else {
        // SAFETY: the mapping was just made, and nobody knows of it.
        unsafe { libc::munmap(found, PAGE) };
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    match maps.lines().any(is_a_wall) {
        true => Err(Error::OtherWall),
        // A sanitiser's shadow, say. The word wall finds no empty addresses either, and is refused itself.
        false => Ok(()),
    }
}

/// Whether a line of `/proc/self/maps` is what a wall puts there: addresses without access and without a file, that begin there.
fn is_a_wall(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let start = words.next().and_then(|range| range.split_once('-'));
    let start = start.and_then(|(start, _)| u64::from_str_radix(start, 16).ok());
    let is_closed = words.next() == Some("---p");
    start == Some(OTHER_WALL) && is_closed && words.nth(3).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_walls_are_taken_for_walls() {
        assert!(is_a_wall("180018000-200000000 ---p 00000000 00:00 0 "));
        assert!(is_a_wall("180018000-180019000 ---p 00000000 00:00 0"));
        for other in [
            "180018000-180019000 rw-p 00000000 00:00 0",
            "180018000-180019000 ---p 00000000 08:01 7    /usr/lib/x.so",
            "8fff7000-2008fff7000 ---p 00000000 00:00 0",
            "180019000-200000000 ---p 00000000 00:00 0",
            "",
            "nothing",
        ] {
            assert!(!is_a_wall(other), "{other}");
        }
    }

    #[test]
    fn the_page_is_claimed_once() {
        crate::prepare_thread().expect("the thread is set up");
        exclude().expect("the page is ours");
        let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux");
        assert!(maps.lines().any(is_a_wall));
    }
}
