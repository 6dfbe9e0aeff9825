/* Host functions that are left by longjmp, which the header forbids: what is found out, and what goes on. The same
 * with siglongjmp, also out of a signal's handler. */
#define _GNU_SOURCE
#include <mullion.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, mullion_error_message()); \
			exit(1); \
		} \
	} while (0)
#define OK(call) EXPECT((call) == MULLION_OK)
#define FAILS(status, call) EXPECT((call) == (status) && mullion_error_message()[0])

enum { STAY, LEAVE, INNER, OUTER, LEAVE_WITH_MASK, RAISE };

static mullion_image image;
static mullion_imports list;
/* What the host functions do; of one thread at a time. */
static __thread int how;
static __thread jmp_buf outside, within;
static __thread sigjmp_buf outside_with_mask;
/* Where the handler of SIGUSR1 finds code that it is to leave; nowhere: in a host function. */
static uint64_t base;
static int interrupted;

static void handler(int signal, siginfo_t *info, void *context)
{
	uint64_t at = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	(void)signal;
	(void)info;
	if (base && (at < base || at - base >= UINT64_C(1) << 32))
		return;
	interrupted = 1;
	siglongjmp(outside_with_mask, 1);
}

static mullion_function find(mullion_domain domain, const char *name)
{
	mullion_function function;
	OK(mullion_function_find(domain, name, &function));
	return function;
}

static mullion_status report(mullion_domain domain, void *user, const mullion_arguments *arguments, mullion_value *result)
{
	(void)domain;
	(void)user;
	(void)arguments;
	if (how == LEAVE)
		longjmp(outside, 1);
	if (how == INNER)
		longjmp(within, 1);
	if (how == LEAVE_WITH_MASK)
		siglongjmp(outside_with_mask, 1);
	if (how == RAISE)
		raise(SIGUSR1);
	*result = mullion_integer(7);
	return MULLION_OK;
}

/* Called by `nest`: calls `report` of the same domain, which comes back here by a jump. */
static mullion_status nested(mullion_domain domain, void *user, const mullion_arguments *arguments, mullion_value *result)
{
	mullion_value one = mullion_integer(1);
	mullion_function function = find(domain, "report");
	mullion_call_limits limits = MULLION_CALL_LIMITS_DEFAULT;
	(void)user;
	(void)arguments;
	*result = mullion_integer(3);
	if (how != OUTER)
		return MULLION_OK;
	limits.nanoseconds = 1000000;
	how = INNER;
	if (!setjmp(within)) {
		mullion_call_limited(function, &one, 1, &limits, NULL);
		EXPECT(!"it returned");
	}
	how = STAY;
	FAILS(MULLION_ABANDONED, mullion_call(function, &one, 1, NULL));
	return MULLION_OK;
}

static mullion_domain load(void)
{
	mullion_domain domain;
	OK(mullion_domain_load(image, NULL, list, NULL, &domain));
	return domain;
}

static mullion_status call(mullion_function function)
{
	mullion_value one = mullion_integer(1);
	return mullion_call(function, &one, 1, NULL);
}

/* Leaves the call that it makes. */
static void leave(mullion_function function, const mullion_call_limits *limits)
{
	mullion_value one = mullion_integer(1);
	how = LEAVE;
	if (!setjmp(outside)) {
		mullion_call_limited(function, &one, 1, limits, NULL);
		EXPECT(!"it returned");
	}
	how = STAY;
}

/* Calls from deep in the stack, where the call was that was left, or over what is left of it. */
static void __attribute__((noinline)) deep(mullion_function function, int levels, int fill)
{
	volatile char room[1 << 12];
	if (fill)
		memset((char *)room, 0x41 + levels % 16, sizeof room);
	else
		room[0] = 1;
	if (levels)
		deep(function, levels - 1, fill);
	FAILS(MULLION_ABANDONED, call(function));
	EXPECT(room[0]);
}

static void *left(void *argument)
{
	mullion_domain domain = *(mullion_domain *)argument, other;
	mullion_function function = find(domain, "report"), add = find(domain, "add");
	int ended;

	OK(call(function));
	leave(function, NULL);
	FAILS(MULLION_ABANDONED, call(function));
	FAILS(MULLION_ABANDONED, call(add));
	deep(function, 16, 0);
	deep(function, 16, 1);
	deep(function, 16, 0);
	FAILS(MULLION_ABANDONED, mullion_domain_load(image, NULL, list, NULL, &other));
	/* What it was in, it seems to be in. */
	FAILS(MULLION_IN_USE, mullion_domain_restart(domain));
	FAILS(MULLION_IN_USE, mullion_domain_restart_when_idle(domain, 1000000));
	FAILS(MULLION_IN_USE, mullion_domain_unload(domain));
	OK(mullion_domain_has_ended(domain, &ended));
	EXPECT(!ended);
	return NULL;
}

static void on_a_thread(void *(*run)(void *), mullion_domain *domain)
{
	pthread_t thread;
	EXPECT(!pthread_create(&thread, NULL, run, domain));
	EXPECT(!pthread_join(thread, NULL));
}

/* A call with limits is left, from the outermost call and from one that is nested. */
static void *left_limited(void *argument)
{
	mullion_call_limits limits = MULLION_CALL_LIMITS_DEFAULT;
	mullion_domain *domain = argument;
	mullion_function function = find(*domain, "report");
	limits.nanoseconds = 1000000;
	limits.gate_calls = 1;
	leave(function, &limits);
	FAILS(MULLION_ABANDONED, mullion_call_limited(function, NULL, 0, &limits, NULL));
	deep(function, 16, 0);
	return NULL;
}

/* A host function that was jumped to returns: the call that it belongs to ends, and the thread goes on. */
static void *left_within(void *argument)
{
	mullion_domain *domain = argument;
	mullion_function nest = find(*domain, "nest"), function = find(*domain, "report");
	int i;
	how = OUTER;
	FAILS(MULLION_ABANDONED, call(nest));
	for (i = 0; i < 100000; i++)
		OK(call(function));
	OK(call(nest));
	return NULL;
}

/* siglongjmp out of a host function, or (RAISE) out of a handler that interrupts one: the mask is the one from before. */
static void leave_with_mask(mullion_domain domain, int by)
{
	mullion_function function = find(domain, "report"), add = find(domain, "add");
	sigset_t before, after;
	EXPECT(!pthread_sigmask(SIG_BLOCK, NULL, &before));
	how = by;
	if (!sigsetjmp(outside_with_mask, 1)) {
		sigset_t more;
		sigemptyset(&more);
		sigaddset(&more, SIGUSR2);
		EXPECT(!pthread_sigmask(SIG_BLOCK, &more, NULL));
		call(function);
		EXPECT(!"it returned");
	}
	how = STAY;
	EXPECT(!pthread_sigmask(SIG_BLOCK, NULL, &after));
	EXPECT(!sigismember(&after, SIGUSR1) && !sigismember(&after, SIGUSR2) && !sigismember(&before, SIGUSR2));
	FAILS(MULLION_ABANDONED, call(function));
	FAILS(MULLION_ABANDONED, call(add));
	deep(function, 16, 0);
	deep(function, 16, 1);
}

static void *left_with_mask(void *argument)
{
	leave_with_mask(*(mullion_domain *)argument, LEAVE_WITH_MASK);
	return NULL;
}

static void *left_by_handler(void *argument)
{
	base = 0;
	leave_with_mask(*(mullion_domain *)argument, RAISE);
	return NULL;
}

static int limited;

/* A handler that interrupts the domain's own code, and leaves all of the call: found out if the call has limits. The
 * domain stays in use. */
static void *left_while_it_runs(void *argument)
{
	mullion_function report = find(*(mullion_domain *)argument, "report");
	mullion_function spin = find(*(mullion_domain *)argument, "spin");
	OK(call(report));
	if (!sigsetjmp(outside_with_mask, 1)) {
		__atomic_store_n(&interrupted, 0, __ATOMIC_SEQ_CST);
		mullion_call_limits limits = MULLION_CALL_LIMITS_DEFAULT;
		limits.nanoseconds = UINT64_C(100000000000);
		mullion_call_limited(spin, NULL, 0, limited ? &limits : NULL, NULL);
		EXPECT(!"it returned");
	}
	FAILS(MULLION_IN_USE, mullion_domain_restart(*(mullion_domain *)argument));
	FAILS(MULLION_IN_USE, mullion_domain_unload(*(mullion_domain *)argument));
	if (limited) {
		FAILS(MULLION_ABANDONED, call(report));
		deep(report, 16, 0);
		deep(report, 16, 1);
	} else {
		OK(call(report));
	}
	return NULL;
}

static void signalled(mullion_domain *domain)
{
	pthread_t thread;
	OK(mullion_domain_base(*domain, &base));
	EXPECT(base);
	__atomic_store_n(&interrupted, 1, __ATOMIC_SEQ_CST);
	EXPECT(!pthread_create(&thread, NULL, left_while_it_runs, domain));
	/* The thread takes it back before its call. */
	while (__atomic_load_n(&interrupted, __ATOMIC_SEQ_CST))
		sched_yield();
	while (!__atomic_load_n(&interrupted, __ATOMIC_SEQ_CST)) {
		EXPECT(!pthread_kill(thread, SIGUSR1));
		sched_yield();
	}
	EXPECT(!pthread_join(thread, NULL));
	base = 0;
}

int main(int count, char **arguments)
{
	mullion_domain domain;
	EXPECT(count == 2);
	OK(mullion_image_open(arguments[1], &image));
	OK(mullion_imports_new(&list));
	OK(mullion_imports_add(list, "host_report", report, NULL));
	OK(mullion_imports_add(list, "host_nested", nested, NULL));

	/* Of other threads, and in them, nothing has changed. */
	domain = load();
	on_a_thread(left, &domain);
	OK(call(find(domain, "report")));
	on_a_thread(left_limited, &domain);
	OK(call(find(domain, "report")));
	domain = load();
	on_a_thread(left_within, &domain);
	OK(mullion_domain_restart(domain));
	OK(call(find(domain, "report")));
	OK(mullion_domain_unload(domain));
	{
		struct sigaction action;
		memset(&action, 0, sizeof action);
		action.sa_sigaction = handler;
		action.sa_flags = SA_SIGINFO | SA_ONSTACK;
		EXPECT(!sigaction(SIGUSR1, &action, NULL));
	}
	domain = load();
	on_a_thread(left_with_mask, &domain);
	on_a_thread(left_by_handler, &domain);
	OK(call(find(domain, "report")));
	for (limited = 0; limited < 2; limited++) {
		signalled(&domain);
		OK(call(find(domain, "report")));
		domain = load();
	}
	/* Other threads: of those, and of other domains. */
	OK(call(find(domain, "report")));
	domain = load();
	OK(call(find(domain, "report")));
	OK(mullion_domain_unload(domain));
	/* The main thread as well, and the end of the process. */
	domain = load();
	left(&domain);
	puts("all as the header says");
	return 0;
}
