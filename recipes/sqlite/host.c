/* SQLite behind a wall: statements, rows, a database as bytes, and a file that is none.
 *     cc host.c $(pkg-config --cflags --libs mullion) -o host && ./host sqlite.mx */
#include "walled_sqlite_host.h"
#include <stdio.h>
#include <stdlib.h>

static mullion_status print_value(void *user, uint32_t column, const char *name, uint32_t kind, const uint8_t *bytes, uint32_t length)
{
	(void)user, (void)kind;
	printf("%s%s=%.*s", column ? " " : "", name, (int)length, (const char *)bytes);
	return MULLION_OK;
}

static mullion_status end_row(void *user)
{
	(void)user;
	putchar('\n');
	return MULLION_OK;
}

static int failed(void)
{
	fprintf(stderr, "%s\n", mullion_error_message());
	return 1;
}

/* Runs statements, and says what SQLite did not like. */
static int show(const struct walled_sqlite_extension *sqlite, const char *statements)
{
	char said[200];
	uint64_t length;
	int32_t error;
	if (walled_sqlite_run(sqlite, &error, statements))
		return failed();
	if (!error)
		return 0;
	if (walled_sqlite_explain(sqlite, &length, said, sizeof said))
		return failed();
	said[sizeof said - 1] = 0;
	printf("error %d: %s\n", (int)error, said);
	return 0;
}

int main(int count, char **words)
{
	struct walled_sqlite_host functions = { 0 };
	struct walled_sqlite_extension sqlite;
	static const uint8_t none[] = "this is no database, and never was one";
	mullion_image image;
	mullion_imports imports;
	mullion_domain domain;
	uint64_t length;
	int64_t saved;
	uint8_t *file;
	int32_t error;

	functions.value = print_value;
	functions.row_ends = end_row;
	if (mullion_image_open(count > 1 ? words[1] : "sqlite.mx", &image)
	    || mullion_imports_new(&imports)
	    || walled_sqlite_offer(imports, &functions)
	    || mullion_domain_load(image, NULL, imports, NULL, &domain)
	    || walled_sqlite_find(domain, &sqlite))
		return failed();
	if (show(&sqlite, "create table wall (name text, cost real); insert into wall values ('window', 1.05), ('word', 1.02);")
	    || show(&sqlite, "select name, cost from wall order by cost; select count(*) as walls from wall;")
	    || show(&sqlite, "select * from door;"))
		return 1;
	/* Saved, and taken again. */
	if (walled_sqlite_length(&sqlite, &length))
		return failed();
	if (length > 1 << 20 || !(file = malloc(length + 1)))
		return 1;
	if (walled_sqlite_save(&sqlite, &saved, file, length)
	    || walled_sqlite_take(&sqlite, &error, file, saved == (int64_t)length ? length : 0))
		return failed();
	free(file);
	if (show(&sqlite, "select max(cost) as dearest from wall;"))
		return 1;
	if (walled_sqlite_take(&sqlite, &error, none, sizeof none))
		return failed();
	return show(&sqlite, "select * from wall;");
}
