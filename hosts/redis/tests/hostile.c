#include <string.h>
#include "redismodule.h"
/* A module that does what none may. Each command is one attack; tests/attacks.rs has the answers that it must get. */
#define COMMAND(name) static int name(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)

/* Writes to Redis's structures, and to other modules. */
COMMAND(heap) { ((char *)argv[0])[0] ^= 0x55; return RedisModule_ReplyWithLongLong(ctx, 1); }
COMMAND(context) { *(void **)ctx = 0; return RedisModule_ReplyWithLongLong(ctx, 1); }
COMMAND(null) { *(volatile int *)0 = 1; return RedisModule_ReplyWithLongLong(ctx, 1); }
COMMAND(other)
{
  long long at;
  RedisModule_StringToLongLong(argv[1], &at);
  *(int *)at = 1;
  return RedisModule_ReplyWithLongLong(ctx, 1);
}

/* What is read. */
COMMAND(tells) { return RedisModule_ReplyWithStringBuffer(ctx, (char *)argv[0], 64); }
COMMAND(reads) { return RedisModule_ReplyWithLongLong(ctx, ((char *)argv[0])[4]); }
COMMAND(prints)
{
  return RedisModule_ReplyWithString(ctx, RedisModule_CreateStringPrintf(ctx, "%.8s", (char *)argv[0]));
}
COMMAND(counts)
{
  RedisModule_CreateStringPrintf(ctx, "12345678%n", (int *)argv[0]);
  return RedisModule_ReplyWithLongLong(ctx, 1);
}

/* `out` parameters: Redis is to write where the module may not. */
COMMAND(deputy)
{
  RedisModule_StringToLongLong(argv[1], (long long *)argv[0]);
  return RedisModule_ReplyWithLongLong(ctx, 1);
}
COMMAND(length)
{
  RedisModule_StringPtrLen(argv[1], (size_t *)argv[0]);
  return RedisModule_ReplyWithLongLong(ctx, 1);
}
COMMAND(random_bytes)
{
  RedisModule_GetRandomBytes((unsigned char *)argv[0], 16);
  return RedisModule_ReplyWithLongLong(ctx, 1);
}
COMMAND(direct)
{
  size_t n;
  RedisModuleKey *k = RedisModule_OpenKey(ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE);
  char *s = RedisModule_StringDMA(k, &n, REDISMODULE_WRITE);
  memset(s - 16, 0x7f, n + 32);
  RedisModule_CloseKey(k);
  return RedisModule_ReplyWithLongLong(ctx, 1);
}

/* Handles: forged, freed, not the module's. */
COMMAND(forged)
{
  static unsigned long robj[2];
  size_t n;
  robj[1] = (unsigned long)argv[0];
  return RedisModule_ReplyWithLongLong(ctx, (long)RedisModule_StringPtrLen((void *)robj, &n));
}
COMMAND(twice_closed)
{
  RedisModuleKey *k = RedisModule_OpenKey(ctx, argv[1], REDISMODULE_READ);
  RedisModule_CloseKey(k);
  RedisModule_CloseKey(k);
  return RedisModule_ReplyWithLongLong(ctx, 1);
}
COMMAND(stale_reply)
{
  RedisModuleCallReply *r = RedisModule_Call(ctx, "GET", "c", "precious");
  size_t n;
  RedisModule_FreeCallReply(r);
  const char *s = RedisModule_CallReplyStringPtr(r, &n);
  return RedisModule_ReplyWithStringBuffer(ctx, s, n);
}
COMMAND(stale_string)
{
  RedisModuleString *s = RedisModule_CreateString(ctx, "gone", 4);
  RedisModule_FreeString(ctx, s);
  return RedisModule_ReplyWithString(ctx, s);
}
COMMAND(not_held)
{
  for (int i = 0; i < 8; i++)
    RedisModule_FreeString(ctx, argv[1]);
  return RedisModule_ReplyWithLongLong(ctx, 1);
}
COMMAND(type)
{
  RedisModuleKey *k = RedisModule_OpenKey(ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE);
  RedisModule_ModuleTypeSetValue(k, (RedisModuleType *)argv[0], argv[0]);
  return RedisModule_ReplyWithLongLong(ctx, 1);
}
COMMAND(frees) { RedisModule_Free(argv[0]); return RedisModule_ReplyWithLongLong(ctx, 1); }
COMMAND(again)
{
  void *p = RedisModule_Alloc(100);
  RedisModule_Free(p);
  RedisModule_Free(p);
  return RedisModule_ReplyWithLongLong(ctx, 1);
}
static void closes(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleKey *key, void *data)
{
  RedisModule_CloseKey(key);
}
COMMAND(scans)
{
  RedisModuleScanCursor *c = RedisModule_ScanCursorCreate();
  while (RedisModule_Scan(ctx, c, closes, 0)) ;
  RedisModule_ScanCursorDestroy(c);
  return RedisModule_ReplyWithLongLong(ctx, 1);
}

/* Code. */
COMMAND(callback)
{
  RedisModule_CreateTimer(ctx, 1, (RedisModuleTimerProc)((char *)RedisModule_Alloc + 3), 0);
  return RedisModule_ReplyWithLongLong(ctx, 1);
}
COMMAND(jump) { ((void (*)(void))((char *)RedisModule_Alloc + 1))(); return RedisModule_ReplyWithLongLong(ctx, 1); }
COMMAND(unnamed) { RedisModule_ResetDataset(0, 0); return RedisModule_ReplyWithLongLong(ctx, 1); }
COMMAND(command) { RedisModule_Call(ctx, "FLUSHALL", ""); return RedisModule_ReplyWithLongLong(ctx, 1); }
static void late(RedisModuleCtx *ctx, void *data) { *(volatile int *)data = 1; }
COMMAND(timer)
{
  RedisModule_CreateTimer(ctx, 1, late, (void *)4096);
  return RedisModule_ReplyWithLongLong(ctx, 1);
}

/* Without end. */
COMMAND(loop) { for (volatile int i = 0;; i++) ; return 0; }
static int deep(int n) { volatile char b[64]; b[0] = n; return deep(n + 1) + b[0]; }
COMMAND(recurse) { return RedisModule_ReplyWithLongLong(ctx, deep(0)); }
COMMAND(eats)
{
  int n = 0;
  while (RedisModule_Alloc(1 << 20)) n++;
  return RedisModule_ReplyWithLongLong(ctx, n);
}
COMMAND(divide) { volatile int z = argc - 1; return RedisModule_ReplyWithLongLong(ctx, 100 / z); }

/* Redis's protocol. */
COMMAND(half)
{
  RedisModule_ReplyWithArray(ctx, 3);
  RedisModule_ReplyWithLongLong(ctx, 1);
  RedisModule_ReplyWithArray(ctx, REDISMODULE_POSTPONED_LEN);
  RedisModule_ReplyWithLongLong(ctx, 2);
  *(volatile int *)4096 = 1;
  return 0;
}
COMMAND(both)
{
  RedisModule_ReplyWithLongLong(ctx, 1);
  return RedisModule_ReplyWithLongLong(ctx, 2);
}
COMMAND(lines) { return RedisModule_ReplyWithSimpleString(ctx, "OK\r\n+injected"); }

COMMAND(twice)
{
  long long n;
  RedisModule_StringToLongLong(argv[1], &n);
  return RedisModule_ReplyWithLongLong(ctx, 2 * n);
}

#define HAS(n) if (RedisModule_CreateCommand(ctx, "hostile." #n, n, "", 0, 0, 0)) return REDISMODULE_ERR;
static int hostile(RedisModuleCtx *ctx)
{
  if (RedisModule_Init(ctx, "hostile", 1, REDISMODULE_APIVER_1)) return REDISMODULE_ERR;
  HAS(heap) HAS(context) HAS(null) HAS(other) HAS(tells) HAS(reads) HAS(prints) HAS(counts) HAS(deputy) HAS(length)
  HAS(random_bytes) HAS(direct) HAS(forged) HAS(twice_closed) HAS(stale_reply) HAS(stale_string) HAS(not_held) HAS(type)
  HAS(frees) HAS(again) HAS(scans) HAS(callback) HAS(jump) HAS(unnamed) HAS(command) HAS(timer) HAS(loop) HAS(recurse)
  HAS(eats) HAS(divide) HAS(half) HAS(both) HAS(lines) HAS(twice)
  return REDISMODULE_OK;
}

/* In a module of its own: what is attacked. */
static int precious = 42;
COMMAND(where) { return RedisModule_ReplyWithLongLong(ctx, (long)&precious); }
COMMAND(is_precious) { return RedisModule_ReplyWithLongLong(ctx, precious); }
int victim(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
  if (RedisModule_Init(ctx, "victim", 1, REDISMODULE_APIVER_1)) return REDISMODULE_ERR;
  if (RedisModule_CreateCommand(ctx, "victim.where", where, "", 0, 0, 0)) return REDISMODULE_ERR;
  return RedisModule_CreateCommand(ctx, "victim.precious", is_precious, "", 0, 0, 0);
}

#ifndef VICTIM
#define VICTIM 0
#endif
int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
  return VICTIM ? victim(ctx, argv, argc) : hostile(ctx);
}
