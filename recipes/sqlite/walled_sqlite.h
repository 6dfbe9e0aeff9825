/* SQLite behind a wall. One thread at a time: a domain has one database. */
#ifndef WALLED_SQLITE_H
#define WALLED_SQLITE_H

#include <mullion/bind.h>
#include <stdint.h>

/* Takes a database for the calls below, as the bytes of a database file; none for an empty one.
 * Returns 0, or SQLite's error. */
MULLION_EXTENSION int32_t take(const uint8_t *database MULLION_IN(length), uint64_t length);

/* Runs statements, separated by `;`, and calls the host with each row. Returns 0, or SQLite's error. */
MULLION_EXTENSION int32_t run(const char *statements MULLION_STRING);

/* How many bytes the database has as a file. */
MULLION_EXTENSION uint64_t length(void);

/* The database as a file. Returns the bytes written, or -1 if `room` is too small. */
MULLION_EXTENSION int64_t save(uint8_t *room MULLION_OUT(size), uint64_t size);

/* What the last call did not like, as a text that ends in 0. Returns its length. */
MULLION_EXTENSION uint64_t explain(char *room MULLION_OUT(size), uint64_t size);

/* A value of a row. `kind` is SQLite's: 1 integer, 2 real, 3 text, 4 bytes, 5 NULL; all come as text, or as bytes. */
MULLION_HOST void value(uint32_t column, const char *column_name MULLION_STRING, uint32_t kind,
                        const uint8_t *bytes MULLION_IN(length), uint32_t length);
/* The end of a row. */
MULLION_HOST void row_ends(void);

#endif
