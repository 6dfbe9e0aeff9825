"""Runs a WebAssembly program with wasmtime: wasmtime_run.py PROGRAM.wasm ARGUMENTS...

The standard streams are passed through and nothing else is granted. Compiled code is
kept beside the program, so that only the first run waits for the compiler.
"""

import os
import sys

from wasmtime import Config, Engine, ExitTrap, Linker, Module, Store, WasiConfig


def compiled(engine: Engine, program: str) -> Module:
    kept = program + ".compiled"
    if os.path.exists(kept) and os.path.getmtime(kept) >= os.path.getmtime(program):
        return Module.deserialize_file(engine, kept)
    module = Module.from_file(engine, program)
    with open(kept, "wb") as out:
        out.write(module.serialize())
    return module


def main() -> int:
    engine = Engine(Config())
    linker = Linker(engine)
    linker.define_wasi()
    wasi = WasiConfig()
    wasi.argv = sys.argv[1:]
    wasi.inherit_stdin()
    wasi.inherit_stdout()
    wasi.inherit_stderr()
    store = Store(engine)
    store.set_wasi(wasi)
    instance = linker.instantiate(store, compiled(engine, sys.argv[1]))
    try:
        instance.exports(store)["_start"](store)
    except ExitTrap as end:
        return end.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
