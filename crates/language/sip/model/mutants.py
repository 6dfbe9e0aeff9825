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

ROOT = Path(__file__).resolve().parents[4]
# The packages of models, and the crate that each is of.
MODELS = {ROOT / f"crates/{crate}/model": Path("crates") / crate for crate in ("language/sip", "window/runtime")}
PLACE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "mutants"
SECONDS = 300

WEAKER = {"Acquire": ["Relaxed"], "Release": ["Relaxed"], "AcqRel": ["Acquire", "Release"], "SeqCst": ["AcqRel"]}

# Steps of a life that are another one, or none; and fences.
STEPS = [
    ("fence();", "loom::sync::atomic::fence(loom::sync::atomic::Ordering::AcqRel);"),
    ("self.step(State::New, State::Constructing)", "self.step(State::New, State::Open)"),
    ("let over = matches!(state, State::Ended | State::Gone);", "let over = state == State::Ended;"),
    ("_ => return self.step(State::Open, State::Ending),", "state => return self.step(state, State::Ending),"),
    ("        self.step(State::Ending, State::Open);", "        self.step(self.state(), State::Open);"),
    ("            self.step(State::Asked, State::Open);", "            self.step(self.state(), State::Open);"),
    ("        if inside() {\n            // Unless", "        if false {\n            // Unless"),
    ("if !self.step(State::Asked, State::Restarting) {", "if !self.step(self.state(), State::Restarting) {"),
    ("                    if inside() {\n", "                    if false {\n"),
    ("let from = (old & !STATE) | State::Restarting as u64;", "let from = old;"),
    ("if state == State::Gone || self.step(state, State::Gone) {", "if true {"),
]

# Loom cannot tell these from what is there; why they stay. The text that is weakened, and the weaker ordering.
EITHER = "one of the two acquires is enough for what is in a block; "
LATER = "without it a drain could read the link that a later push writes; loom has no reads of what comes later"
WHO = "it says who wakes; what for is ordered by the fences"
LOCKED = "what it orders are exchanges, full barriers on this architecture; the models have fences in their place"
KNOWN = {
    ("life", "self.0.load(Ordering::Acquire) == number", "Relaxed"):
        "the host's way in: it borrows the domain, which a restart borrows alone",
    ("life", "match self.0.load(Ordering::SeqCst) & STATE {", "AcqRel"): LOCKED,
    ("life", ".compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed)", "AcqRel"): LOCKED,
    ("life", ".compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed);", "AcqRel"): LOCKED,
    ("life", "if !self.step(State::Asked, State::Restarting) {", "if !self.step(self.state(), State::Restarting) {"):
        "nobody is inside, so an end in between goes with the life either way",
    ("claim", "if self.0.load(Ordering::Acquire) != from || !here.enter() {", "Relaxed"):
        EITHER + "this one is for `here`, of which loom's exchanges see the last value anyway",
    ("claim", ".compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed)", "Relaxed"):
        EITHER + "this one is for a word that has come back to the same value in between",
    ("inbox", "if link.queued.swap(true, Ordering::AcqRel) {", "Release"): LATER,
    ("inbox", "link.queued.swap(false, Ordering::AcqRel);", "Acquire"): LATER,
    ("line", "let waiter = waits.then(|| self.waiter.swap(0, Ordering::AcqRel))?;", "Acquire"): WHO,
    ("line", "let waiter = waits.then(|| self.waiter.swap(0, Ordering::AcqRel))?;", "Release"): WHO,
    ("line", "self.peer_gone.store(1, Ordering::Release);", "Relaxed"):
        "each send before it has ended with a fence; it stays for who closes without one",
}


def modules():
    """Name and path of each modelled file, and the crate."""
    for model, crate in MODELS.items():
        text = (model / "src/lib.rs").read_text()
        found = re.findall(r'#\[path = "([^"]+)"\]\s*mod (\w+);', text)
        place = lambda path: (model / "src" / path).resolve().relative_to(ROOT)
        yield from ((name, place(path), crate) for path, name in found)


def mutants(text):
    """Line, position, the text there and what is in its place, of what is not a test."""
    code = text.split("#[cfg(all(test, loom))]\nmod tests")[0]
    start = 0
    for number, line in enumerate(code.splitlines(keepends=True), 1):
        if not line.lstrip().startswith("//") and "compiler_fence(" not in line:
            for found in re.finditer(r"Ordering::(\w+)", line):
                for weaker in WEAKER.get(found[1], []):
                    yield number, start + found.start(1), found[1], weaker
        start += len(line)
    for there, instead in STEPS:
        for found in re.finditer(re.escape(there), code):
            yield code[:found.start()].count("\n") + 1, found.start(), there, instead


def copy():
    """The model and the files that it is made of, elsewhere."""
    tree = PLACE / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for model, crate in MODELS.items():
        shutil.copytree(model, tree / crate / "model", ignore=shutil.ignore_patterns("target"))
    for _, path, _ in modules():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tree / path)
    return tree


def fails(tree, crate, tests):
    """What the models say: whether one fails, and why."""
    environment = dict(os.environ, RUSTFLAGS="--cfg loom", RUST_BACKTRACE="0")
    environment.setdefault("LOOM_MAX_PREEMPTIONS", "3")
    cargo = ["cargo", "test", "--quiet", "--release", "--target-dir", str(PLACE / "target")]
    manifest = ["--manifest-path", str(tree / crate / "model/Cargo.toml")]
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
    for name, path, crate in modules():
        if wanted and not any(str(path).endswith(end) for end in wanted):
            continue
        text = (ROOT / path).read_text()
        for number, at, ordering, weaker in mutants(text):
            count += 1
            (tree / path).write_text(text[:at] + weaker + text[at + len(ordering):])
            said = fails(tree, crate, [f"{name}::"] + also.get(name, []))
            line = text.splitlines()[number - 1].strip()
            known = KNOWN.get((name, line, weaker))
            verdict = said or ("known: " + known if known else "SURVIVES")
            print(f"{path.as_posix().split('/src/', 1)[1]}:{number}  {ordering.strip()} -> {weaker.strip()}  {verdict}", flush=True)
            if not said and not known:
                left.append((path, number, line))
        (tree / path).write_text(text)
    print(f"model: {count} mutants, {len(left)} that no model tells from the original")
    sys.exit(1 if left else 0)


main()
