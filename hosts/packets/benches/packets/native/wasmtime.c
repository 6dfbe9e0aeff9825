/* The peer WebAssembly: wasmtime through its C interface, from the shared library that its Python package carries.
 * The package has no headers, so what is used is declared here, as wasmtime.h has it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct { uint64_t store; void *private; } func_t;
typedef struct { uint64_t store; size_t private; } instance_t;
typedef struct { struct { uint64_t store; uint32_t private; } first; uint32_t second; } memory_t;
typedef struct { uint8_t kind; union { func_t func; memory_t memory; uint64_t room[4]; } of; } extern_t;
typedef union { int32_t i32; int64_t i64; _Alignas(8) uint8_t v128[16]; } raw_t;

#define FUNCTIONS(X)                                                                                                  \
	X(void *, wasm_engine_new, (void))                                                                            \
	X(void *, wasmtime_module_new, (void *engine, const void *binary, size_t length, void **module))              \
	X(void *, wasmtime_store_new, (void *engine, void *data, void (*finalizer)(void *)))                          \
	X(void *, wasmtime_store_context, (void *store))                                                              \
	X(void *, wasmtime_instance_new, (void *context, const void *module, const extern_t *imports, size_t count,   \
					  instance_t *instance, void **trap))                                         \
	X(bool, wasmtime_instance_export_get,                                                                         \
	  (void *context, const instance_t *instance, const char *name, size_t length, extern_t *item))               \
	X(void *, wasmtime_func_call_unchecked, (void *context, const func_t *func, raw_t *values, size_t count, void **trap)) \
	X(uint8_t *, wasmtime_memory_data, (void *context, const memory_t *memory))

#define DECLARE(type, name, parameters) static type(*name) parameters;
FUNCTIONS(DECLARE)

static void *context;
static func_t steps;

/* Where the room lies, or 0. */
void *peer_open(const char *library, const void *binary, size_t length)
{
	void *found = dlopen(library, RTLD_NOW), *module = 0, *trap = 0, *engine;
	instance_t instance;
	extern_t item;
	raw_t value = { 0 };

	if (!found)
		return 0;
#define FIND(type, name, parameters)                                                                                  \
	if (!(*(void **)&name = dlsym(found, #name)))                                                                 \
		return 0;
	FUNCTIONS(FIND)
	engine = wasm_engine_new();
	if (!engine || wasmtime_module_new(engine, binary, length, &module))
		return 0;
	context = wasmtime_store_context(wasmtime_store_new(engine, 0, 0));
	if (wasmtime_instance_new(context, module, 0, 0, &instance, &trap) || trap)
		return 0;
	if (!wasmtime_instance_export_get(context, &instance, "packets_place", 13, &item) ||
	    wasmtime_func_call_unchecked(context, &item.of.func, &value, 1, &trap) || trap)
		return 0;
	uint32_t place = (uint32_t)value.i32;
	if (!wasmtime_instance_export_get(context, &instance, "packets_steps", 13, &item))
		return 0;
	steps = item.of.func;
	if (!wasmtime_instance_export_get(context, &instance, "memory", 6, &item))
		return 0;
	return wasmtime_memory_data(context, &item.of.memory) + place;
}

void peer_steps(uint32_t count)
{
	raw_t value = { .i32 = (int32_t)count };
	void *trap = 0;

	wasmtime_func_call_unchecked(context, &steps, &value, 1, &trap);
}
