
/* glibc's headers bring these names along, and programs take them for granted. */
#include <sys/cdefs.h>
