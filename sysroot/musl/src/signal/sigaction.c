/* In musl's place: handlers are kept here (mullion_signal.h). The host is told what it must know to answer signals
 * that have no handler: which are ignored. It takes those with a handler for ignored, too. */
#include <errno.h>
#include <string.h>
#include <ucontext.h>
#include "syscall.h"
#include "pthread_impl.h"
#include "libc.h"
#include "ksigaction.h"
#include "mullion_signal.h"

static struct sigaction actions[_NSIG];
static struct mullion_signals first;

volatile int __eintr_valid_flag;

hidden char __mullion_is_program;

struct mullion_signals *__mullion_signals(void)
{
	struct mullion_signals *own = __mullion_signals_of_thread ? __mullion_signals_of_thread() : 0;
	return own ? own : &first;
}

static int handles(int signal)
{
	return (uintptr_t)actions[signal].sa_handler > 1;
}

void __get_handler_set(sigset_t *set)
{
	memset(set, 0, _NSIG / 8);
	for (int signal = 1; signal < _NSIG; signal++)
		if (handles(signal))
			set->__bits[0] |= BIT(signal);
}

int __libc_sigaction(int signal, const struct sigaction *restrict new, struct sigaction *restrict old)
{
	struct sigaction before = actions[signal];
	if (new) {
		struct k_sigaction told = { .handler = new->sa_handler };
		if ((uintptr_t)new->sa_handler > 1)
			told.handler = SIG_IGN;
		long wrong = __syscall(SYS_rt_sigaction, signal, &told, 0, _NSIG / 8);
		if (wrong)
			return __syscall_ret(wrong);
		actions[signal] = *new;
		if (new->sa_handler == SIG_IGN)
			__mullion_signals()->pending &= ~BIT(signal);
	}
	if (old)
		*old = before;
	return 0;
}

int __sigaction(int signal, const struct sigaction *restrict new, struct sigaction *restrict old)
{
	if (signal - 32U < 3 || signal - 1U >= _NSIG - 1) {
		errno = EINVAL;
		return -1;
	}
	return __libc_sigaction(signal, new, old);
}

weak_alias(__sigaction, sigaction);

static void run(int signal, int code)
{
	struct mullion_signals *own = __mullion_signals();
	struct sigaction action = actions[signal];
	unsigned long before = own->blocked;
	int place = own->depth < NESTED ? own->depth : 0;
	if (action.sa_flags & SA_RESETHAND) {
		struct sigaction initial = { .sa_handler = SIG_DFL };
		__libc_sigaction(signal, &initial, 0);
	}
	own->blocked |= action.sa_mask.__bits[0];
	if (!(action.sa_flags & SA_NODEFER))
		own->blocked |= BIT(signal);
	own->running[place].place = (unsigned long)&action;
	own->running[place].before = before;
	own->depth = place + 1;
	if (action.sa_flags & SA_SIGINFO) {
		siginfo_t information = { .si_signo = signal, .si_code = code };
		ucontext_t context = { 0 };
		information.si_pid = 1;
		context.uc_sigmask.__bits[0] = before;
		action.sa_sigaction(signal, &information, &context);
	} else {
		action.sa_handler(signal);
	}
	own->depth = place;
	own->blocked = before;
}

hidden void __mullion_left(unsigned long place)
{
	struct mullion_signals *own = __mullion_signals();
	while (own->depth && own->running[own->depth - 1].place < place)
		own->blocked = own->running[--own->depth].before;
}

hidden long __mullion_signal(int signal, int code)
{
	if (signal - 1U >= _NSIG - 1)
		return signal ? -EINVAL : 0;
	int keeps = signal != SIGKILL && signal != SIGSTOP;
	if (keeps && actions[signal].sa_handler == SIG_IGN)
		return 0;
	if (keeps && __mullion_signals()->blocked & BIT(signal)) {
		__mullion_signals()->pending |= BIT(signal);
		return 0;
	}
	if (!handles(signal))
		return __syscall(SYS_kill, 1, signal);
	run(signal, code);
	__mullion_flush();
	return 1;
}

hidden int __mullion_flush(void)
{
	int ran = 0;
	for (unsigned long ready; (ready = __mullion_signals()->pending & ~__mullion_signals()->blocked);) {
		int signal = __builtin_ctzl(ready) + 1;
		__mullion_signals()->pending &= ~BIT(signal);
		ran += __mullion_signal(signal, SI_USER) > 0;
	}
	return ran;
}

hidden void __mullion_broken_pipe(void)
{
	if (__mullion_is_program || handles(SIGPIPE))
		__mullion_signal(SIGPIPE, SI_USER);
}
