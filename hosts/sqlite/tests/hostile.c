#include <string.h>
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1
/* An extension that does what none may. Each function is one attack; tests/shell.rs has the answers that it must get. */
static void heap(sqlite3_context *c, int n, sqlite3_value **v)
{
  ((char *)c)[0] = 1;
}

static void other(sqlite3_context *c, int n, sqlite3_value **v)
{
  *(char *)sqlite3_value_int64(v[0]) = 1;
}

static void unnamed(sqlite3_context *c, int n, sqlite3_value **v)
{
  sqlite3_sleep(1); sqlite3_result_int(c, 1);
}

static void foreign(sqlite3_context *c, int n, sqlite3_value **v)
{
  sqlite3_result_blob(c, c, 64, SQLITE_TRANSIENT);
}

static void text(sqlite3_context *c, int n, sqlite3_value **v)
{
  sqlite3_result_text(c, (char *)c, -1, SQLITE_TRANSIENT);
}

static void loop(sqlite3_context *c, int n, sqlite3_value **v)
{
  for (volatile int i = 0;; i++) ;
}

static int deep(int n)
{
  volatile char b[64]; b[0] = n; return deep(n + 1) + b[0];
}

static void recurse(sqlite3_context *c, int n, sqlite3_value **v)
{
  sqlite3_result_int(c, deep(0));
}

static void forged(sqlite3_context *c, int n, sqlite3_value **v)
{
  sqlite3_result_int((sqlite3_context *)((char *)c + 8), 1);
}

static void value(sqlite3_context *c, int n, sqlite3_value **v)
{
  sqlite3_value_int((sqlite3_value *)c);
}

static void format(sqlite3_context *c, int n, sqlite3_value **v)
{
  sqlite3_result_text(c, sqlite3_mprintf("%s", (char *)c), -1, sqlite3_free);
}

static void writes(sqlite3_context *c, int n, sqlite3_value **v)
{
  sqlite3_mprintf("%n", (int *)c);
}

static void frees(sqlite3_context *c, int n, sqlite3_value **v)
{
  sqlite3_free(c);
}

static void again(sqlite3_context *c, int n, sqlite3_value **v)
{
  void *p = sqlite3_malloc(10); sqlite3_free(p); sqlite3_free(p);
}

static void jump(sqlite3_context *c, int n, sqlite3_value **v)
{
  ((void (*)(void))sqlite3_api->malloc + 1)();
}

static void table(sqlite3_context *c, int n, sqlite3_value **v)
{
  ((sqlite3_api_routines *)sqlite3_api)->malloc = 0;
}

static void eats(sqlite3_context *c, int n, sqlite3_value **v)
{
  int k = 0; while (sqlite3_malloc(1 << 20)) k++; sqlite3_result_int(c, k);
}

static void divide(sqlite3_context *c, int n, sqlite3_value **v)
{
  volatile int z = 0; sqlite3_result_int(c, n / z);
}

/* In a domain of its own, by the other entry: what is attacked. */
static int precious = 42;
static void is_precious(sqlite3_context *c, int n, sqlite3_value **v)
{
  sqlite3_result_int(c, precious);
}

static void where(sqlite3_context *c, int n, sqlite3_value **v)
{
  sqlite3_result_int64(c, (sqlite3_int64)&precious);
}

static void stale(sqlite3_context *c, int n, sqlite3_value **v)
{
  sqlite3_stmt *s;
  sqlite3_prepare_v2(sqlite3_context_db_handle(c), "SELECT 'a row'", -1, &s, 0);
  sqlite3_step(s);
  sqlite3_value *gone = sqlite3_column_value(s, 0);
  sqlite3_finalize(s);
  sqlite3_result_value(c, gone);
}

static void twice(sqlite3_context *c, int n, sqlite3_value **v)
{
  sqlite3_result_int(c, 2 * sqlite3_value_int(v[0]));
}

#define F(n) sqlite3_create_function(db, "hostile_" #n, -1, SQLITE_UTF8, 0, n, 0, 0);
int sqlite3_hostile_init(sqlite3 *db, char **e, const sqlite3_api_routines *api) {
  SQLITE_EXTENSION_INIT2(api);
  sqlite3_create_function(db, "hostile_twice", 1, SQLITE_UTF8, 0, twice, 0, 0);
  F(heap) F(other) F(unnamed) F(foreign) F(text) F(loop) F(recurse) F(forged) F(value) F(format) F(writes) F(frees) F(again) F(jump) F(table) F(eats) F(divide) F(stale)
  return SQLITE_OK;
}

int sqlite3_victim_init(sqlite3 *db, char **e, const sqlite3_api_routines *api)
{
  SQLITE_EXTENSION_INIT2(api);
  sqlite3_create_function(db, "victim_where", 0, SQLITE_UTF8, 0, where, 0, 0);
  return sqlite3_create_function(db, "victim_precious", 0, SQLITE_UTF8, 0, is_precious, 0, 0);
}
