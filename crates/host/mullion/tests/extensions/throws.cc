// Exceptions that pass many frames, are caught by type, thrown again, and thrown across the host.
#include <mullion/ext.h>
#include <new>
#include <stdexcept>

MULLION_IMPORT(int, host_apply, (int (*function)(int), int value));

namespace {
struct Counted {
	int &count;
	~Counted() { count++; }
};

[[gnu::noinline]] int level(int number, int &count)
{
	Counted counted{count};
	if (!number)
		throw std::runtime_error("deep");
	try {
		return level(number - 1, count) + count;
	} catch (const std::bad_alloc &) {
		return -1;
	} catch (const std::runtime_error &) {
		if (number % 3)
			throw;
		throw std::logic_error("other");
	} catch (const std::logic_error &) {
		throw std::runtime_error("deep");
	}
}

int throws(int value)
{
	throw value;
}

int catches(int value)
{
	try {
		throws(value);
	} catch (int caught) {
		return caught;
	}
	return -1;
}
} // namespace

// Counts the destructors that ran.
MULLION_EXPORT(int, catch_deep, (int depth))
{
	int count = 0;
	try {
		return level(depth, count);
	} catch (const std::exception &) {
		return 10 + count + catches(1);
	}
}

MULLION_EXPORT(int, across, (int value))
{
	try {
		return host_apply(throws, value);
	} catch (int caught) {
		return caught + 1000;
	}
}

MULLION_EXPORT(int, within, (int value)) { return host_apply(catches, value); }
