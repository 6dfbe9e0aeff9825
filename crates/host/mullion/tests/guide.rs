//! The code of docs/host-rust.md about cancelling, pools and new images, as it stands there, and run.

mod support;

use std::path::Path;
use std::sync::LazyLock;

/// What the pages' programs find in the directory that they run in.
static DIRECTORY: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = "#include <mullion/ext.h>\n#include <stdint.h>\n#include <string.h>\n\
                  static volatile int turns;\n\
                  MULLION_EXPORT(uint64_t, page, (uint32_t number))\n\
                  { while (number == 7) turns++; return 2 * (uint64_t)number; }\n\
                  MULLION_EXPORT(uint32_t, parse, (uint32_t number)) { return number + VERSION; }\n\
                  MULLION_EXPORT(uint32_t, score, (uint32_t number)) { return number * VERSION; }\n\
                  MULLION_EXPORT(uint64_t, length, (const char *text)) { return strlen(text); }\n";
    let file = directory.path().join("all.c");
    std::fs::write(&file, source).expect("written");
    for (name, version) in [
        ("parser", 1),
        ("parser-2", 2),
        ("filter", 1),
        ("filter-2", 2),
    ] {
        let image = directory.path().join(format!("{name}.mx"));
        support::build(&file, &image, &[&format!("-DVERSION={version}")]);
    }
    // The same for all tests of this process.
    std::env::set_current_dir(&directory).expect("it is there");
    directory
});

/// The code below is the page's.
#[test]
fn the_page_has_this_code() {
    let lines = |text: &str| -> Vec<String> {
        let all = text.lines().map(|line| line.trim().to_owned());
        all.filter(|line| !line.is_empty()).collect()
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../../docs/host-rust.md")).expect("the page");
    let here = lines(include_str!("guide.rs"));
    let mut found = 0;
    for piece in page.split("```rust,no_run\n").skip(1) {
        let piece = piece.split("```").next().unwrap_or_default();
        if !["Canceller", "Pool", "Live"]
            .iter()
            .any(|name| piece.contains(name))
        {
            continue;
        }
        let piece = lines(piece);
        assert!(
            here.windows(piece.len()).any(|window| window == piece),
            "changed: {piece:#?}"
        );
        found += 1;
    }
    assert_eq!(found, 3);
}

#[rustfmt::skip]
mod cancelling {
    use mullion::{Canceller, Error, Function};
    use std::time::Duration;

    async fn render(page: &Function<fn(u32) -> u64>, number: u32) -> Result<u64, Error> {
        page.start(number)?.await                      // drop this future, and the call ends
    }

    fn at_most(page: &Function<fn(u32) -> u64>, number: u32) -> Result<Option<u64>, Error> {
        let call = page.start(number)?;
        match call.wait_for(Duration::from_millis(50)) {
            Some(result) => result.map(Some),
            None => Ok(None),                          // `call` goes, and is cancelled
        }
    }

    /// A call that this thread waits for; `stop` may be told to cancel by any other.
    fn until_stopped(page: &Function<fn(u32) -> u64>, stop: &Canceller) -> Result<u64, Error> {
        match page.cancellable(stop).call(7) {
            Err(Error::Cancelled { domain, fault }) => {
                if fault.is_some() {                   // it had entered the domain, which has ended
                    page.domain().restart_when_idle(Duration::from_secs(1))?;
                }
                Err(Error::Cancelled { domain, fault })
            }
            other => other,
        }
    }

    use super::DIRECTORY;
    use mullion::{Domain, Image};
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};

    struct Unparked(std::thread::Thread);

    impl Wake for Unparked {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    fn finished<T>(future: impl Future<Output = T>) -> T {
        let waker = Waker::from(Arc::new(Unparked(std::thread::current())));
        let mut future = pin!(future);
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(value) => return value,
                Poll::Pending => std::thread::park(),
            }
        }
    }

    fn as_new(domain: &Domain) {
        domain.restart_when_idle(Duration::MAX).expect("as new");
    }

    #[test]
    fn calls_end_as_the_page_says() {
        let image = Image::open(DIRECTORY.path().join("parser.mx")).expect("an image");
        let domain = image.domain().load().expect("a domain");
        let page = domain.function("page").expect("a function");
        assert_eq!(finished(render(&page, 5)).expect("a result"), 10);

        // Dropped, its call ends: else the domain would be in use for ever.
        {
            let endless = pin!(render(&page, 7));
            let mut context = Context::from_waker(Waker::noop());
            assert!(endless.poll(&mut context).is_pending());
        }
        as_new(&domain);

        assert!(at_most(&page, 7).expect("no error").is_none());
        as_new(&domain);
        // A busy machine may need more than one attempt.
        let mut result = None;
        while result.is_none() {
            result = at_most(&page, 5).expect("no error");
            as_new(&domain);
        }
        assert_eq!(result, Some(10));

        let stop = Canceller::new();
        let stopped = std::thread::scope(|scope| {
            scope.spawn(|| stop.cancel());
            until_stopped(&page, &stop)
        });
        assert!(matches!(stopped, Err(Error::Cancelled { .. })), "{stopped:?}");
        assert_eq!(page.call(5).expect("as new"), 10);
    }
}

#[rustfmt::skip]
mod pools {
    use mullion::{Error, Host, Pool, PoolLimits};
    use std::time::Duration;

    fn main() -> Result<(), Error> {
        let host = Host::new();
        let image = host.open("parser.mx")?;
        let limits = PoolLimits { most: 16, ready: 4, memory: 1 << 40 };
        let pool = Pool::new(limits, move || image.domain().load())?;

        {
            let domain = pool.get_within(Duration::from_millis(10))?;  // as new; `Error::Exhausted` if all are in use
            let parse = domain.function::<fn(u32) -> u32>("parse")?;
            parse.call(5)?;                                            // a fault is this use's alone
        }                                                              // goes back here

        // A new image for those that come; those that are taken out stay as they are until they are given back.
        let newer = host.open("parser-2.mx")?;
        pool.upgrade(move || newer.domain().load())?;
        println!("{:?}", pool.stats());
        Ok(())
    }

    #[test]
    fn a_pool_does_as_the_page_says() {
        let _there = super::DIRECTORY.path();
        main().expect("no error");
    }
}

#[rustfmt::skip]
mod lives {
    use mullion::{DomainMemory, Error, Host, Live, Ptr};

    fn main() -> Result<(), Error> {
        let host = Host::new();
        let live = Live::new(host.open("filter.mx")?.domain().load()?);
        let score = live.function::<fn(u32) -> u32>("score")?;
        let length = live.function::<fn(Ptr<u8>) -> u64>("length")?;
        score.call(5)?;                                        // in whatever serves now

        let now = length.now();                                // the same domain for several steps
        let text = now.domain().string_in("some text")?;
        now.call(text.ptr())?;

        // `NoExport` or `WrongType`, if it is not what the functions want: then nothing has changed.
        live.upgrade(host.open("filter-2.mx")?.domain().load()?)?;
        score.call(5)?;
        Ok(())
    }

    #[test]
    fn a_new_image_comes_as_the_page_says() {
        let _there = super::DIRECTORY.path();
        main().expect("no error");
    }
}
