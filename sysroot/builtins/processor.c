/* What __builtin_cpu_supports and target_clones ask. A domain has no cpuid, so the answer is x86-64's baseline and no
 * more, which is never wrong: a program then takes the path that runs everywhere. The layout is gcc's. */
struct processor {
	unsigned vendor, type, subtype, features[1];
};

enum { CMOV = 0, SSE = 3, SSE2 = 4 };

__attribute__((visibility("hidden"))) struct processor __cpu_model = { .features = { 1 << CMOV | 1 << SSE | 1 << SSE2 } };
__attribute__((visibility("hidden"))) unsigned __cpu_features2[1];

int __cpu_indicator_init(void)
{
	return 0;
}
