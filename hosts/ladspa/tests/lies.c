#include <ladspa.h>
/* A library whose descriptor lies: the host would follow it. */
static LADSPA_Descriptor lie = { 1, "lie", 0, "lie", "", "", WHAT_COUNT, (void *)WHAT_PORTS, 0, 0, 0, (void *)WHAT_CODE, (void *)WHAT_CODE, 0, (void *)WHAT_CODE };
const LADSPA_Descriptor *ladspa_descriptor(unsigned long i) { return i ? 0 : &lie; }
