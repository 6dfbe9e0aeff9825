// Errors of the C++ library: exceptions; a message and abort where there is nothing to throw.
#include "failure.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <stdexcept>
#include <typeinfo>
#include <bits/functexcept.h>

namespace mullion {

void fail(const char *what, const char *detail)
{
	if (detail)
		std::fprintf(stderr, "%s: %s\n", what, detail);
	else
		std::fprintf(stderr, "%s\n", what);
	std::abort();
}

} // namespace mullion

namespace std {

void __throw_bad_exception() { throw bad_exception(); }
void __throw_bad_alloc() { throw bad_alloc(); }
void __throw_bad_array_new_length() { throw bad_array_new_length(); }
void __throw_bad_cast() { throw bad_cast(); }
void __throw_bad_typeid() { throw bad_typeid(); }
void __throw_logic_error(const char *s) { throw logic_error(s); }
void __throw_domain_error(const char *s) { throw domain_error(s); }
void __throw_invalid_argument(const char *s) { throw invalid_argument(s); }
void __throw_length_error(const char *s) { throw length_error(s); }
void __throw_out_of_range(const char *s) { throw out_of_range(s); }
void __throw_runtime_error(const char *s) { throw runtime_error(s); }
void __throw_range_error(const char *s) { throw range_error(s); }
void __throw_overflow_error(const char *s) { throw overflow_error(s); }
void __throw_underflow_error(const char *s) { throw underflow_error(s); }
void __throw_bad_function_call() { throw bad_function_call(); }

// The formats are libstdc++'s: "%s: __pos (which is %zu) > this->size() (which is %zu)".
void __throw_out_of_range_fmt(const char *format, ...)
{
	char text[256];
	va_list arguments;
	va_start(arguments, format);
	std::vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	throw out_of_range(text);
}

} // namespace std
