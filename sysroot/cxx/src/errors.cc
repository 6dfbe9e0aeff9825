// The standard exception classes: their texts are shared, as copying one must not throw.
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <typeinfo>

namespace std {

namespace {

struct Text {
	unsigned users;
	char characters[1];
};

Text *text(const char *characters)
{
	return reinterpret_cast<Text *>(const_cast<char *>(characters) - offsetof(Text, characters));
}

const char *make(const char *from, size_t length)
{
	Text *made = static_cast<Text *>(operator new(sizeof(Text) + length));
	made->users = 1;
	memcpy(made->characters, from, length);
	made->characters[length] = 0;
	return made->characters;
}

const char *share(const char *characters)
{
	text(characters)->users++;
	return characters;
}

void release(const char *characters)
{
	if (--text(characters)->users == 0)
		operator delete(text(characters));
}

} // namespace

__cow_string::__cow_string() : _M_p(make("", 0)) {}
__cow_string::__cow_string(const string &s) : _M_p(make(s.data(), s.size())) {}
__cow_string::__cow_string(const char *s, size_t length) : _M_p(make(s, length)) {}
__cow_string::__cow_string(const __cow_string &other) noexcept : _M_p(share(other._M_p)) {}
__cow_string::__cow_string(__cow_string &&other) noexcept : _M_p(share(other._M_p)) {}
__cow_string::~__cow_string() { release(_M_p); }

__cow_string &__cow_string::operator=(const __cow_string &other) noexcept
{
	const char *before = _M_p;
	_M_p = share(other._M_p);
	release(before);
	return *this;
}

__cow_string &__cow_string::operator=(__cow_string &&other) noexcept
{
	return *this = static_cast<const __cow_string &>(other);
}

logic_error::logic_error(const string &s) : _M_msg(s) {}
logic_error::logic_error(const char *s) : _M_msg(s, strlen(s)) {}
logic_error::logic_error(const logic_error &) noexcept = default;
logic_error &logic_error::operator=(const logic_error &) noexcept = default;
logic_error::logic_error(logic_error &&) noexcept = default;
logic_error &logic_error::operator=(logic_error &&) noexcept = default;
logic_error::~logic_error() noexcept = default;
const char *logic_error::what() const noexcept { return _M_msg._M_p; }

runtime_error::runtime_error(const string &s) : _M_msg(s) {}
runtime_error::runtime_error(const char *s) : _M_msg(s, strlen(s)) {}
runtime_error::runtime_error(const runtime_error &) noexcept = default;
runtime_error &runtime_error::operator=(const runtime_error &) noexcept = default;
runtime_error::runtime_error(runtime_error &&) noexcept = default;
runtime_error &runtime_error::operator=(runtime_error &&) noexcept = default;
runtime_error::~runtime_error() noexcept = default;
const char *runtime_error::what() const noexcept { return _M_msg._M_p; }

#define DERIVED(name, base) \
	name::name(const string &s) : base(s) {} \
	name::name(const char *s) : base(s) {} \
	name::~name() noexcept = default;
DERIVED(domain_error, logic_error)
DERIVED(invalid_argument, logic_error)
DERIVED(length_error, logic_error)
DERIVED(out_of_range, logic_error)
DERIVED(range_error, runtime_error)
DERIVED(overflow_error, runtime_error)
DERIVED(underflow_error, runtime_error)

#define NAMED(name) \
	name::~name() noexcept = default; \
	const char *name::what() const noexcept { return "std::" #name; }
NAMED(bad_exception)
NAMED(bad_alloc)
NAMED(bad_array_new_length)
NAMED(bad_cast)
NAMED(bad_typeid)
bad_function_call::~bad_function_call() noexcept = default;
const char *bad_function_call::what() const noexcept { return "bad_function_call"; }

exception::~exception() noexcept = default;
const char *exception::what() const noexcept { return "std::exception"; }

} // namespace std
