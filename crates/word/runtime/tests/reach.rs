//! Memory that may not be there, as a host looks for it.

use mullion_word_runtime::{Host, copy_at, text_at};
use std::ptr;

const PAGE: usize = 4096;

/// Two pages, of which the second is no memory.
fn page() -> *mut u8 {
    let (both, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: no address is asked for; the second page is this mapping's own.
    unsafe {
        let at = libc::mmap(ptr::null_mut(), 2 * PAGE, both, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        assert_eq!(libc::mprotect(at.byte_add(PAGE), PAGE, libc::PROT_NONE), 0);
        at.cast()
    }
}

#[test]
fn a_text_of_any_length_at_any_place_is_measured() {
    let _host = Host::new().unwrap();
    let page = page();
    let begin = PAGE - 96;
    for end in begin..PAGE {
        // SAFETY: it is the test's own page, mapped to be written.
        unsafe {
            page.write_bytes(b'a', PAGE);
            page.add(end).write(0);
        }
        for start in begin..PAGE {
            // SAFETY: it is the test's own page, and behind it there is no memory.
            let found = unsafe { text_at(page.addr() + start) };
            assert_eq!(found, end.checked_sub(start), "from {start} to {end}");
        }
    }
    for nowhere in [0, 1, 15, 16, PAGE, page.addr() + PAGE, 1 << 62, usize::MAX] {
        // SAFETY: there is nothing.
        assert_eq!(unsafe { text_at(nowhere) }, None, "{nowhere:#x}");
    }
}

#[test]
fn bytes_are_copied_up_to_where_there_are_none() {
    let _host = Host::new().unwrap();
    let page = page();
    // SAFETY: it is the test's own page, mapped to be written.
    unsafe { page.write_bytes(7, PAGE) };
    for there in 0..40 {
        let mut to = [0; 40];
        // SAFETY: as above, and there is room.
        let done = unsafe { copy_at(page.addr() + PAGE - there, to.as_mut_ptr(), 40) };
        assert_eq!(done, there);
        assert!(
            to.iter()
                .enumerate()
                .all(|(at, byte)| (*byte == 7) == (at < there))
        );
    }
}
