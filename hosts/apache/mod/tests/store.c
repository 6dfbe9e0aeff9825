/* Makes what modules find: a file of keys and values (store dbm FILE KEY VALUE ...), a database (store sqlite FILE STATEMENT ...).
   4: there is no driver for the database. */
#include <apr_dbd.h>
#include <apr_dbm.h>
#include <string.h>

int main(int count, char **words) {
  apr_pool_t *pool;
  apr_initialize();
  apr_pool_create(&pool, NULL);
  if (count > 3 && !strcmp(words[1], "dbm")) {
    apr_dbm_t *file;
    if (apr_dbm_open_ex(&file, "SDBM", words[2], APR_DBM_RWTRUNC, APR_OS_DEFAULT, pool)) return 2;
    for (int at = 3; at + 1 < count; at += 2) {
      apr_datum_t key = {words[at], strlen(words[at])}, value = {words[at + 1], strlen(words[at + 1])};
      if (apr_dbm_store(file, key, value)) return 3;
    }
    apr_dbm_close(file);
    return 0;
  }
  if (count > 3) {
    const apr_dbd_driver_t *driver;
    apr_dbd_t *handle;
    int rows;
    apr_dbd_init(pool);
    if (apr_dbd_get_driver(pool, "sqlite3", &driver)) return 4;
    if (apr_dbd_open(driver, pool, words[2], &handle)) return 2;
    for (int at = 3; at < count; at++)
      if (apr_dbd_query(driver, handle, &rows, words[at])) return 3;
    return 0;
  }
  return 1;
}
