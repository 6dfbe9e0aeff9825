// MiSFIT's example: a cache whose eviction policy is a virtual function, replaced
// by an extension for one object.
//
//     mullion cc --mullion-kind=extension examples/graft-cc/extension.c -o eviction.mx
//     c++ -std=c++17 examples/graft-cc/host.cc -o eviction $(pkg-config --cflags --libs mullion)
//     ./eviction eviction.mx
#include <mullion_graft.hpp>

#include <algorithm>
#include <iostream>

// `frames` pages, the one used last at the end.
class cache {
public:
    explicit cache(std::size_t frames) : frames_(frames) {}
    virtual ~cache() = default;
    // Which of the frames to throw out; 0 is the one that was not used for longest.
    virtual int victim(int /*now*/, int /*frames*/) { return 0; }

    void use(int page)
    {
        now_++;
        auto found = std::find(pages_.begin(), pages_.end(), page);
        if (found == pages_.end()) {
            misses_++;
            if (pages_.size() == frames_)
                pages_.erase(pages_.begin() + victim(now_, static_cast<int>(frames_)));
        } else {
            pages_.erase(found);
        }
        pages_.push_back(page);
    }
    int misses() { return std::exchange(misses_, 0); }

private:
    std::size_t frames_;
    std::vector<int> pages_;
    int now_ = 0, misses_ = 0;
};

// A loop over 12 pages.
[[gnu::noinline]] static int loop(cache &pages, int rounds)
{
    for (int use = 0; use < rounds * 12; use++)
        pages.use(use % 12);
    return pages.misses();
}

int main(int count, char **words)
try {
    mullion::image image(count > 1 ? words[1] : "eviction.mx");
    mullion::domain domain(image);
    auto pages = std::make_unique<cache>(10), others = std::make_unique<cache>(10);

    std::cout << "as it was: " << loop(*pages, 100) << " misses\n";
    {
        auto victim = domain.find<int(int, int)>("victim");
        // The one line. Slots: two destructors, then victim. Whatever it answers, a frame comes out.
        mullion::graft<&cache::victim, 3> graft(*pages, victim, [](int frame) { return std::clamp(frame, 0, 9); });

        std::cout << "grafted: " << loop(*pages, 100) << " misses\n";
        std::cout << "another cache: " << loop(*others, 100) << " misses\n";
        loop(*pages, 200);
        std::cout << (graft.failures() ? "it faulted, and the original went on\n" : "it did not fault\n");
    }
    std::cout << "taken back: " << loop(*pages, 100) << " misses\n";
} catch (const mullion::error &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
