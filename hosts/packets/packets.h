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

/* Sends one more frame, behind this one: 0, or -1 if there are too many, it is too long, or you are a monitor. */
MULLION_IMPORT(int, packets_emit, (const void *frame, uint32_t length, uint32_t end));
/* Tells your user something: 0, or -1 if nobody has read for too long. At most 4096 bytes. */
MULLION_IMPORT(int, packets_report, (const void *text, uint32_t length));

/* Yours. */
int packets_next(struct packets_frame *frame);

static struct packets_frame packets_room;
MULLION_EXPORT(struct packets_frame *, packets_place, (void)) { return &packets_room; }
MULLION_EXPORT(int, packets_step, (void)) { return packets_next(&packets_room); }

#endif
