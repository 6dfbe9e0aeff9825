/* An environment that lends: flows of the host's, seen for a call, and kept as handles that the host can revoke.
 *
 * A keeper defines on_flow, which gets a flow for the length of the call, and on_tick. It cannot keep the pointer. If
 * its type shows it flow_ref, it can keep that: a handle, which gives the flow in a later call, or a null pointer if
 * the host has revoked it. The host calls lend, revoke and tick. */

/* The members that a keeper sees. */
struct flow {
	unsigned id;
	unsigned bytes;
};

/* A handle. A variable that was never written is one that gives nothing. */
typedef struct {
	unsigned slot;
	unsigned life;
} flow_ref;

void on_flow(struct flow *flow);
unsigned on_tick(void);

/* The host's, which may revoke here, in the middle of a call. A place and a name, as MULLION_IMPORT of mullion/ext.h
 * makes them, within a function that nobody calls: the judge's parser reads assembly nowhere else. */
void host_asked(void);

__attribute__((used)) static void imports(void)
{
	__asm__(".pushsection .mullion.gates,\"axG\",@nobits,host_asked,comdat\n\t.globl host_asked\n"
		"\t.type host_asked, @function\nhost_asked:\n\t.skip 32\n\t.popsection\n"
		"\t.pushsection .mullion.imports,\"aG\",@progbits,host_asked,comdat\n661:\n\t.asciz \"host_asked\"\n"
		"\t.skip 661b + 64 - .\n\t.popsection\n");
}

enum { SLOTS = 4 };

/* The judge counts the loops of modules. These are the environment's own, for types that bound instructions. */
#define ROUNDS(name, rounds) __asm__ volatile("# mullion-loop " name " " rounds)

static struct flow flows[SLOTS];
static unsigned lives[SLOTS]; /* odd: it is lent */
static unsigned char late[SLOTS];
static unsigned running;

flow_ref flow_kept(const struct flow *flow)
{
	flow_ref ref = {0, 0};
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		ROUNDS("kept", "4");
		if (flow == &flows[slot]) {
			ref.slot = slot;
			ref.life = lives[slot];
		}
	}
	return ref;
}

struct flow *flow_of(flow_ref ref)
{
	if (ref.slot < SLOTS && ref.life % 2 == 1 && lives[ref.slot] == ref.life)
		return &flows[ref.slot];
	return 0;
}

/* Around each entry point. What was revoked in a call may be in its hands until it ends. */
static void begin(void) { running++; }
static void end(void)
{
	if (--running == 0)
		for (unsigned slot = 0; slot < SLOTS; slot++) {
			ROUNDS("end", "4");
			late[slot] = 0;
		}
}

int lend(unsigned id, unsigned bytes)
{
	for (unsigned slot = 0; slot < SLOTS; slot++)
		if (lives[slot] % 2 == 0 && !late[slot]) {
			lives[slot]++;
			flows[slot] = (struct flow){id, bytes};
			on_flow(&flows[slot]);
			return (int)slot;
		}
	return -1;
}

/* From here on each handle of it gives nothing. */
void revoke(unsigned slot)
{
	if (slot < SLOTS && lives[slot] % 2 == 1) {
		lives[slot]++;
		late[slot] = running > 0;
	}
}

unsigned tick(void) { return on_tick(); }
