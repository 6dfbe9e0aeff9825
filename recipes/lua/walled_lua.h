/* Lua behind a wall. One thread at a time: a domain has one state of Lua. */
#ifndef WALLED_LUA_H
#define WALLED_LUA_H

#include <mullion/bind.h>
#include <stdint.h>

/* Runs a script. Its global names last until `forget`. Returns 0, or Lua's error. */
MULLION_EXTENSION int32_t run(const char *script MULLION_STRING);

/* What the last script returned, as text, or what was wrong with it. Returns its length, or -1 if `room` is too small. */
MULLION_EXTENSION int64_t answer(char *room MULLION_OUT(size), uint64_t size);

/* Begins anew. */
MULLION_EXTENSION void forget(void);

/* What a script prints, without the end of the line. */
MULLION_HOST void print_line(const char *letters MULLION_IN(length), uint32_t length);

/* `host(question)` in a script. The answer goes to `room`; what is returned is its length, or -1 for `nil`. */
MULLION_HOST int64_t ask(const char *question MULLION_STRING, char *room MULLION_OUT(size), uint64_t size);

#endif
