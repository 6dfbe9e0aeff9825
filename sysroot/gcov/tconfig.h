/* What gcc's configure script would write for libgcov, in a domain: files and threads as POSIX has them. */
#define TARGET_POSIX_IO 1
#define HAVE_GAS_HIDDEN 1
#define HAVE_CC_TLS 1
#define GTHREAD_USE_WEAK 0
#define BITS_PER_UNIT 8
#define ATTRIBUTE_UNUSED __attribute__ ((unused))
