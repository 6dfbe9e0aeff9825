/* mullion/packets.h: what a module of `mullion packets` is made of (docs/packets.md).
 *
 *     #include "packets.h"
 *
 *     int packets_next(struct packets_frame *frame)
 *     {
 *         return frame->length < 64 ? PACKETS_DROP : PACKETS_PASS;
 *     }
 *
 *     mullion cc --mullion-kind=extension -O2 small.c -o small.mx
 */
#ifndef MULLION_PACKETS_H
#define MULLION_PACKETS_H

#include <mullion/ext.h>
#include <stdint.h>

/* Longest frame that a module gets or makes, in bytes. */
#define PACKETS_ROOM 16384

struct packets_frame {
	uint32_t length;        /* bytes that are here; a transcoder that changes the frame changes this too */
	uint32_t original;      /* bytes that the frame has: more, if your role sees its beginning only */
	uint32_t packet;        /* where the packet of IP begins; PACKETS_NONE if there is none */
	uint32_t payload;       /* where begins what UDP or TCP carries; PACKETS_NONE if it is not here */
	uint32_t end;           /* where the packet ends; behind it may be what pads the frame. As `length` */
	uint32_t port;          /* 0 or 1: where it came in */
	uint64_t nanoseconds;   /* since 1970 */
	unsigned char bytes[PACKETS_ROOM];
};

#define PACKETS_NONE UINT32_MAX

/* Answers. */
#define PACKETS_PASS 0          /* as it was; the only answer of a monitor that counts */
#define PACKETS_CHANGED 1       /* as `bytes` and `length` say now; lengths and checksums are made right */
#define PACKETS_DROP 2

/* Tells your user something: 0, or -1 if nobody has read for too long. At most 4096 bytes. */
MULLION_IMPORT(int, packets_report, (const void *text, uint32_t length));

/* Yours. */
int packets_next(struct packets_frame *frame);

/* The rest is between this file and the forwarder, which hands over frames in batches: one call for several. */
#define PACKETS_FORM 4          /* of this agreement */
#define PACKETS_BATCH 32
#define PACKETS_ADDED 128       /* frames that may be added to a batch */
#define PACKETS_ADDED_EACH 16   /* and to each frame of it */

struct packets_place {
	struct packets_frame frame;
	unsigned char apart[1504];  /* so that frames do not compete for the same lines of the cache */
};

static struct packets_room {
	int32_t answers[PACKETS_BATCH];
	uint32_t added, refused;
	uint32_t behind[PACKETS_ADDED];
	uint32_t apart[14];
	struct packets_place of[PACKETS_BATCH], more[PACKETS_ADDED];
} *packets_room;
static uint32_t packets_at, packets_each;

MULLION_EXPORT(int, packets_place, (uint32_t form))
{
	return form == PACKETS_FORM;
}

/* The room is the forwarder's and this module's, and nobody else's. */
MULLION_EXPORT(void, packets_steps, (struct packets_room *room, uint32_t count))
{
	packets_room = room;
	for (packets_at = 0; packets_at < count && packets_at < PACKETS_BATCH; packets_at++) {
		packets_each = 0;
		room->answers[packets_at] = packets_next(&room->of[packets_at].frame);
	}
}

/* The place of one more frame, behind this one: write it there, its length and end, and emit it. Until then it is the
 * same place. A null pointer if there are too many. */
static inline struct packets_frame *packets_another(void)
{
	if (packets_room->added < PACKETS_ADDED && packets_each < PACKETS_ADDED_EACH)
		return &packets_room->more[packets_room->added].frame;
	packets_room->refused++;
	return 0;
}

/* Sends a frame, behind this one: 0, or -1 if there are too many, it is too long, or you are a monitor. */
static inline int packets_emit(const void *bytes, uint32_t length, uint32_t end)
{
	struct packets_frame *to = length <= PACKETS_ROOM ? packets_another() : 0;

	if (!to)
		return -1;
	to->length = length;
	to->end = end;
	if (bytes != to->bytes)
		__builtin_memcpy(to->bytes, bytes, length);
	packets_room->behind[packets_room->added++] = packets_at;
	packets_each++;
	return 0;
}

/* The same of a frame with its own length and end: one of `packets_another` is not copied. */
static inline int packets_emit_frame(const struct packets_frame *frame)
{
	return packets_emit(frame->bytes, frame->length, frame->end);
}

/* Eight bytes of a frame as a number, the first one lowest. Nothing is checked here: the window is the wall. */
static inline uint64_t packets_eight(const struct packets_frame *frame, uint32_t at)
{
	uint64_t value;

	__builtin_memcpy(&value, frame->bytes + at, sizeof value);
	return value;
}

static inline void packets_put_eight(struct packets_frame *frame, uint32_t at, uint64_t value)
{
	__builtin_memcpy(frame->bytes + at, &value, sizeof value);
}

static inline char *packets_number(char *end, unsigned long number)
{
	do
		*--end = (char)('0' + number % 10);
	while ((number /= 10) != 0);
	return end;
}

/* Tells your user three numbers, as a line of text. */
static inline int packets_tell(unsigned long first, unsigned long second, unsigned long third)
{
	char line[64], *end = line + sizeof line, *at = end;

	*--at = '\n';
	at = packets_number(at, third);
	*--at = ' ';
	at = packets_number(at, second);
	*--at = ' ';
	at = packets_number(at, first);
	return packets_report(at, (uint32_t)(end - at));
}

#endif
