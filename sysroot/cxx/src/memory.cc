// operator new and delete over the C library's allocator.
#include <cstdlib>
#include <new>

namespace std {

const nothrow_t nothrow{};

namespace {
new_handler handler;
}

new_handler get_new_handler() noexcept { return handler; }

new_handler set_new_handler(new_handler next) noexcept
{
	new_handler before = handler;
	handler = next;
	return before;
}

} // namespace std

namespace {

template <typename Allocate>
void *allocate(Allocate attempt)
{
	for (;;) {
		if (void *memory = attempt())
			return memory;
		std::new_handler handler = std::get_new_handler();
		if (!handler)
			return nullptr;
		handler();
	}
}

void *plain(std::size_t size)
{
	return allocate([=] { return std::malloc(size ? size : 1); });
}

void *aligned(std::size_t size, std::align_val_t alignment)
{
	std::size_t unit = static_cast<std::size_t>(alignment);
	std::size_t whole = (size + unit - 1) & ~(unit - 1);
	return allocate([=] { return whole < size ? nullptr : std::aligned_alloc(unit, whole ? whole : unit); });
}

void *or_fail(void *memory)
{
	if (!memory)
		throw std::bad_alloc();
	return memory;
}

} // namespace

// A program may replace any of these. So all are weak, and each of them but the four that work by themselves goes through
// the one that the standard names, which may be the program's ([new.delete]).
#define REPLACEABLE __attribute__((weak))

REPLACEABLE void *operator new(std::size_t size) { return or_fail(plain(size)); }
REPLACEABLE void *operator new(std::size_t size, std::align_val_t unit) { return or_fail(aligned(size, unit)); }
REPLACEABLE void operator delete(void *p) noexcept { std::free(p); }
REPLACEABLE void operator delete(void *p, std::align_val_t) noexcept { std::free(p); }

REPLACEABLE void *operator new[](std::size_t size) { return ::operator new(size); }
REPLACEABLE void *operator new[](std::size_t size, std::align_val_t unit) { return ::operator new(size, unit); }

namespace {

template <typename Allocate>
void *or_null(Allocate attempt) noexcept
{
	try {
		return attempt();
	} catch (...) {
		return nullptr;
	}
}

} // namespace

REPLACEABLE void *operator new(std::size_t size, const std::nothrow_t &) noexcept
{
	return or_null([=] { return ::operator new(size); });
}

REPLACEABLE void *operator new[](std::size_t size, const std::nothrow_t &) noexcept
{
	return or_null([=] { return ::operator new[](size); });
}

REPLACEABLE void *operator new(std::size_t size, std::align_val_t unit, const std::nothrow_t &) noexcept
{
	return or_null([=] { return ::operator new(size, unit); });
}

REPLACEABLE void *operator new[](std::size_t size, std::align_val_t unit, const std::nothrow_t &) noexcept
{
	return or_null([=] { return ::operator new[](size, unit); });
}

REPLACEABLE void operator delete[](void *p) noexcept { ::operator delete(p); }
REPLACEABLE void operator delete(void *p, std::size_t) noexcept { ::operator delete(p); }
REPLACEABLE void operator delete[](void *p, std::size_t) noexcept { ::operator delete[](p); }
REPLACEABLE void operator delete(void *p, const std::nothrow_t &) noexcept { ::operator delete(p); }
REPLACEABLE void operator delete[](void *p, const std::nothrow_t &) noexcept { ::operator delete[](p); }
REPLACEABLE void operator delete[](void *p, std::align_val_t unit) noexcept { ::operator delete(p, unit); }
REPLACEABLE void operator delete(void *p, std::size_t, std::align_val_t unit) noexcept { ::operator delete(p, unit); }
REPLACEABLE void operator delete[](void *p, std::size_t, std::align_val_t unit) noexcept { ::operator delete[](p, unit); }
REPLACEABLE void operator delete(void *p, std::align_val_t unit, const std::nothrow_t &) noexcept
{
	::operator delete(p, unit);
}

REPLACEABLE void operator delete[](void *p, std::align_val_t unit, const std::nothrow_t &) noexcept
{
	::operator delete[](p, unit);
}
