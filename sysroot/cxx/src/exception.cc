// Throwing and catching (Itanium C++ ABI, 2.4 and 2.5), in two phases: the
// search for a handler changes nothing; then each frame on the way is entered
// at its landing pad, by a gate of the run time that drops the return addresses
// of those below and demands that the pad carries a label. Behind the word wall
// the three functions are the module's own (sysroot/word/jumps.s), over smaller gates.
#include "exception.h"
#include "failure.h"

#include <cstdlib>
#include <exception>
#include <bits/cxxabi_forced.h>
#include <bits/cxxabi_init_exception.h>
#include <new>

using mullion::Exception;
using mullion::Frame;
using mullion::Landing;

extern "C" {
int __mullion_setjmp(std::uint64_t (&buffer)[8]) __attribute__((returns_twice));
std::uint64_t __mullion_control_read(std::uint64_t depth);
[[noreturn]] void __mullion_control_unwind(std::uint64_t depth, std::uint64_t target, std::uint64_t stack, const std::uint64_t (&registers)[6]);
void *__cxa_begin_catch(void *) noexcept;
}

namespace {

// A module is no executable, though the library is compiled as for one.
#ifdef __mullion_word__
#define OF_A_MODULE [[gnu::tls_model("initial-exec")]]
#else
#define OF_A_MODULE
#endif

OF_A_MODULE thread_local Exception *caught;
OF_A_MODULE thread_local int uncaught;

[[noreturn]] void give_up(Exception *exception)
{
	__cxa_begin_catch(exception);
	std::terminate();
}

// Finds the handler if `search`, then runs what is on the way to it. Not
// inlined: the gates count return addresses from this function's frame on.
[[noreturn, gnu::noinline]] void raise(Exception *exception, bool search)
{
	std::uint64_t self[8];
	__mullion_setjmp(self);
	for (;;) {
		Frame frame{self[6], {}, 0, 0, 0, nullptr};
		frame.registers[mullion::RBX] = self[0];
		frame.registers[mullion::RBP] = self[1];
		frame.registers[mullion::R12] = self[2];
		frame.registers[mullion::R13] = self[3];
		frame.registers[mullion::R15] = self[4];
		for (std::uint64_t depth = 1;; depth++) {
			std::uint64_t place = self[5] / 8 - depth;
			std::uint64_t registers[mullion::REGISTERS];
			// What nobody describes (or the host) is no way for an exception.
			if (!frame.address || !mullion::describe(frame, registers))
				give_up(exception);
			// The first frame is this function itself.
			Landing landing{Landing::NOTHING, 0, 0, nullptr};
			if (depth > 1)
				landing = mullion::landing(frame, *exception);
			if (search && landing.kind == Landing::HANDLER) {
				exception->place = place;
				exception->pad = landing.pad;
				exception->selector = landing.selector;
				exception->seen = landing.seen;
				break;
			}
			if (landing.kind == Landing::TERMINATE)
				give_up(exception);
			bool here = place == exception->place;
			if (!search && (here || landing.kind == Landing::CLEANUP)) {
				const std::uint64_t on[6] = {
					frame.registers[mullion::RBX], frame.registers[mullion::RBP],
					frame.registers[mullion::R12], frame.registers[mullion::R13],
					reinterpret_cast<std::uint64_t>(exception), std::uint64_t(here ? exception->selector : 0)};
				__mullion_control_unwind(depth, here ? exception->pad : landing.pad, frame.registers[mullion::R15] + frame.arguments, on);
			}
			frame.address = __mullion_control_read(depth);
			__builtin_memcpy(frame.registers, registers, sizeof registers);
		}
		search = false;
	}
}

// For std::bad_alloc, where there is no memory for an exception either.
struct alignas(16) Spare {
	char bytes[256];
};
enum { SPARES = 16 };
Spare spares[SPARES];
unsigned spares_taken;

void *take_spare(std::size_t size)
{
	unsigned taken = __atomic_load_n(&spares_taken, __ATOMIC_RELAXED);
	while (size <= sizeof(Spare) && taken != (1u << SPARES) - 1) {
		unsigned first = ~taken & (taken + 1);
		if (__atomic_compare_exchange_n(&spares_taken, &taken, taken | first, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return &spares[__builtin_ctz(first)];
	}
	return nullptr;
}

void release(void *memory)
{
	std::size_t number = (reinterpret_cast<std::uintptr_t>(memory) - reinterpret_cast<std::uintptr_t>(spares)) / sizeof(Spare);
	if (number < SPARES)
		__atomic_and_fetch(&spares_taken, ~(1u << number), __ATOMIC_RELEASE);
	else
		std::free(memory);
}

// One user of the object less.
void leave(Exception *owner)
{
	if (__atomic_sub_fetch(&owner->users, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	if (owner->destroy)
		owner->destroy(owner->object());
	release(owner);
}

} // namespace

extern "C" {

void *__cxa_allocate_exception(std::size_t size) noexcept
{
	void *memory = std::malloc(sizeof(Exception) + size);
	if (!memory)
		memory = take_spare(sizeof(Exception) + size);
	if (!memory)
		std::terminate();
	__builtin_memset(memory, 0, sizeof(Exception));
	return static_cast<Exception *>(memory)->object();
}

// For std::make_exception_ptr: an object that is not thrown yet.
__cxxabiv1::__cxa_refcounted_exception *__cxxabiv1::__cxa_init_primary_exception(void *object, std::type_info *type, void (*destroy)(void *)) noexcept
{
	Exception *exception = static_cast<Exception *>(object) - 1;
	exception->type = type;
	exception->destroy = destroy;
	return reinterpret_cast<__cxa_refcounted_exception *>(exception);
}

void __cxa_free_exception(void *object) noexcept { release(static_cast<Exception *>(object) - 1); }

[[noreturn]] void __cxa_throw(void *object, std::type_info *type, void (*destroy)(void *))
{
	Exception *exception = static_cast<Exception *>(object) - 1;
	exception->type = type;
	exception->destroy = destroy;
	exception->users = 1;
#ifdef __mullion_word__
	exception->thrown = __mullion_control_read(1);
#endif
	uncaught++;
	raise(exception, true);
}

// The end of a landing pad that was not the handler.
[[noreturn]] void _Unwind_Resume(void *exception) { raise(static_cast<Exception *>(exception), false); }

void *__cxa_get_exception_ptr(void *exception) noexcept { return static_cast<Exception *>(exception)->seen; }

void *__cxa_begin_catch(void *pointer) noexcept
{
	Exception *exception = static_cast<Exception *>(pointer);
	exception->handlers = (exception->handlers < 0 ? -exception->handlers : exception->handlers) + 1;
	uncaught--;
	if (caught != exception) {
		exception->outer = caught;
		caught = exception;
	}
	return exception->seen;
}

void __cxa_end_catch()
{
	Exception *exception = caught;
	if (!exception)
		return;
	if (exception->handlers < 0) {
		// On its way again: it stays, and is no longer caught here.
		if (++exception->handlers == 0)
			caught = exception->outer;
		return;
	}
	if (--exception->handlers)
		return;
	caught = exception->outer;
	Exception *owner = exception->owner;
	if (owner)
		release(exception);
	leave(owner ? owner : exception);
}

[[noreturn]] void __cxa_rethrow()
{
	Exception *exception = caught;
	if (!exception)
		std::terminate();
	exception->handlers = -exception->handlers;
	uncaught++;
	raise(exception, true);
}

std::type_info *__cxa_current_exception_type() { return caught ? const_cast<std::type_info *>(caught->type) : nullptr; }

[[noreturn]] void __cxa_call_unexpected(void *exception)
{
	__cxa_begin_catch(exception);
	std::terminate();
}

[[noreturn]] void __cxa_call_terminate(void *exception) noexcept
{
	__cxa_begin_catch(exception);
	std::terminate();
}

// Named by the tables; `raise` reads them itself.
int __gxx_personality_v0() { mullion::fail("a personality routine was called"); }

} // extern "C"

// The headers let it pass everywhere; nobody throws it, for there are no threads to cancel.
__cxxabiv1::__forced_unwind::~__forced_unwind() noexcept = default;

const char *mullion::what_is_caught()
{
	if (!caught)
		return nullptr;
	void *object = caught->object();
	if (typeid(std::exception).__do_catch(caught->type, &object, 1))
		return static_cast<std::exception *>(object)->what();
	return caught->type->name();
}

std::uint64_t mullion::where_it_was_thrown()
{
	return !caught ? 0 : caught->owner ? caught->owner->thrown : caught->thrown;
}

namespace std {

int uncaught_exceptions() noexcept { return uncaught; }
bool uncaught_exception() noexcept { return uncaught > 0; }

nested_exception::~nested_exception() noexcept = default;

// An exception_ptr points to the object, which is a user of it.
namespace __exception_ptr {

exception_ptr::exception_ptr(void *object) noexcept : _M_exception_object(object)
{
	if (object)
		_M_addref();
}

void exception_ptr::_M_addref() noexcept
{
	if (_M_exception_object)
		__atomic_add_fetch(&(static_cast<Exception *>(_M_exception_object) - 1)->users, 1, __ATOMIC_RELAXED);
}

void exception_ptr::_M_release() noexcept
{
	if (_M_exception_object)
		leave(static_cast<Exception *>(_M_exception_object) - 1);
	_M_exception_object = nullptr;
}

void *exception_ptr::_M_get() const noexcept { return _M_exception_object; }

const type_info *exception_ptr::__cxa_exception_type() const noexcept
{
	return (static_cast<Exception *>(_M_exception_object) - 1)->type;
}

} // namespace __exception_ptr

exception_ptr current_exception() noexcept
{
	return caught ? exception_ptr(caught->object()) : exception_ptr();
}

// Each throw has a state of its own, so several may have one object.
[[noreturn]] void rethrow_exception(exception_ptr pointer)
{
	Exception *owner = static_cast<Exception *>(pointer._M_get()) - 1;
	Exception *thrown = static_cast<Exception *>(__cxa_allocate_exception(0)) - 1;
	thrown->type = owner->type;
	thrown->owner = owner;
	__atomic_add_fetch(&owner->users, 1, __ATOMIC_RELAXED);
	uncaught++;
	raise(thrown, true);
}

} // namespace std
