/* A sorter that does not know what it sorts: the host compares. */
#include <mullion/ext.h>
#include <stdint.h>
#include <stdlib.h>

/* Below 0, 0 or above, as record `a` goes before, with or behind `b`. */
MULLION_IMPORT(int, compare, (uint32_t a, uint32_t b));

static int by_host(const void *a, const void *b)
{
	return compare(*(const uint32_t *)a, *(const uint32_t *)b);
}

MULLION_EXPORT(void, sort, (uint32_t *records, uint64_t count))
{
	qsort(records, count, sizeof *records, by_host);
}

/* Asked for by the host while it answers `compare`: a call on top of a call. */
MULLION_EXPORT(uint32_t, weight, (uint32_t record))
{
	return record * 2654435761u >> 24;
}
