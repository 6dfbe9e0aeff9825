/* memcpy is memmove, in memmove.c. */
