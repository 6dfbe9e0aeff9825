#!/usr/bin/env python3
"""terminal.py ANSWER... -- COMMAND...: runs a command on a terminal of its own, types the next answer
each time that it prompts (a line that ends with ": "), and prints what the terminal showed."""
import os, pty, sys, termios, time

split = sys.argv.index("--")
answers, command = sys.argv[1:split], sys.argv[split + 1 :]
child, terminal = pty.fork()
if child == 0:
    os.execvp(command[0], command)
shown, seen = b"", 0
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:  # the terminal goes with its last user
        break
    if not piece:
        break
    shown += piece
    if answers and shown.endswith(b": ") and len(shown) > seen:
        seen = len(shown)
        # A person takes a moment, too: who types before the echo is off is seen.
        patience = time.monotonic() + 20
        while termios.tcgetattr(terminal)[3] & termios.ECHO and time.monotonic() < patience:
            time.sleep(0.01)
        os.write(terminal, answers.pop(0).encode() + b"\n")
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
