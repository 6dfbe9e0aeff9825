/* A module of Redis by the name of another one, which it loads behind the word wall: so that `loadmodule X.so` and
   `MODULE UNLOAD` stay as they are.

       cc -shared -fPIC -DBRIDGE='"/usr/lib/redis/libmullion_redis.so"' stub.c -o X.so

   X.so loads X.word.so beside it, with the policy X.word.toml. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifndef BRIDGE
#define BRIDGE "libmullion_redis.so"
#endif

static int call(const char *name, void *context, void **argv, int argc)
{
  Dl_info own;
  char file[4096];
  void *bridge = dlopen(BRIDGE, RTLD_NOW | RTLD_NODELETE);
  int (*function)(void *, const char *, void **, int) = 0;

  if (bridge)
    *(void **)&function = dlsym(bridge, name);
  if (!function || !dladdr((void *)call, &own)) {
    fprintf(stderr, "mullion: %s\n", dlerror());
    return 1;
  }
  size_t length = strlen(own.dli_fname);
  if (length > 3 && !strcmp(own.dli_fname + length - 3, ".so"))
    length -= 3;
  if (snprintf(file, sizeof file, "%.*s.word.so", (int)length, own.dli_fname) >= (int)sizeof file)
    return 1;
  return function(context, file, argv, argc);
}

int RedisModule_OnLoad(void *context, void **argv, int argc)
{
  return call("mullion_redis_load", context, argv, argc);
}

int RedisModule_OnUnload(void *context)
{
  return call("mullion_redis_unload", context, 0, 0);
}
