#include <ladspa.h>
#include <stdlib.h>
#include <string.h>
/* Plug-ins that do what none may. Each has an input, an output and a control; its run is one attack. tests/audio has the
   answers that they must get. */
typedef struct { float *port[4]; float *kept; } Instance;
static Instance *latest;
static volatile int zero;

static LADSPA_Handle instantiate(const LADSPA_Descriptor *d, unsigned long rate)
{
  return latest = calloc(1, sizeof(Instance));
}
static void connect(LADSPA_Handle h, unsigned long port, float *at) { ((Instance *)h)->port[port & 3] = at; }
static void cleanup(LADSPA_Handle h) { free(h); }

#define RUN(name) static void run_##name(LADSPA_Handle h, unsigned long n)
#define IN (((Instance *)h)->port[0])
#define OUT (((Instance *)h)->port[1])
#define CONTROL (((Instance *)h)->port[2])
static int deep(int n) { volatile char b[64]; b[0] = n; return deep(n + 1) + b[0]; }

RUN(beyond) { OUT[n] = 1; }
RUN(before) { OUT[-1] = 1; }
RUN(input) { IN[0] = 1; }
RUN(reads) { OUT[0] = IN[n]; }
RUN(later) { if (((Instance *)h)->kept) ((Instance *)h)->kept[0] = 1; ((Instance *)h)->kept = OUT; }
RUN(address) { *(float *)(unsigned long)(CONTROL[0] * 4096) = 1; }
RUN(null) { *(volatile int *)0 = 1; }
RUN(handle) { ((float *)h)[-(1 << 24)] = 1; }
RUN(loop) { for (volatile int i = 0;; i++) ; }
RUN(recurse) { OUT[0] = deep(0); }
RUN(again) { void *volatile p = malloc(100); free(p); free(p); }
RUN(frees) { free(OUT); }
RUN(runs) { system("exit 7"); }
RUN(jump) { ((void (*)(void))((char *)malloc + 1))(); }
RUN(data) { ((void (*)(void))OUT)(); }
RUN(divide) { OUT[0] = 100 / zero; }
RUN(eats) { int k = 0; void *volatile p; while ((p = malloc(1 << 20))) k++; OUT[0] = k; }
RUN(good) { for (unsigned long i = 0; i < n; i++) OUT[i] = 2 * IN[i]; }

static const LADSPA_PortDescriptor ports[] = { LADSPA_PORT_INPUT | LADSPA_PORT_AUDIO,
  LADSPA_PORT_OUTPUT | LADSPA_PORT_AUDIO, LADSPA_PORT_INPUT | LADSPA_PORT_CONTROL };
static const char *const names[] = { "in", "out", "control" };
static const LADSPA_PortRangeHint hints[3];
#define PLUGIN(id, name) { id, #name, 0, #name, "", "", 3, ports, names, hints, 0, instantiate, connect, 0, run_##name, 0, 0, 0, cleanup }
static const LADSPA_Descriptor all[] = {
  PLUGIN(1, beyond), PLUGIN(2, before), PLUGIN(3, input), PLUGIN(4, reads), PLUGIN(5, later), PLUGIN(6, address),
  PLUGIN(7, null), PLUGIN(8, handle), PLUGIN(9, loop), PLUGIN(10, recurse), PLUGIN(11, again), PLUGIN(12, frees),
  PLUGIN(13, runs), PLUGIN(14, jump), PLUGIN(15, data), PLUGIN(16, divide), PLUGIN(17, eats), PLUGIN(18, good),
};
const LADSPA_Descriptor *ladspa_descriptor(unsigned long i)
{
  return i < sizeof all / sizeof *all ? all + i : 0;
}
