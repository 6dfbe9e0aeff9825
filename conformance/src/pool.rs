//! Work spread over the cores, with progress shown.

use indicatif::{ProgressBar, ProgressStyle};
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Calls `work` on each item, `jobs` at a time (0: one for each core); results in order of the items.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    label: &str,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let jobs = if jobs == 0 { cores } else { jobs };
    let bar = ProgressBar::new(items.len() as u64);
    if let Ok(style) =
        ProgressStyle::with_template("{prefix:10} [{bar:40}] {pos}/{len} {elapsed} (left {eta})")
    {
        bar.set_style(style);
    }
    bar.set_prefix(label.to_owned());
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
    thread::scope(|scope| {
        for _ in 0..jobs.min(items.len()) {
            scope.spawn(|| {
                while let Some((index, item)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    items.get(index).map(|item| (index, item))
                } {
                    let result = work(item);
                    done.lock()
                        .expect("no worker panics while it holds the list")
                        .push((index, result));
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    let mut done = done.into_inner().expect("all workers have ended");
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
