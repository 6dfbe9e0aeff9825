// Exceptions that nothing catches end the program: argument 1 says how they come about.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

struct Trace {
	~Trace() { std::puts("destroyed"); }
};

__attribute__((noinline)) static void thrower() { throw std::runtime_error("nobody"); }
__attribute__((noinline)) static void promises() noexcept { thrower(); }

struct Throws {
	~Throws() noexcept(false) { throw 2; }
};

int main(int, char **arguments)
{
	switch (std::atoi(arguments[1])) {
	case 0: {
		Trace trace;
		thrower();
		break;
	}
	case 1:
		try {
			promises();
		} catch (...) {
			std::puts("not here");
		}
		break;
	case 2:
		try {
			Throws during;
			thrower();
		} catch (...) {
			std::puts("not here");
		}
		break;
	case 3:
		throw;
	case 4:
		std::set_terminate([] {
			std::puts("my own end");
			std::exit(7);
		});
		thrower();
	}
	return 0;
}
