/* The kernel's interface for software isolated processes: docs/sip-kernel.md says what each call does.
 *
 * A process that was built on its own is given a pointer to `struct mullion_kernel`, and needs nothing else: there is no
 * library to link. Times are in nanoseconds since the kernel's first use. Calls that give a uint32_t give 0 (done) or an
 * `enum mullion_refusal`, and have done nothing then. Any number is harmless; a pointer is null or points to what the call
 * says. Names and texts are UTF-8, with their length in bytes.
 */
#ifndef MULLION_KERNEL_H
#define MULLION_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version that this header describes: major and minor number, 16 bits each. */
#define MULLION_KERNEL_VERSION ((uint32_t)1 << 16 | 2)

/* A deadline that never comes. 0 is one that has passed: the call does not wait. */
#define MULLION_NEVER UINT64_MAX

/* Ends that `wait_any` takes at most. */
#define MULLION_WAITS 64

enum mullion_refusal {
    MULLION_DONE = 0,
    MULLION_NO_PROCESS = 1,        /* the caller is a thread of the host */
    MULLION_TOO_MANY = 2,          /* as many threads, children, names or channels as the process may have */
    MULLION_NO_MEMORY = 3,         /* no memory, or not within the process's limits */
    MULLION_NULL = 4,              /* a pointer that is needed is null, or not aligned */
    MULLION_MALFORMED = 5,         /* no UTF-8, no name, options of another size or with an impossible value */
    MULLION_UNKNOWN = 6,           /* no such contract, program, channel or child of the caller */
    MULLION_NOT_PERMITTED = 7,     /* the process has no right to the name */
    MULLION_TAKEN = 8,             /* somebody has bound the name */
    MULLION_UNBOUND = 9,           /* nobody, or not the caller, has bound the name */
    MULLION_CONTRACT_DIFFERS = 10, /* the service speaks another contract */
    MULLION_BUSY = 11,             /* another thread waits there, or the service takes no more channels now */
    MULLION_OUT_OF_TURN = 12,      /* the contract does not allow it in this state, or has no such message */
    MULLION_CLOSED = 13,           /* the channel's other end is closed */
    MULLION_NOT_A_MESSAGE = 14,    /* the bytes are no payload of the message */
    MULLION_TOO_LONG = 15,         /* the room is too small for the message, or a list is too long */
    MULLION_NO_BYTES = 16,         /* the message holds an endpoint, or is nested too deep */
    MULLION_DEADLINE = 17,         /* the deadline has passed */
    MULLION_NOT_STARTED = 18       /* no worker runs */
};

/* What is known of an end of a channel. */
struct mullion_channel {
    uint32_t contract; /* its number; 0 if the host has not offered it */
    uint32_t side;     /* 0: the client's end, 1: the server's */
    uint32_t state;    /* in the contract's order, from 0 */
    uint32_t sends;    /* 1 if this end sends in this state */
};

/* How a new process is to be; everything 0 but `size` is the usual. */
struct mullion_wish {
    uint32_t size;     /* sizeof(struct mullion_wish) */
    uint32_t rights;   /* 0: to no names, 1: those of its parent */
    uint32_t home;     /* 0: its parent's worker, 1: workers in turn, n + 2: worker n, modulo their number */
    uint32_t threads;  /* at a time */
    uint64_t memory;   /* bytes of its heap */
    uint64_t exchange; /* bytes of the exchange heap */
    uint64_t slice;    /* nanoseconds of processor time without letting others run */
    uint32_t children; /* at a time, plus one: 1 for none */
    uint32_t reserved; /* 0 */
};

enum mullion_cause {
    MULLION_RETURNED = 0,
    MULLION_EXITED = 1, /* with `status` */
    MULLION_PANIC = 2,
    MULLION_KILLED = 3,
    MULLION_MEMORY = 4,
    MULLION_STACK = 5,
    MULLION_SLICE = 6,
    MULLION_FAULT = 7,
    MULLION_ABORT = 8
};

/* How a process has ended. */
struct mullion_end {
    uint32_t cause;
    uint32_t status;
    uint32_t length; /* bytes of its last words */
    char message[124];
};

/* What a process uses at the moment of asking. Memory is in bytes. */
struct mullion_statistics {
    uint64_t process;
    uint64_t parent;
    uint64_t memory;
    uint64_t memory_limit;
    uint64_t exchange;
    uint64_t exchange_limit;
    uint64_t sent; /* messages, from ends that it has closed since */
    uint32_t threads;
    uint32_t children;
    uint32_t names;
    uint32_t worker;
};

/* The table. It only grows at its end; `size` says how much of it there is. */
struct mullion_kernel {
    uint32_t version;
    uint32_t size;
    uint64_t (*process)(void);
    uint64_t (*now)(void);
    void (*yield_now)(void);
    uint64_t (*waiter)(void);
    void (*park)(uint64_t deadline);
    void (*unpark)(uint64_t waiter);
    void *(*allocate_pages)(size_t bytes);
    void (*release_pages)(void *pages);
    uint32_t (*create_thread)(void (*body)(size_t argument), size_t argument);
    void (*exit)(uint8_t status); /* does not return */
    const void *state;            /* not for C */
    /* From version 1.2 on. */
    uint32_t (*contract)(const uint8_t *digest, uint32_t *number);
    uint32_t (*create_channel)(uint32_t contract, uint64_t *client, uint64_t *server);
    uint32_t (*channel)(uint64_t channel, struct mullion_channel *about);
    uint32_t (*send)(uint64_t channel, uint32_t message, const void *bytes, size_t length);
    uint32_t (*receive)(uint64_t channel, uint64_t deadline, uint32_t *message, void *bytes, size_t room, size_t *length);
    uint32_t (*wait_any)(const uint64_t *channels, size_t count, uint64_t deadline, size_t *index);
    uint32_t (*close)(uint64_t channel);
    uint32_t (*bind)(const char *path, size_t length, uint32_t contract);
    uint32_t (*unbind)(const char *path, size_t length);
    uint32_t (*accept)(const char *path, size_t length, uint64_t deadline, uint64_t *channel);
    uint32_t (*look_up)(const char *path, size_t length, uint64_t channel);
    uint32_t (*program)(const char *name, size_t length, uint32_t *number);
    uint32_t (*create_process)(uint32_t program, const struct mullion_wish *wish, uint64_t argument, uint64_t channel,
                               uint64_t *child);
    uint32_t (*kill)(uint64_t child);
    uint32_t (*wait)(uint64_t child, uint64_t deadline, struct mullion_end *end);
    uint32_t (*statistics)(uint64_t process, struct mullion_statistics *statistics);
};

/* Whether a table has everything that this header describes. */
static inline int mullion_kernel_fits(const struct mullion_kernel *kernel) {
    return kernel->version >> 16 == MULLION_KERNEL_VERSION >> 16 && kernel->version >= MULLION_KERNEL_VERSION &&
           kernel->size >= sizeof *kernel;
}

#ifdef __cplusplus
}
#endif

#endif
