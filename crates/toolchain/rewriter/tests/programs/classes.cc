// Virtual calls, templates, member pointers, lambdas.
#include "program.h"

namespace {
struct shape {
    virtual uint64_t area(unsigned n) const = 0;
    virtual uint64_t twice(unsigned n) const { return area(n) * 2; }
    uint64_t serial = 7;
};
struct square : shape {
    uint64_t area(unsigned n) const override { return n * n + serial; }
};
struct named {
    const char *name;
    virtual char first() const { return name[0]; }
    explicit named(const char *n) : name(n) {}
};
struct disc : square, named {
    disc() : named("disc") {}
    uint64_t area(unsigned n) const override { return square::area(n) * 3 + static_cast<uint64_t>(first()); }
    char first() const override { return name[1]; }
};

template <typename T, typename F> APART T fold(const T *values, unsigned n, F f) {
    T sum = T();
    for (unsigned i = 0; i < n; i++)
        sum = f(sum, values[i]);
    return sum;
}

template <typename T> void sort(T *a, int low, int high) {
    if (low >= high)
        return;
    T pivot = a[(low + high) / 2];
    int i = low, j = high;
    while (i <= j) {
        while (a[i] < pivot)
            i++;
        while (pivot < a[j])
            j--;
        if (i <= j) {
            T t = a[i];
            a[i++] = a[j];
            a[j--] = t;
        }
    }
    sort(a, low, j);
    sort(a, i, high);
}

APART uint64_t measure(const shape &s, const named *n) { return s.twice(5) + s.area(3) + (n ? static_cast<uint64_t>(n->first()) : 0); }

/* An 8-bit multiplication stands between the sum and where it came from. */
APART uint64_t fifths(const unsigned char *bytes, const unsigned char *end, const uint64_t *start) {
    uint64_t sum = *start;
    for (; bytes != end; ++bytes)
        sum += *bytes / 5;
    return sum;
}
} // namespace

extern "C" uint64_t entry() {
    square s;
    disc d;
    uint64_t sum = measure(s, nullptr);
    sum = mix(sum, measure(d, &d));
    uint64_t (shape::*member)(unsigned) const = &shape::twice;
    const shape *p = &d;
    HIDE(p);
    sum = mix(sum, (p->*member)(4));
    int values[300];
    for (int i = 0; i < 300; i++)
        values[i] = i * 7919 % 1009;
    sort(values, 0, 299);
    for (int v : values)
        sum = mix(sum, static_cast<uint64_t>(v));
    const unsigned char bytes[] = {250, 17, 5, 4, 99};
    const uint64_t start = 0x123456780fffffff;
    sum = mix(sum, fifths(bytes, bytes + 5, &start));
    unsigned factor = 3;
    auto f = [&](int a, int b) { return static_cast<int>(static_cast<unsigned>(a) * factor + static_cast<unsigned>(b)); };
    return mix(sum, static_cast<uint64_t>(fold(values, 300, f)));
}
