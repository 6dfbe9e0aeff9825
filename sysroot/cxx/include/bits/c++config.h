/* The compiler's own configuration of libstdc++, corrected for musl. */
#include_next <bits/c++config.h>
#ifndef MULLION_CXXCONFIG_H
#define MULLION_CXXCONFIG_H
#undef _GLIBCXX_HAVE___CXA_THREAD_ATEXIT_IMPL
#undef _GLIBCXX_HAVE_OBSOLETE_ISINF
#undef _GLIBCXX_HAVE_OBSOLETE_ISNAN
#endif
