/* mullion.h: load native extensions behind a wall, and call them, from C.
 *
 *     #include <mullion.h>
 *
 *     mullion_image image;
 *     mullion_domain domain;
 *     mullion_function add;
 *     mullion_value sum = MULLION_INTEGER_RESULT;
 *     mullion_value numbers[] = { mullion_integer(2), mullion_integer(3) };
 *
 *     if (mullion_image_open("add.mx", &image)
 *         || mullion_domain_load(image, NULL, MULLION_NO_IMPORTS, NULL, &domain)
 *         || mullion_function_find(domain, "add", &add)
 *         || mullion_call(add, numbers, 2, &sum))
 *         fprintf(stderr, "%s\n", mullion_error_message());
 *
 *     cc host.c $(pkg-config --cflags --libs mullion)
 *
 * RULES
 *
 * Every function that can fail returns a mullion_status: MULLION_OK, which is
 * 0, or why it failed; mullion_error_message() then has the details, for the
 * calling thread. What a function returns through a pointer is written only if
 * it succeeded, unless it says otherwise. No function keeps a pointer that it
 * was given, except `user` pointers and functions of the host's.
 *
 * Images, import lists, domains and functions are handles: numbers in a
 * structure, which are checked at each use. A handle that was freed, was never
 * made, or is of something else, gives MULLION_BAD_HANDLE, and no more. All
 * may be used from every thread.
 *
 * What comes from a domain is not trusted. An address that a domain states is
 * a mullion_pointer, which C cannot dereference: mullion_read(), mullion_write()
 * and mullion_read_string() check that it lies in the domain, and copy. Between
 * two calls the domain's other threads may have changed what is there: what
 * was copied is what to look at.
 *
 * Given a null pointer where the description does not allow it, a function
 * returns MULLION_BAD_ARGUMENT. A pointer that is not null is believed: it must
 * point to what the description says. That is all that a host can do wrong
 * here without being told.
 */
#ifndef MULLION_H
#define MULLION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Results ------------------------------------------------------------ */

typedef int32_t mullion_status;

#define MULLION_OK 0
/* The handle was freed, or is none, or of something else. */
#define MULLION_BAD_HANDLE 1
/* A null pointer, a length, a kind or a size that the description does not allow. */
#define MULLION_BAD_ARGUMENT 2
/* The file cannot be read, or is too large. */
#define MULLION_CANNOT_OPEN 3
/* The verifier does not accept the image. */
#define MULLION_REJECTED 4
/* The policy does not let the image be loaded. */
#define MULLION_NOT_PERMITTED 5
/* The image is a program, not an extension. */
#define MULLION_NOT_AN_EXTENSION 6
/* The image asks for functions that are not in the import list. */
#define MULLION_UNKNOWN_IMPORTS 7
/* The image has no export of that name. */
#define MULLION_NO_EXPORT 8
/* The domain faulted, or its time was up: see mullion_last_fault(). It takes no
 * calls until mullion_domain_restart(). */
#define MULLION_FAULT 9
/* The domain ended by itself, as exit() does. It takes no calls until it is restarted. */
#define MULLION_EXITED 10
/* A host function ended the call by returning something else than MULLION_OK. */
#define MULLION_REFUSED 11
/* The domain has faulted or exited earlier, and was not restarted. */
#define MULLION_ENDED 12
/* The domain cannot be restarted or unloaded while calls are in it, nor used before it is
 * loaded. */
#define MULLION_IN_USE 13
/* The domain was unloaded. */
#define MULLION_UNLOADED 14
/* Calls are nested as deep as the limits allow. */
#define MULLION_DEPTH 15
/* The address is no function of the domain. */
#define MULLION_NOT_A_FUNCTION 16
/* The memory is not the domain's, or not to be used so. */
#define MULLION_BAD_ADDRESS 17
/* The string has no end within what was allowed. */
#define MULLION_LONG_STRING 18
/* The domain's memory limit, or the system's memory. */
#define MULLION_NO_MEMORY 19
/* The system or the processor could not do it. */
#define MULLION_SYSTEM 20
/* A defect of the library: please report it. */
#define MULLION_INTERNAL 21
/* Another domain, which this one called by a link, did not return; if it faulted,
 * mullion_last_fault() names it. */
#define MULLION_CALLEE 22
/* The image has no import of that name. */
#define MULLION_NO_IMPORT 23
/* The import is linked to another domain's function already. */
#define MULLION_LINKED 24
/* The policy does not allow the link, or that the domain has the pages. */
#define MULLION_NOT_ALLOWED 25
/* Not whole pages of the shared memory, or the domain has something else there. */
#define MULLION_NOT_SHARED 26
/* The domain has used its time for all calls. */
#define MULLION_TIME_SPENT 27
/* The domain would hand out more bytes than it may. */
#define MULLION_OUTPUT_LIMIT 28
/* A policy or key cannot be read, or is none. */
#define MULLION_CREDENTIALS 29
/* The export has another type, by the image's debug information. */
#define MULLION_WRONG_TYPE 30
/* The file cannot be written. */
#define MULLION_CANNOT_WRITE 31
/* The domain is just being started, restarted or unloaded: see start_wait_nanoseconds. */
#define MULLION_NOT_OPEN 32
/* The call was cancelled. If it had entered the domain, that takes no calls until
 * mullion_domain_restart(), and mullion_last_fault() tells where it was. */
#define MULLION_CANCELLED 33
/* What was waited for has not happened in the time given. */
#define MULLION_TIMED_OUT 34
/* A host function was left by longjmp on this thread: see mullion_host_function. */
#define MULLION_ABANDONED 35

/* What went wrong in the last function of this library that failed on this
 * thread, in words; "" if none has. Never null; good until the next failure on
 * this thread, or its end. */
const char *mullion_error_message(void);

/* The name of a status, like "MULLION_FAULT"; "unknown status" for what is none. */
const char *mullion_status_name(mullion_status status);

/* The version of the library, like "0.1.0". */
const char *mullion_version(void);

/* Makes the calling thread ready for calls of domains, as its first call does: it has an
 * alternate stack for signals, and SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP and the signal of
 * time limits are open. A thread needs this only if it blocks these signals, or switches its
 * alternate stack off, after its first call.
 *
 * Errors: MULLION_SYSTEM (also in a signal's handler, where no domain may be called). */
mullion_status mullion_prepare_thread(void);

/* ---- Handles ------------------------------------------------------------ */

/* A handle whose number is 0 is none. */
typedef struct mullion_image { uint64_t number; } mullion_image;
typedef struct mullion_imports { uint64_t number; } mullion_imports;
typedef struct mullion_domain { uint64_t number; } mullion_domain;
typedef struct mullion_function { uint64_t number; } mullion_function;
typedef struct mullion_shared { uint64_t number; } mullion_shared;

/* An address as a domain states it. */
typedef struct mullion_pointer { uint64_t address; } mullion_pointer;

/* ---- Values ------------------------------------------------------------- */

/* Kinds of values: integers of any size, pointers and bool; double; float. */
#define MULLION_INTEGER 0u
#define MULLION_DOUBLE 1u
#define MULLION_FLOAT 2u
/* As a result only: the function returns nothing that is of interest. */
#define MULLION_NOTHING 3u

/* What crosses the wall in one register. */
typedef struct mullion_value {
	uint32_t kind;
	uint32_t reserved; /* 0 */
	union {
		uint64_t integer; /* small ones extended by their sign, or by zeros */
		double real;
		float single;
	} as;
} mullion_value;

/* ---- Images ------------------------------------------------------------- */

/* Reads, verifies and lays out the image in a file of at most 1 GiB. If no policy was set,
 * the first image is logged as being loaded without one.
 *
 * Errors: MULLION_CANNOT_OPEN, MULLION_REJECTED, MULLION_NOT_PERMITTED,
 * MULLION_NOT_AN_EXTENSION, MULLION_SYSTEM. */
mullion_status mullion_image_open(const char *path, mullion_image *image);

/* As mullion_image_open(), for `length` bytes in memory, which are copied, under
 * a name for errors and logs. */
mullion_status mullion_image_from_memory(const char *name, const void *bytes, size_t length,
                                         mullion_image *image);

/* Maps windows in advance, until `domains` domains of the image can be loaded without: each
 * takes less time then. A window takes 4 GiB of address space until a domain takes it, or the
 * image goes. (Up to 16 windows of domains that have gone wait by themselves.)
 *
 * Errors: MULLION_BAD_HANDLE, MULLION_SYSTEM. */
mullion_status mullion_image_prepare(mullion_image image, size_t domains);

/* Frees the handle. Domains of the image go on. */
mullion_status mullion_image_free(mullion_image image);

/* What comes with an image for a policy of credentials to look at; 0 in all but `size`
 * is allowed. Strings are text, not names of files, where it is not said otherwise. */
typedef struct mullion_request {
	size_t size;              /* sizeof(mullion_request) */
	const char *keyring;      /* a directory of keys, as `mullion key` keeps them */
	const char *const *keys;  /* names in it, of the keys to ask with: their secret parts */
	size_t key_count;
	const char *passphrase;   /* of all these keys; null: they have none */
	const char *record;       /* the compilation record; null: none */
	const char *const *credentials; /* beside those that the policy names */
	size_t credential_count;
} mullion_request;

/* As mullion_image_open(), under the policy of mullion_set_policy_file().
 * Errors, besides: MULLION_CREDENTIALS: a key cannot be read. */
mullion_status mullion_image_open_as(const char *path, const mullion_request *request,
                                     mullion_image *image);

/* ---- Functions of the host ---------------------------------------------- */

/* The registers in which a domain passes arguments, set or not: integers and
 * pointers in `integers`, double in `reals`, float in the low half of the bits
 * of `reals`. Nothing about them is checked. */
typedef struct mullion_arguments {
	uint64_t integers[6];
	double reals[8];
} mullion_arguments;

/* A function of the host that a domain has called. `domain` is good until the
 * function returns, for everything but restarting, unloading and freeing it,
 * on this thread: the domain's memory and its functions, which are called on top of what it
 * is doing. `user` is what mullion_imports_add() was given. `result` is
 * MULLION_NOTHING at first; what it is set to is what the domain finds.
 *
 * Anything but MULLION_OK ends the call into the domain, which returns
 * MULLION_REFUSED; mullion_refusal() then has the function's status.
 *
 * It is called on the thread that called the domain, on several at once if
 * several did. It must not throw a C++ exception nor longjmp out of itself, nor end its
 * thread (pthread_exit, pthread_cancel): it returns.
 *
 * A C++ exception that leaves it ends the process. A longjmp out of it is found out
 * at the next call into a domain on this thread, as a rule: that and all later ones return
 * MULLION_ABANDONED, and nothing is called. What the call had begun stays begun: to other
 * threads the domain is in use (MULLION_IN_USE). If the jump went to a host function that is
 * still running, and that returns, the call that it belongs to ends with MULLION_ABANDONED, and
 * the thread goes on. siglongjmp is as longjmp, also out of a signal's handler that interrupts
 * the function.
 *
 * A signal's handler that interrupts the domain's own code returns, too. If it leaves by
 * siglongjmp, this is found out likewise if the call had limits, and otherwise not: the domain
 * stays in use, and the thread has the domain's floating-point modes. Let such a thread enter no
 * domain any more. */
typedef mullion_status (*mullion_host_function)(mullion_domain domain, void *user,
                                                const mullion_arguments *arguments,
                                                mullion_value *result);

/* Sets `value` to the integer or pointer argument with this index, from 0, of the host
 * function that `domain` has called on this thread: those beyond the six in
 * registers as well, from the domain's stack.
 *
 * Errors: MULLION_BAD_ADDRESS: there is no such stack; MULLION_BAD_ARGUMENT: no host
 * function of the domain's runs on this thread. */
mullion_status mullion_argument(mullion_domain domain, uint32_t index, uint64_t *value);

/* The domain that has called on this thread is about to hand out so many bytes: counts
 * them as its output, with those that it writes to its streams. To be called by a
 * host function before it takes them, which returns what this returns if it is
 * MULLION_OUTPUT_LIMIT: that makes it a fault of the domain's. */
mullion_status mullion_charge_output(mullion_domain domain, uint64_t bytes);

/* Gives back what was held, or handed over. It must not throw, longjmp nor end its thread. */
typedef void (*mullion_release_function)(void *user);

/* Registers a lock, a file or the like with the call that runs: `release` is called with
 * `user` when that call ends, by a return, a fault or a refusal, on this thread, the
 * last one first; or before, by mullion_release(). It must not call this library. To be
 * called by a host function that `domain` has called. `number` is for mullion_release();
 * the domain may have it.
 *
 * Errors: MULLION_BAD_ARGUMENT: no such host function runs; `release` is not called. */
mullion_status mullion_hold(mullion_domain domain, mullion_release_function release, void *user,
                            uint64_t *number);

/* Gives back what mullion_hold() has registered with this call. To be called by a host
 * function that `domain` has called.
 *
 * Errors: MULLION_BAD_HANDLE: the call holds nothing of that number. */
mullion_status mullion_release(mullion_domain domain, uint64_t number);

#define MULLION_NO_IMPORTS mullion_no_imports()

/* A new, empty list of functions that a host offers. */
mullion_status mullion_imports_new(mullion_imports *imports);

/* Offers `function` as `name`, in place of an earlier one. Domains that were
 * loaded with the list earlier do not see it. */
mullion_status mullion_imports_add(mullion_imports imports, const char *name,
                                   mullion_host_function function, void *user);

/* As mullion_imports_add(), and hands `user` over: `release` is called with it once, when
 * nothing can call the function any more, on whichever thread that is. That is when the
 * list has been freed, or has another function in its place, and the domains that were
 * loaded with it have gone, with the calls that were in them: after
 * mullion_domain_unload(), as calls of other domains and of threads that end may still be
 * in the domain then. Not if this fails. */
mullion_status mullion_imports_add_owned(mullion_imports imports, const char *name,
                                         mullion_host_function function, void *user,
                                         mullion_release_function release);

/* Frees the handle. Domains keep the functions that they were loaded with. */
mullion_status mullion_imports_free(mullion_imports imports);

/* What the host function returned that ended the last call with MULLION_REFUSED
 * on this thread. */
mullion_status mullion_refusal(void);

/* ---- Domains ------------------------------------------------------------ */

/* What a domain may use; 0 in a member stands for its default. */
typedef struct mullion_limits {
	size_t size;          /* sizeof(mullion_limits), so that the structure can grow */
	uint64_t memory;      /* bytes of image and heap together; 1 GiB */
	uint64_t stack;       /* bytes of each data stack, at most 8128 KiB; so much */
	uint64_t nanoseconds; /* by the clock, for each call from the host; no limit */
	uint32_t threads;     /* that may have a data stack at once; 95 */
	uint32_t depth;       /* of calls nested on a thread, of all domains; 100 */
	uint64_t total_nanoseconds; /* by the clock, for all calls until a restart; no limit */
	uint64_t gate_calls;  /* calls of functions that it imports, in each call; no limit */
	uint64_t output;      /* bytes written to streams, and mullion_charge_output(), until a
	                         restart; no limit */
	/* Time that threads run on a processor, in the kernel and in the host's functions too;
	 * what they wait does not count, so that it means the same on a busy machine. To look at
	 * that clock takes a system call for each call. */
	uint64_t processor_nanoseconds;       /* for each call from the host; no limit */
	uint64_t total_processor_nanoseconds; /* for all calls until a restart; no limit */
	uint64_t start_wait_nanoseconds; /* a call waits for the domain while it is started or
	                         restarted; not at all: MULLION_NOT_OPEN at once */
	uint64_t mappings;    /* of the system, that its memory may take; 2000 */
	uint64_t measured;    /* no limit: the clock by which mullion_metrics has the time of calls,
	                         MULLION_CLOCK_WALL or MULLION_CLOCK_PROCESSOR; it is not measured. To
	                         look at the clock makes each call longer: by about 90 ns, or by two
	                         system calls (1.2 microseconds) */
	uint64_t steps;       /* for all calls until a restart, of an image that counts them (mullion cc
	                         --mullion-count); no limit. The same input ends at the same instruction
	                         if one thread at a time calls. Hostile code can change the count: it is
	                         for replaying, and limits of time are the wall */
} mullion_limits;

#define MULLION_CLOCK_WALL 1u
#define MULLION_CLOCK_PROCESSOR 2u

#define MULLION_LIMITS_DEFAULT { sizeof(mullion_limits), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Makes a domain of an image and runs its constructors. `name`, for errors and
 * logs, may be null: then it is the image's. `limits` may be null. The C library
 * in the domain has memory, random numbers, its own end, and standard output
 * and error, whose lines go to the log; nothing else.
 *
 * Errors: MULLION_UNKNOWN_IMPORTS, MULLION_NO_MEMORY, MULLION_SYSTEM, and what
 * mullion_call() may answer, if a constructor does. */
mullion_status mullion_domain_load(mullion_image image, const char *name, mullion_imports imports,
                                   const mullion_limits *limits, mullion_domain *domain);

/* Gives the domain the state that it had when it was loaded, in the same place.
 * Functions stay good, and so do its function pointers; other pointers name what
 * the fresh domain has there, and what mullion_alloc() gave is free.
 *
 * Errors: MULLION_IN_USE, MULLION_UNLOADED: then it is as it was; a thread that ends,
 * and what belongs to it in the domain, is a call. As
 * mullion_domain_load(), if a constructor fails: then it takes no calls until it is
 * restarted again. */
mullion_status mullion_domain_restart(mullion_domain domain);

/* As mullion_domain_restart(), when nobody is in the domain any more, and so many nanoseconds
 * at most: for domains that several threads call. Until then it is closed: calls that come wait
 * (start_wait_nanoseconds of its limits) or are refused, MULLION_NOT_OPEN; those that are in it
 * go on, with all that they nest.
 *
 * Errors: as there. MULLION_IN_USE: it was in use for so long, or this thread is in it; then it
 * is open as it was. */
mullion_status mullion_domain_restart_when_idle(mullion_domain domain, uint64_t nanoseconds);

/* Takes the domain out of memory and frees its handle. Functions of it answer
 * MULLION_UNLOADED. A call of another domain, or of a thread that ends, that is in it goes
 * on until it returns, and keeps its memory and host functions; later ones are refused.
 * Errors: MULLION_IN_USE: calls of the host are in it; MULLION_NOT_OPEN: it is just being loaded.
 * Then nothing has changed. */
mullion_status mullion_domain_unload(mullion_domain domain);

/* Sets `ended` to 1 if the domain has faulted or exited and was not restarted, else to 0. */
mullion_status mullion_domain_has_ended(mullion_domain domain, int *ended);

/* Sets `count` to how often the domain was restarted. What mullion_alloc() gave is there as
 * long as this stays as it was. */
mullion_status mullion_domain_restarts(mullion_domain domain, uint64_t *count);

/* Sets `base` to the address at which the domain's window begins, the same for all its lives:
 * BASE in gdb's `add-symbol-file IMAGE -o BASE` (docs/debugging.md). */
mullion_status mullion_domain_base(mullion_domain domain, uint64_t *base);

/* Sets `bytes` to what the domain's image and heap take now. */
mullion_status mullion_domain_memory(mullion_domain domain, uint64_t *bytes);

/* ---- Figures ------------------------------------------------------------ */

/* What a domain has done so far, over all its lives. */
typedef struct mullion_metrics {
	size_t size;             /* sizeof(mullion_metrics), so that the structure can grow */
	uint64_t number;         /* of the domain, which no other one of the process ever has */
	uint64_t calls;          /* invocations that have begun: by the host, by other domains, by host
	                            functions that call back; constructors; threads that come and end */
	uint64_t host_calls;     /* its calls of host functions and of other domains */
	uint64_t nanoseconds;    /* that outermost invocations took which have ended;
	                            MULLION_NOT_MEASURED without `measured` in its limits */
	uint64_t faults;         /* invocations that ended by a fault */
	uint64_t exits;          /* invocations that ended since it ended itself */
	uint64_t refused;        /* invocations that a host function ended */
	uint64_t not_made;       /* calls that were not made: it had ended, or a limit forbade them */
	uint64_t restarts;
	uint64_t limit_hits;     /* faults by a limit, calls that one forbade, memory that it was refused */
	uint64_t memory;         /* bytes of image and heap now */
	uint64_t memory_highest; /* and at most, ever */
	uint64_t memory_limit;
} mullion_metrics;

#define MULLION_NOT_MEASURED UINT64_MAX
#define MULLION_METRICS_DEFAULT { sizeof(mullion_metrics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Fills the structure, of which `size` is set. It may be called while the domain is in use.
 * Errors: MULLION_BAD_ARGUMENT: `size`. */
mullion_status mullion_domain_metrics(mullion_domain domain, mullion_metrics *metrics);

/* Sets `count` to how often the domain has ended a call by a fault of that kind: "access", "trap",
 * "time_limit" and so on, as mullion_prometheus() has them.
 * Errors: MULLION_BAD_ARGUMENT: there is no such kind. */
mullion_status mullion_domain_faults_of(mullion_domain domain, const char *kind, uint64_t *count);

/* Sets `count` to how often the domain has hit that limit: "memory", "time", "depth" and so on.
 * Errors: MULLION_BAD_ARGUMENT: there is no such limit. */
mullion_status mullion_domain_limit_hits_of(mullion_domain domain, const char *limit, uint64_t *count);

/* Sets `steps` to what the domain has left of the steps in its limits, as its own memory says.
 * Errors: MULLION_BAD_ARGUMENT: they are not limited; MULLION_UNLOADED; MULLION_NOT_OPEN. */
mullion_status mullion_domain_steps_left(mullion_domain domain, uint64_t *steps);

/* Writes the figures of all domains of this process to a file, as text for Prometheus (exposition
 * format 0.0.4). Errors: MULLION_CANNOT_WRITE. */
mullion_status mullion_prometheus(const char *path);

/* The text is good until it returns; a zero is behind it. It may call this library. */
typedef void (*mullion_text_function)(void *user, const char *text, size_t length);

/* Gives that text to `take`: for a host that serves it itself, as
 * "text/plain; version=0.0.4; charset=utf-8". */
mullion_status mullion_prometheus_text(mullion_text_function take, void *user);

/* ---- Calls -------------------------------------------------------------- */

/* The function that a domain exports as `name`. That it exists and may be
 * entered is checked, its type by mullion_function_check() only: with wrong arguments
 * it computes nonsense, or faults, within its walls.
 *
 * Errors: MULLION_NO_EXPORT. */
mullion_status mullion_function_find(mullion_domain domain, const char *name,
                                     mullion_function *function);

/* How a function takes or returns a value, and in how many bytes. */
typedef uint32_t mullion_type;

/* As a result only: it is not looked at. */
#define MULLION_TYPE_NOTHING 0u
/* MULLION_TYPE_INTEGER(long): integers, enumerations and bool. */
#define MULLION_TYPE_INTEGER(type) ((mullion_type)sizeof(type))
#define MULLION_TYPE_POINTER 8u
#define MULLION_TYPE_DOUBLE 0x108u
#define MULLION_TYPE_FLOAT 0x104u

/* Compares what the image's debug information (mullion cc -g) says of the function's
 * type with what the host means to pass and find: how many arguments there are, which
 * are floating-point numbers, and how many bytes each has. mullion_error_message() then
 * has both types. It finds mistakes, and is no evidence: without debug information
 * there is nothing to compare, and it succeeds.
 *
 * Errors: MULLION_WRONG_TYPE; MULLION_BAD_ARGUMENT: no such type, or more than eight. */
mullion_status mullion_function_check(mullion_function function, mullion_type result,
                                      const mullion_type *parameters, size_t count);

/* Frees the handle. */
mullion_status mullion_function_free(mullion_function function);

/* Calls a function on this thread, and waits until it returns. There are at
 * most eight arguments. `result` says by its kind
 * which register is of interest, and finds it; it may be null.
 *
 * Errors: MULLION_FAULT, MULLION_EXITED, MULLION_REFUSED, MULLION_CALLEE: it did not
 * return; MULLION_ENDED, MULLION_UNLOADED, MULLION_NOT_OPEN, MULLION_DEPTH,
 * MULLION_TIME_SPENT, MULLION_SYSTEM, MULLION_BAD_ARGUMENT: it was not called. */
mullion_status mullion_call(mullion_function function, const mullion_value *arguments, size_t count,
                            mullion_value *result);

/* Limits of one call, beside those of its domain: of each the stricter. 0 is no limit. */
typedef struct mullion_call_limits {
	size_t size;          /* sizeof(mullion_call_limits) */
	uint64_t nanoseconds; /* by the clock */
	uint64_t gate_calls;  /* with those of calls of the same domain that are nested in it */
	uint32_t depth;       /* calls nested on the thread from here on, this one included */
	uint32_t reserved;    /* 0 */
	uint64_t processor_nanoseconds; /* on a processor, as in mullion_limits */
} mullion_call_limits;

#define MULLION_CALL_LIMITS_DEFAULT { sizeof(mullion_call_limits), 0, 0, 0, 0, 0 }

/* As mullion_call(), with limits of its own; `limits` may be null. A call that exceeds
 * them is MULLION_FAULT, or, in nested calls, MULLION_DEPTH. */
mullion_status mullion_call_limited(mullion_function function, const mullion_value *arguments,
                                    size_t count, const mullion_call_limits *limits,
                                    mullion_value *result);

/* A call that runs on a thread of its own. */
typedef struct mullion_call_handle { uint64_t number; } mullion_call_handle;

/* Waits as long as it takes. */
#define MULLION_NEVER UINT64_MAX

/* Begins a call on a thread of its own, and does not wait. `limits` may be null. What becomes
 * of it is what mullion_call_wait() answers. The call is to be closed.
 *
 * Errors: MULLION_SYSTEM: no thread; MULLION_BAD_ARGUMENT. */
mullion_status mullion_call_start(mullion_function function, const mullion_value *arguments,
                                  size_t count, const mullion_call_limits *limits,
                                  mullion_call_handle *call);

/* Waits until a call has ended, at most so many nanoseconds (0: looks only), and gives its
 * result, once.
 *
 * Errors: as mullion_call_limited(); MULLION_CANCELLED; MULLION_TIMED_OUT: it goes on;
 * MULLION_BAD_ARGUMENT: its result has been given. */
mullion_status mullion_call_wait(mullion_call_handle call, uint64_t nanoseconds, mullion_value *result);

/* Ends a call, from any thread: at once where it runs code of a domain, and else when a host
 * function returns to one. Does not wait. What it calls of other domains ends too. Nothing, if it
 * has ended. */
mullion_status mullion_call_cancel(mullion_call_handle call);

/* Frees the handle, and cancels the call if it has not ended. Until it has, the domain is in
 * use: mullion_domain_restart_when_idle() waits for that. */
mullion_status mullion_call_close(mullion_call_handle call);

/* As mullion_call(), for a function pointer that the domain passed or returned.
 * Errors, besides: MULLION_NOT_A_FUNCTION. */
mullion_status mullion_call_pointer(mullion_domain domain, mullion_pointer function,
                                    const mullion_value *arguments, size_t count,
                                    mullion_value *result);

/* ---- Domains kept ready ------------------------------------------------- */

/* Domains for one use each. A restart takes as long as there is memory to give back: a pool has
 * a thread for that, and hands out domains that are as new. */
typedef struct mullion_pool { uint64_t number; } mullion_pool;

/* What a pool may have; 0 in a member stands for its default. */
typedef struct mullion_pool_limits {
	size_t size;     /* sizeof(mullion_pool_limits), so that the structure can grow */
	uint64_t most;   /* domains at the same time: ready, taken out and being restarted; 8 */
	uint64_t ready;  /* domains that are made with the pool; 1 */
	uint64_t memory; /* bytes of all of them, each with the whole of its limit; no limit */
} mullion_pool_limits;

#define MULLION_POOL_LIMITS_DEFAULT { sizeof(mullion_pool_limits), 0, 0, 0 }

/* Makes a pool, and its first domains: as mullion_domain_load() makes each. `name`, `limits` and
 * `bounds` may be null.
 *
 * Errors: as mullion_domain_load(); MULLION_TIMED_OUT: the bounds allow no domain. */
mullion_status mullion_pool_new(mullion_image image, const char *name, mullion_imports imports,
                                const mullion_limits *limits, const mullion_pool_limits *bounds,
                                mullion_pool *pool);

/* Takes out a domain that is as new, and waits for one so many nanoseconds at most (0: not at all;
 * MULLION_NEVER). It is used as any other, and is to be given back by mullion_pool_put().
 *
 * Errors: as mullion_domain_load(); MULLION_TIMED_OUT: the pool has as many as it may, and all
 * are taken out. */
mullion_status mullion_pool_get(mullion_pool pool, uint64_t nanoseconds, mullion_domain *domain);

/* Gives a domain back to its pool, whatever has become of it. Its handle is freed: the next one to
 * take the domain out has another. Functions of it are to be freed before. The pool does not hand a
 * domain out of which anything is held (a function, a call that runs) for 100 ms: then it is
 * the holder's, and the pool makes another one.
 *
 * Errors: MULLION_BAD_ARGUMENT: it is of no pool. */
mullion_status mullion_pool_put(mullion_domain domain);

/* From now on domains are made of another image, or otherwise, as mullion_pool_new() would. Those that
 * are taken out stay as they are, and go when they are given back; those that are ready go now.
 * One is made here and now.
 *
 * Errors: as mullion_domain_load(): then everything is as it was. */
mullion_status mullion_pool_upgrade(mullion_pool pool, mullion_image image, const char *name,
                                    mullion_imports imports, const mullion_limits *limits);

/* What a pool has now, and has done so far. */
typedef struct mullion_pool_figures {
	size_t size;       /* sizeof(mullion_pool_figures) */
	uint64_t ready;    /* domains */
	uint64_t taken;    /* out */
	uint64_t returned; /* given back, and not ready yet */
	uint64_t made;
	uint64_t uses;     /* times that a domain was taken out */
	uint64_t waits;    /* of these, those that had to wait */
	uint64_t restarts;
	uint64_t ended;    /* came back faulted, exited or cancelled */
	uint64_t replaced; /* given up: something of them was held, they could not be restarted, or were
	                      unloaded, or the pool was upgraded */
} mullion_pool_figures;

#define MULLION_POOL_FIGURES_DEFAULT { sizeof(mullion_pool_figures), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Fills the structure, of which `size` is set. Errors: MULLION_BAD_ARGUMENT: `size`. */
mullion_status mullion_pool_stats(mullion_pool pool, mullion_pool_figures *figures);

/* Frees the handle. Domains that are ready go; those that are taken out stay until they are given
 * back. */
mullion_status mullion_pool_free(mullion_pool pool);

/* ---- Domains that are replaced ------------------------------------------ */

/* A place for a domain that can be replaced by one of another image, while the host calls the same
 * functions. */
typedef struct mullion_live { uint64_t number; } mullion_live;

/* A place with this domain in it. The domain's handle is the place's to free; the host may use it
 * until the domain is replaced.
 *
 * Errors: MULLION_BAD_ARGUMENT: it is of a pool; MULLION_NOT_OPEN: it is just being loaded. */
mullion_status mullion_live_new(mullion_domain domain, mullion_live *live);

/* The function that the domain exports as `name`, and that every later one must export: called as any
 * other, it is that of the domain that serves when the call begins. A call ends where it
 * began. The types are compared as by mullion_function_check(), here and at each upgrade. To
 * be freed by mullion_function_free().
 *
 * Errors: MULLION_NO_EXPORT, MULLION_WRONG_TYPE. */
mullion_status mullion_live_function(mullion_live live, const char *name, mullion_type result,
                                     const mullion_type *parameters, size_t count,
                                     mullion_function *function);

/* Sets `domain` to the one that serves now: to copy memory in, find functions of this very domain,
 * call them, and read what came of it. If it is replaced meanwhile, the handle is void and those
 * functions go on. */
mullion_status mullion_live_domain(mullion_live live, mullion_domain *domain);

/* Puts another domain in the place, as mullion_live_new() does. Calls that come from now on go there; the former
 * domain goes with the last call that is in it, or when the last function found by its handle is
 * freed.
 *
 * Errors: MULLION_NO_EXPORT, MULLION_WRONG_TYPE: of a function that the host has asked for. Then
 * nothing has changed, and the new domain's handle is the host's. */
mullion_status mullion_live_upgrade(mullion_live live, mullion_domain domain);

/* Frees the handle. Functions of it go on. The domain goes with the last of them. */
mullion_status mullion_live_free(mullion_live live);

/* ---- Memory of domains --------------------------------------------------- */

/* Copies `length` bytes at `from` in the domain to `to`.
 * Errors: MULLION_BAD_ADDRESS: then `to` may have been written in part. */
mullion_status mullion_read(mullion_domain domain, mullion_pointer from, void *to, size_t length);

/* Copies `length` bytes at `from` to `to` in the domain.
 * Errors: MULLION_BAD_ADDRESS: then `to` may have been written in part. */
mullion_status mullion_write(mullion_domain domain, mullion_pointer to, const void *from,
                             size_t length);

/* Copies the string at `from` in the domain to `to`, which has room for
 * `capacity` bytes, its terminating zero included. `length`, without the zero,
 * may be null. Errors: MULLION_BAD_ADDRESS; MULLION_LONG_STRING: then `to` may have been
 * written in part. */
mullion_status mullion_read_string(mullion_domain domain, mullion_pointer from, char *to,
                                   size_t capacity, size_t *length);

/* Zeroed memory in the domain, aligned to 16 bytes. The host's books of it are
 * out of the domain's reach, and no code of the domain runs; the domain's own
 * free() must not be given such memory. Errors: MULLION_NO_MEMORY. */
mullion_status mullion_alloc(mullion_domain domain, uint64_t length, mullion_pointer *pointer);

/* mullion_alloc(), then a copy of `length` bytes. */
mullion_status mullion_copy_in(mullion_domain domain, const void *from, size_t length,
                               mullion_pointer *pointer);

/* mullion_copy_in() of a string and its terminating zero. */
mullion_status mullion_string_in(mullion_domain domain, const char *text, mullion_pointer *pointer);

/* Gives memory back. A null pointer is nothing to do. Errors: MULLION_BAD_ADDRESS:
 * mullion_alloc() did not give it, or it was given back, or its domain restarted: unless
 * the fresh domain's memory has been given from there again, which then goes. */
mullion_status mullion_free(mullion_domain domain, mullion_pointer pointer);

/* As mullion_free(), for memory from before a restart too: `restarts` is what
 * mullion_domain_restarts() said before it was allocated. What is there is given back only
 * if it is from then. Errors: MULLION_BAD_ADDRESS: it is not. */
mullion_status mullion_free_since(mullion_domain domain, mullion_pointer pointer,
                                  uint64_t restarts);

/* ---- Domains that call each other ---------------------------------------- */

/* How a domain calls another one. */
typedef struct mullion_link_options {
	size_t size;       /* sizeof(mullion_link_options) */
	uint32_t reals;    /* not 0: floating-point arguments are passed on */
	uint32_t integers; /* integers and pointers that are passed on, if more than 6 */
	const mullion_call_limits *limits; /* of each call; null: those of the called domain */
	/* What the calling domain finds if the called one faults, takes no calls or has gone.
	 * Null: that ends the call into the calling domain, with MULLION_CALLEE. */
	const mullion_value *failed;
} mullion_link_options;

#define MULLION_LINK_DEFAULT { sizeof(mullion_link_options), 1, 0, NULL, NULL }

/* Offers a function of another domain as `name`: a domain that is loaded with the list
 * calls it with the host out of the way. Arguments pass as they are; a pointer of the one
 * domain means nothing to the other, unless it leads into shared memory. `options` may
 * be null: MULLION_LINK_DEFAULT. The policy is asked when a domain is loaded. A link holds
 * while both domains live, over restarts. */
mullion_status mullion_imports_link(mullion_imports imports, const char *name,
                                    mullion_function function, const mullion_link_options *options);

/* Offers as `name` what mullion_link() will say. Until then a call of it is refused. */
mullion_status mullion_imports_link_later(mullion_imports imports, const char *name);

/* Nobody: in the place of a domain that asks, the host. */
#define MULLION_THE_HOST mullion_host()

/* Puts a function of another domain behind an import of `caller`, which
 * mullion_imports_link_later() has named. `asker` is the domain on whose behalf the host
 * does so, for the policy, or MULLION_THE_HOST.
 *
 * Errors: MULLION_NOT_ALLOWED, MULLION_NO_IMPORT, MULLION_LINKED, MULLION_UNLOADED. */
mullion_status mullion_link(mullion_domain asker, mullion_domain caller, const char *import,
                            mullion_function function, const mullion_link_options *options);

/* A link of a domain: all of them are the graph of who calls whom. */
typedef struct mullion_link_info {
	size_t size;           /* sizeof(mullion_link_info) of the library */
	const char *import;
	mullion_domain callee; /* 0: it has gone */
	const char *export_name; /* "" then */
	uint64_t calls;        /* so far; on several threads at once some may not be counted */
} mullion_link_info;

/* The strings are good until it returns. It may call this library. */
typedef void (*mullion_link_visitor)(void *user, const mullion_link_info *link);

/* Shows `visitor` what a domain calls of other domains. */
mullion_status mullion_links(mullion_domain domain, mullion_link_visitor visitor, void *user);

/* Writes who may touch what in this process to a file, as JSON: what `mullion map`
 * paints. The host is domain 0. Domains, the parts of their images, entry points that
 * other domains may call and shared memory have names; links are switch gates.
 *
 * Errors: MULLION_CANNOT_WRITE. */
mullion_status mullion_snapshot(const char *path);

/* Sets `caller` to the domain that has called `domain` by a link, in a host function that
 * `domain` has called on this thread; to 0: the host has called it. Errors:
 * MULLION_BAD_ARGUMENT: no such host function runs. */
mullion_status mullion_called_by(mullion_domain domain, mullion_domain *caller);

/* ---- Memory that domains share ------------------------------------------- */

/* What a domain may do with pages. */
#define MULLION_NONE 0u
#define MULLION_READ 1u
#define MULLION_READ_WRITE 2u

/* Zeroed memory of at least `length` bytes, whole pages of 4096, that domains can be
 * given pages of. It lies at the same offset of every domain, so that a pointer into it
 * works in each that has the page. The name is for the policy.
 *
 * Errors: MULLION_SYSTEM: there is no room, or no memory. */
mullion_status mullion_shared_new(const char *name, uint64_t length, mullion_shared *shared);

/* Frees the handle. Domains keep the pages that they have. */
mullion_status mullion_shared_free(mullion_shared shared);

/* Where the host has it, to read and write, until the handle is freed. Domains that may
 * write change it at any time: read what matters once, and check the copy. */
mullion_status mullion_shared_bytes(mullion_shared shared, void **bytes, uint64_t *length);

/* Gives `domain` these bytes, whole pages, with `permission` from now on, or takes them
 * away, while it runs, if need be; nothing is copied. A restart takes them away too.
 * `asker` as in mullion_link().
 *
 * Errors: MULLION_NOT_ALLOWED, MULLION_NOT_SHARED, MULLION_UNLOADED: nothing has changed. */
mullion_status mullion_grant(mullion_shared shared, mullion_domain asker, mullion_domain domain,
                             uint64_t offset, uint64_t length, uint32_t permission);

/* The byte at `offset` as the domain knows it, whether it has been given it or not. */
mullion_status mullion_shared_pointer(mullion_shared shared, mullion_domain domain, uint64_t offset,
                                      mullion_pointer *pointer);

/* ---- Faults -------------------------------------------------------------- */

#define MULLION_CAUSE_READ 1u           /* of memory that it may not read */
#define MULLION_CAUSE_WRITE 2u
#define MULLION_CAUSE_EXECUTE 3u
#define MULLION_CAUSE_DATA_STACK 4u     /* overflow */
#define MULLION_CAUSE_CONTROL_STACK 5u  /* overflow: calls nested too deep */
#define MULLION_CAUSE_LABEL 6u          /* an indirect call of what is no function */
#define MULLION_CAUSE_TRAP 7u           /* __builtin_trap() */
#define MULLION_CAUSE_INSTRUCTION 8u    /* that the processor does not have */
#define MULLION_CAUSE_ARITHMETIC 9u     /* division by zero or overflow */
#define MULLION_CAUSE_SIGNAL 10u        /* that it raised against itself, as abort() does */
#define MULLION_CAUSE_TIME 11u          /* limit */
#define MULLION_CAUSE_OTHER 12u         /* see `message` */
#define MULLION_CAUSE_TOTAL_TIME 13u    /* limit on all calls */
#define MULLION_CAUSE_GATE_CALLS 14u    /* limit */
#define MULLION_CAUSE_OUTPUT 15u        /* limit */
#define MULLION_CAUSE_PROCESSOR_TIME 16u       /* limit */
#define MULLION_CAUSE_TOTAL_PROCESSOR_TIME 17u /* limit on all calls */
#define MULLION_CAUSE_CANCELLED 18u     /* by mullion_call_cancel() or _close() */
#define MULLION_CAUSE_STEPS 19u                /* limit on all calls */

/* A fault. The strings are good until the next failure on this thread, or its
 * end; where nothing is known they are "". */
typedef struct mullion_fault {
	size_t size;           /* sizeof(mullion_fault), set by the caller */
	uint32_t cause;        /* MULLION_CAUSE_... */
	uint32_t line;         /* in `file`; 0: unknown */
	uint64_t address;      /* that was accessed; 0 if no access is to blame */
	uint64_t instruction;
	const char *message;   /* in words */
	const char *domain;    /* its name */
	const char *symbol;    /* the function, by the image's own symbols */
	const char *file;      /* and by its debug information */
	const char *backtrace; /* a line for each frame, the innermost first */
} mullion_fault;

/* The fault that was the last failure on this thread. The names come from the
 * image, whose author wrote them: they are for people to read.
 *
 * Errors: MULLION_BAD_ARGUMENT: `size` is not set, or the last failure was none. */
mullion_status mullion_last_fault(mullion_fault *fault);

/* ---- The host's log, policy and profiles -------------------------------- */

#define MULLION_LOG_ERROR 1 /* faults */
#define MULLION_LOG_WARN 2  /* a domain's standard error; what an operator should know */
#define MULLION_LOG_INFO 3  /* a domain's standard output; restarts; backtraces of faults */
#define MULLION_LOG_DEBUG 4
#define MULLION_LOG_TRACE 5 /* every call */

/* `target` says what the line is about: "mullion::output", "mullion::fault",
 * "mullion::call" or another name. Both strings are good until it returns. It
 * may call this library, and the domain that the line is about: what cannot be done just then is
 * refused (a restart while a call is in it: MULLION_IN_USE), and nothing that is logged
 * meanwhile on this thread is handed to it. It must not throw, longjmp nor end its thread. */
typedef void (*mullion_log_function)(void *user, int level, const char *target, const char *line);

/* Has the library's log, up to `level`, handed to `log`, from every thread. Once
 * per process, before anything else; without it there is none.
 * Errors: MULLION_IN_USE: there is a log already. */
mullion_status mullion_set_log(mullion_log_function log, void *user, int level);

/* An image that asks to be loaded: verified already. */
typedef struct mullion_candidate {
	size_t size;       /* sizeof(mullion_candidate) of the library */
	const char *name;
	const char *path;  /* "" if its bytes were given */
	const void *bytes;
	size_t length;
} mullion_candidate;

/* Whether an image may be loaded: MULLION_OK, or anything else for no. */
typedef mullion_status (*mullion_policy_function)(void *user, const mullion_candidate *candidate);

/* Has `policy` asked about every image that is opened from now on. Null: nobody is. */
mullion_status mullion_set_policy(mullion_policy_function policy, void *user);

/* A question to the host's policy, before anything changes. */
typedef struct mullion_question {
	size_t size;           /* sizeof(mullion_question) of the library */
	uint32_t kind;         /* MULLION_QUESTION_... */
	uint32_t permission;   /* of pages */
	mullion_domain asker;  /* on whose behalf; 0: the host's own */
	mullion_domain domain; /* that would call, or have the pages */
	mullion_domain callee; /* of a link: the one that would be called */
	const char *name;      /* of the export, or of the shared memory */
	uint64_t offset;       /* of the pages, and their length, in bytes */
	uint64_t length;
} mullion_question;

/* Whether `domain` may call the entry point `name` of `callee`. */
#define MULLION_QUESTION_LINK 0u
/* Whether `domain` may have these pages with `permission`. */
#define MULLION_QUESTION_PAGES 1u

/* MULLION_OK, or anything else for no. */
typedef mullion_status (*mullion_access_function)(void *user, const mullion_question *question);

/* Has `policy` asked about links to domains of images that are opened, and about shared
 * memory that is made, from now on. Null, as at first: the host may, domains may not. */
mullion_status mullion_set_access_policy(mullion_access_function policy, void *user);

/* Has the policy in a file, of keys, KeyNote credentials and compilation records, decide
 * about every image that is opened from now on, in front of mullion_set_policy()'s;
 * domains then get no more than it grants. Null: none does. See docs/trust.md.
 *
 * Errors: MULLION_CREDENTIALS: it cannot be read: then nothing has changed. */
mullion_status mullion_set_policy_file(const char *path);

/* Names the functions of every domain whose image is opened from now on in
 * /tmp/perf-PID.map, where perf(1) looks for the names of code that is in no file: perf
 * record and perf report show them. Each domain has a copy of its code then, and does not
 * share its image's: that takes memory, and time to load. */
mullion_status mullion_enable_perf_map(void);

/* ---- Values, made ------------------------------------------------------- */

static inline mullion_value mullion_integer(uint64_t integer)
{
	mullion_value value;
	value.kind = MULLION_INTEGER;
	value.reserved = 0;
	value.as.integer = integer;
	return value;
}

static inline mullion_value mullion_double(double real)
{
	mullion_value value;
	value.kind = MULLION_DOUBLE;
	value.reserved = 0;
	value.as.real = real;
	return value;
}

static inline mullion_value mullion_float(float single)
{
	mullion_value value;
	value.kind = MULLION_FLOAT;
	value.reserved = 0;
	value.as.integer = 0;
	value.as.single = single;
	return value;
}

/* An address as an argument. */
static inline mullion_value mullion_address(mullion_pointer pointer)
{
	return mullion_integer(pointer.address);
}

/* A result that is an address. */
static inline mullion_pointer mullion_as_pointer(mullion_value value)
{
	mullion_pointer pointer;
	pointer.address = value.as.integer;
	return pointer;
}

static inline mullion_imports mullion_no_imports(void)
{
	mullion_imports none;
	none.number = 0;
	return none;
}

static inline mullion_domain mullion_host(void)
{
	mullion_domain none;
	none.number = 0;
	return none;
}

#define MULLION_INTEGER_RESULT { MULLION_INTEGER, 0, { 0 } }
#define MULLION_DOUBLE_RESULT { MULLION_DOUBLE, 0, { 0 } }
#define MULLION_FLOAT_RESULT { MULLION_FLOAT, 0, { 0 } }

#ifdef __cplusplus
}
#endif

#endif
