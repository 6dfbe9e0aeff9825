// Frames of a domain, as its call frame information describes them. The data
// stack holds everything but the return addresses, which are read by a gate:
// see docs/window.md, "Calling convention" and "Gates".
#pragma once

#include <cstdint>

namespace mullion {

// Numbers of registers in call frame information.
enum { RBX = 3, RBP = 6, R12 = 12, R13 = 13, R15 = 15, REGISTERS = 16 };

// A function that waits for a call to return.
struct Frame {
	// Where it goes on.
	std::uint64_t address;
	std::uint64_t registers[REGISTERS];
	// The data stack pointer that its caller had before the call.
	std::uint64_t canonical;
	// Bytes of the data stack that hold the arguments of the call: its landing pad
	// expects them gone.
	std::uint64_t arguments;
	// Its first instruction, and its table of landing pads, if it has one.
	std::uint64_t function;
	const std::uint8_t *landings;
};

// Fills in what describes the frame, from `address` and `registers`, and sets
// `registers` of the caller. False if nothing is known about the function.
bool describe(Frame &frame, std::uint64_t (&callers)[REGISTERS]);

// Reads numbers from tables that the compiler and the assembler made.
struct Reader {
	const std::uint8_t *at;

	template <typename T>
	T plain()
	{
		T value;
		__builtin_memcpy(&value, at, sizeof value);
		at += sizeof value;
		return value;
	}
	std::uint64_t uleb();
	std::int64_t sleb();
	// A 32-bit distance from its own place, and what lies there if the encoding
	// says so; 0 for none. The only encodings of addresses that gcc uses here.
	std::uint64_t pointer(std::uint8_t encoding);
};

enum { OMITTED = 0xff, INDIRECT = 0x80, RELATIVE_32 = 0x1b };

} // namespace mullion
