// What exceptions of a module must do, and what they must not.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

#define KEPT __attribute__((noipa))

extern "C" {
// Of the host: calls the function, and adds 1000.
int call_back(int (*function)(int), int argument);
// Another module's.
int other(int n);

// Of this module, in sysroot/word/jumps.s.
std::uint64_t __mullion_control_read(std::uint64_t depth);
void __mullion_control_unwind(std::uint64_t depth, std::uint64_t target, std::uint64_t stack, const std::uint64_t *registers);
[[noreturn]] void _Unwind_Resume(void *exception);
void __cxa_rethrow();
}

static int destroyed;
struct Guard {
    int by;
    explicit Guard(int by) : by(by) {}
    ~Guard() { destroyed += by; }
};

KEPT static int deep(int n)
{
    Guard guard(1);
    if (n == 0)
        throw std::runtime_error("from the deep");
    return deep(n - 1) + guard.by;
}
struct Pad {
    long words[40];
};
// Arguments on the data stack, which a landing pad finds gone.
KEPT static int wide(int a, int b, int c, int d, int e, int f, int g, int h, Pad pad)
{
    Guard guard(10);
    if (pad.words[39] != a)
        return -1;
    return deep(h) + b + c + d + e + f + g;
}
KEPT static int again(int n)
{
    try {
        Pad pad{};
        pad.words[39] = 1;
        return wide(1, 2, 3, 4, 5, 6, 7, n, pad);
    } catch (std::logic_error &) {
        return -2;
    } catch (std::runtime_error &) {
        Guard guard(100);
        throw;
    }
}

extern "C" {
int caught(int n)
{
    destroyed = 0;
    try {
        Guard guard(1000);
        return again(n);
    } catch (const std::exception &exception) {
        return destroyed + (std::string(exception.what()) == "from the deep" ? 10000 : 0);
    }
}

static int throws_int(int n) { throw n * 2; }
static int throws_not(int n) { return n; }
static int (*volatile table[])(int) = {throws_int, throws_not};
// By a pointer to a function of its own: no gate.
int by_pointer(int which, int n)
{
    try {
        return table[which](n) + 5;
    } catch (int value) {
        return value + 7;
    }
}
static int compare(const void *a, const void *b)
{
    int x = *static_cast<const int *>(a), y = *static_cast<const int *>(b);
    if (x == 13 || y == 13)
        throw std::invalid_argument("thirteen");
    return x - y;
}
// Through code of the C library that the module has.
int through_the_library(int n)
{
    int numbers[] = {5, 3, n, 9, 1, 7};
    try {
        qsort(numbers, 6, sizeof *numbers, compare);
    } catch (std::invalid_argument &) {
        return 13;
    }
    return numbers[0];
}

struct Shape {
    virtual ~Shape() = default;
};
struct Square : Shape {
    int side = 4;
};
// What the library throws: as many digits as there are kinds.
int library(int n)
{
    int found = 0;
    std::string text("abc");
    std::vector<int> numbers(3);
    std::map<int, int> tree{{1, 2}};
    Shape shape;
    Shape *volatile any = &shape;
    try {
        text.at(n);
    } catch (std::out_of_range &exception) {
        found += std::string(exception.what()).find("(which is 7)") != std::string::npos;
    }
    try {
        numbers.reserve(std::size_t(-1));
    } catch (std::length_error &) {
        found += 10;
    }
    try {
        found += tree.at(n);
    } catch (std::out_of_range &) {
        found += 100;
    }
    try {
        found += dynamic_cast<Square &>(*any).side;
    } catch (std::bad_cast &) {
        found += 1000;
    }
    try {
        Shape *volatile none = nullptr;
        found += typeid(*none).hash_code() != 0;
    } catch (std::bad_typeid &) {
        found += 10000;
    }
    return found;
}
// All memory that the module may have, in blocks; how many came before there was none.
int no_memory(int bytes)
{
    struct Block {
        Block *next;
    } *first = nullptr;
    int count = 0;
    bool ended = false;
    try {
        for (;;) {
            Block *made = static_cast<Block *>(operator new(bytes));
            made->next = first;
            first = made;
            count++;
        }
    } catch (std::bad_alloc &) {
        ended = true;
    }
    while (first) {
        Block *next = first->next;
        operator delete(first);
        first = next;
    }
    return ended ? count : -1;
}
// The same, while nothing at all is left for the exception.
int not_even_for_the_exception()
{
    std::size_t bytes = 1 << 20;
    struct Block {
        Block *next;
    } *first = nullptr;
    // Smaller and smaller blocks, until there is none of 16 bytes.
    while (bytes >= 16) {
        if (auto *made = static_cast<Block *>(malloc(bytes))) {
            made->next = first;
            first = made;
        } else {
            bytes /= 2;
        }
    }
    int result = 0;
    try {
        result = operator new(4096) != nullptr;
    } catch (std::bad_alloc &) {
        result = 5;
    }
    while (first) {
        Block *next = first->next;
        free(first);
        first = next;
    }
    return result;
}
// Kept by a pointer, and thrown again after its handler has ended.
int kept(int n)
{
    std::exception_ptr pointer;
    try {
        deep(n);
    } catch (...) {
        pointer = std::current_exception();
    }
    try {
        std::rethrow_exception(pointer);
    } catch (std::runtime_error &exception) {
        return exception.what()[0];
    }
}
int uncaught_now() { return std::uncaught_exceptions(); }
long sum(int n)
{
    long sum = 0;
    for (int i = 0; i < n; i++) {
        try {
            sum += i & 1 ? deep(i & 7) : i;
        } catch (std::runtime_error &) {
            sum += 3;
        }
    }
    return sum;
}

// ---- What ends the call.

int nobody(int n)
{
    destroyed = 0;
    int got = deep(n);
    return got + 1;
}
int unknown(int n) { throw n; }
struct Own : std::exception {
    const char *text;
    explicit Own(const char *text) : text(text) {}
    const char *what() const noexcept override { return text; }
};
int says(const char *text) { throw Own(text); }
static KEPT int promised(int n) noexcept { return deep(n); }
int broken_promise(int n)
{
    try {
        return promised(n);
    } catch (...) {
        return 77;
    }
}
int nothing_to_rethrow()
{
    try {
        __cxa_rethrow();
    } catch (...) {
        return 77;
    }
    return 78;
}
int own_handler(int n)
{
    std::set_terminate([] {
        destroyed = 12345;
        __builtin_trap();
    });
    return deep(n);
}
int how_many_destroyed() { return destroyed; }

// ---- Through a function of the host, and through another module.

int from_inside(int n) { return deep(n); }
static int catches_inside(int n)
{
    try {
        return deep(n);
    } catch (std::runtime_error &) {
        return 50;
    }
}
int through_host(int n)
{
    try {
        return call_back(from_inside, n);
    } catch (...) {
        return 77;
    }
}
int caught_inside(int n)
{
    try {
        return call_back(catches_inside, n) + by_pointer(0, n);
    } catch (...) {
        return 77;
    }
}
int through_other(int n)
{
    try {
        return other(n);
    } catch (...) {
        return 77;
    }
}
// One that is on its way when its handler calls the host, which calls back.
int between(int n)
{
    try {
        deep(n);
    } catch (std::runtime_error &) {
        try {
            throw call_back(catches_inside, n);
        } catch (int got) {
            try {
                throw;
            } catch (int same) {
                return got == same ? got : -1;
            }
        }
    }
    return -2;
}

// ---- Attacks.

// Depth 0 is the call of the gate's own function.
static volatile std::uint64_t got;
std::uint64_t reads(std::uint64_t depth)
{
    // No jump to it.
    got = __mullion_control_read(depth);
    return got;
}
int inside_read(int depth) { return __mullion_control_read(std::uint64_t(depth)) != 0; }
int reads_inside(int depth) { return call_back(inside_read, depth); }

static const std::uint64_t registers[6] = {1, 2, 3, 4, 5, 6};
static std::uint64_t here() { return reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)); }
int lands(std::uint64_t depth, std::uint64_t target)
{
    __mullion_control_unwind(depth, target, here(), registers);
    return 78;
}
struct Landing {
    std::uint64_t depth, target;
};
static Landing wanted;
int inside_land(int)
{
    __mullion_control_unwind(wanted.depth, wanted.target, here(), registers);
    return 78;
}
int lands_inside(std::uint64_t depth, std::uint64_t target)
{
    wanted = {depth, target};
    return call_back(inside_land, 0);
}
// The end of a landing pad, with an exception that there never was.
int forged(std::uint64_t exception)
{
    try {
        _Unwind_Resume(reinterpret_cast<void *>(exception));
    } catch (...) {
        return 79;
    }
}
}
