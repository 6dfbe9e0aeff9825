// A decoder of run-length-encoded pictures, in C++; it believes its input.
#include <mullion/ext.h>
#include <cstdint>
#include <vector>

struct header {
    std::uint32_t width, height;
    std::uint64_t pixels; // an address in this domain
};

static std::vector<std::uint8_t> pixels;
static header result;

MULLION_EXPORT(const header *, decode, (const std::uint8_t *data, std::uint64_t length))
{
    pixels.clear();
    result.width = length > 0 ? data[0] : 0;
    for (std::uint64_t at = 1; at + 1 < length; at += 2)
        pixels.insert(pixels.end(), data[at], data[at + 1]);
    // Nobody has looked whether the rows are whole.
    result.height = result.width ? (pixels.size() + result.width - 1) / result.width : 0;
    result.pixels = reinterpret_cast<std::uint64_t>(pixels.data());
    return &result;
}
