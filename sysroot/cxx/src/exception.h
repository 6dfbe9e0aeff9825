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
	// Thrown by std::rethrow_exception: the exception that has the object. Null in that one itself.
	Exception *owner;
	// Of the one that has the object: throws, and values of std::exception_ptr, that are not done with it.
	int users;
	// Behind the `throw`, for reports of the word wall; 0 in windows.
	std::uint64_t thrown;

	void *object() { return owner ? owner->object() : this + 1; }
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
// Where it was thrown, behind the word wall; 0 if that is not known.
std::uint64_t where_it_was_thrown();

// Reads the frame's table.
Landing landing(const Frame &frame, Exception &exception);

} // namespace mullion
