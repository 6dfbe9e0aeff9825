/* What libstdc++ must know of the system: musl, and one thread. */
#ifndef _GLIBCXX_OS_DEFINES
#define _GLIBCXX_OS_DEFINES 1
#define __NO_CTYPE 1
#include <features.h>
#undef _GLIBCXX_HAVE_GETS
#define _GLIBCXX_NO_OBSOLETE_ISINF_ISNAN_DYNAMIC 1
#define _GLIBCXX_NATIVE_THREAD_ID pthread_self()
#define _GLIBCXX_GTHREAD_USE_WEAK 0
#endif
