// Exceptions: what is caught where, in which order what is destroyed, and what goes on.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

struct Trace {
	const char *name;
	explicit Trace(const char *n) : name(n) { std::printf("+%s ", name); }
	Trace(const Trace &) = delete;
	~Trace() { std::printf("-%s ", name); }
};

struct Base {
	int a;
	explicit Base(int v) : a(v) {}
	virtual ~Base() {}
	virtual const char *name() const { return "Base"; }
};
struct Other {
	int b = 77;
	virtual ~Other() {}
};
struct Derived : Other, Base {
	explicit Derived(int v) : Base(v) {}
	const char *name() const override { return "Derived"; }
};
struct Virtual : virtual Base {
	Virtual() : Base(5) {}
};
struct Private : private Base {
	Private() : Base(6) {}
};
struct Twice1 : Base { Twice1() : Base(1) {} };
struct Twice2 : Base { Twice2() : Base(2) {} };
struct Twice : Twice1, Twice2 {};

#define NOINLINE __attribute__((noinline))

NOINLINE int thrower(int kind)
{
	Trace t("thrower");
	static int value = 9;
	switch (kind) {
	case 0: return 0;
	case 1: throw 42;
	case 2: throw Derived(3);
	case 3: throw "text";
	case 4: throw std::out_of_range("range");
	case 5: throw &value;
	case 6: throw Virtual();
	case 7: throw Private();
	case 8: throw Twice();
	case 9: throw nullptr;
	case 10: throw static_cast<Derived *>(nullptr);
	case 11: throw 2.5;
	}
	return kind;
}

NOINLINE int plain(int kind) { return thrower(kind) + 1; }
NOINLINE int tail(int kind) { return plain(kind); }

NOINLINE int with_alloca(int kind, int size)
{
	volatile char *area = static_cast<char *>(__builtin_alloca(size));
	area[size - 1] = char(kind);
	Trace t("alloca");
	return tail(area[size - 1]) + area[0] * 0;
}

NOINLINE int aligned(int kind)
{
	alignas(64) volatile int area[16] = {kind};
	Trace t("aligned");
	return with_alloca(area[0], 100 + kind) + ((reinterpret_cast<unsigned long>(area) & 63) != 0);
}

NOINLINE void many(int a, int b, int c, int d, int e, int f, int g, int h, int kind)
{
	Trace t("many");
	std::printf("%d ", a + b + c + d + e + f + g + h + aligned(kind));
}

static void kinds()
{
	for (int kind = 0; kind < 13; kind++) {
		std::printf("%d: ", kind);
		try {
			Trace t("try");
			many(1, 2, 3, 4, 5, 6, 7, 8, kind);
		} catch (int i) {
			std::printf("int %d", i);
		} catch (const Base &b) {
			std::printf("%s %d", b.name(), b.a);
		} catch (const char *s) {
			std::printf("%s", s);
		} catch (std::exception &e) {
			std::printf("%s", e.what());
		} catch (const void *p) {
			std::printf("pointer %d", p ? *static_cast<const int *>(p) : -1);
		} catch (...) {
			std::printf("...");
		}
		std::printf("\n");
	}
}

static void rethrowing()
{
	try {
		try {
			try {
				throw Derived(11);
			} catch (Base &b) {
				b.a++;
				throw;
			}
		} catch (Other &o) {
			o.b++;
			try {
				throw std::runtime_error("inner");
			} catch (std::exception &e) {
				std::printf("%s ", e.what());
			}
			throw;
		}
	} catch (Derived &d) {
		std::printf("%d %d\n", d.a, d.b);
	}
}

struct InCleanup {
	~InCleanup()
	{
		std::printf("uncaught %d ", std::uncaught_exceptions());
		try {
			throw 1;
		} catch (int) {
			std::printf("cleanup ");
		}
	}
};

static void nested()
{
	try {
		InCleanup first;
		InCleanup second;
		thrower(4);
	} catch (std::logic_error &e) {
		std::printf("%s %d\n", e.what(), std::uncaught_exceptions());
	}
}

struct Member {
	Trace one{"one"};
	int v;
	Trace two{"two"};
	explicit Member(int k) try : v(tail(k)), two("two") {
	} catch (int i) {
		std::printf("in constructor %d ", i);
	}
};

static void constructors()
{
	try {
		Member m(1);
	} catch (int i) {
		std::printf("out %d\n", i);
	}
	static int made;
	struct Item {
		int n;
		Item() : n(made++) { if (n == 3) throw n; std::printf("item %d ", n); }
		~Item() { std::printf("~%d ", n); }
	};
	try {
		std::unique_ptr<Item[]> items(new Item[5]);
	} catch (int i) {
		std::printf("array %d\n", i);
	}
}

static int compare(const void *a, const void *b)
{
	int x = *static_cast<const int *>(a), y = *static_cast<const int *>(b);
	if (x == 13 || y == 13)
		throw std::invalid_argument("thirteen");
	return x - y;
}

static void callbacks()
{
	int numbers[] = {5, 3, 13, 9, 1, 7};
	try {
		std::qsort(numbers, 6, sizeof(int), compare);
	} catch (std::invalid_argument &e) {
		std::printf("qsort: %s\n", e.what());
	}
	std::function<int(int)> f = [](int x) -> int { if (x > 2) throw x * 10; return x; };
	int sum = 0;
	for (int i = 0; i < 5; i++) {
		try {
			sum += f(i);
		} catch (int x) {
			sum += x;
		}
	}
	std::function<void()> empty;
	try {
		empty();
	} catch (std::bad_function_call &e) {
		std::printf("%s %d\n", e.what(), sum);
	}
}

static void library()
{
	std::vector<int> v{1, 2, 3};
	try {
		v.at(7) = 1;
	} catch (std::out_of_range &e) {
		std::printf("%s\n", e.what());
	}
	std::map<std::string, int> m{{"a", 1}};
	try {
		m.at("b");
	} catch (std::exception &e) {
		std::printf("%s\n", e.what());
	}
	try {
		std::string("abc").substr(5);
	} catch (std::out_of_range &e) {
		std::printf("%s\n", e.what());
	}
	try {
		std::stoi("x");
	} catch (std::invalid_argument &e) {
		std::printf("%s\n", e.what());
	}
	try {
		volatile std::size_t huge = std::size_t(1) << 62;
		char *volatile p = new char[huge];
		delete[] p;
	} catch (std::bad_alloc &e) {
		std::printf("%s\n", e.what());
	}
	try {
		Base b(1);
		Base *volatile p = &b;
		dynamic_cast<Derived &>(*p).b = 1;
	} catch (std::bad_cast &e) {
		std::printf("%s\n", e.what());
	}
	std::runtime_error first("first"), second("second");
	second = first;
	try {
		throw second;
	} catch (std::runtime_error e) {
		std::printf("%s\n", e.what());
	}
}

NOINLINE static long deep(int n)
{
	struct Count {
		long &c;
		~Count() { c++; }
	};
	static long count;
	Count guard{count};
	if (n == 0)
		throw &count;
	return deep(n - 1) + 1;
}

static void depth()
{
	try {
		deep(5000);
	} catch (long *count) {
		std::printf("%ld\n", *count);
	}
	long sum = 0;
	for (int i = 0; i < 2000; i++) {
		try {
			sum += i % 2 ? throw i : 1;
		} catch (int x) {
			sum += x;
		}
	}
	std::printf("%ld\n", sum);
}

int main(int argc, char **)
{
	kinds();
	rethrowing();
	nested();
	constructors();
	callbacks();
	library();
	depth();
	return argc;
}
