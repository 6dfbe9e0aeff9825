// The members of std::string and of its allocator that the headers declare to
// be compiled elsewhere.
// In C++17 one constructor is a template; what is compiled here is not.
#define _GLIBCXX_DEFINING_STRING_INSTANTIATIONS 1
#include <string>

namespace std {

template class allocator<char>;
template class allocator<wchar_t>;
template class basic_string<char>;
template class basic_string<wchar_t>;

} // namespace std
