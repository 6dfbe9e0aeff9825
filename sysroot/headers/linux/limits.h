/* Linux's bounds. */
#ifndef MULLION_LINUX_LIMITS_H
#define MULLION_LINUX_LIMITS_H

#include <limits.h>

#undef NR_OPEN
#define NR_OPEN 1024
#ifndef NGROUPS_MAX
#define NGROUPS_MAX 65536
#endif
#ifndef ARG_MAX
#define ARG_MAX 131072
#endif
#define LINK_MAX 127
#define MAX_CANON 255
#define MAX_INPUT 255
#define XATTR_NAME_MAX 255
#define XATTR_SIZE_MAX 65536
#define XATTR_LIST_MAX 65536
#define RTSIG_MAX 32

#endif
