#!/usr/bin/env python3
"""Weakens each ordering and fence of the modelled files, one by one, and runs the models: some model must fail.

Called by scripts/model --mutants [FILE...]; a file is named by the end of its path. The files in the tree are not touched.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MODEL = ROOT / "crates/sip/model"
PLACE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "mutants"
SECONDS = 300

WEAKER = {"Acquire": ["Relaxed"], "Release": ["Relaxed"], "AcqRel": ["Acquire", "Release"], "SeqCst": ["AcqRel"]}

# Loom cannot tell these from what is there; why they stay. The text that is weakened, and the weaker ordering.
EITHER = "one of the two acquires is enough for what is in a block; "
LATER = "without it a drain could read the link that a later push writes; loom has no reads of what comes later"
WHO = "it says who wakes; what for is ordered by the fences"
KNOWN = {
    ("claim", "if self.0.load(Ordering::Acquire) != from || !here.enter() {", "Relaxed"):
        EITHER + "this one is for `here`, of which loom's exchanges see the last value anyway",
    ("claim", ".compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed)", "Relaxed"):
        EITHER + "this one is for a word that has come back to the same value in between",
    ("inbox", "if link.queued.swap(true, Ordering::AcqRel) {", "Release"): LATER,
    ("inbox", "link.queued.swap(false, Ordering::AcqRel);", "Acquire"): LATER,
    ("inbox", "self.asleep.load(Ordering::Relaxed) != 0 && self.asleep.swap(0, Ordering::AcqRel) != 0", "Acquire"): WHO,
    ("inbox", "self.asleep.load(Ordering::Relaxed) != 0 && self.asleep.swap(0, Ordering::AcqRel) != 0", "Release"): WHO,
    ("line", "let waiter = waits.then(|| self.waiter.swap(0, Ordering::AcqRel))?;", "Acquire"): WHO,
    ("line", "let waiter = waits.then(|| self.waiter.swap(0, Ordering::AcqRel))?;", "Release"): WHO,
    ("line", "self.peer_gone.store(1, Ordering::Release);", "Relaxed"):
        "each send before it has ended with a fence; it stays for who closes without one",
}


def modules():
    """Name and path of each modelled file."""
    text = (MODEL / "src/lib.rs").read_text()
    found = re.findall(r'#\[path = "\.\./\.\./(src/[^"]+)"\]\s*mod (\w+);', text)
    return [(name, Path("crates/sip") / path) for path, name in found]


def mutants(text):
    """Line, position, the ordering there and a weaker one, of what is not a test."""
    code = text.split("#[cfg(all(test, loom))]\nmod tests")[0]
    start = 0
    for number, line in enumerate(code.splitlines(keepends=True), 1):
        if not line.lstrip().startswith("//") and "compiler_fence(" not in line:
            for found in re.finditer(r"Ordering::(\w+)", line):
                for weaker in WEAKER.get(found[1], []):
                    yield number, start + found.start(1), found[1], weaker
        start += len(line)


def copy():
    """The model and the files that it is made of, elsewhere."""
    tree = PLACE / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(MODEL, tree / "crates/sip/model", ignore=shutil.ignore_patterns("target"))
    for _, path in modules():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tree / path)
    return tree


def fails(tree, tests):
    """What the models say: whether one fails, and why."""
    environment = dict(os.environ, RUSTFLAGS="--cfg loom", RUST_BACKTRACE="0")
    environment.setdefault("LOOM_MAX_PREEMPTIONS", "3")
    cargo = ["cargo", "test", "--quiet", "--release", "--target-dir", str(PLACE / "target")]
    manifest = ["--manifest-path", str(tree / "crates/sip/model/Cargo.toml")]
    built = subprocess.run(cargo + manifest + ["--no-run"], env=environment, capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit(f"model: the mutant does not compile:\n{built.stderr}")
    try:
        run = subprocess.run(cargo + manifest + ["--"] + tests, env=environment, capture_output=True, text=True,
                             timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"does not end in {SECONDS} s"
    if run.returncode == 0:
        return None
    said = re.search(r"thread '([\w:]+)'", run.stdout + run.stderr)
    return said[1] if said else "fails"


def main():
    wanted = sys.argv[1:]
    tree = copy()
    # What a file's words are used for can be modelled in another file.
    also = {"line": ["head::"]}
    left, count = [], 0
    for name, path in modules():
        if wanted and not any(str(path).endswith(end) for end in wanted):
            continue
        text = (ROOT / path).read_text()
        for number, at, ordering, weaker in mutants(text):
            count += 1
            (tree / path).write_text(text[:at] + weaker + text[at + len(ordering):])
            said = fails(tree, [f"{name}::"] + also.get(name, []))
            line = text.splitlines()[number - 1].strip()
            known = KNOWN.get((name, line, weaker))
            verdict = said or ("known: " + known if known else "SURVIVES")
            print(f"{path.relative_to('crates/sip/src')}:{number}  {ordering} -> {weaker}  {verdict}", flush=True)
            if not said and not known:
                left.append((path, number, line))
        (tree / path).write_text(text)
    print(f"model: {count} mutants, {len(left)} that no model tells from the original")
    sys.exit(1 if left else 0)


main()
