// What streams throw. libstdc++'s own file also serves code of the string before C++11, by a type of its own.
#include <ios>
#include <system_error>

namespace std {

namespace {

struct Category final : error_category {
	const char *name() const noexcept override { return "iostream"; }
	_GLIBCXX_DEFAULT_ABI_TAG string message(int code) const override
	{
		return io_errc(code) == io_errc::stream ? "iostream error" : "Unknown error";
	}
};

// Never destroyed: destructors of others may still throw.
union Kept {
	char nothing;
	Category category;
	constexpr Kept() : category() {}
	~Kept() {}
};

Kept kept;

} // namespace

const error_category &iostream_category() noexcept { return kept.category; }

ios_base::failure::failure(const string &s) : system_error(io_errc::stream, s) {}
ios_base::failure::failure(const string &s, const error_code &code) : system_error(code, s) {}
ios_base::failure::failure(const char *s, const error_code &code) : system_error(code, s) {}
ios_base::failure::~failure() {}
const char *ios_base::failure::what() const throw() { return runtime_error::what(); }

void __throw_ios_failure(const char *s) { throw ios_base::failure(s); }

void __throw_ios_failure(const char *s, int error)
{
	throw ios_base::failure(s, error ? error_code(error, generic_category()) : io_errc::stream);
}

} // namespace std
