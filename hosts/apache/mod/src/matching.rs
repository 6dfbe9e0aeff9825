//! Names with `*` and `?`. httpd's functions call themselves for each `*`, so a name with many of them would use up the server's stack.
//! These do the same in a loop.

use crate::call::mediate;
use crate::copied;

/// What httpd's functions answer.
const SAME: i32 = 0;
const OTHER: i32 = 1;
/// The string ends before the pattern does.
const SHORT: i32 = -1;

/// Of several `*` the last one alone is tried again: what is in front of it has matched as far to the left as it can.
fn compare(text: &[u8], pattern: &[u8], is_same: impl Fn(u8, u8) -> bool) -> i32 {
    let (mut x, mut y) = (0, 0);
    // Behind the last `*`: where the pattern and the text go on.
    let mut again = None::<(usize, usize)>;
    loop {
        let answer = match (pattern.get(y), text.get(x)) {
            (Some(b'*'), _) => {
                while pattern.get(y) == Some(&b'*') {
                    y += 1;
                }
                match (y == pattern.len(), x == text.len()) {
                    (true, _) => return SAME,
                    (false, true) => return SHORT,
                    (false, false) => again = Some((y, x)),
                }
                continue;
            }
            (Some(_), None) => return SHORT,
            (Some(b'?'), Some(_)) => SAME,
            (Some(wanted), Some(byte)) if is_same(*byte, *wanted) => SAME,
            (Some(_), Some(_)) => OTHER,
            (None, None) => return SAME,
            (None, Some(_)) => OTHER,
        };
        if answer == SAME {
            (x, y) = (x + 1, y + 1);
            continue;
        }
        let Some((behind, from)) = again else {
            return OTHER;
        };
        if from + 1 == text.len() {
            return SHORT;
        }
        again = Some((behind, from + 1));
        (y, x) = (behind, from + 1);
    }
}

fn matches(name: &str, text: u64, pattern: u64, is_same: impl Fn(u8, u8) -> bool) -> u64 {
    mediate(|frame| {
        frame.only_computes();
        let [text, pattern] = [text, pattern].map(|at| copied::text(frame, at));
        let named = |what: String| format!("{name}: {what}");
        let (text, pattern) = (text.map_err(named)?, pattern.map_err(named)?);
        Ok(compare(&text, &pattern, is_same) as u32 as u64)
    })
}

pub(crate) extern "C" fn ap_strcmp_match(text: u64, pattern: u64) -> u64 {
    matches("ap_strcmp_match", text, pattern, |one, other| one == other)
}

pub(crate) extern "C" fn ap_strcasecmp_match(text: u64, pattern: u64) -> u64 {
    let is_same = |one: u8, other: u8| one.eq_ignore_ascii_case(&other);
    matches("ap_strcasecmp_match", text, pattern, is_same)
}

#[cfg(test)]
mod tests {
    use super::compare;

    /// As httpd has it.
    fn httpd(text: &[u8], pattern: &[u8]) -> i32 {
        let (mut x, mut y) = (0, 0);
        while y < pattern.len() {
            if pattern[y] == b'*' {
                while pattern.get(y) == Some(&b'*') {
                    y += 1;
                }
                if y == pattern.len() {
                    return 0;
                }
                while x < text.len() {
                    match httpd(&text[x..], &pattern[y..]) {
                        1 => x += 1,
                        answer => return answer,
                    }
                }
                return -1;
            }
            if x == text.len() {
                return -1;
            }
            if pattern[y] != b'?' && pattern[y] != text[x] {
                return 1;
            }
            (x, y) = (x + 1, y + 1);
        }
        i32::from(x < text.len())
    }

    fn all(letters: &[u8], most: usize) -> Vec<Vec<u8>> {
        let mut all = vec![Vec::new()];
        let mut from = 0;
        for _ in 0..most {
            let to = all.len();
            for at in from..to {
                for letter in letters {
                    let mut longer = all[at].clone();
                    longer.push(*letter);
                    all.push(longer);
                }
            }
            from = to;
        }
        all
    }

    #[test]
    fn each_answer_is_httpds() {
        let mut looked = 0;
        for pattern in all(b"ab*?", 5) {
            for text in all(b"ab", 5) {
                let own = compare(&text, &pattern, |one, other| one == other);
                assert_eq!(own, httpd(&text, &pattern), "{text:?} {pattern:?}");
                looked += 1;
            }
        }
        assert!(looked > 50_000, "{looked}");
    }

    #[test]
    fn many_stars_take_no_stack() {
        let text = vec![b'a'; 1 << 20];
        let pattern = b"*a".repeat(1 << 19);
        assert_eq!(compare(&text, &pattern, |one, other| one == other), 0);
    }
}
