// Errors of the C++ library in a domain: a message, then abort.
#include "failure.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
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

using mullion::fail;

void __throw_bad_exception() { fail("std::bad_exception"); }
void __throw_bad_alloc() { fail("std::bad_alloc"); }
void __throw_bad_array_new_length() { fail("std::bad_array_new_length"); }
void __throw_bad_cast() { fail("std::bad_cast"); }
void __throw_bad_typeid() { fail("std::bad_typeid"); }
void __throw_logic_error(const char *s) { fail("std::logic_error", s); }
void __throw_domain_error(const char *s) { fail("std::domain_error", s); }
void __throw_invalid_argument(const char *s) { fail("std::invalid_argument", s); }
void __throw_length_error(const char *s) { fail("std::length_error", s); }
void __throw_out_of_range(const char *s) { fail("std::out_of_range", s); }
void __throw_runtime_error(const char *s) { fail("std::runtime_error", s); }
void __throw_range_error(const char *s) { fail("std::range_error", s); }
void __throw_overflow_error(const char *s) { fail("std::overflow_error", s); }
void __throw_underflow_error(const char *s) { fail("std::underflow_error", s); }
void __throw_ios_failure(const char *s) { fail("std::ios_base::failure", s); }
void __throw_system_error(int) { fail("std::system_error"); }
void __throw_future_error(int) { fail("std::future_error"); }
void __throw_bad_function_call() { fail("std::bad_function_call"); }

// The formats are libstdc++'s: "%s: __pos (which is %zu) > this->size() (which is %zu)".
void __throw_out_of_range_fmt(const char *format, ...)
{
	char text[256];
	va_list arguments;
	va_start(arguments, format);
	std::vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	fail("std::out_of_range", text);
}

} // namespace std
