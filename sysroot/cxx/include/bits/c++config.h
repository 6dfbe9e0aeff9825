/* The compiler's own configuration of libstdc++, corrected for musl. */
#include_next <bits/c++config.h>
#ifndef MULLION_CXXCONFIG_H
#define MULLION_CXXCONFIG_H
#undef _GLIBCXX_HAVE___CXA_THREAD_ATEXIT_IMPL
#undef _GLIBCXX_HAVE_OBSOLETE_ISINF
#undef _GLIBCXX_HAVE_OBSOLETE_ISNAN
/* std::random_device: from the host by getentropy(), not by instructions or from devices. */
#undef _GLIBCXX_HAVE_ARC4RANDOM
#undef _GLIBCXX_HAVE_LINUX_RANDOM_H
#undef _GLIBCXX_HAVE_LINUX_TYPES_H
#undef _GLIBCXX_X86_RDRAND
#undef _GLIBCXX_X86_RDSEED
/* No back traces from within, no catalogues of messages, no files copied by the system. */
#undef _GLIBCXX_HAVE_EXECINFO_H
#undef _GLIBCXX_USE_NLS
#undef _GLIBCXX_USE_SENDFILE
#endif
