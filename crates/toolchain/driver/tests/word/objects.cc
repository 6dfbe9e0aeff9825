// What of C++ works without exceptions: objects with virtual functions, templates, containers, statics, thread-locals.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

struct Shape {
    virtual ~Shape() = default;
    virtual long area() const = 0;
};
struct Square : Shape {
    long side;
    explicit Square(long side) : side(side) {}
    long area() const override { return side * side; }
};
struct Box : Square {
    long height;
    Box(long side, long height) : Square(side), height(height) {}
    long area() const override { return side * height; }
};

template <class T> struct Stack {
    std::vector<T> all;
    void push(T one) { all.push_back(std::move(one)); }
    T pop()
    {
        T last = std::move(all.back());
        all.pop_back();
        return last;
    }
};

struct Loud {
    const char *name;
    explicit Loud(const char *name) : name(name) { std::printf("made %s\n", name); }
    ~Loud() { std::printf("gone %s\n", name); }
};

static Loud loud("static");
static std::vector<int> numbers = [] {
    std::vector<int> made;
    for (int i = 0; i < 100; i++)
        made.push_back(i * 7919 % 101);
    return made;
}();
static thread_local int local = 5;

int main()
{
    std::vector<std::unique_ptr<Shape>> shapes;
    for (int i = 1; i < 10; i++)
        shapes.emplace_back(i & 1 ? new Square(i) : new Box(i, i + 1));
    long sum = 0;
    for (auto &shape : shapes)
        sum += shape->area();
    auto *box = dynamic_cast<Box *>(shapes[3].get());
    std::printf("area %ld, a box %d, a square %d\n", sum, box != nullptr, dynamic_cast<Box *>(shapes[2].get()) != nullptr);
    std::sort(numbers.begin(), numbers.end(), std::greater<>());
    std::printf("from %d to %d\n", numbers.front(), numbers.back());
    std::map<std::string, int> words;
    std::string word;
    for (char c : std::string("the quick brown fox jumps over the lazy dog ")) {
        if (c != ' ') {
            word += c;
            continue;
        }
        words[word]++;
        word.clear();
    }
    for (auto &[name, count] : words)
        std::printf("%s=%d ", name.c_str(), count);
    std::unordered_map<int, std::string> names;
    for (int i = 0; i < 200; i++)
        names[i * 31] = std::to_string(i);
    Stack<std::string> stack;
    stack.push(std::string(100, 'b'));
    std::function<long(long)> adds = [sum](long x) { return x + sum; };
    local += 300;
    std::printf("%s %zu %ld %d\n", names[31 * 77].c_str(), stack.pop().size(), adds(5), local);
    static Loud inside("in main");
    return 3;
}
