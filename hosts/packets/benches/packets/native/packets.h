/* For peers of the benchmark: the same agreement as packets.h without a wall. What a module sends stays where it is.
 * The Rust side is native.rs. Compiled by gcc, and by clang for WebAssembly. */
#include <stdint.h>

#define PACKETS_ROOM 16384
#define PACKETS_BATCH 32
#define PACKETS_ADDED 128

struct packets_frame {
	uint32_t length, original, packet, payload, end, port;
	uint64_t nanoseconds;
	unsigned char bytes[PACKETS_ROOM];
};

#define PACKETS_NONE UINT32_MAX
#define PACKETS_PASS 0
#define PACKETS_CHANGED 1
#define PACKETS_DROP 2

int packets_next(struct packets_frame *frame);

struct packets_place {
	struct packets_frame frame;
	unsigned char apart[1504];
};

static struct {
	int32_t answers[PACKETS_BATCH];
	uint32_t added, refused;
	uint32_t behind[PACKETS_ADDED];
	uint32_t apart[14];
	struct packets_place of[PACKETS_BATCH], more[PACKETS_ADDED];
} packets_room __attribute__((aligned(4096))); /* as the forwarder's rooms: how frames lie to each other in the cache counts */
static unsigned long packets_told;

#define OFFERED __attribute__((used, visibility("default")))

OFFERED void *packets_place(void) { return &packets_room; }

OFFERED void packets_steps(uint32_t count)
{
	packets_room.added = 0;
	for (uint32_t at = 0; at < count && at < PACKETS_BATCH; at++)
		packets_room.answers[at] = packets_next(&packets_room.of[at].frame);
}

/* What is sent lies there until all frames of a batch go on. */
static inline struct packets_frame *packets_another(void)
{
	return packets_room.added < PACKETS_ADDED ? &packets_room.more[packets_room.added].frame : 0;
}

/* Only what `packets_another` gave. */
static inline int packets_emit_frame(const struct packets_frame *frame)
{
	(void)frame;
	packets_room.added++;
	return 0;
}

/* Without a check: as one writes it who answers for it. */
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

static inline int packets_tell(unsigned long first, unsigned long second, unsigned long third)
{
	packets_told += first ^ second ^ third;
	return 0;
}
