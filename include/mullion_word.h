/* mullion_word.h: modules behind the word wall, for hosts in C and C++.
 *
 *     #include <mullion_word.h>
 *
 *     mullion_word_module module;
 *     mullion_word_policy policy;
 *     mullion_word_domain domain;
 *     void *address;
 *     mullion_word_effect reads[] = {
 *         mullion_word_in(0, mullion_word_arguments(1, 2))
 *     };
 *     mullion_word_row sum = { reads, 1, 0, 0, 0 };
 *
 *     if (mullion_word_module_open("sum.so", &module)
 *         || mullion_word_policy_new(&policy)
 *         || mullion_word_policy_export(policy, "sum", &sum)
 *         || mullion_word_load(module, policy, &domain)
 *         || mullion_word_function(domain, "sum", &address))
 *         fprintf(stderr, "%s\n", mullion_word_error_message());
 *     long (*function)(const int *, size_t, size_t) = (long (*)(const int *, size_t, size_t))address;
 *
 * A module is made by `mullion cc --wall=word`. Its functions are called by plain pointers, on any thread.
 * docs/word.md says what the wall does, and what it costs.
 *
 * RULES
 *
 * Every function that can fail returns a mullion_word_status: MULLION_WORD_OK, which is 0, or why it failed;
 * mullion_word_error_message() then has the details, for the calling thread. What a function returns through a pointer
 * is written only if it succeeded. No function keeps a pointer that it was given, except `user` pointers, functions
 * of the host's, and addresses that are offered or granted.
 *
 * Modules, policies, domains and grants are handles: numbers in a structure, which are checked at each use. A handle
 * that was freed, was never made, or is of something else, gives MULLION_WORD_BAD_HANDLE. All may be used from every
 * thread. Policies are copied when a domain is loaded; modules stay as long as a domain needs them.
 *
 * A pointer that is not null is believed: it must point to what the description says.
 */
#ifndef MULLION_WORD_H
#define MULLION_WORD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Results ------------------------------------------------------------ */

typedef int32_t mullion_word_status;

#define MULLION_WORD_OK 0
/* The handle was freed, or is none, or of something else. */
#define MULLION_WORD_BAD_HANDLE 1
/* A null pointer, a text that is none, or a number that the description does not allow. */
#define MULLION_WORD_BAD_ARGUMENT 2
/* The file cannot be read. */
#define MULLION_WORD_CANNOT_OPEN 3
/* The verifier does not accept the module. */
#define MULLION_WORD_REJECTED 4
/* This process cannot have the wall: no address space for the table, or no membarrier. */
#define MULLION_WORD_NO_WALL 5
/* A symbol is missing, the policy speaks of what the module does not export, or there is no memory. */
#define MULLION_WORD_CANNOT_LOAD 6
/* The module has no export of that name. */
#define MULLION_WORD_NO_EXPORT 7
/* The supervisor refuses it: memory of nobody, or of the table itself. */
#define MULLION_WORD_REFUSED 8
/* Calls in the domain have not returned. */
#define MULLION_WORD_IN_USE 9
/* There is no report, no calling module, or no trace. */
#define MULLION_WORD_NOTHING 10
/* The library has failed. */
#define MULLION_WORD_INTERNAL 11

/* Details of the latest failure on this thread, until the next one. */
const char *mullion_word_error_message(void);

/* ---- Modules ------------------------------------------------------------ */

typedef struct { uint64_t number; } mullion_word_module;

/* Reads a file, and verifies it. Its name in reports is the file's. */
mullion_word_status mullion_word_module_open(const char *path, mullion_word_module *opened);

/* The same of bytes in memory, which are copied. */
mullion_word_status mullion_word_module_from_bytes(const char *name, const uint8_t *bytes, size_t length,
                                                   mullion_word_module *opened);

mullion_word_status mullion_word_module_free(mullion_word_module module);

/* ---- Policies ----------------------------------------------------------- */

/* How many bytes an argument points to. Arguments count from 0; the six that are in integer registers count. */
typedef struct {
    uint8_t kind;
    uint8_t first;
    uint8_t second;
    uint64_t bytes;
} mullion_word_size;

static inline mullion_word_size mullion_word_bytes(uint64_t bytes)
{
    mullion_word_size size = { 0, 0, 0, 0 };
    size.bytes = bytes;
    return size;
}

/* As many as this argument says. */
static inline mullion_word_size mullion_word_argument(uint8_t argument)
{
    mullion_word_size size = { 1, 0, 0, 0 };
    size.first = argument;
    return size;
}

/* As many as two arguments' product. */
static inline mullion_word_size mullion_word_arguments(uint8_t first, uint8_t second)
{
    mullion_word_size size = { 2, 0, 0, 0 };
    size.first = first;
    size.second = second;
    return size;
}

/* Up to the first zero, that included: only for what a module passes to the host to be read. */
static inline mullion_word_size mullion_word_text(void)
{
    mullion_word_size size = { 3, 0, 0, 0 };
    return size;
}

/* Integers of fewer than 64 bits: what a register has beyond them is not looked at. */
#define MULLION_WORD_U8 0
#define MULLION_WORD_I8 1
#define MULLION_WORD_U16 2
#define MULLION_WORD_I16 3
#define MULLION_WORD_U32 4
#define MULLION_WORD_I32 5
#define MULLION_WORD_U64 6
#define MULLION_WORD_I64 7

/* As many as this argument says, which has this type: MULLION_WORD_I32 for an `int`. */
static inline mullion_word_size mullion_word_typed(uint8_t argument, uint8_t type)
{
    mullion_word_size size = { 4, 0, 0, 0 };
    size.first = argument;
    size.second = type;
    return size;
}

/* As many as the field says that lies so far behind where this argument points: offsetof(struct s, length). */
static inline mullion_word_size mullion_word_field(uint8_t argument, size_t offset, uint8_t type)
{
    mullion_word_size size = { 5, 0, 0, 0 };
    size.first = argument;
    size.second = type;
    size.bytes = offset;
    return size;
}

/* Pointers up to the first null pointer, that included: only to be read, as the next one. */
static inline mullion_word_size mullion_word_list(void)
{
    mullion_word_size size = { 6, 0, 0, 0 };
    return size;
}

/* The same, and the text behind each. */
static inline mullion_word_size mullion_word_texts(void)
{
    mullion_word_size size = { 7, 0, 0, 0 };
    return size;
}

/* An array of struct iovec, which is read, and what each of them describes. The argument has how many there are. */
static inline mullion_word_size mullion_word_vectors(uint8_t argument, uint8_t type)
{
    mullion_word_size size = { 8, 0, 0, 0 };
    size.first = argument;
    size.second = type;
    return size;
}

/* What a call does with what an argument points to. Where the host calls a module, the module gets the right for the
 * length of the call. Where a module calls the host, it must have the right itself. */
typedef struct {
    uint8_t kind;
    uint8_t argument;
    mullion_word_size size;
} mullion_word_effect;

static inline mullion_word_effect mullion_word_effect_of(uint8_t kind, uint8_t argument, mullion_word_size size)
{
    mullion_word_effect effect;
    effect.kind = kind;
    effect.argument = argument;
    effect.size = size;
    return effect;
}

/* It is read. */
static inline mullion_word_effect mullion_word_in(uint8_t argument, mullion_word_size size)
{
    return mullion_word_effect_of(1, argument, size);
}

/* It is written. */
static inline mullion_word_effect mullion_word_out(uint8_t argument, mullion_word_size size)
{
    return mullion_word_effect_of(2, argument, size);
}

/* So many bytes are written. Words of them that point into the text that is argument `text` do so still behind the call:
 * a function of the host gets a copy of the text, as `strtol` does, which writes where the number ends. */
static inline mullion_word_effect mullion_word_into(uint8_t argument, uint64_t bytes, uint8_t text)
{
    mullion_word_size size = { 0, 0, 0, 0 };
    size.first = text;
    size.bytes = bytes;
    return mullion_word_effect_of(12, argument, size);
}

/* Both. */
static inline mullion_word_effect mullion_word_inout(uint8_t argument, mullion_word_size size)
{
    return mullion_word_effect_of(3, argument, size);
}

/* It is read. A function of the host that a module calls gets a copy, which no thread of the module can change. */
static inline mullion_word_effect mullion_word_copyin(uint8_t argument, mullion_word_size size)
{
    return mullion_word_effect_of(10, argument, size);
}

/* Read and written. A function of the host gets a copy, which is written back behind the call. */
static inline mullion_word_effect mullion_word_copyinout(uint8_t argument, mullion_word_size size)
{
    return mullion_word_effect_of(11, argument, size);
}

/* The result points to memory that is the module's from then on. Only for what a module calls, as those below. */
static inline mullion_word_effect mullion_word_gives(mullion_word_size size)
{
    return mullion_word_effect_of(4, 0, size);
}

/* The memory is the callee's from then on. For both directions. */
static inline mullion_word_effect mullion_word_takes(uint8_t argument, mullion_word_size size)
{
    return mullion_word_effect_of(5, argument, size);
}

/* The memory was given, and goes back, by its first address. */
static inline mullion_word_effect mullion_word_frees(uint8_t argument)
{
    return mullion_word_effect_of(6, argument, mullion_word_bytes(0));
}

/* It goes back, and the result is given, if it is not null. */
static inline mullion_word_effect mullion_word_moves(uint8_t argument, mullion_word_size size)
{
    return mullion_word_effect_of(7, argument, size);
}

/* It is a function that the module may call itself. */
static inline mullion_word_effect mullion_word_callback(uint8_t argument)
{
    return mullion_word_effect_of(8, argument, mullion_word_bytes(0));
}

/* The call is for the instance of the module that this argument names; null is for none. Only for exports. */
static inline mullion_word_effect mullion_word_for_instance(uint8_t argument)
{
    return mullion_word_effect_of(9, argument, mullion_word_bytes(0));
}

/* What is true of one function. */
typedef struct {
    const mullion_word_effect *effects;
    size_t count;
    /* Words of arguments that it gets on the stack, at most 16. */
    uint8_t stacked;
    /* What a call of an export returns if it was ended: one for integers and pointers, one for floating point. */
    int64_t error;
    double float_error;
    /* Of a function that gives, frees or moves blocks: which allocator it is of. A block goes back to its own. Null is the C
     * library's. */
    const char *allocator;
} mullion_word_row;

typedef struct { uint64_t number; } mullion_word_policy;

/* A policy that allows nothing. */
mullion_word_status mullion_word_policy_new(mullion_word_policy *made);

/* A policy as text (docs/word-policy.md). The functions of `allow` are found by the dynamic linker. */
mullion_word_status mullion_word_policy_parse(const char *text, mullion_word_policy *made);

mullion_word_status mullion_word_policy_free(mullion_word_policy policy);

/* The module may call the C library's malloc, calloc, aligned_alloc, realloc and free. */
mullion_word_status mullion_word_policy_allocators(mullion_word_policy policy);

/* The module may call this function of the host, which the dynamic linker finds. With a null `row`, the function is
 * trusted with all that the module passes. */
mullion_word_status mullion_word_policy_allow(mullion_word_policy policy, const char *name, const mullion_word_row *row);

/* The same of a function at this address. The host answers for it. */
mullion_word_status mullion_word_policy_offer(mullion_word_policy policy, const char *name, const void *address,
                                              const mullion_word_row *row);

/* What calls of an export mean. */
mullion_word_status mullion_word_policy_export(mullion_word_policy policy, const char *name,
                                               const mullion_word_row *row);

/* What ended calls of other exports return. */
mullion_word_status mullion_word_policy_error(mullion_word_policy policy, int64_t integer, double floating);

/* Limits; 0 is the default. */
typedef struct {
    /* Of one call, with all that it calls. No limit by default. */
    uint64_t nanoseconds;
    /* Bytes that allocators have given: 1 GiB by default. */
    uint64_t memory;
    /* Bytes of each data stack: 256 KiB by default, at most 6 MiB. */
    uint64_t stack;
    /* Bytes of the module's own code and data: 256 MiB by default. The table takes half as much memory. */
    uint64_t image;
} mullion_word_limits;

mullion_word_status mullion_word_policy_limits(mullion_word_policy policy, const mullion_word_limits *limits);

/* The module may read, or read and write, this variable of the host, which the dynamic linker finds. With 0 bytes it is as
 * large as the symbol table of its file says. */
mullion_word_status mullion_word_policy_data(mullion_word_policy policy, const char *name, uint64_t bytes, int write);

/* When the domain is unloaded, its memory stays mapped as it is: for hosts that keep pointers into unloaded modules. */
mullion_word_status mullion_word_policy_stays_mapped(mullion_word_policy policy);

/* ---- Domains ------------------------------------------------------------ */

typedef struct { uint64_t number; } mullion_word_domain;

/* Makes a domain of a module, and runs its constructors. The first one makes the table, and installs handlers of
 * SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP and of two real-time signals; they pass on what is not theirs. */
mullion_word_status mullion_word_load(mullion_word_module module, mullion_word_policy policy,
                                      mullion_word_domain *loaded);

/* A function, to be cast to its type. It stays callable for the life of the process: when the domain has ended, calls
 * return the error value. */
mullion_word_status mullion_word_function(mullion_word_domain domain, const char *name, void **found);

/* Where a symbol of the module is: data, too. */
mullion_word_status mullion_word_symbol(mullion_word_domain domain, const char *name, void **found);

/* Where the module's file begins, for debuggers: `add-symbol-file FILE -o BASE` in gdb. */
mullion_word_status mullion_word_base(mullion_word_domain domain, uintptr_t *base);

/* Whether these bytes lie in the module's own data: for hosts that read a structure of the module in place. The module may
 * change them at any time. Of a bad handle: 0. */
int mullion_word_has_data(mullion_word_domain domain, const void *address, size_t bytes);

/* Whether an address is that of a function of the module that may be called from outside. A host that calls by a pointer
 * from the module's data asks this first, with the pointer that it then calls. Of a bad handle: 0. */
int mullion_word_has_function(mullion_word_domain domain, const void *address);

/* For a function of the host: the module that has called it. MULLION_WORD_NOTHING if none has, on this thread, or one
 * that was not made by this interface. */
mullion_word_status mullion_word_caller(mullion_word_domain *caller);

/* Whether it takes no calls: after a fault, or at its end. Of a bad handle: 1. */
int mullion_word_is_ended(mullion_word_domain domain);

/* Fresh data, and what allocators gave goes back. It takes calls again. */
mullion_word_status mullion_word_restart(mullion_word_domain domain);

/* Ends it. Calls of its functions return their error values from then on. */
mullion_word_status mullion_word_unload(mullion_word_domain domain);

/* Lets `from` call a function of `to` by its address, without the host. */
mullion_word_status mullion_word_link(mullion_word_domain from, mullion_word_domain to, const char *name);

/* ---- Memory ------------------------------------------------------------- */

/* Rights have words: bytes are rounded outwards to multiples of four. The host bears what a domain does with memory
 * that it was granted. */

typedef struct { uint64_t number; } mullion_word_granted;
typedef struct { uint64_t number; } mullion_word_prepared;

/* Lets a domain read, or read and write, until mullion_word_revoke(). */
mullion_word_status mullion_word_grant(mullion_word_domain domain, const void *address, size_t bytes, int write);

/* Takes memory from all domains. When it returns, no access comes that was checked before, on any thread. */
mullion_word_status mullion_word_revoke(const void *address, size_t bytes);

/* Lets a domain have it until mullion_word_grant_end(). Such grants may overlap. */
mullion_word_status mullion_word_grant_for(mullion_word_domain domain, const void *address, size_t bytes, int write,
                                           mullion_word_granted *granted);

mullion_word_status mullion_word_grant_end(mullion_word_granted granted);

/* The same for memory that is granted again and again. It grants nothing yet. */
mullion_word_status mullion_word_prepare(mullion_word_domain domain, const void *address, size_t bytes, int write,
                                         mullion_word_prepared *prepared);

mullion_word_status mullion_word_prepared_grant(mullion_word_prepared prepared);

mullion_word_status mullion_word_prepared_revoke(mullion_word_prepared prepared);

/* What is granted by it goes. */
mullion_word_status mullion_word_prepared_free(mullion_word_prepared prepared);

typedef struct { uint64_t number; } mullion_word_lease;

/* Grants that end together, as a pool's blocks do. They may be to several domains, may overlap, and may be made in a
 * function of the host that a module calls. */
mullion_word_status mullion_word_lease_new(mullion_word_lease *lease);

mullion_word_status mullion_word_lease_grant(mullion_word_lease lease, mullion_word_domain domain, const void *address,
                                             size_t bytes, int write);

/* To the module that has called the function of the host that runs, or to the instance that it runs for; MULLION_WORD_NOTHING if none has. */
mullion_word_status mullion_word_lease_grant_caller(mullion_word_lease lease, const void *address, size_t bytes, int write);

/* Takes all of them back, and waits for threads once. The lease can be used again. */
mullion_word_status mullion_word_lease_clear(mullion_word_lease lease);

/* The same, and the lease is freed. */
mullion_word_status mullion_word_lease_end(mullion_word_lease lease);

/* ---- Instances ---------------------------------------------------------- */

/* One module, many requests: what is granted to an instance, calls for other instances cannot touch. All of them have what
 * the module has. */
typedef struct { uint64_t number; } mullion_word_instance;

/* The module has instances, also if no export names one by an argument. */
mullion_word_status mullion_word_policy_instances(mullion_word_policy policy);

/* An instance with a name, which is not null: the address of the request, say. */
mullion_word_status mullion_word_instance_new(mullion_word_domain domain, const void *name, mullion_word_instance *made);

/* Another name for it. */
mullion_word_status mullion_word_instance_also(mullion_word_instance instance, const void *name);

/* What is granted to the instance alone, until it ends; or until the lease ends. */
mullion_word_status mullion_word_instance_grant(mullion_word_instance instance, const void *address, size_t bytes,
                                                int write);

mullion_word_status mullion_word_lease_grant_instance(mullion_word_lease lease, mullion_word_instance instance,
                                                      const void *address, size_t bytes, int write);

/* Calls on this thread are for the instance until mullion_word_instance_leave(), if no argument names another one. */
mullion_word_status mullion_word_instance_enter(mullion_word_instance instance);

mullion_word_status mullion_word_instance_leave(mullion_word_instance instance);

/* What it was granted goes, and its blocks go back. MULLION_WORD_IN_USE while a call for it has not returned. */
mullion_word_status mullion_word_instance_end(mullion_word_instance instance);

/* ---- Faults ------------------------------------------------------------- */

#define MULLION_WORD_ACCESS 1        /* a check refused an access */
#define MULLION_WORD_NO_MAPPING 2    /* an access met no memory */
#define MULLION_WORD_LABEL 3         /* an indirect jump to what has no label */
#define MULLION_WORD_CALL 4          /* a call by address of what the module may neither enter nor call */
#define MULLION_WORD_POLICY 5        /* a call that a policy refuses */
#define MULLION_WORD_ABORT 6
#define MULLION_WORD_ILLEGAL 7       /* an instruction that a process may not run */
#define MULLION_WORD_ARITHMETIC 8
#define MULLION_WORD_TRAP 9
#define MULLION_WORD_DATA_STACK 10   /* the data stack is full */
#define MULLION_WORD_CONTROL_STACK 11 /* calls are nested too deeply */
#define MULLION_WORD_TIME 12
#define MULLION_WORD_NO_MEMORY 13    /* there is no memory for the thread's stacks */
#define MULLION_WORD_UNWIND 14       /* a longjmp to a call that has returned, or that is another one's */
#define MULLION_WORD_UNCAUGHT 15     /* an exception of C++ that nothing in the call catches: `object` is its text */

/* What ended a call. Texts are empty if there is nothing to say. */
typedef struct {
    int32_t kind;
    int32_t has_address;
    uint64_t instruction; /* in the module's file; 0 if it was not there */
    uint64_t address;     /* that was refused */
    const char *module;
    const char *exported; /* the function whose call was ended */
    const char *function; /* where it was, and how far in */
    const char *line;     /* FILE:LINE, if the module has debug information */
    const char *object;   /* what is at the address, and whose it is */
    const char *allow;    /* the line of policy that would allow it */
    const char *text;     /* all of that */
    const char *field;    /* what the address is to the code: a member of which type, by which variable; by debug information */
} mullion_word_report;

/* The oldest report of a domain that was not taken yet; MULLION_WORD_NOTHING if there is none. Its texts are valid until
 * this thread takes the next one. */
mullion_word_status mullion_word_take_report(mullion_word_domain domain, mullion_word_report *report);

/* Is called with each report, behind the call that has ended, before its caller goes on, on that thread. Its texts are
 * valid until it returns. The latest function that was set is called. */
typedef void mullion_word_fault_function(void *user, const mullion_word_report *report);

mullion_word_status mullion_word_on_fault(mullion_word_fault_function *function, void *user);

/* A thread's first call of a domain opens the signals by which calls end, and gives the thread an alternate signal stack.
 * A thread that has later blocked SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGTRAP, or switched that stack off, calls this before
 * its next call. Otherwise a fault of the domain may end the process. MULLION_WORD_NO_WALL: the system refuses memory. */
mullion_word_status mullion_word_prepare_thread(void);

/* ---- Learning ----------------------------------------------------------- */

#define MULLION_WORD_WANTS_ACCESS 1   /* an access: address, bytes, write */
#define MULLION_WORD_WANTS_CALL 2     /* a call of what is not offered: function, address */
#define MULLION_WORD_WANTS_ARGUMENT 3 /* memory passed to `function` without a right: argument, address, bytes, write */
#define MULLION_WORD_WANTS_FREE 4     /* a block that was not given goes back: function, address */
#define MULLION_WORD_WANTS_CALLBACK 5 /* a function is passed that the module may not call: argument, address */

/* What a learning domain has done without leave. */
typedef struct {
    int32_t kind;
    int32_t write;
    int32_t argument;
    int32_t has_arguments;
    uint64_t instruction;
    uint64_t address;
    uint64_t bytes;
    uint64_t arguments[6]; /* of the export's call, as it began */
    const char *exported;
    const char *function;
    const char *line;
    const char *object;
    const char *field; /* as in a report */
} mullion_word_note;

/* May run in the handler of a signal, on a stack of 256 KiB. It must not call into a domain: such a call is refused. */
typedef void mullion_word_note_function(void *user, const mullion_word_note *note);

/* Makes a domain that is NOT confined: what would be refused is told, and done. */
mullion_word_status mullion_word_learn(mullion_word_module module, mullion_word_policy policy,
                                       mullion_word_note_function *function, void *user,
                                       mullion_word_domain *loaded);

/* ---- Traces ------------------------------------------------------------- */

/* Libraries that were built without the feature `traces` (`--no-default-features`) have none of these functions. */

/* Begins the trace of this process for the hardware model, before the first module is loaded. It has each decision of the
 * supervisor: who was granted and lost what. With `steps` not 0 it also has the calls, instructions, loads and stores of
 * modules, on the first thread that enters one. Each instruction then takes some microseconds. MULLION_WORD_REFUSED: there
 * was a trace before. */
mullion_word_status mullion_word_trace_begin(int steps);

/* Ends it, and writes the file, for `mullion model run FILE`. `note` says how it came to be, for people. There is no second
 * trace in a process. MULLION_WORD_NOTHING: none was begun, or it has ended. MULLION_WORD_REFUSED: the run had more than
 * 16 million decisions. MULLION_WORD_CANNOT_OPEN: the system refuses the file. */
mullion_word_status mullion_word_trace_end(const char *file, const char *note);

#ifdef __cplusplus
}
#endif

#endif
