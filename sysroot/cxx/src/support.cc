// What the compiler itself calls (Itanium C++ ABI, 3.3): guards of function-local
// statics, calls of pure virtual functions, the end by terminate.
#include "exception.h"
#include "failure.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <typeinfo>

namespace mullion {

void fail(const char *what, const char *detail)
{
	if (detail)
		std::fprintf(stderr, "%s: %s\n", what, detail);
	else
		std::fprintf(stderr, "%s\n", what);
	std::abort();
}

} // namespace mullion

extern "C" {

[[noreturn]] void __cxa_pure_virtual() { mullion::fail("pure virtual function called"); }
[[noreturn]] void __cxa_deleted_virtual() { mullion::fail("deleted virtual function called"); }
[[noreturn]] void __cxa_throw_bad_array_new_length() { throw std::bad_array_new_length(); }
[[noreturn]] void __cxa_bad_cast() { throw std::bad_cast(); }
[[noreturn]] void __cxa_bad_typeid() { throw std::bad_typeid(); }

// First byte: initialised. Second half: the thread that is doing it, by its
// thread pointer's offset in the window.
int __cxa_guard_acquire(std::uint64_t *guard)
{
	auto done = reinterpret_cast<std::uint8_t *>(guard);
	auto owner = reinterpret_cast<std::uint32_t *>(guard) + 1;
	auto self = std::uint32_t(reinterpret_cast<std::uintptr_t>(pthread_self()));
	while (!__atomic_load_n(done, __ATOMIC_ACQUIRE)) {
		std::uint32_t nobody = 0;
		if (__atomic_compare_exchange_n(owner, &nobody, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			if (!__atomic_load_n(done, __ATOMIC_ACQUIRE))
				return 1;
			__atomic_store_n(owner, 0, __ATOMIC_RELEASE);
		} else if (nobody == self) {
			mullion::fail("a function-local static is initialised by its own initialiser");
		} else {
			sched_yield();
		}
	}
	return 0;
}

void __cxa_guard_abort(std::uint64_t *guard)
{
	__atomic_store_n(reinterpret_cast<std::uint32_t *>(guard) + 1, 0, __ATOMIC_RELEASE);
}

void __cxa_guard_release(std::uint64_t *guard)
{
	__atomic_store_n(reinterpret_cast<std::uint8_t *>(guard), 1, __ATOMIC_RELEASE);
	__cxa_guard_abort(guard);
}

} // extern "C"

namespace std {

namespace {
terminate_handler handler;
}

terminate_handler get_terminate() noexcept { return handler; }

terminate_handler set_terminate(terminate_handler next) noexcept
{
	terminate_handler before = handler;
	handler = next;
	return before;
}

void terminate() noexcept
{
	if (handler)
		handler();
	mullion::fail("terminate called", mullion::what_is_caught());
}

} // namespace std
