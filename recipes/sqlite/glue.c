#include "walled_sqlite.h"
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static sqlite3 *database_now;

int32_t take(const uint8_t *database, uint64_t length)
{
	unsigned char *copy;
	int error;
	sqlite3_close(database_now);
	database_now = NULL;
	if ((error = sqlite3_open(":memory:", &database_now)) || !length)
		return error;
	if (!(copy = sqlite3_malloc64(length)))
		return SQLITE_NOMEM;
	memcpy(copy, database, length);
	return sqlite3_deserialize(database_now, "main", copy, length, length,
	                           SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
}

static void hand_row(sqlite3_stmt *statement)
{
	int count = sqlite3_data_count(statement);
	for (int column = 0; column < count; column++) {
		/* What SQLite has before it is asked for text. */
		int kind = sqlite3_column_type(statement, column);
		const void *bytes = kind == SQLITE_BLOB ? sqlite3_column_blob(statement, column)
		                                        : (const void *)sqlite3_column_text(statement, column);
		const char *column_name = sqlite3_column_name(statement, column);
		value(column, column_name ? column_name : "", kind, bytes ? bytes : (const void *)"",
		      sqlite3_column_bytes(statement, column));
	}
	row_ends();
}

int32_t run(const char *statements)
{
	int error = database_now ? SQLITE_OK : take(NULL, 0);
	while (!error && *statements) {
		sqlite3_stmt *statement;
		error = sqlite3_prepare_v2(database_now, statements, -1, &statement, &statements);
		if (error || !statement)
			continue;
		while ((error = sqlite3_step(statement)) == SQLITE_ROW)
			hand_row(statement);
		error = sqlite3_finalize(statement);
	}
	return error;
}

uint64_t length(void)
{
	sqlite3_int64 size = 0;
	/* Without a copy there is only its length. */
	sqlite3_free(database_now ? sqlite3_serialize(database_now, "main", &size, 0) : NULL);
	return size > 0 ? size : 0;
}

int64_t save(uint8_t *room, uint64_t size)
{
	sqlite3_int64 bytes = 0;
	unsigned char *file = database_now ? sqlite3_serialize(database_now, "main", &bytes, 0) : NULL;
	int fits = bytes >= 0 && (uint64_t)bytes <= size && (file || !bytes);
	if (fits && bytes)
		memcpy(room, file, bytes);
	sqlite3_free(file);
	return fits ? bytes : -1;
}

uint64_t explain(char *room, uint64_t size)
{
	return snprintf(room, size, "%s", database_now ? sqlite3_errmsg(database_now) : "no database");
}
