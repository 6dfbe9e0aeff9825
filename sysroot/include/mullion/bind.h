/* mullion/bind.h: marks in a header that declares what host and extension are to
 * each other, for `mullion bind`. Compilers see nothing of them.
 *
 *     #include <mullion/bind.h>
 *     #include <stdint.h>
 *
 *     struct point { int32_t x, y; };
 *
 *     MULLION_EXTENSION uint64_t area(const struct point *corners MULLION_IN(count), uint32_t count);
 *     MULLION_HOST void log_text(const char *text MULLION_STRING);
 *
 * MULLION_EXTENSION marks a function that the extension has and the host calls,
 * MULLION_HOST one of the host's. A pointer parameter is marked with what the
 * caller hands over: MULLION_IN(n), n elements that are read; MULLION_OUT(n), that are
 * written; MULLION_INOUT(n), both; n is a number or another parameter. MULLION_STRING is
 * a string that is read. An unmarked pointer is passed as it is: an address in the
 * extension.
 */
#ifndef MULLION_BIND_H
#define MULLION_BIND_H

#ifdef MULLION_BIND
#define MULLION_EXTENSION __attribute__((mullion_extension))
#define MULLION_HOST __attribute__((mullion_host))
#define MULLION_IN(count) __attribute__((mullion_in(count)))
#define MULLION_OUT(count) __attribute__((mullion_out(count)))
#define MULLION_INOUT(count) __attribute__((mullion_inout(count)))
#define MULLION_STRING __attribute__((mullion_string))
#else
#ifdef __cplusplus
#define MULLION_EXTENSION extern "C"
#define MULLION_HOST extern "C"
#else
#define MULLION_EXTENSION extern
#define MULLION_HOST extern
#endif
#define MULLION_IN(count)
#define MULLION_OUT(count)
#define MULLION_INOUT(count)
#define MULLION_STRING
#endif

#endif
