#include "all.h"

int64_t pass_on(int32_t a, int32_t b, int32_t c, int32_t d, int32_t e, int32_t f, int8_t g, int64_t h)
{
	return weigh(a, b, c, d, e, f, g, h) + 1;
}

void grow(struct size *size, const struct size *by, struct size *old)
{
	*old = *size;
	size->width += by->width;
	size->height += by->height;
}

int32_t gain(uint32_t width, uint32_t height)
{
	struct size size = { width, height }, by = { 1, 2 }, old;
	host_grow(&size, &by, &old);
	return (int32_t)(size.width * size.height - old.width * old.height);
}
