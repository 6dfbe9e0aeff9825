// Grafts: one object, one function, taken back; faults fall back.
#include <mullion_graft.hpp>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <stdexcept>

#define EXPECT(condition)                                                               \
    do {                                                                                \
        if (!(condition)) {                                                             \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);        \
            std::exit(1);                                                               \
        }                                                                               \
    } while (0)

struct shape {
    virtual ~shape() = default;
    virtual int corners(int a, int b) { return a * 1000 + b; }
    virtual double size() const { return 1.5; }
    virtual const char *name() { return "shape"; }
    virtual void touch(int *place) { touched += place == nullptr; }
    int touched = 0;
};
struct other {
    virtual ~other() = default;
    virtual int second(int a) { return a + 1; }
    long pad = 9;
};
struct both : shape, other {
    int corners(int a, int b) override { return a - b + touched; }
    int second(int a) override { return a + 2 + static_cast<int>(pad); }
};

// Functions of every kind.
struct careful {
    virtual int sum(int a, int b) noexcept { return a + 10 * b; }
    virtual int peek(int a) const noexcept { return a + 100; }
    virtual int there(int a) & { return a + 200; }
    virtual int kept(int a) const & noexcept { return a + 300; }
};

// The compiler must not see which class it is.
template <class T>
[[gnu::noinline]] T &opaque(T &object)
{
    T *volatile pointer = &object;
    return *pointer;
}

int main(int count, char **words)
{
    EXPECT(count == 2);
    mullion::image image(words[1]);
    mullion::imports imports;
    imports.add<int()>("host_report", [] { return 0; }).add<int()>("host_nested", [] { return 0; });
    mullion::domain domain(image, imports);
    auto add = domain.find<int(int, int)>("add");
    auto crash = domain.find<void(int *)>("crash");
    const auto same = [](int value) { return value; };

    shape first, second;
    both third;
    {
        mullion::graft<&shape::corners, 6> graft(first, add, same);
        EXPECT(opaque(first).corners(2, 3) == 5);
        EXPECT(opaque(second).corners(2, 3) == 2003);
        EXPECT(opaque(first).size() == 1.5 && opaque(first).name() == std::string("shape"));
        EXPECT(typeid(opaque(first)) == typeid(shape) && dynamic_cast<both *>(&opaque(first)) == nullptr);
        // Another one on top, of another function; and one more of the same.
        mullion::graft<&shape::size, 6> size(first, [](const shape &object) { return object.touched + 0.25; });
        EXPECT(opaque(first).size() == 0.25 && opaque(first).corners(2, 3) == 5);
        {
            mullion::graft<&shape::corners, 6> top(first, [](shape &, int a, int) { return -a; });
            EXPECT(opaque(first).corners(2, 3) == -2);
        }
        EXPECT(opaque(first).corners(2, 3) == 5 && graft.failures() == 0);
        // The extension has ended: the original answers.
        try {
            crash(nullptr);
        } catch (const mullion::fault &) {
        }
        EXPECT(opaque(first).corners(2, 3) == 2003 && graft.failures() == 1);
        domain.restart();
        EXPECT(opaque(first).corners(2, 3) == 5);
    }
    EXPECT(opaque(first).corners(2, 3) == 2003 && opaque(first).size() == 1.5);

    // A fault in the function itself.
    mullion::graft<&shape::touch, 6> touch(first, [crash](shape &, int *) { crash(nullptr); });
    opaque(first).touch(nullptr);
    EXPECT(first.touched == 1 && touch.failures() == 1 && domain.has_ended());
    domain.restart();

    // It runs too long: its limit ends it, and the original answers.
    {
        mullion_call_limits limits = MULLION_CALL_LIMITS_DEFAULT;
        limits.nanoseconds = 20 * 1000 * 1000;
        auto spin = domain.find<void()>("spin").limited(limits);
        mullion::graft<&shape::touch, 6> slow(second, [spin](shape &, int *) { spin(); });
        opaque(second).touch(nullptr);
        EXPECT(second.touched == 1 && slow.failures() == 1 && domain.has_ended());
        opaque(second).touch(nullptr);
        EXPECT(second.touched == 2 && slow.failures() == 2);
        domain.restart();
    }

    // What is noexcept throws nothing, whatever its graft throws.
    {
        careful object;
        mullion::graft<&careful::sum, 4> sum(object, add, same);
        EXPECT(opaque(object).sum(2, 3) == 5);
        mullion::graft<&careful::peek, 4> peek(object, [](const careful &, int a) -> int {
            if (a == 1)
                throw std::runtime_error("not a mullion::error");
            return -a;
        });
        mullion::graft<&careful::there, 4> there(object, [](careful &, int a) { return -2 * a; });
        mullion::graft<&careful::kept, 4> kept(object, [](const careful &, int a) { return -3 * a; });
        static_assert(noexcept(object.peek(1)));
        EXPECT(opaque(object).peek(1) == 101 && peek.failures() == 1 && opaque(object).peek(2) == -2);
        EXPECT(opaque(object).there(2) == -4 && opaque(object).kept(2) == -6);
    }

    // An object of a derived class, by either of its tables.
    shape &left = opaque<shape>(third);
    other &right = opaque<other>(third);
    {
        mullion::graft<&shape::corners, 6> graft(left, add, same);
        mullion::graft<&other::second, 3> alter(right, [](other &object, int a) { return a + static_cast<int>(object.pad); });
        EXPECT(left.corners(2, 3) == 5 && right.second(1) == 10);
        EXPECT(dynamic_cast<both *>(&left) == &third && dynamic_cast<shape *>(&right) == &left);
    }
    EXPECT(left.corners(2, 3) == -1 && right.second(1) == 12);

    // Taken back in the wrong order: the first is gone, the second answers until it goes.
    auto below = std::make_unique<mullion::graft<&shape::corners, 6>>(second, [](shape &, int, int) { return 1; });
    auto above = std::make_unique<mullion::graft<&shape::name, 6>>(second, [](shape &) { return "grafted"; });
    EXPECT(opaque(second).corners(2, 3) == 1);
    below.reset();
    EXPECT(opaque(second).corners(2, 3) == 2003 && opaque(second).name() == std::string("grafted"));
    above.reset();
    EXPECT(opaque(second).corners(2, 3) == 2003 && opaque(second).name() == std::string("shape"));

    try {
        mullion::graft<&shape::corners, 2> small(first, add, same);
        EXPECT(!"a slot behind the last one");
    } catch (const std::invalid_argument &) {
    }
    std::cout << "all as the header says\n";
}
