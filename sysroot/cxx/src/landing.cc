// A function's table of landing pads (Itanium C++ ABI, "Exception handling
// tables"), as gcc writes it.
#include "exception.h"

namespace mullion {

namespace {

struct Table {
	std::uint64_t base;
	std::uint8_t type_encoding;
	const std::uint8_t *types;
	const std::uint8_t *actions;
	const std::uint8_t *calls, *calls_end;
};

bool read(const Frame &frame, Table &table)
{
	Reader in{frame.landings};
	table.base = frame.function;
	if (in.plain<std::uint8_t>() != OMITTED)
		return false;
	table.type_encoding = in.plain<std::uint8_t>();
	table.types = nullptr;
	if (table.type_encoding != OMITTED) {
		std::uint64_t distance = in.uleb();
		table.types = in.at + distance;
	}
	if (in.plain<std::uint8_t>() != 1) // uleb128
		return false;
	std::uint64_t bytes = in.uleb();
	table.calls = in.at;
	table.actions = table.calls_end = in.at + bytes;
	return table.type_encoding == OMITTED || (table.type_encoding & 0x7f) == RELATIVE_32;
}

const std::type_info *type(const Table &table, std::uint64_t number)
{
	Reader in{table.types - number * 4};
	return reinterpret_cast<const std::type_info *>(in.pointer(table.type_encoding));
}

// Whether a handler for `wanted`, null for any, takes the exception; `seen`: as what.
bool takes(const std::type_info *wanted, const Exception &exception, void *object, void *&seen)
{
	seen = object;
	if (!wanted)
		return true;
	// A pointer is caught by its value.
	if (exception.type->__is_pointer_p())
		seen = *static_cast<void **>(object);
	return wanted->__do_catch(exception.type, &seen, 1);
}

// An exception specification: a list of types, ended by 0.
bool permits(const Table &table, std::int64_t filter, const Exception &exception, void *object)
{
	Reader in{table.types + (-filter - 1)};
	void *seen;
	while (std::uint64_t number = in.uleb())
		if (takes(type(table, number), exception, object, seen))
			return true;
	return false;
}

} // namespace

Landing landing(const Frame &frame, Exception &exception)
{
	Landing found{Landing::NOTHING, 0, 0, nullptr};
	if (!frame.landings)
		return found;
	Table table;
	found.kind = Landing::TERMINATE;
	if (!read(frame, table))
		return found;
	// The call is in front of where the function goes on.
	std::uint64_t place = frame.address - 1 - frame.function;
	std::uint64_t action = 0;
	bool listed = false;
	for (Reader in{table.calls}; in.at < table.calls_end && !listed;) {
		std::uint64_t start = in.uleb(), length = in.uleb(), pad = in.uleb();
		action = in.uleb();
		listed = place - start < length;
		found.pad = pad ? table.base + pad : 0;
	}
	// No entry: nothing may be thrown here.
	if (!listed)
		return found;
	found.kind = Landing::NOTHING;
	if (!found.pad)
		return found;
	found.kind = Landing::CLEANUP;
	while (action) {
		Reader in{table.actions + action - 1};
		std::int64_t filter = in.sleb();
		const std::uint8_t *link = in.at;
		std::int64_t next = in.sleb();
		void *object = exception.object();
		bool taken = filter > 0 ? takes(type(table, std::uint64_t(filter)), exception, object, found.seen)
								: filter < 0 && !permits(table, filter, exception, object);
		if (taken) {
			if (filter < 0)
				found.seen = object;
			found.kind = Landing::HANDLER;
			found.selector = int(filter);
			return found;
		}
		if (!next)
			break;
		action = std::uint64_t(link - table.actions + next + 1);
	}
	return found;
}

} // namespace mullion
