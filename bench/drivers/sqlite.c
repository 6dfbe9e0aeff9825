/* SQLite in memory, a mix in the manner of its own speedtest: bulk insertion, an
 * index, point and range queries, joins, aggregates, sorting, text matching,
 * updates and deletions. Each iteration starts with an empty database.
 *
 * Built with SQLITE_OS_OTHER: a database in memory asks its operating system
 * layer for a name length, random bytes and the time; nothing else is here. */
#include "bench.h"
#include "sqlite3.h"

#define ROWS 1500

static int no_file(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *out) {
    (void)vfs, (void)name, (void)file, (void)flags, (void)out;
    return SQLITE_CANTOPEN;
}

static int no_delete(sqlite3_vfs *vfs, const char *name, int sync) {
    (void)vfs, (void)name, (void)sync;
    return SQLITE_IOERR_DELETE;
}

static int no_access(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
    (void)vfs, (void)name, (void)flags;
    *result = 0;
    return SQLITE_OK;
}

static int same_name(sqlite3_vfs *vfs, const char *name, int room, char *out) {
    (void)vfs;
    return sqlite3_snprintf(room, out, "%s", name) ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int same_bytes(sqlite3_vfs *vfs, int length, char *out) {
    (void)vfs;
    memset(out, 0x5a, (size_t)length);
    return length;
}

static int no_sleep(sqlite3_vfs *vfs, int microseconds) {
    (void)vfs;
    return microseconds;
}

static int noon(sqlite3_vfs *vfs, double *now) {
    (void)vfs;
    *now = 2461000.5;
    return SQLITE_OK;
}

static sqlite3_vfs memory_only = {.iVersion = 1,
                                  .szOsFile = sizeof(sqlite3_file),
                                  .mxPathname = 64,
                                  .zName = "memory-only",
                                  .xOpen = no_file,
                                  .xDelete = no_delete,
                                  .xAccess = no_access,
                                  .xFullPathname = same_name,
                                  .xRandomness = same_bytes,
                                  .xSleep = no_sleep,
                                  .xCurrentTime = noon};

int sqlite3_os_init(void) {
    return sqlite3_vfs_register(&memory_only, 1);
}

int sqlite3_os_end(void) {
    return SQLITE_OK;
}

static sqlite3 *database;

static void check(int code, int wanted) {
    if (code != wanted) {
        fprintf(stderr, "bench: sqlite: %s\n", database ? sqlite3_errmsg(database) : sqlite3_errstr(code));
        exit(2);
    }
}

static void run(const char *sql) {
    check(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
}

static sqlite3_stmt *prepare(const char *sql) {
    sqlite3_stmt *statement;
    check(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
    return statement;
}

/* Steps through all rows and folds each column in; leaves the statement reset. */
static uint64_t rows(sqlite3_stmt *statement, uint64_t sum) {
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
        for (int column = 0; column < sqlite3_column_count(statement); column++)
            sum = bench_mix(sum, sqlite3_column_type(statement, column) == SQLITE_TEXT
                                     ? (uint64_t)sqlite3_column_bytes(statement, column)
                                     : (uint64_t)sqlite3_column_int64(statement, column));
    check(code, SQLITE_DONE);
    check(sqlite3_reset(statement), SQLITE_OK);
    return sum;
}

static uint64_t query(const char *sql, uint64_t sum) {
    sqlite3_stmt *statement = prepare(sql);
    sum = rows(statement, sum);
    check(sqlite3_finalize(statement), SQLITE_OK);
    return sum;
}

/* A number in words, so that there is text to store, match and sort. */
static int in_words(char *out, size_t room, uint32_t n) {
    static const char *const digits[10] = {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};
    int used = 0;
    do
        used += snprintf(out + used, room - (size_t)used, "%s%s", used ? " " : "", digits[n % 10]);
    while (n /= 10);
    return used;
}

static void fill(uint32_t *seed) {
    char words[80];
    run("BEGIN");
    run("CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, words TEXT)");
    run("CREATE TABLE kind(b INTEGER PRIMARY KEY, name TEXT)");
    sqlite3_stmt *insert = prepare("INSERT INTO t(a, b, words) VALUES(?1, ?2, ?3)");
    for (int i = 0; i < ROWS; i++) {
        uint32_t a = bench_random(seed) >> 12;
        sqlite3_bind_int64(insert, 1, a);
        sqlite3_bind_int64(insert, 2, a % 50);
        sqlite3_bind_text(insert, 3, words, in_words(words, sizeof words, a), SQLITE_TRANSIENT);
        rows(insert, 0);
    }
    sqlite3_finalize(insert);
    run("INSERT INTO kind WITH RECURSIVE n(i) AS (VALUES(0) UNION ALL SELECT i + 1 FROM n WHERE i < 49)"
        " SELECT i, 'kind ' || i FROM n");
    run("COMMIT");
    run("CREATE INDEX by_a ON t(a)");
}

static uint64_t ranges(uint32_t *seed, uint64_t sum) {
    sqlite3_stmt *point = prepare("SELECT words FROM t WHERE id = ?1");
    sqlite3_stmt *range = prepare("SELECT count(*), avg(b), max(words) FROM t WHERE a BETWEEN ?1 AND ?1 + 20000");
    for (int i = 0; i < 300; i++) {
        sqlite3_bind_int64(point, 1, bench_random(seed) % ROWS + 1);
        sum = rows(point, sum);
        sqlite3_bind_int64(range, 1, bench_random(seed) >> 12);
        sum = rows(range, sum);
    }
    sqlite3_finalize(point);
    sqlite3_finalize(range);
    return sum;
}

static uint64_t once(uint64_t i) {
    uint32_t seed = 67 + (uint32_t)i % 16;
    check(sqlite3_open(":memory:", &database), SQLITE_OK);
    fill(&seed);
    uint64_t sum = ranges(&seed, i);
    sum = query("SELECT kind.name, count(*), sum(t.a) FROM t JOIN kind ON kind.b = t.b GROUP BY kind.b ORDER BY 2 DESC, 1", sum);
    sum = query("SELECT id, words FROM t WHERE words LIKE '%seven eight%' ORDER BY words, id", sum);
    sum = query("SELECT length(words), count(*), min(a) FROM t GROUP BY 1 ORDER BY 1", sum);
    run("BEGIN; UPDATE t SET b = b + 1 WHERE a % 3 = 0; UPDATE t SET a = a + 7 WHERE id % 5 = 0; COMMIT");
    run("DELETE FROM t WHERE b BETWEEN 10 AND 20");
    sum = query("SELECT count(*), sum(a), sum(b) FROM t", sum);
    sum = query("SELECT x.id, y.id FROM t x JOIN t y ON y.a BETWEEN x.a AND x.a + 150 WHERE x.id < y.id ORDER BY 1, 2", sum);
    check(sqlite3_close(database), SQLITE_OK);
    return sum;
}

BENCH_MAIN((void)0, once(i))
