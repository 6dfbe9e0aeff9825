/* The environment of elastic modules of `mullion packets`: the agreement with the forwarder, as packets.h has it, and
 * what modules may call. It is trusted, and stands in front of each module, in one translation unit. */
#include <stdint.h>

#define PACKETS_ROOM 16384

struct packets_frame {
	uint32_t length;
	uint32_t original;
	uint32_t packet;
	uint32_t payload;
	uint32_t end;
	uint32_t port;
	uint64_t nanoseconds;
	unsigned char bytes[PACKETS_ROOM];
};

#define PACKETS_NONE 4294967295u
#define PACKETS_PASS 0
#define PACKETS_CHANGED 1
#define PACKETS_DROP 2

int packets_next(struct packets_frame *frame);

/* The forwarder's: a place and a name for each, as MULLION_IMPORT of mullion/ext.h makes them. Within a function, which
 * nobody calls: the judge's parser reads assembly nowhere else. */
int packets_report(const void *text, uint32_t length);

#define IMPORT(name)                                                                                                  \
	__asm__(".pushsection .mullion.gates,\"axG\",@nobits," #name ",comdat\n\t.globl " #name "\n\t.type " #name              \
		", @function\n" #name ":\n\t.skip 32\n\t.popsection\n\t.pushsection .mullion.imports,\"aG\",@progbits," #name \
		",comdat\n661:\n\t.asciz \"" #name "\"\n\t.skip 661b + 64 - .\n\t.popsection\n")

__attribute__((used)) static void packets_imports(void)
{
	IMPORT(packets_report);
}

#define PACKETS_FORM 4
#define PACKETS_BATCH 32
#define PACKETS_ADDED 128
#define PACKETS_ADDED_EACH 16

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
} *packets_room;
static uint32_t packets_at, packets_each;

int packets_place(uint32_t form)
{
	return form == PACKETS_FORM;
}

void packets_steps(void *room, uint32_t count)
{
	packets_room = room;
	for (packets_at = 0; packets_at < count && packets_at < PACKETS_BATCH; packets_at++) {
		packets_each = 0;
		packets_room->answers[packets_at] = packets_next(&packets_room->of[packets_at].frame);
	}
}

static inline struct packets_frame *packets_another(void)
{
	if (packets_room->added < PACKETS_ADDED && packets_each < PACKETS_ADDED_EACH)
		return &packets_room->more[packets_room->added].frame;
	packets_room->refused++;
	return 0;
}

/* Takes a structure, and no pointer and length: a length could be any. */
static inline int packets_emit_frame(const struct packets_frame *frame)
{
	struct packets_frame *to = frame->length <= PACKETS_ROOM ? packets_another() : 0;

	if (!to)
		return -1;
	to->length = frame->length;
	to->end = frame->end;
	if (frame != to)
		__builtin_memcpy(to->bytes, frame->bytes, frame->length);
	packets_room->behind[packets_room->added++] = packets_at;
	packets_each++;
	return 0;
}

/* Eight bytes of a frame as a number, the first one lowest. Beyond its room there are zeros, and nothing is put. */
static inline uint64_t packets_eight(const struct packets_frame *frame, uint32_t at)
{
	uint64_t value = 0;

	if (at <= PACKETS_ROOM - sizeof value)
		__builtin_memcpy(&value, frame->bytes + at, sizeof value);
	return value;
}

static inline void packets_put_eight(struct packets_frame *frame, uint32_t at, uint64_t value)
{
	if (at <= PACKETS_ROOM - sizeof value)
		__builtin_memcpy(frame->bytes + at, &value, sizeof value);
}

static char *packets_number(char *end, unsigned long number)
{
	do
		*--end = (char)('0' + number % 10);
	while ((number /= 10) != 0);
	return end;
}

int packets_tell(unsigned long first, unsigned long second, unsigned long third)
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
