// What the compiler itself calls (Itanium C++ ABI, 3.3): guards of function-local
// statics, calls of pure virtual functions, the end by terminate.
#include "exception.h"
#include "failure.h"

#include <cstdint>
#include <exception>
#include <new>
#include <typeinfo>

extern "C" {

char __libc_single_threaded = 1;

[[noreturn]] void __cxa_pure_virtual() { mullion::fail("pure virtual function called"); }
[[noreturn]] void __cxa_deleted_virtual() { mullion::fail("deleted virtual function called"); }
[[noreturn]] void __cxa_throw_bad_array_new_length() { throw std::bad_array_new_length(); }
[[noreturn]] void __cxa_bad_cast() { throw std::bad_cast(); }
[[noreturn]] void __cxa_bad_typeid() { throw std::bad_typeid(); }

// First byte: initialised. Second byte: being initialised.
int __cxa_guard_acquire(std::uint8_t *guard)
{
	if (guard[0])
		return 0;
	if (guard[1])
		mullion::fail("a function-local static is initialised by its own initialiser");
	guard[1] = 1;
	return 1;
}

void __cxa_guard_release(std::uint8_t *guard)
{
	guard[1] = 0;
	guard[0] = 1;
}

void __cxa_guard_abort(std::uint8_t *guard) { guard[1] = 0; }

int __cxa_atexit(void (*)(void *), void *, void *);

// Destructors of thread-locals: the one thread ends with the program.
int __cxa_thread_atexit(void (*destructor)(void *), void *object, void *image)
{
	return __cxa_atexit(destructor, object, image);
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
