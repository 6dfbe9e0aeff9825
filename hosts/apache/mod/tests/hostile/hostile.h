/* What the files of the module that attacks have in common. Each function does what its last argument names. */
#include "httpd.h"
#include "http_config.h"
#include "http_protocol.h"
#include "http_request.h"
#include "http_core.h"
#include "apr_network_io.h"
#include "apr_file_io.h"
#include "http_log.h"
#include "scoreboard.h"
#include "apr_strings.h"
#include "apr_buckets.h"
#include "util_filter.h"
#include "apr_reslist.h"
#include "apr_hash.h"
#include "apr_shm.h"
#include "apr_thread_mutex.h"
#include "apr_global_mutex.h"
#include "util_mutex.h"
#include "apr_dbd.h"
#include "apr_crypto.h"
#include "apr_dbm.h"
#include "ap_mpm.h"
#include <sys/socket.h>

#ifdef WITHOUT_WALL
/* A stock server has not all libraries. */
#define LIBRARY __attribute__((weak))
#else
#define LIBRARY
#endif

extern char *volatile kept;
extern volatile int depth;
extern volatile int again;
extern apr_pool_t *volatile kept_pool;
extern apr_reslist_t *resources;
extern apr_thread_mutex_t *lock_of_threads;
extern apr_global_mutex_t *lock_of_processes;

/* buckets.c */
void rings(request_rec *r, const char *what);
/* pools.c */
void ends(request_rec *r, const char *what);
void tables(request_rec *r, const char *what);
int grown(request_rec *r, const char *what);
/* libraries.c */
void swap_later(void *data);
void objects(request_rec *r, const char *what);
/* threads.c */
int raced(request_rec *r, int me);
int put(request_rec *r, const char *what);
int fill(request_rec *r, const char *what);
int heap(request_rec *r, const char *what);
int waits(request_rec *r, const char *what);
int locked(request_rec *r, const char *what);
int of_two(request_rec *r, const char *what);
/* texts.c */
void texts(request_rec *r, const char *what);
/* structures.c */
void structures(request_rec *r, const char *what);
int followed(request_rec *r, const char *what);
/* forgeries.c */
const char *take_scheme(const request_rec *r);
void forgeries(request_rec *r, const char *what);
void reads(request_rec *r, const char *what);
void crossed(request_rec *r, const char *what);
/* contexts.c */
void contexts(request_rec *r, const char *what);
void names(apr_pool_t *p, server_rec *s);
void records(void);
/* endings.c */
int endings(request_rec *r, const char *what);
void ending_filters(void);
/* left.c */
int left(request_rec *r, const char *what);
void left_hooks(void);
/* overlooked.c */
int overlooked(request_rec *r, const char *what);
void overlooked_hooks(apr_pool_t *p);
/* written.c */
void written_first(apr_pool_t *p);
int written(request_rec *r, const char *what);
/* names.c */
void taken_first(apr_pool_t *p);
int taken(apr_pool_t *p, apr_pool_t *log, apr_pool_t *temporary);
/* passed.c */
void passed(request_rec *r, const char *what);
int slots(request_rec *r, const char *what);
const char *set_slots(cmd_parms *cmd, void *configuration, const char *text);
const char *answers(cmd_parms *cmd, void *configuration, const char *text);
int lasting(request_rec *r, const char *what);
void *slots_of(apr_pool_t *p, char *folder);
