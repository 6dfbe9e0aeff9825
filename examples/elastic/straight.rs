//! Looks at the clock twice.
use environment::jiffies;

pub fn module() -> i32 {
    let (first, second) = (jiffies(), jiffies());
    if second >= first { 0 } else { 1 }
}
