/* What glibc's headers share, and programs take from them. */
#ifndef MULLION_SYS_CDEFS_H
#define MULLION_SYS_CDEFS_H

#include <features.h>

#undef __BEGIN_DECLS
#undef __END_DECLS
#ifdef __cplusplus
#define __BEGIN_DECLS extern "C" {
#define __END_DECLS }
#if __cplusplus >= 201103L
#define __THROW noexcept(true)
#else
#define __THROW throw()
#endif
#define __NTH(function) function __THROW
#else
#define __BEGIN_DECLS
#define __END_DECLS
#define __THROW
#define __NTH(function) function
#endif

#undef __P
#define __P(arguments) arguments
#define __PMT(arguments) arguments
#define __CONCAT(a, b) a ## b
#define __STRING(a) #a
#define __ptr_t void *
#define __flexarr []

#define __GNUC_PREREQ__(major, minor) (__GNUC__ > (major) || (__GNUC__ == (major) && __GNUC_MINOR__ >= (minor)))
#ifndef __GNUC_PREREQ
#define __GNUC_PREREQ(major, minor) __GNUC_PREREQ__(major, minor)
#endif
#ifndef __glibc_likely
#define __glibc_likely(condition) __builtin_expect((condition), 1)
#define __glibc_unlikely(condition) __builtin_expect((condition), 0)
#endif

#define __attribute_malloc__ __attribute__((__malloc__))
#define __attribute_pure__ __attribute__((__pure__))
#define __attribute_const__ __attribute__((__const__))
#define __attribute_used__ __attribute__((__used__))
#define __attribute_noinline__ __attribute__((__noinline__))
#define __attribute_deprecated__ __attribute__((__deprecated__))
#define __attribute_warn_unused_result__ __attribute__((__warn_unused_result__))
#define __attribute_format_printf__(format, first) __attribute__((__format__(__printf__, format, first)))
#define __nonnull(parameters) __attribute__((__nonnull__ parameters))
#define __wur
#define __always_inline inline __attribute__((__always_inline__))

#endif
