// What the compiler itself calls (Itanium C++ ABI, 3.3), for modules of checked code. An end by terminate is a trap, which
// ends the call into the module.
#include "../cxx/src/exception.h"
#include "../cxx/src/failure.h"

#include <cstdint>
#include <exception>
#include <new>
#include <typeinfo>
#include <bits/functexcept.h>

// A trap (sysroot/word/jumps.s): the run time reads both arguments.
extern "C" [[noreturn]] void __mullion_uncaught(const char *text, std::uint64_t from);

namespace mullion {

void fail(const char *, const char *) { __builtin_trap(); }

namespace {

// Ends the call. The report has `what`, and the place that `from` is behind (docs/word-form.md, "Traps"): the text
// lies on the stack, of which the report keeps a part.
[[noreturn, gnu::noinline]] void end(const char *what, std::uint64_t from)
{
	alignas(8) char text[256] = {};
	for (unsigned at = 0; what[at] && at < sizeof text - 1; at++)
		text[at] = what[at];
	__mullion_uncaught(text, from);
}

} // namespace

} // namespace mullion

extern "C" {

[[noreturn]] void __cxa_pure_virtual() { mullion::fail("pure virtual function called"); }
[[noreturn]] void __cxa_deleted_virtual() { mullion::fail("deleted virtual function called"); }
[[noreturn]] void __cxa_throw_bad_array_new_length() { throw std::bad_array_new_length(); }
[[noreturn]] void __cxa_bad_cast() { throw std::bad_cast(); }
[[noreturn]] void __cxa_bad_typeid() { throw std::bad_typeid(); }

// First byte: initialised. Second half: some thread is doing it.
int __cxa_guard_acquire(std::uint64_t *guard)
{
	auto done = reinterpret_cast<std::uint8_t *>(guard);
	auto busy = reinterpret_cast<std::uint32_t *>(guard) + 1;
	while (!__atomic_load_n(done, __ATOMIC_ACQUIRE)) {
		std::uint32_t nobody = 0;
		if (__atomic_compare_exchange_n(busy, &nobody, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			if (!__atomic_load_n(done, __ATOMIC_ACQUIRE))
				return 1;
			__atomic_store_n(busy, 0, __ATOMIC_RELEASE);
		} else {
			__builtin_ia32_pause();
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
	if (const char *what = mullion::what_is_caught())
		mullion::end(what, mullion::where_it_was_thrown());
	mullion::fail("terminate called");
}

// Of streams, locks and futures, which a module does not have.
void __throw_ios_failure(const char *) { __builtin_trap(); }
void __throw_system_error(int) { __builtin_trap(); }
void __throw_future_error(int) { __builtin_trap(); }

} // namespace std
