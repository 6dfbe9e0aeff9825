// The header-only part of the C++ library, virtual calls, static
// initialisation, run-time type information.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <typeinfo>
#include <unordered_map>
#include <variant>
#include <vector>

struct Shape {
	virtual ~Shape() { std::printf("~Shape\n"); }
	virtual double area() const = 0;
	virtual const char *name() const { return "shape"; }
};
struct Named { virtual ~Named() = default; int tag = 7; };
struct Square : Shape, Named {
	double side;
	explicit Square(double s) : side(s) {}
	double area() const override { return side * side; }
	const char *name() const override { return "square"; }
};
struct Circle final : virtual Shape {
	double radius;
	explicit Circle(double r) : radius(r) {}
	double area() const override { return 3 * radius * radius; }
};
struct Diamond : virtual Named {};
struct Left : virtual Diamond { int l = 1; };
struct Right : virtual Diamond { int r = 2; };
struct Bottom : Left, Right { int b = 3; };

static struct Early {
	Early() { std::printf("constructed before main\n"); }
	~Early() { std::printf("destroyed after main\n"); }
} early;

static int counted()
{
	static std::vector<int> memory = [] { std::printf("once\n"); return std::vector<int>{ 1, 2, 3 }; }();
	memory.push_back(static_cast<int>(memory.size()));
	return std::accumulate(memory.begin(), memory.end(), 0);
}

int main()
{
	std::vector<std::unique_ptr<Shape>> shapes;
	shapes.push_back(std::make_unique<Square>(2.5));
	shapes.push_back(std::make_unique<Circle>(1.5));
	for (const auto &shape : shapes)
		std::printf("%s %.3f %s\n", shape->name(), shape->area(), typeid(*shape).name());
	Named *named = dynamic_cast<Named *>(shapes[0].get());
	std::printf("%d %d\n", named ? named->tag : -1, dynamic_cast<Named *>(shapes[1].get()) == nullptr);
	std::printf("%d\n", dynamic_cast<Circle *>(shapes[1].get()) != nullptr);
	Bottom bottom;
	Named *top = &bottom;
	std::printf("%d %d %d\n", dynamic_cast<Right *>(top)->r, dynamic_cast<Bottom *>(top)->b, dynamic_cast<Left *>(dynamic_cast<Right *>(top)) != nullptr);
	shapes.clear();

	std::map<std::string, int> words;
	std::set<int> tree;
	for (int i = 0; i < 3000; i++) {
		words["word" + std::to_string(i * 7919 % 1000)] += i;
		tree.insert(i * 37 % 1013);
		if (i % 3 == 0)
			tree.erase(i * 11 % 1013);
	}
	std::printf("%zu %s %d %zu\n", words.size(), words.begin()->first.c_str(), words.rbegin()->second, tree.size());
	long total = 0;
	int last = -1, ordered = 1;
	for (int v : tree) {
		ordered &= v > last;
		last = v;
		total += v;
	}
	std::printf("%ld %d\n", total, ordered);
	while (!tree.empty())
		tree.erase(tree.size() % 2 ? tree.begin() : std::prev(tree.end()));

	std::unordered_map<std::string, long> table;
	for (int i = 0; i < 5000; i++)
		table[std::string(i % 50, 'a' + i % 26)] += i;
	long sum = 0;
	for (const auto &[key, value] : table)
		sum += value * static_cast<long>(key.size());
	std::printf("%zu %ld %zu\n", table.size(), sum, std::hash<std::string>{}("mullion"));

	std::list<int> chain{ 5, 3, 9, 1 };
	std::list<int> other{ 2, 8 };
	chain.sort();
	other.sort();
	chain.merge(other);
	chain.reverse();
	for (int v : chain)
		std::printf("%d ", v);

	std::function<int(int)> add = [n = 10](int v) { return v + n; };
	std::function<int(int)> twice = [add](int v) { return add(add(v)); };
	std::optional<std::string> maybe = "there";
	std::variant<int, std::string> either = std::string("text");
	std::printf("%d %s %zu\n", twice(1), maybe->c_str(), std::visit([](const auto &v) { return sizeof v; }, either));
	auto shared = std::make_shared<std::vector<int>>(100, 1);
	std::weak_ptr<std::vector<int>> weak = shared;
	std::printf("%ld %d\n", shared.use_count(), weak.expired());
	shared.reset();
	std::printf("%d\n", weak.expired());

	std::string text = "the quick brown fox";
	text.insert(4, "very ").replace(0, 3, "a").append(3, '!');
	std::string_view view = text;
	std::printf("%s %zu %zu %d\n", text.c_str(), view.find("brown"), view.rfind('o'), std::stoi("123") + static_cast<int>(std::stod("1.5") * 2));
	char digits[32];
	auto end = std::to_chars(digits, digits + sizeof digits, 1234567890123LL, 16);
	int parsed = 0;
	std::from_chars(digits, end.ptr, parsed, 10);
	std::printf("%.*s %d\n", static_cast<int>(end.ptr - digits), digits, parsed);
	std::array<int, 8> numbers{ 5, 2, 8, 1, 9, 3, 7, 4 };
	std::sort(numbers.begin(), numbers.end(), std::greater<>());
	std::nth_element(numbers.begin(), numbers.begin() + 3, numbers.end());
	std::printf("%d %d\n", numbers[3], *std::max_element(numbers.begin(), numbers.end()));
	auto [low, high] = std::minmax({ 4, 2, 6 });
	std::printf("%d %d %d %d\n", low, high, counted(), counted());
	int *several = new int[1000]();
	std::printf("%d\n", several[999]);
	delete[] several;
	struct alignas(64) Wide { char c[64]; };
	Wide *wide = new Wide;
	std::printf("%d\n", reinterpret_cast<unsigned long>(wide) % 64 == 0);
	delete wide;
	return 0;
}
