// What the compiler and its headers expect of a C++ library, for modules of checked code: they have no exceptions, so
// an error is a trap, which ends the call into the module. Memory is the host's, by malloc.
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <new>
#include <bits/functexcept.h>

extern "C" {

[[noreturn]] void __cxa_pure_virtual() { __builtin_trap(); }
[[noreturn]] void __cxa_deleted_virtual() { __builtin_trap(); }
[[noreturn]] void __cxa_throw_bad_array_new_length() { __builtin_trap(); }
[[noreturn]] void __cxa_bad_cast() { __builtin_trap(); }
[[noreturn]] void __cxa_bad_typeid() { __builtin_trap(); }

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

const nothrow_t nothrow{};

void terminate() noexcept { __builtin_trap(); }

void __throw_bad_exception() { __builtin_trap(); }
void __throw_bad_alloc() { __builtin_trap(); }
void __throw_bad_array_new_length() { __builtin_trap(); }
void __throw_bad_cast() { __builtin_trap(); }
void __throw_bad_typeid() { __builtin_trap(); }
void __throw_logic_error(const char *) { __builtin_trap(); }
void __throw_domain_error(const char *) { __builtin_trap(); }
void __throw_invalid_argument(const char *) { __builtin_trap(); }
void __throw_length_error(const char *) { __builtin_trap(); }
void __throw_out_of_range(const char *) { __builtin_trap(); }
void __throw_out_of_range_fmt(const char *, ...) { __builtin_trap(); }
void __throw_runtime_error(const char *) { __builtin_trap(); }
void __throw_range_error(const char *) { __builtin_trap(); }
void __throw_overflow_error(const char *) { __builtin_trap(); }
void __throw_underflow_error(const char *) { __builtin_trap(); }
void __throw_bad_function_call() { __builtin_trap(); }
void __throw_ios_failure(const char *) { __builtin_trap(); }
void __throw_system_error(int) { __builtin_trap(); }
void __throw_future_error(int) { __builtin_trap(); }

} // namespace std

namespace {

void *allocate(std::size_t size) noexcept { return std::malloc(size ? size : 1); }

void *allocate(std::size_t size, std::align_val_t alignment) noexcept
{
	auto unit = std::size_t(alignment);
	return std::aligned_alloc(unit, (size + unit - 1) & -unit);
}

void *surely(void *memory)
{
	if (!memory)
		__builtin_trap();
	return memory;
}

} // namespace

using std::align_val_t;
using std::nothrow_t;
using std::size_t;

void *operator new(size_t size) { return surely(allocate(size)); }
void *operator new[](size_t size) { return surely(allocate(size)); }
void *operator new(size_t size, const nothrow_t &) noexcept { return allocate(size); }
void *operator new[](size_t size, const nothrow_t &) noexcept { return allocate(size); }
void *operator new(size_t size, align_val_t unit) { return surely(allocate(size, unit)); }
void *operator new[](size_t size, align_val_t unit) { return surely(allocate(size, unit)); }
void *operator new(size_t size, align_val_t unit, const nothrow_t &) noexcept { return allocate(size, unit); }
void *operator new[](size_t size, align_val_t unit, const nothrow_t &) noexcept { return allocate(size, unit); }
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
void operator delete[](void *memory, size_t) noexcept { std::free(memory); }
void operator delete(void *memory, const nothrow_t &) noexcept { std::free(memory); }
void operator delete[](void *memory, const nothrow_t &) noexcept { std::free(memory); }
void operator delete(void *memory, align_val_t) noexcept { std::free(memory); }
void operator delete[](void *memory, align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, size_t, align_val_t) noexcept { std::free(memory); }
void operator delete[](void *memory, size_t, align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, align_val_t, const nothrow_t &) noexcept { std::free(memory); }
void operator delete[](void *memory, align_val_t, const nothrow_t &) noexcept { std::free(memory); }
