//! Which files there are, and which are read: after SPECweb99, whose file set and mix are those of SPECweb96 (SPEC,
//! "The Workload for the SPECweb96 Benchmark", tables 1 and 2) with directories chosen by Zipf's law (Ruan and Pai,
//! USENIX 2006, section 2, has both).
//!
//! | class | of all reads | sizes of its nine files |
//! | --- | ---: | --- |
//! | 0 | 35 % | 102, 204 ... 922 bytes |
//! | 1 | 50 % | 1,024 ... 9,216 |
//! | 2 | 14 % | 10,240 ... 92,160 |
//! | 3 | 1 % | 102,400 ... 921,600 |
//!
//! Within a class the sizes are chosen by a Poisson distribution around the middle one (its mean is 5, what lies
//! outside 1 to 9 is left out). Ten directories with these 36 files are 51.2 MB; the paper's were 50.3 MB. The n-th
//! directory is chosen with a probability in proportion to 1/n. A file is read whole.

/// Directories.
const DIRECTORIES: usize = 10;
/// Files of a class.
const STEPS: usize = 9;
/// Files of a directory.
const FILES: usize = 4 * STEPS;

/// Bytes of each file.
pub(crate) fn sizes() -> Vec<u64> {
    let of = |file: usize| {
        let (class, step) = (file % FILES / STEPS, file % STEPS + 1);
        // 102.4 bytes, ten times that, and so on.
        1024 * 10u64.pow(class as u32) * step as u64 / 10
    };
    (0..DIRECTORIES * FILES).map(of).collect()
}

/// Which file is read next, again and again; the same at each run.
#[derive(Debug)]
pub(crate) struct Mix {
    state: u64,
    directories: Vec<f64>,
    steps: Vec<f64>,
}

impl Mix {
    pub(crate) fn new() -> Mix {
        let poisson = |step: i32| 5f64.powi(step) / (1..=step).map(f64::from).product::<f64>();
        Mix {
            state: 0x9e37_79b9_7f4a_7c15,
            directories: cumulative((1..=DIRECTORIES as u32).map(|rank| 1.0 / f64::from(rank))),
            steps: cumulative((1..=STEPS as i32).map(poisson)),
        }
    }

    pub(crate) fn next(&mut self) -> usize {
        let numbers = [self.number(), self.number(), self.number()];
        let directory = pick(&self.directories, numbers[0]);
        let class = pick(&[0.35, 0.85, 0.99, 1.0], numbers[1]);
        let step = pick(&self.steps, numbers[2]);
        directory * FILES + class * STEPS + step
    }

    /// From 0 to 1, by xorshift.
    fn number(&mut self) -> f64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The sums of the first weights, of which all together are 1.
fn cumulative(weights: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let all: f64 = weights.clone().sum();
    let mut sum = 0.0;
    weights
        .map(|weight| {
            sum += weight / all;
            sum
        })
        .collect()
}

fn pick(sums: &[f64], number: f64) -> usize {
    sums.partition_point(|sum| *sum <= number)
        .min(sums.len() - 1)
}
