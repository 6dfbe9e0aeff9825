// How the C++ run-time ends a domain that went wrong.
#pragma once

namespace mullion {

// Writes "what: detail" to standard error and aborts.
[[noreturn]] void fail(const char *what, const char *detail = nullptr);

} // namespace mullion
