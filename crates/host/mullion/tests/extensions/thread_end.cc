// What belongs to a thread, and is destroyed when a thread of the host ends.
#include <cstdint>
#include <cstdlib>
#include <mullion/ext.h>
#include <pthread.h>
#include <threads.h>

MULLION_IMPORT(void, told, (std::uint64_t what));
MULLION_IMPORT(void, panics, (void));
MULLION_IMPORT(void, enters_again, (void));

namespace {
enum Manner { TELL, FAULT, LOOP, PANIC, ENTER, MORE, EXIT };

struct Local {
	std::uint64_t tag = 0, manner = TELL;
	~Local();
};

thread_local Local first, second;

Local &made_late()
{
	thread_local Local late;
	return late;
}

Local::~Local()
{
	switch (manner) {
	case FAULT:
		*(volatile int *)8 = 1;
		break;
	case LOOP:
		for (volatile int i = 0;; i++)
			;
	case PANIC:
		panics();
		break;
	case ENTER:
		enters_again();
		break;
	case MORE:
		made_late().tag = tag + 1;
		break;
	case EXIT:
		std::exit(3);
	default:
		break;
	}
	told(tag);
}

pthread_key_t key;
tss_t other;
std::uint64_t destroyed;

void at_end(void *value)
{
	__atomic_fetch_add(&destroyed, std::uint64_t(reinterpret_cast<std::uintptr_t>(value)), __ATOMIC_RELAXED);
}

[[gnu::constructor]] void make_keys()
{
	if (pthread_key_create(&key, at_end) || tss_create(&other, at_end) != thrd_success)
		std::abort();
}
} // namespace

MULLION_EXPORT(void, touch, (std::uint64_t tag, std::uint64_t manner))
{
	first.tag = tag;
	second.tag = tag + 100;
	second.manner = manner;
}

MULLION_EXPORT(void, set, (std::uint64_t value))
{
	pthread_setspecific(key, reinterpret_cast<void *>(value));
	tss_set(other, reinterpret_cast<void *>(1000 * value));
}
MULLION_EXPORT(std::uint64_t, get, (void))
{
	return std::uint64_t(reinterpret_cast<std::uintptr_t>(pthread_getspecific(key)));
}
MULLION_EXPORT(void, renew_key, (void))
{
	pthread_key_delete(key);
	if (pthread_key_create(&key, at_end))
		std::abort();
}
MULLION_EXPORT(std::uint64_t, sum_of_destroyed, (void)) { return destroyed; }
