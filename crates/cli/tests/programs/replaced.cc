// A program that replaces one operator new and one operator delete: all others go through them.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace {

// Memory of its own: what free() would not take.
alignas(16) unsigned char arena[1 << 16];
std::size_t used;
int news, deletes, strangers;

bool mine(void *p) { return p >= arena && p < arena + sizeof arena; }

} // namespace

void *operator new(std::size_t size)
{
	size = (size + 15) & ~static_cast<std::size_t>(15);
	if (sizeof arena - used < size)
		throw std::bad_alloc();
	void *p = arena + used;
	used += size;
	++news;
	return p;
}

void operator delete(void *p) noexcept
{
	if (p)
		++deletes;
	if (p && !mine(p))
		++strangers;
}

struct Wide {
	alignas(64) char content[64];
};

int main()
{
	int *one = new int(7);
	int *many = new int[100]();
	int *maybe = new (std::nothrow) int[10];
	int *never = new (std::nothrow) int[1 << 20];
	std::printf("%d %d %d %d\n", mine(one), mine(many), mine(maybe), never == nullptr);
	delete one;
	delete[] many;
	::operator delete[](maybe, std::nothrow);
	::operator delete(::operator new(32), static_cast<std::size_t>(32));
	::operator delete[](::operator new[](32), static_cast<std::size_t>(32));
	{
		std::vector<std::string> words(20, std::string(100, 'x'));
		auto shared = std::make_shared<std::string>("shared");
		std::printf("%d %zu\n", mine(words.data()), shared->size());
	}
	// Those with an alignment were not replaced.
	Wide *wide = new Wide[2];
	std::printf("%d %d\n", mine(wide), reinterpret_cast<std::size_t>(wide) % 64 == 0);
	delete[] wide;
	// The counts differ only if somebody took memory elsewhere.
	std::printf("%d %d\n", news == deletes, strangers);
	return 0;
}
