/* Signals that a program sends to itself. The system delivers none in a domain, so the C library keeps handlers,
 * the mask, and what waits behind it. A thread handles what it has sent itself: each has a mask of its own, empty at
 * first. */
#include <features.h>
#include <signal.h>
#include <time.h>

#define BIT(signal) (1ul << ((signal) - 1))

/* Handlers within handlers that siglongjmp may leave. */
#define NESTED 32

/* What a thread has of signals. No thread-local: with one each library would have thread-locals, which every thread of a
 * host would have to set up. */
struct mullion_signals {
	/* What is blocked, and what has been sent meanwhile: bit n - 1 for signal n. */
	unsigned long blocked, pending;
	struct { unsigned long place, before; } running[NESTED];
	int depth;
};

/* The calling thread's. */
hidden struct mullion_signals *__mullion_signals(void);

/* What finds those of threads that a program has begun (clone.c); null for the others, and as long as there are none. */
extern hidden struct mullion_signals *(*__mullion_signals_of_thread)(void);

/* Does with a signal what the program has asked for: 1 if a handler ran; or a negative error number. */
hidden long __mullion_signal(int signal, int code);

/* The same with all that has been sent and is not blocked any more: how many handlers ran. */
hidden int __mullion_flush(void);

/* A write to a pipe that nobody reads sends SIGPIPE. A library without a handler has the error alone, since its host
 * would lose it by a reader that has gone away. */
hidden void __mullion_broken_pipe(void);

/* Whether this is a program, which ends by that signal as elsewhere. */
extern hidden char __mullion_is_program;

/* siglongjmp goes to where the data stack is at this place: handlers below it have ended. */
hidden void __mullion_left(unsigned long place);

/* Whether an alarm is set; what is left until then; and what is due is sent: how many handlers ran. */
extern hidden int __mullion_armed;
hidden struct timespec __mullion_alarm_left(void);
hidden int __mullion_alarm(void);
