// A host in C++ that believes nothing: a decoder's results are tainted until they
// have been checked, and the compiler sees to it.
//
//     mullion c++ --mullion-kind=extension -O2 examples/tainted-cc/extension.cc -o decoder.mx
//     c++ -std=c++17 examples/tainted-cc/host.cc -o decoder $(pkg-config --cflags --libs mullion)
//     ./decoder decoder.mx
#include <mullion.hpp>

#include <iostream>
#include <optional>

struct header {
    std::uint32_t width, height;
    mullion_pointer pixels;
};

struct picture {
    std::uint32_t width, height;
    std::vector<std::uint8_t> pixels;
};

static std::optional<picture> decode(const mullion::domain &domain, const std::vector<std::uint8_t> &data)
{
    auto decoder = domain.find<const header *(const std::uint8_t *, std::uint64_t)>("decode");
    auto inside = domain.copy_in(data);
    mullion::tainted<const header *> result = decoder(inside, inside.size());

    // One copy, then the checks on it: the domain could change the original between them.
    auto checked = result.copy_and_verify([](header copy) -> std::optional<header> {
        if (copy.width == 0 || copy.width > 64 || copy.height == 0 || copy.height > 64)
            return std::nullopt;
        return copy;
    });
    if (!checked)
        return std::nullopt;
    // That this many bytes lie in the domain is checked when they are copied.
    mullion::tainted<const std::uint8_t *> pixels(domain.handle(), checked->pixels);
    return pixels.copy_and_verify_range(checked->width * checked->height, [&](std::vector<std::uint8_t> copy) {
        return picture{checked->width, checked->height, std::move(copy)};
    });
}

int main(int count, char **words)
try {
    mullion::image image(count > 1 ? words[1] : "decoder.mx");
    mullion::domain domain(image);

    if (auto decoded = decode(domain, {4, 2, '#', 2, '.', 4, '#', 3, '.', 1, '#'}))
        for (std::uint32_t row = 0; row < decoded->height; row++)
            std::cout << std::string(decoded->pixels.begin() + row * decoded->width,
                                     decoded->pixels.begin() + (row + 1) * decoded->width)
                      << '\n';
    // Larger than anything this host wants.
    std::cout << (decode(domain, {255, 200, 'x', 200, 'x'}) ? "taken" : "not taken") << '\n';
} catch (const mullion::error &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
