// An exception on its way.
#pragma once

#include "unwind.h"

#include <typeinfo>

namespace mullion {

// In front of the object that was thrown.
struct alignas(16) Exception {
	const std::type_info *type;
	void (*destroy)(void *);
	// The one that was caught before this one.
	Exception *outer;
	// How many handlers have it; negative while it is thrown again from one.
	int handlers;
	// Where the search found a handler: what it is told, the frame's place on the
	// control stack, counted from its top (frames without a part of the data stack
	// have the same canonical address), the landing pad, and the object as that
	// handler sees it.
	int selector;
	std::uint64_t place;
	std::uint64_t pad;
	void *seen;

	void *object() { return this + 1; }
};

// What a frame does with an exception.
struct Landing {
	enum Kind { NOTHING, CLEANUP, HANDLER, TERMINATE } kind;
	std::uint64_t pad;
	int selector;
	void *seen;
};

// What a report says of the exception that is caught: its text, or its type's
// name; null if there is none.
const char *what_is_caught();

// Reads the frame's table.
Landing landing(const Frame &frame, Exception &exception);

} // namespace mullion
