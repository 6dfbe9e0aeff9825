// Errors of the C++ library: exceptions.
#include <cstdarg>
#include <cstddef>
#include <functional>
#include <new>
#include <stdexcept>
#include <typeinfo>
#include <bits/functexcept.h>

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

// The formats are libstdc++'s: "%s: __pos (which is %zu) > this->size() (which is %zu)". Nothing else is in them.
void __throw_out_of_range_fmt(const char *format, ...)
{
	char text[256];
	char *at = text, *const end = text + sizeof text - 1;
	va_list arguments;
	va_start(arguments, format);
	for (; *format && at < end; format++) {
		if (format[0] == '%' && format[1] == 's') {
			for (const char *from = va_arg(arguments, const char *); *from && at < end; from++)
				*at++ = *from;
			format += 1;
		} else if (format[0] == '%' && format[1] == 'z' && format[2] == 'u') {
			char digits[20];
			unsigned count = 0;
			size_t number = va_arg(arguments, size_t);
			do
				digits[count++] = char('0' + number % 10);
			while (number /= 10);
			while (count && at < end)
				*at++ = digits[--count];
			format += 2;
		} else {
			*at++ = *format;
		}
	}
	va_end(arguments);
	*at = 0;
	throw out_of_range(text);
}

} // namespace std
