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

static void flush(sqlite3_context *c, int n, sqlite3_value **v)
{
  sqlite3_exec(sqlite3_context_db_handle(c), "SELECT 1; /* not a SELECT */ -- nor this\n DROP TABLE precious", 0, 0, 0);
  sqlite3_result_int(c, 1);
}

/* A table that asks itself: while it is filtered for the first time, it is opened and filtered for the second. */
typedef struct { sqlite3_vtab base; sqlite3 *db; int depth; } Mirror;
typedef struct { sqlite3_vtab_cursor base; sqlite3_int64 found; int at; } Look;
static int mirror_connect(sqlite3 *db, void *p, int n, const char *const *w, sqlite3_vtab **to, char **e)
{
  Mirror *m = sqlite3_malloc(sizeof *m);
  memset(m, 0, sizeof *m);
  m->db = db;
  *to = &m->base;
  return sqlite3_declare_vtab(db, "CREATE TABLE x(n)");
}
static int mirror_disconnect(sqlite3_vtab *t) { sqlite3_free(t); return SQLITE_OK; }
static int mirror_best(sqlite3_vtab *t, sqlite3_index_info *i) { return SQLITE_OK; }
static int mirror_open(sqlite3_vtab *t, sqlite3_vtab_cursor **to)
{
  Look *l = sqlite3_malloc(sizeof *l);
  memset(l, 0, sizeof *l);
  *to = &l->base;
  return SQLITE_OK;
}
static int mirror_close(sqlite3_vtab_cursor *c) { sqlite3_free(c); return SQLITE_OK; }
static int mirror_filter(sqlite3_vtab_cursor *c, int n, const char *s, int k, sqlite3_value **v)
{
  Mirror *m = (Mirror *)c->pVtab;
  Look *l = (Look *)c;
  sqlite3_stmt *q;
  l->at = 0;
  l->found = 1;
  if (m->depth == 8) {
    m->base.zErrMsg = sqlite3_mprintf("too deep: %d", m->depth);
    return m->depth = 0, SQLITE_ERROR;
  }
  m->depth++;
  if (sqlite3_prepare_v2(m->db, "SELECT n + 1 FROM mirror", -1, &q, 0) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
    l->found = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  return SQLITE_OK;
}
static int mirror_next(sqlite3_vtab_cursor *c) { ((Look *)c)->at++; return SQLITE_OK; }
static int mirror_eof(sqlite3_vtab_cursor *c) { return ((Look *)c)->at > 0; }
static int mirror_column(sqlite3_vtab_cursor *c, sqlite3_context *to, int i)
{
  sqlite3_result_int64(to, ((Look *)c)->found);
  return SQLITE_OK;
}
static int mirror_rowid(sqlite3_vtab_cursor *c, sqlite3_int64 *to) { *to = 1; return SQLITE_OK; }
static sqlite3_module mirror = { 0, mirror_connect, mirror_connect, mirror_best, mirror_disconnect, mirror_disconnect,
  mirror_open, mirror_close, mirror_filter, mirror_next, mirror_eof, mirror_column, mirror_rowid };

static void twice(sqlite3_context *c, int n, sqlite3_value **v)
{
  sqlite3_result_int(c, 2 * sqlite3_value_int(v[0]));
}

#define F(n) sqlite3_create_function(db, "hostile_" #n, -1, SQLITE_UTF8, 0, n, 0, 0);
int sqlite3_hostile_init(sqlite3 *db, char **e, const sqlite3_api_routines *api) {
  SQLITE_EXTENSION_INIT2(api);
  sqlite3_create_function(db, "hostile_twice", 1, SQLITE_UTF8, 0, twice, 0, 0);
  F(heap) F(other) F(unnamed) F(foreign) F(text) F(loop) F(recurse) F(forged) F(value) F(format) F(writes) F(frees) F(again) F(jump) F(table) F(eats) F(divide) F(stale) F(flush)
  return SQLITE_OK;
}

int sqlite3_victim_init(sqlite3 *db, char **e, const sqlite3_api_routines *api)
{
  SQLITE_EXTENSION_INIT2(api);
  sqlite3_create_function(db, "victim_where", 0, SQLITE_UTF8, 0, where, 0, 0);
  return sqlite3_create_function(db, "victim_precious", 0, SQLITE_UTF8, 0, is_precious, 0, 0);
}

int sqlite3_mirror_init(sqlite3 *db, char **e, const sqlite3_api_routines *api)
{
  SQLITE_EXTENSION_INIT2(api);
  return sqlite3_create_module(db, "mirror", &mirror, 0);
}
