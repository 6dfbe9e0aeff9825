/* What was a module's, and is no more. */
#include "attack.h"

HOST(long, take_back, long);
static volatile long kept;
static volatile long going;

ATTACK(keeps) { kept = a; return AT(long, a); }
ATTACK(uses_kept) { AT(long, kept) = 1; return 1; }
ATTACK(reads_kept) { return AT(long, kept) | 1; }
ATTACK(writes) { AT(long, a) = 1; return 1; }
ATTACK(gets) { kept = (long)malloc(64); return kept; }
ATTACK(hammers) { going = 1; for (;;) AT(long, a) += 1; return 0; }
ATTACK(is_going) { return going; }
ATTACK(loses_and_writes) { AT(long, a) = 1; take_back(a); AT(long, a) = 2; return 1; }
ATTACK(loses) { AT(long, a) = 1; take_back(a); return 1; }
ATTACK(calls) { return ((volatile long (*)(long, long))a)(b, c) + 1; }
ATTACK(passes_stack) { volatile long room = 5; long got = ((long (*)(volatile long *, long))a)(&room, b); return got + room; }
ATTACK(fine) { return 4711; }
