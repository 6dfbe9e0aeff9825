// What an extension in C++ may rely on when several threads of the host call it.
#include <memory>
#include <mullion/ext.h>
#include <string>
#include <vector>

namespace {
int made;

struct Once {
	std::vector<int> values;
	Once() : values(1000, 7) { made++; }
};

Once &once()
{
	static Once value;
	return value;
}

auto shared = std::make_shared<std::string>("shared");

int nested(int depth, int tag)
{
	std::string own(30, char('a' + depth % 26));
	if (!depth)
		throw tag;
	int result = nested(depth - 1, tag);
	return result + int(own.size());
}
} // namespace

MULLION_EXPORT(int, throw_and_catch, (int tag, int rounds))
{
	for (int round = 0; round < rounds; round++) {
		auto copy = shared;
		if (once().values[round % 1000] != 7)
			return 1;
		try {
			nested(1 + round % 20, tag);
			return 2;
		} catch (int caught) {
			if (caught != tag)
				return 3;
			try {
				throw;
			} catch (int again) {
				if (again != tag)
					return 4;
			}
		}
	}
	return made == 1 ? 0 : 5;
}

MULLION_EXPORT(long, owners, (void)) { return shared.use_count(); }
