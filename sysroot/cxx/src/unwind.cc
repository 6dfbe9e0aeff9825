// Call frame information (DWARF 5, 6.4; System V ABI for x86-64, 3.7) of a frame:
// only what gcc, gas and the rewriter write. What else there may be counts as
// no information, and an exception ends there.
#include "unwind.h"

#include <cstring>

// The linker script's: the sorted table, or nothing.
extern "C" const char __mullion_frames_start[] __attribute__((visibility("hidden")));
extern "C" const char __mullion_frames_end[] __attribute__((visibility("hidden")));

namespace mullion {

std::uint64_t Reader::uleb()
{
	std::uint64_t value = 0;
	for (unsigned shift = 0;; shift += 7) {
		std::uint8_t byte = *at++;
		if (shift < 64)
			value |= std::uint64_t(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
}

std::int64_t Reader::sleb()
{
	std::uint64_t value = 0;
	for (unsigned shift = 0;;) {
		std::uint8_t byte = *at++;
		if (shift < 64)
			value |= std::uint64_t(byte & 0x7f) << shift;
		shift += 7;
		if (byte & 0x80)
			continue;
		if ((byte & 0x40) && shift < 64)
			value |= ~std::uint64_t(0) << shift;
		return std::int64_t(value);
	}
}

std::uint64_t Reader::pointer(std::uint8_t encoding)
{
	std::uint64_t from = reinterpret_cast<std::uint64_t>(at);
	std::int32_t distance = plain<std::int32_t>();
	if (!distance)
		return 0;
	std::uint64_t value = from + std::int64_t(distance);
	return encoding & INDIRECT ? *reinterpret_cast<const std::uint64_t *>(value) : value;
}

namespace {

// How a register of the caller, or the canonical address, is found.
struct Rule {
	enum Kind : std::uint8_t { SAME, SAVED, CANONICAL, SAVED_AT, COMPUTED } kind;
	std::uint8_t reg;
	std::int64_t offset;
	const std::uint8_t *expression;
};

struct Row {
	Rule canonical;
	Rule registers[REGISTERS];
};

struct Program {
	const std::uint8_t *start, *end;
};

// What a common information entry says.
struct Common {
	std::uint64_t code_factor;
	std::int64_t data_factor;
	std::uint8_t pointers, landings;
	bool augmented;
	Program program;
};

// The table of functions that the linker sorted: distances from its own start.
struct Table {
	std::uint8_t version, frames_encoding, count_encoding, encoding;
	std::int32_t frames;
	std::uint32_t count;
	struct {
		std::int32_t function, description;
	} entries[1];
};

const Table *table()
{
	if (__mullion_frames_start == __mullion_frames_end)
		return nullptr;
	const Table *found = reinterpret_cast<const Table *>(__mullion_frames_start);
	// Counted in 4 bytes, and sorted, with distances from the table.
	bool usual = found->version == 1 && found->count_encoding == 3 && found->encoding == 0x3b;
	return usual ? found : nullptr;
}

// The description of the last function that starts at or before `address`.
const std::uint8_t *description(std::uint64_t address)
{
	const Table *all = table();
	if (!all || !all->count)
		return nullptr;
	std::int64_t wanted = std::int64_t(address - reinterpret_cast<std::uint64_t>(all));
	std::uint32_t low = 0, high = all->count;
	while (low < high) {
		std::uint32_t middle = low + (high - low) / 2;
		if (all->entries[middle].function <= wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? reinterpret_cast<const std::uint8_t *>(all) + all->entries[low - 1].description : nullptr;
}

bool read_common(const std::uint8_t *at, Common &common)
{
	Reader in{at};
	std::uint32_t length = in.plain<std::uint32_t>();
	const std::uint8_t *end = in.at + length;
	in.plain<std::uint32_t>();
	std::uint8_t version = in.plain<std::uint8_t>();
	const char *augmentation = reinterpret_cast<const char *>(in.at);
	in.at += std::strlen(augmentation) + 1;
	common.code_factor = in.uleb();
	common.data_factor = in.sleb();
	if (version == 1)
		in.plain<std::uint8_t>();
	else
		in.uleb();
	common.pointers = common.landings = OMITTED;
	common.augmented = *augmentation == 'z';
	if (!common.augmented)
		return false;
	std::uint64_t bytes = in.uleb();
	common.program = {in.at + bytes, end};
	for (const char *letter = augmentation + 1; *letter; letter++) {
		std::uint8_t encoding = in.plain<std::uint8_t>();
		if (*letter == 'R')
			common.pointers = encoding;
		else if (*letter == 'L')
			common.landings = encoding;
		else if (*letter == 'P' && (encoding & 0x7f) == RELATIVE_32)
			in.plain<std::uint32_t>();
		else
			return false;
	}
	return common.pointers == RELATIVE_32 && (common.landings == OMITTED || common.landings == RELATIVE_32);
}

// The few expressions that compilers write for frames: sums and loads.
bool evaluate(const std::uint8_t *expression, const std::uint64_t (&registers)[REGISTERS], std::uint64_t &top)
{
	Reader in{expression};
	const std::uint8_t *end = in.uleb() + in.at;
	bool empty = true;
	while (in.at < end) {
		std::uint8_t operation = in.plain<std::uint8_t>();
		if (operation >= 0x70 && operation < 0x70 + REGISTERS && empty) { // DW_OP_breg
			std::int64_t offset = in.sleb();
			top = registers[operation - 0x70] + std::uint64_t(offset);
			empty = false;
		} else if (operation == 0x06 && !empty) { // DW_OP_deref
			top = *reinterpret_cast<const std::uint64_t *>(top);
		} else if (operation == 0x23 && !empty) { // DW_OP_plus_uconst
			top += in.uleb();
		} else {
			return false;
		}
	}
	return !empty;
}

class Interpreter {
public:
	Interpreter(const Common &common, std::uint64_t start) : common(common), place(start) {}

	// Follows the rows up to the one for `address`.
	bool run(Program program, std::uint64_t address)
	{
		Reader in{program.start};
		while (in.at < program.end) {
			std::uint8_t operation = in.plain<std::uint8_t>();
			std::uint64_t step = 0;
			switch (operation) {
			case 0x00: // DW_CFA_nop
				continue;
			case 0x02: // DW_CFA_advance_loc1, 2, 4
				step = in.plain<std::uint8_t>();
				break;
			case 0x03:
				step = in.plain<std::uint16_t>();
				break;
			case 0x04:
				step = in.plain<std::uint32_t>();
				break;
			default:
				if (operation >> 6 != 1) {
					if (!change(operation, in))
						return false;
					continue;
				}
				step = operation & 0x3f; // DW_CFA_advance_loc
			}
			place += step * common.code_factor;
			if (place > address)
				return true;
		}
		return true;
	}

	// The rules in front of the function's own are what it may go back to.
	void begin() { initial = row; }

	Row row{};
	std::uint64_t arguments = 0;

private:
	bool change(std::uint8_t operation, Reader &in)
	{
		if (operation >> 6 == 2) // DW_CFA_offset
			return set(operation & 0x3f, {Rule::SAVED, 0, std::int64_t(in.uleb()) * common.data_factor, nullptr});
		if (operation >> 6 == 3) // DW_CFA_restore
			return restore(operation & 0x3f);
		switch (operation) {
		case 0x05: { // DW_CFA_offset_extended
			std::uint64_t reg = in.uleb();
			return set(reg, {Rule::SAVED, 0, std::int64_t(in.uleb()) * common.data_factor, nullptr});
		}
		case 0x06: // DW_CFA_restore_extended
			return restore(in.uleb());
		case 0x08: // DW_CFA_same_value
			return set(in.uleb(), {Rule::SAME, 0, 0, nullptr});
		case 0x0a: // DW_CFA_remember_state
			if (remembered == MOST)
				return false;
			stack[remembered++] = row;
			return true;
		case 0x0b: // DW_CFA_restore_state
			if (!remembered)
				return false;
			row = stack[--remembered];
			return true;
		case 0x0c: { // DW_CFA_def_cfa
			std::uint8_t reg = std::uint8_t(in.uleb());
			row.canonical = {Rule::CANONICAL, reg, std::int64_t(in.uleb()), nullptr};
			return true;
		}
		case 0x0d: // DW_CFA_def_cfa_register
			row.canonical.reg = std::uint8_t(in.uleb());
			return row.canonical.kind == Rule::CANONICAL;
		case 0x0e: // DW_CFA_def_cfa_offset
			row.canonical.offset = std::int64_t(in.uleb());
			return row.canonical.kind == Rule::CANONICAL;
		case 0x0f: // DW_CFA_def_cfa_expression
			row.canonical = {Rule::COMPUTED, 0, 0, in.at};
			skip(in);
			return true;
		case 0x10: // DW_CFA_expression
		case 0x16: { // DW_CFA_val_expression
			std::uint64_t reg = in.uleb();
			const std::uint8_t *expression = in.at;
			skip(in);
			return set(reg, {operation == 0x10 ? Rule::SAVED_AT : Rule::COMPUTED, 0, 0, expression});
		}
		case 0x11: { // DW_CFA_offset_extended_sf
			std::uint64_t reg = in.uleb();
			return set(reg, {Rule::SAVED, 0, in.sleb() * common.data_factor, nullptr});
		}
		case 0x12: { // DW_CFA_def_cfa_sf
			std::uint8_t reg = std::uint8_t(in.uleb());
			row.canonical = {Rule::CANONICAL, reg, in.sleb() * common.data_factor, nullptr};
			return true;
		}
		case 0x13: // DW_CFA_def_cfa_offset_sf
			row.canonical.offset = in.sleb() * common.data_factor;
			return row.canonical.kind == Rule::CANONICAL;
		case 0x14: { // DW_CFA_val_offset
			std::uint64_t reg = in.uleb();
			return set(reg, {Rule::CANONICAL, 0, std::int64_t(in.uleb()) * common.data_factor, nullptr});
		}
		case 0x2e: // DW_CFA_GNU_args_size
			arguments = in.uleb();
			return true;
		}
		return false;
	}

	static void skip(Reader &in)
	{
		std::uint64_t bytes = in.uleb();
		in.at += bytes;
	}

	// Vector registers and the return address are nobody's to restore.
	bool set(std::uint64_t reg, Rule rule)
	{
		if (reg < REGISTERS)
			row.registers[reg] = rule;
		return true;
	}

	bool restore(std::uint64_t reg)
	{
		return set(reg, reg < REGISTERS ? initial.registers[reg] : Rule{});
	}

	enum { MOST = 8 };
	const Common &common;
	std::uint64_t place;
	Row initial{};
	Row stack[MOST];
	unsigned remembered = 0;
};

} // namespace

bool describe(Frame &frame, std::uint64_t (&callers)[REGISTERS])
{
	// A return address may be behind the end of its function.
	std::uint64_t address = frame.address - 1;
	const std::uint8_t *entry = description(address);
	if (!entry)
		return false;
	Reader in{entry};
	std::uint32_t length = in.plain<std::uint32_t>();
	const std::uint8_t *end = in.at + length;
	const std::uint8_t *common_at = in.at;
	common_at -= in.plain<std::uint32_t>();
	Common common;
	if (!read_common(common_at, common))
		return false;
	frame.function = in.pointer(RELATIVE_32);
	if (address - frame.function >= in.plain<std::uint32_t>())
		return false;
	std::uint64_t bytes = in.uleb();
	const std::uint8_t *program = in.at + bytes;
	frame.landings = nullptr;
	if (common.landings != OMITTED)
		frame.landings = reinterpret_cast<const std::uint8_t *>(in.pointer(common.landings));
	Interpreter interpreter(common, frame.function);
	if (!interpreter.run(common.program, address))
		return false;
	interpreter.begin();
	if (!interpreter.run({program, end}, address))
		return false;
	frame.arguments = interpreter.arguments;
	const Rule &canonical = interpreter.row.canonical;
	if (canonical.kind == Rule::CANONICAL && canonical.reg < REGISTERS)
		frame.canonical = frame.registers[canonical.reg] + std::uint64_t(canonical.offset);
	else if (canonical.kind != Rule::COMPUTED || !evaluate(canonical.expression, frame.registers, frame.canonical))
		return false;
	for (unsigned reg = 0; reg < REGISTERS; reg++) {
		const Rule &rule = interpreter.row.registers[reg];
		std::uint64_t place = frame.canonical + std::uint64_t(rule.offset);
		if ((rule.kind == Rule::SAVED_AT || rule.kind == Rule::COMPUTED) && reg != 7 &&
			!evaluate(rule.expression, frame.registers, place))
			return false;
		bool load = rule.kind == Rule::SAVED || rule.kind == Rule::SAVED_AT;
		callers[reg] = rule.kind == Rule::SAME ? frame.registers[reg] : load ? *reinterpret_cast<const std::uint64_t *>(place) : place;
	}
	// Also where the rules do not say so: it is what the convention says.
	callers[R15] = frame.canonical;
	return true;
}

} // namespace mullion
