/* Without repeated string instructions: behind the word wall each of their steps has its checks. */
#define BLOCK_COPY ((size_t)-1)
#include "../musl/src/string/memmove.c"
