/* The peer WebAssembly: wasmtime through its C interface, from the shared library that its
 * Python package carries.
 *
 *     wasmtime LIBRARY.so BUDGET_NANOSECONDS INSTANCES
 *
 * Calls go through wasmtime_func_call_unchecked: parameters and results lie as raw values in
 * one array, and their types are not checked, as with a typed function of the Rust interface.
 * The package has no headers, so what is used is declared here, as wasmtime.h has it. Every
 * instance has a store of its own, and a memory of one page. */
#define _GNU_SOURCE
#include "answer.h"
#include <dlfcn.h>
#include <stdbool.h>

typedef struct { size_t size; char *data; } bytes_t;
typedef struct { size_t size; void **data; } types_t;
typedef struct { uint64_t store; void *private; } func_t;
typedef struct { uint64_t store; size_t private; } instance_t;
typedef struct { uint64_t store; uint32_t private[4]; } other_t;
typedef struct { uint8_t kind; union { func_t func; other_t other; } of; } extern_t;
typedef union { int64_t i64; _Alignas(8) uint8_t v128[16]; } raw_t;
typedef void *callback_t(void *env, void *caller, raw_t *values, size_t count);

#define FUNCTIONS(X)                                                                        \
    X(void *, wasm_config_new, (void))                                                      \
    X(void *, wasm_engine_new_with_config, (void *config))                                  \
    X(void *, wasm_functype_new, (types_t *parameters, types_t *results))                   \
    X(void, wasm_valtype_vec_new_empty, (types_t *types))                                   \
    X(void *, wasmtime_wat2wasm, (const char *text, size_t length, bytes_t *binary))        \
    X(void *, wasmtime_module_new, (void *engine, const void *binary, size_t length, void **module)) \
    X(void *, wasmtime_store_new, (void *engine, void *data, void (*finalizer)(void *)))    \
    X(void *, wasmtime_store_context, (void *store))                                        \
    X(void, wasmtime_store_delete, (void *store))                                           \
    X(void *, wasmtime_linker_new, (void *engine))                                          \
    X(void *, wasmtime_linker_define_func_unchecked, (void *linker, const char *module, size_t module_length, \
        const char *name, size_t name_length, void *type, callback_t *callback, void *env, void (*finalizer)(void *))) \
    X(void *, wasmtime_linker_instantiate_pre, (void *linker, void *module, void **pre))    \
    X(void *, wasmtime_instance_pre_instantiate, (void *pre, void *context, instance_t *instance, void **trap)) \
    X(bool, wasmtime_instance_export_get, (void *context, const instance_t *instance, const char *name, size_t length, extern_t *item)) \
    X(void *, wasmtime_func_call_unchecked, (void *context, const func_t *func, raw_t *values, size_t count, void **trap)) \
    X(void *, wasmtime_pooling_allocation_config_new, (void))                               \
    X(void, wasmtime_pooling_allocation_config_total_memories_set, (void *pool, uint32_t count)) \
    X(void, wasmtime_pooling_allocation_config_total_tables_set, (void *pool, uint32_t count)) \
    X(void, wasmtime_pooling_allocation_config_total_core_instances_set, (void *pool, uint32_t count)) \
    X(void, wasmtime_pooling_allocation_strategy_set, (void *config, void *pool))

#define DECLARE(type, name, parameters) static type(*name) parameters;
FUNCTIONS(DECLARE)

static void find(void *library, const char *name, void *place) {
    static char missing[128];
    void *found = dlsym(library, name);
    snprintf(missing, sizeof missing, "this wasmtime has no %s", name);
    if (!found)
        stop(missing);
    memcpy(place, &found, sizeof found);
}

static const char module_text[] =
    "(module"
    "  (import \"host\" \"nothing\" (func $host))"
    "  (memory (export \"memory\") 1)"
    "  (func (export \"nothing\"))"
    "  (func (export \"eight\") (param i64 i64 i64 i64 i64 i64 i64 i64) (result i64)"
    "    (i64.add (i64.add (i64.add (local.get 0) (local.get 1)) (i64.add (local.get 2) (local.get 3)))"
    "             (i64.add (i64.add (local.get 4) (local.get 5)) (i64.add (local.get 6) (local.get 7)))))"
    "  (func (export \"call_host\") (param $count i64)"
    "    (loop $again (call $host)"
    "      (br_if $again (i64.ne (i64.const 0) (local.tee $count (i64.sub (local.get $count) (i64.const 1))))))))";

/* An engine with the module in it, ready to be instantiated. */
struct ready { void *engine, *pre; };

struct loaded { void *store, *context; func_t nothing, eight, call_host; };

static struct ready plain, pooled;
static struct loaded *all;
static uint64_t instances;

static void must(const void *error, const char *what) {
    if (error)
        stop(what);
}

static void *nothing(void *env, void *caller, raw_t *values, size_t count) {
    (void)env, (void)caller, (void)values, (void)count;
    return NULL;
}

static struct ready make_ready(bool in_pool) {
    struct ready ready;
    void *config = wasm_config_new(), *module;
    if (in_pool) {
        uint32_t most = (uint32_t)instances + 16;
        void *pool = wasmtime_pooling_allocation_config_new();
        wasmtime_pooling_allocation_config_total_memories_set(pool, most);
        wasmtime_pooling_allocation_config_total_tables_set(pool, most);
        wasmtime_pooling_allocation_config_total_core_instances_set(pool, most);
        wasmtime_pooling_allocation_strategy_set(config, pool);
    }
    ready.engine = wasm_engine_new_with_config(config);
    if (!ready.engine)
        stop("wasmtime cannot make an engine (not enough address space?)");
    bytes_t binary;
    must(wasmtime_wat2wasm(module_text, sizeof module_text - 1, &binary), "wasmtime does not understand the module's text");
    must(wasmtime_module_new(ready.engine, binary.data, binary.size, &module), "wasmtime does not compile the module");
    types_t parameters, results;
    wasm_valtype_vec_new_empty(&parameters);
    wasm_valtype_vec_new_empty(&results);
    void *linker = wasmtime_linker_new(ready.engine), *type = wasm_functype_new(&parameters, &results);
    must(wasmtime_linker_define_func_unchecked(linker, "host", 4, "nothing", 7, type, nothing, NULL, NULL), "the host's function is refused");
    must(wasmtime_linker_instantiate_pre(linker, module, &ready.pre), "wasmtime does not link the module");
    return ready;
}

static void instantiate(const struct ready *ready, struct loaded *loaded, instance_t *instance) {
    void *trap = NULL;
    loaded->store = wasmtime_store_new(ready->engine, NULL, NULL);
    loaded->context = wasmtime_store_context(loaded->store);
    must(wasmtime_instance_pre_instantiate(ready->pre, loaded->context, instance, &trap), "wasmtime does not instantiate the module");
    must(trap, "instantiation trapped");
}

static void get(const struct loaded *loaded, const instance_t *instance, const char *name, func_t *func) {
    extern_t item;
    if (!wasmtime_instance_export_get(loaded->context, instance, name, strlen(name), &item))
        stop("an export is missing");
    *func = item.of.func;
}

static inline void call(const struct loaded *loaded, const func_t *func, raw_t *values, size_t count) {
    void *trap = NULL;
    if (wasmtime_func_call_unchecked(loaded->context, func, values, count, &trap) || trap)
        stop("a call failed");
}

static void call_one(uint64_t count) {
    raw_t none;
    while (count--)
        call(&all[0], &all[0].nothing, &none, 0);
}

static void call_two(uint64_t count) {
    raw_t none;
    for (uint64_t i = 0; i < count; i++)
        call(&all[i % 2], &all[i % 2].nothing, &none, 0);
}

static void call_in_turn(uint64_t count) {
    raw_t none;
    for (uint64_t i = 0; i < count; i++)
        call(&all[i % instances], &all[i % instances].nothing, &none, 0);
}

static void call_eight(uint64_t count) {
    raw_t values[8];
    while (count--) {
        for (int64_t i = 0; i < 8; i++)
            values[i].i64 = i;
        call(&all[0], &all[0].eight, values, 8);
        if (values[0].i64 != 28)
            stop("a call with eight arguments returned something else");
    }
}

/* A thousand calls of the host for each call of the instance. */
static void call_host(uint64_t count) {
    for (uint64_t i = 0; i < count; i += 1000) {
        raw_t thousand = {.i64 = 1000};
        call(&all[0], &all[0].call_host, &thousand, 1);
    }
}

static void make_and_drop(const struct ready *ready, uint64_t count) {
    while (count--) {
        struct loaded loaded;
        instance_t instance;
        instantiate(ready, &loaded, &instance);
        wasmtime_store_delete(loaded.store);
    }
}

static void new_pooled(uint64_t count) { make_and_drop(&pooled, count); }
static void new_mapped(uint64_t count) { make_and_drop(&plain, count); }

int main(int argc, char **argv) {
    if (argc != 4)
        stop("usage: wasmtime LIBRARY.so BUDGET INSTANCES");
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        stop("wasmtime's shared library cannot be opened");
#define FIND(type, name, parameters) find(library, #name, &name);
    FUNCTIONS(FIND)
    instances = strtoull(argv[3], NULL, 10);
    uint64_t made = instances < 2 ? 2 : instances;
    all = calloc(made, sizeof *all);
    if (instances == 0 || !all)
        stop("no memory");
    plain = make_ready(false);
    pooled = make_ready(true);
    for (uint64_t i = 0; i < made; i++) {
        instance_t instance;
        instantiate(&pooled, &all[i], &instance);
        get(&all[i], &instance, "nothing", &all[i].nothing);
        get(&all[i], &instance, "eight", &all[i].eight);
        get(&all[i], &instance, "call_host", &all[i].call_host);
    }
    struct row rows[] = {
        {.name = "call", .run = call_one},
        {.name = "call in turn", .run = call_in_turn, .unit = instances},
        {.name = "two", .run = call_two, .unit = 2},
        {.name = "eight", .run = call_eight},
        {.name = "host", .run = call_host, .unit = 1000},
        {.name = "new-pooled", .run = new_pooled},
        {.name = "new-mapped", .run = new_mapped},
    };
    return answer(rows, sizeof rows / sizeof *rows, strtoull(argv[2], NULL, 10));
}
