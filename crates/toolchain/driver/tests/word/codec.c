/* zlib behind the word wall: what the host of word_zlib.rs calls. */
#include "zlib.h"

long pack(Bytef *to, unsigned long room, const Bytef *from, unsigned long bytes)
{
    uLongf length = room;
    int done = compress2(to, &length, from, bytes, 6);
    return done == Z_OK ? (long)length : -done;
}

long unpack(Bytef *to, unsigned long room, const Bytef *from, unsigned long bytes)
{
    uLongf length = room;
    int done = uncompress(to, &length, from, bytes);
    return done == Z_OK ? (long)length : -done;
}

/* The mistake that this wall is for: there is room for one byte less. */
long unpack_carelessly(Bytef *to, unsigned long room, const Bytef *from, unsigned long bytes)
{
    return unpack(to, room + 1, from, bytes);
}

unsigned long sum(const Bytef *from, unsigned long bytes)
{
    return crc32(0, from, bytes);
}

unsigned long sum_carelessly(const Bytef *from, unsigned long bytes)
{
    return crc32(0, from, bytes + 1);
}
